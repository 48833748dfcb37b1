//! The table of settings, and [`EngineArgs`], which has a field for each.

use super::{DefaultValue, Group, Kind, Setting};
use crate::choices::{DetailedTraces, PrefixCachingHashAlgo, SchedulingPolicy, TracedModule};
use DefaultValue::{Derived, Fixed, Unset};
use Group::{Cache, Lora, Model, Observability, Scheduler};

/// Declares `EngineArgs` and `SETTINGS` from one list.
macro_rules! settings {
    ($($(#[doc = $help:literal])+ $name:ident: $type:ty = $setting:expr;)+) => {
        /// Engine arguments as a user gives them, under vLLM's names; what is `None` gets its default.
        ///
        /// [`resolve`](Self::resolve) makes an [`EngineConfig`](crate::EngineConfig) of them.
        #[derive(Clone, Debug, Default, PartialEq)]
        #[cfg_attr(feature = "serde", derive(serde::Deserialize), serde(default, deny_unknown_fields))]
        pub struct EngineArgs {
            $($(#[doc = $help])+ pub $name: Option<$type>,)+
        }

        /// Every setting, group by group.
        pub static SETTINGS: &[Setting] = &[
            $(Setting { name: stringify!($name), help: concat!($($help),+).trim_ascii(), ..$setting },)+
        ];
    };
}

const NO_GPU: &str = "it measures GPU work, and Stepline runs none";
const NO_GPU_MEMORY: &str =
    "there is no GPU memory to divide; the executor or num_gpu_blocks_override says how many blocks there are";
/// Most KV cache blocks: their records take 4 GiB.
const MAX_NUM_BLOCKS: u64 = 1 << 26;
/// Most tokens per block. Attention kernels take 16 to 256, and models that mix in Mamba layers some thousands; the
/// bound leaves ample room above and still catches a count of bytes or of cached tokens given by mistake.
const MAX_BLOCK_SIZE: u64 = 1 << 16;
const NO_KV_METRICS: &str = "Stepline does not sample the lifetimes of blocks";

settings! {
    /// Longest sequence in tokens, prompt and output together.
    max_model_len: u32 = Setting::new(Model, Kind::count_from(1), Fixed("131072"));

    /// Tokens per KV cache block; common are 16 to 256, and what is far larger is no block size but a mistake.
    block_size: u32 = Setting::new(Cache, Kind::Count { min: 1, max: MAX_BLOCK_SIZE }, Fixed("16"));
    /// KV cache blocks, the null block included, instead of what the executor has.
    num_gpu_blocks_override: u32 = Setting::new(Cache, Kind::Count { min: 2, max: MAX_NUM_BLOCKS }, Unset);
    /// Share of GPU memory that the engine may use.
    gpu_memory_utilization: f64 =
        Setting::new(Cache, Kind::PositiveRate, Fixed("0.92")).without_effect(NO_GPU_MEMORY);
    /// Bytes of GPU memory for the KV cache.
    kv_cache_memory_bytes: u64 =
        Setting::new(Cache, Kind::Count { min: 1, max: i64::MAX as u64 }, Unset).without_effect(NO_GPU_MEMORY);
    /// Reuse the blocks of equal prefixes.
    enable_prefix_caching: bool = Setting::new(Cache, Kind::Boolean, Fixed("true"));
    /// Hash that names the content of blocks.
    prefix_caching_hash_algo: PrefixCachingHashAlgo =
        Setting::new(Cache, Kind::Choice(PrefixCachingHashAlgo::NAMES), Fixed("sha256"))
            .without_effect("Stepline has a hash of its own, and which one it is changes no decision");
    /// Tokens between the prefixes that sliding-window layers keep; there are no such layers, so only 0.
    prefix_cache_retention_interval: u32 = Setting::new(Cache, Kind::Count { min: 0, max: 0 }, Fixed("0"));
    /// Tokens by which prefixes match; with one kind of attention only the block size is right.
    prefix_match_unit: u32 = Setting::new(Cache, Kind::count_from(1), Unset);

    /// Token budget of a step.
    max_num_batched_tokens: u32 = Setting::new(
        Scheduler,
        Kind::count_from(1),
        Derived("2048; max_model_len if larger and chunked prefill is off; at most max_num_seqs x max_model_len"),
    );
    /// Tokens that a step may schedule.
    max_num_scheduled_tokens: u32 =
        Setting::new(Scheduler, Kind::count_from(1), Derived("max_num_batched_tokens"));
    /// Requests that a step may hold.
    max_num_seqs: u32 =
        Setting::new(Scheduler, Kind::count_from(1), Derived("256, at most max_num_batched_tokens"));
    /// Requests that may run at a time.
    max_num_active_seqs: u32 = Setting::new(Scheduler, Kind::count_from(1), Derived("max_num_seqs"));
    /// Tokens of prefill that one of several requests gets per step; 0 for no limit.
    long_prefill_token_threshold: u32 = Setting::new(Scheduler, Kind::count_from(0), Fixed("0"));
    /// Raise the long-prefill threshold to an equal share of the token budget.
    long_prefill_token_threshold_adaptive: bool = Setting::new(Scheduler, Kind::Boolean, Fixed("false"));
    /// Order of admission and preemption.
    scheduling_policy: SchedulingPolicy =
        Setting::new(Scheduler, Kind::Choice(SchedulingPolicy::NAMES), Fixed("fcfs"));
    /// Split prompts that exceed what is left of the token budget.
    enable_chunked_prefill: bool = Setting::new(Scheduler, Kind::Boolean, Fixed("true"));
    /// Admit a request only if its whole sequence fits into the free blocks.
    scheduler_reserve_full_isl: bool = Setting::new(Scheduler, Kind::Boolean, Fixed("true"));
    /// Share of blocks that admission leaves free.
    watermark: f64 = Setting::new(Scheduler, Kind::Watermark, Fixed("0"));

    /// Limit the LoRA adapters of a step.
    enable_lora: bool = Setting::new(Lora, Kind::Boolean, Fixed("false"));
    /// LoRA adapters per step.
    max_loras: u32 = Setting::new(Lora, Kind::count_from(1), Derived("1 with enable_lora"));

    /// Collector that receives traces, as a URL.
    otlp_traces_endpoint: String = Setting::new(Observability, Kind::Text, Unset);
    /// Trace the way of requests through the engine.
    enable_journey_tracing: bool = Setting::new(Observability, Kind::Boolean, Fixed("false"));
    /// Share of requests whose journey is traced.
    journey_tracing_sample_rate: f64 = Setting::new(Observability, Kind::Rate, Fixed("1"));
    /// Trace the scheduler's steps.
    step_tracing_enabled: bool = Setting::new(Observability, Kind::Boolean, Fixed("false"));
    /// Share of steps that get a batch summary.
    step_tracing_sample_rate: f64 = Setting::new(Observability, Kind::Rate, Fixed("0.01"));
    /// Share of summarised steps that also get a snapshot of every running request.
    step_tracing_rich_subsample_rate: f64 = Setting::new(Observability, Kind::Rate, Fixed("0.001"));
    /// Steps after which a step span is closed.
    step_tracing_closure_interval: u32 =
        Setting::new(Observability, Kind::Count { min: 10, max: 10_000 }, Fixed("100"));
    /// Modules whose GPU work is traced; needs `otlp_traces_endpoint`.
    collect_detailed_traces: DetailedTraces =
        Setting::new(Observability, Kind::Choices(TracedModule::NAMES), Unset).without_effect(NO_GPU);
    /// Measure how long blocks live and idle.
    kv_cache_metrics: bool = Setting::new(Observability, Kind::Boolean, Fixed("false")).without_effect(NO_KV_METRICS);
    /// Share of blocks that are measured.
    kv_cache_metrics_sample: f64 =
        Setting::new(Observability, Kind::PositiveRate, Fixed("0.01")).without_effect(NO_KV_METRICS);
    /// Measure the use of the GPU's arithmetic.
    enable_mfu_metrics: bool = Setting::new(Observability, Kind::Boolean, Fixed("false")).without_effect(NO_GPU);
    /// Log the details of each step.
    enable_logging_iteration_details: bool = Setting::new(Observability, Kind::Boolean, Fixed("false"))
        .without_effect("Stepline logs no steps; trace them with step_tracing_enabled");
    /// Measure CUDA graphs.
    cudagraph_metrics: bool = Setting::new(Observability, Kind::Boolean, Fixed("false")).without_effect(NO_GPU);
    /// Show metrics that were hidden since this version.
    show_hidden_metrics_for_version: String =
        Setting::new(Observability, Kind::Text, Unset).without_effect("Stepline hides no metrics");
    /// Mark layers for NVIDIA's profiler.
    enable_layerwise_nvtx_tracing: bool =
        Setting::new(Observability, Kind::Boolean, Fixed("false")).without_effect(NO_GPU);
    /// Measure the multimodal processor.
    enable_mm_processor_stats: bool = Setting::new(Observability, Kind::Boolean, Fixed("false"))
        .without_effect("Stepline takes tokens and processes no images")
        .without_flag();
}
