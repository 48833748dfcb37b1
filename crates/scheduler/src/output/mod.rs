//! What goes to the executor and to clients, and what the model gives back, under vLLM's field names.

mod engine_core_outputs;
mod model_runner_output;
mod scheduler_output;

pub(crate) use engine_core_outputs::RequestNews;
pub use engine_core_outputs::{
    EngineCoreEvent, EngineCoreEventType, EngineCoreOutput, EngineCoreOutputs, PrefillStats, SchedulerStats, StopReason,
};
pub use model_runner_output::ModelRunnerOutput;
pub use scheduler_output::{CachedRequestData, NewRequestData, ScheduledTokens, SchedulerOutput};
