//! How long a step takes: a linear model.

use std::time::Duration;

/// What a step has the model do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StepWork {
    /// Tokens of prefill chunks, recomputed ones included.
    pub num_prefill_tokens: u64,
    /// Tokens of requests that compute one token and sample the next.
    pub num_decode_tokens: u64,
    /// Tokens of context that attention reads, summed over requests.
    pub num_kv_tokens: u64,
    /// Pairs of a prefill token and a token that it attends to.
    pub num_attention_pairs: u64,
}

impl StepWork {
    /// Adds a request that computes `num_tokens` tokens after `num_computed_tokens` others.
    pub fn add(&mut self, num_computed_tokens: u32, num_tokens: u32, samples: bool) {
        let (context, new) = (u64::from(num_computed_tokens), u64::from(num_tokens));
        self.num_kv_tokens += context + new;
        if samples && num_tokens == 1 {
            self.num_decode_tokens += 1;
        } else {
            self.num_prefill_tokens += new;
            self.num_attention_pairs += new * context + new * (new + 1) / 2;
        }
    }

    /// Whether there is nothing to do.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.num_prefill_tokens + self.num_decode_tokens == 0
    }
}

/// Coefficients of a step's time, in microseconds. How those of the presets were found, and what they leave out, is in
/// `docs/step-time.md`.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct StepTimeModel {
    /// A step that computes anything.
    pub base_us: f64,
    /// Per token of a prefill chunk.
    pub prefill_token_us: f64,
    /// Per decoded token.
    pub decode_token_us: f64,
    /// Per token of context that attention reads.
    pub kv_token_us: f64,
    /// Per pair of a prefill token and a token that it attends to; this is what makes long prompts slow.
    pub attention_pair_us: f64,
}

/// A coefficient that no time can have.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{name} is {value}, expected a number of microseconds from 0 to {MAX_COEFFICIENT_US:e}")]
pub struct StepTimeError {
    /// Name of the coefficient.
    pub name: &'static str,
    /// Its value.
    pub value: f64,
}

/// A thousand seconds: far above any hardware, far below what could overflow a clock.
const MAX_COEFFICIENT_US: f64 = 1e9;

impl StepTimeModel {
    /// Checks that all coefficients are finite and from 0 to 10⁹ µs.
    ///
    /// # Errors
    /// Names the first that is not.
    pub fn validate(&self) -> Result<(), StepTimeError> {
        let coefficients = [
            ("base_us", self.base_us),
            ("prefill_token_us", self.prefill_token_us),
            ("decode_token_us", self.decode_token_us),
            ("kv_token_us", self.kv_token_us),
            ("attention_pair_us", self.attention_pair_us),
        ];
        match coefficients.into_iter().find(|(_, value)| !(0.0..=MAX_COEFFICIENT_US).contains(value)) {
            Some((name, value)) => Err(StepTimeError { name, value }),
            None => Ok(()),
        }
    }

    /// The time of a step, to the nanosecond. A step without work takes none.
    #[must_use]
    pub fn duration(&self, work: &StepWork) -> Duration {
        if work.is_empty() {
            return Duration::ZERO;
        }
        let time_us = self.base_us
            + self.prefill_token_us * float(work.num_prefill_tokens)
            + self.decode_token_us * float(work.num_decode_tokens)
            + self.kv_token_us * float(work.num_kv_tokens)
            + self.attention_pair_us * float(work.num_attention_pairs);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "not negative; what exceeds 584 years is cut to it"
        )]
        Duration::from_nanos((time_us * 1e3).round() as u64)
    }
}

#[expect(clippy::cast_precision_loss, reason = "counts of a step are far below 2^53")]
fn float(count: u64) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    const MODEL: StepTimeModel = StepTimeModel {
        base_us: 1000.0,
        prefill_token_us: 10.0,
        decode_token_us: 5.0,
        kv_token_us: 0.5,
        attention_pair_us: 0.25,
    };

    #[test]
    fn a_step_is_the_sum_of_its_parts() {
        let mut work = StepWork::default();
        work.add(0, 4, true); // a whole prompt
        work.add(8, 2, false); // a middle chunk
        work.add(30, 1, true); // a decode
        assert_eq!(
            work,
            StepWork {
                num_prefill_tokens: 6,
                num_decode_tokens: 1,
                num_kv_tokens: 4 + 10 + 31,
                num_attention_pairs: (1 + 2 + 3 + 4) + (9 + 10),
            }
        );
        // 1000 + 60 + 5 + 22.5 + 7.25
        assert_eq!(MODEL.duration(&work), Duration::from_nanos(1_094_750));
    }

    #[test]
    fn a_chunk_of_one_token_that_samples_nothing_is_prefill() {
        let mut work = StepWork::default();
        work.add(7, 1, false);
        assert_eq!((work.num_prefill_tokens, work.num_decode_tokens), (1, 0));
    }

    #[test]
    fn an_empty_step_takes_no_time() {
        assert_eq!(MODEL.duration(&StepWork::default()), Duration::ZERO);
    }

    #[test]
    fn coefficients_must_be_times() {
        for value in [f64::NAN, f64::INFINITY, -1.0, 1.1e9] {
            let error = StepTimeModel { kv_token_us: value, ..MODEL }.validate().expect_err("not a time");
            assert_eq!(error.name, "kv_token_us");
        }
        assert_eq!(MODEL.validate(), Ok(()));
    }
}
