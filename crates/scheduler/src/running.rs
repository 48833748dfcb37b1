//! The pass over running requests: who goes on.

use stepline_kv_cache::{NewBlocks, SlotRequest};

use crate::ids::RequestSlot;
use crate::scheduler::Scheduler;
use crate::step::{Entry, ScheduledRequest, Step};
use crate::trace::StepTrace;

impl Scheduler {
    /// Gives each running request its tokens, in running order, preempting when blocks run out.
    ///
    /// A request that gets nothing is skipped and may be overtaken. spec: scheduler 2.2.
    pub(crate) fn schedule_running(&mut self, step: &mut Step, trace: &mut impl StepTrace) {
        let mut idx = 0;
        while idx < self.running.len() && step.budget.left() > 0 {
            let slot = self.running[idx];
            let num_tokens = self.num_tokens_to_run(slot, step);
            if num_tokens == 0 {
                idx += 1; // spec: scheduler 2.2.11
                continue;
            }
            // spec: scheduler 2.2.12: requests behind one that found no blocks are not visited.
            let Some(new_blocks) = self.allocate_or_preempt(slot, num_tokens, &mut idx, step, trace) else { break };
            self.add_to_step(step, ScheduledRequest { slot, num_tokens, new_blocks, entry: Entry::Running });
            idx += 1;
        }
    }

    /// spec: scheduler 2.2.4 to 2.2.7.
    fn num_tokens_to_run(&self, slot: RequestSlot, step: &Step) -> u32 {
        let state = &self.requests[slot];
        let num_uncomputed = state.num_tokens - state.num_computed_tokens;
        // The last position of a full sequence is never an input: its token ends the request.
        let num_until_full = self.limits.max_model_len.saturating_sub(state.num_computed_tokens + 1);
        step.cap(num_uncomputed).min(step.budget.left()).min(num_until_full)
    }

    /// Records a decision in the plan, in the budget and in the request.
    pub(crate) fn add_to_step(&mut self, step: &mut Step, scheduled: ScheduledRequest) {
        let state = &mut self.requests[scheduled.slot];
        state.num_scheduled_tokens = scheduled.num_tokens;
        step.budget.spend(scheduled.num_tokens);
        step.counts.add(state.num_output_tokens() == 0, scheduled.num_tokens);
        step.scheduled.push(scheduled);
    }

    /// Tries to get blocks for the next `num_tokens` tokens of a running request.
    pub(crate) fn allocate_slots(&mut self, slot: RequestSlot, num_tokens: u32) -> Option<NewBlocks> {
        let state = &self.requests[slot];
        let end = state.num_computed_tokens + num_tokens;
        // Most steps of most requests: the hashes, which lie elsewhere, are not even looked at.
        if self.kv.covers(slot, end, end.min(state.num_tokens)) {
            return Some(NewBlocks::default());
        }
        self.kv.allocate_slots(&SlotRequest {
            slot,
            num_tokens: state.num_tokens,
            num_computed_tokens: state.num_computed_tokens,
            num_new_tokens: num_tokens,
            num_lookahead_tokens: 0,
            block_hashes: self.requests.request(slot).block_hashes.as_slice(),
        })
    }
}
