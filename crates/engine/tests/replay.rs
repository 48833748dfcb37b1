//! Replays that can be followed by hand: every step takes a millisecond unless a test says otherwise.

use std::collections::BTreeMap;
use std::io::Cursor;
use std::sync::{Arc, Mutex, MutexGuard};

use stepline_config::{EngineArgs, EngineConfig, Rate, SchedulingPolicy};
use stepline_engine::{
    Engine, MemoryLimit, RejectReason, Replay, ReplayError, ReplayOptions, ReplayReport, SimulatedExecutor,
    StepTimeModel,
};
use stepline_scheduler::trace::{StepTracer, StepTracing};
use stepline_scheduler::{NewRequest, SamplingParams};
use stepline_tracing_schema::{BatchSummary, JourneyEvent, JourneyStart, RequestSnapshot, SinkError, TraceSink};
use stepline_workload::{EMBEDDED_SAMPLE, WorkloadReader};

const ONE_MS_A_STEP: StepTimeModel = StepTimeModel {
    base_us: 1000.0,
    prefill_token_us: 0.0,
    decode_token_us: 0.0,
    kv_token_us: 0.0,
    attention_pair_us: 0.0,
};

fn config() -> EngineConfig {
    let args = EngineArgs { max_model_len: Some(64), block_size: Some(4), ..EngineArgs::default() };
    args.resolve().expect("a valid configuration")
}

fn executor(num_usable_blocks: u32, seed: u64) -> SimulatedExecutor {
    SimulatedExecutor::new(ONE_MS_A_STEP, num_usable_blocks + 1, seed).expect("valid times")
}

fn replay(config: &EngineConfig, num_usable_blocks: u32, lines: &str) -> Result<ReplayReport, ReplayError> {
    let workload = WorkloadReader::from_reader("test", Cursor::new(lines.to_owned())).expect("a workload");
    let options = ReplayOptions { seed: 1, ..ReplayOptions::default() };
    let executor = executor(num_usable_blocks, options.seed);
    Replay::new(config, executor, workload, None, options).expect("a replay").run(|_| {})
}

#[track_caller]
fn report(config: &EngineConfig, num_usable_blocks: u32, lines: &str) -> ReplayReport {
    let report = replay(config, num_usable_blocks, lines).expect("the replay ends");
    assert_eq!(report.requests.total, report.requests.finished + report.requests.rejected);
    report
}

#[track_caller]
fn assert_near(got: f64, expected: f64) {
    assert!((got - expected).abs() < 1e-9, "got {got}, expected {expected}");
}

#[test]
fn times_of_one_request_are_those_of_its_steps() {
    let report = report(&config(), 100, r#"{"arrival_s": 0.5, "prompt_len": 10, "output_len": 3}"#);
    // Idle until 500 ms, then three steps of a millisecond; an empty one reports the end.
    assert_near(report.duration_s, 0.503);
    assert_eq!(report.steps, 4);
    assert_near(report.ttft_ms.mean, 1.0);
    assert_eq!((report.itl_ms.count, report.tpot_ms.count), (2, 1));
    assert_near(report.itl_ms.mean, 1.0);
    assert_near(report.tpot_ms.mean, 1.0);
    assert_near(report.e2e_ms.mean, 3.0);
    assert_near(report.queue_ms.mean, 0.0);
    assert_eq!((report.tokens.prompt, report.tokens.output), (10, 3));
    assert_near(report.tokens.output_per_s.expect("time has passed"), 3.0 / 0.503);
}

#[test]
fn who_arrives_during_a_step_is_taken_in_after_it() {
    let report = report(
        &config(),
        100,
        "{\"arrival_ns\": 0, \"prompt_len\": 4, \"output_len\": 3}\n\
         {\"arrival_ns\": 400000, \"prompt_len\": 4, \"output_len\": 1}\n",
    );
    // Arrives at 0.4 ms, queued and scheduled at 1 ms, first token at 2 ms: 1.6 ms to the first token, no queue time.
    assert_near(report.ttft_ms.max, 1.6);
    assert_near(report.queue_ms.max, 0.0);
    // One token has no time per output token.
    assert_near(report.tpot_ms.p50, 0.5);
}

#[test]
fn who_finds_no_seat_waits_in_the_queue() {
    let mut config = config();
    config.scheduler.max_num_seqs = 1;
    config.scheduler.max_num_active_seqs = 1;
    let line = "{\"arrival_s\": 0, \"prompt_len\": 4, \"output_len\": 2}\n";
    let report = report(&config, 100, &line.repeat(3));
    // Served one after the other, two steps each; the end of one is known when the next step is planned.
    assert_near(report.queue_ms.p50, 2.0);
    assert_near(report.queue_ms.max, 4.0);
    assert_near(report.e2e_ms.max, 6.0);
}

#[test]
fn equal_prompts_hit_the_prefix_cache() {
    let line = |arrival: u32| {
        format!("{{\"arrival_s\": {arrival}, \"prompt_token_ids\": [1,2,3,4,5,6,7,8,9,10], \"output_len\": 1}}\n")
    };
    let report = report(&config(), 100, &(line(0) + &line(1)));
    let prefix = report.prefix_cache;
    assert_eq!((prefix.queries, prefix.hits), (20, 8));
    assert_near(prefix.hit_rate, 0.4);
}

#[test]
fn salts_and_adapters_keep_prefixes_apart() {
    let line = |extra: &str| {
        format!("{{\"arrival_s\": 0, \"prompt_token_ids\": [1,2,3,4,5,6,7,8,9], \"output_len\": 1{extra}}}\n")
    };
    let hits = |lines: String| {
        let mut config = config();
        config.scheduler.max_num_seqs = 1;
        config.scheduler.max_num_active_seqs = 1;
        report(&config, 100, &lines).prefix_cache.hits
    };
    assert_eq!(hits(line("") + &line("")), 8);
    assert_eq!(hits(line(", \"cache_salt\": \"a\"") + &line(", \"cache_salt\": \"b\"")), 0);
    assert_eq!(hits(line(", \"lora\": \"a\"") + &line(", \"lora\": \"b\"") + &line(", \"lora\": \"a\"")), 8);
}

#[test]
fn a_short_cache_preempts_and_everybody_ends() {
    let line = "{\"arrival_s\": 0, \"prompt_len\": 8, \"output_len\": 12}\n";
    let report = report(&config(), 6, &line.repeat(2));
    assert!(report.preemptions > 0);
    assert_eq!((report.requests.finished, report.tokens.output), (2, 24));
    assert_near(report.kv_cache.peak_usage, 1.0);
    assert_eq!(report.kv_cache.num_blocks, 6);
}

#[test]
fn requests_that_cannot_run_are_rejected_and_do_not_block_the_rest() {
    let report = report(
        &config(),
        5,
        "{\"arrival_s\": 0, \"id\": \"long\", \"prompt_len\": 64, \"output_len\": 1}\n\
         {\"arrival_s\": 0, \"id\": \"large\", \"prompt_len\": 10, \"output_len\": 12}\n\
         {\"arrival_s\": 0, \"id\": \"fits\", \"prompt_len\": 10, \"output_len\": 11}\n\
         {\"arrival_s\": 0, \"id\": \"fits\", \"prompt_len\": 3, \"output_len\": 1}\n",
    );
    let rejected: Vec<_> = report.rejections.iter().map(|r| (r.reason, r.count, r.first.as_str())).collect();
    assert_eq!(
        rejected,
        [
            (
                RejectReason::PromptTooLong,
                1,
                "request `long`: a prompt of 64 tokens leaves no room in max_model_len 64; shorten the prompt or raise \
             max_model_len"
            ),
            (
                RejectReason::ExceedsKvCache,
                1,
                "request `large`: its 22 tokens need 6 KV cache blocks of 4, the cache has 5; raise \
             num_gpu_blocks_override or lower max_model_len"
            ),
            (
                RejectReason::DuplicateId,
                1,
                "request `fits`: a request with this id has not ended yet; ids must be unique"
            ),
        ]
    );
    assert_eq!(report.requests.finished, 1);
}

#[test]
fn the_arrival_of_a_rejected_request_does_not_prolong_the_replay() {
    let served = r#"{"arrival_s": 0, "prompt_len": 10, "output_len": 4}"#;
    let late = r#"{"arrival_s": 1000, "prompt_len": 64, "output_len": 1}"#;
    let report = report(&config(), 100, &format!("{served}\n{late}\n"));
    assert_eq!((report.requests.finished, report.requests.rejected), (1, 1));
    assert_near(report.duration_s, 0.004);
    assert_near(report.tokens.output_per_s.expect("time has passed"), 1000.0);
}

#[test]
fn a_replay_that_took_no_time_has_no_rates() {
    let report = report(&config(), 100, r#"{"arrival_s": 3, "prompt_len": 64, "output_len": 1}"#);
    assert_near(report.duration_s, 0.0);
    assert_eq!((report.tokens.prompt_per_s, report.tokens.output_per_s), (None, None));
}

#[test]
fn requests_that_pile_up_end_the_replay_before_memory_does() {
    let line = "{\"arrival_s\": 0, \"prompt_len\": 10, \"output_len\": 2}\n";
    let run = |num_requests: usize| {
        let workload = WorkloadReader::from_reader("test", Cursor::new(line.repeat(num_requests))).expect("a workload");
        // 40 bytes of tokens for each, and 16 for each full block of 4: 320 for four of them.
        let options = ReplayOptions { max_request_memory_bytes: 320, ..ReplayOptions::default() };
        Replay::new(&config(), executor(100, 0), workload, None, options).expect("a replay").run(|_| {})
    };
    assert_eq!(run(4).expect("four are within the limit").requests.finished, 4);
    let error = run(5).expect_err("the fifth is over the limit");
    let ReplayError::OutOfMemory(fault) = &error else { panic!("{error}") };
    assert_eq!((fault.id.as_str(), fault.num_requests, fault.num_bytes), ("req-4", 4, 392));
    assert_eq!(fault.limit, MemoryLimit::Option(320));
}

#[test]
fn requests_that_ended_take_no_memory() {
    let line = |arrival: u32| format!("{{\"arrival_s\": {arrival}, \"prompt_len\": 10, \"output_len\": 2}}\n");
    let workload = WorkloadReader::from_reader("test", Cursor::new((0..9).map(line).collect::<String>()));
    let options = ReplayOptions { max_request_memory_bytes: 80, ..ReplayOptions::default() };
    let mut replay =
        Replay::new(&config(), executor(100, 0), workload.expect("a workload"), None, options).expect("a replay");
    assert_eq!(replay.run(|_| {}).expect("one at a time is within the limit").requests.finished, 9);
}

#[test]
fn an_interrupted_replay_reports_what_it_has() {
    let line = "{\"arrival_s\": 0, \"prompt_len\": 10, \"output_len\": 2}\n";
    let later = "{\"arrival_s\": 9, \"prompt_len\": 10, \"output_len\": 9}\n";
    let workload = WorkloadReader::from_reader("test", Cursor::new(line.to_owned() + &later.repeat(2)));
    let counter = Counter::default();
    let trace = StepTracer::new(None, true, Box::new(counter.clone()));
    let mut replay =
        Replay::new(&config(), executor(100, 0), workload.expect("a workload"), None, ReplayOptions::default())
            .expect("a replay");
    replay.set_trace(trace);
    let num_asked = std::cell::Cell::new(0);
    // Each step is preceded by two questions or more; 14 of them end in the midst of the later requests.
    let is_interrupted = || num_asked.replace(num_asked.get() + 1) >= 14;
    let report = replay.run_until(is_interrupted, |_| {}).expect("an interruption is no fault");
    assert!(report.interrupted);
    let requests = report.requests;
    assert_eq!((requests.total, requests.finished, requests.unfinished), (3, 1, 2));
    assert_eq!(counter.counts().shut_down_at_step, Some(report.steps));
}

#[test]
fn an_output_that_exceeds_the_model_length_is_clipped() {
    let report = report(&config(), 100, r#"{"arrival_s": 0, "prompt_len": 60, "output_len": 10}"#);
    assert_eq!((report.requests.finished, report.requests.clipped), (1, 1));
    assert_eq!(report.tokens.output, 4);
}

#[test]
fn a_request_that_no_step_can_admit_ends_the_replay() {
    let mut config = config();
    config.scheduler.enable_chunked_prefill = false;
    config.scheduler.max_num_scheduled_tokens = 8;
    let lines = "{\"arrival_s\": 0, \"id\": \"ok\", \"prompt_len\": 8, \"output_len\": 1}\n\
                 {\"arrival_s\": 0, \"id\": \"stuck\", \"prompt_len\": 9, \"output_len\": 1}\n\
                 {\"arrival_s\": 9, \"id\": \"behind\", \"prompt_len\": 8, \"output_len\": 1}\n";
    let error = replay(&config, 100, lines).expect_err("the second request can never be scheduled");
    assert!(matches!(&error, ReplayError::NoProgress { id, num_waiting: 1, .. } if id.as_str() == "stuck"), "{error}");

    // Under the priority policy somebody may still overtake, and is served before the replay gives up.
    config.scheduler.policy = SchedulingPolicy::Priority;
    let overtaker = lines.replace("\"behind\"", "\"urgent\", \"priority\": -1");
    let workload = WorkloadReader::from_reader("test", Cursor::new(overtaker)).expect("a workload");
    let mut replay =
        Replay::new(&config, executor(100, 0), workload, None, ReplayOptions::default()).expect("a replay");
    let error = replay.run(|_| {}).expect_err("the second request can never be scheduled");
    assert!(
        matches!(&error, ReplayError::NoProgress { id, step, .. } if id.as_str() == "stuck" && *step > 2),
        "{error}"
    );
}

#[test]
fn requests_of_one_instant_do_not_preempt_each_other_for_ever() {
    let mut config = config();
    config.scheduler.policy = SchedulingPolicy::Priority;
    config.scheduler.scheduler_reserve_full_isl = false;
    config.scheduler.long_prefill_token_threshold = 1;
    let report = report(
        &config,
        11,
        "{\"arrival_s\": 0, \"prompt_len\": 1, \"output_len\": 37}\n\
         {\"arrival_s\": 0, \"prompt_len\": 1, \"output_len\": 41}\n",
    );
    assert!(report.preemptions > 0);
    assert_eq!(report.requests.finished, 2);
}

#[test]
fn a_broken_workload_ends_the_replay() {
    let error = replay(
        &config(),
        100,
        "{\"arrival_s\": 0, \"prompt_len\": 1, \"output_len\": 1}\n{\"arrival_s\": 1, \"prompt_len\": 0, \"output_len\": 1}",
    )
    .expect_err("the second row is broken");
    assert!(matches!(error, ReplayError::Workload(_)), "{error}");
}

fn sample(config: &EngineConfig, trace: Option<StepTracer>, seed: u64) -> ReplayReport {
    let workload = EMBEDDED_SAMPLE.reader().expect("the sample is readable");
    let options = ReplayOptions { seed, max_requests: Some(40), ..ReplayOptions::default() };
    Replay::new(config, executor(2_000, seed), workload, trace, options)
        .expect("a replay")
        .run(|_| {})
        .expect("it ends")
}

fn wide_config() -> EngineConfig {
    EngineArgs { max_model_len: Some(8192), ..EngineArgs::default() }.resolve().expect("a valid configuration")
}

#[test]
fn the_same_seed_gives_the_same_report_and_reading_stops_where_asked() {
    let config = wide_config();
    let first = sample(&config, None, 3);
    assert_eq!(first, sample(&config, None, 3));
    assert_eq!((first.requests.total, first.requests.finished), (40, 40));
}

/// Counts what it is given.
#[derive(Clone, Default)]
struct Counter(Arc<Mutex<Counts>>);

#[derive(Default)]
struct Counts {
    summaries: u64,
    snapshots: u64,
    running_depths: u64,
    journeys: Vec<String>,
    shut_down_at_step: Option<u64>,
}

impl Counter {
    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.0.lock().expect("no test panics while it counts")
    }
}

impl TraceSink for Counter {
    fn batch_summary(&mut self, record: &BatchSummary) -> Result<(), SinkError> {
        let mut counts = self.counts();
        counts.summaries += 1;
        counts.running_depths += u64::from(record.running_depth);
        Ok(())
    }
    fn request_snapshot(&mut self, _: &RequestSnapshot) -> Result<(), SinkError> {
        self.counts().snapshots += 1;
        Ok(())
    }
    fn interval_closed(&mut self, _: u64, _: u64) -> Result<(), SinkError> {
        Ok(())
    }
    fn journey_started(&mut self, start: &JourneyStart) -> Result<(), SinkError> {
        self.counts().journeys.push(start.request_id.to_string());
        Ok(())
    }
    fn journey_event(&mut self, _: &JourneyEvent) -> Result<(), SinkError> {
        Ok(())
    }
    fn shutdown(&mut self, last_step: u64, _: u64) -> Result<(), SinkError> {
        self.counts().shut_down_at_step = Some(last_step);
        Ok(())
    }
}

#[test]
fn tracing_everything_changes_nothing_and_loses_nothing() {
    let mut config = wide_config();
    let untraced = sample(&config, None, 3);
    config.observability.step_tracing_enabled = true;
    config.observability.step_tracing_sample_rate = Rate::ONE;
    config.observability.step_tracing_rich_subsample_rate = Rate::ONE;
    let counter = Counter::default();
    let steps = StepTracing::from_config(&config.observability, 3);
    let traced = sample(&config, Some(StepTracer::new(steps, false, Box::new(counter.clone()))), 3);
    assert_eq!(traced, untraced);
    let counts = counter.counts();
    assert_eq!(counts.summaries, traced.steps);
    assert_eq!(counts.snapshots, counts.running_depths);
    assert_eq!(counts.shut_down_at_step, Some(traced.steps));
}

#[test]
fn a_higher_journey_rate_traces_a_superset() {
    let journeys = |rate: f64| {
        let mut config = wide_config();
        config.observability.enable_journey_tracing = true;
        config.observability.journey_tracing_sample_rate = Rate::new(rate).expect("a rate");
        let counter = Counter::default();
        sample(&config, Some(StepTracer::new(None, true, Box::new(counter.clone()))), 3);
        std::mem::take(&mut counter.counts().journeys)
    };
    let (none, some, most, all) = (journeys(0.0), journeys(0.3), journeys(0.7), journeys(1.0));
    assert_eq!((none.len(), all.len()), (0, 40));
    assert!(some.iter().all(|id| most.contains(id)));
    assert!(!some.is_empty() && some.len() < most.len() && most.len() < 40, "{} {}", some.len(), most.len());
}

/// Token ids by request, with a cache of so many blocks.
fn generated(num_usable_blocks: u32) -> (BTreeMap<String, Vec<u32>>, usize) {
    let mut engine = Engine::new(&config(), executor(num_usable_blocks, 9), None).expect("an engine");
    for id in ["a", "b", "c"] {
        let sampling = SamplingParams { max_tokens: Some(12), ..SamplingParams::default() };
        engine.add_request(NewRequest::new(id, vec![u32::from(id.as_bytes()[0]); 8], sampling)).expect("a request");
    }
    let mut tokens: BTreeMap<String, Vec<u32>> = BTreeMap::new();
    let mut preemptions = 0;
    while engine.scheduler().has_requests() {
        let outcome = engine.step().expect("a step");
        preemptions += outcome.plan.preempted_req_ids.len();
        let new: Vec<_> = outcome
            .outputs
            .outputs
            .iter()
            .map(|output| (output.request, outcome.outputs.new_token_ids(output).to_vec()))
            .collect();
        for (handle, new_tokens) in new {
            let id = engine.scheduler().request_id(handle).expect("known until the next step").to_string();
            tokens.entry(id).or_default().extend(new_tokens);
        }
    }
    (tokens, preemptions)
}

#[test]
fn preemption_does_not_change_what_is_generated() {
    let (roomy, none) = generated(100);
    let (tight, some) = generated(7);
    assert_eq!(none, 0);
    assert!(some > 0);
    assert_eq!(roomy, tight);
    assert!(roomy.values().all(|tokens| tokens.len() == 12));
    assert_ne!(roomy["a"], roomy["b"]);
}
