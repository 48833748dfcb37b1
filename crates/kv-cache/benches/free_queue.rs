//! What does it cost to hit, free and take blocks?
//!
//! Every operation is O(1) per block and touches the records of the block and its neighbours, so the time per block
//! should not depend on the size of the pool, beyond what the caches of the processor make of it.

use std::num::NonZeroU32;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use stepline_kv_cache::{
    Admission, BlockHasher, HashChain, KvCacheConfig, KvCacheManager, PrefixHit, RequestSlot, SlotRequest, TokenView,
};

const BLOCK_SIZE: u32 = 16;
const NUM_TOKENS: u32 = 64 * BLOCK_SIZE + 1;

/// A cached prompt of 64 blocks is hit, which takes its blocks from the middle of the free queue, and freed again.
fn remove_middle(c: &mut Criterion) {
    let mut group = c.benchmark_group("free_queue/remove_middle");
    group.throughput(Throughput::Elements(64));
    for num_blocks in [1_024, 65_536] {
        let config = KvCacheConfig {
            num_blocks,
            block_size: BLOCK_SIZE,
            max_model_len: 1 << 20,
            enable_caching: true,
            watermark: 0.0,
        };
        let mut kv = KvCacheManager::new(config).expect("valid");
        let prompt: Vec<u32> = (0..NUM_TOKENS).collect();
        let mut hashes = HashChain::default();
        hashes.extend(
            &mut BlockHasher::new(NonZeroU32::new(BLOCK_SIZE).expect("not 0")),
            TokenView { prompt: &prompt, output: &[] },
            None,
        );
        let mut hit = PrefixHit::default();
        let mut admit_and_free = move || {
            kv.find_prefix_hit(hashes.as_slice(), NUM_TOKENS, &mut hit);
            let request = SlotRequest {
                slot: RequestSlot(0),
                num_tokens: NUM_TOKENS,
                num_computed_tokens: 0,
                num_new_tokens: NUM_TOKENS - hit.num_tokens(),
                num_lookahead_tokens: 0,
                block_hashes: hashes.as_slice(),
            };
            kv.admit(&request, &hit, Admission::default()).expect("the pool is empty");
            kv.free(RequestSlot(0));
        };
        group.bench_function(BenchmarkId::from_parameter(num_blocks), |b| b.iter(&mut admit_and_free));
    }
    group.finish();
}

/// The hash chain of a prompt, against which `add_request` is measured.
fn hash_prompt(c: &mut Criterion) {
    let mut group = c.benchmark_group("hash/prompt");
    for len in [128, 8_192] {
        let prompt: Vec<u32> = (0..len).collect();
        let mut hasher = BlockHasher::new(NonZeroU32::new(BLOCK_SIZE).expect("not 0"));
        group.throughput(Throughput::Elements(u64::from(len)));
        group.bench_function(BenchmarkId::from_parameter(len), |b| {
            b.iter(|| {
                let mut chain = HashChain::default();
                chain.extend(&mut hasher, TokenView { prompt: &prompt, output: &[] }, None);
                chain
            });
        });
    }
    group.finish();
}

criterion_group!(benches, remove_middle, hash_prompt);
criterion_main!(benches);
