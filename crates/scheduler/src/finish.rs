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
    /// finished, and output of a step in flight is ignored. O(ids · log waiting), plus O(running) once.
    ///
    /// spec: scheduler 8; vLLM 0.32: `Scheduler.finish_requests`.
    pub fn finish_requests<'a>(
        &mut self,
        ids: impl IntoIterator<Item = &'a str>,
        finish: ExternalFinish,
        now: Nanos,
        trace: &mut impl StepTrace,
    ) -> Vec<RequestId> {
        let slots: Vec<RequestSlot> = ids.into_iter().filter_map(|id| self.requests.find(id)).collect();
        self.finish_slots(&slots, finish, now, trace)
    }

    /// Ends all requests from outside, in order of arrival. Returns them. O(requests · log requests).
    ///
    /// spec: scheduler 8, "All requests".
    pub fn finish_all_requests(
        &mut self,
        finish: ExternalFinish,
        now: Nanos,
        trace: &mut impl StepTrace,
    ) -> Vec<RequestId> {
        let slots = self.requests.in_order_of_arrival();
        self.finish_slots(&slots, finish, now, trace)
    }

    /// First all leave the queues, then each is freed. A slot that is named twice ends once.
    fn finish_slots(
        &mut self,
        slots: &[RequestSlot],
        finish: ExternalFinish,
        now: Nanos,
        trace: &mut impl StepTrace,
    ) -> Vec<RequestId> {
        let status = RequestStatus::from(finish);
        let mut ended = Vec::with_capacity(slots.len());
        for slot in slots.iter().copied() {
            match self.requests[slot].status {
                old if old.is_finished() => continue,
                RequestStatus::Running => {}
                _ => self.leave_waiting(slot),
            }
            self.requests[slot].status = status;
            ended.push(slot);
        }
        self.running.retain(|slot| !self.requests[*slot].status.is_finished());
        let ids = ended.iter().map(|slot| self.requests.request(*slot).id.clone()).collect();
        for slot in ended {
            self.end(slot, status, self.step_id, now, trace);
        }
        ids
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
