//! The blocks of one request, by position.

use crate::ids::BlockId;

/// Position i holds the KV of tokens `i * block_size ..`. Only grows until it is freed as a whole.
#[derive(Clone, Debug, Default)]
pub(crate) struct BlockTable {
    pub(crate) blocks: Vec<BlockId>,
    /// Leading blocks that are registered in the prefix cache.
    pub(crate) num_registered: u32,
}

impl BlockTable {
    pub(crate) fn len(&self) -> u32 {
        u32::try_from(self.blocks.len()).expect("a table holds no more blocks than the pool")
    }
}
