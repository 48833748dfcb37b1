//! From the configuration to sinks.

use std::num::NonZeroU32;
use std::sync::{Arc, Mutex, PoisonError};

use stepline_tracing_schema::TraceSink;

use crate::error::TelemetryError;
use crate::fan_out::FanOut;
use crate::json_lines::JsonLinesSink;
use crate::options::{OtlpProtocol, SinkOptions};
use crate::report::{FileReport, TelemetryReport};

/// What is traced, and to which collector: the part of the observability configuration that concerns sinks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TracePlan {
    /// `otlp_traces_endpoint`
    pub otlp_traces_endpoint: Option<String>,
    /// `step_tracing_closure_interval`, if `step_tracing_enabled`.
    pub step_closure_interval: Option<NonZeroU32>,
    /// `enable_journey_tracing`
    pub enable_journey_tracing: bool,
}

/// Sinks if there is anything to trace, and what the user should know.
#[derive(Debug)]
pub struct Built {
    /// `None`: tracing is off.
    pub sinks: Option<BuiltSinks>,
    /// To be shown to the user.
    pub warnings: Vec<TelemetryWarning>,
}

/// A sink to give to the tracer, and a handle on what becomes of the trace.
#[derive(Debug)]
pub struct BuiltSinks {
    /// Takes the records. Deliver with [`TraceSink::shutdown`].
    pub sink: FanOut,
    /// Says what arrived, also after `sink` has been given away.
    pub handle: TelemetryHandle,
}

/// Something that a user should know before the run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TelemetryWarning {
    /// Tracing is on, and there is nowhere to write to.
    #[error(
        "tracing is on, but has no destination: nothing is traced; set otlp_traces_endpoint, or a trace file with \
         --trace-out"
    )]
    NoDestination,
    /// There is a destination, and nothing to write.
    #[error(
        "a trace destination is given, but tracing is off: nothing is traced; set step_tracing_enabled or \
         enable_journey_tracing"
    )]
    NothingTraced,
    /// The collector does not answer yet.
    #[error(
        "no collector answers at otlp_traces_endpoint `{endpoint}` (protocol {}): {fault}; going on, in the hope that \
         it will",
        protocol.as_str()
    )]
    Unreachable {
        /// The endpoint as given.
        endpoint: String,
        /// The protocol chosen.
        protocol: OtlpProtocol,
        /// What the system says.
        fault: String,
    },
}

/// A look at what has become of a trace.
#[derive(Debug, Clone, Default)]
pub struct TelemetryHandle {
    #[cfg(feature = "otlp")]
    otlp: Option<Arc<crate::otlp::Delivery>>,
    file: Option<Arc<Mutex<FileReport>>>,
}

impl TelemetryHandle {
    /// Returns the counts so far; final after the sink's shutdown.
    #[must_use]
    pub fn report(&self) -> TelemetryReport {
        TelemetryReport {
            #[cfg(feature = "otlp")]
            otlp: self.otlp.as_ref().map(|delivery| delivery.report()),
            #[cfg(not(feature = "otlp"))]
            otlp: None,
            file: self.file.as_ref().map(|report| report.lock().unwrap_or_else(PoisonError::into_inner).clone()),
        }
    }
}

/// Builds what `plan` and `options` ask for: a collector, a trace file, both, or nothing.
///
/// As in the reference, tracing without a destination is no error: it gives a warning and no sink.
///
/// # Errors
/// If a destination cannot be used: an endpoint that is no URL, a file that cannot be created. A collector that does
/// not answer is a warning, for it may come up later.
pub fn build_sinks(plan: &TracePlan, options: &SinkOptions) -> Result<Built, TelemetryError> {
    let is_tracing = plan.step_closure_interval.is_some() || plan.enable_journey_tracing;
    let has_destination = plan.otlp_traces_endpoint.is_some() || options.trace_out.is_some();
    if !is_tracing || !has_destination {
        let warnings = match (is_tracing, options.trace_out.is_some()) {
            (true, _) => vec![TelemetryWarning::NoDestination],
            // An endpoint alone is no wish to trace: other parts of a deployment may share the configuration.
            (false, true) => vec![TelemetryWarning::NothingTraced],
            (false, false) => Vec::new(),
        };
        return Ok(Built { sinks: None, warnings });
    }

    let mut parts = Parts::default();
    // The endpoint first: if it is wrong, an older trace file stays as it is.
    if let Some(endpoint) = &plan.otlp_traces_endpoint {
        parts.add_otlp(endpoint, plan, options)?;
    }
    if let Some(path) = &options.trace_out {
        let file = JsonLinesSink::create(path)?;
        parts.handle.file = Some(file.report());
        parts.sinks.push(Box::new(file));
    }
    let sinks = BuiltSinks { sink: FanOut::new(parts.sinks), handle: parts.handle };
    Ok(Built { sinks: Some(sinks), warnings: parts.warnings })
}

/// What has been built so far.
#[derive(Default)]
struct Parts {
    sinks: Vec<Box<dyn TraceSink + Send>>,
    handle: TelemetryHandle,
    warnings: Vec<TelemetryWarning>,
}

impl Parts {
    #[cfg(feature = "otlp")]
    fn add_otlp(&mut self, text: &str, plan: &TracePlan, options: &SinkOptions) -> Result<(), TelemetryError> {
        use crate::otlp::{self, Endpoint, OtlpBackend, OtlpOptions};
        use crate::span_sink::{SpanSink, SpanSinkOptions};

        let protocol = options.otlp_protocol.map_or_else(otlp::protocol_of_environment, Ok)?;
        let endpoint = Endpoint::parse(text, protocol)?;
        let otlp_options = OtlpOptions { when_full: options.when_full, shutdown_limit: options.shutdown_limit };
        let backend = OtlpBackend::new(&endpoint, otlp_options)?;
        if let Some(fault) = otlp::probe(&endpoint, options.probe_limit) {
            self.warnings.push(TelemetryWarning::Unreachable {
                endpoint: otlp::without_user_info(text),
                protocol,
                fault,
            });
        }
        self.handle.otlp = Some(backend.delivery());
        let span_options = SpanSinkOptions {
            step_closure_interval: plan.step_closure_interval,
            budget: options.budget,
            anchor: options.anchor,
        };
        self.sinks.push(Box::new(SpanSink::new(backend, span_options)));
        Ok(())
    }

    #[cfg(not(feature = "otlp"))]
    #[expect(clippy::unused_self, reason = "the same call with and without the feature")]
    fn add_otlp(&mut self, text: &str, _plan: &TracePlan, _options: &SinkOptions) -> Result<(), TelemetryError> {
        Err(TelemetryError::NoExporter { endpoint: text.to_owned() })
    }
}
