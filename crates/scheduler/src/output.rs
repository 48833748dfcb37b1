//! What the scheduler tells the executor and the clients, under vLLM's field names.

use std::ops::Range;
use std::sync::Arc;

use stepline_kv_cache::{BlockId, PrefixCacheStats};

use crate::ids::{RequestHandle, RequestRef};
use crate::request::{LoraRequest, Request, SamplingParams};
use crate::status::FinishReason;
use crate::time::Nanos;

/// The plan of a step. spec: scheduler 2.6; vLLM 0.32: `SchedulerOutput`.
#[derive(Clone, Debug, Default)]
pub struct SchedulerOutput {
    /// Number of the `schedule` call, from 1. Empty steps count.
    pub step: u64,
    /// Requests scheduled for the first time, in order of admission.
    pub scheduled_new_reqs: Vec<NewRequestData>,
    /// Requests scheduled before: running ones in running order, then resumed ones.
    pub scheduled_cached_reqs: Vec<CachedRequestData>,
    /// Tokens of every scheduled request: running ones in running order, then admissions in order of admission.
    pub num_scheduled_tokens: Vec<ScheduledTokens>,
    /// Sum of [`num_scheduled_tokens`](Self::num_scheduled_tokens).
    pub total_num_scheduled_tokens: u32,
    /// Requests that ended since the last step. Their handles lose their meaning with this call.
    pub finished_req_ids: Vec<RequestRef>,
    /// Requests preempted since the last step; one that a reset preempted may be resumed in this step.
    pub preempted_req_ids: Vec<RequestRef>,
    /// Blocks of all requests of this step, one behind the other.
    block_ids: Vec<BlockId>,
}

/// A request that the executor does not know yet.
#[derive(Clone, Debug)]
pub struct NewRequestData {
    /// By slot and by text.
    pub request: RequestRef,
    /// The prompt.
    pub prompt_token_ids: Arc<[u32]>,
    /// When the output ends.
    pub sampling_params: Arc<SamplingParams>,
    /// The adapter to use.
    pub lora_request: Option<LoraRequest>,
    /// Tokens found in the prefix cache.
    pub num_computed_tokens: u32,
    block_ids: Range<u32>,
}

/// A request that the executor knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CachedRequestData {
    /// By slot.
    pub request: RequestHandle,
    /// Admitted again after a preemption: the blocks replace the table instead of extending it.
    pub resumed: bool,
    /// Tokens computed before this step.
    pub num_computed_tokens: u32,
    /// Output tokens before this step.
    pub num_output_tokens: u32,
    block_ids: Range<u32>,
}

/// Tokens of one request in a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScheduledTokens {
    /// By slot.
    pub request: RequestHandle,
    /// At least 1.
    pub num_tokens: u32,
    /// Whether the step ends with the last known token, so that the model samples the next one.
    pub samples: bool,
}

impl SchedulerOutput {
    /// The whole block table of a new request.
    #[must_use]
    pub fn block_ids(&self, request: &NewRequestData) -> &[BlockId] {
        self.blocks_at(&request.block_ids)
    }

    /// The blocks to append to a request's table, or its whole table if it was resumed. Often empty.
    #[must_use]
    pub fn new_block_ids(&self, request: &CachedRequestData) -> &[BlockId] {
        self.blocks_at(&request.block_ids)
    }

    /// Whether the step computes nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.num_scheduled_tokens.is_empty()
    }

    fn blocks_at(&self, range: &Range<u32>) -> &[BlockId] {
        &self.block_ids[range.start as usize..range.end as usize]
    }

    /// Empties all lists and keeps their memory.
    pub(crate) fn clear(&mut self) {
        self.scheduled_new_reqs.clear();
        self.scheduled_cached_reqs.clear();
        self.num_scheduled_tokens.clear();
        self.total_num_scheduled_tokens = 0;
        self.finished_req_ids.clear();
        self.preempted_req_ids.clear();
        self.block_ids.clear();
    }

    fn push_blocks(&mut self, blocks: &[BlockId]) -> Range<u32> {
        if blocks.is_empty() {
            return 0..0;
        }
        let end = |len: usize| u32::try_from(len).expect("a step names fewer than 2^32 blocks");
        let start = end(self.block_ids.len());
        self.block_ids.extend_from_slice(blocks);
        start..end(self.block_ids.len())
    }

    pub(crate) fn push_new(
        &mut self,
        reference: RequestRef,
        request: &Request,
        num_computed_tokens: u32,
        blocks: &[BlockId],
    ) {
        let block_ids = self.push_blocks(blocks);
        self.scheduled_new_reqs.push(NewRequestData {
            request: reference,
            prompt_token_ids: request.prompt_token_ids.clone(),
            sampling_params: request.sampling.clone(),
            lora_request: request.lora.clone(),
            num_computed_tokens,
            block_ids,
        });
    }

    pub(crate) fn push_cached(
        &mut self,
        request: RequestHandle,
        resumed: bool,
        num_computed_tokens: u32,
        num_output_tokens: u32,
        blocks: &[BlockId],
    ) {
        let block_ids = self.push_blocks(blocks);
        let cached = CachedRequestData { request, resumed, num_computed_tokens, num_output_tokens, block_ids };
        self.scheduled_cached_reqs.push(cached);
    }
}

/// What the model returned for a step: a list of tokens for every entry of
/// [`SchedulerOutput::num_scheduled_tokens`], in that order.
///
/// An entry whose [`samples`](ScheduledTokens::samples) is false gets an empty list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ModelRunnerOutput {
    token_ids: Vec<u32>,
    /// Where each request's list ends in `token_ids`.
    ends: Vec<usize>,
}

impl ModelRunnerOutput {
    /// Appends the list of the next request.
    pub fn push(&mut self, sampled_token_ids: &[u32]) {
        self.token_ids.extend_from_slice(sampled_token_ids);
        self.ends.push(self.token_ids.len());
    }

    /// Number of lists.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there are no lists.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The lists, in order.
    #[must_use]
    pub fn sampled_token_ids(&self) -> impl ExactSizeIterator<Item = &[u32]> {
        let mut start = 0;
        self.ends.iter().map(move |end| &self.token_ids[std::mem::replace(&mut start, *end)..*end])
    }

    /// Empties all lists and keeps their memory.
    pub fn clear(&mut self) {
        self.token_ids.clear();
        self.ends.clear();
    }
}

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
