//! The paged KV cache: blocks, hashes, prefix hits, block tables.
//!
//! It knows nothing of queues, budgets, policies, clocks or tracing: callers ask for slots and give them back.
//!
//! ```text
//!   request slot ──► BlockTable  [ 7, 3, 9 ]            one table per running request
//!                                  │  │  │
//!   BlockPool      ┌───────────────▼──▼──▼────────────┐
//!                  │ Block: ref count, key, links     │  one record per block, one array
//!                  └──▲────────────────────────▲──────┘
//!   FreeQueue ────────┘ circular list through  │        front = next to be reused
//!   PrefixMap ──────────── key → first block ──┘        blocks with equal keys form a ring
//! ```
//!
//! Block 0 is the null block: never handed out, and the sentinel of the free queue.
//!
//! # Example
//!
//! ```
//! use stepline_kv_cache::{
//!     BlockHasher, HashChain, KvCacheConfig, KvCacheManager, PrefixHit, RequestSlot, SlotRequest, TokenView,
//! };
//!
//! let config = KvCacheConfig { num_blocks: 11, block_size: 4, max_model_len: 64, enable_caching: true, watermark: 0.0 };
//! let mut kv = KvCacheManager::new(config).expect("a valid configuration");
//! let prompt: Vec<u32> = (0..10).collect();
//!
//! // Two full blocks of four tokens have a hash; the last two tokens have none yet.
//! let mut hashes = HashChain::default();
//! let mut hasher = BlockHasher::new(std::num::NonZeroU32::new(4).expect("not 0"));
//! hashes.extend(&mut hasher, TokenView { prompt: &prompt, output: &[] }, None);
//! assert_eq!(hashes.as_slice().len(), 2);
//!
//! let mut hit = PrefixHit::default();
//! for (slot, expected_hit) in [(RequestSlot(0), 0), (RequestSlot(1), 8)] {
//!     kv.find_prefix_hit(hashes.as_slice(), 10, &mut hit);
//!     assert_eq!(hit.num_tokens(), expected_hit);
//!     let request = SlotRequest {
//!         slot,
//!         num_tokens: 10,
//!         num_computed_tokens: 0,
//!         num_new_tokens: 10 - hit.num_tokens(),
//!         num_lookahead_tokens: 0,
//!         block_hashes: hashes.as_slice(),
//!     };
//!     kv.admit(&request, &hit, Default::default()).expect("ten blocks are free");
//! }
//! // The second request shares the two full blocks of the first.
//! assert_eq!(kv.block_table(RequestSlot(0)).map(|id| id.0).collect::<Vec<_>>(), [1, 2, 3]);
//! assert_eq!(kv.block_table(RequestSlot(1)).map(|id| id.0).collect::<Vec<_>>(), [1, 2, 4]);
//! ```
//!
//! # Modules
//!
//! | module | holds |
//! |---|---|
//! | [`ids`](BlockId) | identities of blocks and request slots |
//! | `block`, `free_queue`, `prefix_map` | the record of a block and the two structures that run through it |
//! | `block_pool` | reference counts, reuse and eviction |
//! | `hash` | the hash chain over a request's tokens |
//! | `block_table` | the blocks of one request, by position |
//! | `group` | how a kind of attention looks up a prefix and counts the blocks it needs |
//! | `manager` | lookup, allocation, registration, freeing, reset |
//! | `metrics` | read-only figures per request and per step |
//! | `stats` | prefix-cache counters |
//! | `invariants` | what must hold after every operation |

mod block;
mod block_pool;
mod block_table;
mod free_queue;
mod group;
mod hash;
mod ids;
mod invariants;
mod manager;
mod metrics;
mod prefix_map;
mod stats;

pub use group::PrefixHit;
pub use hash::{BlockHash, BlockHasher, ExtraKeys, HashChain, TokenView};
pub use ids::{BlockId, NULL_BLOCK, RequestSlot};
pub use invariants::BrokenInvariant;
pub use manager::{Admission, KvCacheConfig, KvCacheConfigError, KvCacheManager, NewBlocks, SlotRequest};
pub use metrics::{RequestKvMetrics, StepKvSummary};
pub use stats::PrefixCacheStats;
