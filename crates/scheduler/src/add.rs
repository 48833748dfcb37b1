//! Taking in requests.

use std::sync::Arc;

use stepline_kv_cache::{ExtraKeys, HashChain};

use crate::ids::{RequestHandle, RequestId};
use crate::output::EngineCoreEventType;
use crate::request::{NewRequest, Request, RequestState};
use crate::scheduler::Scheduler;
use crate::status::RequestStatus;
use crate::time::Nanos;
use crate::trace::StepTrace;

/// Why a request was not taken in. The scheduler is as it was before.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AddRequestError {
    /// The id is in use.
    #[error("request `{id}`: a request with this id has not ended yet; ids must be unique")]
    DuplicateId {
        /// The request.
        id: RequestId,
    },
    /// There is nothing to compute.
    #[error("request `{id}`: the prompt is empty, expected at least 1 token")]
    EmptyPrompt {
        /// The request.
        id: RequestId,
    },
    /// No output token would fit.
    #[error(
        "request `{id}`: a prompt of {num_prompt_tokens} tokens leaves no room in max_model_len {max_model_len}; \
         shorten the prompt or raise max_model_len"
    )]
    PromptTooLong {
        /// The request.
        id: RequestId,
        /// Length of its prompt, tokens.
        num_prompt_tokens: usize,
        /// The limit, tokens; a prompt must be shorter.
        max_model_len: u32,
    },
    /// The output could have no token.
    #[error("request `{id}`: max_tokens is 0, expected at least 1")]
    NoOutput {
        /// The request.
        id: RequestId,
    },
    /// The output would have to be longer than it may be.
    #[error("request `{id}`: min_tokens {min_tokens} is greater than max_tokens {max_tokens}")]
    MinTokens {
        /// The request.
        id: RequestId,
        /// As asked for.
        min_tokens: u32,
        /// As asked for, or what `max_model_len` leaves.
        max_tokens: u32,
    },
    /// The adapter is not one.
    #[error("request `{id}`: a LoRA adapter needs an id of at least 1, a name and a path; got id {lora_id}")]
    Lora {
        /// The request.
        id: RequestId,
        /// The adapter's id.
        lora_id: u32,
    },
    /// The repetition detector needs something to compare with.
    #[error("request `{id}`: repetition_detection has min_count {min_count}, expected at least 2")]
    RepetitionCount {
        /// The request.
        id: RequestId,
        /// As asked for.
        min_count: u32,
    },
}

impl Scheduler {
    /// Puts a request at the end of the waiting queue (or where its priority says). O(prompt tokens).
    ///
    /// A request that the cache can never hold is taken in like any other, as in vLLM: it waits for ever and, at the
    /// head of the queue, so does everybody behind it. [`fits_cache`](Self::fits_cache) tells beforehand.
    ///
    /// # Errors
    /// If the id is in use or the request breaks a limit.
    ///
    /// spec: scheduler 8, requests-and-outputs 1; vLLM 0.32: `Scheduler.add_request`.
    pub fn add_request(
        &mut self,
        new: NewRequest,
        now: Nanos,
        trace: &mut impl StepTrace,
    ) -> Result<RequestHandle, AddRequestError> {
        let (num_prompt_tokens, max_tokens) = self.validate(&new)?;
        let state = self.initial_state(&new, num_prompt_tokens, max_tokens);
        let request = self.initial_request(new, now);
        let slot = self.requests.insert(state, request);
        self.extend_hashes(slot);
        self.waiting.push_back(slot, &self.requests);
        self.add_event(slot, EngineCoreEventType::Queued, now);
        trace.queued(&self.traced(slot), now);
        Ok(self.requests.handle(slot))
    }

    /// Whether the cache, when empty, has room for a request with these token counts.
    #[must_use]
    pub fn fits_cache(&self, num_prompt_tokens: u32, max_tokens: u32) -> bool {
        self.num_blocks_for_request(num_prompt_tokens, max_tokens) <= self.kv.step_summary().blocks_total_gpu
    }

    /// Returns the blocks that a request with these token counts holds at its end.
    ///
    /// Its last token is sampled and never computed, so it needs no slot.
    #[must_use]
    pub fn num_blocks_for_request(&self, num_prompt_tokens: u32, max_tokens: u32) -> u32 {
        let num_tokens = num_prompt_tokens.saturating_add(max_tokens).min(self.limits.max_model_len);
        self.kv.blocks_for(num_tokens.saturating_sub(1))
    }

    /// Returns the prompt length and the resolved `max_tokens`.
    fn validate(&self, new: &NewRequest) -> Result<(u32, u32), AddRequestError> {
        let id = || new.id.clone();
        let max_model_len = self.limits.max_model_len;
        if self.requests.find(new.id.as_str()).is_some() {
            return Err(AddRequestError::DuplicateId { id: id() });
        }
        if new.prompt_token_ids.is_empty() {
            return Err(AddRequestError::EmptyPrompt { id: id() });
        }
        let num_prompt_tokens = match u32::try_from(new.prompt_token_ids.len()) {
            Ok(len) if len < max_model_len => len,
            _ => {
                let num_prompt_tokens = new.prompt_token_ids.len();
                return Err(AddRequestError::PromptTooLong { id: id(), num_prompt_tokens, max_model_len });
            }
        };
        if let Some(lora) = &new.lora
            && (lora.id == 0 || lora.name.is_empty() || lora.path.is_empty())
        {
            return Err(AddRequestError::Lora { id: id(), lora_id: lora.id });
        }
        let max_tokens = new.sampling.max_tokens.unwrap_or(max_model_len - num_prompt_tokens);
        let min_tokens = new.sampling.min_tokens;
        if max_tokens == 0 {
            return Err(AddRequestError::NoOutput { id: id() });
        }
        if min_tokens > max_tokens {
            return Err(AddRequestError::MinTokens { id: id(), min_tokens, max_tokens });
        }
        match new.sampling.repetition_detection {
            Some(rule) if rule.min_count < 2 => {
                Err(AddRequestError::RepetitionCount { id: id(), min_count: rule.min_count })
            }
            _ => Ok((num_prompt_tokens, max_tokens)),
        }
    }

    fn initial_state(&self, new: &NewRequest, num_prompt_tokens: u32, max_tokens: u32) -> RequestState {
        RequestState {
            num_tokens: num_prompt_tokens,
            num_prompt_tokens,
            num_computed_tokens: 0,
            num_scheduled_tokens: 0,
            num_in_flight: 0,
            num_stale: 0,
            num_preemptions: 0,
            max_tokens,
            next_hash_at: if self.kv.config().enable_caching { 0 } else { u32::MAX },
            generation: 0,
            eos_token_id: new.sampling.eos_token_id,
            status: RequestStatus::Waiting,
            drop_stale: false,
            deferred: false,
            has_news: true,
            has_stop_rules: !new.sampling.stop_token_ids.is_empty() || new.sampling.repetition_detection.is_some(),
        }
    }

    fn initial_request(&mut self, new: NewRequest, now: Nanos) -> Request {
        let lora = new.lora.as_ref().map(|lora| (&*lora.name, &*lora.path));
        let extra_keys = ExtraKeys::new(lora, new.cache_salt.as_deref());
        let sequence = self.next_sequence;
        self.next_sequence += 1;
        Request {
            output_token_ids: Vec::new(),
            block_hashes: HashChain::default(),
            id: new.id,
            prompt_token_ids: new.prompt_token_ids,
            sampling: Arc::new(new.sampling),
            extra_keys,
            lora: new.lora,
            journey: new.journey,
            arrival_time: new.arrival_time.unwrap_or(now),
            priority: new.priority,
            skip_reading_prefix_cache: new.skip_reading_prefix_cache,
            sequence,
            num_cached_tokens: None,
            prefill_done_tokens: 0,
            has_emitted: false,
            events: Vec::new(),
        }
    }
}
