//! Names and typed records of every trace event, each declared once.
//!
//! It knows nothing of scheduling, sampling, spans' life or exporters: it says what a record *is*, and what a sink
//! of records must be able to take.
//!
//! ```text
//!   scheduler ── BatchSummary, RequestSnapshot, JourneyEvent ──► TraceSink   (OTLP, JSON lines, a Vec, …)
//!                        │
//!                        └─ for_each_attribute: ("step.id", Int(7)), ("queue.running_depth", Int(3)), …
//! ```
//!
//! A record is declared in one table (`record!`): field, attribute, unit and meaning. Its attributes, its JSON form,
//! its JSON Schema and its row in `docs/events.md` all follow from that table.
//!
//! ```
//! use stepline_tracing_schema::{JourneyEvent, JourneyEventKind, Record, RequestPhase, SpanAttributes};
//!
//! let queued = JourneyEvent {
//!     request_id: "chat-1".into(),
//!     kind: JourneyEventKind::Queued,
//!     ts_monotonic_ns: 1_500_000_000,
//!     scheduler_step: 0,
//!     phase: RequestPhase::Waiting,
//!     prefill_done_tokens: 0,
//!     prefill_total_tokens: 10,
//!     decode_done_tokens: 0,
//!     decode_max_tokens: 4,
//!     num_preemptions: 0,
//! };
//! assert_eq!(queued.event_name(), "journey.QUEUED");
//! let mut keys = Vec::new();
//! queued.for_each_attribute(|key, _value| keys.push(key));
//! assert_eq!(keys[1], SpanAttributes::TS_MONOTONIC);
//! ```
//!
//! | module | idea |
//! |---|---|
//! | [`names`] | scopes, spans, events and headers |
//! | `attributes` | [`SpanAttributes`]: every attribute key |
//! | [`spec`] | how a declaration is described: [`spec::AttributeSpec`], [`spec::EventSpec`], [`spec::SpanSpec`] |
//! | `record` | the table macro, [`Record`] and [`AttributeValue`] |
//! | `batch_summary`, `request_snapshot`, `journey` | the records |
//! | `trace_parent` | the W3C `traceparent` header |
//! | `sink` | [`TraceSink`], [`SinkError`], and [`MemorySink`] that keeps what it is given |
//! | `line` (feature `serde`) | records as JSON objects, and [`TraceRecord`] to read them back |
//! | `schema` (feature `schema`) | their JSON Schema |
//! | [`docs`] | the reference table `docs/events.md` |

mod attributes;
mod batch_summary;
pub mod docs;
mod journey;
#[cfg(feature = "serde")]
mod line;
mod memory_sink;
pub mod names;
mod record;
mod request_snapshot;
#[cfg(feature = "schema")]
pub mod schema;
mod sink;
pub mod spec;
mod string_enum;
mod trace_parent;

pub use attributes::SpanAttributes;
pub use batch_summary::BatchSummary;
pub use journey::{FinishStatus, JourneyEvent, JourneyEventKind, JourneyStart, ScheduleKind};
#[cfg(feature = "serde")]
pub use line::TraceRecord;
pub use memory_sink::{MemorySink, SinkCall};
pub use record::{AttributeValue, Record};
pub use request_snapshot::{RequestPhase, RequestSnapshot};
pub use sink::{SinkError, TraceSink};
pub use string_enum::UnknownName;
pub use trace_parent::{TraceParent, TraceParentError};
