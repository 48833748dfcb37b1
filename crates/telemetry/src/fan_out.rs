//! Several sinks behind one.

use stepline_tracing_schema::{BatchSummary, JourneyEvent, JourneyStart, RequestSnapshot, SinkError, TraceSink};

/// Gives every record to each of several sinks.
///
/// A sink that fails gets no more records, and the others go on: each sink's own report says that it failed. An error
/// comes out only when no sink is left, and at the shutdown.
pub struct FanOut {
    sinks: Vec<Box<dyn TraceSink + Send>>,
}

impl std::fmt::Debug for FanOut {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FanOut").field("num_sinks", &self.sinks.len()).finish_non_exhaustive()
    }
}

impl FanOut {
    /// Combines `sinks`.
    #[must_use]
    pub fn new(sinks: Vec<Box<dyn TraceSink + Send>>) -> Self {
        Self { sinks }
    }

    fn each(&mut self, mut give: impl FnMut(&mut dyn TraceSink) -> Result<(), SinkError>) -> Result<(), SinkError> {
        let mut last_error = None;
        self.sinks.retain_mut(|sink| match give(sink.as_mut()) {
            Ok(()) => true,
            Err(error) => {
                last_error = Some(error);
                false
            }
        });
        match last_error {
            Some(error) if self.sinks.is_empty() => Err(error),
            _ => Ok(()),
        }
    }
}

impl TraceSink for FanOut {
    fn batch_summary(&mut self, record: &BatchSummary) -> Result<(), SinkError> {
        self.each(|sink| sink.batch_summary(record))
    }

    fn request_snapshot(&mut self, record: &RequestSnapshot) -> Result<(), SinkError> {
        self.each(|sink| sink.request_snapshot(record))
    }

    fn interval_closed(&mut self, step: u64, ts_monotonic_ns: u64) -> Result<(), SinkError> {
        self.each(|sink| sink.interval_closed(step, ts_monotonic_ns))
    }

    fn journey_started(&mut self, start: &JourneyStart) -> Result<(), SinkError> {
        self.each(|sink| sink.journey_started(start))
    }

    fn journey_event(&mut self, event: &JourneyEvent) -> Result<(), SinkError> {
        self.each(|sink| sink.journey_event(event))
    }

    fn shutdown(&mut self, last_step: u64, ts_monotonic_ns: u64) -> Result<(), SinkError> {
        let mut first_error = None;
        for mut sink in self.sinks.drain(..) {
            if let Err(error) = sink.shutdown(last_step, ts_monotonic_ns) {
                first_error.get_or_insert(error);
            }
        }
        first_error.map_or(Ok(()), Err)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    /// Counts its calls, and fails from the given one on.
    struct Failing {
        calls: Arc<Mutex<u32>>,
        first_failure: u32,
    }

    impl Failing {
        fn call(&self) -> Result<(), SinkError> {
            let mut calls = self.calls.lock().expect("nothing panicked");
            *calls += 1;
            if *calls >= self.first_failure { Err(SinkError::new("test", "call", "broken")) } else { Ok(()) }
        }
    }

    impl TraceSink for Failing {
        fn batch_summary(&mut self, _: &BatchSummary) -> Result<(), SinkError> {
            self.call()
        }

        fn request_snapshot(&mut self, _: &RequestSnapshot) -> Result<(), SinkError> {
            self.call()
        }

        fn interval_closed(&mut self, _: u64, _: u64) -> Result<(), SinkError> {
            self.call()
        }

        fn journey_started(&mut self, _: &JourneyStart) -> Result<(), SinkError> {
            self.call()
        }

        fn journey_event(&mut self, _: &JourneyEvent) -> Result<(), SinkError> {
            self.call()
        }

        fn shutdown(&mut self, _: u64, _: u64) -> Result<(), SinkError> {
            self.call()
        }
    }

    #[test]
    fn a_sink_that_fails_does_not_stop_the_others() {
        let counts = [Arc::new(Mutex::new(0)), Arc::new(Mutex::new(0))];
        let failing = |index: usize, first_failure| {
            let calls = Arc::clone(&counts[index]);
            Box::new(Failing { calls, first_failure }) as Box<dyn TraceSink + Send>
        };
        let mut fan_out = FanOut::new(vec![failing(0, 2), failing(1, 4)]);
        for step in 1..=3 {
            fan_out.interval_closed(step, 0).expect("one sink is left");
        }
        let error = fan_out.interval_closed(4, 0).expect_err("none is left");
        assert_eq!(error.to_string(), "trace sink test: call: broken");
        fan_out.shutdown(4, 0).expect("there is nothing to shut down");
        let calls = counts.map(|count| *count.lock().expect("nothing panicked"));
        assert_eq!(calls, [2, 4], "a failed sink gets no more calls");
    }
}
