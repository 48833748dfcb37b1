//! From engine arguments to a configuration: defaults that depend on other settings.
//!
//! vLLM takes the defaults of the token budget and the sequence limit from the device. Stepline has none, so it takes
//! those of vLLM's server on a device of less than 70 GiB.

use std::collections::BTreeSet;

use crate::engine_config::{CacheConfig, EngineConfig, LoraConfig, ModelConfig, ObservabilityConfig, SchedulerConfig};
use crate::error::{ConfigErrors, Fault, Problem};
use crate::notice::Notice;
use crate::rate::{Rate, Watermark};
use crate::settings::EngineArgs;
use crate::validate::{faults_of, not_allowed};

/// vLLM's `max_model_len` is the model's. There is no model: 128 Ki is common, and the longest prompts of public
/// request traces (about 126,000 tokens) fit.
const DEFAULT_MAX_MODEL_LEN: u32 = 131_072;
const DEFAULT_MAX_NUM_BATCHED_TOKENS: u32 = 2048;
const DEFAULT_MAX_NUM_SEQS: u32 = 256;

/// A configuration and how it came about.
#[derive(Clone, Debug)]
#[cfg_attr(not(feature = "load"), expect(dead_code, reason = "only a loader tells how values came about"))]
pub(crate) struct Resolution {
    pub(crate) config: EngineConfig,
    pub(crate) faults: Vec<Fault>,
    pub(crate) notices: Vec<Notice>,
    /// Settings that were not given and are not simply the default, with the rule that made them.
    pub(crate) derived: Vec<(&'static str, &'static str)>,
}

impl EngineArgs {
    /// Fills in the defaults and validates the whole.
    ///
    /// # Errors
    /// All faults together: values out of range, and settings that contradict each other.
    ///
    /// ```
    /// use stepline_config::EngineArgs;
    ///
    /// let args = EngineArgs { max_num_seqs: Some(64), ..EngineArgs::default() };
    /// let config = args.resolve()?;
    /// assert_eq!(config.scheduler.max_num_active_seqs, 64);
    ///
    /// let args = EngineArgs { max_num_seqs: Some(64), max_num_batched_tokens: Some(32), ..EngineArgs::default() };
    /// assert!(args.resolve().is_err());
    /// # Ok::<(), stepline_config::ConfigErrors>(())
    /// ```
    pub fn resolve(self) -> Result<EngineConfig, ConfigErrors> {
        let Resolution { config, faults, .. } = self.resolve_trusting_all_but(&BTreeSet::new());
        ConfigErrors::check(faults)?;
        Ok(config)
    }

    /// Resolves, and finds faults, but for rules that involve a setting of `distrusted`: those were given wrongly and
    /// left out, and another fault says so.
    pub(crate) fn resolve_trusting_all_but(self, distrusted: &BTreeSet<&'static str>) -> Resolution {
        let mut faults = Vec::new();
        let mut notices = self.remarks();
        let mut derived = Vec::new();
        let max_model_len = self.max_model_len.unwrap_or(DEFAULT_MAX_MODEL_LEN);
        let enable_chunked_prefill = self.enable_chunked_prefill.unwrap_or(true);
        let max_num_batched_tokens = self.max_num_batched_tokens.unwrap_or_else(|| {
            let (value, rule) = self.default_token_budget(max_model_len, enable_chunked_prefill);
            derived.extend(rule.map(|rule| ("max_num_batched_tokens", rule)));
            value
        });
        let max_num_seqs = self.max_num_seqs.unwrap_or_else(|| {
            if max_num_batched_tokens < DEFAULT_MAX_NUM_SEQS {
                derived.push(("max_num_seqs", "lowered to max_num_batched_tokens"));
            }
            DEFAULT_MAX_NUM_SEQS.min(max_num_batched_tokens)
        });
        if self.max_num_scheduled_tokens.is_none() {
            derived.push(("max_num_scheduled_tokens", "max_num_batched_tokens"));
        }
        if self.max_num_active_seqs.is_none() {
            derived.push(("max_num_active_seqs", "max_num_seqs"));
        }
        let scheduler = SchedulerConfig {
            max_num_batched_tokens,
            max_num_scheduled_tokens: self.max_num_scheduled_tokens.unwrap_or(max_num_batched_tokens),
            max_num_seqs,
            max_num_active_seqs: self.max_num_active_seqs.unwrap_or(max_num_seqs),
            long_prefill_token_threshold: self.long_prefill_token_threshold.unwrap_or(0),
            long_prefill_token_threshold_adaptive: self.long_prefill_token_threshold_adaptive.unwrap_or(false),
            enable_chunked_prefill,
            policy: self.scheduling_policy.unwrap_or_default(),
            scheduler_reserve_full_isl: self.scheduler_reserve_full_isl.unwrap_or(true),
            watermark: self.watermark.map_or(Watermark::ZERO, |value| {
                Watermark::new(value).unwrap_or_else(|_| {
                    faults.push(not_allowed("watermark", &value));
                    Watermark::ZERO
                })
            }),
        };
        notices.extend(budget_notice(self.max_num_batched_tokens, max_num_seqs, max_model_len));
        let config = EngineConfig {
            model: ModelConfig { max_model_len },
            cache: CacheConfig {
                block_size: self.block_size.unwrap_or(16),
                num_gpu_blocks: self.num_gpu_blocks_override,
                gpu_memory_utilization: rate("gpu_memory_utilization", self.gpu_memory_utilization, 0.92, &mut faults),
                kv_cache_memory_bytes: self.kv_cache_memory_bytes,
                enable_prefix_caching: self.enable_prefix_caching.unwrap_or(true),
                prefix_caching_hash_algo: self.prefix_caching_hash_algo.unwrap_or_default(),
                prefix_cache_retention_interval: self.prefix_cache_retention_interval.unwrap_or(0),
                prefix_match_unit: self.prefix_match_unit,
            },
            scheduler,
            lora: (self.enable_lora == Some(true)).then(|| LoraConfig { max_loras: self.max_loras.unwrap_or(1) }),
            observability: self.observability(&mut faults),
        };
        // A derived value out of range only repeats the fault of the value that it was derived from.
        let repeats = |fault: &Fault| {
            matches!(fault.problem, Problem::NotAllowed { .. }) && derived.iter().any(|(name, _)| fault.field == *name)
        };
        faults.extend(faults_of(&config, distrusted).into_iter().filter(|fault| !repeats(fault)));
        notices.extend(config.notices());
        Resolution { config, faults, notices, derived }
    }

    /// The default token budget, and the rule that made it unless it is the plain default.
    fn default_token_budget(&self, max_model_len: u32, enable_chunked_prefill: bool) -> (u32, Option<&'static str>) {
        let (budget, rule) = if !enable_chunked_prefill && max_model_len > DEFAULT_MAX_NUM_BATCHED_TOKENS {
            (max_model_len, Some("raised to max_model_len, as chunked prefill is off"))
        } else {
            (DEFAULT_MAX_NUM_BATCHED_TOKENS, None)
        };
        let most = most_useful_budget(self.max_num_seqs.unwrap_or(DEFAULT_MAX_NUM_SEQS), max_model_len);
        // Zeros are faults of their own; a budget of zero would only repeat them.
        match u32::try_from(most) {
            Ok(most) if most < budget => (most.max(1), Some("capped at max_num_seqs x max_model_len")),
            _ => (budget, rule),
        }
    }

    fn observability(&self, faults: &mut Vec<Fault>) -> ObservabilityConfig {
        let mut rate = |field, given, default| rate(field, given, default, faults);
        ObservabilityConfig {
            otlp_traces_endpoint: self.otlp_traces_endpoint.clone(),
            enable_journey_tracing: self.enable_journey_tracing.unwrap_or(false),
            journey_tracing_sample_rate: rate("journey_tracing_sample_rate", self.journey_tracing_sample_rate, 1.0),
            step_tracing_enabled: self.step_tracing_enabled.unwrap_or(false),
            step_tracing_sample_rate: rate("step_tracing_sample_rate", self.step_tracing_sample_rate, 0.01),
            step_tracing_rich_subsample_rate: rate(
                "step_tracing_rich_subsample_rate",
                self.step_tracing_rich_subsample_rate,
                0.001,
            ),
            step_tracing_closure_interval: self.step_tracing_closure_interval.unwrap_or(100),
            collect_detailed_traces: self.collect_detailed_traces.clone(),
            kv_cache_metrics: self.kv_cache_metrics.unwrap_or(false),
            kv_cache_metrics_sample: rate("kv_cache_metrics_sample", self.kv_cache_metrics_sample, 0.01),
            enable_mfu_metrics: self.enable_mfu_metrics.unwrap_or(false),
            enable_logging_iteration_details: self.enable_logging_iteration_details.unwrap_or(false),
            cudagraph_metrics: self.cudagraph_metrics.unwrap_or(false),
            show_hidden_metrics_for_version: self.show_hidden_metrics_for_version.clone(),
            enable_layerwise_nvtx_tracing: self.enable_layerwise_nvtx_tracing.unwrap_or(false),
            enable_mm_processor_stats: self.enable_mm_processor_stats.unwrap_or(false),
        }
    }

    /// Remarks on arguments that the resolved configuration no longer shows.
    fn remarks(&self) -> Vec<Notice> {
        match self.max_loras {
            Some(max_loras) if self.enable_lora != Some(true) => {
                vec![Notice::new("max_loras", format!("{max_loras} has no effect without enable_lora"))]
            }
            _ => Vec::new(),
        }
    }
}

/// A given rate, or the default; one that is none is a fault.
fn rate(field: &'static str, given: Option<f64>, default: f64, faults: &mut Vec<Fault>) -> Rate {
    let default = Rate::new(default).expect("a default is a rate");
    given.map_or(default, |value| {
        Rate::new(value).unwrap_or_else(|_| {
            faults.push(not_allowed(field, &value));
            default
        })
    })
}

/// The most tokens that could ever be scheduled in a step.
fn most_useful_budget(max_num_seqs: u32, max_model_len: u32) -> u64 {
    u64::from(max_num_seqs) * u64::from(max_model_len)
}

/// spec: config 1: a budget beyond all use is allowed, and said.
fn budget_notice(given: Option<u32>, max_num_seqs: u32, max_model_len: u32) -> Option<Notice> {
    let most = most_useful_budget(max_num_seqs, max_model_len);
    given.filter(|given| u64::from(*given) > most).map(|given| {
        let message = format!("{given} is more than max_num_seqs x max_model_len = {most}, which no step can exceed");
        Notice::new("max_num_batched_tokens", message)
    })
}
