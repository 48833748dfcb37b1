//! What became of a trace.

use std::fmt;
use std::ops::AddAssign;
use std::path::PathBuf;

/// A number of spans and of the events on them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Spans.
    pub spans: u64,
    /// Events.
    pub events: u64,
}

impl AddAssign for Counts {
    fn add_assign(&mut self, more: Self) {
        self.spans += more.spans;
        self.events += more.events;
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = |number| if number == 1 { "" } else { "s" };
        write!(f, "{} span{} with {} event{}", self.spans, plural(self.spans), self.events, plural(self.events))
    }
}

/// What became of the spans that went to an OpenTelemetry collector.
///
/// `emitted = exported + failed + dropped + pending`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OtlpReport {
    /// The collector's address.
    pub endpoint: String,
    /// Ended, so ready to be sent.
    pub emitted: Counts,
    /// Accepted by the collector.
    pub exported: Counts,
    /// Sent, and refused or not answered.
    pub failed: Counts,
    /// Not sent: the queue was full.
    pub dropped: Counts,
    /// Neither sent nor given up. After the shutdown, lost.
    pub pending: Counts,
    /// The first failure.
    pub first_error: Option<String>,
}

impl OtlpReport {
    /// Returns what was emitted and has not reached the collector.
    #[must_use]
    pub fn undelivered(&self) -> Counts {
        let mut counts = self.failed;
        counts += self.dropped;
        counts += self.pending;
        counts
    }

    /// Returns why something has not reached the collector; `None` if everything has.
    #[must_use]
    pub fn cause_of_loss(&self) -> Option<&str> {
        if self.undelivered() == Counts::default() {
            None
        } else if let Some(error) = &self.first_error {
            Some(error)
        } else if self.dropped == Counts::default() {
            Some("the time to deliver was over")
        } else {
            Some("the collector was slower than the engine, and the queue was full")
        }
    }
}

/// What became of the records that went to a trace file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FileReport {
    /// The file.
    pub path: PathBuf,
    /// Records taken.
    pub records: u64,
    /// Records that stand in the file, each on a line of its own.
    pub written: u64,
    /// Why writing ended early.
    pub error: Option<String>,
}

/// What became of a trace, sink by sink.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TelemetryReport {
    /// The collector; `None` without one.
    pub otlp: Option<OtlpReport>,
    /// The trace file; `None` without one.
    pub file: Option<FileReport>,
}

impl TelemetryReport {
    /// Returns whether everything has arrived.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.losses().is_empty()
    }

    /// Returns a sentence for each sink that lost something.
    #[must_use]
    pub fn losses(&self) -> Vec<String> {
        let mut losses = Vec::new();
        if let Some(otlp) = &self.otlp
            && let Some(cause) = otlp.cause_of_loss()
        {
            losses.push(format!("{} of {} did not reach {}: {cause}", otlp.undelivered(), otlp.emitted, otlp.endpoint));
        }
        if let Some(file) = self.file.as_ref().filter(|file| file.written != file.records || file.error.is_some()) {
            let cause = file.error.as_deref().unwrap_or("it was not flushed");
            losses.push(format!(
                "{} of {} records are not in {}: {cause}",
                file.records - file.written.min(file.records),
                file.records,
                file.path.display()
            ));
        }
        losses
    }
}
