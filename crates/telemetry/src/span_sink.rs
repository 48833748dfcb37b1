//! From records to spans and events: which span an event goes to, and when spans open and close.

use std::collections::HashMap;
use std::num::{NonZeroU32, NonZeroUsize};
use std::sync::Arc;

use stepline_tracing_schema::{
    AttributeValue, BatchSummary, JourneyEvent, JourneyEventKind, JourneyStart, Record, RequestSnapshot, SinkError,
    SpanAttributes, TraceParent, TraceSink, names,
};

use crate::backend::{SpanBackend, SpanKind, SpanStart};
use crate::clock_anchor::ClockAnchor;
use crate::encoded_size::{self, GRPC_MESSAGE_BYTES_MAX};

/// How many events a span may hold before it is closed and the next one is opened.
///
/// Unlike vLLM: there a span grows as long as its interval lasts, and the SDK drops what is above its limit of 128
/// events, or a receiver refuses the message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SpanBudget {
    /// Events at most.
    pub max_events: NonZeroU32,
    /// Bytes at most, by an estimate that is never too low.
    pub max_bytes: NonZeroUsize,
}

impl Default for SpanBudget {
    /// 8,000 events, and 64 KiB less than a gRPC message may hold: room for resource and scope.
    fn default() -> Self {
        const EVENTS: NonZeroU32 = NonZeroU32::new(8_000).expect("8,000 is not 0");
        const BYTES: NonZeroUsize = NonZeroUsize::new(GRPC_MESSAGE_BYTES_MAX - (64 << 10)).expect("it is not 0");
        Self { max_events: EVENTS, max_bytes: BYTES }
    }
}

/// How a [`SpanSink`] makes spans.
#[derive(Debug, Clone, Copy)]
pub struct SpanSinkOptions {
    /// Steps between two closures of the step span; `None` if steps are not traced: there are no step spans then.
    pub step_closure_interval: Option<NonZeroU32>,
    /// When to close a span early. `None`: never, as the reference.
    pub budget: Option<SpanBudget>,
    /// Maps the time of the records; its own point is when the first span starts.
    pub anchor: ClockAnchor,
}

/// A [`TraceSink`] that writes spans and events to a [`SpanBackend`].
///
/// ```text
///   scheduler_steps_1  [1 ........ 10]     one span per interval, with the events of its steps
///   scheduler_steps_2               [11 .. 20]
///   llm_core  A          [QUEUED  SCHEDULED  FIRST_TOKEN ... FINISHED]      one span per sampled request
/// ```
///
/// Events have the time of their record: a summary the end of its step, as have its snapshots.
#[derive(Debug)]
pub struct SpanSink<B: SpanBackend> {
    backend: B,
    options: SpanSinkOptions,
    /// `None` if steps are not traced, and after the end.
    step_span: Option<StepSpan<B::Span>>,
    /// Time of the summary last seen, which its snapshots share.
    summary_unix_ns: u64,
    journeys: HashMap<Arc<str>, Journey<B::Span>>,
}

/// The step span that is open.
#[derive(Debug)]
struct StepSpan<S> {
    sequence: u64,
    filling: Filling<S>,
}

/// A request's journey that is open.
#[derive(Debug)]
struct Journey<S> {
    traceparent: Option<TraceParent>,
    filling: Filling<S>,
}

/// A span and what it holds. `span` is `None` if the back end does not record it.
#[derive(Debug)]
struct Filling<S> {
    span: Option<S>,
    num_events: u32,
    num_bytes: usize,
}

impl<S> Filling<S> {
    fn new(span: Option<S>) -> Self {
        Self { span, num_events: 0, num_bytes: encoded_size::SPAN_OVERHEAD_BYTES }
    }

    /// Whether the span must close before it takes `more_events`, the first of `more_bytes`. An empty span never must:
    /// the next one would be no better.
    fn is_spent(&self, budget: Option<SpanBudget>, more_events: u32, more_bytes: usize) -> bool {
        let Some(budget) = budget else { return false };
        self.num_events > 0
            && (self.num_events.saturating_add(more_events) > budget.max_events.get()
                || self.num_bytes.saturating_add(more_bytes) > budget.max_bytes.get())
    }

    fn add<B: SpanBackend<Span = S>>(&mut self, backend: &mut B, record: &impl Record, num_bytes: usize, unix_ns: u64) {
        self.num_events = self.num_events.saturating_add(1);
        self.num_bytes = self.num_bytes.saturating_add(num_bytes);
        if let Some(span) = &mut self.span {
            backend.add_event(span, record, unix_ns);
        }
    }
}

impl<B: SpanBackend> SpanSink<B> {
    /// Makes a sink and, if steps are traced, opens the first step span.
    pub fn new(mut backend: B, options: SpanSinkOptions) -> Self {
        let unix_ns = options.anchor.unix_ns(options.anchor.monotonic_ns());
        let step_span =
            options.step_closure_interval.map(|interval| StepSpan::open(&mut backend, interval, 1, 1, unix_ns));
        Self { backend, options, step_span, summary_unix_ns: unix_ns, journeys: HashMap::new() }
    }

    /// Returns the back end.
    pub fn backend(&self) -> &B {
        &self.backend
    }

    /// Closes the step span after `last_step` and opens the next one, which starts at `first_step`.
    fn roll_step_span(&mut self, last_step: u64, first_step: u64, unix_ns: u64) {
        let Some(interval) = self.options.step_closure_interval else { return };
        if let Some(full) = self.step_span.take() {
            let sequence = full.sequence + 1;
            full.close(&mut self.backend, last_step, unix_ns);
            self.step_span = Some(StepSpan::open(&mut self.backend, interval, sequence, first_step, unix_ns));
        }
    }
}

impl<S> StepSpan<S> {
    fn open<B: SpanBackend<Span = S>>(
        backend: &mut B,
        interval: NonZeroU32,
        sequence: u64,
        first_step: u64,
        unix_ns: u64,
    ) -> Self {
        let span = backend.start(SpanStart {
            name: names::step_span(sequence).into(),
            kind: SpanKind::Internal,
            scope: names::STEP_SCOPE,
            parent: None,
            attributes: &[
                (SpanAttributes::SCHEDULER_SPAN_SEQUENCE, sequence.into()),
                (SpanAttributes::SCHEDULER_STEP_RANGE_START, first_step.into()),
                (SpanAttributes::SCHEDULER_CLOSURE_INTERVAL, u64::from(interval.get()).into()),
            ],
            unix_ns,
        });
        Self { sequence, filling: Filling::new(span) }
    }

    fn close<B: SpanBackend<Span = S>>(self, backend: &mut B, last_step: u64, unix_ns: u64) {
        if let Some(mut span) = self.filling.span {
            backend.set_attribute(&mut span, SpanAttributes::SCHEDULER_STEP_RANGE_END, last_step.into());
            backend.end(span, unix_ns);
        }
    }
}

/// Opens the span of a request's journey, or of the next part of it.
fn open_journey<B: SpanBackend>(
    backend: &mut B,
    request_id: &Arc<str>,
    traceparent: Option<TraceParent>,
    unix_ns: u64,
) -> Journey<B::Span> {
    let mut span = backend.start(SpanStart {
        name: names::CORE_SPAN.into(),
        kind: SpanKind::Internal,
        scope: names::SCHEDULER_SCOPE,
        parent: traceparent,
        attributes: &[],
        unix_ns,
    });
    if let Some(span) = &mut span {
        backend.set_attribute(span, SpanAttributes::GEN_AI_REQUEST_ID, AttributeValue::Shared(request_id));
    }
    Journey { traceparent, filling: Filling::new(span) }
}

impl<B: SpanBackend> TraceSink for SpanSink<B> {
    fn batch_summary(&mut self, record: &BatchSummary) -> Result<(), SinkError> {
        let unix_ns = self.options.anchor.unix_ns(record.ts_end_ns);
        let num_bytes = encoded_size::event_bytes(record);
        // A summary wants to stand with its snapshots, of which there are as many as running requests, or none.
        let num_events = record.running_depth.saturating_add(1);
        let budget = self.options.budget;
        if self.step_span.as_ref().is_some_and(|step| step.filling.is_spent(budget, num_events, num_bytes)) {
            self.roll_step_span(record.step_id.saturating_sub(1), record.step_id, unix_ns);
        }
        self.summary_unix_ns = unix_ns;
        if let Some(step) = &mut self.step_span {
            step.filling.add(&mut self.backend, record, num_bytes, unix_ns);
        }
        Ok(())
    }

    fn request_snapshot(&mut self, record: &RequestSnapshot) -> Result<(), SinkError> {
        let unix_ns = self.summary_unix_ns;
        let num_bytes = encoded_size::event_bytes(record);
        let budget = self.options.budget;
        if self.step_span.as_ref().is_some_and(|step| step.filling.is_spent(budget, 1, num_bytes)) {
            // The step's events do not fit one span; both have the step in their range.
            self.roll_step_span(record.step_id, record.step_id, unix_ns);
        }
        if let Some(step) = &mut self.step_span {
            step.filling.add(&mut self.backend, record, num_bytes, unix_ns);
        }
        Ok(())
    }

    fn interval_closed(&mut self, step: u64, ts_monotonic_ns: u64) -> Result<(), SinkError> {
        self.roll_step_span(step, step + 1, self.options.anchor.unix_ns(ts_monotonic_ns));
        Ok(())
    }

    fn journey_started(&mut self, start: &JourneyStart) -> Result<(), SinkError> {
        let unix_ns = self.options.anchor.unix_ns(start.ts_monotonic_ns);
        let journey = open_journey(&mut self.backend, &start.request_id, start.traceparent, unix_ns);
        let replaced = self.journeys.insert(Arc::clone(&start.request_id), journey);
        // An id is free again only after its journey has ended; a caller that breaks this still loses no span.
        if let Some(span) = replaced.and_then(|journey| journey.filling.span) {
            self.backend.end(span, unix_ns);
        }
        Ok(())
    }

    fn journey_event(&mut self, event: &JourneyEvent) -> Result<(), SinkError> {
        let Some(journey) = self.journeys.get_mut(&event.request_id) else { return Ok(()) };
        let unix_ns = self.options.anchor.unix_ns(event.ts_monotonic_ns);
        let num_bytes = encoded_size::event_bytes(event);
        if journey.filling.is_spent(self.options.budget, 1, num_bytes) {
            let next = open_journey(&mut self.backend, &event.request_id, journey.traceparent, unix_ns);
            let full = std::mem::replace(journey, next);
            if let Some(span) = full.filling.span {
                self.backend.end(span, unix_ns);
            }
        }
        journey.filling.add(&mut self.backend, event, num_bytes, unix_ns);
        if matches!(event.kind, JourneyEventKind::Finished(_)) {
            let ended = self.journeys.remove(&event.request_id);
            if let Some(span) = ended.and_then(|journey| journey.filling.span) {
                self.backend.end(span, unix_ns);
            }
        }
        Ok(())
    }

    fn shutdown(&mut self, last_step: u64, ts_monotonic_ns: u64) -> Result<(), SinkError> {
        let unix_ns = self.options.anchor.unix_ns(ts_monotonic_ns);
        if let Some(step) = self.step_span.take() {
            step.close(&mut self.backend, last_step, unix_ns);
        }
        // Unlike vLLM, which never exports the spans of requests that are still open. In the order of their ids, for
        // a run to repeat exactly.
        let mut open: Vec<_> = self.journeys.drain().collect();
        open.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
        for (_, journey) in open {
            if let Some(span) = journey.filling.span {
                self.backend.end(span, unix_ns);
            }
        }
        self.backend.shutdown()
    }
}
