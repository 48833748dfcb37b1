//! A trace to send, and how to send it.
#![allow(dead_code, reason = "each test file uses its part")]

use std::num::NonZeroU32;
use std::time::{Duration, SystemTime};

use stepline_telemetry::{ClockAnchor, OtlpProtocol, SinkOptions, TracePlan};
use stepline_tracing_schema::{
    BatchSummary, FinishStatus, JourneyEvent, JourneyEventKind, JourneyStart, RequestPhase, RequestSnapshot,
    ScheduleKind, SinkError, TraceParent, TraceSink,
};

pub(crate) fn plan(endpoint: Option<String>) -> TracePlan {
    TracePlan {
        otlp_traces_endpoint: endpoint,
        step_closure_interval: NonZeroU32::new(10),
        enable_journey_tracing: true,
    }
}

pub(crate) fn options(protocol: OtlpProtocol) -> SinkOptions {
    let anchor = ClockAnchor::new(SystemTime::UNIX_EPOCH + Duration::from_secs(1_000), 0);
    SinkOptions { otlp_protocol: Some(protocol), ..SinkOptions::new(anchor) }
}

pub(crate) fn summary(step_id: u64, running_depth: u32) -> BatchSummary {
    BatchSummary {
        step_id,
        ts_start_ns: step_id * 1_000,
        ts_end_ns: step_id * 1_000 + 500,
        duration_us: 0,
        running_depth,
        waiting_depth: 2,
        num_prefill_reqs: 0,
        num_decode_reqs: running_depth,
        scheduled_tokens: running_depth,
        prefill_tokens: 0,
        decode_tokens: running_depth,
        num_finished: 0,
        num_preempted: 0,
        kv_usage_gpu_ratio: 0.25,
        kv_blocks_total_gpu: 100,
        kv_blocks_free_gpu: 75,
    }
}

pub(crate) fn snapshot(step_id: u64, request_id: &str) -> RequestSnapshot {
    RequestSnapshot {
        step_id,
        request_id: request_id.into(),
        phase: RequestPhase::Decode,
        num_prompt_tokens: 10,
        num_computed_tokens: 12,
        num_output_tokens: 3,
        num_preemptions: 1,
        scheduled_tokens_this_step: 1,
        kv_blocks_allocated_gpu: 2,
        kv_blocks_cached_gpu: 1,
        effective_prompt_len: Some(8),
    }
}

pub(crate) fn journey(request_id: &str, kind: JourneyEventKind) -> JourneyEvent {
    JourneyEvent {
        request_id: request_id.into(),
        kind,
        ts_monotonic_ns: 1_500_000_000,
        scheduler_step: 1,
        phase: RequestPhase::Prefill,
        prefill_done_tokens: 0,
        prefill_total_tokens: 10,
        decode_done_tokens: 0,
        decode_max_tokens: 4,
        num_preemptions: 0,
    }
}

/// Sends `num_steps` steps of `running_depth` requests, all of them sampled, with an interval of 10.
pub(crate) fn send_steps(sink: &mut impl TraceSink, num_steps: u64, running_depth: u32) -> Result<(), SinkError> {
    for step_id in 1..=num_steps {
        sink.batch_summary(&summary(step_id, running_depth))?;
        for request in 0..running_depth {
            sink.request_snapshot(&snapshot(step_id, &format!("request-{request}")))?;
        }
        if step_id.is_multiple_of(10) {
            sink.interval_closed(step_id, step_id * 1_000 + 600)?;
        }
    }
    Ok(())
}

/// Sends the journey of a request, three events long.
pub(crate) fn send_journey(
    sink: &mut impl TraceSink,
    request_id: &str,
    traceparent: Option<TraceParent>,
) -> Result<(), SinkError> {
    sink.journey_started(&JourneyStart { request_id: request_id.into(), ts_monotonic_ns: 1, traceparent })?;
    for kind in [
        JourneyEventKind::Queued,
        JourneyEventKind::Scheduled(ScheduleKind::First),
        JourneyEventKind::Finished(FinishStatus::Length),
    ] {
        sink.journey_event(&journey(request_id, kind))?;
    }
    Ok(())
}
