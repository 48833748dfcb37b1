//! From a plan to sinks: what is built, what is warned of, what is refused.

mod common;

use std::fs;

use common::{options, plan, send_journey, send_steps};
use stepline_telemetry::{BuiltSinks, OtlpProtocol, SinkOptions, TelemetryWarning, TracePlan, build_sinks};
use stepline_tracing_schema::{TraceRecord, TraceSink};

fn with_file(path: &std::path::Path) -> SinkOptions {
    SinkOptions { trace_out: Some(path.to_owned()), ..options(OtlpProtocol::Grpc) }
}

fn off() -> TracePlan {
    TracePlan { step_closure_interval: None, enable_journey_tracing: false, ..plan(None) }
}

#[test]
fn tracing_without_a_destination_is_warned_of_and_off() {
    let built = build_sinks(&plan(None), &options(OtlpProtocol::Grpc)).expect("a warning, no error");
    assert!(built.sinks.is_none());
    assert_eq!(built.warnings, [TelemetryWarning::NoDestination]);
}

#[test]
fn a_file_without_tracing_is_warned_of_and_not_touched() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("t.jsonl");
    fs::write(&path, "older").expect("it can be written");
    let built = build_sinks(&off(), &with_file(&path)).expect("a warning, no error");
    assert!(built.sinks.is_none());
    assert_eq!(built.warnings, [TelemetryWarning::NothingTraced]);
    assert_eq!(fs::read_to_string(&path).expect("it is there"), "older");
}

#[test]
fn nothing_asked_for_is_nothing_built_and_nothing_said() {
    let built = build_sinks(&off(), &options(OtlpProtocol::Grpc)).expect("nothing can fail");
    assert!(built.sinks.is_none() && built.warnings.is_empty());
}

#[test]
fn a_trace_file_holds_every_record_in_order() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("t.jsonl");
    let built = build_sinks(&plan(None), &with_file(&path)).expect("a sink");
    let BuiltSinks { mut sink, handle } = built.sinks.expect("tracing is on");
    send_steps(&mut sink, 12, 2).expect("the sink works");
    send_journey(&mut sink, "A", None).expect("the sink works");
    sink.shutdown(12, 0).expect("the file is written");

    let text = fs::read_to_string(&path).expect("the file is there");
    let names: Vec<_> =
        text.lines().map(|line| serde_json::from_str::<TraceRecord>(line).expect("a record").name()).collect();
    let step = ["step.BATCH_SUMMARY", "step.REQUEST_SNAPSHOT", "step.REQUEST_SNAPSHOT"];
    let journey = ["journey.QUEUED", "journey.SCHEDULED", "journey.FINISHED"];
    assert_eq!(names, [step.repeat(12), journey.to_vec()].concat());
    let report = handle.report();
    assert!(report.is_complete());
    let file = report.file.expect("there is a file");
    assert_eq!((file.records, file.written), (39, 39));
}

#[test]
fn a_file_that_cannot_be_created_is_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("missing").join("t.jsonl");
    let error = build_sinks(&plan(None), &with_file(&path)).expect_err("the folder is missing").to_string();
    let start = format!("trace file `{}`: cannot be created: ", path.display());
    assert!(error.starts_with(&start) && error.ends_with("give another path to --trace-out"), "{error}");
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_device_ends_the_trace_with_an_account_of_it() {
    let built = build_sinks(&plan(None), &with_file("/dev/full".as_ref())).expect("the device can be opened");
    let BuiltSinks { mut sink, handle } = built.sinks.expect("tracing is on");
    send_steps(&mut sink, 3, 1).expect("lines are only collected");
    let error = sink.shutdown(3, 0).expect_err("the device is full").to_string();
    assert!(error.starts_with("trace sink file `/dev/full`: write: "), "{error}");
    let report = handle.report();
    assert_eq!(report.losses().len(), 1);
    assert!(report.losses()[0].starts_with("6 of 6 records are not in /dev/full: write: "), "{:?}", report.losses());
}

#[cfg(feature = "otlp")]
#[test]
fn a_wrong_endpoint_is_an_error_and_leaves_the_older_file_alone() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("t.jsonl");
    fs::write(&path, "older").expect("it can be written");
    let error = build_sinks(&plan(Some("collector:4317".to_owned())), &with_file(&path)).expect_err("no scheme");
    assert_eq!(
        error.to_string(),
        "otlp_traces_endpoint `collector:4317`: it has no scheme; expected e.g. `http://127.0.0.1:4317`"
    );
    assert_eq!(fs::read_to_string(&path).expect("it is there"), "older");
}

#[cfg(not(feature = "otlp"))]
#[test]
fn an_endpoint_without_an_exporter_is_refused_by_the_feature_it_needs() {
    let endpoint = Some("http://127.0.0.1:4317".to_owned());
    let error = build_sinks(&plan(endpoint), &options(OtlpProtocol::Grpc)).expect_err("there is no exporter");
    assert!(error.to_string().contains("build with the feature `otlp`"), "{error}");
}
