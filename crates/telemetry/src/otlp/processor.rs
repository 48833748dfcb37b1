//! The door of the queue: counts what comes, and keeps out what does not fit.

use std::sync::Arc;
use std::time::Duration;

use opentelemetry::Context;
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{BatchSpanProcessor, Span, SpanData, SpanProcessor};

use super::delivery::Delivery;
use super::exporter::counts;
use crate::options::WhenFull;

/// A batch processor whose queue is bounded by events, not only by spans, and that says what it dropped.
#[derive(Debug)]
pub(super) struct BoundedProcessor {
    pub(super) batches: BatchSpanProcessor,
    pub(super) delivery: Arc<Delivery>,
    pub(super) when_full: WhenFull,
}

impl SpanProcessor for BoundedProcessor {
    fn on_start(&self, span: &mut Span, context: &Context) {
        self.batches.on_start(span, context);
    }

    fn on_end(&self, span: SpanData) {
        if span.events.dropped_count > 0 {
            self.delivery.events_dropped(u64::from(span.events.dropped_count));
        }
        if self.delivery.admit(counts(std::slice::from_ref(&span)), self.when_full) {
            self.batches.on_end(span);
        }
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.batches.force_flush()
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.batches.shutdown_with_timeout(timeout)
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.batches.set_resource(resource);
    }
}
