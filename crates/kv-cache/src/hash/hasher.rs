//! The hash of one block.

use std::num::NonZeroU32;

use xxhash_rust::xxh3::xxh3_128;

use super::BlockHash;

/// What beside its tokens makes a block's KV its own. Computed once per request.
///
/// spec: kv-cache 2, "Extra keys": the adapter counts for every block, the salt for the first block only.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExtraKeys {
    lora: Option<u128>,
    cache_salt: Option<u128>,
}

impl ExtraKeys {
    /// Keys for an adapter `(name, path)` and a cache salt. An empty salt counts as none, as in vLLM.
    #[must_use]
    pub fn new(lora: Option<(&str, &str)>, cache_salt: Option<&str>) -> Option<Self> {
        let lora = lora.map(|(name, path)| digest_texts(&[name, path]));
        let cache_salt = cache_salt.filter(|salt| !salt.is_empty()).map(|salt| digest_texts(&[salt]));
        (lora.is_some() || cache_salt.is_some()).then_some(Self { lora, cache_salt })
    }
}

/// Each text is preceded by its length, so that no two lists of texts give the same bytes.
fn digest_texts(texts: &[&str]) -> u128 {
    let mut bytes = Vec::new();
    for text in texts {
        bytes.extend_from_slice(&(text.len() as u64).to_le_bytes());
        bytes.extend_from_slice(text.as_bytes());
    }
    xxh3_128(&bytes)
}

/// Hashes blocks of a fixed number of tokens. Keeps the buffer that the hashed bytes are laid out in.
#[derive(Clone, Debug)]
pub struct BlockHasher {
    block_size: u32,
    bytes: Vec<u8>,
}

impl BlockHasher {
    /// A hasher for blocks of `block_size` tokens.
    #[must_use]
    pub const fn new(block_size: NonZeroU32) -> Self {
        Self { block_size: block_size.get(), bytes: Vec::new() }
    }

    /// Tokens per block.
    #[must_use]
    pub const fn block_size(&self) -> u32 {
        self.block_size
    }

    /// Returns the hash of a block whose tokens are `tokens`, in two parts that follow each other.
    ///
    /// `parent` is `None` for the first block of a request.
    #[must_use]
    pub fn hash(&mut self, parent: Option<BlockHash>, tokens: [&[u32]; 2], extra: Option<ExtraKeys>) -> BlockHash {
        debug_assert_eq!(tokens[0].len() + tokens[1].len(), self.block_size as usize, "only full blocks have a hash");
        self.bytes.clear();
        self.bytes.extend_from_slice(&parent.unwrap_or(BlockHash::NONE).0.to_le_bytes());
        for part in tokens {
            self.bytes.extend(part.iter().flat_map(|token| token.to_le_bytes()));
        }
        if let Some(ExtraKeys { lora, cache_salt }) = extra {
            self.push_key(1, lora);
            self.push_key(2, cache_salt.filter(|_| parent.is_none()));
        }
        BlockHash(xxh3_128(&self.bytes))
    }

    /// The tag keeps an adapter and a salt with the same digest apart.
    fn push_key(&mut self, tag: u8, key: Option<u128>) {
        if let Some(key) = key {
            self.bytes.push(tag);
            self.bytes.extend_from_slice(&key.to_le_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use super::{BlockHasher, ExtraKeys};
    use crate::hash::BlockHash;

    fn hasher() -> BlockHasher {
        BlockHasher::new(NonZeroU32::new(4).expect("not 0"))
    }

    fn hash(parent: Option<BlockHash>, tokens: &[u32; 4], extra: Option<ExtraKeys>) -> BlockHash {
        hasher().hash(parent, [tokens, &[]], extra)
    }

    #[test]
    fn a_hash_depends_on_tokens_parent_and_extra_keys() {
        let tokens = [1, 2, 3, 4];
        let plain = hash(None, &tokens, None);
        let adapter = ExtraKeys::new(Some(("sql", "/sql")), None);
        let salt = ExtraKeys::new(None, Some("tenant"));
        let all = [
            plain,
            hash(None, &[1, 2, 3, 5], None),
            hash(Some(plain), &tokens, None),
            hash(None, &tokens, adapter),
            hash(Some(plain), &tokens, adapter),
            hash(None, &tokens, salt),
            hash(None, &tokens, ExtraKeys::new(None, Some("tenant-b"))),
            hash(None, &tokens, ExtraKeys::new(Some(("sql", "/sql")), Some("tenant"))),
            hash(None, &tokens, ExtraKeys::new(Some(("sq", "l/sql")), None)),
        ];
        for (i, a) in all.iter().enumerate() {
            assert!(all[..i].iter().all(|b| a != b), "hash {i} is not its own");
        }
    }

    #[test]
    fn the_salt_counts_in_the_first_block_only() {
        let salt = ExtraKeys::new(None, Some("tenant"));
        let parent = Some(BlockHash(5));
        assert_eq!(hash(parent, &[1, 2, 3, 4], salt), hash(parent, &[1, 2, 3, 4], None));
    }

    #[test]
    fn an_empty_salt_is_none() {
        assert_eq!(ExtraKeys::new(None, Some("")), None);
    }

    #[test]
    fn where_the_prompt_ends_makes_no_difference() {
        let mut hasher = hasher();
        let whole = hasher.hash(None, [&[1, 2, 3, 4], &[]], None);
        assert_eq!(hasher.hash(None, [&[1], &[2, 3, 4]], None), whole);
    }
}
