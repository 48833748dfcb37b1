//! The JSON Schema of a line of a trace file, written from the declarations.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Map, Value, json};

use crate::line::NAME;
use crate::spec::{AttributeSpec, AttributeType, EVENTS, EventSpec, unit};
use crate::{BatchSummary, JourneyEvent, RequestSnapshot, TraceRecord, names};

/// Returns the JSON Schema (draft 2020-12) of one line of a trace file: any event.
#[must_use]
pub fn line_schema() -> Schema {
    let definitions: Map<String, Value> =
        EVENTS.iter().map(|event| (event.name.to_owned(), event_schema(event))).collect();
    let references: Vec<Value> =
        EVENTS.iter().map(|event| json!({ "$ref": format!("#/$defs/{}", event.name) })).collect();
    json_schema!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "TraceRecord",
        "description": "One event of a Stepline trace file.",
        "oneOf": references,
        "$defs": definitions,
    })
}

/// Returns the text of `docs/schema/events.schema.json`.
#[must_use]
pub fn json_schema() -> String {
    let mut schema = line_schema().to_value();
    // Another crate of the build may have asked serde_json to keep the order of insertion.
    schema.sort_all_objects();
    format!("{schema:#}\n")
}

fn event_schema(event: &EventSpec) -> Value {
    let attributes = || event.line_only.iter().chain(event.attributes).filter(|attribute| belongs(attribute, event));
    let mut properties = Map::from_iter([(NAME.to_owned(), json!({ "const": event.name }))]);
    properties.extend(attributes().map(|attribute| (attribute.key.to_owned(), attribute_schema(attribute, event))));
    let mut required = vec![NAME];
    // A detail of one type of journey event is never missing there.
    required.extend(attributes().filter(|attribute| is_required(attribute)).map(|attribute| attribute.key));
    json!({
        "type": "object",
        "description": event.meaning,
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    })
}

/// Returns whether `event` can have `attribute`: journey events share a table, in which each detail has one owner.
fn belongs(attribute: &AttributeSpec, event: &EventSpec) -> bool {
    detail_owner(attribute).is_none_or(|owner| owner == event.name)
}

fn is_required(attribute: &AttributeSpec) -> bool {
    !attribute.optional || detail_owner(attribute).is_some()
}

fn detail_owner(attribute: &AttributeSpec) -> Option<&'static str> {
    match attribute.key {
        crate::SpanAttributes::SCHEDULE_KIND => Some(names::JOURNEY_SCHEDULED),
        crate::SpanAttributes::FINISH_STATUS => Some(names::JOURNEY_FINISHED),
        _ => None,
    }
}

fn attribute_schema(attribute: &AttributeSpec, event: &EventSpec) -> Value {
    let description = attribute.meaning.trim();
    let mut schema = match attribute.ty {
        AttributeType::Int => json!({ "type": "integer", "minimum": 0 }),
        AttributeType::Float if attribute.unit == unit::RATIO => {
            json!({ "type": "number", "minimum": 0, "maximum": 1 })
        }
        AttributeType::Float => json!({ "type": "number", "minimum": 0 }),
        AttributeType::Str => json!({ "type": "string" }),
        AttributeType::OneOf(_) if attribute.key == crate::SpanAttributes::EVENT_TYPE => {
            json!({ "const": event.name.rsplit_once('.').map(|(_, event_type)| event_type) })
        }
        AttributeType::OneOf(names) => json!({ "type": "string", "enum": names }),
    };
    schema["description"] = json!(description);
    if !attribute.unit.is_empty() {
        schema["x-unit"] = json!(attribute.unit);
    }
    schema
}

/// The schema of some of the events.
fn any_of(is_meant: impl Fn(&str) -> bool) -> Schema {
    let events: Vec<Value> = EVENTS.iter().filter(|event| is_meant(event.name)).map(event_schema).collect();
    json_schema!({ "oneOf": events })
}

macro_rules! implement {
    ($($Record:ident: $is_meant:expr),+ $(,)?) => {
        $(impl JsonSchema for $Record {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($Record).into()
            }

            fn json_schema(_generator: &mut SchemaGenerator) -> Schema {
                any_of($is_meant)
            }
        })+
    };
}

implement!(
    BatchSummary: |name| name == names::BATCH_SUMMARY,
    RequestSnapshot: |name| name == names::REQUEST_SNAPSHOT,
    JourneyEvent: |name| name.starts_with("journey."),
    TraceRecord: |_| true,
);
