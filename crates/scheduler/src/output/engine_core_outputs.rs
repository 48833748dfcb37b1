//! What clients are told.

use std::ops::Range;

use stepline_kv_cache::PrefixCacheStats;

use crate::ids::RequestHandle;
use crate::status::FinishReason;
use crate::time::Nanos;

/// What a step gave to clients. spec: requests-and-outputs 5; vLLM 0.32: `EngineCoreOutputs`.
#[derive(Clone, Debug, Default)]
pub struct EngineCoreOutputs {
    /// One record per request with new tokens or an end, in the order of the step.
    pub outputs: Vec<EngineCoreOutput>,
    /// State after the step.
    pub scheduler_stats: SchedulerStats,
    pub(crate) token_ids: Vec<u32>,
}

impl EngineCoreOutputs {
    /// The tokens of a record, cut at a stop.
    #[must_use]
    pub fn new_token_ids(&self, output: &EngineCoreOutput) -> &[u32] {
        &self.token_ids[output.token_ids.start as usize..output.token_ids.end as usize]
    }

    /// Empties all lists and keeps their memory.
    pub(crate) fn clear(&mut self) {
        self.outputs.clear();
        self.token_ids.clear();
    }
}

/// One request's record. vLLM 0.32: `EngineCoreOutput`.
///
/// Small, since a step writes one for every request that decodes: what few records carry lies behind a pointer.
#[derive(Clone, Debug)]
pub struct EngineCoreOutput {
    /// By slot; [`Scheduler::request_id`](crate::Scheduler::request_id) knows the text until the next `schedule` call.
    pub request: RequestHandle,
    pub(crate) token_ids: Range<u32>,
    /// Set in the last record.
    pub finish_reason: Option<FinishReason>,
    /// What stopped the output, if more is known than the finish reason.
    pub stop_reason: Option<StopReason>,
    pub(crate) news: Option<Box<RequestNews>>,
}

/// What a record carries now and then.
#[derive(Clone, Debug, Default)]
pub(crate) struct RequestNews {
    pub(crate) events: Vec<EngineCoreEvent>,
    pub(crate) prefill_stats: Option<PrefillStats>,
}

impl EngineCoreOutput {
    /// What happened to the request since its last record.
    #[must_use]
    pub fn events(&self) -> &[EngineCoreEvent] {
        self.news.as_ref().map_or(&[], |news| &news.events)
    }

    /// How the prompt was computed; with the first record of a request.
    #[must_use]
    pub fn prefill_stats(&self) -> Option<PrefillStats> {
        self.news.as_ref().and_then(|news| news.prefill_stats)
    }
}

/// What stopped an output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopReason {
    /// A token of the request's stop list.
    Token(u32),
    /// The repetition detector; vLLM's text is `repetition_detected`.
    RepetitionDetected,
}

/// How a prompt was computed. Counts are tokens. vLLM 0.32: `PrefillStats`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PrefillStats {
    /// Prompt tokens.
    pub num_prompt_tokens: u32,
    /// Prompt tokens found in the prefix cache at the first admission.
    pub num_cached_tokens: u32,
    /// Further prompt tokens that the cache keeps for others.
    pub num_cache_creation_tokens: u32,
}

impl PrefillStats {
    /// Prompt tokens that the model computed.
    #[must_use]
    pub const fn num_computed_tokens(&self) -> u32 {
        self.num_prompt_tokens - self.num_cached_tokens
    }
}

/// Something that happened to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EngineCoreEvent {
    /// What.
    pub event_type: EngineCoreEventType,
    /// When: of the call that did it.
    pub timestamp: Nanos,
}

/// Kinds of events, with the integers of vLLM's wire form. spec: requests-and-outputs 6.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum EngineCoreEventType {
    /// Added.
    Queued = 1,
    /// Admitted, also again.
    Scheduled = 2,
    /// Lost its blocks.
    Preempted = 3,
}

/// The scheduler after a step. spec: requests-and-outputs 7.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SchedulerStats {
    /// Running requests.
    pub num_running_reqs: usize,
    /// Waiting requests, without the deferred ones.
    pub num_waiting_reqs: usize,
    /// Waiting requests that scans have passed over.
    pub num_skipped_waiting_reqs: usize,
    /// Share of the KV blocks that requests hold, 0 ≤ x ≤ 1.
    pub kv_cache_usage: f64,
    /// Prefix-cache counters since the last statistics.
    pub prefix_cache_stats: PrefixCacheStats,
}
