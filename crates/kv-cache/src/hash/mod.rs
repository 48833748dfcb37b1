//! Block hashes: a chain over a request's tokens, one link per full block.
//!
//! The hash of a block covers its tokens, the hash of the block before it and, where they apply, the adapter and
//! the cache salt. Equal hashes are taken for equal prefixes. The values are Stepline's own (XXH3, 128 bits): decisions
//! depend on which hashes are equal, never on their bytes. XXH3 does not resist a tenant who searches for collisions.

mod chain;
mod hasher;

pub use chain::{HashChain, TokenView};
pub use hasher::{BlockHasher, ExtraKeys};

/// The key of a full block: the hash of its tokens and of all that came before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlockHash(pub u128);

impl BlockHash {
    /// The parent of every first block.
    pub const NONE: Self = Self(0);

    /// The bits that the prefix map distributes by; they are uniform already.
    #[expect(clippy::cast_possible_truncation, reason = "half of a uniform hash is a uniform hash")]
    pub(crate) const fn map_hash(self) -> u64 {
        self.0 as u64
    }
}
