//! Engine arguments of vLLM V1: layered, validated, explained.
//!
//! [`EngineArgs`] is what a user gives, under vLLM's names; [`EngineConfig`] is what an engine obeys.
//! This crate knows no scheduler and no cache; it reads neither clock nor network.
//!
//! ```
//! use stepline_config::EngineArgs;
//!
//! let args = EngineArgs { max_num_seqs: Some(64), step_tracing_sample_rate: Some(1.0), ..EngineArgs::default() };
//! let config = args.resolve()?;
//! assert_eq!(config.scheduler.max_num_batched_tokens, 2048);
//!
//! // Faults are reported together.
//! let args = EngineArgs { watermark: Some(1.0), step_tracing_sample_rate: Some(1.5), ..EngineArgs::default() };
//! assert_eq!(args.resolve().unwrap_err().faults().len(), 2);
//! # Ok::<(), stepline_config::ConfigErrors>(())
//! ```
//!
//! | module | its idea |
//! |---|---|
//! | [`settings`] | the table that declares each setting once |
//! | `engine_config`, `resolve`, `validate` | the configuration, how it is made, what it must obey |
//! | `rate`, `choices` | values that cannot be wrong |
//! | `error` | faults, and where values come from |
//! | `load` (feature `load`) | defaults < file < environment < flags |
//! | `cli` (feature `cli`) | the flags, for clap |
//! | [`docs`], `schema` (feature `schema`) | the reference and the JSON Schema, from the table |
//!
//! Without features only `thiserror` is compiled besides this crate.

mod choices;
#[cfg(feature = "cli")]
pub mod cli;
pub mod docs;
mod engine_config;
mod error;
#[cfg(feature = "load")]
mod load;
mod notice;
mod rate;
mod redact;
mod resolve;
#[cfg(feature = "schema")]
pub mod schema;
pub mod settings;
mod validate;

pub use choices::{DetailedTraces, PrefixCachingHashAlgo, SchedulingPolicy, TracedModule, UnknownChoice};
pub use engine_config::{CacheConfig, EngineConfig, LoraConfig, ModelConfig, ObservabilityConfig, SchedulerConfig};
pub use error::{ConfigErrors, Fault, Origin, Problem};
#[cfg(feature = "load")]
pub use load::{LoadedConfig, Loader, ShownValue};
pub use notice::Notice;
pub use rate::{Rate, RateError, Watermark, WatermarkError};
pub use settings::EngineArgs;
