//! A sink that keeps everything.

use crate::{BatchSummary, JourneyEvent, JourneyStart, RequestSnapshot, SinkError, TraceSink};

/// One call of a [`TraceSink`] method.
#[derive(Debug, Clone, PartialEq)]
pub enum SinkCall {
    /// [`TraceSink::batch_summary`]
    BatchSummary(BatchSummary),
    /// [`TraceSink::request_snapshot`]
    RequestSnapshot(RequestSnapshot),
    /// [`TraceSink::interval_closed`]
    IntervalClosed {
        /// The step that ended the interval.
        step: u64,
        /// When, ns.
        ts_monotonic_ns: u64,
    },
    /// [`TraceSink::journey_started`]
    JourneyStarted(JourneyStart),
    /// [`TraceSink::journey_event`]
    JourneyEvent(JourneyEvent),
    /// [`TraceSink::shutdown`]
    Shutdown {
        /// The last step.
        last_step: u64,
        /// When, ns.
        ts_monotonic_ns: u64,
    },
}

/// A sink that keeps every call in memory, in order: for tests and for programs that look at their own trace.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct MemorySink {
    /// The calls so far.
    pub calls: Vec<SinkCall>,
}

impl MemorySink {
    /// Gives every call to `sink`, in order, and stops at its first error.
    ///
    /// # Errors
    /// The first error of `sink`.
    pub fn replay(&self, sink: &mut impl TraceSink) -> Result<(), SinkError> {
        self.calls.iter().try_for_each(|call| match call {
            SinkCall::BatchSummary(record) => sink.batch_summary(record),
            SinkCall::RequestSnapshot(record) => sink.request_snapshot(record),
            SinkCall::IntervalClosed { step, ts_monotonic_ns } => sink.interval_closed(*step, *ts_monotonic_ns),
            SinkCall::JourneyStarted(start) => sink.journey_started(start),
            SinkCall::JourneyEvent(event) => sink.journey_event(event),
            SinkCall::Shutdown { last_step, ts_monotonic_ns } => sink.shutdown(*last_step, *ts_monotonic_ns),
        })
    }

    fn keep(&mut self, call: SinkCall) {
        self.calls.push(call);
    }
}

impl TraceSink for MemorySink {
    fn batch_summary(&mut self, record: &BatchSummary) -> Result<(), SinkError> {
        self.keep(SinkCall::BatchSummary(*record));
        Ok(())
    }

    fn request_snapshot(&mut self, record: &RequestSnapshot) -> Result<(), SinkError> {
        self.keep(SinkCall::RequestSnapshot(record.clone()));
        Ok(())
    }

    fn interval_closed(&mut self, step: u64, ts_monotonic_ns: u64) -> Result<(), SinkError> {
        self.keep(SinkCall::IntervalClosed { step, ts_monotonic_ns });
        Ok(())
    }

    fn journey_started(&mut self, start: &JourneyStart) -> Result<(), SinkError> {
        self.keep(SinkCall::JourneyStarted(start.clone()));
        Ok(())
    }

    fn journey_event(&mut self, event: &JourneyEvent) -> Result<(), SinkError> {
        self.keep(SinkCall::JourneyEvent(event.clone()));
        Ok(())
    }

    fn shutdown(&mut self, last_step: u64, ts_monotonic_ns: u64) -> Result<(), SinkError> {
        self.keep(SinkCall::Shutdown { last_step, ts_monotonic_ns });
        Ok(())
    }
}
