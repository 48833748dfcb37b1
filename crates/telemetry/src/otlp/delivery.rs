//! The account of what was emitted, and the bound on what waits to be sent.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::options::WhenFull;
use crate::report::{Counts, OtlpReport};

/// Most spans that may wait to be sent.
pub(crate) const MAX_PENDING_SPANS: u64 = 16_384;
/// Most events that may wait to be sent: about 75 MB, at some 750 bytes for each of them in memory.
pub(crate) const MAX_PENDING_EVENTS: u64 = 100_000;

/// The account, shared by the processor that fills the queue and the exporter that empties it.
#[derive(Debug)]
pub(crate) struct Delivery {
    account: Mutex<Account>,
    has_room: Condvar,
}

#[derive(Debug, Default)]
struct Account {
    report: OtlpReport,
    /// The time to deliver is over: what is still waiting is not sent any more.
    is_abandoned: bool,
}

impl Account {
    fn is_full(&self, more: Counts) -> bool {
        let pending = self.report.pending;
        // Whatever its size, a span fits an empty queue.
        pending.spans > 0
            && (pending.spans + more.spans > MAX_PENDING_SPANS || pending.events + more.events > MAX_PENDING_EVENTS)
    }
}

impl Delivery {
    pub(crate) fn new(endpoint: String) -> Self {
        let report = OtlpReport { endpoint, ..OtlpReport::default() };
        Self { account: Mutex::new(Account { report, is_abandoned: false }), has_room: Condvar::new() }
    }

    pub(crate) fn report(&self) -> OtlpReport {
        self.lock().report.clone()
    }

    /// Counts an ended span. Returns whether it is to be sent; if so, it is pending from now on.
    pub(crate) fn admit(&self, span: Counts, when_full: WhenFull) -> bool {
        let mut account = self.lock();
        account.report.emitted += span;
        if let WhenFull::Wait(limit) = when_full {
            // A limit beyond all time is a day; the collector is given up long before.
            let deadline = Instant::now() + limit.min(Duration::from_hours(24));
            while account.is_full(span) && account.report.failed == Counts::default() {
                let Some(left) = deadline.checked_duration_since(Instant::now()) else { break };
                account = self.has_room.wait_timeout(account, left).unwrap_or_else(PoisonError::into_inner).0;
            }
        }
        let is_admitted = !account.is_full(span);
        if is_admitted {
            account.report.pending += span;
        } else {
            account.report.dropped += span;
        }
        is_admitted
    }

    /// Counts events that the SDK's limits kept off a span.
    pub(crate) fn events_dropped(&self, num_events: u64) {
        let mut account = self.lock();
        account.report.emitted.events += num_events;
        account.report.dropped.events += num_events;
    }

    /// Counts spans that were pending and have been sent, or could not be sent.
    pub(crate) fn settle(&self, spans: Counts, error: Option<String>) {
        let mut account = self.lock();
        account.report.pending.spans -= spans.spans;
        account.report.pending.events -= spans.events;
        match error {
            None => account.report.exported += spans,
            Some(error) => {
                account.report.failed += spans;
                account.report.first_error.get_or_insert(error);
            }
        }
        drop(account);
        self.has_room.notify_all();
    }

    /// From now on nothing more is sent.
    pub(crate) fn abandon(&self) {
        self.lock().is_abandoned = true;
    }

    pub(crate) fn is_abandoned(&self) -> bool {
        self.lock().is_abandoned
    }

    fn lock(&self) -> MutexGuard<'_, Account> {
        // A panic elsewhere leaves counters that are still right: each method changes them as a whole.
        self.account.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::thread;

    use super::*;

    const SPAN: Counts = Counts { spans: 1, events: 10 };
    /// Longer than anyone looks on at a test.
    const LONG: Duration = Duration::from_hours(1);
    const WIDE: Counts = Counts { spans: 1, events: MAX_PENDING_EVENTS };

    #[test]
    fn what_does_not_fit_is_dropped_and_the_sums_agree() {
        let delivery = Delivery::new("test".to_owned());
        assert!(delivery.admit(WIDE, WhenFull::Drop));
        assert!(!delivery.admit(SPAN, WhenFull::Drop), "the events of the first fill the queue");
        delivery.settle(WIDE, None);
        assert!(delivery.admit(SPAN, WhenFull::Drop), "there is room again");
        delivery.settle(SPAN, Some("refused".to_owned()));
        let report = delivery.report();
        assert_eq!(report.emitted, Counts { spans: 3, events: MAX_PENDING_EVENTS + 20 });
        assert_eq!(report.exported, WIDE);
        assert_eq!((report.failed, report.dropped, report.pending), (SPAN, SPAN, Counts::default()));
        assert_eq!(report.first_error.as_deref(), Some("refused"));
    }

    #[test]
    fn a_span_above_all_limits_fits_an_empty_queue() {
        let delivery = Delivery::new("test".to_owned());
        assert!(delivery.admit(Counts { spans: 1, events: 2 * MAX_PENDING_EVENTS }, WhenFull::Drop));
    }

    #[test]
    fn a_span_that_waits_is_admitted_when_there_is_room() {
        let delivery = Arc::new(Delivery::new("test".to_owned()));
        assert!(delivery.admit(WIDE, WhenFull::Drop));
        let waiting = {
            let delivery = Arc::clone(&delivery);
            thread::spawn(move || delivery.admit(SPAN, WhenFull::Wait(LONG)))
        };
        delivery.settle(WIDE, None);
        assert!(waiting.join().expect("it does not panic"));
        assert_eq!(delivery.report().dropped, Counts::default());
    }

    #[test]
    fn nothing_waits_for_a_collector_that_has_failed() {
        let delivery = Delivery::new("test".to_owned());
        assert!(delivery.admit(SPAN, WhenFull::Drop));
        delivery.settle(SPAN, Some("refused".to_owned()));
        assert!(delivery.admit(WIDE, WhenFull::Drop));
        assert!(!delivery.admit(SPAN, WhenFull::Wait(LONG)));
    }
}
