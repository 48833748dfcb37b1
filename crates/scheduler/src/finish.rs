//! The end of requests, and resets.

use crate::ids::{RequestId, RequestSlot};
use crate::preempt::StaleOutput;
use crate::scheduler::Scheduler;
use crate::status::{ExternalFinish, RequestStatus, finish_status};
use crate::time::Nanos;
use crate::trace::StepTrace;

impl Scheduler {
    /// Ends requests from outside, in the order given; ids that are unknown or have ended are passed over.
    ///
    /// Returns the requests that were ended. No output record is made for them; the next step reports them as
    /// finished, and output of a step in flight is ignored. O(log waiting), or O(running) for a running request.
    ///
    /// spec: scheduler 8; vLLM 0.32: `Scheduler.finish_requests`.
    pub fn finish_requests<'a>(
        &mut self,
        ids: impl IntoIterator<Item = &'a str>,
        finish: ExternalFinish,
        now: Nanos,
        trace: &mut impl StepTrace,
    ) -> Vec<RequestId> {
        let slots = ids.into_iter().filter_map(|id| self.finish_request(id, finish, now, trace));
        slots.collect()
    }

    /// Ends all requests from outside, in order of arrival.
    pub fn finish_all_requests(&mut self, finish: ExternalFinish, now: Nanos, trace: &mut impl StepTrace) {
        for slot in self.requests.in_order_of_arrival() {
            self.leave_queues(slot);
            self.end(slot, finish.into(), self.step_id, now, trace);
        }
    }

    fn finish_request(
        &mut self,
        id: &str,
        finish: ExternalFinish,
        now: Nanos,
        trace: &mut impl StepTrace,
    ) -> Option<RequestId> {
        let slot = self.requests.find(id)?;
        let id = self.requests.request(slot).id.clone();
        self.leave_queues(slot);
        self.end(slot, finish.into(), self.step_id, now, trace);
        Some(id)
    }

    fn leave_queues(&mut self, slot: RequestSlot) {
        if self.requests[slot].status == RequestStatus::Running {
            self.running.retain(|other| *other != slot);
        } else {
            self.leave_waiting(slot);
        }
    }

    /// Frees the blocks of a request and notes its end. The caller takes a running request out of `running`.
    pub(crate) fn end(
        &mut self,
        slot: RequestSlot,
        status: RequestStatus,
        step: u64,
        now: Nanos,
        trace: &mut impl StepTrace,
    ) {
        self.requests[slot].status = status;
        trace.finished(&self.traced_in(slot, step), finish_status(status), now);
        self.kv.free(slot);
        self.requests.retire(slot);
        self.finished.push(slot);
    }

    /// Forgets all cached prefixes. Returns whether it did.
    ///
    /// Fails while requests hold blocks, unless `reset_running_requests`: then all running requests are preempted,
    /// the last admitted first, so that the first admitted is the first to resume. Their output in flight is dropped.
    ///
    /// spec: scheduler 10; vLLM 0.32: `Scheduler.reset_prefix_cache`.
    pub fn reset_prefix_cache(&mut self, reset_running_requests: bool, now: Nanos, trace: &mut impl StepTrace) -> bool {
        if reset_running_requests {
            while let Some(slot) = self.running.pop() {
                self.preempt(slot, StaleOutput::Drop, now, trace);
            }
        }
        self.kv.reset_prefix_cache()
    }
}
