//! The record of one running request in a step.

use std::sync::Arc;

use crate::attributes::SpanAttributes;
use crate::names;
use crate::record::{AttributeValue, Record, record};
use crate::spec::{EventSpec, STEP_SPAN, unit};
use crate::string_enum::string_enum;

string_enum! {
    /// Where a request is on its way.
    pub enum RequestPhase("request phase") {
        /// Not admitted yet. Only on the journey event `QUEUED`.
        Waiting = "WAITING",
        /// No output token yet.
        Prefill = "PREFILL",
        /// At least one output token, also while the prompt is recomputed after a preemption.
        Decode = "DECODE",
    }
}

impl RequestPhase {
    /// Returns the phase of an admitted request with `num_output_tokens`.
    #[must_use]
    pub const fn of_admitted(num_output_tokens: u32) -> Self {
        if num_output_tokens == 0 { Self::Prefill } else { Self::Decode }
    }
}

record! {
    /// One running request in a step, taken after the decision and before counters advance.
    pub struct RequestSnapshot {
        /// Number of the step; the summary of the same step has it too.
        step_id: u64 = SpanAttributes::STEP_ID, unit::NONE;
        /// The request's id.
        request_id: Arc<str> = SpanAttributes::REQUEST_ID, unit::NONE;
        /// PREFILL iff there is no output token yet, else DECODE.
        phase: RequestPhase = SpanAttributes::REQUEST_PHASE, unit::NONE;
        /// Prompt tokens.
        num_prompt_tokens: u32 = SpanAttributes::REQUEST_NUM_PROMPT_TOKENS, unit::TOKENS;
        /// Tokens computed before this step.
        num_computed_tokens: u32 = SpanAttributes::REQUEST_NUM_COMPUTED_TOKENS, unit::TOKENS;
        /// Output tokens before this step.
        num_output_tokens: u32 = SpanAttributes::REQUEST_NUM_OUTPUT_TOKENS, unit::TOKENS;
        /// Preemptions so far.
        num_preemptions: u32 = SpanAttributes::REQUEST_NUM_PREEMPTIONS, unit::PREEMPTIONS;
        /// Tokens scheduled in this step; 0 if the request got none.
        scheduled_tokens_this_step: u32 = SpanAttributes::REQUEST_SCHEDULED_TOKENS_THIS_STEP, unit::TOKENS;
        /// KV blocks in the request's block table.
        kv_blocks_allocated_gpu: u32 = SpanAttributes::KV_BLOCKS_ALLOCATED_GPU, unit::BLOCKS;
        /// Full KV blocks of the request that are registered in the prefix cache; 0 without prefix caching.
        kv_blocks_cached_gpu: u32 = SpanAttributes::KV_BLOCKS_CACHED_GPU, unit::BLOCKS;
        /// Prompt tokens less the cached ones at first admission. Missing if that is not positive.
        effective_prompt_len: Option<u32> = SpanAttributes::REQUEST_EFFECTIVE_PROMPT_LEN, unit::TOKENS;
    }
}

pub(crate) const EVENT: EventSpec = EventSpec {
    name: names::REQUEST_SNAPSHOT,
    span: STEP_SPAN.name,
    meaning: "One running request in a step that both samplers took. Follows the step's summary, in running order.",
    line_only: &[],
    attributes: RequestSnapshot::ATTRIBUTES,
};

impl Record for RequestSnapshot {
    fn event_name(&self) -> &'static str {
        names::REQUEST_SNAPSHOT
    }

    fn for_each_attribute(&self, visit: impl FnMut(&'static str, AttributeValue<'_>)) {
        self.visit_fields(visit);
    }
}
