//! The record of one block.

use crate::hash::BlockHash;
use crate::ids::BlockId;

/// Everything the pool knows of a block, in one small record.
///
/// The links belong to two intrusive lists: the free queue (while `ref_count` is 0) and the ring of blocks that
/// carry the same key (while `key` is set).
#[derive(Clone, Debug)]
pub(crate) struct Block {
    /// Key in the prefix map; `None` while the block is not cached.
    pub(crate) key: Option<BlockHash>,
    /// Tables that hold this block.
    pub(crate) ref_count: u32,
    pub(crate) free_prev: BlockId,
    pub(crate) free_next: BlockId,
    pub(crate) twin_prev: BlockId,
    pub(crate) twin_next: BlockId,
}

impl Block {
    /// A free, uncached block that is linked to itself only.
    pub(crate) const fn unlinked(id: BlockId) -> Self {
        Self { key: None, ref_count: 0, free_prev: id, free_next: id, twin_prev: id, twin_next: id }
    }
}

#[cfg(test)]
mod tests {
    use super::Block;

    #[test]
    fn a_block_record_fits_one_cache_line() {
        assert!(size_of::<Block>() <= 64, "{} B", size_of::<Block>());
    }
}
