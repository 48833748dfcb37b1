//! Step tracing: what is recorded, when, and that nothing of it reaches scheduling.

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use common::{Harness, SharedSink, args, prompt, rate, request, tracer, tracing};
use stepline_config::EngineArgs;
use stepline_scheduler::trace::{Sampler, Sha1Sampler, StepTracer, StepTracing};
use stepline_scheduler::{JourneyContext, Nanos, NewRequest};
use stepline_tracing_schema::{
    AttributeValue, BatchSummary, FinishStatus, JourneyEvent, JourneyEventKind, JourneyStart, Record, RequestPhase,
    RequestSnapshot, ScheduleKind, SinkCall, SinkError, TraceSink,
};

/// Three requests through five steps: a prefill in two chunks, decodes, an end.
fn run(trace: &mut StepTracer) -> Vec<String> {
    let mut harness = Harness::new(EngineArgs { max_num_batched_tokens: Some(16), ..args() }, 20);
    for (family, id) in [(1, "a"), (2, "b"), (3, "c")] {
        harness.add_traced(request(id, prompt(family, 9), 2), trace);
    }
    let mut lines = Vec::new();
    while harness.scheduler.has_requests() {
        let plan = harness.scheduler.schedule(harness.now(), trace);
        lines.push(harness.line(&plan));
        harness.finish_step(&plan, trace);
    }
    lines
}

fn steps_of(summaries: &[BatchSummary]) -> Vec<u64> {
    summaries.iter().map(|summary| summary.step_id).collect()
}

#[test]
fn a_tracer_without_step_tracing_records_no_step() {
    let sink = SharedSink::default();
    let mut trace = StepTracer::new(None, false, Box::new(sink.0.clone()));
    run(&mut trace);
    assert_eq!(sink.calls(), []);
}

#[test]
fn a_disabled_configuration_gives_no_step_tracing() {
    let off = EngineArgs::default().resolve().expect("defaults are valid");
    assert!(StepTracing::from_config(&off.observability, 0).is_none());
    let args = EngineArgs { step_tracing_enabled: Some(true), step_tracing_sample_rate: Some(0.25), ..args() };
    let on = args.resolve().expect("valid");
    let tracing = StepTracing::from_config(&on.observability, 0).expect("enabled");
    assert_eq!(tracing.sample_rate, rate(0.25));
    assert_eq!(tracing.rich_subsample_rate, rate(0.001));
    assert_eq!(tracing.closure_interval, 100);
}

#[test]
fn rate_zero_records_nothing() {
    let (mut trace, sink) = tracer(tracing(0.0, 1.0, 7));
    run(&mut trace);
    assert_eq!(sink.calls(), []);
}

#[test]
fn rate_one_records_one_summary_per_step_numbered_from_one() {
    let (mut trace, sink) = tracer(tracing(1.0, 0.0, 7));
    let lines = run(&mut trace);
    let expected: Vec<u64> = (1..=lines.len() as u64).collect();
    assert_eq!(steps_of(&sink.summaries()), expected);
}

#[test]
fn rich_rate_zero_gives_summaries_and_no_snapshots() {
    let (mut trace, sink) = tracer(tracing(1.0, 0.0, 7));
    run(&mut trace);
    assert!(!sink.summaries().is_empty());
    assert_eq!(sink.snapshots(), []);
}

#[test]
fn rich_rate_one_gives_one_snapshot_per_running_request_after_its_summary() {
    let (mut trace, sink) = tracer(tracing(1.0, 1.0, 7));
    run(&mut trace);
    let mut calls = sink.calls().into_iter().peekable();
    while let Some(call) = calls.next() {
        let SinkCall::BatchSummary(summary) = call else { panic!("a summary comes first, got {call:?}") };
        for _ in 0..summary.running_depth {
            let Some(SinkCall::RequestSnapshot(snapshot)) = calls.next() else { panic!("a snapshot is missing") };
            assert_eq!(snapshot.step_id, summary.step_id);
        }
        assert!(!matches!(calls.peek(), Some(SinkCall::RequestSnapshot(_))), "one snapshot too many");
    }
}

#[test]
fn a_summary_tells_the_step_before_counters_advance() {
    let (mut trace, sink) = tracer(tracing(1.0, 0.0, 7));
    run(&mut trace);
    // 16 tokens: all of a, 7 of b; c waits.
    let first = sink.summaries()[0];
    let expected = BatchSummary {
        step_id: 1,
        ts_start_ns: 0,
        ts_end_ns: 0,
        duration_us: 0,
        running_depth: 2,
        waiting_depth: 1,
        num_prefill_reqs: 2,
        num_decode_reqs: 0,
        scheduled_tokens: 16,
        prefill_tokens: 16,
        decode_tokens: 0,
        num_finished: 0,
        num_preempted: 0,
        kv_usage_gpu_ratio: 1.0 - 15.0 / 20.0,
        kv_blocks_total_gpu: 20,
        kv_blocks_free_gpu: 15,
    };
    assert_eq!(first, expected);
    // a decodes its last token, b and c prefill.
    let second = sink.summaries()[1];
    assert_eq!((second.num_prefill_reqs, second.num_decode_reqs), (2, 1));
    assert_eq!((second.prefill_tokens, second.decode_tokens), (11, 1));
}

#[test]
fn a_snapshot_has_all_attributes_with_the_types_of_the_reference() {
    let (mut trace, sink) = tracer(tracing(1.0, 1.0, 7));
    run(&mut trace);
    let snapshot = sink.snapshots().into_iter().find(|s| s.step_id == 2 && &*s.request_id == "b").expect("b runs");
    let mut attributes = Vec::new();
    snapshot.for_each_attribute(|key, value| {
        let text = match value {
            AttributeValue::Int(value) => format!("int {value}"),
            AttributeValue::Float(value) => format!("float {value}"),
            other => format!("string {}", other.as_str().unwrap_or_default()),
        };
        attributes.push(format!("{key} = {text}"));
    });
    expect_test::expect![[r"
        step.id = int 2
        request.id = string b
        request.phase = string PREFILL
        request.num_prompt_tokens = int 9
        request.num_computed_tokens = int 7
        request.num_output_tokens = int 0
        request.num_preemptions = int 0
        request.scheduled_tokens_this_step = int 2
        kv.blocks_allocated_gpu = int 3
        kv.blocks_cached_gpu = int 2
        request.effective_prompt_len = int 9"]]
    .assert_eq(&attributes.join("\n"));
}

#[test]
fn there_is_no_snapshot_without_a_summary_and_the_rich_sampler_is_not_asked() {
    let asked = Arc::new(AtomicU32::new(0));
    let counter = asked.clone();
    let steps = StepTracing {
        batch_sampler: Box::new(|step: u64, _| step == 2),
        rich_sampler: Box::new(move |_: u64, _| {
            counter.fetch_add(1, Ordering::Relaxed);
            true
        }),
        ..tracing(1.0, 1.0, 7)
    };
    let (mut trace, sink) = tracer(steps);
    run(&mut trace);
    assert_eq!(asked.load(Ordering::Relaxed), 1);
    assert_eq!(steps_of(&sink.summaries()), [2]);
    assert!(sink.snapshots().iter().all(|snapshot| snapshot.step_id == 2));
    assert!(!sink.snapshots().is_empty());
}

#[test]
fn injected_samplers_choose_exactly_their_steps() {
    let steps = StepTracing {
        batch_sampler: Box::new(|step: u64, _| [1, 3, 4].contains(&step)),
        rich_sampler: Box::new(|step: u64, _| step == 3),
        ..tracing(1.0, 1.0, 7)
    };
    let (mut trace, sink) = tracer(steps);
    run(&mut trace);
    assert_eq!(steps_of(&sink.summaries()), [1, 3, 4]);
    assert!(sink.snapshots().iter().all(|snapshot| snapshot.step_id == 3));
}

#[test]
fn the_sha1_sampler_chooses_the_steps_that_the_reference_chooses() {
    let mut trace_steps = Vec::new();
    for step in 1..=20_u64 {
        if (Sha1Sampler { seed: 42 }).sample(step, rate(0.5)) {
            trace_steps.push(step);
        }
    }
    // Python: [n for n in range(1, 21) if int.from_bytes(sha1(b"42:%d" % n).digest()[:8], "big") / 2**64 < 0.5]
    assert_eq!(trace_steps, SHA1_STEPS_OF_SEED_42);
}

const SHA1_STEPS_OF_SEED_42: [u64; 13] = [5, 6, 7, 8, 11, 12, 13, 14, 16, 17, 18, 19, 20];

#[test]
fn an_empty_schedule_gives_a_summary_and_no_snapshot() {
    let (mut trace, sink) = tracer(tracing(1.0, 1.0, 7));
    let mut harness = Harness::new(args(), 10);
    harness.step_traced(&mut trace);
    harness.step_traced(&mut trace);
    assert_eq!(steps_of(&sink.summaries()), [1, 2]);
    assert_eq!(sink.summaries()[1].running_depth, 0);
    assert_eq!(sink.snapshots(), []);
}

#[test]
fn an_interval_is_closed_only_if_a_step_of_it_was_sampled() {
    let steps = StepTracing {
        closure_interval: 10,
        batch_sampler: Box::new(|step: u64, _| step == 3 || step == 30),
        ..tracing(1.0, 0.0, 7)
    };
    let (mut trace, sink) = tracer(steps);
    let mut harness = Harness::new(args(), 10);
    for _ in 0..45 {
        harness.step_traced(&mut trace);
    }
    let closed = |call| if let SinkCall::IntervalClosed { step, .. } = call { Some(step) } else { None };
    assert_eq!(sink.calls().into_iter().filter_map(closed).collect::<Vec<_>>(), [10, 30]);
}

#[test]
fn a_clock_gives_the_duration_of_the_scheduling_call() {
    let sink = SharedSink::default();
    let trace = StepTracer::new(Some(tracing(1.0, 0.0, 7)), false, Box::new(sink.0.clone()));
    let mut trace = trace.with_clock(|| Nanos(2_500_999));
    let mut harness = Harness::new(args(), 10);
    harness.step_traced(&mut trace);
    harness.step_traced(&mut trace);
    let times: Vec<_> = sink.summaries().iter().map(|s| (s.ts_start_ns, s.ts_end_ns, s.duration_us)).collect();
    assert_eq!(times, [(0, 2_500_999, 2_500), (1_000_000, 2_500_999, 1_500)]);
}

/// Fails in the way it is told to, at its third call.
struct Failing {
    num_calls: Arc<AtomicU32>,
    panics: bool,
}

impl Failing {
    fn call(&self) -> Result<(), SinkError> {
        if self.num_calls.fetch_add(1, Ordering::Relaxed) < 2 {
            return Ok(());
        }
        assert!(!self.panics, "the sink is broken");
        Err(SinkError::new("test", "write", "the disk is full"))
    }
}

impl TraceSink for Failing {
    fn batch_summary(&mut self, _: &BatchSummary) -> Result<(), SinkError> {
        self.call()
    }

    fn request_snapshot(&mut self, _: &RequestSnapshot) -> Result<(), SinkError> {
        self.call()
    }

    fn interval_closed(&mut self, _: u64, _: u64) -> Result<(), SinkError> {
        self.call()
    }

    fn journey_started(&mut self, _: &JourneyStart) -> Result<(), SinkError> {
        self.call()
    }

    fn journey_event(&mut self, _: &JourneyEvent) -> Result<(), SinkError> {
        self.call()
    }

    fn shutdown(&mut self, _: u64, _: u64) -> Result<(), SinkError> {
        self.call()
    }
}

#[test]
fn a_failing_sink_is_switched_off_counted_and_reported_once_and_scheduling_goes_on() {
    let (mut healthy, sink) = tracer(tracing(1.0, 1.0, 7));
    let undisturbed = run(&mut healthy);
    for (panics, message) in [(false, "the disk is full"), (true, "the sink is broken")] {
        let num_calls = Arc::new(AtomicU32::new(0));
        let failing = Failing { num_calls: num_calls.clone(), panics };
        let mut trace = StepTracer::new(Some(tracing(1.0, 1.0, 7)), false, Box::new(failing));
        assert_eq!(run(&mut trace), undisturbed);
        assert_eq!(num_calls.load(Ordering::Relaxed), 3, "a sink that has failed is not called again");
        assert_eq!(trace.stats().num_lost, sink.calls().len() as u64 - 2, "two records arrived");
        let fault = trace.take_fault().expect("a fault");
        assert!(fault.message.contains(message), "{}", fault.message);
        assert_eq!(fault.panicked, panics);
        assert_eq!(trace.take_fault(), None);
    }
}

#[test]
fn a_panicking_sampler_or_clock_never_reaches_scheduling() {
    let (mut healthy, _) = tracer(tracing(1.0, 1.0, 7));
    let undisturbed = run(&mut healthy);
    let broken = StepTracing {
        batch_sampler: Box::new(|step: u64, _| {
            assert!(step < 3, "the sampler is broken");
            true
        }),
        ..tracing(1.0, 0.0, 7)
    };
    let (mut with_sampler, sink) = tracer(broken);
    assert_eq!(run(&mut with_sampler), undisturbed);
    assert_eq!(steps_of(&sink.summaries()), [1, 2]);
    assert!(with_sampler.take_fault().expect("a fault").message.contains("the sampler is broken"));

    let (trace, _) = tracer(tracing(1.0, 0.0, 7));
    let mut with_clock = trace.with_clock(|| panic!("the clock is broken"));
    assert_eq!(run(&mut with_clock), undisturbed);
    assert!(with_clock.take_fault().expect("a fault").message.contains("the clock is broken"));
}

#[test]
fn a_traced_request_tells_its_journey_and_others_do_not() {
    let sink = SharedSink::default();
    let mut trace = StepTracer::new(None, true, Box::new(sink.0.clone()));
    let mut harness = Harness::new(args(), 20);
    let journey = Some(JourneyContext::default());
    harness.add_traced(NewRequest { journey, ..request("a", prompt(1, 9), 2) }, &mut trace);
    harness.add_traced(request("b", prompt(2, 9), 2), &mut trace);
    while harness.scheduler.has_requests() {
        harness.step_traced(&mut trace);
    }
    let events: Vec<_> = sink
        .calls()
        .into_iter()
        .filter_map(|call| match call {
            SinkCall::JourneyEvent(event) => {
                assert_eq!(&*event.request_id, "a");
                Some((event.kind, event.scheduler_step, event.phase, event.prefill_done_tokens))
            }
            _ => None,
        })
        .collect();
    assert_eq!(
        events,
        [
            (JourneyEventKind::Queued, 0, RequestPhase::Waiting, 0),
            (JourneyEventKind::Scheduled(ScheduleKind::First), 1, RequestPhase::Prefill, 0),
            (JourneyEventKind::FirstToken, 1, RequestPhase::Decode, 9),
            (JourneyEventKind::Finished(FinishStatus::Length), 2, RequestPhase::Decode, 9),
        ]
    );
}
