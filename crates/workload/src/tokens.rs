//! Token ids from a seed.
//!
//! A stream of tokens is named by a key; its words are a bijective mixing of the key, its successors and nothing
//! else, so that two keys of one kind never give the same first word: no prefix is shared that the workload does
//! not share.

/// Made-up token ids are below this: the vocabularies of current models are larger.
pub const VOCABULARY_SIZE: u32 = 1 << u16::BITS;

/// The increment of `SplitMix64`: the golden ratio in 64 bits.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// The content that belongs to one request alone.
pub(crate) fn of_request(seed: u64, ordinal: u64) -> TokenStream {
    TokenStream::new(mix(seed), ordinal)
}

/// The content of the block `id` of the workload.
pub(crate) fn of_block(seed: u64, id: u64) -> TokenStream {
    TokenStream::new(mix(seed ^ GOLDEN), id)
}

/// An endless, repeatable stream of token ids.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TokenStream {
    state: u64,
}

impl TokenStream {
    fn new(kind: u64, key: u64) -> Self {
        Self { state: mix(kind ^ key) }
    }

    /// Appends the first `num_tokens` tokens of the stream to `out`.
    pub(crate) fn extend(mut self, out: &mut Vec<u32>, num_tokens: usize) {
        let end = out.len() + num_tokens;
        while out.len() < end {
            let word = mix(self.state);
            self.state = self.state.wrapping_add(GOLDEN);
            // Four tokens a word, each of 16 bits.
            let bytes = word.to_le_bytes();
            let (tokens, _) = bytes.as_chunks();
            out.extend(tokens.iter().map(|&token| u32::from(u16::from_le_bytes(token))).take(end - out.len()));
        }
    }
}

/// The finaliser of `SplitMix64`: a bijection of 64 bits that leaves no visible trace of its argument.
fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    fn first(stream: TokenStream, num_tokens: usize) -> Vec<u32> {
        let mut out = Vec::new();
        stream.extend(&mut out, num_tokens);
        out
    }

    #[test]
    fn streams_of_one_kind_differ_within_four_tokens() {
        let seen: HashSet<_> = (0..100_000).map(|id| first(of_block(3, id), 4)).collect();
        assert_eq!(seen.len(), 100_000);
    }

    #[test]
    fn a_shorter_stream_is_a_prefix_of_a_longer_one() {
        let long = first(of_request(1, 2), 33);
        for n in 0..33 {
            assert_eq!(first(of_request(1, 2), n), long[..n]);
        }
    }

    #[test]
    fn tokens_stay_in_the_vocabulary_and_use_it() {
        let tokens = first(of_request(0, 0), 1 << 20);
        assert!(tokens.iter().all(|&t| t < VOCABULARY_SIZE));
        assert!(tokens.iter().collect::<HashSet<_>>().len() > 60_000);
    }

    #[test]
    fn a_request_and_a_block_of_the_same_number_differ() {
        assert_ne!(first(of_request(5, 1), 4), first(of_block(5, 1), 4));
    }
}
