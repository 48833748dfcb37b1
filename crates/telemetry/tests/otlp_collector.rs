//! A collector in this process receives what was emitted, over each protocol.
#![cfg(feature = "otlp")]

mod common;

use std::net::TcpListener;
use std::time::Duration;

use common::{options, plan, send_journey, send_steps};
use expect_test::{Expect, expect};
use mock_collector::{MockServer, Protocol, ServerHandle, TestSpan};
use stepline_telemetry::{BuiltSinks, Counts, OtlpProtocol, SinkOptions, TelemetryWarning, WhenFull, build_sinks};
use stepline_tracing_schema::{TraceParent, TraceSink};
use tokio::runtime::{Builder, Runtime};

/// A collector, and the runtime that drives it while the test's thread waits for an export.
struct Collector {
    runtime: Runtime,
    server: ServerHandle,
    protocol: OtlpProtocol,
}

impl Collector {
    fn start(protocol: OtlpProtocol) -> Self {
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a runtime");
        let wire = match protocol {
            OtlpProtocol::Grpc => Protocol::Grpc,
            OtlpProtocol::HttpProtobuf => Protocol::HttpBinary,
        };
        let server =
            runtime.block_on(MockServer::builder().protocol(wire).port(0).start()).expect("the collector starts");
        Self { runtime, server, protocol }
    }

    fn build(&self, change: impl FnOnce(&mut SinkOptions)) -> BuiltSinks {
        let mut options = options(self.protocol);
        change(&mut options);
        let built = build_sinks(&plan(Some(format!("http://{}", self.server.addr()))), &options).expect("sinks");
        assert_eq!(built.warnings, [], "the collector answers");
        built.sinks.expect("tracing is on")
    }

    fn spans(&self) -> Vec<TestSpan> {
        self.runtime.block_on(self.server.with_collector(|collector| collector.spans().to_vec()))
    }
}

fn num_events(spans: &[TestSpan]) -> usize {
    spans.iter().map(|span| span.span().events.len()).sum()
}

/// Attributes as the wire has them: key and typed value.
macro_rules! attributes {
    ($attributes:expr) => {
        $attributes
            .iter()
            .map(|attribute| {
                let value = attribute.value.as_ref().and_then(|value| value.value.as_ref()).expect("a value");
                format!("{}: {value:?}\n", attribute.key)
            })
            .collect::<String>()
    };
}

fn check_parity(protocol: OtlpProtocol) {
    let collector = Collector::start(protocol);
    let BuiltSinks { mut sink, handle } = collector.build(|_| ());
    let parent: TraceParent = "00-1234567890abcdef1234567890abcdef-fedcba9876543210-01".parse().expect("valid");
    let unsampled = TraceParent { sampled: false, ..parent };
    send_steps(&mut sink, 25, 3).expect("the sink works");
    send_journey(&mut sink, "A", Some(parent)).expect("the sink works");
    send_journey(&mut sink, "B", Some(unsampled)).expect("the sink works");
    send_journey(&mut sink, "C", None).expect("the sink works");
    sink.shutdown(25, 26_000).expect("everything arrives");

    let spans = collector.spans();
    let mut summary: Vec<_> =
        spans.iter().map(|span| format!("{} {}", span.span().name, span.span().events.len())).collect();
    summary.sort();
    assert_eq!(
        summary,
        ["llm_core 3", "llm_core 3", "scheduler_steps_1 40", "scheduler_steps_2 40", "scheduler_steps_3 20"]
    );
    let sent = Counts { spans: 5, events: 106 };
    let report = handle.report().otlp.expect("there is a collector");
    assert_eq!((report.emitted, report.exported), (sent, sent));
    assert_eq!(report.undelivered(), Counts::default());

    for span in &spans {
        assert_eq!(span.span().dropped_events_count, 0);
        assert_eq!(span.span().kind, 1, "INTERNAL");
        let service = attributes!(span.resource_attrs());
        assert!(service.contains("service.name: StringValue(\"stepline\")"), "{service}");
    }
    check_steps(&spans);
    check_journey(&spans, parent);
}

fn check_steps(spans: &[TestSpan]) {
    let find = |name: &str| spans.iter().map(TestSpan::span).find(|span| span.name == name).expect("it has arrived");
    let steps = find("scheduler_steps_1");
    assert_eq!(steps.parent_span_id, [0_u8; 0], "a root");
    assert_eq!((steps.start_time_unix_nano, steps.end_time_unix_nano), (1_000_000_000_000, 1_000_000_010_600));
    assert_eq!(steps.events[0].name, "step.BATCH_SUMMARY");
    assert_eq!(steps.events[0].time_unix_nano, 1_000_000_001_500);
    assert_eq!(steps.events[1].name, "step.REQUEST_SNAPSHOT");
    check_attributes(
        &attributes!(steps.attributes),
        &expect![[r"
            scheduler.span_sequence: IntValue(1)
            scheduler.step_range_start: IntValue(1)
            scheduler.closure_interval: IntValue(10)
            scheduler.step_range_end: IntValue(10)
        "]],
    );
    check_attributes(
        &attributes!(steps.events[0].attributes),
        &expect![[r"
            step.id: IntValue(1)
            step.ts_start_ns: IntValue(1000)
            step.ts_end_ns: IntValue(1500)
            step.duration_us: IntValue(0)
            queue.running_depth: IntValue(3)
            queue.waiting_depth: IntValue(2)
            batch.num_prefill_reqs: IntValue(0)
            batch.num_decode_reqs: IntValue(3)
            batch.scheduled_tokens: IntValue(3)
            batch.prefill_tokens: IntValue(0)
            batch.decode_tokens: IntValue(3)
            batch.num_finished: IntValue(0)
            batch.num_preempted: IntValue(0)
            kv.usage_gpu_ratio: DoubleValue(0.25)
            kv.blocks_total_gpu: IntValue(100)
            kv.blocks_free_gpu: IntValue(75)
        "]],
    );
    check_attributes(
        &attributes!(steps.events[1].attributes),
        &expect![[r#"
            step.id: IntValue(1)
            request.id: StringValue("request-0")
            request.phase: StringValue("DECODE")
            request.num_prompt_tokens: IntValue(10)
            request.num_computed_tokens: IntValue(12)
            request.num_output_tokens: IntValue(3)
            request.num_preemptions: IntValue(1)
            request.scheduled_tokens_this_step: IntValue(1)
            kv.blocks_allocated_gpu: IntValue(2)
            kv.blocks_cached_gpu: IntValue(1)
            request.effective_prompt_len: IntValue(8)
        "#]],
    );
}

fn check_journey(spans: &[TestSpan], parent: TraceParent) {
    let child = spans
        .iter()
        .map(TestSpan::span)
        .find(|span| !span.parent_span_id.is_empty())
        .expect("the journey of A has a parent");
    assert_eq!(child.trace_id, parent.trace_id.to_be_bytes());
    assert_eq!(child.parent_span_id, parent.span_id.to_be_bytes());
    check_attributes(
        &attributes!(child.attributes),
        &expect![[r#"
        gen_ai.request.id: StringValue("A")
    "#]],
    );
    check_attributes(
        &attributes!(child.events[2].attributes),
        &expect![[r#"
            event.type: StringValue("FINISHED")
            ts.monotonic: DoubleValue(1.5)
            ts.monotonic_ns: IntValue(1500000000)
            scheduler.step: IntValue(1)
            phase: StringValue("PREFILL")
            prefill.done_tokens: IntValue(0)
            prefill.total_tokens: IntValue(10)
            decode.done_tokens: IntValue(0)
            decode.max_tokens: IntValue(4)
            num_preemptions: IntValue(0)
            finish.status: StringValue("length")
        "#]],
    );
}

#[track_caller]
fn check_attributes(got: &str, expected: &Expect) {
    expected.assert_eq(got);
}

#[test]
fn what_arrives_over_grpc_is_what_was_emitted() {
    check_parity(OtlpProtocol::Grpc);
}

#[test]
fn what_arrives_over_http_is_what_was_emitted() {
    check_parity(OtlpProtocol::HttpProtobuf);
}

#[test]
fn three_hundred_events_of_a_span_all_arrive() {
    let collector = Collector::start(OtlpProtocol::Grpc);
    let BuiltSinks { mut sink, .. } = collector.build(|options| options.budget = None);
    send_steps(&mut sink, 3, 99).expect("the sink works");
    sink.shutdown(3, 4_000).expect("everything arrives");
    let spans = collector.spans();
    assert_eq!((spans.len(), num_events(&spans)), (1, 300), "the SDK's own limit is 128");
    assert_eq!(spans[0].span().dropped_events_count, 0);
}

/// 36,009 events, some 14 MB, where the receiver takes 4 MiB at once.
#[test]
fn a_large_interval_arrives_in_messages_that_a_receiver_takes() {
    let collector = Collector::start(OtlpProtocol::Grpc);
    let BuiltSinks { mut sink, handle } = collector.build(|_| ());
    send_steps(&mut sink, 9, 4_000).expect("the sink works");
    sink.shutdown(9, 10_000).expect("everything arrives");
    let spans = collector.spans();
    assert_eq!(num_events(&spans), 9 * 4_001);
    let report = handle.report().otlp.expect("there is a collector");
    assert_eq!(report.exported, Counts { spans: spans.len() as u64, events: 9 * 4_001 });
    assert!(spans.len() > 1, "the interval was cut");
}

#[test]
fn a_message_that_the_collector_refuses_is_counted_as_failed() {
    let collector = Collector::start(OtlpProtocol::Grpc);
    let BuiltSinks { mut sink, handle } = collector.build(|options| options.budget = None);
    send_steps(&mut sink, 4, 4_000).expect("the sink works");
    sink.shutdown(4, 5_000).expect_err("a span above 4 MiB cannot be delivered");
    assert_eq!(collector.spans().len(), 0);
    let report = handle.report().otlp.expect("there is a collector");
    assert_eq!(report.failed, Counts { spans: 1, events: 4 * 4_001 });
    assert_eq!(report.emitted, report.failed);
    assert!(report.first_error.is_some());
}

#[test]
fn forty_thousand_journeys_at_once_all_arrive_when_the_sink_waits_for_room() {
    let collector = Collector::start(OtlpProtocol::Grpc);
    let BuiltSinks { mut sink, handle } =
        collector.build(|options| options.when_full = WhenFull::Wait(Duration::from_mins(1)));
    for request in 0..40_000 {
        send_journey(&mut sink, &format!("request-{request}"), None).expect("the sink works");
    }
    sink.shutdown(0, 0).expect("everything arrives");
    let report = handle.report().otlp.expect("there is a collector");
    assert_eq!(report.exported, Counts { spans: 40_001, events: 120_000 });
    assert_eq!(collector.spans().len(), 40_001, "the journeys and the step span");
}

#[test]
fn the_sink_works_inside_of_a_runtime_of_one_thread() {
    let collector = Collector::start(OtlpProtocol::Grpc);
    let endpoint = format!("http://{}", collector.server.addr());
    let program = Builder::new_current_thread().enable_all().build().expect("a runtime");
    program.block_on(async {
        let built = build_sinks(&plan(Some(endpoint)), &options(OtlpProtocol::Grpc)).expect("sinks");
        let mut sink = built.sinks.expect("tracing is on").sink;
        send_steps(&mut sink, 5, 1).expect("the sink works");
        sink.shutdown(5, 6_000).expect("everything arrives");
        // And it is dropped here, where a runtime must not be dropped carelessly.
    });
    assert_eq!(num_events(&collector.spans()), 10);
}

#[test]
fn a_dead_endpoint_is_warned_of_at_the_start_and_accounted_for_at_the_end() {
    let port = {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        listener.local_addr().expect("it is bound").port()
    };
    let endpoint = format!("http://127.0.0.1:{port}");
    let built = build_sinks(&plan(Some(endpoint.clone())), &options(OtlpProtocol::Grpc)).expect("a warning, no error");
    let [TelemetryWarning::Unreachable { endpoint: warned_of, protocol, .. }] = &built.warnings[..] else {
        panic!("{:?}", built.warnings);
    };
    assert_eq!((warned_of, protocol.as_str()), (&endpoint, "grpc"));

    let BuiltSinks { mut sink, handle } = built.sinks.expect("the collector may come up later");
    send_steps(&mut sink, 5, 1).expect("the sink works");
    let error = sink.shutdown(5, 6_000).expect_err("nothing arrives").to_string();
    let start = format!("trace sink OTLP `{endpoint}/`: deliver 1 span with 10 events of 1 span with 10 events: ");
    assert!(error.starts_with(&start), "{error}");
    let report = handle.report();
    assert!(!report.is_complete());
    let otlp = report.otlp.expect("there is a collector");
    assert_eq!((otlp.failed, otlp.exported), (Counts { spans: 1, events: 10 }, Counts::default()));
}

#[test]
fn an_endpoint_that_never_answers_does_not_hold_up_the_end() {
    // Accepts connections, for the system does so before anyone asks it to, and never says a word.
    let silent = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let endpoint = format!("http://{}", silent.local_addr().expect("it is bound"));
    let options = SinkOptions { shutdown_limit: Duration::from_millis(50), ..options(OtlpProtocol::Grpc) };
    let built = build_sinks(&plan(Some(endpoint)), &options).expect("sinks");
    assert_eq!(built.warnings, [], "it does answer at first");
    let BuiltSinks { mut sink, handle } = built.sinks.expect("tracing is on");
    send_steps(&mut sink, 5, 1).expect("the sink works");
    let error = sink.shutdown(5, 6_000).expect_err("nothing arrives").to_string();
    assert!(error.ends_with("the time to deliver was over"), "{error}");
    let report = handle.report().otlp.expect("there is a collector");
    assert_eq!(report.undelivered(), Counts { spans: 1, events: 10 });
}
