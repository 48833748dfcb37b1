//! What an observer may look at.

use stepline_kv_cache::RequestSlot;
use stepline_tracing_schema::{BatchSummary, RequestPhase, RequestSnapshot};

use crate::output::SchedulerOutput;
use crate::request::JourneyContext;
use crate::scheduler::Scheduler;
use crate::step::Step;

/// A planned step. Its detail is computed when it is asked for.
pub trait StepView {
    /// Number of the `schedule` call.
    fn step_id(&self) -> u64;

    /// The step in figures. The end and the duration of the call are left to the observer: they are 0 long here. O(1).
    fn batch_summary(&self) -> BatchSummary;

    /// Shows every running request, in running order. O(running requests).
    fn for_each_snapshot(&self, visit: &mut dyn FnMut(&RequestSnapshot));
}

/// A request whose state has just changed.
pub trait TracedRequest {
    /// The traced journey of this request, if it is traced.
    fn journey(&self) -> Option<&JourneyContext>;

    /// How far the request has come.
    fn progress(&self) -> RequestProgress<'_>;
}

/// How far a request has come. Counts are tokens.
#[derive(Clone, Copy, Debug)]
pub struct RequestProgress<'a> {
    /// Text id.
    pub id: &'a std::sync::Arc<str>,
    /// The step concerned: the last `schedule` call, or the one whose output is processed.
    pub scheduler_step: u64,
    /// Highest number of prompt tokens ever computed while there was no output.
    pub prefill_done_tokens: u32,
    /// Prompt length.
    pub prefill_total_tokens: u32,
    /// Output so far.
    pub decode_done_tokens: u32,
    /// Output at most.
    pub decode_max_tokens: u32,
    /// Preemptions so far.
    pub num_preemptions: u32,
}

/// The step that the scheduler has planned and not committed.
pub(crate) struct PlannedStep<'a> {
    scheduler: &'a Scheduler,
    step: &'a Step,
    output: &'a SchedulerOutput,
}

impl<'a> PlannedStep<'a> {
    pub(crate) const fn new(scheduler: &'a Scheduler, step: &'a Step, output: &'a SchedulerOutput) -> Self {
        Self { scheduler, step, output }
    }
}

fn count(n: usize) -> u32 {
    u32::try_from(n).expect("requests are slots of 32 bits")
}

impl StepView for PlannedStep<'_> {
    fn step_id(&self) -> u64 {
        self.output.step
    }

    fn batch_summary(&self) -> BatchSummary {
        let kv = self.scheduler.kv.step_summary();
        let counts = self.step.counts;
        BatchSummary {
            step_id: self.output.step,
            ts_start_ns: self.step.now.0,
            ts_end_ns: self.step.now.0,
            duration_us: 0,
            running_depth: count(self.scheduler.running.len()),
            waiting_depth: count(self.scheduler.waiting.len()),
            num_prefill_reqs: counts.prefill_reqs,
            num_decode_reqs: counts.decode_reqs,
            scheduled_tokens: counts.total_tokens(),
            prefill_tokens: counts.prefill_tokens,
            decode_tokens: counts.decode_tokens,
            num_finished: count(self.output.finished_req_ids.len()),
            num_preempted: count(self.output.preempted_req_ids.len()),
            kv_usage_gpu_ratio: kv.usage_gpu_ratio,
            kv_blocks_total_gpu: kv.blocks_total_gpu,
            kv_blocks_free_gpu: kv.blocks_free_gpu,
        }
    }

    fn for_each_snapshot(&self, visit: &mut dyn FnMut(&RequestSnapshot)) {
        for slot in &self.scheduler.running {
            visit(&self.scheduler.snapshot(*slot));
        }
    }
}

impl Scheduler {
    fn snapshot(&self, slot: RequestSlot) -> RequestSnapshot {
        let state = &self.requests[slot];
        let request = self.requests.request(slot);
        let num_cached_tokens = request.num_cached_tokens.unwrap_or(0);
        let kv = self.kv.request_metrics(slot, state.num_prompt_tokens, num_cached_tokens);
        RequestSnapshot {
            step_id: self.step_id,
            request_id: request.id.0.clone(),
            phase: RequestPhase::of_admitted(state.num_output_tokens()),
            num_prompt_tokens: state.num_prompt_tokens,
            num_computed_tokens: state.num_computed_tokens,
            num_output_tokens: state.num_output_tokens(),
            num_preemptions: state.num_preemptions,
            scheduled_tokens_this_step: state.num_scheduled_tokens,
            kv_blocks_allocated_gpu: kv.blocks_allocated_gpu,
            kv_blocks_cached_gpu: kv.blocks_cached_gpu,
            effective_prompt_len: kv.effective_prompt_len,
        }
    }

    /// A request as an observer sees it in the current step.
    pub(crate) const fn traced(&self, slot: RequestSlot) -> SlotView<'_> {
        self.traced_in(slot, self.step_id)
    }

    /// A request as an observer sees it when the output of `step` is processed.
    pub(crate) const fn traced_in(&self, slot: RequestSlot, step: u64) -> SlotView<'_> {
        SlotView { scheduler: self, slot, step }
    }
}

/// A request of the scheduler's table.
pub(crate) struct SlotView<'a> {
    scheduler: &'a Scheduler,
    slot: RequestSlot,
    step: u64,
}

impl TracedRequest for SlotView<'_> {
    fn journey(&self) -> Option<&JourneyContext> {
        self.scheduler.requests.request(self.slot).journey.as_ref()
    }

    fn progress(&self) -> RequestProgress<'_> {
        let state = &self.scheduler.requests[self.slot];
        let request = self.scheduler.requests.request(self.slot);
        RequestProgress {
            id: &request.id.0,
            scheduler_step: self.step,
            prefill_done_tokens: request.prefill_done_tokens,
            prefill_total_tokens: state.num_prompt_tokens,
            decode_done_tokens: state.num_output_tokens(),
            decode_max_tokens: state.max_tokens,
            num_preemptions: state.num_preemptions,
        }
    }
}
