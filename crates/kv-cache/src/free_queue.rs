//! The order in which free blocks are reused.

use crate::block::Block;
use crate::ids::{BlockId, NULL_BLOCK};

/// A circular list through the block records, with the null block as sentinel, so the ends are no special case.
///
/// The queue holds no memory of its own: every operation takes the records. All operations are O(1).
#[derive(Debug, Default)]
pub(crate) struct FreeQueue {
    len: u32,
}

impl FreeQueue {
    /// Links all blocks but the null block, in ascending order.
    pub(crate) fn with_all(blocks: &mut [Block]) -> Self {
        let mut queue = Self::default();
        for id in 1..u32::try_from(blocks.len()).expect("block ids are 32-bit") {
            queue.push_back(blocks, BlockId(id));
        }
        queue
    }

    pub(crate) const fn len(&self) -> u32 {
        self.len
    }

    pub(crate) fn front(blocks: &[Block]) -> Option<BlockId> {
        let front = blocks[NULL_BLOCK.index()].free_next;
        (front != NULL_BLOCK).then_some(front)
    }

    pub(crate) fn pop_front(&mut self, blocks: &mut [Block]) -> Option<BlockId> {
        let front = Self::front(blocks)?;
        self.remove(blocks, front);
        Some(front)
    }

    pub(crate) fn push_back(&mut self, blocks: &mut [Block], id: BlockId) {
        let tail = blocks[NULL_BLOCK.index()].free_prev;
        self.insert_after(blocks, tail, id);
    }

    /// Puts `id` behind `place`; the front of the queue is behind the null block.
    pub(crate) fn insert_after(&mut self, blocks: &mut [Block], place: BlockId, id: BlockId) {
        let next = blocks[place.index()].free_next;
        blocks[id.index()].free_prev = place;
        blocks[id.index()].free_next = next;
        blocks[place.index()].free_next = id;
        blocks[next.index()].free_prev = id;
        self.len += 1;
    }

    pub(crate) fn remove(&mut self, blocks: &mut [Block], id: BlockId) {
        let Block { free_prev, free_next, .. } = blocks[id.index()];
        blocks[free_prev.index()].free_next = free_next;
        blocks[free_next.index()].free_prev = free_prev;
        self.len -= 1;
    }

    /// The queue from front to back.
    pub(crate) fn iter(blocks: &[Block]) -> impl Iterator<Item = BlockId> + '_ {
        std::iter::successors(Self::front(blocks), |id| {
            let next = blocks[id.index()].free_next;
            (next != NULL_BLOCK).then_some(next)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::FreeQueue;
    use crate::block::Block;
    use crate::ids::{BlockId, NULL_BLOCK};

    fn blocks(n: u32) -> Vec<Block> {
        (0..n).map(|id| Block::unlinked(BlockId(id))).collect()
    }

    fn order(blocks: &[Block]) -> Vec<u32> {
        FreeQueue::iter(blocks).map(|id| id.0).collect()
    }

    #[test]
    fn blocks_leave_in_ascending_order_at_first() {
        let mut blocks = blocks(4);
        let mut queue = FreeQueue::with_all(&mut blocks);
        assert_eq!(order(&blocks), [1, 2, 3]);
        assert_eq!(queue.pop_front(&mut blocks), Some(BlockId(1)));
        assert_eq!(queue.len(), 2);
    }

    #[test]
    fn a_block_is_removed_from_the_middle_and_comes_back_at_either_end() {
        let mut blocks = blocks(5);
        let mut queue = FreeQueue::with_all(&mut blocks);
        queue.remove(&mut blocks, BlockId(2));
        assert_eq!(order(&blocks), [1, 3, 4]);
        queue.insert_after(&mut blocks, NULL_BLOCK, BlockId(2));
        assert_eq!(order(&blocks), [2, 1, 3, 4]);
        queue.remove(&mut blocks, BlockId(1));
        queue.push_back(&mut blocks, BlockId(1));
        assert_eq!(order(&blocks), [2, 3, 4, 1]);
    }

    #[test]
    fn an_empty_queue_gives_nothing() {
        let mut blocks = blocks(1);
        let mut queue = FreeQueue::with_all(&mut blocks);
        assert_eq!(queue.pop_front(&mut blocks), None);
        assert_eq!(queue.len(), 0);
    }
}
