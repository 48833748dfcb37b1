//! What is measured of each request. spec: requests-and-outputs 6.

use stepline_scheduler::{EngineCoreEventType, Nanos, PrefixCacheStats, RequestHandle};
use stepline_workload::RequestSpec;

use crate::distribution::WeightedSamples;
use crate::engine::StepOutcome;
use crate::report::{PrefixCacheReport, TokenCounts};

/// Figures of a replay as it goes.
#[derive(Debug, Default)]
pub(crate) struct Metrics {
    /// Unfinished requests, by slot.
    live: Vec<LiveRequest>,
    num_live: usize,
    num_live_prompt_tokens: u64,
    /// End of the last step that computed something; the end of the replay as far as durations are concerned.
    pub(crate) last_computation_ended: Nanos,
    pub(crate) finished: u64,
    pub(crate) clipped: u64,
    pub(crate) preemptions: u64,
    pub(crate) peak_kv_cache_usage: f64,
    pub(crate) ttft: WeightedSamples,
    pub(crate) tpot: WeightedSamples,
    pub(crate) itl: WeightedSamples,
    pub(crate) e2e: WeightedSamples,
    pub(crate) queue: WeightedSamples,
    num_prompt_tokens: u64,
    num_output_tokens: u64,
    prefix_cache: PrefixCacheStats,
}

/// A request on its way.
#[derive(Clone, Copy, Debug, Default)]
struct LiveRequest {
    arrival: Nanos,
    queued: Nanos,
    scheduled: Option<Nanos>,
    first_token: Nanos,
    last_token: Nanos,
    num_prompt_tokens: u32,
    num_output_tokens: u32,
    /// As the workload wants it.
    output_len: u32,
}

impl Metrics {
    /// A request was taken in.
    pub(crate) fn queued(&mut self, handle: RequestHandle, spec: &RequestSpec, now: Nanos) {
        let slot = handle.slot.0 as usize;
        if slot >= self.live.len() {
            self.live.resize(slot + 1, LiveRequest::default());
        }
        self.live[slot] = LiveRequest {
            arrival: Nanos(spec.arrival_ns),
            queued: now,
            num_prompt_tokens: spec.prompt.num_tokens(),
            output_len: spec.output_len,
            ..LiveRequest::default()
        };
        self.num_live += 1;
        self.num_live_prompt_tokens += u64::from(spec.prompt.num_tokens());
    }

    /// A step is over.
    pub(crate) fn step(&mut self, outcome: &StepOutcome<'_>) {
        if !outcome.plan.is_empty() {
            self.last_computation_ended = outcome.ended;
        }
        self.preemptions += outcome.plan.preempted_req_ids.len() as u64;
        self.peak_kv_cache_usage = self.peak_kv_cache_usage.max(outcome.kv_cache_usage);
        add(&mut self.prefix_cache, &outcome.outputs.scheduler_stats.prefix_cache_stats);
        for output in &outcome.outputs.outputs {
            let request = &mut self.live[output.request.slot.0 as usize];
            for event in output.events() {
                if event.event_type == EngineCoreEventType::Scheduled {
                    request.scheduled.get_or_insert(event.timestamp);
                }
            }
            let num_new_tokens = outcome.outputs.new_token_ids(output).len();
            if request.num_output_tokens == 0 {
                request.first_token = outcome.ended;
                self.ttft.push(since(request.arrival, outcome.ended));
            } else {
                self.itl.push(since(request.last_token, outcome.ended));
            }
            request.last_token = outcome.ended;
            request.num_output_tokens += u32::try_from(num_new_tokens).unwrap_or(u32::MAX);
            if output.finish_reason.is_some() {
                let request = *request;
                self.finish(&request);
            }
        }
    }

    fn finish(&mut self, request: &LiveRequest) {
        self.finished += 1;
        self.num_live -= 1;
        self.num_live_prompt_tokens -= u64::from(request.num_prompt_tokens);
        self.clipped += u64::from(request.num_output_tokens < request.output_len);
        self.num_prompt_tokens += u64::from(request.num_prompt_tokens);
        self.num_output_tokens += u64::from(request.num_output_tokens);
        self.e2e.push(since(request.arrival, request.last_token));
        self.queue.push(request.scheduled.map_or(0, |scheduled| since(request.queued, scheduled)));
        let decode_ns = since(request.first_token, request.last_token);
        self.tpot.push(decode_ns.checked_div(u64::from(request.num_output_tokens).saturating_sub(1)).unwrap_or(0));
    }

    /// Requests that were taken in and have not ended.
    pub(crate) const fn num_live(&self) -> usize {
        self.num_live
    }

    /// Their prompt tokens.
    pub(crate) const fn num_live_prompt_tokens(&self) -> u64 {
        self.num_live_prompt_tokens
    }

    pub(crate) fn tokens(&self, duration_s: f64) -> TokenCounts {
        let per_s = |num_tokens: u64| (duration_s > 0.0).then(|| float(num_tokens) / duration_s);
        TokenCounts {
            prompt: self.num_prompt_tokens,
            output: self.num_output_tokens,
            prompt_per_s: per_s(self.num_prompt_tokens),
            output_per_s: per_s(self.num_output_tokens),
        }
    }

    pub(crate) fn prefix_cache(&self) -> PrefixCacheReport {
        let PrefixCacheStats { queries, hits, preempted_queries, preempted_hits, .. } = self.prefix_cache;
        let hit_rate = if queries == 0 { 0.0 } else { float(hits) / float(queries) };
        PrefixCacheReport { queries, hits, hit_rate, preempted_queries, preempted_hits }
    }
}

fn add(sum: &mut PrefixCacheStats, step: &PrefixCacheStats) {
    sum.queries += step.queries;
    sum.hits += step.hits;
    sum.preempted_queries += step.preempted_queries;
    sum.preempted_hits += step.preempted_hits;
}

fn since(earlier: Nanos, later: Nanos) -> u64 {
    later.0.saturating_sub(earlier.0)
}

#[expect(clippy::cast_precision_loss, reason = "token counts stay below 2^53")]
fn float(count: u64) -> f64 {
    count as f64
}
