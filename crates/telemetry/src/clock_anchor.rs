//! From the engine's monotonic (or virtual) time to wall-clock time.

use std::time::{Duration, SystemTime};

/// A point in time on both clocks.
///
/// Records carry the engine's time. A trace back end wants wall-clock time; one known pair maps every other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClockAnchor {
    unix_ns: u64,
    monotonic_ns: u64,
}

impl ClockAnchor {
    /// Says that the engine's clock showed `monotonic_ns` at `wall`.
    ///
    /// Wall-clock times outside of 1970 to 2554, which no trace can express, become the nearest that it can.
    #[must_use]
    pub fn new(wall: SystemTime, monotonic_ns: u64) -> Self {
        let since_epoch = wall.duration_since(SystemTime::UNIX_EPOCH).unwrap_or(Duration::ZERO);
        Self { unix_ns: u64::try_from(since_epoch.as_nanos()).unwrap_or(u64::MAX), monotonic_ns }
    }

    /// Returns the engine's time of this point, ns.
    #[must_use]
    pub const fn monotonic_ns(self) -> u64 {
        self.monotonic_ns
    }

    /// Returns the wall-clock time, in ns since the Unix epoch, at which the engine's clock shows `monotonic_ns`.
    #[must_use]
    pub const fn unix_ns(self, monotonic_ns: u64) -> u64 {
        if monotonic_ns >= self.monotonic_ns {
            self.unix_ns.saturating_add(monotonic_ns - self.monotonic_ns)
        } else {
            self.unix_ns.saturating_sub(self.monotonic_ns - monotonic_ns)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_before_and_after_the_anchor_keep_their_distance() {
        let anchor = ClockAnchor::new(SystemTime::UNIX_EPOCH + Duration::from_secs(100), 5_000_000_000);
        assert_eq!(anchor.unix_ns(5_000_000_000), 100_000_000_000);
        assert_eq!(anchor.unix_ns(7_000_000_001), 102_000_000_001);
        assert_eq!(anchor.unix_ns(4_999_999_999), 99_999_999_999);
    }

    #[test]
    fn times_that_a_trace_cannot_express_stay_at_the_border() {
        let anchor = ClockAnchor::new(SystemTime::UNIX_EPOCH - Duration::from_secs(1), 10);
        assert_eq!(anchor.unix_ns(10), 0);
        assert_eq!(anchor.unix_ns(0), 0);
        assert_eq!(anchor.unix_ns(u64::MAX), u64::MAX - 10);
    }
}
