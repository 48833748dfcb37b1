//! Rules between settings, by the examples of the spec.

use stepline_config::{EngineArgs, LoraConfig, Rate};

#[track_caller]
fn rejected(args: EngineArgs, expected: &str) {
    let error = args.resolve().expect_err("breaks a rule").to_string();
    assert!(error.contains(expected), "{error}");
    assert!(error.starts_with("invalid configuration: "), "one fault only: {error}");
}

/// spec: config 6.1.
#[test]
fn more_sequences_than_tokens_in_a_step_are_rejected() {
    let args = EngineArgs { max_num_seqs: Some(64), max_num_batched_tokens: Some(32), ..EngineArgs::default() };
    rejected(args, "max_num_seqs = 64: must be at most max_num_batched_tokens = 32");
}

/// spec: config 6.2.
#[test]
fn a_watermark_of_one_is_rejected() {
    rejected(
        EngineArgs { watermark: Some(1.0), ..EngineArgs::default() },
        "watermark = 1: must be a number from 0 to below 1",
    );
    let config = EngineArgs { watermark: Some(0.05), ..EngineArgs::default() }.resolve().expect("valid");
    assert!((config.scheduler.watermark.get() - 0.05).abs() < f64::EPSILON);
}

/// spec: config 6.3.
#[test]
fn a_retention_interval_is_rejected_without_layers_that_need_one() {
    let args = |interval| EngineArgs { prefix_cache_retention_interval: Some(interval), ..EngineArgs::default() };
    rejected(args(64), "prefix_cache_retention_interval = 64: must be 0");
    assert!(args(0).resolve().is_ok());
}

/// spec: config 6.4.
#[test]
fn without_chunked_prefill_a_step_must_hold_the_longest_prompt() {
    let args = EngineArgs { enable_chunked_prefill: Some(false), max_model_len: Some(4096), ..EngineArgs::default() };
    let config = args.clone().resolve().expect("the default is raised");
    assert_eq!(config.scheduler.max_num_batched_tokens, 4096);
    let explicit = EngineArgs { max_num_batched_tokens: Some(2048), ..args };
    rejected(explicit, "max_num_batched_tokens = 2048: must be at least max_model_len = 4096");
}

/// spec: config 6.5.
#[test]
fn a_long_prefill_threshold_above_the_longest_sequence_is_rejected() {
    let args =
        EngineArgs { max_model_len: Some(1024), long_prefill_token_threshold: Some(2048), ..EngineArgs::default() };
    rejected(args, "long_prefill_token_threshold = 2048: must be at most max_model_len = 1024");
}

#[test]
fn more_active_than_admitted_sequences_are_rejected() {
    let args = EngineArgs { max_num_seqs: Some(8), max_num_active_seqs: Some(9), ..EngineArgs::default() };
    rejected(args, "max_num_active_seqs = 9: must be at most max_num_seqs = 8");
}

#[test]
fn prefixes_match_by_blocks_only() {
    let args = |unit| EngineArgs { block_size: Some(32), prefix_match_unit: Some(unit), ..EngineArgs::default() };
    rejected(args(16), "prefix_match_unit = 16: must equal block_size = 32");
    assert!(args(32).resolve().is_ok());
}

#[test]
fn detailed_traces_need_an_endpoint() {
    let args = EngineArgs { collect_detailed_traces: "all".parse().ok(), ..EngineArgs::default() };
    rejected(args.clone(), "collect_detailed_traces = all: needs otlp_traces_endpoint");
    assert!(EngineArgs { otlp_traces_endpoint: Some("http://[::1]:4317".into()), ..args }.resolve().is_ok());
}

#[test]
fn zero_is_rejected_where_nothing_would_run() {
    let zero = Some(0);
    rejected(
        EngineArgs { max_model_len: zero, ..EngineArgs::default() },
        "max_model_len = 0: must be a whole number, 1 or more",
    );
    rejected(EngineArgs { block_size: zero, ..EngineArgs::default() }, "block_size = 0");
    rejected(EngineArgs { max_num_batched_tokens: zero, max_num_seqs: Some(1), ..EngineArgs::default() }, "1 or more");
    rejected(EngineArgs { max_num_scheduled_tokens: zero, ..EngineArgs::default() }, "max_num_scheduled_tokens = 0");
    rejected(EngineArgs { max_num_active_seqs: zero, ..EngineArgs::default() }, "max_num_active_seqs = 0");
    rejected(EngineArgs { max_loras: zero, enable_lora: Some(true), ..EngineArgs::default() }, "max_loras = 0");
    let only_the_null_block = EngineArgs { num_gpu_blocks_override: Some(1), ..EngineArgs::default() };
    rejected(only_the_null_block, "num_gpu_blocks_override = 1: must be a whole number from 2");
}

#[test]
fn a_block_holds_1_to_65536_tokens() {
    let args = |block_size| EngineArgs { block_size: Some(block_size), ..EngineArgs::default() };
    for block_size in [1, 16, 528, 65_536] {
        assert_eq!(args(block_size).resolve().expect("valid").cache.block_size, block_size);
    }
    for block_size in [0, 65_537, 131_072, u32::MAX] {
        let expected = format!("block_size = {block_size}: must be a whole number from 1 to 65536");
        rejected(args(block_size), &expected);
    }
}

/// spec: config 2.
#[test]
fn settings_of_gpu_memory_are_checked_and_kept() {
    for utilization in [0.0, 1.5, -0.1, f64::NAN] {
        let args = EngineArgs { gpu_memory_utilization: Some(utilization), ..EngineArgs::default() };
        rejected(args, "gpu_memory_utilization");
    }
    let bytes = 24_000_000_000;
    let args =
        EngineArgs { gpu_memory_utilization: Some(0.5), kv_cache_memory_bytes: Some(bytes), ..EngineArgs::default() };
    let config = args.resolve().expect("valid");
    assert_eq!(config.cache.kv_cache_memory_bytes, Some(bytes));
    let fields: Vec<_> = config.notices().iter().map(|notice| notice.field).collect();
    assert_eq!(fields, ["gpu_memory_utilization", "kv_cache_memory_bytes"]);
}

#[test]
fn the_closure_interval_is_10_to_10000() {
    let args = |interval| EngineArgs { step_tracing_closure_interval: Some(interval), ..EngineArgs::default() };
    for interval in [10, 100, 10_000] {
        assert!(args(interval).resolve().is_ok(), "{interval}");
    }
    for interval in [0, 9, 10_001] {
        rejected(args(interval), "step_tracing_closure_interval");
    }
}

#[test]
fn the_token_budget_is_capped_at_what_a_step_can_use() {
    let args = EngineArgs { max_num_seqs: Some(4), max_model_len: Some(100), ..EngineArgs::default() };
    assert_eq!(args.resolve().expect("valid").scheduler.max_num_batched_tokens, 400);
}

#[test]
fn a_defaulted_sequence_limit_is_lowered_to_the_token_budget() {
    let args = EngineArgs { max_num_batched_tokens: Some(32), ..EngineArgs::default() };
    let scheduler = args.resolve().expect("valid").scheduler;
    assert_eq!((scheduler.max_num_seqs, scheduler.max_num_active_seqs), (32, 32));
    assert_eq!(scheduler.max_num_scheduled_tokens, 32);
}

#[test]
fn lora_is_limited_only_if_enabled() {
    let args = |enable_lora| EngineArgs { enable_lora, max_loras: Some(3), ..EngineArgs::default() };
    assert_eq!(args(Some(true)).resolve().expect("valid").lora, Some(LoraConfig { max_loras: 3 }));
    assert_eq!(args(None).resolve().expect("valid").lora, None);
    let default = EngineArgs { enable_lora: Some(true), ..EngineArgs::default() };
    assert_eq!(default.resolve().expect("valid").lora, Some(LoraConfig { max_loras: 1 }));
}

#[test]
fn a_configuration_changed_by_code_is_checked_again() {
    let mut config = EngineArgs::default().resolve().expect("valid");
    assert_eq!(config.validate(), Ok(()));
    config.scheduler.max_num_active_seqs = config.scheduler.max_num_seqs + 1;
    config.observability.step_tracing_closure_interval = 5;
    config.observability.kv_cache_metrics_sample = Rate::ZERO;
    assert_eq!(config.validate().expect_err("three faults").faults().len(), 3);
}
