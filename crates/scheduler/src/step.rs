//! The plan of one step while it is made.

use stepline_kv_cache::{NewBlocks, PrefixHit};

use crate::budget::StepBudget;
use crate::ids::RequestSlot;
use crate::time::Nanos;

/// How a request came into a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Entry {
    /// It was running before.
    Running,
    /// It was admitted for the first time.
    New,
    /// It was admitted again after a preemption.
    Resumed,
}

/// One scheduled request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ScheduledRequest {
    pub(crate) slot: RequestSlot,
    pub(crate) num_tokens: u32,
    pub(crate) new_blocks: NewBlocks,
    pub(crate) entry: Entry,
}

/// Scheduled requests and tokens by phase, counted while scheduling so that a summary needs no scan.
///
/// A request without output is in its prefill.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PhaseCounts {
    pub(crate) prefill_reqs: u32,
    pub(crate) decode_reqs: u32,
    pub(crate) prefill_tokens: u32,
    pub(crate) decode_tokens: u32,
}

impl PhaseCounts {
    pub(crate) const fn add(&mut self, is_prefill: bool, num_tokens: u32) {
        let (reqs, tokens) = self.of(is_prefill);
        *reqs += 1;
        *tokens += num_tokens;
    }

    pub(crate) const fn take_out(&mut self, is_prefill: bool, num_tokens: u32) {
        let (reqs, tokens) = self.of(is_prefill);
        *reqs -= 1;
        *tokens -= num_tokens;
    }

    pub(crate) const fn total_tokens(&self) -> u32 {
        self.prefill_tokens + self.decode_tokens
    }

    const fn of(&mut self, is_prefill: bool) -> (&mut u32, &mut u32) {
        if is_prefill {
            (&mut self.prefill_reqs, &mut self.prefill_tokens)
        } else {
            (&mut self.decode_reqs, &mut self.decode_tokens)
        }
    }
}

/// The step being planned. Its buffers are reused from step to step.
#[derive(Debug, Default)]
pub(crate) struct Step {
    pub(crate) now: Nanos,
    pub(crate) budget: StepBudget,
    /// Most tokens that one request may get.
    pub(crate) long_prefill_cap: Option<u32>,
    /// Running requests in running order, then admissions in order of admission.
    pub(crate) scheduled: Vec<ScheduledRequest>,
    pub(crate) counts: PhaseCounts,
    /// Whether this call preempted a request; it then admits none.
    pub(crate) has_preempted: bool,
    /// Waiting requests that the scan passed over, in queue order.
    pub(crate) set_aside: Vec<RequestSlot>,
    /// Adapters in this step.
    pub(crate) lora_ids: Vec<u32>,
    /// The lookup of the request that is being admitted.
    pub(crate) hit: PrefixHit,
}

impl Step {
    pub(crate) fn begin(&mut self, now: Nanos, budget: StepBudget, long_prefill_cap: Option<u32>) {
        self.now = now;
        self.budget = budget;
        self.long_prefill_cap = long_prefill_cap;
        self.scheduled.clear();
        self.counts = PhaseCounts::default();
        self.has_preempted = false;
        self.set_aside.clear();
        self.lora_ids.clear();
    }

    /// Applies the long-prefill cap. spec: scheduler 2.2.5, 2.4.11.
    pub(crate) fn cap(&self, num_tokens: u32) -> u32 {
        self.long_prefill_cap.map_or(num_tokens, |cap| num_tokens.min(cap))
    }
}
