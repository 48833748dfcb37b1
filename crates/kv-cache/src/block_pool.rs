//! The blocks that all requests share: reference counts, reuse, eviction.

use crate::block::Block;
use crate::free_queue::FreeQueue;
use crate::hash::BlockHash;
use crate::ids::{BlockId, NULL_BLOCK};
use crate::prefix_map::PrefixMap;

/// A fixed number of blocks with their reference counts, free order and keys.
///
/// A block is either held by at least one table or in the free queue. A free block keeps its key, and can be hit,
/// until it is taken again: that is its eviction. spec: kv-cache 1.
#[derive(Debug)]
pub(crate) struct BlockPool {
    blocks: Vec<Block>,
    free: FreeQueue,
    map: PrefixMap,
}

impl BlockPool {
    /// `num_blocks` includes the null block and must be at least 1.
    pub(crate) fn new(num_blocks: u32) -> Self {
        let mut blocks: Vec<Block> = (0..num_blocks).map(|id| Block::unlinked(BlockId(id))).collect();
        let free = FreeQueue::with_all(&mut blocks);
        Self { blocks, free, map: PrefixMap::default() }
    }

    /// Blocks that can be handed out: all but the null block.
    pub(crate) fn num_usable(&self) -> u32 {
        u32::try_from(self.blocks.len()).expect("block ids are 32-bit") - 1
    }

    pub(crate) const fn num_free(&self) -> u32 {
        self.free.len()
    }

    pub(crate) fn find(&self, key: BlockHash) -> Option<BlockId> {
        self.map.find(&self.blocks, key)
    }

    pub(crate) fn is_free(&self, id: BlockId) -> bool {
        id != NULL_BLOCK && self.blocks[id.index()].ref_count == 0
    }

    /// Moves `n` blocks from the front of the free queue to the end of `table`; each loses its key.
    ///
    /// The caller has checked that `n` blocks are free.
    pub(crate) fn take(&mut self, n: u32, table: &mut Vec<BlockId>) {
        for _ in 0..n {
            let id = self.free.pop_front(&mut self.blocks).expect("the caller checked that enough blocks are free");
            self.map.remove(&mut self.blocks, id);
            self.blocks[id.index()].ref_count = 1;
            table.push(id);
        }
    }

    /// Adds a reference to each block that was hit; a free one leaves the queue and keeps its key.
    pub(crate) fn touch(&mut self, hit: &[BlockId]) {
        for &id in hit {
            if self.is_free(id) {
                self.free.remove(&mut self.blocks, id);
            }
            self.blocks[id.index()].ref_count += 1;
        }
    }

    /// Drops one reference to each block, in the order given.
    ///
    /// Blocks without a key that become free go to the front of the queue as a list, in order; blocks with a key
    /// to the back. So memory that can never be hit is reused first. spec: kv-cache 1, "free a list".
    pub(crate) fn free_in_order(&mut self, blocks: impl Iterator<Item = BlockId>) {
        let mut front = NULL_BLOCK;
        for id in blocks.filter(|id| *id != NULL_BLOCK) {
            let block = &mut self.blocks[id.index()];
            debug_assert!(block.ref_count > 0, "block {} is freed more often than it was taken", id.0);
            block.ref_count -= 1;
            if block.ref_count > 0 {
                continue;
            }
            if block.key.is_some() {
                self.free.push_back(&mut self.blocks, id);
            } else {
                self.free.insert_after(&mut self.blocks, front, id);
                front = id;
            }
        }
    }

    /// Gives a held block its key, so that lookups find it.
    pub(crate) fn register(&mut self, id: BlockId, key: BlockHash) {
        self.map.insert(&mut self.blocks, id, key);
    }

    /// Forgets all keys if no block is in use; the order of the free queue stays. spec: kv-cache 9.
    pub(crate) fn reset(&mut self) -> bool {
        let idle = self.num_free() == self.num_usable();
        if idle {
            self.map.clear(&mut self.blocks);
        }
        idle
    }

    pub(crate) fn free_queue(&self) -> impl Iterator<Item = BlockId> + '_ {
        FreeQueue::iter(&self.blocks)
    }

    pub(crate) fn records(&self) -> &[Block] {
        &self.blocks
    }

    pub(crate) const fn prefix_map(&self) -> &PrefixMap {
        &self.map
    }
}

#[cfg(test)]
mod tests {
    use super::BlockPool;
    use crate::hash::BlockHash;
    use crate::ids::BlockId;

    fn order(pool: &BlockPool) -> Vec<u32> {
        pool.free_queue().map(|id| id.0).collect()
    }

    #[test]
    fn unhashed_blocks_are_reused_first_and_hashed_blocks_last() {
        let mut pool = BlockPool::new(8);
        let mut table = Vec::new();
        pool.take(4, &mut table);
        pool.register(BlockId(1), BlockHash(1));
        pool.register(BlockId(2), BlockHash(2));
        pool.free_in_order(table.into_iter().rev());
        assert_eq!(order(&pool), [4, 3, 5, 6, 7, 2, 1]);
    }

    #[test]
    fn a_hit_block_survives_the_first_of_its_holders() {
        let mut pool = BlockPool::new(4);
        let mut table = Vec::new();
        pool.take(1, &mut table);
        pool.register(BlockId(1), BlockHash(9));
        pool.touch(&[BlockId(1)]);
        pool.free_in_order(table.iter().copied());
        assert_eq!(order(&pool), [2, 3]);
        pool.free_in_order(table.iter().copied());
        assert_eq!(order(&pool), [2, 3, 1]);
    }

    #[test]
    fn a_free_cached_block_is_hit_until_it_is_taken() {
        let mut pool = BlockPool::new(2);
        let mut table = Vec::new();
        pool.take(1, &mut table);
        pool.register(BlockId(1), BlockHash(9));
        pool.free_in_order(table.drain(..));
        assert_eq!(pool.find(BlockHash(9)), Some(BlockId(1)));
        pool.take(1, &mut table);
        assert_eq!(pool.find(BlockHash(9)), None);
    }

    #[test]
    fn a_reset_needs_every_block_back_and_keeps_the_order() {
        let mut pool = BlockPool::new(4);
        let mut table = Vec::new();
        pool.take(2, &mut table);
        pool.register(BlockId(1), BlockHash(9));
        assert!(!pool.reset());
        assert_eq!(pool.find(BlockHash(9)), Some(BlockId(1)));
        pool.free_in_order(table.into_iter().rev());
        let before = order(&pool);
        assert!(pool.reset());
        assert_eq!(pool.find(BlockHash(9)), None);
        assert_eq!(order(&pool), before);
    }
}
