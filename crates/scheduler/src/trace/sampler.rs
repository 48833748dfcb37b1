//! Which steps are traced.

use stepline_config::Rate;
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// Decides whether a step is traced at a given rate.
///
/// [`StepTracer`](super::StepTracer) asks one sampler for the batch summary and, only if that was sampled, another for
/// the request snapshots.
pub trait Sampler: Send {
    /// Whether `step` is sampled at `rate`: never at 0, always at 1.
    fn sample(&mut self, step: u64, rate: Rate) -> bool;
}

impl<F: FnMut(u64, Rate) -> bool + Send> Sampler for F {
    fn sample(&mut self, step: u64, rate: Rate) -> bool {
        self(step, rate)
    }
}

/// The two decisions about a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SamplingStage {
    /// Whether the step gets a batch summary.
    BatchSummary,
    /// Whether a step with a batch summary gets request snapshots.
    RequestSnapshots,
}

/// Compares a hash of seed, stage and step with the rate.
///
/// Holds no state: a run repeats, a higher rate samples a superset, and the stages are independent.
#[derive(Clone, Copy, Debug)]
pub struct HashSampler {
    seed: u64,
}

impl HashSampler {
    /// The sampler of a stage.
    #[must_use]
    pub fn new(seed: u64, stage: SamplingStage) -> Self {
        Self { seed: xxh3_64_with_seed(&[stage as u8], seed) }
    }
}

impl Sampler for HashSampler {
    fn sample(&mut self, step: u64, rate: Rate) -> bool {
        rate.admits(xxh3_64_with_seed(&step.to_le_bytes(), self.seed))
    }
}

/// The sampler of the reference's tests: SHA-1 of the text `seed:step`, its first 8 bytes as a fraction of 2^64.
#[cfg(feature = "sha1")]
#[derive(Clone, Copy, Debug)]
pub struct Sha1Sampler {
    /// First half of the hashed text.
    pub seed: u64,
}

#[cfg(feature = "sha1")]
impl Sampler for Sha1Sampler {
    #[expect(clippy::cast_precision_loss, reason = "rounded to the nearest double, as the reference does")]
    fn sample(&mut self, step: u64, rate: Rate) -> bool {
        use sha1::Digest;
        let digest = sha1::Sha1::digest(format!("{}:{step}", self.seed));
        let first: [u8; 8] = digest[..8].try_into().expect("a SHA-1 digest has 20 bytes");
        u64::from_be_bytes(first) as f64 / 2_f64.powi(64) < rate.get()
    }
}

#[cfg(test)]
mod tests {
    use super::{HashSampler, Sampler, SamplingStage};
    use stepline_config::Rate;

    #[test]
    fn seeds_and_stages_sample_different_steps() {
        let half = Rate::new(0.5).expect("a rate");
        let steps = |mut sampler: HashSampler| (0..64).filter(|step| sampler.sample(*step, half)).collect::<Vec<_>>();
        let batch = steps(HashSampler::new(1, SamplingStage::BatchSummary));
        assert_ne!(batch, steps(HashSampler::new(2, SamplingStage::BatchSummary)));
        assert_ne!(batch, steps(HashSampler::new(1, SamplingStage::RequestSnapshots)));
    }
}
