//! One step: schedule, execute, update, on a virtual clock.

use std::time::Duration;

use stepline_config::EngineConfig;
use stepline_scheduler::trace::StepTracer;
use stepline_scheduler::{
    AddRequestError, EngineCoreOutputs, ExternalFinish, ModelRunnerOutput, Nanos, NewRequest, RequestHandle, RequestId,
    Scheduler, SchedulerError, SchedulerOutput, UpdateError,
};

use crate::executor::{Executor, ExecutorError};

/// A scheduler and an executor that take turns, and the clock that both live by.
#[derive(Debug)]
pub struct Engine<E> {
    scheduler: Scheduler,
    executor: E,
    trace: Option<StepTracer>,
    now: Nanos,
    plan: SchedulerOutput,
    result: ModelRunnerOutput,
    outputs: EngineCoreOutputs,
}

/// What a step did.
#[derive(Clone, Copy, Debug)]
pub struct StepOutcome<'a> {
    /// What was decided.
    pub plan: &'a SchedulerOutput,
    /// What it gave, at [`ended`](Self::ended).
    pub outputs: &'a EngineCoreOutputs,
    /// When it was decided.
    pub started: Nanos,
    /// When the executor was done.
    pub ended: Nanos,
    /// Share of KV blocks in use while it ran, 0 ≤ x ≤ 1.
    pub kv_cache_usage: f64,
}

/// Why a step failed. The engine cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// The executor failed.
    #[error(transparent)]
    Executor(#[from] ExecutorError),
    /// The executor's result does not fit the plan.
    #[error(transparent)]
    Update(#[from] UpdateError),
    /// Virtual time ran out.
    #[error(
        "step {step} took {duration:?}, which is beyond the 584 years that the clock can count; lower the step time"
    )]
    ClockOverflow {
        /// The step.
        step: u64,
        /// What the executor said.
        duration: Duration,
    },
}

impl<E: Executor> Engine<E> {
    /// An engine at time 0, without requests, tracing to `trace` if given.
    ///
    /// The KV cache has `config.cache.num_gpu_blocks` blocks if set, else what the executor has.
    ///
    /// # Errors
    /// If `config` breaks a rule of its own, or there are no blocks.
    pub fn new(config: &EngineConfig, executor: E, trace: Option<StepTracer>) -> Result<Self, SchedulerError> {
        let num_gpu_blocks = config.cache.num_gpu_blocks.unwrap_or_else(|| executor.num_gpu_blocks());
        Ok(Self {
            scheduler: Scheduler::new(config, num_gpu_blocks)?,
            executor,
            trace,
            now: Nanos(0),
            plan: SchedulerOutput::default(),
            result: ModelRunnerOutput::default(),
            outputs: EngineCoreOutputs::default(),
        })
    }

    /// Takes in a request, now.
    ///
    /// # Errors
    /// As [`Scheduler::add_request`].
    pub fn add_request(&mut self, request: NewRequest) -> Result<RequestHandle, AddRequestError> {
        self.scheduler.add_request(request, self.now, &mut self.trace)
    }

    /// Ends requests from outside, now. Returns those that were ended.
    pub fn finish_requests<'a>(
        &mut self,
        ids: impl IntoIterator<Item = &'a str>,
        finish: ExternalFinish,
    ) -> Vec<RequestId> {
        self.scheduler.finish_requests(ids, finish, self.now, &mut self.trace)
    }

    /// Plans a step, runs it, and processes its result; the clock moves on by what it took.
    ///
    /// # Errors
    /// If the executor fails. The engine must not be stepped again.
    pub fn step(&mut self) -> Result<StepOutcome<'_>, EngineError> {
        let started = self.now;
        self.scheduler.schedule_into(started, &mut self.trace, &mut self.plan);
        let kv_cache_usage = self.scheduler.kv_cache().usage();

        self.result.clear();
        let duration = self.executor.execute(&self.plan, &mut self.result)?;
        let ended = after(started, duration).ok_or(EngineError::ClockOverflow { step: self.plan.step, duration })?;
        self.now = ended;

        self.scheduler.update_from_output_into(&self.plan, &self.result, ended, &mut self.trace, &mut self.outputs)?;
        Ok(StepOutcome { plan: &self.plan, outputs: &self.outputs, started, ended, kv_cache_usage })
    }

    /// Lets time pass until `time`; earlier times change nothing.
    pub fn wait_until(&mut self, time: Nanos) {
        self.now = self.now.max(time);
    }

    /// The virtual time since the start.
    #[must_use]
    pub const fn now(&self) -> Nanos {
        self.now
    }

    /// The scheduler, to read.
    #[must_use]
    pub const fn scheduler(&self) -> &Scheduler {
        &self.scheduler
    }

    /// The tracer, if there is one.
    pub const fn trace_mut(&mut self) -> Option<&mut StepTracer> {
        self.trace.as_mut()
    }

    /// Traces from now on to `trace`.
    pub fn set_trace(&mut self, trace: StepTracer) {
        self.trace = Some(trace);
    }

    /// Ends the trace; records after this are lost.
    pub fn shutdown(&mut self) {
        if let Some(trace) = &mut self.trace {
            trace.shutdown(self.scheduler.step_id(), self.now);
        }
    }
}

fn after(time: Nanos, duration: Duration) -> Option<Nanos> {
    let duration_ns = u64::try_from(duration.as_nanos()).ok()?;
    time.0.checked_add(duration_ns).map(Nanos)
}
