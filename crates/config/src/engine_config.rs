//! The validated configuration of an engine.

use crate::choices::{DetailedTraces, PrefixCachingHashAlgo, SchedulingPolicy};
use crate::notice::Notice;
use crate::rate::{Rate, Watermark};
use crate::redact::without_user_info;
use crate::settings::{DefaultValue, Effect, SETTINGS, Value};

/// Everything that an engine needs to know, resolved.
///
/// Made by [`EngineArgs::resolve`](crate::EngineArgs::resolve). Fields may be changed afterwards;
/// [`validate`](Self::validate) tells whether the result still holds together.
#[derive(Clone, Debug, PartialEq)]
pub struct EngineConfig {
    /// The model.
    pub model: ModelConfig,
    /// The KV cache.
    pub cache: CacheConfig,
    /// The scheduler.
    pub scheduler: SchedulerConfig,
    /// The limit of LoRA adapters; `None` if adapters are not limited.
    pub lora: Option<LoraConfig>,
    /// Traces and metrics.
    pub observability: ObservabilityConfig,
}

/// What the scheduler knows of the model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelConfig {
    /// Longest sequence in tokens, prompt and output together; at least 1.
    pub max_model_len: u32,
}

/// The paged KV cache of one full-attention group.
#[derive(Clone, Debug, PartialEq)]
pub struct CacheConfig {
    /// Tokens per block; from 1 to 65,536.
    pub block_size: u32,
    /// Blocks, the null block included; `None` if the executor decides. From `num_gpu_blocks_override`.
    pub num_gpu_blocks: Option<u32>,
    /// Share of GPU memory for the engine, above 0; kept for configurations of vLLM, without effect.
    pub gpu_memory_utilization: Rate,
    /// Bytes of GPU memory for the KV cache; kept for configurations of vLLM, without effect.
    pub kv_cache_memory_bytes: Option<u64>,
    /// Whether the blocks of equal prefixes are reused.
    pub enable_prefix_caching: bool,
    /// Kept for configurations of vLLM; without effect.
    pub prefix_caching_hash_algo: PrefixCachingHashAlgo,
    /// Always 0: no sliding-window or Mamba layers.
    pub prefix_cache_retention_interval: u32,
    /// The block size, if given.
    pub prefix_match_unit: Option<u32>,
}

/// The limits and rules of the scheduler. Counts are tokens unless named otherwise.
#[derive(Clone, Debug, PartialEq)]
pub struct SchedulerConfig {
    /// Token budget of a step; at least `max_num_seqs`, and `max_model_len` without chunked prefill.
    pub max_num_batched_tokens: u32,
    /// Tokens that a step may schedule; at least 1.
    pub max_num_scheduled_tokens: u32,
    /// Requests that a step may hold; at least 1.
    pub max_num_seqs: u32,
    /// Requests that may run at a time; from 1 to `max_num_seqs`.
    pub max_num_active_seqs: u32,
    /// Prefill tokens that one of several requests gets per step; 0 for no limit, at most `max_model_len`.
    pub long_prefill_token_threshold: u32,
    /// Whether that threshold grows to an equal share of the token budget.
    pub long_prefill_token_threshold_adaptive: bool,
    /// Whether a prompt may be computed in several steps.
    pub enable_chunked_prefill: bool,
    /// Order of admission and preemption.
    pub policy: SchedulingPolicy,
    /// Whether a request is admitted only if its whole sequence fits into the free blocks.
    pub scheduler_reserve_full_isl: bool,
    /// Share of blocks that admission leaves free.
    pub watermark: Watermark,
}

/// The limit of LoRA adapters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoraConfig {
    /// Adapters per step; at least 1.
    pub max_loras: u32,
}

/// What is traced and measured. The fields from `collect_detailed_traces` on are kept but have no effect.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of vLLM of its own")]
pub struct ObservabilityConfig {
    /// The collector that receives traces, as a URL; with user and password, if it has them.
    pub otlp_traces_endpoint: Option<String>,
    /// Whether the way of requests through the engine is traced.
    pub enable_journey_tracing: bool,
    /// Share of requests whose journey is traced.
    pub journey_tracing_sample_rate: Rate,
    /// Whether steps are traced.
    pub step_tracing_enabled: bool,
    /// Share of steps that get a batch summary.
    pub step_tracing_sample_rate: Rate,
    /// Share of summarised steps that also get request snapshots.
    pub step_tracing_rich_subsample_rate: Rate,
    /// Traced steps per span, 10 to 10,000.
    pub step_tracing_closure_interval: u32,
    /// Modules whose GPU work is to be traced.
    pub collect_detailed_traces: Option<DetailedTraces>,
    /// Whether the lifetimes of blocks are to be measured.
    pub kv_cache_metrics: bool,
    /// Share of blocks to be measured; above 0.
    pub kv_cache_metrics_sample: Rate,
    /// Whether the use of the GPU's arithmetic is to be measured.
    pub enable_mfu_metrics: bool,
    /// Whether the details of each step are to be logged.
    pub enable_logging_iteration_details: bool,
    /// Whether CUDA graphs are to be measured.
    pub cudagraph_metrics: bool,
    /// The version since which hidden metrics are to be shown.
    pub show_hidden_metrics_for_version: Option<String>,
    /// Whether layers are to be marked for NVIDIA's profiler.
    pub enable_layerwise_nvtx_tracing: bool,
    /// Whether the multimodal processor is to be measured.
    pub enable_mm_processor_stats: bool,
}

impl EngineConfig {
    /// Every setting with its value, to be shown, in the order of [`SETTINGS`].
    ///
    /// User and password of `otlp_traces_endpoint` are hidden: `http://***@host`.
    #[must_use]
    pub fn values(&self) -> Vec<(&'static str, Value)> {
        let Self { model, cache, scheduler, lora, observability } = self;
        let endpoint = &observability.otlp_traces_endpoint;
        vec![
            ("max_model_len", count(model.max_model_len)),
            ("block_size", count(cache.block_size)),
            ("num_gpu_blocks_override", cache.num_gpu_blocks.map_or(Value::Unset, count)),
            ("gpu_memory_utilization", rate(cache.gpu_memory_utilization)),
            ("kv_cache_memory_bytes", cache.kv_cache_memory_bytes.map_or(Value::Unset, |n| Value::Integer(n.into()))),
            ("enable_prefix_caching", Value::Boolean(cache.enable_prefix_caching)),
            ("prefix_caching_hash_algo", text(&cache.prefix_caching_hash_algo)),
            ("prefix_cache_retention_interval", count(cache.prefix_cache_retention_interval)),
            ("prefix_match_unit", cache.prefix_match_unit.map_or(Value::Unset, count)),
            ("max_num_batched_tokens", count(scheduler.max_num_batched_tokens)),
            ("max_num_scheduled_tokens", count(scheduler.max_num_scheduled_tokens)),
            ("max_num_seqs", count(scheduler.max_num_seqs)),
            ("max_num_active_seqs", count(scheduler.max_num_active_seqs)),
            ("long_prefill_token_threshold", count(scheduler.long_prefill_token_threshold)),
            ("long_prefill_token_threshold_adaptive", Value::Boolean(scheduler.long_prefill_token_threshold_adaptive)),
            ("scheduling_policy", text(&scheduler.policy)),
            ("enable_chunked_prefill", Value::Boolean(scheduler.enable_chunked_prefill)),
            ("scheduler_reserve_full_isl", Value::Boolean(scheduler.scheduler_reserve_full_isl)),
            ("watermark", Value::Number(scheduler.watermark.get())),
            ("enable_lora", Value::Boolean(lora.is_some())),
            ("max_loras", lora.as_ref().map_or(Value::Unset, |lora| count(lora.max_loras))),
            ("otlp_traces_endpoint", endpoint.as_ref().map_or(Value::Unset, |url| Value::Text(without_user_info(url)))),
            ("enable_journey_tracing", Value::Boolean(observability.enable_journey_tracing)),
            ("journey_tracing_sample_rate", rate(observability.journey_tracing_sample_rate)),
            ("step_tracing_enabled", Value::Boolean(observability.step_tracing_enabled)),
            ("step_tracing_sample_rate", rate(observability.step_tracing_sample_rate)),
            ("step_tracing_rich_subsample_rate", rate(observability.step_tracing_rich_subsample_rate)),
            ("step_tracing_closure_interval", count(observability.step_tracing_closure_interval)),
            ("collect_detailed_traces", observability.collect_detailed_traces.as_ref().map_or(Value::Unset, text)),
            ("kv_cache_metrics", Value::Boolean(observability.kv_cache_metrics)),
            ("kv_cache_metrics_sample", rate(observability.kv_cache_metrics_sample)),
            ("enable_mfu_metrics", Value::Boolean(observability.enable_mfu_metrics)),
            ("enable_logging_iteration_details", Value::Boolean(observability.enable_logging_iteration_details)),
            ("cudagraph_metrics", Value::Boolean(observability.cudagraph_metrics)),
            (
                "show_hidden_metrics_for_version",
                observability.show_hidden_metrics_for_version.as_ref().map_or(Value::Unset, text),
            ),
            ("enable_layerwise_nvtx_tracing", Value::Boolean(observability.enable_layerwise_nvtx_tracing)),
            ("enable_mm_processor_stats", Value::Boolean(observability.enable_mm_processor_stats)),
        ]
    }

    /// Settings that differ from their defaults although they have no effect here, with the reason.
    #[must_use]
    pub fn notices(&self) -> Vec<Notice> {
        let values = self.values();
        SETTINGS
            .iter()
            .zip(values)
            .filter_map(|(setting, (_, value))| {
                let Effect::None(why) = setting.effect else { return None };
                let is_default = match setting.default {
                    DefaultValue::Fixed(text) => value.to_string() == text,
                    DefaultValue::Unset | DefaultValue::Derived(_) => value == Value::Unset,
                };
                (!is_default).then(|| Notice::new(setting.name, format!("{value} has no effect: {why}")))
            })
            .collect()
    }
}

fn count(value: u32) -> Value {
    Value::Integer(value.into())
}

fn rate(value: Rate) -> Value {
    Value::Number(value.get())
}

fn text(value: &impl ToString) -> Value {
    Value::Text(value.to_string())
}

#[cfg(test)]
mod tests {
    use crate::settings::SETTINGS;
    use crate::{DetailedTraces, EngineArgs, PrefixCachingHashAlgo};

    #[test]
    fn values_come_in_the_order_of_the_settings() {
        let config = EngineArgs::default().resolve().expect("valid");
        let names: Vec<_> = config.values().into_iter().map(|(name, _)| name).collect();
        let expected: Vec<_> = SETTINGS.iter().map(|setting| setting.name).collect();
        assert_eq!(names, expected);
    }

    #[test]
    fn a_setting_without_effect_is_said_to_have_none_only_if_it_was_changed() {
        assert_eq!(EngineArgs::default().resolve().expect("valid").notices(), []);
        let args = EngineArgs {
            cudagraph_metrics: Some(true),
            otlp_traces_endpoint: Some("http://localhost:4317".to_owned()),
            collect_detailed_traces: Some("all".parse::<DetailedTraces>().expect("a module")),
            prefix_caching_hash_algo: Some(PrefixCachingHashAlgo::Xxhash),
            kv_cache_metrics_sample: Some(0.01),
            ..EngineArgs::default()
        };
        let notices = args.resolve().expect("valid").notices();
        let fields: Vec<_> = notices.iter().map(|notice| notice.field).collect();
        assert_eq!(fields, ["prefix_caching_hash_algo", "collect_detailed_traces", "cudagraph_metrics"]);
    }
}
