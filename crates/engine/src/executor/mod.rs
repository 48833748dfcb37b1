//! Who runs the model: the trait, and the executor that only says how long it would take.

mod presets;
mod simulated;
mod step_time;

use std::time::Duration;

use stepline_scheduler::{ModelRunnerOutput, SchedulerOutput};

pub use presets::{EXECUTOR_PRESETS, ExecutorPreset};
pub use simulated::SimulatedExecutor;
pub use step_time::{StepTimeError, StepTimeModel, StepWork};

/// Runs the steps that a scheduler plans.
pub trait Executor {
    /// Blocks that the KV cache of this executor has, the null block included.
    fn num_gpu_blocks(&self) -> u32;

    /// Runs the step `plan` and returns how long it took.
    ///
    /// `result` comes in empty and gets one list of tokens per entry of `plan.num_scheduled_tokens`, in that order: the
    /// sampled token where [`samples`](stepline_scheduler::ScheduledTokens::samples) says so, else nothing. Empty
    /// plans are run too: they report ended requests.
    ///
    /// # Errors
    /// If the step could not be run.
    fn execute(&mut self, plan: &SchedulerOutput, result: &mut ModelRunnerOutput) -> Result<Duration, ExecutorError>;
}

/// A step that could not be run.
#[derive(Debug, thiserror::Error)]
#[error("step {step}: the executor failed: {source}")]
pub struct ExecutorError {
    step: u64,
    source: Box<dyn std::error::Error + Send + Sync>,
}

impl ExecutorError {
    /// A failure of step `step`.
    pub fn new(step: u64, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self { step, source: source.into() }
    }
}
