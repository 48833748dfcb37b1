//! When spans close early: no event is lost, and a step's events stay together if they can.

use std::fmt::Write as _;
use std::num::{NonZeroU32, NonZeroUsize};
use std::time::{Duration, SystemTime};

use expect_test::{Expect, expect};
use stepline_telemetry::{
    ClockAnchor, RecordedValue, SpanBudget, SpanOperation, SpanRecorder, SpanSink, SpanSinkOptions,
};
use stepline_tracing_schema::{
    BatchSummary, FinishStatus, JourneyEvent, JourneyEventKind, JourneyStart, RequestPhase, RequestSnapshot, TraceSink,
};

fn sink(max_events: u32, max_bytes: usize) -> SpanSink<SpanRecorder> {
    let budget = SpanBudget {
        max_events: NonZeroU32::new(max_events).expect("not 0"),
        max_bytes: NonZeroUsize::new(max_bytes).expect("not 0"),
    };
    SpanSink::new(
        SpanRecorder::default(),
        SpanSinkOptions {
            step_closure_interval: NonZeroU32::new(100),
            budget: Some(budget),
            anchor: ClockAnchor::new(SystemTime::UNIX_EPOCH + Duration::from_micros(1), 0),
        },
    )
}

fn summary(step_id: u64, running_depth: u32) -> BatchSummary {
    BatchSummary {
        step_id,
        ts_start_ns: 0,
        ts_end_ns: step_id,
        duration_us: 0,
        running_depth,
        waiting_depth: 0,
        num_prefill_reqs: 0,
        num_decode_reqs: running_depth,
        scheduled_tokens: running_depth,
        prefill_tokens: 0,
        decode_tokens: running_depth,
        num_finished: 0,
        num_preempted: 0,
        kv_usage_gpu_ratio: 0.5,
        kv_blocks_total_gpu: 10,
        kv_blocks_free_gpu: 5,
    }
}

fn snapshot(step_id: u64, request_id: &str) -> RequestSnapshot {
    RequestSnapshot {
        step_id,
        request_id: request_id.into(),
        phase: RequestPhase::Decode,
        num_prompt_tokens: 1,
        num_computed_tokens: 2,
        num_output_tokens: 1,
        num_preemptions: 0,
        scheduled_tokens_this_step: 1,
        kv_blocks_allocated_gpu: 1,
        kv_blocks_cached_gpu: 0,
        effective_prompt_len: Some(1),
    }
}

fn journey(kind: JourneyEventKind) -> JourneyEvent {
    JourneyEvent {
        request_id: "A".into(),
        kind,
        ts_monotonic_ns: 7,
        scheduler_step: 1,
        phase: RequestPhase::Decode,
        prefill_done_tokens: 1,
        prefill_total_tokens: 1,
        decode_done_tokens: 1,
        decode_max_tokens: 4,
        num_preemptions: 0,
    }
}

fn step(sink: &mut SpanSink<SpanRecorder>, step_id: u64, running_depth: u32) {
    sink.batch_summary(&summary(step_id, running_depth)).expect("a recorder does not fail");
    for _ in 0..running_depth {
        sink.request_snapshot(&snapshot(step_id, "A")).expect("a recorder does not fail");
    }
}

/// One line for each span that ended: name, range of steps, number of events.
#[track_caller]
fn check_ended_spans(sink: &SpanSink<SpanRecorder>, expected: &Expect) {
    let mut lines = String::new();
    for operation in sink.backend().operations() {
        if let SpanOperation::End { name, attributes, num_events, .. } = operation {
            let range: Vec<_> = attributes
                .iter()
                .filter(|(key, _)| key.starts_with("scheduler.step_range") || *key == "gen_ai.request.id")
                .map(|(_, value)| match value {
                    RecordedValue::Int(step) => step.to_string(),
                    RecordedValue::Str(id) => id.clone(),
                    RecordedValue::Float(value) => panic!("{value} is no step"),
                })
                .collect();
            writeln!(lines, "{name} | {} | {num_events} events", range.join("..")).expect("a text takes all");
        }
    }
    expected.assert_eq(&lines);
}

#[test]
fn a_step_that_does_not_fit_any_more_starts_the_next_span() {
    let mut sink = sink(10, usize::MAX);
    for step_id in 1..=5 {
        step(&mut sink, step_id, 3);
    }
    sink.shutdown(5, 5).expect("a recorder does not fail");
    check_ended_spans(
        &sink,
        &expect![[r"
            scheduler_steps_1 | 1..2 | 8 events
            scheduler_steps_2 | 3..4 | 8 events
            scheduler_steps_3 | 5..5 | 4 events
        "]],
    );
}

#[test]
fn a_step_above_the_budget_is_split_and_both_spans_have_it_in_their_range() {
    let mut sink = sink(4, usize::MAX);
    step(&mut sink, 1, 1);
    step(&mut sink, 2, 6);
    sink.interval_closed(100, 100).expect("a recorder does not fail");
    sink.shutdown(101, 101).expect("a recorder does not fail");
    check_ended_spans(
        &sink,
        &expect![[r"
            scheduler_steps_1 | 1..1 | 2 events
            scheduler_steps_2 | 2..2 | 4 events
            scheduler_steps_3 | 2..100 | 3 events
            scheduler_steps_4 | 101..101 | 0 events
        "]],
    );
}

#[test]
fn long_request_ids_spend_the_budget_of_bytes() {
    let mut sink = sink(8_000, 4_000);
    let id = "x".repeat(1_000);
    for step_id in 1..=4 {
        sink.request_snapshot(&snapshot(step_id, &id)).expect("a recorder does not fail");
    }
    sink.shutdown(4, 4).expect("a recorder does not fail");
    check_ended_spans(
        &sink,
        &expect![[r"
            scheduler_steps_1 | 1..3 | 2 events
            scheduler_steps_2 | 3..4 | 2 events
        "]],
    );
}

#[test]
fn an_event_above_the_budget_stands_alone() {
    let mut sink = sink(8_000, 10);
    step(&mut sink, 1, 1);
    sink.shutdown(1, 1).expect("a recorder does not fail");
    check_ended_spans(
        &sink,
        &expect![[r"
            scheduler_steps_1 | 1..1 | 1 events
            scheduler_steps_2 | 1..1 | 1 events
        "]],
    );
}

#[test]
fn a_long_journey_goes_on_in_another_span_of_the_same_request() {
    let mut sink = sink(3, usize::MAX);
    let start = JourneyStart { request_id: "A".into(), ts_monotonic_ns: 0, traceparent: None };
    sink.journey_started(&start).expect("a recorder does not fail");
    for _ in 0..4 {
        sink.journey_event(&journey(JourneyEventKind::Preempted)).expect("a recorder does not fail");
    }
    let finished = journey(JourneyEventKind::Finished(FinishStatus::Aborted));
    sink.journey_event(&finished).expect("a recorder does not fail");
    check_ended_spans(
        &sink,
        &expect![[r"
            llm_core | A | 3 events
            llm_core | A | 2 events
        "]],
    );
}

#[test]
fn journeys_that_are_open_at_the_shutdown_end_there() {
    let mut sink = sink(3, usize::MAX);
    for request_id in ["B", "A"] {
        let start = JourneyStart { request_id: request_id.into(), ts_monotonic_ns: 0, traceparent: None };
        sink.journey_started(&start).expect("a recorder does not fail");
    }
    sink.shutdown(0, 0).expect("a recorder does not fail");
    check_ended_spans(
        &sink,
        &expect![[r"
            scheduler_steps_1 | 1..0 | 0 events
            llm_core | A | 0 events
            llm_core | B | 0 events
        "]],
    );
}

#[test]
fn an_event_of_a_request_without_a_journey_leaves_no_trace() {
    let mut sink = sink(3, usize::MAX);
    let num_operations = sink.backend().operations().len();
    sink.journey_event(&journey(JourneyEventKind::Queued)).expect("a recorder does not fail");
    assert_eq!(sink.backend().operations().len(), num_operations);
}

#[test]
fn a_summary_and_its_snapshots_have_the_time_of_the_step() {
    let mut sink = sink(100, usize::MAX);
    step(&mut sink, 42, 1);
    let times: Vec<_> = sink
        .backend()
        .operations()
        .iter()
        .filter_map(|operation| match operation {
            SpanOperation::Event { unix_ns, .. } => Some(*unix_ns),
            _ => None,
        })
        .collect();
    assert_eq!(times, [1_042, 1_042]);
}
