//! Spans to an OpenTelemetry collector, over OTLP.
//!
//! ```text
//!   SpanSink ─► OtlpBackend ─► SDK span ─► BoundedProcessor ─► batches ─► CountingExporter ─► gRPC or HTTP
//!                                            drops, counts     (SDK)       splits, counts
//! ```
//!
//! The SDK keeps its failures to itself: a full queue drops spans without a word, and a shutdown says "ok" after all
//! exports have failed. So what goes in and what comes out is counted on both sides, in a [`Delivery`].

mod backend;
mod delivery;
mod endpoint;
mod exporter;
mod probe;
mod processor;
#[cfg(test)]
mod tests;

pub(crate) use backend::{OtlpBackend, OtlpOptions};
pub(crate) use delivery::Delivery;
pub(crate) use endpoint::{Endpoint, protocol_of_environment};
pub(crate) use probe::probe;
