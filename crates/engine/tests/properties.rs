//! What holds of every replay.

use proptest::prelude::*;
use stepline_config::{EngineArgs, EngineConfig, Rate, SchedulingPolicy};
use stepline_engine::{Replay, ReplayOptions, ReplayReport, SimulatedExecutor, StepTimeModel};
use stepline_scheduler::trace::{StepTracer, StepTracing};
use stepline_tracing_schema::MemorySink;
use stepline_workload::{PromptSpec, RequestSpec, WorkloadError};

const MAX_MODEL_LEN: u32 = 48;
const BLOCK_SIZE: u32 = 4;

const STEP_TIME: StepTimeModel = StepTimeModel {
    base_us: 900.0,
    prefill_token_us: 30.0,
    decode_token_us: 20.0,
    kv_token_us: 0.5,
    attention_pair_us: 0.1,
};

prop_compose! {
    fn request()(
        gap_ns in prop_oneof![Just(0), 0_u64..5_000_000, Just(1_000_000_000)],
        len in 1_u32..60,
        blocks in prop::option::of(prop::collection::vec(0_u64..4, 1..4)),
        output_len in 1_u32..60,
        priority in -1_i32..2,
    ) -> (u64, RequestSpec) {
        let prompt = match blocks {
            None => PromptSpec::Length(len),
            Some(ids) => PromptSpec::HashedBlocks { len, block_size: 8, ids: ids.into_iter().take(len.div_ceil(8) as usize).collect() },
        };
        let id = "".into();
        (gap_ns, RequestSpec { ordinal: 0, id, arrival_ns: 0, prompt, output_len, priority, lora: None, cache_salt: None })
    }
}

prop_compose! {
    fn workload()(requests in prop::collection::vec(request(), 0..40)) -> Vec<RequestSpec> {
        let mut arrival_ns = 0;
        let place = |(ordinal, (gap_ns, spec)): (u64, (u64, RequestSpec))| {
            arrival_ns += gap_ns;
            RequestSpec { ordinal, id: format!("r{ordinal}").into(), arrival_ns, ..spec }
        };
        (0..).zip(requests).map(place).collect()
    }
}

prop_compose! {
    fn config()(
        max_num_seqs in 1_u32..8,
        max_num_batched_tokens in 8_u32..64,
        is_fcfs in any::<bool>(),
        enable_prefix_caching in any::<bool>(),
        scheduler_reserve_full_isl in any::<bool>(),
        long_prefill_token_threshold in prop_oneof![Just(0), 1_u32..16],
    ) -> EngineConfig {
        let args = EngineArgs { max_model_len: Some(MAX_MODEL_LEN), block_size: Some(BLOCK_SIZE), ..EngineArgs::default() };
        let mut config = args.resolve().expect("a valid configuration");
        config.scheduler.max_num_seqs = max_num_seqs;
        config.scheduler.max_num_active_seqs = max_num_seqs;
        config.scheduler.max_num_batched_tokens = max_num_batched_tokens;
        config.scheduler.max_num_scheduled_tokens = max_num_batched_tokens;
        config.scheduler.policy = if is_fcfs { SchedulingPolicy::Fcfs } else { SchedulingPolicy::Priority };
        config.scheduler.scheduler_reserve_full_isl = scheduler_reserve_full_isl;
        config.scheduler.long_prefill_token_threshold = long_prefill_token_threshold;
        config.cache.enable_prefix_caching = enable_prefix_caching;
        config
    }
}

/// Runs a replay that must end, which it does without an error if every request that was taken in can run.
fn replay(
    config: &EngineConfig,
    num_usable_blocks: u32,
    workload: &[RequestSpec],
    trace: Option<StepTracer>,
) -> ReplayReport {
    let executor = SimulatedExecutor::new(STEP_TIME, num_usable_blocks + 1, 5).expect("valid times");
    let requests: Vec<Result<RequestSpec, WorkloadError>> = workload.iter().cloned().map(Ok).collect();
    let options = ReplayOptions { seed: 5, ..ReplayOptions::default() };
    let mut replay = Replay::new(config, executor, requests, trace, options).expect("a replay");
    replay.run(|_| {}).unwrap_or_else(|e| panic!("{e}"))
}

/// Whether a request can run, and how much it then generates.
fn expected_output(spec: &RequestSpec, num_usable_blocks: u32) -> Option<u32> {
    let num_prompt_tokens = spec.prompt.num_tokens();
    let num_tokens = (num_prompt_tokens + spec.output_len).min(MAX_MODEL_LEN);
    let fits = num_prompt_tokens < MAX_MODEL_LEN && (num_tokens - 1).div_ceil(BLOCK_SIZE) <= num_usable_blocks;
    fits.then(|| num_tokens - num_prompt_tokens)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn every_request_ends_with_the_output_that_it_should_have(
        config in config(),
        workload in workload(),
        num_usable_blocks in 3_u32..24,
    ) {
        let report = replay(&config, num_usable_blocks, &workload, None);
        let expected: Vec<_> = workload.iter().filter_map(|spec| expected_output(spec, num_usable_blocks)).collect();
        prop_assert_eq!(report.requests.total, workload.len() as u64);
        prop_assert_eq!(report.requests.finished, expected.len() as u64);
        prop_assert_eq!(report.requests.rejected, (workload.len() - expected.len()) as u64);
        prop_assert_eq!(report.tokens.output, expected.iter().map(|len| u64::from(*len)).sum::<u64>());
        // One record per token: a first one per request, an inter-token latency for every other.
        prop_assert_eq!(report.ttft_ms.count, report.requests.finished);
        prop_assert_eq!(report.itl_ms.count, report.tokens.output - report.requests.finished);
        prop_assert!(report.kv_cache.peak_usage <= 1.0);
        prop_assert!(report.e2e_ms.max >= report.ttft_ms.max);
        prop_assert!(report.ttft_ms.max >= report.queue_ms.max);
    }

    #[test]
    fn tracing_everything_changes_nothing(config in config(), workload in workload()) {
        let untraced = replay(&config, 12, &workload, None);
        let mut config = config;
        let observability = &mut config.observability;
        observability.step_tracing_enabled = true;
        observability.step_tracing_sample_rate = Rate::ONE;
        observability.step_tracing_rich_subsample_rate = Rate::ONE;
        observability.enable_journey_tracing = true;
        let tracer = StepTracer::new(StepTracing::from_config(observability, 5), true, Box::new(MemorySink::default()));
        prop_assert_eq!(replay(&config, 12, &workload, Some(tracer)), untraced);
    }
}
