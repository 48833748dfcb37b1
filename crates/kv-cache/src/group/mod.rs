//! How a kind of attention finds a prefix in the cache.

pub(crate) mod full_attention;

use crate::ids::BlockId;

/// Leading blocks of a request that are cached already. Reused from lookup to lookup.
///
/// It holds no references: the blocks may be evicted until [`KvCacheManager::admit`](crate::KvCacheManager::admit)
/// takes them.
#[derive(Clone, Debug, Default)]
pub struct PrefixHit {
    pub(crate) blocks: Vec<BlockId>,
    pub(crate) num_tokens: u32,
}

impl PrefixHit {
    /// Tokens whose KV is found.
    #[must_use]
    pub const fn num_tokens(&self) -> u32 {
        self.num_tokens
    }

    /// The blocks found, by position.
    #[must_use]
    pub fn blocks(&self) -> &[BlockId] {
        &self.blocks
    }

    /// Makes this the hit of nothing.
    pub fn clear(&mut self) {
        self.blocks.clear();
        self.num_tokens = 0;
    }
}
