//! Trace sinks: an OpenTelemetry collector, and a file of JSON lines.
//!
//! It knows nothing of scheduling or sampling: records come in by [`TraceSink`](stepline_tracing_schema::TraceSink),
//! already chosen. What a span is, is kept apart from the OpenTelemetry SDK, so that recorded traces can check it.
//!
//! ```text
//!                                ┌─► SpanSink ──► SpanBackend ─┬─► OtlpBackend ──► collector   (feature `otlp`)
//!   records ──► FanOut ──────────┤                             └─► SpanRecorder    (tests, golden traces)
//!                                └─► JsonLinesSink ──► file
//! ```
//!
//! ```
//! use std::num::NonZeroU32;
//! use std::time::SystemTime;
//! use stepline_telemetry::{ClockAnchor, SpanOperation, SpanRecorder, SpanSink, SpanSinkOptions};
//! use stepline_tracing_schema::TraceSink;
//!
//! let mut sink = SpanSink::new(
//!     SpanRecorder::default(),
//!     SpanSinkOptions {
//!         step_closure_interval: NonZeroU32::new(100),
//!         budget: None,
//!         anchor: ClockAnchor::new(SystemTime::now(), 0),
//!     },
//! );
//! sink.shutdown(0, 0)?;
//! let SpanOperation::Start { name, .. } = &sink.backend().operations()[0] else { unreachable!() };
//! assert_eq!(name, "scheduler_steps_1");
//! # Ok::<(), stepline_tracing_schema::SinkError>(())
//! ```
//!
//! | module | idea |
//! |---|---|
//! | `build` | [`build_sinks`]: from the configuration to sinks |
//! | `options` | [`SinkOptions`]: what the configuration does not say |
//! | `span_sink` | [`SpanSink`]: which span an event goes to, when spans open and close |
//! | `backend` | [`SpanBackend`]: what spans are written to |
//! | `recorder` | [`SpanRecorder`]: a back end that keeps every operation |
//! | `otlp` | the back end that exports, counts and bounds (feature `otlp`) |
//! | `json_lines` | [`JsonLinesSink`]: whole lines only |
//! | `fan_out` | [`FanOut`]: several sinks, each on its own |
//! | `report` | [`TelemetryReport`]: what arrived and what did not |
//! | `clock_anchor` | [`ClockAnchor`]: from the engine's time to wall-clock time |
//! | `encoded_size` | an upper bound of an event's size on the wire |

mod backend;
mod build;
mod clock_anchor;
mod encoded_size;
mod error;
mod fan_out;
mod json_lines;
mod options;
#[cfg(feature = "otlp")]
mod otlp;
mod recorder;
mod report;
mod span_sink;

pub use backend::{SpanBackend, SpanKind, SpanStart};
pub use build::{Built, BuiltSinks, TelemetryHandle, TelemetryWarning, TracePlan, build_sinks};
pub use clock_anchor::ClockAnchor;
pub use error::TelemetryError;
pub use fan_out::FanOut;
pub use json_lines::{JsonLinesSink, LineFile};
pub use options::{OtlpProtocol, SinkOptions, WhenFull};
pub use recorder::{OpenSpan, RecordedAttributes, RecordedValue, SpanLabel, SpanOperation, SpanRecorder};
pub use report::{Counts, FileReport, OtlpReport, TelemetryReport};
pub use span_sink::{SpanBudget, SpanSink, SpanSinkOptions};
