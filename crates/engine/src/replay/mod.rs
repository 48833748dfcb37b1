//! A workload's way through the engine.

mod admission;
mod memory;

use stepline_config::EngineConfig;
use stepline_scheduler::trace::StepTracer;
use stepline_scheduler::{Nanos, RequestId, SchedulerError};
use stepline_workload::{RequestSpec, WorkloadError};

use crate::engine::{Engine, EngineError};
use crate::executor::Executor;
use crate::metrics::Metrics;
use crate::report::{KvCacheReport, ReplayReport, RequestCounts};
use admission::Admission;
pub use admission::{RejectReason, Rejection};
use memory::RequestMemory;
pub use memory::{MemoryLimit, OutOfMemory};

/// How a workload is replayed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplayOptions {
    /// Of prompt tokens and traced journeys.
    pub seed: u64,
    /// Stops reading the workload after so many requests.
    pub max_requests: Option<u64>,
    /// Bytes that the prompts of all requests that run or wait may take: 4 per token and 16 per full block.
    pub max_request_memory_bytes: u64,
}

impl ReplayOptions {
    /// 8 GiB: some two billion waiting tokens.
    pub const DEFAULT_MAX_REQUEST_MEMORY_BYTES: u64 = 8 << 30;
}

impl Default for ReplayOptions {
    fn default() -> Self {
        Self { seed: 0, max_requests: None, max_request_memory_bytes: Self::DEFAULT_MAX_REQUEST_MEMORY_BYTES }
    }
}

/// How far a replay is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Requests read from the workload.
    pub arrived: u64,
    /// Requests that ran to their end or were rejected.
    pub done: u64,
    /// Requests that run.
    pub running: usize,
    /// Requests that wait.
    pub waiting: usize,
    /// `schedule` calls.
    pub steps: u64,
    /// Virtual time.
    pub now: Nanos,
}

/// Runs a workload to its end.
pub struct Replay<E, W> {
    engine: Engine<E>,
    arrivals: Arrivals<W>,
    admission: Admission,
    metrics: Metrics,
    memory: RequestMemory,
    policy_may_overtake: bool,
    block_size: u32,
}

/// Why a replay ended early.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// The workload is broken.
    #[error(transparent)]
    Workload(#[from] WorkloadError),
    /// The engine failed.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// More requests wait than memory holds.
    #[error(transparent)]
    OutOfMemory(#[from] OutOfMemory),
    /// A request waits for something that will not come.
    #[error(
        "request `{id}` can never be scheduled: nothing runs, step {step} admitted nobody, and {num_waiting} requests \
         wait; a limit is below what the request needs, see max_num_scheduled_tokens and enable_chunked_prefill"
    )]
    NoProgress {
        /// The request at the head of the queue.
        id: RequestId,
        /// The step that admitted nobody.
        step: u64,
        /// Requests that wait, this one included.
        num_waiting: usize,
    },
}

impl<E, W> Replay<E, W>
where
    E: Executor,
    W: Iterator<Item = Result<RequestSpec, WorkloadError>>,
{
    /// Steps between two reports of progress.
    const STEPS_PER_PROGRESS: u64 = 64;

    /// A replay of `workload`, whose arrivals must not go back in time.
    ///
    /// # Errors
    /// If `config` breaks a rule of its own, or the KV cache has no blocks.
    pub fn new(
        config: &EngineConfig,
        executor: E,
        workload: impl IntoIterator<IntoIter = W>,
        trace: Option<StepTracer>,
        options: ReplayOptions,
    ) -> Result<Self, SchedulerError> {
        Ok(Self {
            engine: Engine::new(config, executor, trace)?,
            arrivals: Arrivals::new(workload.into_iter(), options.max_requests),
            admission: Admission::new(config, options.seed),
            metrics: Metrics::default(),
            memory: RequestMemory {
                block_size: config.cache.block_size,
                limit_bytes: options.max_request_memory_bytes,
            },
            policy_may_overtake: config.scheduler.policy != stepline_config::SchedulingPolicy::Fcfs,
            block_size: config.cache.block_size,
        })
    }

    /// Runs until every request has ended, and ends the trace, also after an error.
    ///
    /// # Errors
    /// If the workload is broken, the executor fails, or a request can never be scheduled.
    pub fn run(&mut self, on_progress: impl FnMut(Progress)) -> Result<ReplayReport, ReplayError> {
        self.run_until(|| false, on_progress)
    }

    /// As [`run`](Self::run), unless `is_interrupted`: it is asked before every step and every arrival, and after a yes
    /// the replay ends with [what it has so far](ReplayReport::interrupted).
    ///
    /// # Errors
    /// As [`run`](Self::run).
    pub fn run_until(
        &mut self,
        is_interrupted: impl Fn() -> bool,
        on_progress: impl FnMut(Progress),
    ) -> Result<ReplayReport, ReplayError> {
        let outcome = self.run_to_end(is_interrupted, on_progress);
        self.engine.shutdown();
        outcome.map(|end| self.report(end))
    }

    /// Traces from now on to `trace`, for callers that open a trace only when all else is known to be right.
    pub fn set_trace(&mut self, trace: StepTracer) {
        self.engine.set_trace(trace);
    }

    /// The tracer, if there is one.
    pub const fn trace_mut(&mut self) -> Option<&mut StepTracer> {
        self.engine.trace_mut()
    }

    fn run_to_end(
        &mut self,
        is_interrupted: impl Fn() -> bool,
        mut on_progress: impl FnMut(Progress),
    ) -> Result<End, ReplayError> {
        loop {
            self.take_arrivals(&is_interrupted)?;
            if is_interrupted() {
                return Ok(End::Interrupted);
            }
            if !self.engine.scheduler().has_requests() {
                match self.arrivals.next_at()? {
                    Some(arrival) => self.engine.wait_until(arrival),
                    None => return Ok(End::Complete),
                }
                continue;
            }
            let outcome = self.engine.step()?;
            self.metrics.step(&outcome);
            let step = outcome.plan.step;
            let is_idle = outcome.plan.is_empty() && outcome.plan.preempted_req_ids.is_empty();
            if is_idle {
                self.check_progress(step)?;
            }
            if step.is_multiple_of(Self::STEPS_PER_PROGRESS) {
                on_progress(self.progress());
            }
        }
    }

    /// Hands over everybody who has arrived by now.
    fn take_arrivals(&mut self, is_interrupted: impl Fn() -> bool) -> Result<(), ReplayError> {
        while !is_interrupted() {
            let Some(spec) = self.arrivals.take_until(self.engine.now())? else { break };
            if self.admission.rejects(&spec, &self.engine) {
                continue;
            }
            self.memory.check(&spec, self.metrics.num_live(), self.metrics.num_live_prompt_tokens())?;
            if let Some(handle) = self.admission.add(&spec, &mut self.engine) {
                self.metrics.queued(handle, &spec, self.engine.now());
            }
        }
        Ok(())
    }

    /// After a step that did nothing: another one would do the same, unless somebody arrives who may overtake.
    fn check_progress(&mut self, step: u64) -> Result<(), ReplayError> {
        let scheduler = self.engine.scheduler();
        if scheduler.num_running() > 0 || scheduler.num_waiting() == 0 {
            return Ok(());
        }
        if self.policy_may_overtake
            && let Some(arrival) = self.arrivals.next_at()?
        {
            self.engine.wait_until(arrival);
            return Ok(());
        }
        match self.engine.scheduler().waiting().next() {
            None => Ok(()),
            Some(id) => {
                let num_waiting = self.engine.scheduler().num_waiting();
                Err(ReplayError::NoProgress { id: id.clone(), step, num_waiting })
            }
        }
    }

    fn progress(&self) -> Progress {
        let scheduler = self.engine.scheduler();
        Progress {
            arrived: self.arrivals.num_taken,
            done: self.metrics.finished + self.admission.num_rejected(),
            running: scheduler.num_running(),
            waiting: scheduler.num_waiting(),
            steps: scheduler.step_id(),
            now: self.engine.now(),
        }
    }

    fn report(&self, end: End) -> ReplayReport {
        let metrics = &self.metrics;
        let duration_s = seconds(metrics.last_computation_ended);
        let (total, rejected) = (self.arrivals.num_taken, self.admission.num_rejected());
        ReplayReport {
            interrupted: end == End::Interrupted,
            requests: RequestCounts {
                total,
                finished: metrics.finished,
                clipped: metrics.clipped,
                rejected,
                unfinished: total - rejected - metrics.finished,
            },
            rejections: self.admission.rejections(),
            duration_s,
            steps: self.engine.scheduler().step_id(),
            tokens: metrics.tokens(duration_s),
            ttft_ms: metrics.ttft.distribution(),
            tpot_ms: metrics.tpot.distribution(),
            itl_ms: metrics.itl.distribution(),
            e2e_ms: metrics.e2e.distribution(),
            queue_ms: metrics.queue.distribution(),
            preemptions: metrics.preemptions,
            prefix_cache: metrics.prefix_cache(),
            kv_cache: KvCacheReport {
                block_size: self.block_size,
                num_blocks: self.engine.scheduler().kv_cache().step_summary().blocks_total_gpu,
                peak_usage: metrics.peak_kv_cache_usage,
            },
        }
    }
}

/// How a replay without a fault ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// Every request has ended.
    Complete,
    /// The caller wanted no more.
    Interrupted,
}

/// A workload with a look at the next arrival.
struct Arrivals<W> {
    workload: W,
    next: Option<RequestSpec>,
    num_read: u64,
    num_taken: u64,
    max_requests: u64,
}

impl<W: Iterator<Item = Result<RequestSpec, WorkloadError>>> Arrivals<W> {
    fn new(workload: W, max_requests: Option<u64>) -> Self {
        Self { workload, next: None, num_read: 0, num_taken: 0, max_requests: max_requests.unwrap_or(u64::MAX) }
    }

    /// When the next request arrives.
    fn next_at(&mut self) -> Result<Option<Nanos>, WorkloadError> {
        if self.next.is_none() && self.num_read < self.max_requests {
            self.next = self.workload.next().transpose()?;
            self.num_read += u64::from(self.next.is_some());
        }
        Ok(self.next.as_ref().map(|spec| Nanos(spec.arrival_ns)))
    }

    /// The next request, if it has arrived by `now`.
    fn take_until(&mut self, now: Nanos) -> Result<Option<RequestSpec>, WorkloadError> {
        match self.next_at()? {
            Some(arrival) if arrival <= now => {
                self.num_taken += 1;
                Ok(self.next.take())
            }
            _ => Ok(None),
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "a double of seconds is what the report shows")]
fn seconds(time: Nanos) -> f64 {
    time.0 as f64 / 1e9
}
