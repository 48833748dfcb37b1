//! What must hold between calls, each rule once.

use stepline_kv_cache::RequestSlot;

use crate::scheduler::Scheduler;
use crate::status::RequestStatus;

/// A rule that does not hold: a bug of this crate or of the KV cache.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BrokenInvariant {
    /// A rule of the scheduler.
    #[error("scheduler rule {rule} is broken: {what}")]
    Scheduler {
        /// Number of the rule in `invariants.rs`.
        rule: u8,
        /// What was found.
        what: String,
    },
    /// A rule of the KV cache.
    #[error(transparent)]
    KvCache(#[from] stepline_kv_cache::BrokenInvariant),
}

fn ensure(holds: bool, rule: u8, what: impl FnOnce() -> String) -> Result<(), BrokenInvariant> {
    if holds { Ok(()) } else { Err(BrokenInvariant::Scheduler { rule, what: what() }) }
}

impl Scheduler {
    /// Checks every rule. O(requests + blocks).
    ///
    /// # Errors
    /// The first rule that does not hold.
    pub fn check(&self) -> Result<(), BrokenInvariant> {
        self.check_queues()?;
        for slot in self.requests.in_order_of_arrival() {
            self.check_counters(slot)?;
        }
        Ok(self.kv.check()?)
    }

    /// Rule 1: every live request is in exactly one of `running` and `waiting`, as its status says.
    /// Rule 2: no more requests run than may. Rule 3: `num_deferred` counts the deferred.
    fn check_queues(&self) -> Result<(), BrokenInvariant> {
        let status = |slot: RequestSlot| self.requests[slot].status;
        let name = |slot: RequestSlot| &self.requests.request(slot).id;
        for slot in &self.running {
            ensure(status(*slot) == RequestStatus::Running, 1, || {
                format!("{} runs as {:?}", name(*slot), status(*slot))
            })?;
        }
        for slot in self.waiting.iter() {
            let waits = matches!(status(slot), RequestStatus::Waiting | RequestStatus::Preempted);
            ensure(waits, 1, || format!("{} waits as {:?}", name(slot), status(slot)))?;
        }
        let num_queued = self.running.len() + self.waiting.len();
        ensure(num_queued == self.requests.len(), 1, || format!("{num_queued} queued, {} live", self.requests.len()))?;
        ensure(self.running.len() <= self.limits.max_num_active_seqs as usize, 2, || {
            format!("{} run of {}", self.running.len(), self.limits.max_num_active_seqs)
        })?;
        let num_deferred = self.waiting.iter().filter(|slot| self.requests[*slot].deferred).count();
        ensure(num_deferred == self.num_deferred, 3, || {
            format!("{num_deferred} deferred, {} counted", self.num_deferred)
        })
    }

    /// Rule 4: computed tokens are known tokens, and held in blocks. Rule 5: a waiting request holds no blocks.
    /// Rule 6: nothing is scheduled between steps. Rule 7: stale tokens are in flight.
    fn check_counters(&self, slot: RequestSlot) -> Result<(), BrokenInvariant> {
        let state = &self.requests[slot];
        let id = &self.requests.request(slot).id;
        let num_blocks = u32::try_from(self.kv.blocks_of(slot).len()).expect("blocks are ids of 32 bits");
        let num_needed = self.kv.blocks_for(state.num_computed_tokens);
        ensure(state.num_computed_tokens <= state.num_tokens && num_needed <= num_blocks, 4, || {
            format!("{id}: {} of {} tokens in {num_blocks} blocks", state.num_computed_tokens, state.num_tokens)
        })?;
        ensure(state.status == RequestStatus::Running || num_blocks == 0, 5, || {
            format!("{id} holds {num_blocks} blocks")
        })?;
        ensure(state.num_scheduled_tokens == 0, 6, || format!("{id} keeps {} tokens", state.num_scheduled_tokens))?;
        ensure(state.num_stale <= state.num_in_flight, 7, || {
            format!("{id}: {} stale of {} in flight", state.num_stale, state.num_in_flight)
        })
    }
}
