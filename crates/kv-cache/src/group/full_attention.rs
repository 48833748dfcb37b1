//! Full attention: every token of the prefix is needed, so a hit is an unbroken run of blocks from the start.

use super::PrefixHit;
use crate::block_pool::BlockPool;
use crate::hash::BlockHash;

/// Collects the leading blocks whose keys are cached, at most `max_tokens` in whole blocks.
///
/// spec: kv-cache 5.2.
pub(crate) fn find_prefix_hit(
    pool: &BlockPool,
    hashes: &[BlockHash],
    max_tokens: u32,
    block_size: u32,
    hit: &mut PrefixHit,
) {
    hit.clear();
    let max_blocks = (max_tokens / block_size) as usize;
    hit.blocks.extend(hashes.iter().take(max_blocks).map_while(|hash| pool.find(*hash)));
    hit.num_tokens = u32::try_from(hit.blocks.len()).expect("no more than max_tokens") * block_size;
}
