//! The scheduler of vLLM V1, decision for decision.
//!
//! It knows neither clocks nor threads nor I/O, neither models nor clients, and nothing of OpenTelemetry: it is a
//! deterministic state machine, given the time as an argument.
//!
//! ```text
//!   add_request ──► waiting ──admit──► running ──stop──► finished, reported by the next step
//!                      ▲                  │
//!                      └─────preempt──────┘        blocks are lost, tokens are kept
//! ```
//!
//! # One step
//!
//! ```
//! use stepline_config::EngineArgs;
//! use stepline_scheduler::{ModelRunnerOutput, Nanos, NewRequest, SamplingParams, Scheduler};
//!
//! let config = EngineArgs { max_model_len: Some(64), ..EngineArgs::default() }.resolve()?;
//! let mut scheduler = Scheduler::new(&config, 100)?;
//! let sampling = SamplingParams { max_tokens: Some(2), ..SamplingParams::default() };
//! scheduler.add_request(NewRequest::new("a", [1, 2, 3, 4, 5], sampling), Nanos(0), &mut ())?;
//!
//! let mut scheduled = Vec::new();
//! while scheduler.has_requests() {
//!     let now = Nanos(scheduler.step_id() * 1_000_000);
//!     let plan = scheduler.schedule(now, &mut ());
//!     scheduled.push(plan.total_num_scheduled_tokens);
//!
//!     // A model that always samples token 7.
//!     let mut result = ModelRunnerOutput::default();
//!     for request in &plan.num_scheduled_tokens {
//!         result.push(if request.samples { &[7] } else { &[] });
//!     }
//!     let outputs = scheduler.update_from_output(&plan, &result, now, &mut ())?;
//!     assert!(outputs.outputs.iter().all(|output| outputs.new_token_ids(output) == [7]));
//! }
//! // The prompt, one more token, and an empty step that reports the end.
//! assert_eq!(scheduled, [5, 1, 0]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Modules
//!
//! | module | holds |
//! |---|---|
//! | `schedule` | the scheduling call as an outline |
//! | `running`, `waiting`, `preempt` | the two passes, and whose blocks are taken |
//! | `commit`, `output` | the plan written down, counters advanced |
//! | `update`, `stop` | what the model returned, and when an output ends |
//! | `add`, `finish` | requests come and go, resets |
//! | `tokens`, `events` | what a request gathers on its way |
//! | `request`, `request_table`, `queue`, `status` | state |
//! | `step`, `budget`, `limits` | the plan while it is made |
//! | `features` | adapters |
//! | [`trace`] | observers, sampling |
//! | `invariants` | what must hold between calls |
//! | `testing` (feature) | a judge of outputs |

mod add;
mod budget;
mod commit;
mod events;
mod features;
mod finish;
mod ids;
mod invariants;
mod limits;
mod output;
mod preempt;
mod queue;
mod request;
mod request_table;
mod running;
mod schedule;
mod scheduler;
mod status;
mod step;
mod stop;
#[cfg(feature = "testing")]
pub mod testing;
mod time;
mod tokens;
pub mod trace;
mod update;
mod waiting;

pub use add::AddRequestError;
pub use stepline_kv_cache::PrefixCacheStats;

pub use ids::{BlockId, RequestHandle, RequestId, RequestRef, RequestSlot};
pub use invariants::BrokenInvariant;
pub use output::{
    CachedRequestData, EngineCoreEvent, EngineCoreEventType, EngineCoreOutput, EngineCoreOutputs, ModelRunnerOutput,
    NewRequestData, PrefillStats, ScheduledTokens, SchedulerOutput, SchedulerStats, StopReason,
};
pub use request::{JourneyContext, LoraRequest, NewRequest, RepetitionDetection, SamplingParams};
pub use scheduler::{Scheduler, SchedulerError};
pub use status::{ExternalFinish, FinishReason, RequestStatus};
pub use time::Nanos;
pub use update::UpdateError;
