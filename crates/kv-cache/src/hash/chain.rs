//! The hashes of a request's full blocks.

use super::{BlockHash, BlockHasher, ExtraKeys};

/// A request's tokens: the prompt, then what was generated.
#[derive(Clone, Copy, Debug)]
pub struct TokenView<'a> {
    /// Tokens of the prompt.
    pub prompt: &'a [u32],
    /// Generated tokens that follow the prompt.
    pub output: &'a [u32],
}

impl<'a> TokenView<'a> {
    /// Tokens in both parts.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.prompt.len() + self.output.len()
    }

    /// Whether there are no tokens.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The tokens from `start` to `end`, as the part in the prompt and the part in the output.
    fn range(&self, start: usize, end: usize) -> [&'a [u32]; 2] {
        let border = self.prompt.len();
        [
            &self.prompt[start.min(border)..end.min(border)],
            &self.output[start.max(border) - border..end.max(border) - border],
        ]
    }
}

/// One hash per full block of a request, from its first token on. Kept through preemption.
#[derive(Clone, Debug, Default)]
pub struct HashChain {
    hashes: Vec<BlockHash>,
}

impl HashChain {
    /// Hashes the blocks that have become full since the last call; a partial block has no hash.
    ///
    /// `tokens` must begin with the tokens of the call before. O(new full blocks).
    pub fn extend(&mut self, hasher: &mut BlockHasher, tokens: TokenView<'_>, extra: Option<ExtraKeys>) {
        let block_size = hasher.block_size() as usize;
        let num_full = tokens.len() / block_size;
        if self.hashes.is_empty() {
            self.hashes.reserve_exact(num_full); // the prompt; what is generated grows it by doubling
        }
        for block_idx in self.hashes.len()..num_full {
            let start = block_idx * block_size;
            let parent = self.hashes.last().copied();
            self.hashes.push(hasher.hash(parent, tokens.range(start, start + block_size), extra));
        }
    }

    /// The hashes, by block position.
    #[must_use]
    pub fn as_slice(&self) -> &[BlockHash] {
        &self.hashes
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use super::{HashChain, TokenView};
    use crate::hash::BlockHasher;

    #[test]
    fn growing_token_by_token_gives_the_hashes_of_the_whole() {
        let tokens: Vec<u32> = (0..23).collect();
        let mut hasher = BlockHasher::new(NonZeroU32::new(4).expect("not 0"));
        let mut whole = HashChain::default();
        whole.extend(&mut hasher, TokenView { prompt: &tokens, output: &[] }, None);
        assert_eq!(whole.as_slice().len(), 5);

        let (prompt, output) = tokens.split_at(6);
        let mut grown = HashChain::default();
        for n in 0..=output.len() {
            grown.extend(&mut hasher, TokenView { prompt, output: &output[..n] }, None);
        }
        assert_eq!(grown.as_slice(), whole.as_slice());
    }
}
