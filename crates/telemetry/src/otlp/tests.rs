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
use super::exporter::{cut, span_bytes};
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
    OtlpBackend::with_exporter(keeper.clone(), "keeper".to_owned(), options, None)
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

#[test]
fn a_batch_is_cut_where_a_message_would_be_too_large() {
    let span = span_with_events(&["A".to_owned()], [1; 9]);
    let bytes = span_bytes(&span);
    let lengths = |num_spans, max_bytes| -> Vec<usize> {
        cut(vec![span.clone(); num_spans], max_bytes).iter().map(Vec::len).collect()
    };
    assert_eq!(lengths(5, 2 * bytes), [2, 2, 1]);
    assert_eq!(lengths(5, 2 * bytes - 1), [1, 1, 1, 1, 1]);
    assert_eq!(lengths(2, bytes - 1), [1, 1], "a span that is too large stands alone");
    assert_eq!(lengths(3, usize::MAX), [3]);
    assert_eq!(lengths(0, 1), [0_usize; 0]);
}
