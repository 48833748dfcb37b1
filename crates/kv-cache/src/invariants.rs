//! What must hold after every operation, each rule once.

use crate::ids::{BlockId, NULL_BLOCK};
use crate::manager::KvCacheManager;

/// A rule that does not hold: a bug of this crate.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("kv-cache rule {rule} is broken: {what}")]
pub struct BrokenInvariant {
    /// Number of the rule in `invariants.rs`.
    pub rule: u8,
    /// What was found.
    pub what: String,
}

fn ensure(holds: bool, rule: u8, what: impl FnOnce() -> String) -> Result<(), BrokenInvariant> {
    if holds { Ok(()) } else { Err(BrokenInvariant { rule, what: what() }) }
}

impl KvCacheManager {
    /// Checks every rule. O(blocks of the pool).
    ///
    /// # Errors
    /// The first rule that does not hold.
    pub fn check(&self) -> Result<(), BrokenInvariant> {
        self.check_references()?;
        self.check_free_queue()?;
        self.check_tables()?;
        self.check_prefix_map()
    }

    /// Rule 1: a block's reference count is the number of table positions that name it.
    fn check_references(&self) -> Result<(), BrokenInvariant> {
        let mut held = vec![0_u32; self.pool.records().len()];
        for id in self.tables.iter().flat_map(|table| &table.blocks) {
            held[id.index()] += 1;
        }
        for (id, (record, held)) in self.pool.records().iter().zip(held).enumerate().skip(1) {
            ensure(record.ref_count == held, 1, || {
                format!("block {id} counts {} references, tables hold it {held} times", record.ref_count)
            })?;
        }
        Ok(())
    }

    /// Rule 2: the free queue holds each block without references once, and no other, and not the null block.
    fn check_free_queue(&self) -> Result<(), BrokenInvariant> {
        let mut queued = vec![false; self.pool.records().len()];
        let mut num_queued = 0;
        for id in self.pool.free_queue() {
            ensure(!std::mem::replace(&mut queued[id.index()], true), 2, || format!("block {} is queued twice", id.0))?;
            num_queued += 1;
        }
        ensure(num_queued == self.num_free_blocks(), 2, || {
            format!("{num_queued} blocks are queued, the queue counts {}", self.num_free_blocks())
        })?;
        for (id, record) in self.pool.records().iter().enumerate() {
            let free = id != NULL_BLOCK.index() && record.ref_count == 0;
            ensure(queued[id] == free, 2, || format!("block {id}: queued {}, free {free}", queued[id]))?;
        }
        Ok(())
    }

    /// Rule 3: a table has no more positions than `max_model_len` needs, and its registered blocks carry keys.
    fn check_tables(&self) -> Result<(), BrokenInvariant> {
        let max_blocks = self.blocks_for(self.config.max_model_len);
        for (slot, table) in self.tables.iter().enumerate() {
            ensure(table.len() <= max_blocks, 3, || format!("slot {slot} holds {} blocks", table.len()))?;
            let num_slots = table.len() * self.config.block_size;
            ensure(table.num_slots == num_slots, 3, || format!("slot {slot} counts {} slots", table.num_slots))?;
            let registered = table.blocks.iter().take(table.num_registered as usize);
            let all_keyed = registered.clone().all(|id| self.pool.records()[id.index()].key.is_some());
            ensure(registered.len() == table.num_registered as usize && all_keyed, 3, || {
                format!("slot {slot} counts {} registered blocks", table.num_registered)
            })?;
        }
        Ok(())
    }

    /// Rule 4: the prefix map finds exactly the blocks that carry a key, each under its own.
    fn check_prefix_map(&self) -> Result<(), BrokenInvariant> {
        let records = self.pool.records();
        let mut num_first = 0;
        for (id, record) in records.iter().enumerate() {
            let Some(key) = record.key else { continue };
            let id = BlockId(u32::try_from(id).expect("block ids are 32-bit"));
            let mut twins = self.pool.prefix_map().twins(records, key).take(records.len());
            ensure(twins.any(|twin| twin == id), 4, || format!("block {} has a key but is not found", id.0))?;
            num_first += usize::from(self.pool.find(key) == Some(id));
        }
        ensure(num_first == self.pool.prefix_map().len(), 4, || {
            format!("{} keys in the map, {num_first} first blocks", self.pool.prefix_map().len())
        })
    }
}
