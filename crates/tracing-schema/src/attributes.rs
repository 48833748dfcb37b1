//! Every attribute key.

/// The attribute keys of the reference, under its names for them.
///
/// Keys are wire format: they never change. Units and meanings stand in the tables of the records and spans that use
/// them, and in `docs/events.md`.
#[derive(Debug, Clone, Copy)]
pub struct SpanAttributes;

macro_rules! keys {
    ($($(#[doc = $doc:literal])+ $name:ident = $key:literal;)+) => {
        impl SpanAttributes {
            $($(#[doc = $doc])+ pub const $name: &'static str = $key;)+

            /// Every key, in the order of declaration.
            pub const ALL: &'static [&'static str] = &[$(Self::$name),+];
        }
    };
}

keys! {
    /// The step's number.
    STEP_ID = "step.id";
    /// When `schedule` began.
    STEP_TS_START_NS = "step.ts_start_ns";
    /// When `schedule` had decided.
    STEP_TS_END_NS = "step.ts_end_ns";
    /// How long `schedule` took.
    STEP_DURATION_US = "step.duration_us";

    /// Length of the running queue.
    QUEUE_RUNNING_DEPTH = "queue.running_depth";
    /// Length of the waiting queue.
    QUEUE_WAITING_DEPTH = "queue.waiting_depth";

    /// Scheduled requests without an output token.
    BATCH_NUM_PREFILL_REQS = "batch.num_prefill_reqs";
    /// Scheduled requests with an output token.
    BATCH_NUM_DECODE_REQS = "batch.num_decode_reqs";
    /// Scheduled tokens.
    BATCH_SCHEDULED_TOKENS = "batch.scheduled_tokens";
    /// Scheduled tokens of requests without an output token.
    BATCH_PREFILL_TOKENS = "batch.prefill_tokens";
    /// Scheduled tokens of requests with an output token.
    BATCH_DECODE_TOKENS = "batch.decode_tokens";
    /// Requests that ended since the step before.
    BATCH_NUM_FINISHED = "batch.num_finished";
    /// Requests preempted in the step.
    BATCH_NUM_PREEMPTED = "batch.num_preempted";

    /// Share of KV blocks in use.
    KV_USAGE_GPU_RATIO = "kv.usage_gpu_ratio";
    /// KV blocks of the pool.
    KV_BLOCKS_TOTAL_GPU = "kv.blocks_total_gpu";
    /// KV blocks without a reference.
    KV_BLOCKS_FREE_GPU = "kv.blocks_free_gpu";
    /// KV blocks of one request.
    KV_BLOCKS_ALLOCATED_GPU = "kv.blocks_allocated_gpu";
    /// KV blocks of one request that are in the prefix cache.
    KV_BLOCKS_CACHED_GPU = "kv.blocks_cached_gpu";

    /// The request's id, on a snapshot.
    REQUEST_ID = "request.id";
    /// The request's phase, on a snapshot.
    REQUEST_PHASE = "request.phase";
    /// Prompt tokens.
    REQUEST_NUM_PROMPT_TOKENS = "request.num_prompt_tokens";
    /// Tokens computed before the step.
    REQUEST_NUM_COMPUTED_TOKENS = "request.num_computed_tokens";
    /// Output tokens.
    REQUEST_NUM_OUTPUT_TOKENS = "request.num_output_tokens";
    /// Preemptions so far, on a snapshot.
    REQUEST_NUM_PREEMPTIONS = "request.num_preemptions";
    /// Tokens scheduled in the step.
    REQUEST_SCHEDULED_TOKENS_THIS_STEP = "request.scheduled_tokens_this_step";
    /// Prompt tokens that no prefix hit saved.
    REQUEST_EFFECTIVE_PROMPT_LEN = "request.effective_prompt_len";

    /// The type of a journey event.
    EVENT_TYPE = "event.type";
    /// When a journey event happened, in seconds.
    TS_MONOTONIC = "ts.monotonic";
    /// When a journey event happened, in nanoseconds.
    TS_MONOTONIC_NS = "ts.monotonic_ns";
    /// The step of a journey event.
    SCHEDULER_STEP = "scheduler.step";
    /// The request's phase, on a journey event.
    PHASE = "phase";
    /// Prompt tokens computed.
    PREFILL_DONE_TOKENS = "prefill.done_tokens";
    /// Prompt tokens to compute.
    PREFILL_TOTAL_TOKENS = "prefill.total_tokens";
    /// Output tokens so far.
    DECODE_DONE_TOKENS = "decode.done_tokens";
    /// Output tokens at most.
    DECODE_MAX_TOKENS = "decode.max_tokens";
    /// Preemptions so far, on a journey event.
    NUM_PREEMPTIONS = "num_preemptions";
    /// First admission or resumption.
    SCHEDULE_KIND = "schedule.kind";
    /// How the request ended.
    FINISH_STATUS = "finish.status";

    /// Number of a step span.
    SCHEDULER_SPAN_SEQUENCE = "scheduler.span_sequence";
    /// First step that a step span may hold.
    SCHEDULER_STEP_RANGE_START = "scheduler.step_range_start";
    /// Last step that a step span may hold.
    SCHEDULER_STEP_RANGE_END = "scheduler.step_range_end";
    /// Steps between two closures.
    SCHEDULER_CLOSURE_INTERVAL = "scheduler.closure_interval";

    /// The request's id, on request spans.
    GEN_AI_REQUEST_ID = "gen_ai.request.id";
    /// Sampling parameter `max_tokens`.
    GEN_AI_REQUEST_MAX_TOKENS = "gen_ai.request.max_tokens";
    /// Sampling parameter `temperature`.
    GEN_AI_REQUEST_TEMPERATURE = "gen_ai.request.temperature";
    /// Sampling parameter `top_p`.
    GEN_AI_REQUEST_TOP_P = "gen_ai.request.top_p";
    /// Sampling parameter `n`.
    GEN_AI_REQUEST_N = "gen_ai.request.n";
    /// The model that answered.
    GEN_AI_RESPONSE_MODEL = "gen_ai.response.model";
    /// Prompt tokens of the request.
    GEN_AI_USAGE_PROMPT_TOKENS = "gen_ai.usage.prompt_tokens";
    /// Output tokens of the request.
    GEN_AI_USAGE_COMPLETION_TOKENS = "gen_ai.usage.completion_tokens";
    /// Sequences returned.
    GEN_AI_USAGE_NUM_SEQUENCES = "gen_ai.usage.num_sequences";
    /// From arrival to first scheduling.
    GEN_AI_LATENCY_TIME_IN_QUEUE = "gen_ai.latency.time_in_queue";
    /// From arrival to the first output token.
    GEN_AI_LATENCY_TIME_TO_FIRST_TOKEN = "gen_ai.latency.time_to_first_token";
    /// From arrival to the last output token.
    GEN_AI_LATENCY_E2E = "gen_ai.latency.e2e";
    /// Time in the scheduler.
    GEN_AI_LATENCY_TIME_IN_SCHEDULER = "gen_ai.latency.time_in_scheduler";
    /// Time in the forward pass.
    GEN_AI_LATENCY_TIME_IN_MODEL_FORWARD = "gen_ai.latency.time_in_model_forward";
    /// Time in the execution of the model, with synchronisation and sampling.
    GEN_AI_LATENCY_TIME_IN_MODEL_EXECUTE = "gen_ai.latency.time_in_model_execute";
    /// From first scheduling to the first output token.
    GEN_AI_LATENCY_TIME_IN_MODEL_PREFILL = "gen_ai.latency.time_in_model_prefill";
    /// From the first output token to the last.
    GEN_AI_LATENCY_TIME_IN_MODEL_DECODE = "gen_ai.latency.time_in_model_decode";
    /// From first scheduling to the last output token.
    GEN_AI_LATENCY_TIME_IN_MODEL_INFERENCE = "gen_ai.latency.time_in_model_inference";
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::SpanAttributes;

    #[test]
    fn no_key_has_two_names() {
        let distinct: BTreeSet<_> = SpanAttributes::ALL.iter().collect();
        assert_eq!(distinct.len(), SpanAttributes::ALL.len());
    }
}
