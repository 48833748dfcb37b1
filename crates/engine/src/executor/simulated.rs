//! The executor without a model: steps take what a [`StepTimeModel`] says, tokens are made up.

use std::time::Duration;

use stepline_scheduler::{ModelRunnerOutput, RequestHandle, SchedulerOutput};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::step_time::{StepTimeError, StepTimeModel, StepWork};
use super::{Executor, ExecutorError};

/// Runs nothing; says how long it would have taken.
///
/// A request's tokens depend on the seed, its id and their position only, so that scheduling does not change what is
/// generated: a request that was preempted goes on as it would have.
#[derive(Debug)]
pub struct SimulatedExecutor {
    step_time: StepTimeModel,
    num_gpu_blocks: u32,
    seed: u64,
    /// By slot.
    requests: Vec<KnownRequest>,
}

/// What the executor keeps of a request.
#[derive(Clone, Copy, Debug, Default)]
struct KnownRequest {
    /// Of the handle; 0 is no generation, so the field holds one more.
    generation_plus_1: u64,
    /// Seed of the request's tokens.
    token_seed: u64,
    num_computed_tokens: u32,
}

/// The plan names a request that no plan introduced.
#[derive(Debug, thiserror::Error)]
#[error("the plan names a request in slot {slot} that was never scheduled as new")]
struct UnknownRequest {
    slot: u32,
}

impl SimulatedExecutor {
    /// An executor with `num_gpu_blocks` KV cache blocks, the null block included.
    ///
    /// # Errors
    /// If `step_time` has a coefficient that is no time.
    pub fn new(step_time: StepTimeModel, num_gpu_blocks: u32, seed: u64) -> Result<Self, StepTimeError> {
        step_time.validate()?;
        Ok(Self { step_time, num_gpu_blocks, seed, requests: Vec::new() })
    }

    fn find(&mut self, request: RequestHandle) -> Result<&mut KnownRequest, UnknownRequest> {
        let known = self.requests.get_mut(request.slot.0 as usize);
        known
            .filter(|known| known.generation_plus_1 == u64::from(request.generation) + 1)
            .ok_or(UnknownRequest { slot: request.slot.0 })
    }

    fn introduce(&mut self, request: RequestHandle, id: &str, num_computed_tokens: u32) {
        let slot = request.slot.0 as usize;
        if slot >= self.requests.len() {
            self.requests.resize(slot + 1, KnownRequest::default());
        }
        self.requests[slot] = KnownRequest {
            generation_plus_1: u64::from(request.generation) + 1,
            token_seed: xxh3_64_with_seed(id.as_bytes(), self.seed),
            num_computed_tokens,
        };
    }

    fn run(&mut self, plan: &SchedulerOutput, result: &mut ModelRunnerOutput) -> Result<StepWork, UnknownRequest> {
        for new in &plan.scheduled_new_reqs {
            self.introduce(new.request.handle, new.request.id.as_str(), new.num_computed_tokens);
        }
        for cached in &plan.scheduled_cached_reqs {
            self.find(cached.request)?.num_computed_tokens = cached.num_computed_tokens;
        }
        let mut work = StepWork::default();
        for scheduled in &plan.num_scheduled_tokens {
            let request = *self.find(scheduled.request)?;
            work.add(request.num_computed_tokens, scheduled.num_tokens, scheduled.samples);
            if scheduled.samples {
                let position = u64::from(request.num_computed_tokens) + u64::from(scheduled.num_tokens);
                result.push(&[token_id(request.token_seed, position)]);
            } else {
                result.push(&[]);
            }
        }
        Ok(work)
    }
}

impl Executor for SimulatedExecutor {
    fn num_gpu_blocks(&self) -> u32 {
        self.num_gpu_blocks
    }

    fn execute(&mut self, plan: &SchedulerOutput, result: &mut ModelRunnerOutput) -> Result<Duration, ExecutorError> {
        let work = self.run(plan, result).map_err(|e| ExecutorError::new(plan.step, e))?;
        Ok(self.step_time.duration(&work))
    }
}

/// A token id below 65,536, inside the vocabulary of any current model.
fn token_id(token_seed: u64, position: u64) -> u32 {
    let [low, high, ..] = xxh3_64_with_seed(&position.to_le_bytes(), token_seed).to_le_bytes();
    u32::from(u16::from_le_bytes([low, high]))
}
