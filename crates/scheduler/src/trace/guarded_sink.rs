//! A sink that can fail without anybody else noticing.

use std::panic::{AssertUnwindSafe, catch_unwind};

use stepline_tracing_schema::{SinkError, TraceSink};

/// Why a sink was switched off.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SinkFault {
    /// What the sink said, or the message of its panic.
    pub message: String,
    /// Whether it panicked.
    pub panicked: bool,
}

/// Passes records on to a sink until it fails; then the sink is dropped and the records are counted instead.
pub(crate) struct GuardedSink {
    sink: Option<Box<dyn TraceSink + Send>>,
    fault: Option<SinkFault>,
    num_lost: u64,
}

impl GuardedSink {
    pub(crate) fn new(sink: Box<dyn TraceSink + Send>) -> Self {
        Self { sink: Some(sink), fault: None, num_lost: 0 }
    }

    /// Records that the sink did not get because it, or something else of the trace, had failed.
    pub(crate) const fn num_lost(&self) -> u64 {
        self.num_lost
    }

    /// The fault that switched the sink off, once.
    pub(crate) fn take_fault(&mut self) -> Option<SinkFault> {
        self.fault.take()
    }

    /// Hands over a record, or counts it as lost.
    pub(crate) fn record(&mut self, f: impl FnOnce(&mut dyn TraceSink) -> Result<(), SinkError>) {
        let delivered = self.notify(f);
        self.num_lost += u64::from(!delivered);
    }

    /// Tells the sink something that is no record. Returns whether it took notice.
    pub(crate) fn notify(&mut self, f: impl FnOnce(&mut dyn TraceSink) -> Result<(), SinkError>) -> bool {
        let Some(sink) = &mut self.sink else { return false };
        // A sink that panicked is never called again, so nobody sees what it left behind.
        match catch_unwind(AssertUnwindSafe(|| f(sink.as_mut()))) {
            Ok(Ok(())) => return true,
            Ok(Err(error)) => self.switch_off(SinkFault { message: error.to_string(), panicked: false }),
            Err(panic) => self.switch_off(SinkFault { message: panic_message(panic.as_ref()), panicked: true }),
        }
        false
    }

    /// Runs something else of the trace, a sampler or a clock; its panic switches the sink off too.
    pub(crate) fn guard<T>(&mut self, f: impl FnOnce() -> T) -> Option<T> {
        let outcome = catch_unwind(AssertUnwindSafe(f));
        if let Err(panic) = &outcome {
            self.switch_off(SinkFault { message: panic_message(panic.as_ref()), panicked: true });
        }
        outcome.ok()
    }

    fn switch_off(&mut self, fault: SinkFault) {
        self.fault = Some(fault);
        let sink = self.sink.take();
        // Its destructor may panic as well; the first fault is the one worth telling.
        let _ = catch_unwind(AssertUnwindSafe(|| drop(sink)));
    }
}

impl std::fmt::Debug for GuardedSink {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("GuardedSink")
            .field("on", &self.sink.is_some())
            .field("fault", &self.fault)
            .field("num_lost", &self.num_lost)
            .finish()
    }
}

fn panic_message(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("a panic without a message")
        .to_owned()
}
