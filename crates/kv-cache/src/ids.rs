//! Identities: a block, a request's slot.

/// A block of the pool, by its index. Block 0 is the null block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlockId(pub u32);

/// The placeholder of a table position that needs no memory. Never allocated, never free, never cached.
pub const NULL_BLOCK: BlockId = BlockId(0);

impl BlockId {
    /// Returns the position of this block's record in the pool.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// A request, by its place in the caller's dense table of live requests.
///
/// A slot is reused after the caller has freed the request's blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestSlot(pub u32);

impl RequestSlot {
    /// Returns the place of this slot in a dense table.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}
