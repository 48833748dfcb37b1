//! Why a sink could not be built.

use std::io;
use std::path::PathBuf;

/// A trace destination that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TelemetryError {
    /// The endpoint is no URL that the protocol can use.
    #[error("otlp_traces_endpoint `{endpoint}`: {fault}; expected e.g. `{example}`")]
    Endpoint {
        /// The endpoint as given.
        endpoint: String,
        /// What is wrong with it.
        fault: String,
        /// An endpoint that would do.
        example: &'static str,
    },
    /// The environment asks for an unknown protocol.
    #[error("{variable}=`{value}`: unknown protocol, expected `grpc` or `http/protobuf`")]
    Protocol {
        /// The environment variable.
        variable: &'static str,
        /// Its value.
        value: String,
    },
    /// The exporter refuses its settings, e.g. an `OTEL_EXPORTER_OTLP_*` variable.
    #[error("OTLP exporter for `{endpoint}`: {fault}")]
    Exporter {
        /// The endpoint as given.
        endpoint: String,
        /// What the exporter says.
        fault: String,
    },
    /// The exporter's thread could not be started.
    #[error("OTLP exporter for `{endpoint}`: cannot start its thread: {source}")]
    Runtime {
        /// The endpoint as given.
        endpoint: String,
        /// What the system says.
        source: io::Error,
    },
    /// This build has no exporter.
    #[error(
        "otlp_traces_endpoint `{endpoint}`: this build has no OTLP exporter; build with the feature `otlp`, or write \
         the trace to a file with --trace-out"
    )]
    NoExporter {
        /// The endpoint as given.
        endpoint: String,
    },
    /// The trace file cannot be created.
    #[error("trace file `{}`: cannot be created: {source}; give another path to --trace-out", path.display())]
    TraceFile {
        /// The path as given.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
}
