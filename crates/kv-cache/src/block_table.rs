//! The blocks of one request, by position.

use crate::ids::BlockId;

/// Position i holds the KV of tokens `i * block_size ..`. Only grows until it is freed as a whole.
#[derive(Clone, Debug, Default)]
pub(crate) struct BlockTable {
    pub(crate) blocks: Vec<BlockId>,
    /// Leading blocks that are registered in the prefix cache.
    pub(crate) num_registered: u32,
    /// Tokens that the blocks have room for. Kept so that the step that needs no block divides nothing.
    pub(crate) num_slots: u32,
    /// Known tokens at which the next block is due for registration.
    pub(crate) next_registration_at: u32,
}

impl BlockTable {
    pub(crate) fn len(&self) -> u32 {
        u32::try_from(self.blocks.len()).expect("a table holds no more blocks than the pool")
    }

    /// Whether a step up to `num_slots` slots and `num_known` known tokens changes nothing.
    pub(crate) const fn covers(&self, num_slots: u32, num_known: u32) -> bool {
        num_slots <= self.num_slots && num_known < self.next_registration_at
    }
}
