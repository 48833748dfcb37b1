//! The result of a replay.

use serde::Serialize;

use crate::distribution::Distribution;
use crate::replay::Rejection;

/// What a replay measured, on virtual time: the same for the same workload, configuration and seed.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ReplayReport {
    /// The replay was stopped before its end: the figures are of what it had done.
    pub interrupted: bool,
    /// Requests by their end.
    pub requests: RequestCounts,
    /// Why requests were rejected, by reason.
    pub rejections: Vec<Rejection>,
    /// From the start of the workload to the end of the last step that computed something, seconds.
    pub duration_s: f64,
    /// `schedule` calls, empty ones included.
    pub steps: u64,
    /// Tokens of finished requests.
    pub tokens: TokenCounts,
    /// Time to first token: from arrival to the first output.
    pub ttft_ms: Distribution,
    /// Time per output token: from the first output to the last, per token after the first; 0 for one token.
    pub tpot_ms: Distribution,
    /// Inter-token latency: from one output of a request to its next.
    pub itl_ms: Distribution,
    /// From arrival to the last output.
    pub e2e_ms: Distribution,
    /// From being queued to being scheduled for the first time.
    pub queue_ms: Distribution,
    /// Preemptions, each a recomputation.
    pub preemptions: u64,
    /// What the prefix cache gave.
    pub prefix_cache: PrefixCacheReport,
    /// The KV cache.
    pub kv_cache: KvCacheReport,
}

/// Requests of a workload by their end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct RequestCounts {
    /// Read from the workload; the sum of finished, rejected and unfinished.
    pub total: u64,
    /// Ran to their end.
    pub finished: u64,
    /// Of these, ended by `max_model_len` before their output length.
    pub clipped: u64,
    /// Refused on arrival.
    pub rejected: u64,
    /// Still ran or waited when the replay was interrupted.
    pub unfinished: u64,
}

/// Tokens of finished requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct TokenCounts {
    /// Prompt tokens.
    pub prompt: u64,
    /// Output tokens.
    pub output: u64,
    /// Prompt tokens per second of the replay; `None` if it took no time.
    pub prompt_per_s: Option<f64>,
    /// Output tokens per second of the replay; `None` if it took no time.
    pub output_per_s: Option<f64>,
}

/// What the prefix cache gave. Requests that were preempted before count apart, as in vLLM.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct PrefixCacheReport {
    /// Tokens looked up on first admissions.
    pub queries: u64,
    /// Tokens found on first admissions.
    pub hits: u64,
    /// Hits per query, 0 if there were none.
    pub hit_rate: f64,
    /// Tokens looked up on resumptions.
    pub preempted_queries: u64,
    /// Tokens found on resumptions.
    pub preempted_hits: u64,
}

/// The KV cache and how full it was.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct KvCacheReport {
    /// Tokens per block.
    pub block_size: u32,
    /// Blocks that requests can have.
    pub num_blocks: u32,
    /// Highest share in use during a step, 0 ≤ x ≤ 1.
    pub peak_usage: f64,
}
