//! The far end of the queue: cuts batches to size, and counts what became of them.

use std::sync::Arc;
use std::time::Duration;

use opentelemetry::{KeyValue, Value};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::{OTelSdkError, OTelSdkResult};
use opentelemetry_sdk::trace::{SpanData, SpanExporter};

use super::delivery::Delivery;
use crate::encoded_size::{self, GRPC_MESSAGE_BYTES_MAX, SPAN_OVERHEAD_BYTES};
use crate::report::Counts;

/// Bytes of spans in one export. What is left of a message is for resource and scopes.
const EXPORT_BYTES_MAX: usize = GRPC_MESSAGE_BYTES_MAX - (32 << 10);

/// Exports each batch in messages that a receiver takes. The SDK limits a batch by its number of spans only.
#[derive(Debug)]
pub(super) struct CountingExporter<E> {
    pub(super) inner: E,
    pub(super) delivery: Arc<Delivery>,
}

impl<E: SpanExporter> SpanExporter for CountingExporter<E> {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        let mut outcome = Ok(());
        for message in cut(batch, EXPORT_BYTES_MAX) {
            let counts = counts(&message);
            let exported = if self.delivery.is_abandoned() {
                Err(OTelSdkError::InternalFailure("the time to deliver is over".to_owned()))
            } else {
                self.inner.export(message).await
            };
            self.delivery.settle(counts, exported.as_ref().err().map(ToString::to_string));
            outcome = outcome.and(exported);
        }
        outcome
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.inner.shutdown_with_timeout(timeout)
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.inner.force_flush()
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.inner.set_resource(resource);
    }
}

/// Counts spans and their events.
pub(super) fn counts(spans: &[SpanData]) -> Counts {
    Counts { spans: spans.len() as u64, events: spans.iter().map(|span| span.events.len() as u64).sum() }
}

/// Cuts a batch into runs of at most `max_bytes`, or of a single span above that.
pub(super) fn cut(batch: Vec<SpanData>, max_bytes: usize) -> Vec<Vec<SpanData>> {
    let mut runs = Vec::new();
    let mut run = Vec::new();
    let mut run_bytes = 0;
    for span in batch {
        let span_bytes = span_bytes(&span);
        if !run.is_empty() && run_bytes + span_bytes > max_bytes {
            runs.push(std::mem::take(&mut run));
            run_bytes = 0;
        }
        run_bytes += span_bytes;
        run.push(span);
    }
    if !run.is_empty() {
        runs.push(run);
    }
    runs
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
