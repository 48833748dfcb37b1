//! The pass over waiting requests: who is admitted.

use stepline_kv_cache::{Admission, SlotRequest};
use stepline_tracing_schema::ScheduleKind;

use crate::features::lora;
use crate::ids::RequestSlot;
use crate::output::EngineCoreEventType;
use crate::scheduler::Scheduler;
use crate::status::RequestStatus;
use crate::step::{Entry, ScheduledRequest, Step};
use crate::trace::StepTrace;

impl Scheduler {
    /// Admits waiting requests in queue order until something runs out.
    ///
    /// The head of the queue that finds no blocks holds up everybody behind it; nobody is preempted for it.
    /// spec: scheduler 2.4.
    pub(crate) fn schedule_waiting(&mut self, step: &mut Step, trace: &mut impl StepTrace) {
        self.collect_lora_ids(step);
        while step.budget.left() > 0 && self.running.len() < self.limits.max_num_active_seqs as usize {
            let Some(slot) = self.waiting.front() else { break };
            // spec: scheduler 2.4.5: output of its last run is still to come.
            if self.requests[slot].num_stale > 0 && !self.requests[slot].drop_stale {
                self.set_aside(slot, step);
                continue;
            }
            // spec: scheduler 2.4.6
            if lora::is_full(self.requests.request(slot), &step.lora_ids, self.limits.max_loras) {
                self.set_aside(slot, step);
                continue;
            }
            let looked_up = self.look_up_prefix(slot, step);
            let Some(num_tokens) = self.num_tokens_to_admit(slot, step) else { break };
            let Some(scheduled) = self.allocate_admission(slot, num_tokens, step) else { break };
            if looked_up {
                let state = &self.requests[slot];
                self.kv.record_admission(state.num_tokens, &step.hit, state.num_preemptions > 0);
            }
            self.admit(scheduled, step, trace);
        }
        self.restore_set_aside(step);
    }

    /// Finds the cached prefix of a request. Returns whether the cache was asked. spec: scheduler 2.4.7.
    fn look_up_prefix(&mut self, slot: RequestSlot, step: &mut Step) -> bool {
        let (state, request) = self.requests.both_mut(slot);
        let asks = self.kv.config().enable_caching && !request.skip_reading_prefix_cache;
        if asks {
            self.kv.find_prefix_hit(request.block_hashes.as_slice(), state.num_tokens, &mut step.hit);
        } else {
            step.hit.clear();
        }
        if state.num_preemptions == 0 && !request.has_emitted {
            request.num_cached_tokens = Some(step.hit.num_tokens());
        }
        asks
    }

    /// Returns the tokens of a first chunk, or `None` if the pass must stop. spec: scheduler 2.4.9 to 2.4.13.
    fn num_tokens_to_admit(&self, slot: RequestSlot, step: &Step) -> Option<u32> {
        // At least 1: a lookup never covers the last token.
        let num_tokens = step.cap(self.requests[slot].num_tokens - step.hit.num_tokens());
        let budget = step.budget.left();
        if num_tokens > budget && !self.limits.enable_chunked_prefill {
            return None;
        }
        Some(num_tokens.min(budget))
    }

    /// spec: scheduler 2.4.15.
    fn allocate_admission(&mut self, slot: RequestSlot, num_tokens: u32, step: &Step) -> Option<ScheduledRequest> {
        let state = &self.requests[slot];
        let request = SlotRequest {
            slot,
            num_tokens: state.num_tokens,
            num_computed_tokens: 0,
            num_new_tokens: num_tokens,
            num_lookahead_tokens: 0,
            block_hashes: self.requests.request(slot).block_hashes.as_slice(),
        };
        let admission = Admission {
            full_sequence_check: self.limits.scheduler_reserve_full_isl,
            keep_watermark: !self.running.is_empty(),
        };
        let new_blocks = self.kv.admit(&request, &step.hit, admission)?;
        let entry = if state.status == RequestStatus::Preempted { Entry::Resumed } else { Entry::New };
        Some(ScheduledRequest { slot, num_tokens, new_blocks, entry })
    }

    /// Moves the head of the queue into `running`. spec: scheduler 2.4.17.
    fn admit(&mut self, scheduled: ScheduledRequest, step: &mut Step, trace: &mut impl StepTrace) {
        let slot = scheduled.slot;
        self.leave_waiting(slot);
        self.running.push(slot);
        self.add_event(slot, EngineCoreEventType::Scheduled, step.now);
        let kind = if scheduled.entry == Entry::Resumed { ScheduleKind::Resume } else { ScheduleKind::First };
        let (state, request) = self.requests.both_mut(slot);
        state.status = RequestStatus::Running;
        state.num_computed_tokens = step.hit.num_tokens();
        lora::note(request, &mut step.lora_ids);
        trace.scheduled(&self.traced(slot), kind, step.now);
        self.add_to_step(step, scheduled);
    }

    /// Takes a request out of the queue for good.
    pub(crate) fn leave_waiting(&mut self, slot: RequestSlot) {
        self.waiting.remove(slot, &self.requests);
        self.num_deferred -= usize::from(std::mem::take(&mut self.requests[slot].deferred));
    }

    /// Passes over a request for the rest of this scan; it keeps its place in the queue.
    fn set_aside(&mut self, slot: RequestSlot, step: &mut Step) {
        self.waiting.remove(slot, &self.requests);
        let was_deferred = std::mem::replace(&mut self.requests[slot].deferred, true);
        self.num_deferred += usize::from(!was_deferred);
        step.set_aside.push(slot);
    }

    /// Puts the requests that were set aside back in front, in their order.
    fn restore_set_aside(&mut self, step: &mut Step) {
        for slot in step.set_aside.drain(..).rev() {
            self.waiting.push_front(slot, &self.requests);
        }
    }

    /// Adapters of the running requests that are in this step; skipped ones do not count, as in vLLM.
    ///
    /// Unlike vLLM: when skipped requests come back, a step may then hold more adapters than the limit, where vLLM stops
    /// with an assertion. spec: scheduler 2.4.
    fn collect_lora_ids(&self, step: &mut Step) {
        if self.limits.max_loras.is_some() {
            for scheduled in &step.scheduled {
                lora::note(self.requests.request(scheduled.slot), &mut step.lora_ids);
            }
        }
    }
}
