//! From a workload's request to the scheduler's, or to a rejection.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Serialize;
use stepline_config::{EngineConfig, Rate};
use stepline_scheduler::{
    AddRequestError, JourneyContext, LoraRequest, Nanos, NewRequest, RequestHandle, RequestId, SamplingParams,
};
use stepline_workload::RequestSpec;
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::engine::Engine;
use crate::executor::Executor;

/// Why a request was rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RejectReason {
    /// The prompt leaves no room in `max_model_len`.
    PromptTooLong,
    /// The KV cache could not hold the request if it were alone.
    ExceedsKvCache,
    /// A request with this id has not ended yet.
    DuplicateId,
    /// Another fault; the message says which.
    Invalid,
}

/// Requests rejected for one reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Rejection {
    /// Why.
    pub reason: RejectReason,
    /// How many.
    pub count: u64,
    /// What was wrong with the first of them.
    pub first: String,
}

/// Hands requests over and remembers the rejected ones.
pub(super) struct Admission {
    seed: u64,
    max_model_len: u32,
    block_size: u32,
    /// Arrival of the last request, as the scheduler was told.
    last_arrival: Option<Nanos>,
    /// Share of requests whose journey is traced.
    journey_rate: Option<Rate>,
    /// Adapters by name, with ids from 1 in order of appearance.
    loras: BTreeMap<Arc<str>, u32>,
    rejections: BTreeMap<RejectReason, (u64, String)>,
}

impl Admission {
    pub(super) fn new(config: &EngineConfig, seed: u64) -> Self {
        let observability = &config.observability;
        Self {
            seed,
            max_model_len: config.model.max_model_len,
            block_size: config.cache.block_size,
            last_arrival: None,
            journey_rate: observability.enable_journey_tracing.then_some(observability.journey_tracing_sample_rate),
            loras: BTreeMap::new(),
            rejections: BTreeMap::new(),
        }
    }

    /// Notes a request that can never run, before its tokens are made.
    ///
    /// Unlike vLLM: a request that the KV cache can never hold is refused here. The scheduler would take it in, and at
    /// the head of the queue it would block everybody behind it for ever (spec: scheduler 4).
    pub(super) fn rejects<E: Executor>(&mut self, spec: &RequestSpec, engine: &Engine<E>) -> bool {
        let message = self.exceeds_kv_cache(spec, engine);
        let is_rejected = message.is_some();
        if let Some(message) = message {
            self.reject(RejectReason::ExceedsKvCache, message);
        }
        is_rejected
    }

    /// Adds a request to the engine, or notes why not.
    pub(super) fn add<E: Executor>(&mut self, spec: &RequestSpec, engine: &mut Engine<E>) -> Option<RequestHandle> {
        let request = self.new_request(spec);
        match engine.add_request(request) {
            Ok(handle) => Some(handle),
            Err(error) => {
                let reason = match error {
                    AddRequestError::PromptTooLong { .. } => RejectReason::PromptTooLong,
                    AddRequestError::DuplicateId { .. } => RejectReason::DuplicateId,
                    _ => RejectReason::Invalid,
                };
                self.reject(reason, error.to_string());
                None
            }
        }
    }

    pub(super) fn num_rejected(&self) -> u64 {
        self.rejections.values().map(|(count, _)| count).sum()
    }

    pub(super) fn rejections(&self) -> Vec<Rejection> {
        let rejection = |(reason, (count, first)): (&RejectReason, &(u64, String))| Rejection {
            reason: *reason,
            count: *count,
            first: first.clone(),
        };
        self.rejections.iter().map(rejection).collect()
    }

    fn reject(&mut self, reason: RejectReason, message: String) {
        self.rejections.entry(reason).or_insert((0, message)).0 += 1;
    }

    /// What to say of a request that is too large for the cache though not for `max_model_len`.
    fn exceeds_kv_cache<E: Executor>(&self, spec: &RequestSpec, engine: &Engine<E>) -> Option<String> {
        let num_prompt_tokens = spec.prompt.num_tokens();
        let scheduler = engine.scheduler();
        if num_prompt_tokens >= self.max_model_len || scheduler.fits_cache(num_prompt_tokens, spec.output_len) {
            return None;
        }
        let num_tokens = num_prompt_tokens.saturating_add(spec.output_len).min(self.max_model_len);
        let needed = scheduler.num_blocks_for_request(num_prompt_tokens, spec.output_len);
        let available = scheduler.kv_cache().step_summary().blocks_total_gpu;
        Some(format!(
            "request `{}`: its {num_tokens} tokens need {needed} KV cache blocks of {}, the cache has {available}; \
             raise num_gpu_blocks_override or lower max_model_len",
            spec.id, self.block_size
        ))
    }

    fn new_request(&mut self, spec: &RequestSpec) -> NewRequest {
        // A trace says how long the output was: `max_tokens` ends it, and no end of sequence before.
        let sampling = SamplingParams { max_tokens: Some(spec.output_len), ..SamplingParams::default() };
        let prompt_token_ids = spec.prompt_token_ids(self.seed);
        NewRequest {
            priority: spec.priority,
            arrival_time: Some(self.arrival_time(spec)),
            lora: spec.lora.as_ref().map(|name| self.lora(name)),
            cache_salt: spec.cache_salt.clone(),
            journey: self.is_journey_traced(&spec.id).then(JourneyContext::default),
            ..NewRequest::new(RequestId(Arc::clone(&spec.id)), prompt_token_ids, sampling)
        }
    }

    /// The arrival, a nanosecond or more after that of the request before.
    ///
    /// A front end's clock gives no two requests the same time; a trace may. Under the priority policy equal requests
    /// would take blocks from each other in turn, possibly for ever: of equals, the first in `running` is the victim,
    /// and it comes back as the last (spec: scheduler 2.3).
    fn arrival_time(&mut self, spec: &RequestSpec) -> Nanos {
        let earliest = self.last_arrival.map_or(0, |last| last.0.saturating_add(1));
        let arrival_time = Nanos(spec.arrival_ns.max(earliest));
        self.last_arrival = Some(arrival_time);
        arrival_time
    }

    fn lora(&mut self, name: &Arc<str>) -> LoraRequest {
        let next_id = u32::try_from(self.loras.len() + 1).unwrap_or(u32::MAX);
        let id = *self.loras.entry(Arc::clone(name)).or_insert(next_id);
        LoraRequest { name: Arc::clone(name), id, path: Arc::clone(name) }
    }

    /// Draws from seed and id, so that a higher rate traces a superset.
    fn is_journey_traced(&self, id: &str) -> bool {
        self.journey_rate.is_some_and(|rate| rate.admits(xxh3_64_with_seed(id.as_bytes(), self.seed)))
    }
}
