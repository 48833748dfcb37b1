//! Random runs: every rule holds after every call, a judge that sees outputs only is content, and tracing changes
//! nothing.

mod common;

use std::collections::VecDeque;

use common::{prompt, rate, tracer, tracing};
use proptest::prelude::*;
use stepline_config::{EngineArgs, SchedulingPolicy};
use stepline_scheduler::testing::{OutputChecker, OutputLimits};
use stepline_scheduler::trace::{HashSampler, Sampler, SamplingStage, StepTrace};
use stepline_scheduler::{
    ExternalFinish, FinishReason, LoraRequest, ModelRunnerOutput, Nanos, NewRequest, RequestStatus, SamplingParams,
    Scheduler, SchedulerOutput, UpdateError,
};

#[derive(Clone, Debug)]
struct Settings {
    block_size: u32,
    num_usable_blocks: u32,
    max_num_seqs: u32,
    max_num_batched_tokens: u32,
    long_prefill_token_threshold: u32,
    /// Of `max_num_seqs` and `max_num_batched_tokens`, what may be active and scheduled.
    num_idle_seats: u32,
    num_unscheduled_tokens: u32,
    max_loras: Option<u32>,
    flags: [bool; 5],
    watermark: f64,
}

impl Settings {
    fn args(&self) -> EngineArgs {
        let [priority, caching, chunked, reserve, adaptive] = self.flags;
        EngineArgs {
            max_model_len: Some(48),
            block_size: Some(self.block_size),
            enable_prefix_caching: Some(caching),
            max_num_seqs: Some(self.max_num_seqs),
            max_num_active_seqs: Some(self.max_num_active_seqs()),
            max_num_batched_tokens: Some(self.max_num_batched_tokens()),
            max_num_scheduled_tokens: Some(self.max_num_scheduled_tokens()),
            enable_lora: Some(self.max_loras.is_some()),
            max_loras: self.max_loras,
            long_prefill_token_threshold: Some(self.long_prefill_token_threshold),
            long_prefill_token_threshold_adaptive: Some(adaptive),
            enable_chunked_prefill: Some(chunked),
            scheduling_policy: Some(if priority { SchedulingPolicy::Priority } else { SchedulingPolicy::Fcfs }),
            scheduler_reserve_full_isl: Some(reserve),
            watermark: Some(self.watermark),
            ..EngineArgs::default()
        }
    }

    /// Without chunked prefill a step must take a whole prompt.
    fn max_num_batched_tokens(&self) -> u32 {
        if self.flags[2] { self.max_num_batched_tokens } else { 48 }
    }

    fn max_num_scheduled_tokens(&self) -> u32 {
        self.max_num_batched_tokens() - if self.flags[2] { self.num_unscheduled_tokens } else { 0 }
    }

    fn max_num_active_seqs(&self) -> u32 {
        self.max_num_seqs.saturating_sub(self.num_idle_seats).max(1)
    }

    fn limits(&self) -> OutputLimits {
        OutputLimits {
            max_tokens_per_step: self.max_num_scheduled_tokens(),
            max_num_seqs: self.max_num_active_seqs(),
            block_size: self.block_size,
            num_gpu_blocks: self.num_usable_blocks + 1,
        }
    }
}

fn settings() -> impl Strategy<Value = Settings> {
    // 48 slots at least, so that every request fits an empty pool.
    let sizes = prop::sample::select(vec![(1_u32, 48_u32), (4, 12), (16, 3), (5, 10)]);
    let counts = (0..12_u32, 1..6_u32, 6..40_u32, 0..12_u32, 0..3_u32, 0..5_u32);
    let loras = prop::sample::select(vec![None, None, Some(1), Some(2)]);
    let watermarks = prop::sample::select(vec![0.0, 0.1, 0.4]);
    (sizes, counts, loras, any::<[bool; 5]>(), watermarks).prop_map(
        |((block_size, least), (more, seqs, batched, threshold, idle, unscheduled), max_loras, flags, watermark)| {
            Settings {
                block_size,
                num_usable_blocks: least + more,
                max_num_seqs: seqs,
                max_num_batched_tokens: batched,
                long_prefill_token_threshold: threshold,
                num_idle_seats: idle,
                num_unscheduled_tokens: unscheduled,
                max_loras,
                flags,
                watermark,
            }
        },
    )
}

#[derive(Clone, Debug)]
enum Op {
    Add {
        family: u32,
        prompt_len: u32,
        max_tokens: u32,
        priority: i32,
        adapter: u32,
        salt: bool,
        skip_cache: bool,
    },
    /// Plans a step. Up to three are in flight; what is beyond is processed, oldest first.
    Plan,
    /// Processes the oldest step in flight.
    Process,
    /// Plans a step and processes all that are in flight.
    Step,
    Abort(prop::sample::Index),
    Reset {
        running: bool,
    },
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        5 => (0..3_u32, 1..40_u32, 1..12_u32, -1..2_i32, 0..4_u32, any::<bool>(), any::<bool>()).prop_map(
            |(family, prompt_len, max_tokens, priority, adapter, salt, skip_cache)| {
                Op::Add { family, prompt_len, max_tokens, priority, adapter, salt, skip_cache }
            }
        ),
        4 => Just(Op::Step),
        4 => Just(Op::Plan),
        2 => Just(Op::Process),
        1 => any::<prop::sample::Index>().prop_map(Op::Abort),
        1 => any::<bool>().prop_map(|running| Op::Reset { running }),
    ]
}

/// One run and what became of its requests.
struct Run {
    scheduler: Scheduler,
    judge: OutputChecker,
    ids: Vec<String>,
    finished: Vec<String>,
    plans: Vec<String>,
    in_flight: VecDeque<SchedulerOutput>,
}

impl Run {
    fn new(settings: &Settings) -> Self {
        let config = settings.args().resolve().expect("a valid configuration");
        Self {
            scheduler: Scheduler::new(&config, settings.num_usable_blocks + 1).expect("a valid pool"),
            judge: OutputChecker::new(settings.limits()),
            ids: Vec::new(),
            finished: Vec::new(),
            plans: Vec::new(),
            in_flight: VecDeque::new(),
        }
    }

    fn apply(&mut self, op: &Op, trace: &mut impl StepTrace) {
        let now = Nanos(self.scheduler.step_id());
        match op {
            Op::Add { family, prompt_len, max_tokens, priority, adapter, salt, skip_cache } => {
                let id = format!("r{}", self.ids.len());
                let sampling = SamplingParams { max_tokens: Some(*max_tokens), ..SamplingParams::default() };
                let new = NewRequest {
                    priority: *priority,
                    // Requests of equal priority and arrival can preempt each other for ever, as in vLLM.
                    arrival_time: Some(Nanos(self.ids.len() as u64)),
                    lora: (*adapter > 0).then(|| LoraRequest {
                        name: format!("adapter-{adapter}").into(),
                        id: *adapter,
                        path: "/adapters".into(),
                    }),
                    cache_salt: salt.then(|| "tenant".into()),
                    skip_reading_prefix_cache: *skip_cache,
                    ..NewRequest::new(id.as_str(), prompt(*family, *prompt_len), sampling)
                };
                self.scheduler.add_request(new, now, trace).expect("shorter than max_model_len");
                self.ids.push(id);
            }
            Op::Plan => {
                self.plan(trace);
                while self.in_flight.len() > 3 {
                    self.process(trace);
                }
            }
            Op::Process => self.process(trace),
            Op::Step => {
                self.plan(trace);
                while !self.in_flight.is_empty() {
                    self.process(trace);
                }
            }
            Op::Abort(index) => self.abort(*index, trace),
            Op::Reset { running } => {
                let idle = self.scheduler.num_running() == 0;
                let done = self.scheduler.reset_prefix_cache(*running, now, trace);
                assert_eq!(done, idle || *running);
            }
        }
        self.scheduler.check().expect("every rule holds");
    }

    fn plan(&mut self, trace: &mut impl StepTrace) {
        let plan = self.scheduler.schedule(Nanos(self.scheduler.step_id()), trace);
        self.judge.see(&plan).expect("the judge is content");
        self.plans.push(format!("{plan:?}"));
        self.in_flight.push_back(plan);
    }

    /// Samples tokens that depend on the request and its position only.
    fn process(&mut self, trace: &mut impl StepTrace) {
        let Some(plan) = self.in_flight.pop_front() else { return };
        let mut result = ModelRunnerOutput::default();
        for scheduled in &plan.num_scheduled_tokens {
            let token = scheduled.request.slot.0 % 3 + 7_000;
            result.push(if scheduled.samples { std::slice::from_ref(&token) } else { &[] });
        }
        let now = Nanos(self.scheduler.step_id());
        let outputs = self.scheduler.update_from_output(&plan, &result, now, trace).expect("one list per request");
        for output in &outputs.outputs {
            if let Some(reason) = output.finish_reason {
                assert_eq!(reason, FinishReason::Length);
                self.finished.push(self.scheduler.request_id(output.request).expect("still readable").to_string());
            }
        }
    }

    fn abort(&mut self, index: prop::sample::Index, trace: &mut impl StepTrace) {
        if self.ids.is_empty() {
            return;
        }
        let id = self.ids[index.index(self.ids.len())].clone();
        let ended = self.scheduler.finish_requests([id.as_str()], ExternalFinish::Aborted, Nanos(0), trace);
        self.finished.extend(ended.iter().map(ToString::to_string));
    }

    /// Steps until all requests have ended.
    fn drain(&mut self, trace: &mut impl StepTrace) {
        for _ in 0..5_000 {
            if !self.scheduler.has_requests() {
                return;
            }
            self.apply(&Op::Step, trace);
        }
        panic!(
            "requests do not end: {:?}",
            self.scheduler.running().chain(self.scheduler.waiting()).collect::<Vec<_>>()
        );
    }
}

fn run(settings: &Settings, ops: &[Op], trace: &mut impl StepTrace) -> Run {
    let mut run = Run::new(settings);
    for op in ops {
        run.apply(op, trace);
    }
    run.drain(trace);
    run
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, ..ProptestConfig::default() })]

    #[test]
    fn every_request_ends_once_and_every_block_comes_back(settings in settings(), ops in prop::collection::vec(op(), 1..60)) {
        let mut run = run(&settings, &ops, &mut ());
        prop_assert_eq!(run.scheduler.kv_cache().num_free_blocks(), settings.num_usable_blocks);
        run.finished.sort();
        run.ids.sort();
        prop_assert_eq!(run.finished, run.ids);
    }

    #[test]
    fn the_same_calls_give_the_same_run_and_tracing_changes_nothing(
        settings in settings(),
        ops in prop::collection::vec(op(), 1..40),
        batch in 0.0..=1.0_f64,
        rich in 0.0..=1.0_f64,
    ) {
        let untraced = run(&settings, &ops, &mut ());
        let (mut trace, sink) = tracer(tracing(batch, rich, 3));
        let traced = run(&settings, &ops, &mut trace);
        prop_assert_eq!(untraced.plans, traced.plans);
        prop_assert_eq!(untraced.finished, traced.finished);
        // Snapshots belong to sampled steps.
        let summaries = sink.summaries();
        prop_assert!(sink.snapshots().iter().all(|s| summaries.iter().any(|summary| summary.step_id == s.step_id)));
    }

    #[test]
    fn a_higher_rate_samples_a_superset_and_rates_zero_and_one_are_exact(
        seed: u64,
        low in 0.0..=1.0_f64,
        high in 0.0..=1.0_f64,
        steps in prop::collection::vec(any::<u64>(), 1..50),
    ) {
        let (low, high) = (low.min(high), low.max(high));
        for stage in [SamplingStage::BatchSummary, SamplingStage::RequestSnapshots] {
            let mut sampler = HashSampler::new(seed, stage);
            for step in &steps {
                prop_assert!(!sampler.sample(*step, rate(low)) || sampler.sample(*step, rate(high)));
                prop_assert!(!sampler.sample(*step, rate(0.0)));
                prop_assert!(sampler.sample(*step, rate(1.0)));
            }
        }
    }
}

/// 10^5 steps: the observed share lies within 5 standard deviations of the rate, and so does the share of steps that
/// both stages choose, as it must if the stages are independent.
#[test]
fn observed_frequencies_are_within_the_binomial_bound() {
    const NUM_STEPS: u32 = 100_000;
    for (seed, p) in [(0, 0.5), (1, 0.01), (2, 0.001), (3, 0.9), (4, 0.25)] {
        let mut batch = HashSampler::new(seed, SamplingStage::BatchSummary);
        let mut rich = HashSampler::new(seed, SamplingStage::RequestSnapshots);
        let (mut num_batch, mut num_rich, mut num_both) = (0_u32, 0_u32, 0_u32);
        for step in 1..=u64::from(NUM_STEPS) {
            let (in_batch, in_rich) = (batch.sample(step, rate(p)), rich.sample(step, rate(p)));
            num_batch += u32::from(in_batch);
            num_rich += u32::from(in_rich);
            num_both += u32::from(in_batch && in_rich);
        }
        for (observed, expected) in [(num_batch, p), (num_rich, p), (num_both, p * p)] {
            let n = f64::from(NUM_STEPS);
            let deviation = (f64::from(observed) - n * expected).abs();
            let bound = 5.0 * (n * expected * (1.0 - expected)).sqrt() + 1.0;
            assert!(deviation <= bound, "seed {seed}, rate {expected}: {observed} of {NUM_STEPS}");
        }
    }
}

#[test]
fn a_finished_handle_is_readable_until_the_next_step_and_then_finds_nothing() {
    let config = EngineArgs { max_model_len: Some(48), ..EngineArgs::default() }.resolve().expect("valid");
    let mut scheduler = Scheduler::new(&config, 10).expect("valid");
    let sampling = SamplingParams { max_tokens: Some(1), ..SamplingParams::default() };
    let handle =
        scheduler.add_request(NewRequest::new("a", [1, 2], sampling.clone()), Nanos(0), &mut ()).expect("added");
    let plan = scheduler.schedule(Nanos(0), &mut ());
    let mut result = ModelRunnerOutput::default();
    result.push(&[3]);
    scheduler.update_from_output(&plan, &result, Nanos(0), &mut ()).expect("accepted");
    assert_eq!(scheduler.status(handle), Some(RequestStatus::FinishedLengthCapped));
    assert_eq!(scheduler.request_id(handle).map(stepline_scheduler::RequestId::as_str), Some("a"));
    scheduler.schedule(Nanos(0), &mut ());
    let next = scheduler.add_request(NewRequest::new("b", [1, 2], sampling), Nanos(0), &mut ()).expect("added");
    assert_eq!(next.slot, handle.slot, "the slot is reused");
    assert_eq!(scheduler.status(handle), None);
}

#[test]
fn a_step_is_processed_once_and_in_order() {
    let config = EngineArgs { max_model_len: Some(48), ..EngineArgs::default() }.resolve().expect("valid");
    let mut scheduler = Scheduler::new(&config, 10).expect("valid");
    let sampling = SamplingParams { max_tokens: Some(4), ..SamplingParams::default() };
    scheduler.add_request(NewRequest::new("a", [1, 2], sampling), Nanos(0), &mut ()).expect("added");
    let first = scheduler.schedule(Nanos(0), &mut ());
    let second = scheduler.schedule(Nanos(0), &mut ());
    let empty = ModelRunnerOutput::default();
    let error = scheduler.update_from_output(&second, &empty, Nanos(0), &mut ()).expect_err("the first comes first");
    assert_eq!(error, UpdateError::WrongStep { expected: 1, got: 2 });
    let error = scheduler.update_from_output(&first, &empty, Nanos(0), &mut ()).expect_err("a list is missing");
    assert_eq!(error, UpdateError::WrongLength { step: 1, expected: 1, got: 0 });
    let mut result = ModelRunnerOutput::default();
    result.push(&[3]);
    scheduler.update_from_output(&first, &result, Nanos(0), &mut ()).expect("accepted");
    scheduler.update_from_output(&first, &result, Nanos(0), &mut ()).expect_err("once is enough");
    scheduler.update_from_output(&second, &empty, Nanos(0), &mut ()).expect("accepted");
}
