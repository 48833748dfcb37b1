//! The JSON Schema of a configuration file, from the table of settings.

use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Map, Value as Json, json};

use crate::rate::{Rate, Watermark};
use crate::settings::{DefaultValue, Effect, Kind, SETTINGS, Setting};

/// Returns the schema as text that ends with a line break.
#[must_use]
pub fn json_schema() -> String {
    let mut properties = Map::new();
    for setting in SETTINGS {
        properties.insert(setting.name.to_owned(), property(setting));
        let dashed = setting.name.replace('_', "-");
        if dashed != setting.name {
            let same = json!({ "$ref": format!("#/properties/{}", setting.name) });
            properties.insert(dashed, same);
        }
    }
    let schema = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Configuration of Stepline",
        "description": "Engine arguments under vLLM's names, with underscores or dashes.",
        "type": "object",
        "properties": properties,
        "additionalProperties": false,
    });
    let mut text = serde_json::to_string_pretty(&schema).expect("a schema has text keys only");
    text.push('\n');
    text
}

fn property(setting: &Setting) -> Json {
    let mut property = of_kind(setting.kind);
    let description = match setting.effect {
        Effect::Full => setting.help.to_owned(),
        Effect::None(why) => format!("{} Without effect: {why}.", setting.help),
    };
    property["description"] = description.into();
    if let DefaultValue::Fixed(text) = setting.default {
        // The default of a count, rate or boolean is JSON as it stands; a name is text.
        property["default"] = serde_json::from_str(text).unwrap_or_else(|_| text.into());
    }
    property
}

fn of_kind(kind: Kind) -> Json {
    let generator = &mut SchemaGenerator::default();
    match kind {
        Kind::Boolean => json!({ "type": "boolean" }),
        Kind::Count { min, max } => json!({ "type": "integer", "minimum": min, "maximum": max }),
        Kind::Rate => Rate::json_schema(generator).into(),
        Kind::PositiveRate => json!({ "type": "number", "exclusiveMinimum": 0, "maximum": 1 }),
        Kind::Watermark => Watermark::json_schema(generator).into(),
        Kind::Choice(names) => json!({ "type": "string", "enum": names }),
        Kind::Choices(names) => {
            let name = names.join("|");
            json!({ "type": "string", "pattern": format!("^\\s*({name})\\s*(,\\s*({name})\\s*)*$") })
        }
        Kind::Text => json!({ "type": "string", "minLength": 1 }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_schema_holds_rates_and_the_closure_interval_to_their_ranges() {
        let schema: Json = serde_json::from_str(&json_schema()).expect("JSON");
        let of = |name: &str| &schema["properties"][name];
        for name in ["step_tracing_sample_rate", "step_tracing_rich_subsample_rate", "journey_tracing_sample_rate"] {
            assert_eq!((&of(name)["minimum"], &of(name)["maximum"]), (&json!(0), &json!(1)), "{name}");
        }
        let interval = of("step_tracing_closure_interval");
        assert_eq!((&interval["minimum"], &interval["maximum"]), (&json!(10), &json!(10_000)));
        assert_eq!(schema["additionalProperties"], json!(false));
        assert_eq!(of("enable_prefix_caching")["default"], json!(true));
    }
}
