//! The back end on an exporter that keeps what it is given.

use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use opentelemetry::trace::{SpanId, SpanKind as OtelSpanKind, TraceId};
use opentelemetry_proto::tonic::trace::v1::Span as ProtoSpan;
use opentelemetry_sdk::error::{OTelSdkError, OTelSdkResult};
use opentelemetry_sdk::trace::{SpanData, SpanExporter};
use proptest::prelude::*;
use prost::Message as _;
use stepline_tracing_schema::{
    AttributeValue, FinishStatus, JourneyEvent, JourneyEventKind, Record, RequestPhase, RequestSnapshot, TraceParent,
};

use super::backend::{OtlpBackend, OtlpOptions};
use super::export_queue::span_bytes;
use crate::backend::{SpanBackend, SpanKind, SpanStart};
use crate::encoded_size;
use crate::options::WhenFull;
use crate::report::Counts;

/// Keeps its batches, or refuses them all.
#[derive(Debug, Clone, Default)]
struct Keeper {
    batches: Arc<Mutex<Vec<Vec<SpanData>>>>,
    refuses: bool,
}

impl SpanExporter for Keeper {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        if self.refuses {
            return Err(OTelSdkError::InternalFailure("refused".to_owned()));
        }
        self.batches.lock().expect("nothing panicked").push(batch);
        Ok(())
    }
}

impl Keeper {
    fn spans(&self) -> Vec<SpanData> {
        self.batches.lock().expect("nothing panicked").concat()
    }
}

fn backend(keeper: &Keeper) -> OtlpBackend {
    let options = OtlpOptions { when_full: WhenFull::Drop, shutdown_limit: Duration::from_mins(1) };
    OtlpBackend::with_exporter(keeper.clone(), "keeper".to_owned(), options, None).expect("a thread starts")
}

fn start(parent: Option<TraceParent>) -> SpanStart<'static> {
    SpanStart {
        name: "llm_core".into(),
        kind: SpanKind::Internal,
        scope: "vllm.scheduler",
        parent,
        attributes: &[],
        unix_ns: 5,
    }
}

fn snapshot(request_id: &str, counts: [u32; 9]) -> RequestSnapshot {
    RequestSnapshot {
        step_id: counts[0].into(),
        request_id: request_id.into(),
        phase: RequestPhase::Prefill,
        num_prompt_tokens: counts[1],
        num_computed_tokens: counts[2],
        num_output_tokens: counts[3],
        num_preemptions: counts[4],
        scheduled_tokens_this_step: counts[5],
        kv_blocks_allocated_gpu: counts[6],
        kv_blocks_cached_gpu: counts[7],
        effective_prompt_len: Some(counts[8]),
    }
}

#[test]
fn a_span_has_the_scope_kind_parent_and_times_it_was_given() {
    let keeper = Keeper::default();
    let mut backend = backend(&keeper);
    let parent = TraceParent { trace_id: 0xabc, span_id: 0xdef, sampled: true };
    let mut span = backend.start(start(Some(parent))).expect("the parent is recorded");
    backend.set_attribute(&mut span, "gen_ai.request.id", AttributeValue::Static("A"));
    backend.add_event(&mut span, &snapshot("A", [1; 9]), 7);
    backend.end(span, 9);
    backend.shutdown().expect("it is kept");

    let [span] = &keeper.spans()[..] else { panic!("{:?}", keeper.spans()) };
    let at = |unix_ns| SystemTime::UNIX_EPOCH + Duration::from_nanos(unix_ns);
    assert_eq!((span.name.as_ref(), &span.span_kind), ("llm_core", &OtelSpanKind::Internal));
    assert_eq!(span.instrumentation_scope.name(), "vllm.scheduler");
    assert_eq!(span.span_context.trace_id(), TraceId::from_bytes(0xabc_u128.to_be_bytes()));
    assert_eq!(span.parent_span_id, SpanId::from_bytes(0xdef_u64.to_be_bytes()));
    assert!(span.parent_span_is_remote);
    assert_eq!((span.start_time, span.end_time), (at(5), at(9)));
    assert_eq!((span.events[0].name.as_ref(), span.events[0].timestamp), ("step.REQUEST_SNAPSHOT", at(7)));
}

#[test]
fn a_child_of_a_span_that_is_not_recorded_is_not_recorded() {
    let mut backend = backend(&Keeper::default());
    let unsampled = TraceParent { trace_id: 1, span_id: 1, sampled: false };
    assert!(backend.start(start(Some(unsampled))).is_none());
    assert!(backend.start(start(None)).is_some());
}

#[test]
fn an_exporter_that_fails_is_counted_and_the_shutdown_says_so() {
    let mut backend = backend(&Keeper { refuses: true, ..Keeper::default() });
    for _ in 0..3 {
        let mut span = backend.start(start(None)).expect("a root is recorded");
        backend.add_event(&mut span, &snapshot("A", [1; 9]), 7);
        backend.end(span, 9);
    }
    let error = backend.shutdown().expect_err("nothing is kept").to_string();
    assert!(error.starts_with("trace sink OTLP `keeper`: deliver 3 spans with 3 events of 3 spans with 3 events: "));
    assert!(error.ends_with("refused"), "{error}");
    let report = backend.delivery().report();
    let all = Counts { spans: 3, events: 3 };
    assert_eq!((report.emitted, report.failed, report.exported), (all, all, Counts::default()));
}

/// A span with one event for each id.
fn span_with_events(ids: &[String], counts: [u32; 9]) -> SpanData {
    let keeper = Keeper::default();
    let mut backend = backend(&keeper);
    let mut span = backend.start(start(None)).expect("a root is recorded");
    for id in ids {
        backend.add_event(&mut span, &snapshot(id, counts), u64::MAX);
    }
    backend.end(span, u64::MAX);
    backend.shutdown().expect("it is kept");
    keeper.spans().remove(0)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn the_estimate_of_a_message_is_never_too_low(
        ids in prop::collection::vec("[a-zA-Z0-9é-]{0,300}", 1..5),
        counts in prop::array::uniform9(any::<u32>()),
    ) {
        let span = span_with_events(&ids, counts);
        let proto = ProtoSpan::from(span.clone());
        for (event, id) in proto.events.iter().zip(&ids) {
            // Two bytes or more of tag and length around each event.
            let estimate = encoded_size::event_bytes(&snapshot(id, counts));
            prop_assert!(event.encoded_len() + 4 <= estimate, "{} of {estimate}", event.encoded_len());
        }
        prop_assert!(proto.encoded_len() + 6 <= span_bytes(&span));
    }
}

#[test]
fn the_estimate_of_every_journey_event_is_never_too_low() {
    let event = JourneyEvent {
        request_id: "A".into(),
        kind: JourneyEventKind::Finished(FinishStatus::Stopped),
        ts_monotonic_ns: u64::MAX,
        scheduler_step: u64::MAX,
        phase: RequestPhase::Waiting,
        prefill_done_tokens: u32::MAX,
        prefill_total_tokens: u32::MAX,
        decode_done_tokens: u32::MAX,
        decode_max_tokens: u32::MAX,
        num_preemptions: u32::MAX,
    };
    let keeper = Keeper::default();
    let mut backend = backend(&keeper);
    let mut span = backend.start(start(None)).expect("a root is recorded");
    backend.add_event(&mut span, &event, u64::MAX);
    backend.end(span, u64::MAX);
    backend.shutdown().expect("it is kept");
    let proto = ProtoSpan::from(keeper.spans().remove(0));
    let mut num_attributes = 0;
    event.for_each_attribute(|_, _| num_attributes += 1);
    assert_eq!(proto.events[0].attributes.len(), num_attributes);
    assert!(proto.events[0].encoded_len() + 4 <= encoded_size::event_bytes(&event));
}

/// Ends `num_spans` spans of one event with an id of `id_bytes`, and returns the number of spans in each message.
fn messages(num_spans: usize, id_bytes: usize) -> Vec<usize> {
    let keeper = Keeper::default();
    let mut backend = backend(&keeper);
    let record = snapshot(&"x".repeat(id_bytes), [1; 9]);
    for _ in 0..num_spans {
        let mut span = backend.start(start(None)).expect("a root is recorded");
        backend.add_event(&mut span, &record, 7);
        backend.end(span, 9);
    }
    backend.shutdown().expect("it is kept");
    keeper.batches.lock().expect("nothing panicked").iter().map(Vec::len).collect()
}

#[test]
fn spans_are_sent_together_up_to_the_number_and_the_size_of_a_message() {
    assert_eq!(messages(1_025, 1), [512, 512, 1]);
    assert_eq!(messages(5, 1 << 20), [3, 2], "3 MiB and a little more are sent, 4 MiB and a little more are not");
    assert_eq!(messages(2, 5 << 20), [1, 1], "a span that is too large goes alone");
}

/// A collector that panics takes the export thread with it, and nothing else.
#[test]
fn an_exporter_that_panics_is_counted_as_a_failure() {
    #[derive(Debug)]
    struct Panicking;

    impl SpanExporter for Panicking {
        async fn export(&self, _: Vec<SpanData>) -> OTelSdkResult {
            panic!("a bug in an exporter")
        }
    }

    let options = OtlpOptions { when_full: WhenFull::Drop, shutdown_limit: Duration::from_mins(1) };
    let mut backend =
        OtlpBackend::with_exporter(Panicking, "panicking".to_owned(), options, None).expect("a thread starts");
    let span = backend.start(start(None)).expect("a root is recorded");
    backend.end(span, 9);
    backend.shutdown().expect_err("nothing is delivered");
    let report = backend.delivery().report();
    assert_eq!(report.undelivered(), Counts { spans: 1, events: 0 });
}
