//! Request traces: who arrives when, with how long a prompt, and how much is generated.
//!
//! It knows nothing of schedulers, caches or clocks: a reader turns a file into [`RequestSpec`]s, one at a time,
//! and a [`RequestSpec`] turns itself into prompt token ids. Memory does not grow with the length of the file.
//!
//! ```text
//!   bytes ──► gunzip ──► lines ──► fields ──► RequestSpec ──► prompt token ids (seed)
//!             if gzipped  bounded   by format  arrivals in order
//! ```
//!
//! | format | recognised by | documented in |
//! |---|---|---|
//! | [`WorkloadFormat::AzureCsv`] | a header line with `TIMESTAMP`, `ContextTokens`, `GeneratedTokens` | Azure's public LLM inference traces |
//! | [`WorkloadFormat::MooncakeJsonl`] | JSON objects with `timestamp` | Mooncake's public traces |
//! | [`WorkloadFormat::SteplineJsonl`] | JSON objects with `arrival_s` or `arrival_ns` | `docs/workload-format.md` |
//!
//! # Example
//!
//! ```
//! use stepline_workload::{WorkloadError, WorkloadReader};
//!
//! let file = "{\"arrival_s\": 0.0, \"prompt_len\": 5, \"output_len\": 2}\n\
//!             {\"arrival_s\": 0.5, \"prompt_token_ids\": [9, 8, 7], \"output_len\": 4}\n";
//! let requests: Vec<_> =
//!     WorkloadReader::from_reader("inline", file.as_bytes())?.collect::<Result<_, WorkloadError>>()?;
//! assert_eq!(requests[1].arrival_ns, 500_000_000);
//! assert_eq!(requests[1].prompt_token_ids(0), [9, 8, 7]);
//! assert_eq!(requests[0].prompt_token_ids(0).len(), 5);
//! # Ok::<(), WorkloadError>(())
//! ```
//!
//! # Modules
//!
//! | module | holds |
//! |---|---|
//! | `request` | [`RequestSpec`] and [`PromptSpec`] |
//! | `tokens` | token ids from a seed |
//! | `reader` | [`WorkloadReader`]: recognition, order of arrivals, the iterator |
//! | `format` | one parser per format, and the JSON object they share |
//! | `lines`, `input` | bounded lines with their numbers; files, gzip, byte-order marks |
//! | `sample` | the embedded trace |
//! | `error` | [`WorkloadError`]: place, fault, expectation, remedy |

mod error;
mod format;
mod input;
mod lines;
mod reader;
mod request;
mod sample;
mod tokens;

pub use error::{Fault, WorkloadError};
pub use format::WorkloadFormat;
pub use reader::WorkloadReader;
pub use request::{MAX_ARRIVAL_NS, MAX_TOKENS, PromptSpec, RequestSpec};
pub use sample::{EMBEDDED_SAMPLE, EmbeddedSample};
pub use tokens::VOCABULARY_SIZE;
