//! A scheduler with a model that needs no GPU, and its steps in a line each.

#![allow(dead_code, unused_imports, reason = "each test file uses its own part")]
#![allow(clippy::disallowed_types, reason = "a test looks into a sink that a tracer owns")]

use std::sync::{Arc, Mutex};

use stepline_config::{EngineArgs, Rate};
use stepline_scheduler::trace::{HashSampler, Sampler, SamplingStage, StepTrace, StepTracer, StepTracing};
use stepline_scheduler::{
    EngineCoreOutputs, ExternalFinish, ModelRunnerOutput, Nanos, NewRequest, SamplingParams, Scheduler, SchedulerOutput,
};
use stepline_tracing_schema::{BatchSummary, MemorySink, RequestSnapshot, SinkCall};

/// The settings of most tests: blocks of 4 tokens, a small pool, otherwise vLLM's defaults.
pub(crate) fn args() -> EngineArgs {
    EngineArgs {
        max_model_len: Some(64),
        block_size: Some(4),
        max_num_seqs: Some(8),
        max_num_batched_tokens: Some(64),
        ..EngineArgs::default()
    }
}

/// `n` tokens that no other request has.
pub(crate) fn prompt(family: u32, n: u32) -> Vec<u32> {
    (0..n).map(|i| family * 1_000 + i).collect()
}

pub(crate) fn request(id: &str, prompt: Vec<u32>, max_tokens: u32) -> NewRequest {
    NewRequest::new(id, prompt, SamplingParams { max_tokens: Some(max_tokens), ..SamplingParams::default() })
}

/// A scheduler, the steps it has in flight, and a clock that counts steps.
pub(crate) struct Harness {
    pub(crate) scheduler: Scheduler,
    pub(crate) outputs: Vec<EngineCoreOutputs>,
}

impl Harness {
    /// `num_usable_blocks` does not count the null block.
    #[track_caller]
    pub(crate) fn new(args: EngineArgs, num_usable_blocks: u32) -> Self {
        let config = args.resolve().expect("a valid configuration");
        let scheduler = Scheduler::new(&config, num_usable_blocks + 1).expect("a valid pool");
        Self { scheduler, outputs: Vec::new() }
    }

    pub(crate) fn now(&self) -> Nanos {
        Nanos(self.scheduler.step_id() * 1_000_000)
    }

    #[track_caller]
    pub(crate) fn add(&mut self, request: NewRequest) {
        self.add_traced(request, &mut ());
    }

    #[track_caller]
    pub(crate) fn add_traced(&mut self, request: NewRequest, trace: &mut impl StepTrace) {
        let now = self.now();
        self.scheduler.add_request(request, now, trace).expect("a valid request");
    }

    /// Plans a step, executes it with a model that samples token 1, processes it.
    #[track_caller]
    pub(crate) fn step(&mut self) -> SchedulerOutput {
        self.step_traced(&mut ())
    }

    #[track_caller]
    pub(crate) fn step_traced(&mut self, trace: &mut impl StepTrace) -> SchedulerOutput {
        let plan = self.scheduler.schedule(self.now(), trace);
        self.finish_step(&plan, trace);
        plan
    }

    /// Executes and processes a planned step.
    #[track_caller]
    pub(crate) fn finish_step(&mut self, plan: &SchedulerOutput, trace: &mut impl StepTrace) {
        let mut result = ModelRunnerOutput::default();
        for scheduled in &plan.num_scheduled_tokens {
            result.push(if scheduled.samples { &[1] } else { &[] });
        }
        let now = self.now();
        let outputs = self.scheduler.update_from_output(plan, &result, now, trace).expect("one list per request");
        self.outputs.push(outputs);
    }

    /// A plan as a reader thinks of it: `6 | A:1 | preempt B | free 4 3`.
    pub(crate) fn line(&self, plan: &SchedulerOutput) -> String {
        let id = |handle| self.scheduler.request_id(handle).map_or("?", |id| id.as_str());
        let tokens: Vec<String> = plan
            .num_scheduled_tokens
            .iter()
            .map(|scheduled| format!("{}:{}", id(scheduled.request), scheduled.num_tokens))
            .collect();
        let mut line = format!("{} | {}", plan.step, tokens.join(" "));
        for (name, ids) in [("preempt", &plan.preempted_req_ids), ("finish", &plan.finished_req_ids)] {
            if !ids.is_empty() {
                let ids: Vec<&str> = ids.iter().map(|reference| reference.id.as_str()).collect();
                line = format!("{line} | {name} {}", ids.join(" "));
            }
        }
        line + &format!(" | free {}", self.free())
    }

    /// Plans one step and says what was planned; the step is processed afterwards.
    #[track_caller]
    pub(crate) fn step_line(&mut self) -> String {
        let plan = self.scheduler.schedule(self.now(), &mut ());
        let line = self.line(&plan);
        self.finish_step(&plan, &mut ());
        line
    }

    #[track_caller]
    pub(crate) fn step_lines(&mut self, num_steps: usize) -> String {
        (0..num_steps).map(|_| self.step_line() + "\n").collect()
    }

    /// The free queue, from the front.
    pub(crate) fn free(&self) -> String {
        self.scheduler.kv_cache().free_queue().map(|id| id.0.to_string()).collect::<Vec<_>>().join(" ")
    }

    pub(crate) fn table(&self, id: &str) -> Vec<u32> {
        let handle = self.scheduler.find(id).expect("a live request");
        self.scheduler.blocks_of(handle).iter().map(|id| id.0).collect()
    }
}

/// A sink whose content can be read while a tracer owns it.
#[derive(Clone, Default)]
pub(crate) struct SharedSink(pub(crate) Arc<Mutex<MemorySink>>);

impl SharedSink {
    pub(crate) fn calls(&self) -> Vec<SinkCall> {
        self.0.lock().expect("no test panics while it holds the lock").calls.clone()
    }

    pub(crate) fn summaries(&self) -> Vec<BatchSummary> {
        let summary = |call| if let SinkCall::BatchSummary(record) = call { Some(record) } else { None };
        self.calls().into_iter().filter_map(summary).collect()
    }

    pub(crate) fn snapshots(&self) -> Vec<RequestSnapshot> {
        let snapshot = |call| if let SinkCall::RequestSnapshot(record) = call { Some(record) } else { None };
        self.calls().into_iter().filter_map(snapshot).collect()
    }
}

#[track_caller]
pub(crate) fn rate(value: f64) -> Rate {
    Rate::new(value).expect("a rate")
}

/// Step tracing at the given rates with the default samplers.
#[track_caller]
pub(crate) fn tracing(sample_rate: f64, rich_subsample_rate: f64, seed: u64) -> StepTracing {
    StepTracing {
        sample_rate: rate(sample_rate),
        rich_subsample_rate: rate(rich_subsample_rate),
        closure_interval: 100,
        batch_sampler: Box::new(HashSampler::new(seed, SamplingStage::BatchSummary)),
        rich_sampler: Box::new(HashSampler::new(seed, SamplingStage::RequestSnapshots)),
    }
}

/// A tracer and the sink to look into.
pub(crate) fn tracer(steps: StepTracing) -> (StepTracer, SharedSink) {
    let sink = SharedSink::default();
    (StepTracer::new(Some(steps), false, Box::new(sink.0.clone())), sink)
}
