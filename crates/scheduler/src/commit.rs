//! The end of a scheduling call: the plan becomes an output, then the counters advance.

use crate::output::{ScheduledTokens, SchedulerOutput};
use crate::scheduler::Scheduler;
use crate::step::{Entry, ScheduledRequest, Step};

impl Scheduler {
    /// Writes the plan down. spec: scheduler 2.6.
    pub(crate) fn build_output(&mut self, step: &Step, output: &mut SchedulerOutput) {
        output.clear();
        output.step = self.step_id;
        output.total_num_scheduled_tokens = step.counts.total_tokens();
        for scheduled in &step.scheduled {
            self.describe(scheduled, output);
        }
        output.preempted_req_ids.append(&mut self.preempted);
        for slot in self.finished.drain(..) {
            output.finished_req_ids.push(self.requests.reference(slot));
            self.requests.release(slot);
        }
    }

    fn describe(&self, scheduled: &ScheduledRequest, output: &mut SchedulerOutput) {
        let &ScheduledRequest { slot, num_tokens, new_blocks, entry } = scheduled;
        let state = &self.requests[slot];
        let handle = self.requests.handle(slot);
        let samples = state.num_computed_tokens + num_tokens == state.num_tokens;
        output.num_scheduled_tokens.push(ScheduledTokens { request: handle, num_tokens, samples });
        match entry {
            Entry::New => {
                let request = self.requests.request(slot);
                let reference = self.requests.reference(slot);
                output.push_new(reference, request, state.num_computed_tokens, self.kv.blocks_of(slot));
            }
            Entry::Running | Entry::Resumed => {
                let resumed = entry == Entry::Resumed;
                // A decoding request needs a block once in a block's tokens; its table is not even looked at.
                let blocks = match (resumed, new_blocks.num_blocks) {
                    (true, _) => self.kv.blocks_of(slot),
                    (false, 0) => &[],
                    (false, _) => &self.kv.blocks_of(slot)[new_blocks.first_idx as usize..],
                };
                output.push_cached(handle, resumed, state.num_computed_tokens, state.num_output_tokens(), blocks);
            }
        }
    }

    /// Counts the scheduled tokens as computed and in flight. spec: scheduler 2.7.
    pub(crate) fn commit(&mut self, step: &Step) {
        for scheduled in &step.scheduled {
            let state = &mut self.requests[scheduled.slot];
            state.num_scheduled_tokens = 0;
            state.num_computed_tokens += scheduled.num_tokens;
            state.num_in_flight += scheduled.num_tokens;
            if state.num_output_tokens() == 0 {
                let num_done = state.num_computed_tokens.min(state.num_prompt_tokens);
                let request = self.requests.request_mut(scheduled.slot);
                request.prefill_done_tokens = request.prefill_done_tokens.max(num_done);
            }
        }
    }
}
