//! The spans of recorded traces: records go in as the reference had them, and every operation on a span must come out
//! as the reference did it. Files: `golden/seed-tracing`.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::Read;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use flate2::read::GzDecoder;
use serde_json::{Map, Value, json};
use stepline_telemetry::{
    ClockAnchor, RecordedAttributes, RecordedValue, SpanOperation, SpanRecorder, SpanSink, SpanSinkOptions,
};
use stepline_tracing_schema::{JourneyStart, TraceParent, TraceRecord, TraceSink, names};

fn golden_files() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../golden/seed-tracing");
    let mut files: Vec<_> =
        fs::read_dir(folder).expect("the recordings are there").map(|entry| entry.expect("an entry").path()).collect();
    files.sort();
    files
}

fn read_lines(path: &Path) -> Vec<Value> {
    let mut text = String::new();
    let mut file = File::open(path).expect("the recording can be read");
    if path.extension().is_some_and(|extension| extension == "gz") {
        GzDecoder::new(file).read_to_string(&mut text).expect("the recording is text");
    } else {
        file.read_to_string(&mut text).expect("the recording is text");
    }
    text.lines().map(|line| serde_json::from_str(line).expect("a line is JSON")).collect()
}

/// Gives the recorded records to a sink.
struct Feeder {
    sink: SpanSink<SpanRecorder>,
    closure_interval: u64,
    trace_headers: HashMap<String, Value>,
    request_of_span: HashMap<String, String>,
    last_step: u64,
    has_summary_in_interval: bool,
}

impl Feeder {
    fn new(scenario: &Value) -> Self {
        let tracing = &scenario["tracing"];
        let closure_interval = tracing["step_tracing_closure_interval"].as_u64().expect("an interval");
        let step_closure_interval = tracing["step_tracing_enabled"]
            .as_bool()
            .expect("a flag")
            .then(|| NonZeroU32::new(u32::try_from(closure_interval).expect("small")).expect("not 0"));
        let options = SpanSinkOptions {
            step_closure_interval,
            budget: None,
            anchor: ClockAnchor::new(SystemTime::UNIX_EPOCH, 0),
        };
        let requests = scenario["requests"].as_array().expect("requests");
        let trace_headers = requests.iter().map(|request| (text(&request["id"]), request["trace_headers"].clone()));
        Self {
            sink: SpanSink::new(SpanRecorder::default(), options),
            closure_interval,
            trace_headers: trace_headers.collect(),
            request_of_span: HashMap::new(),
            last_step: 0,
            has_summary_in_interval: false,
        }
    }

    fn feed(&mut self, line: &Value) {
        match line["type"].as_str().expect("a type") {
            "add" => self.add(&text(&line["id"])),
            "span_attribute" if line["key"] == "gen_ai.request.id" => {
                self.request_of_span.insert(text(&line["span"]), text(&line["value"]));
            }
            "event" => self.event(line),
            "schedule" => {
                self.last_step = line["step"].as_u64().expect("a step");
                if self.last_step.is_multiple_of(self.closure_interval) && self.has_summary_in_interval {
                    self.sink.interval_closed(self.last_step, 0).expect("a recorder does not fail");
                    self.has_summary_in_interval = false;
                }
            }
            "shutdown" => self.sink.shutdown(self.last_step, 0).expect("a recorder does not fail"),
            _ => {}
        }
    }

    fn add(&mut self, id: &str) {
        let headers = &self.trace_headers[id];
        if headers[names::JOURNEY_SAMPLED_HEADER] == names::JOURNEY_SAMPLED_VALUE {
            let traceparent = headers[names::TRACEPARENT_HEADER].as_str();
            self.sink
                .journey_started(&JourneyStart {
                    request_id: id.into(),
                    ts_monotonic_ns: 0,
                    traceparent: traceparent.and_then(|header| TraceParent::parse(header).ok()),
                })
                .expect("a recorder does not fail");
        }
    }

    /// Makes the record of an event line. What is null there, a clock reading, is 0 here.
    fn event(&mut self, line: &Value) {
        let attributes = line["attributes"].as_object().expect("attributes");
        let mut members = vec![("name".to_owned(), line["name"].clone())];
        if let Some(request) = self.request_of_span.get(line["span"].as_str().expect("a span")) {
            members.push(("request.id".to_owned(), json!(request)));
        }
        members.extend(attributes.iter().map(|(key, value)| {
            let value = if value.is_null() { json!(0) } else { value.clone() };
            (key.clone(), value)
        }));
        // The name must come first, which no map of serde_json promises: the text is put together by hand.
        let members: Vec<_> = members.iter().map(|(key, value)| format!("{}:{value}", json!(key))).collect();
        let record = serde_json::from_str(&format!("{{{}}}", members.join(","))).expect("the event is a record");
        match record {
            TraceRecord::BatchSummary(summary) => {
                self.has_summary_in_interval = true;
                self.sink.batch_summary(&summary)
            }
            TraceRecord::RequestSnapshot(snapshot) => self.sink.request_snapshot(&snapshot),
            TraceRecord::JourneyEvent(event) => self.sink.journey_event(&event),
        }
        .expect("a recorder does not fail");
    }
}

fn text(value: &Value) -> String {
    value.as_str().expect("a text").to_owned()
}

/// Writes an operation as the recordings write it.
fn line_of(operation: &SpanOperation) -> Value {
    match operation {
        SpanOperation::Start { span, name, kind, scope, parent, attributes, .. } => json!({
            "type": "span_start", "span": format!("s{}", span.0), "name": name, "kind": kind.as_str(), "scope": scope,
            "parent": parent.map(|parent| json!({
                "trace_id": format!("{:032x}", parent.trace_id),
                "span_id": format!("{:016x}", parent.span_id),
                "remote": true,
            })),
            "attributes": object(attributes),
        }),
        SpanOperation::Attribute { span, key, value } => {
            json!({ "type": "span_attribute", "span": format!("s{}", span.0), "key": key, "value": json_of(value) })
        }
        SpanOperation::Event { span, index, name, attributes, .. } => json!({
            "type": "event", "span": format!("s{}", span.0), "index": index, "name": name,
            "attributes": object(attributes),
        }),
        SpanOperation::End { span, name, attributes, num_events, .. } => json!({
            "type": "span_end", "span": format!("s{}", span.0), "name": name, "status": "UNSET",
            "attributes": object(attributes), "events_added": num_events,
        }),
    }
}

fn json_of(value: &RecordedValue) -> Value {
    match value {
        RecordedValue::Int(value) => json!(value),
        RecordedValue::Float(value) => json!(value),
        RecordedValue::Str(value) => json!(value),
    }
}

fn object(attributes: &RecordedAttributes) -> Value {
    attributes.iter().map(|(key, value)| ((*key).to_owned(), json_of(value))).collect::<Map<_, _>>().into()
}

/// The recorded line without what a sink does not decide: the call it was made in, whether the SDK read the clock
/// itself (Stepline always gives the time of the record), and what the SDK's limit of 128 events dropped.
fn expected_line(line: &Value) -> Option<Value> {
    let mut line = line.clone();
    let kind = text(&line["type"]);
    if !["span_start", "span_attribute", "event", "span_end"].contains(&kind.as_str()) {
        return None;
    }
    let members = line.as_object_mut().expect("an object");
    for key in ["during", "explicit_timestamp", "events_kept", "events_dropped"] {
        members.remove(key);
    }
    Some(line)
}

/// Compares in order; a null in the recording is a clock reading, of which only the type is known.
fn differences(expected: &Value, got: &Value) -> Option<String> {
    let (Some(expected_members), Some(got_members)) = (expected.as_object(), got.as_object()) else {
        return (expected != got).then(|| format!("expected {expected}, got {got}"));
    };
    let attributes = |members: &Map<String, Value>| members.get("attributes").cloned();
    if let (Some(Value::Object(expected)), Some(Value::Object(got))) =
        (attributes(expected_members), attributes(got_members))
    {
        if !expected.keys().eq(got.keys()) {
            return Some(format!("expected attributes {:?}, got {:?}", expected.keys(), got.keys()));
        }
        for (key, value) in &expected {
            let is_equal = match value {
                Value::Null => got[key].is_number() && got[key].is_f64() == (key == "ts.monotonic"),
                value => *value == got[key],
            };
            if !is_equal {
                return Some(format!("attribute {key}: expected {value}, got {}", got[key]));
            }
        }
    }
    expected_members
        .iter()
        .filter(|(key, _)| *key != "attributes")
        .find(|(key, value)| got_members.get(*key) != Some(value))
        .map(|(key, value)| format!("{key}: expected {value}, got {:?}", got_members.get(key)))
}

#[test]
fn every_operation_on_spans_is_the_reference_ones_in_its_order() {
    let files = golden_files();
    assert_eq!(files.len(), 17, "the recordings are {files:?}");
    for file in files {
        let lines = read_lines(&file);
        let mut feeder = Feeder::new(&lines[0]);
        for line in &lines[1..] {
            feeder.feed(line);
        }
        let got: Vec<_> = feeder.sink.backend().operations().iter().map(line_of).collect();
        let expected: Vec<_> = lines.iter().filter_map(expected_line).collect();
        for (index, (expected, got)) in expected.iter().zip(&got).enumerate() {
            if let Some(difference) = differences(expected, got) {
                panic!("{}: operation {index}: {difference}\nexpected {expected}\ngot      {got}", file.display());
            }
        }
        assert_eq!(got.len(), expected.len(), "{}: number of operations", file.display());
    }
}

/// `serde_json` orders the keys of its objects unless a feature is on, so the order of attributes is checked here.
#[test]
fn attributes_are_emitted_in_the_order_of_the_reference() {
    let file = golden_files().remove(0);
    let text = fs::read_to_string(&file).expect("the first recording is plain text");
    let lines = read_lines(&file);
    let mut feeder = Feeder::new(&lines[0]);
    for line in &lines[1..] {
        feeder.feed(line);
    }
    let tracing_lines: Vec<_> = text.lines().filter(|line| line.contains(r#""type":"event""#)).collect();
    let events: Vec<_> = feeder
        .sink
        .backend()
        .operations()
        .iter()
        .filter_map(|operation| match operation {
            SpanOperation::Event { name, attributes, .. } => Some((name, attributes)),
            _ => None,
        })
        .collect();
    assert_eq!(events.len(), tracing_lines.len());
    for ((name, attributes), line) in events.iter().zip(tracing_lines) {
        let (_, recorded) = line.split_once(r#""attributes":"#).expect("an event has attributes");
        let positions: Vec<_> = attributes
            .iter()
            .map(|(key, _)| recorded.find(&format!("\"{key}\":")).expect("the key is there"))
            .collect();
        assert!(positions.is_sorted(), "{name}: {attributes:?} against {recorded}");
    }
}
