//! The step loop: a scheduler, an executor, a clock, and the replay of a workload through them.
//!
//! It knows nothing of files, terminals or exporters: requests come from an iterator, records leave through a
//! [`StepTracer`], and the caller prints the [`ReplayReport`].
//!
//! ```text
//!             ┌───────────────────────────── Replay ─────────────────────────────┐
//!  requests ──┼─► admission ──► Engine::step ──────────────────────► metrics ────┼──► ReplayReport
//!             │                  1 Scheduler::schedule                           │
//!             │                  2 Executor::execute, the clock moves on         │
//!             │                  3 Scheduler::update_from_output                 │
//!             └──────────────────────────────────────────────────────────────────┘
//! ```
//!
//! Time is virtual: it moves by what the executor says a step took, and jumps to the next arrival when there is
//! nothing to do. A replay is therefore the same, to the bit, whenever it is run from the same seed.
//!
//! # Example
//!
//! ```
//! use stepline_config::EngineArgs;
//! use stepline_engine::{EXECUTOR_PRESETS, Replay, ReplayOptions, SimulatedExecutor};
//! use stepline_workload::WorkloadReader;
//!
//! let file = "{\"arrival_s\": 0.0, \"prompt_len\": 100, \"output_len\": 3}\n\
//!             {\"arrival_s\": 0.5, \"prompt_len\": 200, \"output_len\": 5}\n";
//! let workload = WorkloadReader::from_reader("inline", file.as_bytes())?;
//! let config = EngineArgs::default().resolve()?;
//! let executor = SimulatedExecutor::new(EXECUTOR_PRESETS[0].step_time, EXECUTOR_PRESETS[0].num_gpu_blocks, 7)?;
//!
//! let mut replay = Replay::new(&config, executor, workload, None, ReplayOptions { seed: 7, ..Default::default() })?;
//! let report = replay.run(|_progress| {})?;
//! assert_eq!((report.requests.finished, report.tokens.output), (2, 8));
//! assert!(report.ttft_ms.p99 >= report.ttft_ms.p50);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Modules
//!
//! | module | holds |
//! |---|---|
//! | `engine` | [`Engine`]: one step, and the virtual clock |
//! | `executor` | the [`Executor`] trait, the simulated executor, its step-time model and presets |
//! | `replay` | [`Replay`]: arrivals, admission, rejections, lack of progress |
//! | `metrics` | what is measured of each request |
//! | `distribution` | exact means and percentiles |
//! | `report` | [`ReplayReport`], the result |

mod distribution;
mod engine;
mod executor;
mod metrics;
mod replay;
mod report;

pub use distribution::{Distribution, WeightedSamples};
pub use engine::{Engine, EngineError, StepOutcome};
pub use executor::{
    EXECUTOR_PRESETS, Executor, ExecutorError, ExecutorPreset, SimulatedExecutor, StepTimeError, StepTimeModel,
    StepWork,
};
pub use replay::{MemoryLimit, OutOfMemory, Progress, RejectReason, Rejection, Replay, ReplayError, ReplayOptions};
pub use report::{KvCacheReport, PrefixCacheReport, ReplayReport, RequestCounts, TokenCounts};
/// The observer that a replay takes, so that a caller needs no other crate for it.
pub use stepline_scheduler::trace::{StepTracer, StepTracing};
