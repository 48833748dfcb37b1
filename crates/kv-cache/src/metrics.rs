//! Figures for tracing: read-only, no scan.

use crate::ids::RequestSlot;
use crate::manager::KvCacheManager;

/// The KV cache of one request. Blocks are counted over all groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestKvMetrics {
    /// Blocks in the request's tables.
    pub blocks_allocated_gpu: u32,
    /// Blocks of these that are registered in the prefix cache.
    pub blocks_cached_gpu: u32,
    /// Blocks offloaded to CPU memory; `None` without an offloading connector.
    pub blocks_cpu_offload: Option<u32>,
    /// Blocks offloaded to disk; `None` without an offloading connector.
    pub blocks_disk_offload: Option<u32>,
    /// Prompt tokens that the request had to compute: its prompt less the hit of its first admission, if positive.
    pub effective_prompt_len: Option<u32>,
}

/// The pool in one step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StepKvSummary {
    /// Blocks that can be held: the pool without the null block.
    pub blocks_total_gpu: u32,
    /// Blocks that no request holds.
    pub blocks_free_gpu: u32,
    /// Share of the blocks that requests hold, 0 ≤ x ≤ 1.
    pub usage_gpu_ratio: f64,
}

impl KvCacheManager {
    /// Returns the KV figures of a request with a prompt of `num_prompt_tokens`, of which `num_cached_tokens` were
    /// hit when it was first admitted. O(1).
    #[must_use]
    pub fn request_metrics(
        &self,
        slot: RequestSlot,
        num_prompt_tokens: u32,
        num_cached_tokens: u32,
    ) -> RequestKvMetrics {
        let (allocated, cached) = self.tables.get(slot.index()).map_or((0, 0), |t| (t.len(), t.num_registered));
        RequestKvMetrics {
            blocks_allocated_gpu: allocated,
            blocks_cached_gpu: cached,
            blocks_cpu_offload: None,
            blocks_disk_offload: None,
            effective_prompt_len: num_prompt_tokens.checked_sub(num_cached_tokens).filter(|len| *len > 0),
        }
    }

    /// Returns the figures of the pool. O(1).
    #[must_use]
    pub fn step_summary(&self) -> StepKvSummary {
        StepKvSummary {
            blocks_total_gpu: self.pool.num_usable(),
            blocks_free_gpu: self.pool.num_free(),
            usage_gpu_ratio: self.usage(),
        }
    }

    /// Returns `1 - free / (num_blocks - 1)`, and 0 for a pool of the null block alone. spec: kv-cache 1.
    #[must_use]
    pub fn usage(&self) -> f64 {
        match self.pool.num_usable() {
            0 => 0.0,
            usable => 1.0 - f64::from(self.pool.num_free()) / f64::from(usable),
        }
    }
}
