//! The limits of a scheduler, resolved once from the configuration.

use stepline_config::{EngineConfig, SchedulingPolicy};

/// What the passes over running and waiting requests obey. Counts are tokens unless named otherwise.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Tokens that a step may schedule.
    pub(crate) max_num_scheduled_tokens: u32,
    /// Tokens that the model can take in a step.
    pub(crate) max_num_batched_tokens: u32,
    /// Requests that may run at a time.
    pub(crate) max_num_active_seqs: u32,
    pub(crate) max_model_len: u32,
    pub(crate) long_prefill_token_threshold: u32,
    pub(crate) long_prefill_token_threshold_adaptive: bool,
    pub(crate) enable_chunked_prefill: bool,
    pub(crate) scheduler_reserve_full_isl: bool,
    pub(crate) policy: SchedulingPolicy,
    /// Adapters per step at most; `None` if adapters are not limited.
    pub(crate) max_loras: Option<u32>,
}

impl Limits {
    pub(crate) const fn new(config: &EngineConfig) -> Self {
        let scheduler = &config.scheduler;
        Self {
            max_num_scheduled_tokens: scheduler.max_num_scheduled_tokens,
            max_num_batched_tokens: scheduler.max_num_batched_tokens,
            max_num_active_seqs: scheduler.max_num_active_seqs,
            max_model_len: config.model.max_model_len,
            long_prefill_token_threshold: scheduler.long_prefill_token_threshold,
            long_prefill_token_threshold_adaptive: scheduler.long_prefill_token_threshold_adaptive,
            enable_chunked_prefill: scheduler.enable_chunked_prefill,
            scheduler_reserve_full_isl: scheduler.scheduler_reserve_full_isl,
            policy: scheduler.policy,
            max_loras: match &config.lora {
                Some(lora) => Some(lora.max_loras),
                None => None,
            },
        }
    }

    /// Returns the most tokens that one request may get in a step when `num_eligible` requests run or wait.
    ///
    /// spec: scheduler 2.1.3.
    pub(crate) fn long_prefill_cap(&self, num_eligible: usize) -> Option<u32> {
        let threshold = self.long_prefill_token_threshold;
        if threshold == 0 || num_eligible <= 1 {
            return None;
        }
        if !self.long_prefill_token_threshold_adaptive {
            return Some(threshold);
        }
        let num_eligible = u32::try_from(num_eligible).unwrap_or(u32::MAX);
        Some(threshold.max(self.max_num_batched_tokens / num_eligible))
    }
}
