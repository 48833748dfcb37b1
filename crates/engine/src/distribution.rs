//! Exact means and percentiles of durations.

use serde::Serialize;

/// Durations in nanoseconds, equal ones in a row stored once.
///
/// In a step, all decoding requests have waited equally long since their last token: what would be one number per token
/// is one per step.
#[derive(Clone, Debug, Default)]
pub struct WeightedSamples {
    runs: Vec<(u64, u32)>,
    count: u64,
    sum_ns: u128,
}

/// What is told of a set of durations. In milliseconds; all 0 if there were none.
///
/// Percentiles lie on the straight line between the two nearest values, as `numpy.percentile` and vLLM's benchmarks
/// have it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Distribution {
    /// Number of durations.
    pub count: u64,
    /// Arithmetic mean.
    pub mean: f64,
    /// Median.
    pub p50: f64,
    /// 90th percentile.
    pub p90: f64,
    /// 99th percentile.
    pub p99: f64,
    /// The longest.
    pub max: f64,
}

impl WeightedSamples {
    /// Adds a duration. O(1).
    pub fn push(&mut self, duration_ns: u64) {
        self.count += 1;
        self.sum_ns += u128::from(duration_ns);
        match self.runs.last_mut() {
            Some((last_ns, times)) if *last_ns == duration_ns && *times < u32::MAX => *times += 1,
            _ => self.runs.push((duration_ns, 1)),
        }
    }

    /// Number of durations.
    #[must_use]
    pub const fn len(&self) -> u64 {
        self.count
    }

    /// Whether there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Mean and percentiles. O(n log n) in the stored values.
    #[must_use]
    pub fn distribution(&self) -> Distribution {
        if self.is_empty() {
            return Distribution::default();
        }
        let mut sorted = self.runs.clone();
        sorted.sort_unstable();
        let percentile = |percent: u64| {
            // The rank (count - 1) * percent / 100, whole part and hundredths.
            let scaled = u128::from(self.count - 1) * u128::from(percent);
            let (rank, hundredths) = (scaled / 100, scaled % 100);
            let below = float(u128::from(value_at(&sorted, rank)));
            let above = float(u128::from(value_at(&sorted, rank + u128::from(hundredths > 0))));
            ms(below + (above - below) * float(hundredths) / 100.0)
        };
        Distribution {
            count: self.count,
            mean: ms(float(self.sum_ns) / float(u128::from(self.count))),
            p50: percentile(50),
            p90: percentile(90),
            p99: percentile(99),
            max: percentile(100),
        }
    }
}

/// The value with `rank` values before it.
fn value_at(sorted: &[(u64, u32)], rank: u128) -> u64 {
    let mut before = 0;
    for (value, times) in sorted {
        before += u128::from(*times);
        if before > rank {
            return *value;
        }
    }
    sorted.last().map_or(0, |(value, _)| *value)
}

fn ms(ns: f64) -> f64 {
    ns / 1e6
}

#[expect(clippy::cast_precision_loss, reason = "a double has sixteen digits, more than anyone reads of a percentile")]
fn float(value: u128) -> f64 {
    value as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn distribution(durations_ms: &[u64]) -> Distribution {
        let mut samples = WeightedSamples::default();
        for duration in durations_ms {
            samples.push(duration * 1_000_000);
        }
        samples.distribution()
    }

    #[test]
    fn percentiles_lie_on_the_line_between_neighbours() {
        // numpy.percentile([4, 1, 3, 2], [50, 90, 99]) = [2.5, 3.7, 3.97]
        let expected = Distribution { count: 4, mean: 2.5, p50: 2.5, p90: 3.7, p99: 3.97, max: 4.0 };
        assert_eq!(distribution(&[4, 1, 3, 2]), expected);
    }

    #[test]
    fn one_duration_is_every_percentile() {
        assert_eq!(distribution(&[7]), Distribution { count: 1, mean: 7.0, p50: 7.0, p90: 7.0, p99: 7.0, max: 7.0 });
    }

    #[test]
    fn no_duration_is_zero() {
        assert_eq!(distribution(&[]), Distribution::default());
    }

    #[test]
    fn equal_durations_in_a_row_take_no_room() {
        let mut samples = WeightedSamples::default();
        (0..1000).for_each(|_| samples.push(5));
        assert_eq!((samples.runs.len(), samples.len()), (1, 1000));
    }

    proptest! {
        #[test]
        fn weights_change_nothing(mut durations in prop::collection::vec(0_u64..50, 1..200)) {
            let weighted = distribution(&durations);
            durations.sort_unstable();
            let (low, high) = ((durations.len() - 1) / 2, durations.len() / 2);
            let median = float(u128::from(durations[low] + durations[high])) / 2.0;
            prop_assert!((weighted.p50 - median).abs() < 1e-9);
            prop_assert_eq!(weighted.count, durations.len() as u64);
            prop_assert!((weighted.max - float(u128::from(durations[durations.len() - 1]))).abs() < 1e-9);
        }
    }
}
