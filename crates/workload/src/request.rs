//! One request of a workload.

use std::sync::Arc;

use crate::tokens;

/// Longest prompt and longest output that a workload may name, in tokens.
pub const MAX_TOKENS: u32 = 1 << 24;

/// Latest arrival that a workload may name, in nanoseconds after its start: about 31 years.
pub const MAX_ARRIVAL_NS: u64 = 1_000_000_000 * 1_000_000_000;

/// A request: when it arrives, what it brings, how much it generates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestSpec {
    /// Position in the workload, from 0. Chooses the content of prompts that are given by length only.
    pub ordinal: u64,
    /// The id given by the workload, or `req-` and the ordinal. Not checked for being unique.
    pub id: Arc<str>,
    /// Arrival in nanoseconds after the start of the workload, at most [`MAX_ARRIVAL_NS`].
    pub arrival_ns: u64,
    /// The prompt, never empty.
    pub prompt: PromptSpec,
    /// Tokens that the request generates, 1 to [`MAX_TOKENS`].
    pub output_len: u32,
    /// vLLM's priority: lower is served first. 0 unless the workload says otherwise.
    pub priority: i32,
    /// Name of the `LoRA` adapter, never empty.
    pub lora: Option<Arc<str>>,
    /// Only requests with an equal salt share cached blocks. Never empty.
    pub cache_salt: Option<Arc<str>>,
}

/// What a workload says about a prompt. Every form has 1 to [`MAX_TOKENS`] tokens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PromptSpec {
    /// So many tokens that no other prompt of the workload begins with.
    Length(u32),
    /// Exactly these tokens.
    TokenIds(Arc<[u32]>),
    /// Blocks of `block_size` tokens by id: equal ids are equal tokens.
    HashedBlocks {
        /// Tokens of the prompt.
        len: u32,
        /// Tokens per block, at least 1.
        block_size: u32,
        /// Ids of the leading blocks. If `len` ends inside the last one, the prompt ends with the first tokens of
        /// that block; what `len` counts beyond the last block is content of this request alone.
        ids: Arc<[u64]>,
    },
}

impl PromptSpec {
    /// Tokens of the prompt.
    #[must_use]
    pub fn num_tokens(&self) -> u32 {
        match self {
            Self::Length(len) | Self::HashedBlocks { len, .. } => *len,
            Self::TokenIds(ids) => u32::try_from(ids.len()).unwrap_or(u32::MAX),
        }
    }
}

impl RequestSpec {
    /// The prompt as token ids: the same for the same seed, on every machine.
    ///
    /// Made-up tokens are below [`VOCABULARY_SIZE`](crate::VOCABULARY_SIZE). Prompts by length differ from each
    /// other within their first four tokens, and so do blocks with different ids.
    #[must_use]
    pub fn prompt_token_ids(&self, seed: u64) -> Vec<u32> {
        let num_tokens = self.prompt.num_tokens() as usize;
        let mut out = Vec::with_capacity(num_tokens);
        match &self.prompt {
            PromptSpec::Length(_) => tokens::of_request(seed, self.ordinal).extend(&mut out, num_tokens),
            PromptSpec::TokenIds(ids) => out.extend_from_slice(ids),
            PromptSpec::HashedBlocks { block_size, ids, .. } => {
                for &id in ids.iter() {
                    let left = num_tokens - out.len();
                    tokens::of_block(seed, id).extend(&mut out, left.min(*block_size as usize));
                }
                let tail = num_tokens - out.len();
                tokens::of_request(seed, self.ordinal).extend(&mut out, tail);
            }
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(ordinal: u64, prompt: PromptSpec) -> RequestSpec {
        RequestSpec {
            ordinal,
            id: format!("req-{ordinal}").into(),
            arrival_ns: 0,
            prompt,
            output_len: 1,
            priority: 0,
            lora: None,
            cache_salt: None,
        }
    }

    fn blocks(len: u32, ids: &[u64]) -> PromptSpec {
        PromptSpec::HashedBlocks { len, block_size: 8, ids: ids.into() }
    }

    #[test]
    fn equal_block_ids_are_equal_tokens_wherever_they_stand() {
        let a = request(0, blocks(24, &[1, 2, 3])).prompt_token_ids(7);
        let b = request(1, blocks(24, &[1, 3, 2])).prompt_token_ids(7);
        assert_eq!(a[..8], b[..8]);
        assert_eq!(a[8..16], b[16..]);
        assert_ne!(a[8..16], b[8..16]);
    }

    #[test]
    fn partial_last_block_is_a_prefix_of_the_block() {
        let whole = request(0, blocks(16, &[1, 2])).prompt_token_ids(7);
        let partial = request(1, blocks(11, &[1, 2])).prompt_token_ids(7);
        assert_eq!(partial, whole[..11]);
    }

    #[test]
    fn tokens_beyond_the_last_block_belong_to_the_request() {
        let a = request(0, blocks(20, &[1, 2])).prompt_token_ids(7);
        let b = request(1, blocks(20, &[1, 2])).prompt_token_ids(7);
        assert_eq!(a[..16], b[..16]);
        assert_ne!(a[16..], b[16..]);
        assert_eq!(a.len(), 20);
    }

    #[test]
    fn prompts_by_length_share_nothing() {
        let a = request(0, PromptSpec::Length(64)).prompt_token_ids(7);
        let b = request(1, PromptSpec::Length(64)).prompt_token_ids(7);
        assert_ne!(a[..4], b[..4]);
        assert_eq!(a, request(0, PromptSpec::Length(64)).prompt_token_ids(7));
        assert_ne!(a, request(0, PromptSpec::Length(64)).prompt_token_ids(8));
    }
}
