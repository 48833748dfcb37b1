//! Whose blocks are taken away when a running request finds none.

use std::cmp::Reverse;

use stepline_config::SchedulingPolicy;
use stepline_kv_cache::NewBlocks;

use crate::ids::RequestSlot;
use crate::output::EngineCoreEventType;
use crate::scheduler::Scheduler;
use crate::status::RequestStatus;
use crate::step::Step;
use crate::time::Nanos;
use crate::trace::StepTrace;

/// What becomes of tokens that are in flight when their request is preempted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StaleOutput {
    Deliver,
    Drop,
}

impl Scheduler {
    /// Gets blocks for `slot`, the running request at `*idx`, taking them from others if need be.
    ///
    /// Returns `None` if the request itself had to go. `*idx` follows the request when one before it leaves.
    /// spec: scheduler 2.3.
    pub(crate) fn allocate_or_preempt(
        &mut self,
        slot: RequestSlot,
        num_tokens: u32,
        idx: &mut usize,
        step: &mut Step,
        trace: &mut impl StepTrace,
    ) -> Option<NewBlocks> {
        loop {
            if let Some(new_blocks) = self.allocate_slots(slot, num_tokens) {
                return Some(new_blocks);
            }
            let victim_idx = self.victim();
            let victim = self.running.remove(victim_idx);
            *idx -= usize::from(victim_idx < *idx);
            self.remove_from_step(victim, step);
            step.has_preempted = true;
            self.preempt(victim, StaleOutput::Deliver, step.now, trace);
            if victim == slot {
                return None;
            }
        }
    }

    /// The place in `running` of the request that goes first: the last, or the least urgent.
    ///
    /// All running requests are candidates: scheduled ones, the one that needs blocks, and those not visited yet.
    fn victim(&self) -> usize {
        match self.limits.policy {
            SchedulingPolicy::Fcfs => self.running.len() - 1,
            SchedulingPolicy::Priority => {
                let urgency = |idx: usize| {
                    let request = self.requests.request(self.running[idx]);
                    // Of equals the earliest in running order goes.
                    (request.priority, request.arrival_time, Reverse(idx))
                };
                (0..self.running.len()).max_by_key(|idx| urgency(*idx)).expect("the requester is running")
            }
        }
    }

    /// Undoes what this step decided for a victim, if anything.
    fn remove_from_step(&mut self, victim: RequestSlot, step: &mut Step) {
        let state = &mut self.requests[victim];
        let num_tokens = std::mem::take(&mut state.num_scheduled_tokens);
        if num_tokens > 0 {
            step.budget.give_back(num_tokens);
            step.counts.take_out(state.num_output_tokens() == 0, num_tokens);
            step.scheduled.retain(|scheduled| scheduled.slot != victim);
        }
    }

    /// Takes all blocks from a request that has left `running`; it starts again from its tokens.
    ///
    /// Tokens and block hashes are kept. spec: scheduler 2.3, "Preempting a request".
    pub(crate) fn preempt(
        &mut self,
        slot: RequestSlot,
        stale_output: StaleOutput,
        now: Nanos,
        trace: &mut impl StepTrace,
    ) {
        self.kv.free(slot);
        let state = &mut self.requests[slot];
        state.status = RequestStatus::Preempted;
        state.num_computed_tokens = 0;
        state.drop_stale = stale_output == StaleOutput::Drop || (state.drop_stale && state.num_stale > 0);
        state.num_stale = state.num_in_flight;
        state.num_preemptions += 1;
        self.add_event(slot, EngineCoreEventType::Preempted, now);
        trace.preempted(&self.traced(slot), now);
        self.waiting.push_front(slot, &self.requests);
        self.preempted.push(self.requests.reference(slot));
    }
}
