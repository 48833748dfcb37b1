//! The queue between the engine and the collector: a span processor with a thread of its own.
//!
//! Unlike the SDK's batch processor, it cuts batches by their size on the wire and not only by their number of spans,
//! sends one as soon as it is full, is bounded by events and not only by spans, and accounts for everything.

use std::fmt;
use std::io;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use opentelemetry::{Context, KeyValue, Value};
use opentelemetry_sdk::error::{OTelSdkError, OTelSdkResult};
use opentelemetry_sdk::trace::{Span, SpanData, SpanExporter, SpanProcessor};

use super::delivery::Delivery;
use crate::encoded_size::{self, GRPC_MESSAGE_BYTES_MAX, SPAN_OVERHEAD_BYTES};
use crate::options::WhenFull;
use crate::report::Counts;

/// Most spans in a message.
const BATCH_SPANS_MAX: usize = 512;
/// Most bytes of spans in a message. What is left of it is for resource and scopes.
const BATCH_BYTES_MAX: usize = GRPC_MESSAGE_BYTES_MAX - (32 << 10);
/// How long a span waits for others to be sent with.
const BATCH_DELAY: Duration = Duration::from_secs(1);

/// Hands ended spans to a thread that exports them.
pub(super) struct ExportQueue {
    sender: Sender<Message>,
    worker: Mutex<Option<JoinHandle<()>>>,
    delivery: Arc<Delivery>,
    when_full: WhenFull,
}

enum Message {
    Span(Box<SpanData>),
    /// Export what is there, then say so.
    Flush(Sender<()>),
    /// Export what is there, say so, and end.
    Shutdown(Sender<()>),
}

impl ExportQueue {
    /// Starts the thread.
    pub(super) fn start(
        exporter: impl SpanExporter + 'static,
        delivery: Arc<Delivery>,
        when_full: WhenFull,
    ) -> io::Result<Self> {
        let (sender, receiver) = mpsc::channel();
        let worker = Worker { exporter, delivery: Arc::clone(&delivery), batch: Batch::default() };
        let worker =
            thread::Builder::new().name("stepline-otlp-export".to_owned()).spawn(move || worker.run(&receiver))?;
        Ok(Self { sender, worker: Mutex::new(Some(worker)), delivery, when_full })
    }

    /// Sends a message that is answered when everything before it is done, and waits for the answer.
    fn ask(&self, message: impl FnOnce(Sender<()>) -> Message, limit: Duration) -> OTelSdkResult {
        let (done, answer) = mpsc::channel();
        self.sender.send(message(done)).map_err(|_| OTelSdkError::AlreadyShutdown)?;
        answer.recv_timeout(limit).map_err(|error| match error {
            RecvTimeoutError::Timeout => OTelSdkError::Timeout(limit),
            RecvTimeoutError::Disconnected => OTelSdkError::InternalFailure("the export thread has ended".to_owned()),
        })
    }
}

impl fmt::Debug for ExportQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ExportQueue").field("when_full", &self.when_full).finish_non_exhaustive()
    }
}

impl SpanProcessor for ExportQueue {
    fn on_start(&self, _span: &mut Span, _context: &Context) {}

    fn on_end(&self, span: SpanData) {
        if span.events.dropped_count > 0 {
            self.delivery.events_dropped(u64::from(span.events.dropped_count));
        }
        let counts = counts(std::slice::from_ref(&span));
        if self.delivery.admit(counts, self.when_full) && self.sender.send(Message::Span(Box::new(span))).is_err() {
            self.delivery.settle(counts, Some("the export thread has ended".to_owned()));
        }
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.ask(Message::Flush, Duration::from_secs(5))
    }

    /// Exports what is pending, within `timeout`. That exports failed is no error here: it stands in the account.
    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.ask(Message::Shutdown, timeout)?;
        let worker = self.worker.lock().unwrap_or_else(PoisonError::into_inner).take();
        match worker.map(JoinHandle::join) {
            None | Some(Ok(())) => Ok(()),
            Some(Err(_)) => Err(OTelSdkError::InternalFailure("the export thread panicked".to_owned())),
        }
    }
}

/// What the thread owns.
struct Worker<E> {
    exporter: E,
    delivery: Arc<Delivery>,
    batch: Batch,
}

impl<E: SpanExporter> Worker<E> {
    fn run(mut self, messages: &Receiver<Message>) {
        // What the exporter's own libraries trace must not come back here.
        let _suppressed = Context::enter_telemetry_suppressed_scope();
        loop {
            match self.next(messages) {
                Ok(Message::Span(span)) => self.collect(*span),
                Ok(Message::Flush(done)) => {
                    self.export();
                    // Who asked may have stopped waiting.
                    let _unheard = done.send(());
                }
                Ok(Message::Shutdown(done)) => {
                    self.export();
                    let _nothing_pending = self.exporter.shutdown();
                    let _unheard = done.send(());
                    return;
                }
                Err(RecvTimeoutError::Timeout) => self.export(),
                Err(RecvTimeoutError::Disconnected) => {
                    self.export();
                    return;
                }
            }
        }
    }

    /// Waits for a message, but not longer than the batch may wait.
    fn next(&self, messages: &Receiver<Message>) -> Result<Message, RecvTimeoutError> {
        match self.batch.deadline {
            Some(deadline) => messages.recv_timeout(deadline.saturating_duration_since(Instant::now())),
            None => messages.recv().map_err(|_| RecvTimeoutError::Disconnected),
        }
    }

    fn collect(&mut self, span: SpanData) {
        let num_bytes = span_bytes(&span);
        if !self.batch.has_room_for(num_bytes) {
            self.export();
        }
        self.batch.push(span, num_bytes);
        if self.batch.spans.len() == BATCH_SPANS_MAX {
            self.export();
        }
    }

    fn export(&mut self) {
        let spans = std::mem::take(&mut self.batch).spans;
        if spans.is_empty() {
            return;
        }
        let counts = counts(&spans);
        let error = if self.delivery.is_abandoned() {
            Some("the time to deliver was over".to_owned())
        } else {
            // Not by the runtime: the HTTP client refuses to block inside of one.
            futures_executor::block_on(self.exporter.export(spans)).err().map(|error| error.to_string())
        };
        self.delivery.settle(counts, error);
    }
}

/// Spans that are sent together.
#[derive(Debug, Default)]
struct Batch {
    spans: Vec<SpanData>,
    num_bytes: usize,
    /// When it is sent at the latest; `None` while it is empty.
    deadline: Option<Instant>,
}

impl Batch {
    /// Whether it can take a span of `num_bytes`. A span above all limits goes alone.
    fn has_room_for(&self, num_bytes: usize) -> bool {
        self.spans.is_empty() || (self.spans.len() < BATCH_SPANS_MAX && self.num_bytes + num_bytes <= BATCH_BYTES_MAX)
    }

    fn push(&mut self, span: SpanData, num_bytes: usize) {
        self.deadline.get_or_insert_with(|| Instant::now() + BATCH_DELAY);
        self.num_bytes += num_bytes;
        self.spans.push(span);
    }
}

/// Counts spans and their events.
fn counts(spans: &[SpanData]) -> Counts {
    Counts { spans: spans.len() as u64, events: spans.iter().map(|span| span.events.len() as u64).sum() }
}

/// Returns at least the bytes that a span takes in a message.
pub(super) fn span_bytes(span: &SpanData) -> usize {
    let attributes = |attributes: &[KeyValue]| attributes.iter().map(attribute_bytes).sum::<usize>();
    let events: usize = span
        .events
        .iter()
        .map(|event| encoded_size::event_header_bytes(&event.name) + attributes(&event.attributes))
        .sum();
    SPAN_OVERHEAD_BYTES + span.name.len() + attributes(&span.attributes) + events
}

fn attribute_bytes(attribute: &KeyValue) -> usize {
    let key = attribute.key.as_str();
    match &attribute.value {
        Value::Bool(_) | Value::I64(_) | Value::F64(_) => encoded_size::number_attribute_bytes(key),
        other => encoded_size::text_attribute_bytes(key, &other.as_str()),
    }
}
