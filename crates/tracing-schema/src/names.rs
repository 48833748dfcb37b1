//! Scopes, span names, event names and headers, as the reference spells them.

/// Instrumentation scope of the step spans.
pub const STEP_SCOPE: &str = "vllm.scheduler.step";
/// Instrumentation scope of the request spans of the engine core.
pub const SCHEDULER_SCOPE: &str = "vllm.scheduler";
/// Instrumentation scope of the request spans of the API server.
pub const API_SCOPE: &str = "vllm.api";

/// What a step span's name starts with; its sequence number follows.
pub const STEP_SPAN_PREFIX: &str = "scheduler_steps_";
/// The span of a request's way through the engine core.
pub const CORE_SPAN: &str = "llm_core";
/// The span of a request in the API server, the parent of [`CORE_SPAN`].
pub const API_SPAN: &str = "llm_request";

/// The event of a sampled step: [`BatchSummary`](crate::BatchSummary).
pub const BATCH_SUMMARY: &str = "step.BATCH_SUMMARY";
/// The event of a running request in a sampled step: [`RequestSnapshot`](crate::RequestSnapshot).
pub const REQUEST_SNAPSHOT: &str = "step.REQUEST_SNAPSHOT";
/// The request was added.
pub const JOURNEY_QUEUED: &str = "journey.QUEUED";
/// The request was admitted, for the first time or again after a preemption.
pub const JOURNEY_SCHEDULED: &str = "journey.SCHEDULED";
/// The request's first output token is there.
pub const JOURNEY_FIRST_TOKEN: &str = "journey.FIRST_TOKEN";
/// The request lost its blocks and waits again.
pub const JOURNEY_PREEMPTED: &str = "journey.PREEMPTED";
/// The request ended.
pub const JOURNEY_FINISHED: &str = "journey.FINISHED";

/// The trace header that asks for a request's journey. Compared exactly, as the reference does: no other case.
pub const JOURNEY_SAMPLED_HEADER: &str = "x-vllm-journey-sampled";
/// The only value of [`JOURNEY_SAMPLED_HEADER`] that asks for it.
pub const JOURNEY_SAMPLED_VALUE: &str = "1";
/// The W3C header with the caller's span; see [`TraceParent`](crate::TraceParent).
pub const TRACEPARENT_HEADER: &str = "traceparent";

/// Returns the name of the step span number `sequence` (from 1).
#[must_use]
pub fn step_span(sequence: u64) -> String {
    format!("{STEP_SPAN_PREFIX}{sequence}")
}
