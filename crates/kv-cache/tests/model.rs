//! Random operations keep every invariant and agree with a naive cache that shares no code with the real one.

use std::collections::BTreeMap;
use std::num::NonZeroU32;

use proptest::prelude::*;
use stepline_kv_cache::{
    Admission, BlockHasher, HashChain, KvCacheConfig, KvCacheManager, PrefixHit, RequestSlot, SlotRequest, TokenView,
};

/// The cache as the spec's sentences say it: lists, scans, and whole prefixes as keys.
struct NaiveCache {
    block_size: usize,
    watermark: usize,
    caching: bool,
    lookahead: usize,
    free: Vec<u32>,
    /// The prefix that a block is registered under, with a counter that orders insertions.
    keys: BTreeMap<u32, (Vec<u32>, u64)>,
    inserted: u64,
    tables: BTreeMap<u32, Vec<u32>>,
    registered: BTreeMap<u32, usize>,
}

impl NaiveCache {
    fn new(config: &KvCacheConfig) -> Self {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a small positive product")]
        let watermark = (config.watermark * f64::from(config.num_blocks)) as usize;
        Self {
            block_size: config.block_size as usize,
            watermark,
            caching: config.enable_caching,
            lookahead: 0,
            free: (1..config.num_blocks).collect(),
            keys: BTreeMap::new(),
            inserted: 0,
            tables: BTreeMap::new(),
            registered: BTreeMap::new(),
        }
    }

    fn find(&self, prefix: &[u32]) -> Option<u32> {
        let twins = self.keys.iter().filter(|(_, (key, _))| key == prefix);
        twins.min_by_key(|(_, (_, inserted))| *inserted).map(|(id, _)| *id)
    }

    fn hit(&self, tokens: &[u32]) -> Vec<u32> {
        if !self.caching {
            return Vec::new();
        }
        let max_blocks = (tokens.len() - 1) / self.block_size;
        (1..=max_blocks).map_while(|n| self.find(&tokens[..n * self.block_size])).collect()
    }

    /// `tokens` are all known tokens, `end` how many are computed after the step.
    fn allocate(&mut self, slot: u32, tokens: &[u32], end: usize, hit: &[u32], admission: Option<Admission>) -> bool {
        let have = self.tables.get(&slot).map_or(0, Vec::len);
        let need = |n: usize| {
            let hit_free = hit.iter().filter(|id| self.free.contains(id)).count();
            n.div_ceil(self.block_size).saturating_sub(have + hit.len()) + hit_free
        };
        let Admission { full_sequence_check, keep_watermark } = admission.unwrap_or_default();
        let watermark = if keep_watermark { self.watermark } else { 0 };
        if full_sequence_check && need(tokens.len()) + watermark > self.free.len() {
            return false;
        }
        let num_slots = (end + self.lookahead).min(64);
        if need(num_slots) + watermark > self.free.len() {
            return false;
        }
        self.free.retain(|id| !hit.contains(id));
        if admission.is_some() {
            self.tables.insert(slot, hit.to_vec());
            self.registered.insert(slot, hit.len());
        }
        let table = self.tables.get_mut(&slot).expect("a running request has a table");
        while table.len() < num_slots.div_ceil(self.block_size) {
            let id = self.free.remove(0);
            self.keys.remove(&id);
            table.push(id);
        }
        let cursor = self.registered.get_mut(&slot).expect("a running request has a cursor");
        while self.caching && *cursor < end.min(tokens.len()) / self.block_size {
            let prefix = tokens[..(*cursor + 1) * self.block_size].to_vec();
            self.keys.insert(table[*cursor], (prefix, self.inserted));
            self.inserted += 1;
            *cursor += 1;
        }
        true
    }

    fn free(&mut self, slot: u32) {
        let Some(table) = self.tables.remove(&slot) else { return };
        let still_held = |id: &u32| self.tables.values().any(|other| other.contains(id));
        let (hashed, unhashed): (Vec<u32>, Vec<u32>) =
            table.into_iter().rev().filter(|id| !still_held(id)).partition(|id| self.keys.contains_key(id));
        self.free.splice(0..0, unhashed);
        self.free.extend(hashed);
    }
}

#[derive(Clone, Debug)]
enum Op {
    /// Admits a request of some family (requests of a family share tokens) and length, computing its first part.
    Admit {
        slot: u32,
        family: u32,
        len: u32,
        first: u32,
        full_check: bool,
        watermark: bool,
    },
    /// Computes up to `more` further tokens, generating new ones beyond the known.
    Grow {
        slot: u32,
        more: u32,
    },
    Free {
        slot: u32,
    },
    Reset,
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        4 => (0..6_u32, 0..3_u32, 1..40_u32, 1..40_u32, any::<bool>(), any::<bool>()).prop_map(
            |(slot, family, len, first, full_check, watermark)| Op::Admit { slot, family, len, first, full_check, watermark }
        ),
        4 => (0..6_u32, 1..9_u32).prop_map(|(slot, more)| Op::Grow { slot, more }),
        3 => (0..6_u32).prop_map(|slot| Op::Free { slot }),
        1 => Just(Op::Reset),
    ]
}

/// A live request of the test.
struct Live {
    tokens: Vec<u32>,
    hashes: HashChain,
    num_computed: u32,
}

struct Harness {
    real: KvCacheManager,
    naive: NaiveCache,
    hasher: BlockHasher,
    live: BTreeMap<u32, Live>,
    hit: PrefixHit,
    lookahead: u32,
}

impl Harness {
    fn new(config: KvCacheConfig, lookahead: u32) -> Self {
        let naive = NaiveCache { lookahead: lookahead as usize, ..NaiveCache::new(&config) };
        Self {
            real: KvCacheManager::new(config).expect("a valid configuration"),
            naive,
            lookahead,
            hasher: BlockHasher::new(NonZeroU32::new(config.block_size).expect("not 0")),
            live: BTreeMap::new(),
            hit: PrefixHit::default(),
        }
    }

    fn apply(&mut self, op: &Op) {
        match *op {
            Op::Admit { slot, .. } if self.live.contains_key(&slot) => {}
            Op::Admit { slot, family, len, first, full_check, watermark } => {
                // Families differ from the third token on, lengths do not change what came before.
                let tokens: Vec<u32> = (0..len).map(|i| if i < 2 { i } else { family * 1000 + i }).collect();
                let admission = Admission { full_sequence_check: full_check, keep_watermark: watermark };
                self.admit(slot, tokens, first, admission);
            }
            Op::Grow { slot, more } => self.grow(slot, more),
            Op::Free { slot } => {
                self.live.remove(&slot);
                self.real.free(RequestSlot(slot));
                self.naive.free(slot);
            }
            Op::Reset => {
                let done = self.real.reset_prefix_cache();
                assert_eq!(done, self.live.is_empty(), "a reset succeeds exactly when nothing is held");
                if done {
                    self.naive.keys.clear();
                }
            }
        }
    }

    fn admit(&mut self, slot: u32, tokens: Vec<u32>, first: u32, admission: Admission) {
        let mut hashes = HashChain::default();
        hashes.extend(&mut self.hasher, TokenView { prompt: &tokens, output: &[] }, None);
        let num_tokens = u32::try_from(tokens.len()).expect("short");
        self.real.find_prefix_hit(hashes.as_slice(), num_tokens, &mut self.hit);
        let naive_hit = self.naive.hit(&tokens);
        assert_eq!(self.hit.blocks().iter().map(|id| id.0).collect::<Vec<_>>(), naive_hit);

        let num_hit = self.hit.num_tokens();
        let request = SlotRequest {
            slot: RequestSlot(slot),
            num_tokens,
            num_computed_tokens: 0,
            num_new_tokens: first.min(num_tokens - num_hit),
            num_lookahead_tokens: self.lookahead,
            block_hashes: hashes.as_slice(),
        };
        let num_computed = num_hit + request.num_new_tokens;
        let admitted = self.real.admit(&request, &self.hit, admission).is_some();
        let expected = self.naive.allocate(slot, &tokens, num_computed as usize, &naive_hit, Some(admission));
        assert_eq!(admitted, expected);
        if admitted {
            self.live.insert(slot, Live { tokens, hashes, num_computed });
        }
    }

    fn grow(&mut self, slot: u32, more: u32) {
        let Some(request) = self.live.get_mut(&slot) else { return };
        let end = (request.num_computed + more).min(64);
        if end == request.num_computed {
            return;
        }
        while request.tokens.len() < end as usize {
            request.tokens.push(slot * 7 + u32::try_from(request.tokens.len()).expect("short"));
        }
        request.hashes.extend(&mut self.hasher, TokenView { prompt: &request.tokens, output: &[] }, None);
        let slots = SlotRequest {
            slot: RequestSlot(slot),
            num_tokens: u32::try_from(request.tokens.len()).expect("short"),
            num_computed_tokens: request.num_computed,
            num_new_tokens: end - request.num_computed,
            num_lookahead_tokens: self.lookahead,
            block_hashes: request.hashes.as_slice(),
        };
        let grown = self.real.allocate_slots(&slots).is_some();
        assert_eq!(grown, self.naive.allocate(slot, &request.tokens, end as usize, &[], None));
        if grown {
            request.num_computed = end;
        }
    }

    fn compare(&self) {
        self.real.check().expect("every rule holds");
        assert_eq!(self.real.free_queue().map(|id| id.0).collect::<Vec<_>>(), self.naive.free);
        for slot in self.live.keys() {
            let table: Vec<u32> = self.real.block_table(RequestSlot(*slot)).map(|id| id.0).collect();
            assert_eq!(&table, &self.naive.tables[slot]);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn the_cache_agrees_with_a_naive_one_and_keeps_its_rules(
        block_size in prop::sample::select(vec![1_u32, 3, 4, 16]),
        num_blocks in 2..40_u32,
        watermark in prop::sample::select(vec![0.0, 0.1, 0.3]),
        enable_caching in prop::sample::select(vec![true, true, true, false]),
        lookahead in prop::sample::select(vec![0_u32, 0, 1, 5]),
        ops in prop::collection::vec(op(), 1..80),
    ) {
        let config = KvCacheConfig { num_blocks, block_size, max_model_len: 64, enable_caching, watermark };
        let mut harness = Harness::new(config, lookahead);
        for op in &ops {
            harness.apply(op);
            harness.compare();
        }
    }
}
