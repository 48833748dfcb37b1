//! The scheduler's state, and how it is built and looked at.

use std::num::NonZeroU32;

use stepline_config::{ConfigErrors, EngineConfig};
use stepline_kv_cache::{BlockHasher, BlockId, KvCacheConfig, KvCacheConfigError, KvCacheManager, TokenView};

use crate::ids::{RequestHandle, RequestId, RequestRef, RequestSlot};
use crate::limits::Limits;
use crate::queue::WaitingQueue;
use crate::request_table::RequestTable;
use crate::status::RequestStatus;
use crate::step::Step;

/// Decides at every step which requests run, how many tokens each gets and whose blocks are taken away.
///
/// A deterministic state machine: time is an argument, and equal calls give equal results.
/// See the [crate documentation](crate) for the cycle of calls.
#[derive(Debug)]
pub struct Scheduler {
    pub(crate) limits: Limits,
    pub(crate) requests: RequestTable,
    /// In order of admission, under both policies.
    pub(crate) running: Vec<RequestSlot>,
    pub(crate) waiting: WaitingQueue,
    /// Waiting requests that scans have passed over.
    pub(crate) num_deferred: usize,
    pub(crate) kv: KvCacheManager,
    pub(crate) hasher: BlockHasher,
    /// Ended since the last `schedule` call.
    pub(crate) finished: Vec<RequestSlot>,
    /// Preempted since the last `schedule` call, also by a reset between calls.
    pub(crate) preempted: Vec<RequestRef>,
    /// Number of the last `schedule` call; the first is 1.
    pub(crate) step_id: u64,
    /// The last step whose output was processed.
    pub(crate) processed_step_id: u64,
    pub(crate) next_sequence: u64,
    /// The plan of the step, kept for its buffers.
    pub(crate) step: Step,
}

/// Why a scheduler could not be built.
#[derive(Debug, thiserror::Error)]
pub enum SchedulerError {
    /// The configuration breaks its own rules.
    #[error(transparent)]
    Config(#[from] ConfigErrors),
    /// The KV cache cannot have this form.
    #[error(transparent)]
    KvCache(#[from] KvCacheConfigError),
}

impl Scheduler {
    /// A scheduler without requests over `num_gpu_blocks` KV cache blocks, the null block included.
    ///
    /// `config.cache.num_gpu_blocks`, an override, is the caller's to apply.
    ///
    /// # Errors
    /// If `config` breaks a rule of its own, or there are no blocks.
    pub fn new(config: &EngineConfig, num_gpu_blocks: u32) -> Result<Self, SchedulerError> {
        config.validate()?;
        let block_size = NonZeroU32::new(config.cache.block_size).ok_or(KvCacheConfigError::EmptyBlocks)?;
        let kv = KvCacheManager::new(KvCacheConfig {
            num_blocks: num_gpu_blocks,
            block_size: block_size.get(),
            max_model_len: config.model.max_model_len,
            enable_caching: config.cache.enable_prefix_caching,
            watermark: config.scheduler.watermark.get(),
        })?;
        Ok(Self {
            limits: Limits::new(config),
            requests: RequestTable::default(),
            running: Vec::new(),
            waiting: WaitingQueue::new(config.scheduler.policy),
            num_deferred: 0,
            kv,
            hasher: BlockHasher::new(block_size),
            finished: Vec::new(),
            preempted: Vec::new(),
            step_id: 0,
            processed_step_id: 0,
            next_sequence: 0,
            step: Step::default(),
        })
    }

    /// Whether a `schedule` call has something to do: requests that have not ended, or ends to report.
    ///
    /// spec: scheduler 8.
    #[must_use]
    pub fn has_requests(&self) -> bool {
        self.has_unfinished_requests() || !self.finished.is_empty()
    }

    /// Whether requests run or wait.
    #[must_use]
    pub fn has_unfinished_requests(&self) -> bool {
        self.requests.len() > 0
    }

    /// Requests that have been admitted and not ended.
    #[must_use]
    pub fn num_running(&self) -> usize {
        self.running.len()
    }

    /// Requests that wait for admission, preempted ones included.
    #[must_use]
    pub fn num_waiting(&self) -> usize {
        self.waiting.len()
    }

    /// The number of the last `schedule` call; 0 before the first.
    #[must_use]
    pub fn step_id(&self) -> u64 {
        self.step_id
    }

    /// Running requests in order of admission.
    pub fn running(&self) -> impl Iterator<Item = &RequestId> {
        self.running.iter().map(|slot| &self.requests.request(*slot).id)
    }

    /// Waiting requests in the order in which they would be tried.
    pub fn waiting(&self) -> impl Iterator<Item = &RequestId> {
        self.waiting.iter().map(|slot| &self.requests.request(slot).id)
    }

    /// Waiting requests that scans have passed over, in queue order.
    pub fn deferred(&self) -> impl Iterator<Item = &RequestId> {
        self.waiting.iter().filter(|slot| self.requests[*slot].deferred).map(|slot| &self.requests.request(slot).id)
    }

    /// Returns the handle of a request that has not ended.
    #[must_use]
    pub fn find(&self, id: &str) -> Option<RequestHandle> {
        self.requests.find(id).map(|slot| self.requests.handle(slot))
    }

    /// Returns the text id behind a handle while the handle is valid.
    #[must_use]
    pub fn request_id(&self, handle: RequestHandle) -> Option<&RequestId> {
        self.requests.resolve(handle).map(|slot| &self.requests.request(slot).id)
    }

    /// Returns the status behind a handle while the handle is valid.
    #[must_use]
    pub fn status(&self, handle: RequestHandle) -> Option<RequestStatus> {
        self.requests.resolve(handle).map(|slot| self.requests[slot].status)
    }

    /// The tokens of a request that has not ended: what a resumed request is recomputed from.
    #[must_use]
    pub fn tokens_of(&self, handle: RequestHandle) -> Option<TokenView<'_>> {
        self.requests.resolve(handle).map(|slot| self.requests.request(slot).tokens())
    }

    /// The block table of a request that has not ended; empty while it waits.
    #[must_use]
    pub fn blocks_of(&self, handle: RequestHandle) -> &[BlockId] {
        self.requests.resolve(handle).map_or(&[], |slot| self.kv.blocks_of(slot))
    }

    /// The KV cache, to read.
    #[must_use]
    pub const fn kv_cache(&self) -> &KvCacheManager {
        &self.kv
    }
}
