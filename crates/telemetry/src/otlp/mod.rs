//! Spans to an OpenTelemetry collector, over OTLP.
//!
//! ```text
//!   SpanSink ─► OtlpBackend ─► SDK span ─► ExportQueue ═► its thread ─► exporter ─► gRPC or HTTP
//!                                             └──── Delivery ────┘
//!                                    emitted, dropped      exported, failed
//! ```
//!
//! Of the SDK these are the spans and the exporters. Its batch processor is not used: it drops from a full queue
//! without a word, ignores the size of what it sends, and says "ok" at a shutdown after all exports have failed.

mod backend;
mod delivery;
mod endpoint;
mod export_queue;
mod probe;
#[cfg(test)]
mod tests;

pub(crate) use backend::{OtlpBackend, OtlpOptions};
pub(crate) use delivery::Delivery;
pub(crate) use endpoint::{Endpoint, protocol_of_environment, without_user_info};
pub(crate) use probe::probe;
