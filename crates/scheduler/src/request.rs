//! What a request asks for, and what the scheduler keeps of it.

use std::sync::Arc;

use stepline_kv_cache::{ExtraKeys, HashChain, TokenView};
use stepline_tracing_schema::{TraceParent, names};

use crate::ids::RequestId;
use crate::output::EngineCoreEvent;
use crate::status::RequestStatus;
use crate::time::Nanos;

/// A request as it is handed to the scheduler. spec: requests-and-outputs 1.
#[derive(Clone, Debug)]
pub struct NewRequest {
    /// Unique among the requests that have not ended.
    pub id: RequestId,
    /// Not empty, and shorter than `max_model_len`.
    pub prompt_token_ids: Arc<[u32]>,
    /// When and how the output ends.
    pub sampling: SamplingParams,
    /// Lower goes first; counts under the priority policy only.
    pub priority: i32,
    /// Breaks ties of priority, earlier first; any clock, only the order matters. `None`: the time of the call that adds
    /// the request. Under the priority policy give each request its own: vLLM's rules let requests of equal priority and
    /// arrival preempt each other for ever.
    pub arrival_time: Option<Nanos>,
    /// Adapter; its requests share prefixes only with each other.
    pub lora: Option<LoraRequest>,
    /// Requests share prefixes only with requests of the same salt.
    pub cache_salt: Option<Arc<str>>,
    /// The prefix cache is not read for this request; its blocks are cached all the same.
    pub skip_reading_prefix_cache: bool,
    /// Set if the journey of this request is traced.
    pub journey: Option<JourneyContext>,
}

impl NewRequest {
    /// A request with vLLM's defaults: priority 0, no adapter, no salt, not traced.
    pub fn new(id: impl Into<RequestId>, prompt_token_ids: impl Into<Arc<[u32]>>, sampling: SamplingParams) -> Self {
        Self {
            id: id.into(),
            prompt_token_ids: prompt_token_ids.into(),
            sampling,
            priority: 0,
            arrival_time: None,
            lora: None,
            cache_salt: None,
            skip_reading_prefix_cache: false,
            journey: None,
        }
    }
}

/// An adapter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoraRequest {
    /// Name, part of the block hash.
    pub name: Arc<str>,
    /// Identity in a batch, at least 1.
    pub id: u32,
    /// Where its weights are, part of the block hash; not empty.
    pub path: Arc<str>,
}

/// That a request's journey is traced, and under which remote span.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JourneyContext {
    /// The caller's span, from its W3C `traceparent` header.
    pub traceparent: Option<TraceParent>,
}

impl JourneyContext {
    /// Reads a request's trace headers: its journey is traced iff `x-vllm-journey-sampled` is exactly `1`.
    ///
    /// Names are compared exactly, as in the reference. A `traceparent` that is not well-formed counts as none.
    pub fn from_headers<'a>(headers: impl IntoIterator<Item = (&'a str, &'a str)>) -> Option<Self> {
        let mut sampled = false;
        let mut traceparent = None;
        for (name, value) in headers {
            match name {
                names::JOURNEY_SAMPLED_HEADER => sampled = value == names::JOURNEY_SAMPLED_VALUE,
                names::TRACEPARENT_HEADER => traceparent = value.parse().ok(),
                _ => {}
            }
        }
        sampled.then_some(Self { traceparent })
    }
}

/// When an output ends. spec: requests-and-outputs 4.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SamplingParams {
    /// Output tokens at most; `None` = as many as fit `max_model_len`. At least 1.
    pub max_tokens: Option<u32>,
    /// The repetition detector is off below this many output tokens. It does not guard the stop tokens: the sampler
    /// masks those.
    pub min_tokens: u32,
    /// Ends the output; `None` = end of sequence is ignored.
    pub eos_token_id: Option<u32>,
    /// Further tokens that end the output.
    pub stop_token_ids: Vec<u32>,
    /// Ends an output that repeats itself.
    pub repetition_detection: Option<RepetitionDetection>,
}

/// Ends an output whose last tokens are some pattern, repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RepetitionDetection {
    /// Longest pattern, tokens.
    pub max_pattern_size: u32,
    /// Shortest pattern, tokens; 0 counts as 1.
    pub min_pattern_size: u32,
    /// Repetitions; at least 2.
    pub min_count: u32,
}

/// The counters of a live request that every step touches: one cache line.
#[derive(Clone, Debug)]
#[repr(align(64))]
pub(crate) struct RequestState {
    /// Prompt and output tokens known.
    pub(crate) num_tokens: u32,
    pub(crate) num_prompt_tokens: u32,
    /// Tokens whose KV counts as computed; advances when a step is scheduled, not when it returns.
    pub(crate) num_computed_tokens: u32,
    /// Tokens scheduled in the step that is being planned; 0 between steps.
    pub(crate) num_scheduled_tokens: u32,
    /// Tokens of steps that were scheduled and have not been processed.
    pub(crate) num_in_flight: u32,
    /// Tokens in flight when the request was preempted that have not drained yet.
    pub(crate) num_stale: u32,
    pub(crate) num_preemptions: u32,
    pub(crate) max_tokens: u32,
    /// The number of known tokens at which the next block hash is due; `u32::MAX` without caching.
    pub(crate) next_hash_at: u32,
    pub(crate) generation: u32,
    pub(crate) eos_token_id: Option<u32>,
    pub(crate) status: RequestStatus,
    /// Stale output is thrown away instead of delivered.
    pub(crate) drop_stale: bool,
    /// A scan of the waiting queue passed this request over.
    pub(crate) deferred: bool,
    /// The next output record carries something from the cold part: the first record, or events.
    pub(crate) has_news: bool,
    /// Stopping needs the cold part: stop ids or the repetition detector.
    pub(crate) has_stop_rules: bool,
}

impl RequestState {
    pub(crate) const fn num_output_tokens(&self) -> u32 {
        self.num_tokens - self.num_prompt_tokens
    }
}

/// The rest of a live request.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) output_token_ids: Vec<u32>,
    pub(crate) block_hashes: HashChain,
    pub(crate) id: RequestId,
    pub(crate) prompt_token_ids: Arc<[u32]>,
    pub(crate) sampling: Arc<SamplingParams>,
    pub(crate) extra_keys: Option<ExtraKeys>,
    pub(crate) lora: Option<LoraRequest>,
    pub(crate) journey: Option<JourneyContext>,
    pub(crate) arrival_time: Nanos,
    pub(crate) priority: i32,
    pub(crate) skip_reading_prefix_cache: bool,
    /// Order of arrival at the scheduler.
    pub(crate) sequence: u64,
    /// The hit of the last admission attempt before the first preemption.
    pub(crate) num_cached_tokens: Option<u32>,
    /// Highest number of prompt tokens ever computed while there was no output.
    pub(crate) prefill_done_tokens: u32,
    /// Whether the first output record has been made.
    pub(crate) has_emitted: bool,
    pub(crate) events: Vec<EngineCoreEvent>,
}

impl Request {
    pub(crate) fn lora_id(&self) -> Option<u32> {
        self.lora.as_ref().map(|lora| lora.id)
    }

    pub(crate) fn tokens(&self) -> TokenView<'_> {
        TokenView { prompt: &self.prompt_token_ids, output: &self.output_token_ids }
    }
}

#[cfg(test)]
mod tests {
    use super::RequestState;

    #[test]
    fn the_counters_of_a_request_are_one_cache_line() {
        assert_eq!(size_of::<RequestState>(), 64);
    }
}
