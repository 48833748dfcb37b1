//! What spans are written to.

use std::borrow::Cow;

use stepline_tracing_schema::{AttributeValue, Record, SinkError, TraceParent};

/// Keeps or exports spans.
///
/// It takes the time of everything from its caller, as nanoseconds since the Unix epoch, and reads no clock.
pub trait SpanBackend {
    /// A span that was started and has not ended.
    type Span;

    /// Starts a span. Returns `None` if it is not recorded: a sampler refused it, or its parent is not recorded.
    fn start(&mut self, start: SpanStart<'_>) -> Option<Self::Span>;

    /// Sets an attribute of a span.
    fn set_attribute(&mut self, span: &mut Self::Span, key: &'static str, value: AttributeValue<'_>);

    /// Adds `record` to a span, as an event that happened at `unix_ns`.
    fn add_event(&mut self, span: &mut Self::Span, record: &impl Record, unix_ns: u64);

    /// Ends a span.
    fn end(&mut self, span: Self::Span, unix_ns: u64);

    /// Delivers what can be delivered, within bounded time. Nothing follows.
    ///
    /// # Errors
    /// If something was lost.
    fn shutdown(&mut self) -> Result<(), SinkError>;
}

/// A span to start.
#[derive(Debug, Clone)]
pub struct SpanStart<'a> {
    /// Its name.
    pub name: Cow<'static, str>,
    /// Its kind.
    pub kind: SpanKind,
    /// Its instrumentation scope.
    pub scope: &'static str,
    /// The remote span it belongs to; `None` for a root.
    pub parent: Option<TraceParent>,
    /// Attributes that it has from the start, in order.
    pub attributes: &'a [(&'static str, AttributeValue<'a>)],
    /// When it starts.
    pub unix_ns: u64,
}

/// The kind of a span.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpanKind {
    /// An operation inside of a program.
    Internal,
    /// The server's side of a request.
    Server,
}

impl SpanKind {
    /// Returns the name that OpenTelemetry gives the kind, e.g. `INTERNAL`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Internal => "INTERNAL",
            Self::Server => "SERVER",
        }
    }
}
