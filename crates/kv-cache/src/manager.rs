//! Lookup, allocation, registration, freeing and reset for a model with one full-attention group.

use crate::block_pool::BlockPool;
use crate::block_table::BlockTable;
use crate::group::{PrefixHit, full_attention};
use crate::hash::BlockHash;
use crate::ids::{BlockId, RequestSlot};
use crate::stats::PrefixCacheStats;

/// Size and behaviour of the cache.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct KvCacheConfig {
    /// Blocks of the pool, the null block included. 1 to [`MAX_NUM_BLOCKS`](Self::MAX_NUM_BLOCKS).
    pub num_blocks: u32,
    /// Tokens per block. At least 1.
    pub block_size: u32,
    /// Longest request, in tokens; no table grows beyond it. At most [`MAX_TOKENS`](Self::MAX_TOKENS).
    pub max_model_len: u32,
    /// Whether full blocks are registered and found again.
    pub enable_caching: bool,
    /// Share of `num_blocks` that an admission leaves free while others run; 0 ≤ x < 1.
    pub watermark: f64,
}

impl KvCacheConfig {
    /// Most blocks of a pool: their records take 4 GiB.
    pub const MAX_NUM_BLOCKS: u32 = 1 << 26;
    /// Longest request, so that the sum of two token counts fits 32 bits.
    pub const MAX_TOKENS: u32 = i32::MAX as u32;
}

/// A [`KvCacheConfig`] that no cache can have.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum KvCacheConfigError {
    /// The pool lacks even the null block, or its records would not fit memory.
    #[error("num_blocks is {0}, expected 1 (the null block) to {max}", max = KvCacheConfig::MAX_NUM_BLOCKS)]
    NumBlocks(u32),
    /// Requests longer than can be counted.
    #[error("max_model_len is {0}, expected at most {max}", max = KvCacheConfig::MAX_TOKENS)]
    MaxModelLen(u32),
    /// Blocks without tokens.
    #[error("block_size is 0: a block holds at least one token")]
    EmptyBlocks,
    /// The watermark is not a share of the pool.
    #[error("watermark is {0}, expected 0 <= watermark < 1")]
    Watermark(f64),
}

/// A request's need for slots in one step. All counts are tokens.
#[derive(Clone, Copy, Debug)]
pub struct SlotRequest<'a> {
    /// Whose table grows.
    pub slot: RequestSlot,
    /// Known tokens: prompt and output.
    pub num_tokens: u32,
    /// Tokens computed before this step, a hit of this admission not included.
    pub num_computed_tokens: u32,
    /// Tokens that this step computes, drafts included. At least 1.
    pub num_new_tokens: u32,
    /// Extra slots for draft tokens; allocated, never cached.
    pub num_lookahead_tokens: u32,
    /// Hashes of the full blocks of the known tokens; a block without a hash is not registered.
    pub block_hashes: &'a [BlockHash],
}

/// What an admission demands beside the blocks of its first step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Admission {
    /// All known tokens must fit, not just those of the first step (`scheduler_reserve_full_isl`).
    pub full_sequence_check: bool,
    /// The watermark stays free; set while other requests run.
    pub keep_watermark: bool,
}

/// Blocks that an allocation added at the end of a table; hit blocks are not among them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NewBlocks {
    /// Position of the first new block in the table.
    pub first_idx: u32,
    /// Number of new blocks, possibly 0.
    pub num_blocks: u32,
}

/// Block tables over one pool, with the prefix cache.
#[derive(Debug)]
pub struct KvCacheManager {
    pub(crate) config: KvCacheConfig,
    watermark_blocks: u32,
    pub(crate) pool: BlockPool,
    pub(crate) tables: Vec<BlockTable>,
    stats: PrefixCacheStats,
}

impl KvCacheManager {
    /// An empty cache.
    ///
    /// # Errors
    /// If `config` has a value outside its range.
    pub fn new(config: KvCacheConfig) -> Result<Self, KvCacheConfigError> {
        if !(1..=KvCacheConfig::MAX_NUM_BLOCKS).contains(&config.num_blocks) {
            return Err(KvCacheConfigError::NumBlocks(config.num_blocks));
        }
        if config.max_model_len > KvCacheConfig::MAX_TOKENS {
            return Err(KvCacheConfigError::MaxModelLen(config.max_model_len));
        }
        if config.block_size == 0 {
            return Err(KvCacheConfigError::EmptyBlocks);
        }
        if !(0.0..1.0).contains(&config.watermark) {
            return Err(KvCacheConfigError::Watermark(config.watermark));
        }
        Ok(Self {
            config,
            watermark_blocks: watermark_blocks(config),
            pool: BlockPool::new(config.num_blocks),
            tables: Vec::new(),
            stats: PrefixCacheStats::default(),
        })
    }

    /// Finds the leading tokens of a request whose blocks are already cached.
    ///
    /// At most `num_tokens - 1`, in whole blocks: the last token is always recomputed. Takes no references;
    /// [`admit`](Self::admit) does. O(blocks of the hit).
    ///
    /// spec: kv-cache 5; vLLM 0.32: `KVCacheManager.get_computed_blocks`.
    pub fn find_prefix_hit(&self, block_hashes: &[BlockHash], num_tokens: u32, hit: &mut PrefixHit) {
        if self.config.enable_caching {
            let max_tokens = num_tokens.saturating_sub(1);
            full_attention::find_prefix_hit(&self.pool, block_hashes, max_tokens, self.config.block_size, hit);
        } else {
            hit.clear();
        }
    }

    /// Gives a request that holds no blocks its first ones, behind the blocks of `hit`.
    ///
    /// Returns `None`, and changes nothing, if too few blocks are free or the request holds blocks already. O(new
    /// blocks + hit blocks).
    ///
    /// spec: kv-cache 4; vLLM 0.32: `KVCacheManager.allocate_slots`.
    pub fn admit(&mut self, request: &SlotRequest<'_>, hit: &PrefixHit, admission: Admission) -> Option<NewBlocks> {
        if self.num_blocks_of(request.slot) > 0 {
            return None;
        }
        let watermark = if admission.keep_watermark { self.watermark_blocks } else { 0 };
        // Touching a free hit block takes it from the free queue, like a new block. spec: kv-cache 4, `need`.
        let num_hit = u32::try_from(hit.blocks.len()).expect("a hit is no longer than its request");
        let num_hit_free = hit.blocks.iter().filter(|id| self.pool.is_free(**id)).count();
        let num_hit_held = num_hit - u32::try_from(num_hit_free).expect("at most num_hit");
        let available = self.pool.num_free().saturating_sub(watermark);
        let fits = |num_slots: u32| self.blocks_for(num_slots).max(num_hit) - num_hit_held <= available;

        if admission.full_sequence_check && !fits(request.num_tokens.min(self.config.max_model_len)) {
            return None;
        }
        let num_computed = request.num_computed_tokens.saturating_add(hit.num_tokens).min(self.config.max_model_len);
        let num_slots = self.num_slots(request, num_computed);
        if !fits(num_slots) {
            return None;
        }
        self.pool.touch(&hit.blocks);
        let table = self.table_mut(request.slot);
        table.blocks.extend_from_slice(&hit.blocks);
        // Hit blocks are registered already.
        table.num_registered = num_hit;
        Some(self.grow(request, num_computed, num_slots))
    }

    /// Whether a step up to `num_slots` slots and `num_known` known tokens leaves the table as it is: the answer to
    /// most steps of most requests, in two comparisons. If not, call [`allocate_slots`](Self::allocate_slots).
    #[must_use]
    pub fn covers(&self, slot: RequestSlot, num_slots: u32, num_known: u32) -> bool {
        self.tables.get(slot.index()).is_some_and(|table| table.covers(num_slots, num_known))
    }

    /// Makes room for the next step of a request that was admitted.
    ///
    /// Returns `None`, and changes nothing, if too few blocks are free. O(new blocks).
    ///
    /// spec: kv-cache 4; vLLM 0.32: `KVCacheManager.allocate_slots`.
    pub fn allocate_slots(&mut self, request: &SlotRequest<'_>) -> Option<NewBlocks> {
        let num_computed = request.num_computed_tokens.min(self.config.max_model_len);
        let num_slots = self.num_slots(request, num_computed);
        let num_needed = self.blocks_for(num_slots).saturating_sub(self.num_blocks_of(request.slot));
        (num_needed <= self.pool.num_free()).then(|| self.grow(request, num_computed, num_slots))
    }

    /// Takes all blocks of a request, last position first, so that the tail of a cached prefix is evicted first.
    ///
    /// A request without blocks is left as it is. spec: kv-cache 8.
    pub fn free(&mut self, slot: RequestSlot) {
        if let Some(table) = self.tables.get_mut(slot.index()) {
            self.pool.free_in_order(table.blocks.drain(..).rev());
            table.num_registered = 0;
            table.num_slots = 0;
            table.next_registration_at = 0;
        }
    }

    /// Forgets all cached prefixes. Returns false, and changes nothing, while a request holds blocks.
    ///
    /// spec: kv-cache 9.
    pub fn reset_prefix_cache(&mut self) -> bool {
        let done = self.pool.reset();
        self.stats.reset |= done;
        done
    }

    /// Counts the lookup of an admitted request. spec: scheduler 2.4.16.
    pub fn record_admission(&mut self, num_tokens: u32, hit: &PrefixHit, was_preempted: bool) {
        self.stats.record(num_tokens, hit.num_tokens, was_preempted);
    }

    /// Returns the counters since the last call, and starts anew.
    pub fn take_prefix_cache_stats(&mut self) -> PrefixCacheStats {
        std::mem::take(&mut self.stats)
    }

    /// The blocks that a request holds, by position.
    #[must_use]
    pub fn block_table(&self, slot: RequestSlot) -> impl ExactSizeIterator<Item = BlockId> + '_ {
        self.blocks_of(slot).iter().copied()
    }

    /// The blocks that a request holds, by position, as a slice.
    #[must_use]
    pub fn blocks_of(&self, slot: RequestSlot) -> &[BlockId] {
        self.tables.get(slot.index()).map_or(&[], |table| &table.blocks)
    }

    /// The free blocks, in the order in which they will be used.
    pub fn free_queue(&self) -> impl Iterator<Item = BlockId> + '_ {
        self.pool.free_queue()
    }

    /// Blocks that no request holds, cached ones included.
    #[must_use]
    pub const fn num_free_blocks(&self) -> u32 {
        self.pool.num_free()
    }

    /// The configuration that this cache was built with.
    #[must_use]
    pub const fn config(&self) -> &KvCacheConfig {
        &self.config
    }

    /// Blocks that tables of `num_slots` tokens have, rounded up.
    #[must_use]
    pub const fn blocks_for(&self, num_slots: u32) -> u32 {
        num_slots.div_ceil(self.config.block_size)
    }

    fn num_slots(&self, request: &SlotRequest<'_>, num_computed: u32) -> u32 {
        let wanted = num_computed.saturating_add(request.num_new_tokens).saturating_add(request.num_lookahead_tokens);
        wanted.min(self.config.max_model_len)
    }

    fn num_blocks_of(&self, slot: RequestSlot) -> u32 {
        self.tables.get(slot.index()).map_or(0, BlockTable::len)
    }

    fn table_mut(&mut self, slot: RequestSlot) -> &mut BlockTable {
        if self.tables.len() <= slot.index() {
            self.tables.resize_with(slot.index() + 1, BlockTable::default);
        }
        &mut self.tables[slot.index()]
    }

    /// Extends the table to `num_slots` tokens and registers what became full; the blocks are known to be there.
    fn grow(&mut self, request: &SlotRequest<'_>, num_computed: u32, num_slots: u32) -> NewBlocks {
        let num_required = self.blocks_for(num_slots);
        let table = self.table_mut(request.slot);
        let first_idx = table.len();
        let num_blocks = num_required.saturating_sub(first_idx);
        let num_slots = (first_idx + num_blocks).saturating_mul(self.config.block_size);
        let table = &mut self.tables[request.slot.index()];
        table.num_slots = num_slots;
        self.pool.take(num_blocks, &mut table.blocks);
        self.register(request, num_known(request, num_computed));
        NewBlocks { first_idx, num_blocks }
    }

    /// Registers the full blocks among the first `num_tokens` tokens. They can be hit in this very step, before they
    /// are computed. spec: kv-cache 4.8 and 7.
    fn register(&mut self, request: &SlotRequest<'_>, num_tokens: u32) {
        let table = &mut self.tables[request.slot.index()];
        if !self.config.enable_caching {
            table.next_registration_at = u32::MAX;
            return;
        }
        let num_hashes = u32::try_from(request.block_hashes.len()).unwrap_or(u32::MAX);
        let num_full = (num_tokens / self.config.block_size).min(num_hashes);
        for block_idx in table.num_registered as usize..num_full as usize {
            self.pool.register(table.blocks[block_idx], request.block_hashes[block_idx]);
        }
        table.num_registered = table.num_registered.max(num_full);
        table.next_registration_at = (table.num_registered + 1).saturating_mul(self.config.block_size);
    }
}

/// Known tokens that are computed after the step. Drafts are not known, so they are never registered.
fn num_known(request: &SlotRequest<'_>, num_computed: u32) -> u32 {
    num_computed.saturating_add(request.num_new_tokens).min(request.num_tokens)
}

/// Rounds down, in double precision, as vLLM does. spec: kv-cache 4.2.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 <= product < num_blocks")]
fn watermark_blocks(config: KvCacheConfig) -> u32 {
    (config.watermark * f64::from(config.num_blocks)) as u32
}

#[cfg(test)]
mod tests {
    use super::{KvCacheConfig, KvCacheConfigError, KvCacheManager, watermark_blocks};

    const CONFIG: KvCacheConfig =
        KvCacheConfig { num_blocks: 100, block_size: 4, max_model_len: 64, enable_caching: true, watermark: 0.0 };

    #[test]
    fn the_watermark_is_a_product_in_double_precision_rounded_down() {
        for (watermark, num_blocks, expected) in [(0.1, 20, 2), (0.29, 100, 28), (0.07, 100, 7), (0.0, 100, 0)] {
            assert_eq!(watermark_blocks(KvCacheConfig { num_blocks, watermark, ..CONFIG }), expected);
        }
    }

    #[test]
    fn an_impossible_configuration_is_refused() {
        let refused = |config| KvCacheManager::new(config).expect_err("refused");
        for num_blocks in [0, u32::MAX] {
            let error = refused(KvCacheConfig { num_blocks, ..CONFIG });
            assert_eq!(error, KvCacheConfigError::NumBlocks(num_blocks));
        }
        let too_long = KvCacheConfig { max_model_len: u32::MAX, ..CONFIG };
        assert_eq!(refused(too_long), KvCacheConfigError::MaxModelLen(u32::MAX));
        assert_eq!(refused(KvCacheConfig { block_size: 0, ..CONFIG }), KvCacheConfigError::EmptyBlocks);
        assert_eq!(refused(KvCacheConfig { watermark: 1.0, ..CONFIG }), KvCacheConfigError::Watermark(1.0));
        assert!(KvCacheManager::new(KvCacheConfig { watermark: f64::NAN, ..CONFIG }).is_err());
    }
}
