//! The trace of a replay: from the flags to a tracer, and what became of its records.

use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use serde::Serialize;
use stepline_config::EngineConfig;
use stepline_engine::{StepTracer, StepTracing};
use stepline_telemetry::{ClockAnchor, SinkOptions, TelemetryHandle, TracePlan, WhenFull, build_sinks};

use crate::failure::{Failure, say};

/// How long a replay, which has the time, waits for a slow collector before it drops a span.
const LONGEST_WAIT: Duration = Duration::from_secs(10);

/// The trace of a replay; off if there is nothing to trace or nowhere to write it.
pub(crate) struct ReplayTrace {
    tracer: Option<StepTracer>,
    handle: Option<TelemetryHandle>,
}

/// What was traced.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct TraceRecord {
    batch_summaries: u64,
    request_snapshots: u64,
    journey_events: u64,
}

impl TraceRecord {
    pub(crate) fn new(tracer: &mut StepTracer) -> Self {
        let stats = tracer.stats();
        Self {
            batch_summaries: stats.num_batch_summaries,
            request_snapshots: stats.num_request_snapshots,
            journey_events: stats.num_journey_events,
        }
    }
}

/// Refuses a `--trace-out` that would stay without a trace, or that is no path.
pub(crate) fn check_trace_out(config: &EngineConfig, trace_out: Option<&Path>) -> Result<(), Failure> {
    let Some(path) = trace_out else { return Ok(()) };
    if path == Path::new("-") {
        return Err(Failure::usage(
            "--trace-out: `-` is no path: standard output has the table\n  expected: a file, device or named pipe\n  \
             remedy: give a path; /dev/stderr is one",
        ));
    }
    let observability = &config.observability;
    if observability.step_tracing_enabled || observability.enable_journey_tracing {
        return Ok(());
    }
    Err(Failure::usage(format_args!(
        "--trace-out: `{}` would stay empty, for nothing is traced\n  expected: tracing of steps or journeys\n  \
         remedy: add --step-tracing-enabled or --enable-journey-tracing, or leave --trace-out out",
        path.display()
    )))
}

impl ReplayTrace {
    /// Opens what `config` and `--trace-out` name, and passes on what the user should know.
    pub(crate) fn new(config: &EngineConfig, trace_out: Option<PathBuf>, seed: u64) -> Result<Self, Failure> {
        let observability = &config.observability;
        let steps = StepTracing::from_config(observability, seed);
        let plan = TracePlan {
            otlp_traces_endpoint: observability.otlp_traces_endpoint.clone(),
            step_closure_interval: steps.as_ref().and_then(|steps| NonZeroU32::new(steps.closure_interval)),
            enable_journey_tracing: observability.enable_journey_tracing,
        };
        // Virtual time begins now, as far as a collector is concerned.
        let anchor = ClockAnchor::new(SystemTime::now(), 0);
        let when_full = WhenFull::Wait(LONGEST_WAIT);
        let built = build_sinks(&plan, &SinkOptions { trace_out, when_full, ..SinkOptions::new(anchor) })
            .map_err(Failure::usage)?;
        for warning in &built.warnings {
            say("warning", &warning.to_string());
        }
        Ok(match built.sinks {
            None => Self { tracer: None, handle: None },
            Some(sinks) => Self {
                tracer: Some(StepTracer::new(steps, plan.enable_journey_tracing, Box::new(sinks.sink))),
                handle: Some(sinks.handle),
            },
        })
    }

    /// The tracer, to be given to the replay.
    pub(crate) fn take_tracer(&mut self) -> Option<StepTracer> {
        self.tracer.take()
    }

    /// Says what was emitted and what arrived. Anything lost is a failure: a trace was asked for.
    pub(crate) fn finish(&self, tracer: Option<&mut StepTracer>) -> Result<(), Failure> {
        let Some(handle) = &self.handle else { return Ok(()) };
        let report = handle.report();
        if let Some(otlp) = &report.otlp {
            say("note", &format!("trace: {} emitted, {} exported to {}", otlp.emitted, otlp.exported, otlp.endpoint));
        }
        if let Some(file) = &report.file {
            say(
                "note",
                &format!(
                    "trace: {} records emitted, {} written to {}",
                    file.records,
                    file.written,
                    file.path.display()
                ),
            );
        }
        let mut losses = report.losses();
        if let Some(fault) = tracer.and_then(StepTracer::take_fault).filter(|_| losses.is_empty()) {
            losses.push(fault.message);
        }
        match losses.as_slice() {
            [] => Ok(()),
            losses => Err(Failure::runtime(format_args!("the trace is incomplete: {}", losses.join("; ")))),
        }
    }
}
