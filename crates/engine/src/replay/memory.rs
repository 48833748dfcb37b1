//! How much memory the requests of a replay may take.
//!
//! The scheduler keeps the tokens of everybody who waits, as vLLM's does. In a trace that offers more than the engine
//! can serve they become ever more, so that there is a limit: a replay that would be killed says why it stops.

use std::hint::black_box;

use stepline_scheduler::RequestId;
use stepline_workload::RequestSpec;

/// Bytes per token id.
const TOKEN_BYTES: u64 = 4;
/// Bytes per hash of a full block.
const HASH_BYTES: u64 = 16;
/// What must be free beside a new request, for all that a step may allocate.
const HEADROOM_BYTES: u64 = 64 << 20;

/// The prompts of all requests that run or wait, and the next one, need too much memory.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "request `{id}`: its prompt and those of the {num_requests} requests that run or wait need {} MiB, {limit}; use a \
     shorter trace (--max-requests), serve faster, or change --max-request-memory-gib",
    num_bytes.div_ceil(1 << 20)
)]
pub struct OutOfMemory {
    /// The request that could not be taken in.
    pub id: RequestId,
    /// Requests that had been taken in and had not ended.
    pub num_requests: usize,
    /// What all of them need, by the estimate of [`ReplayOptions`](super::ReplayOptions::max_request_memory_bytes).
    pub num_bytes: u64,
    /// What they exceed.
    pub limit: MemoryLimit,
}

/// What a replay's requests exceed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MemoryLimit {
    /// The limit of the replay's options, in bytes.
    #[error("over the limit of {} MiB", .0 >> 20)]
    Option(u64),
    /// What the system gives.
    #[error("more than the system gives")]
    System,
}

/// Estimates the memory of requests and compares it with the limit.
#[derive(Clone, Copy, Debug)]
pub(super) struct RequestMemory {
    pub(super) block_size: u32,
    pub(super) limit_bytes: u64,
}

impl RequestMemory {
    /// Checks that `spec` may join `num_requests` requests of `num_live_tokens` prompt tokens.
    pub(super) fn check(
        &self,
        spec: &RequestSpec,
        num_requests: usize,
        num_live_tokens: u64,
    ) -> Result<(), OutOfMemory> {
        let num_new_tokens = u64::from(spec.prompt.num_tokens());
        let num_bytes = self.bytes_of(num_live_tokens.saturating_add(num_new_tokens));
        let fault = |limit| OutOfMemory { id: RequestId(spec.id.clone()), num_requests, num_bytes, limit };
        if num_bytes > self.limit_bytes {
            return Err(fault(MemoryLimit::Option(self.limit_bytes)));
        }
        // Twice, for a moment: the prompt is made, then shared; a hash chain grows by doubling.
        if can_allocate(2 * self.bytes_of(num_new_tokens) + HEADROOM_BYTES) {
            Ok(())
        } else {
            Err(fault(MemoryLimit::System))
        }
    }

    fn bytes_of(&self, num_tokens: u64) -> u64 {
        let num_full_blocks = num_tokens.checked_div(u64::from(self.block_size)).unwrap_or(0);
        num_tokens.saturating_mul(TOKEN_BYTES).saturating_add(num_full_blocks.saturating_mul(HASH_BYTES))
    }
}

/// Whether the allocator has so much. It is given back untouched: this costs two system calls, no pages.
fn can_allocate(num_bytes: u64) -> bool {
    let mut probe: Vec<u8> = Vec::new();
    let is_there = usize::try_from(num_bytes).is_ok_and(|num_bytes| probe.try_reserve_exact(num_bytes).is_ok());
    // An allocation that nobody looks at may be optimised away.
    black_box(&probe);
    is_there
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prompt_counts_by_its_tokens_and_full_blocks() {
        let memory = RequestMemory { block_size: 16, limit_bytes: 0 };
        assert_eq!(memory.bytes_of(15), 60);
        assert_eq!(memory.bytes_of(33), 33 * 4 + 2 * 16);
    }

    #[test]
    fn what_no_machine_has_cannot_be_allocated() {
        assert!(can_allocate(1 << 20));
        assert!(!can_allocate(u64::MAX >> 1));
    }
}
