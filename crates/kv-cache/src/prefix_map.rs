//! From a key to the blocks that carry it.

use hashbrown::HashTable;

use crate::block::Block;
use crate::hash::BlockHash;
use crate::ids::BlockId;

/// Finds cached blocks by key. Several blocks may carry one key; the first inserted is found.
///
/// An entry is the 4-byte id of the first block; the others follow it in a ring through the block records, in
/// order of insertion. There is no deduplication, as in vLLM. spec: kv-cache 1, "Hash map".
#[derive(Debug, Default)]
pub(crate) struct PrefixMap {
    first: HashTable<BlockId>,
}

impl PrefixMap {
    pub(crate) fn find(&self, blocks: &[Block], key: BlockHash) -> Option<BlockId> {
        self.first.find(key.map_hash(), |id| blocks[id.index()].key == Some(key)).copied()
    }

    /// Gives `id` the key `key`. The block must carry none.
    pub(crate) fn insert(&mut self, blocks: &mut [Block], id: BlockId, key: BlockHash) {
        debug_assert_eq!(blocks[id.index()].key, None, "a block carries one key");
        if let Some(first) = self.find(blocks, key) {
            append_to_ring(blocks, first, id);
        } else {
            self.first.insert_unique(key.map_hash(), id, |other| map_hash_of(blocks, *other));
            blocks[id.index()].twin_prev = id;
            blocks[id.index()].twin_next = id;
        }
        blocks[id.index()].key = Some(key);
    }

    /// Takes the key from `id`. Returns whether it had one.
    pub(crate) fn remove(&mut self, blocks: &mut [Block], id: BlockId) -> bool {
        let Some(key) = blocks[id.index()].key else {
            return false;
        };
        let Block { twin_prev, twin_next, .. } = blocks[id.index()];
        blocks[twin_prev.index()].twin_next = twin_next;
        blocks[twin_next.index()].twin_prev = twin_prev;
        if let Ok(mut entry) = self.first.find_entry(key.map_hash(), |first| *first == id) {
            if twin_next == id {
                entry.remove();
            } else {
                *entry.get_mut() = twin_next;
            }
        }
        blocks[id.index()].key = None;
        true
    }

    /// Forgets every key, in the records too.
    pub(crate) fn clear(&mut self, blocks: &mut [Block]) {
        self.first.clear();
        for block in blocks {
            block.key = None;
        }
    }

    /// The blocks with `key`, in order of insertion.
    pub(crate) fn twins<'a>(&self, blocks: &'a [Block], key: BlockHash) -> impl Iterator<Item = BlockId> + 'a {
        let first = self.find(blocks, key);
        std::iter::successors(first, move |id| {
            let next = blocks[id.index()].twin_next;
            (Some(next) != first).then_some(next)
        })
    }

    /// Number of different keys.
    pub(crate) fn len(&self) -> usize {
        self.first.len()
    }
}

/// `first`'s predecessor in the ring is its last member, so appending needs no walk.
fn append_to_ring(blocks: &mut [Block], first: BlockId, id: BlockId) {
    let last = blocks[first.index()].twin_prev;
    blocks[id.index()].twin_prev = last;
    blocks[id.index()].twin_next = first;
    blocks[last.index()].twin_next = id;
    blocks[first.index()].twin_prev = id;
}

fn map_hash_of(blocks: &[Block], id: BlockId) -> u64 {
    blocks[id.index()].key.expect("a block in the map carries a key").map_hash()
}

#[cfg(test)]
mod tests {
    use super::PrefixMap;
    use crate::block::Block;
    use crate::hash::BlockHash;
    use crate::ids::BlockId;

    const KEY: BlockHash = BlockHash(7);

    fn map_with_three_twins() -> (PrefixMap, Vec<Block>) {
        let mut blocks: Vec<Block> = (0..5).map(|id| Block::unlinked(BlockId(id))).collect();
        let mut map = PrefixMap::default();
        for id in [3, 1, 4] {
            map.insert(&mut blocks, BlockId(id), KEY);
        }
        (map, blocks)
    }

    fn twins(map: &PrefixMap, blocks: &[Block]) -> Vec<u32> {
        map.twins(blocks, KEY).map(|id| id.0).collect()
    }

    #[test]
    fn the_first_inserted_block_is_found() {
        let (map, blocks) = map_with_three_twins();
        assert_eq!(map.find(&blocks, KEY), Some(BlockId(3)));
        assert_eq!(twins(&map, &blocks), [3, 1, 4]);
        assert_eq!(map.find(&blocks, BlockHash(8)), None);
    }

    #[test]
    fn removal_takes_out_exactly_one_block_and_keeps_the_order_of_the_rest() {
        for (removed, rest) in [(3, [1, 4]), (1, [3, 4]), (4, [3, 1])] {
            let (mut map, mut blocks) = map_with_three_twins();
            assert!(map.remove(&mut blocks, BlockId(removed)));
            assert!(!map.remove(&mut blocks, BlockId(removed)));
            assert_eq!(twins(&map, &blocks), rest);
        }
    }

    #[test]
    fn the_key_goes_with_its_last_block() {
        let (mut map, mut blocks) = map_with_three_twins();
        for id in [1, 3, 4] {
            map.remove(&mut blocks, BlockId(id));
        }
        assert_eq!(map.len(), 0);
        assert_eq!(map.find(&blocks, KEY), None);
    }
}
