//! What a caller decides besides the configuration.

use std::path::PathBuf;
use std::time::Duration;

use crate::clock_anchor::ClockAnchor;
use crate::span_sink::SpanBudget;

/// How to build sinks.
#[derive(Debug, Clone)]
pub struct SinkOptions {
    /// Maps the engine's time to wall-clock time.
    pub anchor: ClockAnchor,
    /// A file for the trace, in JSON lines. It is emptied if it exists.
    pub trace_out: Option<PathBuf>,
    /// How to talk to the collector. `None`: as `OTEL_EXPORTER_OTLP_TRACES_PROTOCOL` or `OTEL_EXPORTER_OTLP_PROTOCOL`
    /// says, else gRPC.
    pub otlp_protocol: Option<OtlpProtocol>,
    /// When to close a span early. `None`: never, so that long intervals may not fit a message.
    pub budget: Option<SpanBudget>,
    /// What to do when the collector is slower than the engine.
    pub when_full: WhenFull,
    /// How long to look for the collector at the start.
    pub probe_limit: Duration,
    /// How long the last delivery may take, and so the shutdown.
    pub shutdown_limit: Duration,
}

impl SinkOptions {
    /// The usual: no file, protocol of the environment, default budget, drop when full, a second to look for the
    /// collector and ten for the last delivery.
    #[must_use]
    pub fn new(anchor: ClockAnchor) -> Self {
        Self {
            anchor,
            trace_out: None,
            otlp_protocol: None,
            budget: Some(SpanBudget::default()),
            when_full: WhenFull::Drop,
            probe_limit: Duration::from_secs(1),
            shutdown_limit: Duration::from_secs(10),
        }
    }
}

/// A transport of OTLP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OtlpProtocol {
    /// gRPC. The default, as in vLLM.
    Grpc,
    /// HTTP with protobuf bodies.
    HttpProtobuf,
}

impl OtlpProtocol {
    /// Returns the value that `OTEL_EXPORTER_OTLP_PROTOCOL` has for this protocol.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Grpc => "grpc",
            Self::HttpProtobuf => "http/protobuf",
        }
    }
}

/// What to do with a span when too many wait to be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WhenFull {
    /// Drop it, and count it: for an engine that serves.
    Drop,
    /// Wait for room, at most this long, then drop it: for a replay, which has the time. After a failed export nothing
    /// waits any more, so that a dead collector costs one time-out and not one for each span.
    Wait(Duration),
}
