//! Who receives the records.

use std::error::Error;
use std::sync::{Arc, Mutex, MutexGuard};

use crate::{BatchSummary, JourneyEvent, JourneyStart, RequestSnapshot};

/// A receiver of trace records.
///
/// Called on the scheduler's thread: cheap, never blocking on the network. An error says that the sink has become
/// useless; the caller switches it off and reports the error once. Records that a working sink cannot keep (a full
/// queue, say) are no errors: the sink counts them.
///
/// Order of the calls: within a step, journey events as they happen, then the summary, the snapshots of the running
/// requests in running order, and [`interval_closed`](Self::interval_closed) last. A journey is
/// [started](Self::journey_started), then has events, of which
/// [`Finished`](crate::JourneyEventKind::Finished) is the last.
pub trait TraceSink {
    /// Takes the summary of a sampled step.
    ///
    /// # Errors
    /// If the sink is of no more use.
    fn batch_summary(&mut self, record: &BatchSummary) -> Result<(), SinkError>;

    /// Takes the snapshot of one running request of the step last summarised.
    ///
    /// # Errors
    /// If the sink is of no more use.
    fn request_snapshot(&mut self, record: &RequestSnapshot) -> Result<(), SinkError>;

    /// Takes notice that `step`, a multiple of the closure interval, is over. Called only if a step was sampled since
    /// the multiple before.
    ///
    /// # Errors
    /// If the sink is of no more use.
    fn interval_closed(&mut self, step: u64, ts_monotonic_ns: u64) -> Result<(), SinkError>;

    /// Takes notice that the journey of a request begins.
    ///
    /// # Errors
    /// If the sink is of no more use.
    fn journey_started(&mut self, start: &JourneyStart) -> Result<(), SinkError>;

    /// Takes an event of a started journey. `Finished` ends the journey.
    ///
    /// # Errors
    /// If the sink is of no more use.
    fn journey_event(&mut self, event: &JourneyEvent) -> Result<(), SinkError>;

    /// Ends the trace after `last_step` (0 if there was none) and delivers what can be delivered. Nothing follows.
    ///
    /// # Errors
    /// If something could not be delivered.
    fn shutdown(&mut self, last_step: u64, ts_monotonic_ns: u64) -> Result<(), SinkError>;
}

impl<S: TraceSink + ?Sized> TraceSink for Box<S> {
    fn batch_summary(&mut self, record: &BatchSummary) -> Result<(), SinkError> {
        (**self).batch_summary(record)
    }

    fn request_snapshot(&mut self, record: &RequestSnapshot) -> Result<(), SinkError> {
        (**self).request_snapshot(record)
    }

    fn interval_closed(&mut self, step: u64, ts_monotonic_ns: u64) -> Result<(), SinkError> {
        (**self).interval_closed(step, ts_monotonic_ns)
    }

    fn journey_started(&mut self, start: &JourneyStart) -> Result<(), SinkError> {
        (**self).journey_started(start)
    }

    fn journey_event(&mut self, event: &JourneyEvent) -> Result<(), SinkError> {
        (**self).journey_event(event)
    }

    fn shutdown(&mut self, last_step: u64, ts_monotonic_ns: u64) -> Result<(), SinkError> {
        (**self).shutdown(last_step, ts_monotonic_ns)
    }
}

/// A sink that somebody else can look into while it is in use.
impl<S: TraceSink> TraceSink for Arc<Mutex<S>> {
    fn batch_summary(&mut self, record: &BatchSummary) -> Result<(), SinkError> {
        lock(self)?.batch_summary(record)
    }

    fn request_snapshot(&mut self, record: &RequestSnapshot) -> Result<(), SinkError> {
        lock(self)?.request_snapshot(record)
    }

    fn interval_closed(&mut self, step: u64, ts_monotonic_ns: u64) -> Result<(), SinkError> {
        lock(self)?.interval_closed(step, ts_monotonic_ns)
    }

    fn journey_started(&mut self, start: &JourneyStart) -> Result<(), SinkError> {
        lock(self)?.journey_started(start)
    }

    fn journey_event(&mut self, event: &JourneyEvent) -> Result<(), SinkError> {
        lock(self)?.journey_event(event)
    }

    fn shutdown(&mut self, last_step: u64, ts_monotonic_ns: u64) -> Result<(), SinkError> {
        lock(self)?.shutdown(last_step, ts_monotonic_ns)
    }
}

fn lock<S>(sink: &Mutex<S>) -> Result<MutexGuard<'_, S>, SinkError> {
    sink.lock().map_err(|_| SinkError::new("shared sink", "lock", "another user of it panicked"))
}

/// A sink that is of no more use, and why.
#[derive(Debug, thiserror::Error)]
#[error("trace sink {sink}: {operation}: {source}")]
pub struct SinkError {
    sink: String,
    operation: String,
    source: Box<dyn Error + Send + Sync>,
}

impl SinkError {
    /// Makes an error of the sink named `sink` (e.g. ``file `t.jsonl` ``) that failed in `operation` (e.g. `write`).
    #[must_use]
    pub fn new(
        sink: impl Into<String>,
        operation: impl Into<String>,
        source: impl Into<Box<dyn Error + Send + Sync>>,
    ) -> Self {
        Self { sink: sink.into(), operation: operation.into(), source: source.into() }
    }

    /// Returns the name of the sink.
    #[must_use]
    pub fn sink(&self) -> &str {
        &self.sink
    }
}
