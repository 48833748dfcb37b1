//! Replayed spans in the words of a recording.

use std::num::NonZeroU32;
use std::sync::{Arc, Mutex};
use std::time::UNIX_EPOCH;

use serde_json::{Map, Value, json};
use stepline_telemetry::{
    ClockAnchor, RecordedAttributes, RecordedValue, SpanLabel, SpanOperation, SpanRecorder, SpanSink, SpanSinkOptions,
};
use stepline_tracing_schema::SpanAttributes;

use super::super::format::Scenario;

/// Clock readings, which the recordings leave out.
const CLOCK_READINGS: [&str; 5] = [
    SpanAttributes::STEP_TS_START_NS,
    SpanAttributes::STEP_TS_END_NS,
    SpanAttributes::STEP_DURATION_US,
    SpanAttributes::TS_MONOTONIC,
    SpanAttributes::TS_MONOTONIC_NS,
];

/// The spans of a replay, as they are written.
pub(super) struct RecordedSpans {
    sink: Arc<Mutex<SpanSink<SpanRecorder>>>,
    num_taken: usize,
    span_event_limit: u32,
}

impl RecordedSpans {
    pub(super) fn new(scenario: &Scenario) -> Self {
        let traced_steps = scenario.tracing.as_ref().filter(|tracing| tracing.endpoint && tracing.step_tracing_enabled);
        let options = SpanSinkOptions {
            step_closure_interval: traced_steps.and_then(|t| NonZeroU32::new(t.step_tracing_closure_interval)),
            // The reference closes spans by the interval alone.
            budget: None,
            anchor: ClockAnchor::new(UNIX_EPOCH, 0),
        };
        let sink = SpanSink::new(SpanRecorder::default(), options);
        Self { sink: Arc::new(Mutex::new(sink)), num_taken: 0, span_event_limit: scenario.span_event_limit }
    }

    pub(super) const fn sink(&self) -> &Arc<Mutex<SpanSink<SpanRecorder>>> {
        &self.sink
    }

    /// Returns what was written since the last call, as lines of a recording that happened during `during`.
    pub(super) fn take(&mut self, during: &str) -> Vec<Value> {
        let sink = self.sink.lock().expect("the tracer never panics while it holds the lock");
        let operations = &sink.backend().operations()[self.num_taken..];
        self.num_taken += operations.len();
        operations.iter().map(|operation| self.line(operation, during)).collect()
    }

    /// `explicit_timestamp` tells how the reference passes times; Stepline always passes them.
    fn line(&self, operation: &SpanOperation, during: &str) -> Value {
        match operation {
            SpanOperation::Start { span, name, kind, scope, parent, attributes, .. } => json!({
                "type": "span_start",
                "during": during,
                "span": label(*span),
                "name": name,
                "kind": kind.as_str(),
                "scope": scope,
                "parent": parent.map(|parent| json!({
                    "trace_id": format!("{:032x}", parent.trace_id),
                    "span_id": format!("{:016x}", parent.span_id),
                    "remote": true,
                })),
                "attributes": object(attributes),
            }),
            SpanOperation::Attribute { span, key, value } => json!({
                "type": "span_attribute",
                "during": during,
                "span": label(*span),
                "key": key,
                "value": plain(value),
            }),
            SpanOperation::Event { span, index, name, attributes, .. } => json!({
                "type": "event",
                "during": during,
                "span": label(*span),
                "index": index,
                "name": name,
                "explicit_timestamp": name.starts_with("journey."),
                "attributes": object(attributes),
            }),
            SpanOperation::End { span, name, attributes, num_events, .. } => {
                let num_kept = (*num_events).min(self.span_event_limit);
                json!({
                    "type": "span_end",
                    "during": during,
                    "span": label(*span),
                    "name": name,
                    "status": "UNSET",
                    "attributes": object(attributes),
                    "events_added": num_events,
                    "events_kept": num_kept,
                    "events_dropped": num_events - num_kept,
                })
            }
        }
    }
}

fn label(span: SpanLabel) -> String {
    format!("s{}", span.0)
}

/// Attributes in order; the order is compared too, for objects keep it.
fn object(attributes: &RecordedAttributes) -> Value {
    let pairs = attributes.iter().map(|(key, value)| {
        let value = if CLOCK_READINGS.contains(key) { Value::Null } else { plain(value) };
        ((*key).to_owned(), value)
    });
    Value::Object(pairs.collect::<Map<_, _>>())
}

fn plain(value: &RecordedValue) -> Value {
    match value {
        RecordedValue::Int(value) => json!(value),
        RecordedValue::Float(value) => json!(value),
        RecordedValue::Str(text) => json!(text),
    }
}
