//! What the executor is told.

use std::ops::Range;
use std::sync::Arc;

use stepline_kv_cache::BlockId;

use crate::ids::{RequestHandle, RequestRef};
use crate::request::{LoraRequest, Request, SamplingParams};

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
