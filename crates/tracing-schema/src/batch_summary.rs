//! The record of a step.

use crate::attributes::SpanAttributes;
use crate::names;
use crate::record::{AttributeValue, Record, record};
use crate::spec::{EventSpec, STEP_SPAN, unit};

record! {
    /// What one `schedule` call decided, taken after the decision and before counters advance.
    ///
    /// A scheduled request counts as prefill iff it has no output token yet.
    #[derive(Copy)]
    pub struct BatchSummary {
        /// Number of the step, from 1; every `schedule` call counts, also an empty one.
        step_id: u64 = SpanAttributes::STEP_ID, unit::NONE;
        /// Monotonic time at which `schedule` began.
        ts_start_ns: u64 = SpanAttributes::STEP_TS_START_NS, unit::NANOSECONDS;
        /// Monotonic time at which the decision was made.
        ts_end_ns: u64 = SpanAttributes::STEP_TS_END_NS, unit::NANOSECONDS;
        /// Time between the two, rounded down: the scheduling call, not the step. 0 in a replay, where the call takes no
        /// virtual time.
        duration_us: u64 = SpanAttributes::STEP_DURATION_US, unit::MICROSECONDS;
        /// Running requests after the decision.
        running_depth: u32 = SpanAttributes::QUEUE_RUNNING_DEPTH, unit::REQUESTS;
        /// Waiting requests after the decision.
        waiting_depth: u32 = SpanAttributes::QUEUE_WAITING_DEPTH, unit::REQUESTS;
        /// Scheduled requests in prefill.
        num_prefill_reqs: u32 = SpanAttributes::BATCH_NUM_PREFILL_REQS, unit::REQUESTS;
        /// Scheduled requests in decode.
        num_decode_reqs: u32 = SpanAttributes::BATCH_NUM_DECODE_REQS, unit::REQUESTS;
        /// Tokens scheduled.
        scheduled_tokens: u32 = SpanAttributes::BATCH_SCHEDULED_TOKENS, unit::TOKENS;
        /// Tokens scheduled for requests in prefill.
        prefill_tokens: u32 = SpanAttributes::BATCH_PREFILL_TOKENS, unit::TOKENS;
        /// Tokens scheduled for requests in decode.
        decode_tokens: u32 = SpanAttributes::BATCH_DECODE_TOKENS, unit::TOKENS;
        /// Requests that ended between the step before and this one.
        num_finished: u32 = SpanAttributes::BATCH_NUM_FINISHED, unit::REQUESTS;
        /// Requests preempted in this step.
        num_preempted: u32 = SpanAttributes::BATCH_NUM_PREEMPTED, unit::REQUESTS;
        /// Share of the KV blocks that are in use, 0 to 1: 1.0 - free / total in double precision.
        kv_usage_gpu_ratio: f64 = SpanAttributes::KV_USAGE_GPU_RATIO, unit::RATIO;
        /// KV blocks of the pool, without the null block.
        kv_blocks_total_gpu: u32 = SpanAttributes::KV_BLOCKS_TOTAL_GPU, unit::BLOCKS;
        /// KV blocks in the free queue; cached blocks without a reference are among them.
        kv_blocks_free_gpu: u32 = SpanAttributes::KV_BLOCKS_FREE_GPU, unit::BLOCKS;
    }
}

pub(crate) const EVENT: EventSpec = EventSpec {
    name: names::BATCH_SUMMARY,
    span: STEP_SPAN.name,
    meaning: "One sampled step: what it scheduled, the queues and the KV cache.",
    line_only: &[],
    attributes: BatchSummary::ATTRIBUTES,
};

impl Record for BatchSummary {
    fn event_name(&self) -> &'static str {
        names::BATCH_SUMMARY
    }

    fn for_each_attribute(&self, visit: impl FnMut(&'static str, AttributeValue<'_>)) {
        self.visit_fields(visit);
    }
}
