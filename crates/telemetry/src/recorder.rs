//! A back end that keeps every operation in memory, in order.

use stepline_tracing_schema::{AttributeValue, Record, SinkError, TraceParent};

use crate::backend::{SpanBackend, SpanKind, SpanStart};

/// The value of an attribute, owned.
#[derive(Debug, Clone, PartialEq)]
pub enum RecordedValue {
    /// An integer.
    Int(i64),
    /// A double.
    Float(f64),
    /// A text.
    Str(String),
}

impl From<AttributeValue<'_>> for RecordedValue {
    fn from(value: AttributeValue<'_>) -> Self {
        match value {
            AttributeValue::Int(value) => Self::Int(value),
            AttributeValue::Float(value) => Self::Float(value),
            AttributeValue::Static(text) => Self::Str(text.to_owned()),
            AttributeValue::Shared(text) => Self::Str(text.to_string()),
        }
    }
}

/// Attributes in order.
pub type RecordedAttributes = Vec<(&'static str, RecordedValue)>;

/// Names a recorded span: 1, 2, … in order of opening.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SpanLabel(pub u32);

/// One operation on a span.
#[derive(Debug, Clone, PartialEq)]
pub enum SpanOperation {
    /// The span started.
    Start {
        /// Which span.
        span: SpanLabel,
        /// Its name.
        name: String,
        /// Its kind.
        kind: SpanKind,
        /// Its instrumentation scope.
        scope: &'static str,
        /// The remote span it belongs to.
        parent: Option<TraceParent>,
        /// The attributes given at the start.
        attributes: RecordedAttributes,
        /// When, ns since the Unix epoch.
        unix_ns: u64,
    },
    /// An attribute was set later.
    Attribute {
        /// Which span.
        span: SpanLabel,
        /// The key.
        key: &'static str,
        /// The value.
        value: RecordedValue,
    },
    /// An event was added.
    Event {
        /// Which span.
        span: SpanLabel,
        /// 0, 1, … within the span.
        index: u32,
        /// The event's name.
        name: &'static str,
        /// The event's attributes.
        attributes: RecordedAttributes,
        /// When, ns since the Unix epoch.
        unix_ns: u64,
    },
    /// The span ended. Its status is unset, always.
    End {
        /// Which span.
        span: SpanLabel,
        /// Its name.
        name: String,
        /// All of its attributes.
        attributes: RecordedAttributes,
        /// The events added to it.
        num_events: u32,
        /// When, ns since the Unix epoch.
        unix_ns: u64,
    },
}

/// Keeps every operation on spans: for tests, and to compare with recorded traces.
///
/// Like an SDK with its default sampler it records roots and children of recorded parents, and no others.
#[derive(Debug, Default)]
pub struct SpanRecorder {
    operations: Vec<SpanOperation>,
    num_spans: u32,
}

impl SpanRecorder {
    /// Returns the operations so far.
    #[must_use]
    pub fn operations(&self) -> &[SpanOperation] {
        &self.operations
    }
}

/// A span of a [`SpanRecorder`] that has not ended.
#[derive(Debug)]
pub struct OpenSpan {
    label: SpanLabel,
    name: String,
    attributes: RecordedAttributes,
    num_events: u32,
}

impl SpanBackend for SpanRecorder {
    type Span = OpenSpan;

    fn start(&mut self, start: SpanStart<'_>) -> Option<OpenSpan> {
        if start.parent.is_some_and(|parent| !parent.sampled) {
            return None;
        }
        self.num_spans += 1;
        let label = SpanLabel(self.num_spans);
        let name = start.name.into_owned();
        let attributes: RecordedAttributes =
            start.attributes.iter().map(|(key, value)| (*key, (*value).into())).collect();
        self.operations.push(SpanOperation::Start {
            span: label,
            name: name.clone(),
            kind: start.kind,
            scope: start.scope,
            parent: start.parent,
            attributes: attributes.clone(),
            unix_ns: start.unix_ns,
        });
        Some(OpenSpan { label, name, attributes, num_events: 0 })
    }

    fn set_attribute(&mut self, span: &mut OpenSpan, key: &'static str, value: AttributeValue<'_>) {
        let value = RecordedValue::from(value);
        self.operations.push(SpanOperation::Attribute { span: span.label, key, value: value.clone() });
        span.attributes.push((key, value));
    }

    fn add_event(&mut self, span: &mut OpenSpan, record: &impl Record, unix_ns: u64) {
        let mut attributes = RecordedAttributes::new();
        record.for_each_attribute(|key, value| attributes.push((key, value.into())));
        self.operations.push(SpanOperation::Event {
            span: span.label,
            index: span.num_events,
            name: record.event_name(),
            attributes,
            unix_ns,
        });
        span.num_events += 1;
    }

    fn end(&mut self, span: OpenSpan, unix_ns: u64) {
        self.operations.push(SpanOperation::End {
            span: span.label,
            name: span.name,
            attributes: span.attributes,
            num_events: span.num_events,
            unix_ns,
        });
    }

    fn shutdown(&mut self) -> Result<(), SinkError> {
        Ok(())
    }
}
