//! The flags of `stepline replay`.

use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use stepline_config::cli::EngineFlags;
use stepline_engine::{EXECUTOR_PRESETS, ExecutorPreset, StepTimeModel};

/// Replays a workload through the scheduler, without a GPU.
///
/// The workload is a request trace: Azure CSV, Mooncake JSON lines or Stepline JSON lines, plain or gzipped. Steps take
/// as long as the executor's model says; time is virtual, and the same seed gives the same results.
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ReplayArgs {
    /// The request trace; `-` for standard input, nothing for the embedded sample.
    pub(crate) workload: Option<PathBuf>,

    /// Stop reading the workload after so many requests.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..), help_heading = "Replay")]
    pub(crate) max_requests: Option<u64>,

    /// Seed of prompts, outputs and sampling.
    #[arg(long, value_name = "N", default_value_t = 0, help_heading = "Replay")]
    pub(crate) seed: u64,

    /// Write the results as JSON; `-` for standard output.
    #[arg(long, value_name = "FILE", help_heading = "Replay")]
    pub(crate) json: Option<PathBuf>,

    /// Write the trace as JSON lines. What is traced is set under "Observability".
    #[arg(long, value_name = "FILE", help_heading = "Replay")]
    pub(crate) trace_out: Option<PathBuf>,

    /// Stop when the prompts of all requests that run or wait need more memory.
    #[arg(
        long,
        value_name = "GIB",
        default_value_t = 8,
        value_parser = clap::value_parser!(u32).range(1..),
        help_heading = "Replay"
    )]
    pub(crate) max_request_memory_gib: u32,

    #[command(flatten)]
    pub(crate) executor: ExecutorFlags,

    #[command(flatten)]
    pub(crate) engine: EngineFlags,
}

const EXAMPLES: &str = "\
Examples:
  stepline replay
      The embedded sample, with the defaults.
  stepline replay trace.csv.gz --max-num-seqs 64 --json results.json
      A trace of your own with fewer seats, results also as JSON.
  stepline replay trace.jsonl --step-tracing-enabled --step-tracing-sample-rate 1 --trace-out steps.jsonl
      A summary of every step as JSON lines.
  stepline replay trace.jsonl --executor-preset rtx4090-llama-3.1-8b --num-gpu-blocks-override 1200
      A smaller card with a smaller KV cache.";

/// The executor's model.
#[derive(clap::Args, Debug)]
#[command(next_help_heading = "Executor")]
pub(crate) struct ExecutorFlags {
    /// Machine and model whose step times and KV cache size are used.
    #[arg(long, value_name = "NAME", value_parser = preset_names(), default_value = EXECUTOR_PRESETS[0].name)]
    executor_preset: String,

    /// Time of a step that computes anything, in microseconds, instead of the preset's.
    #[arg(long, value_name = "US", allow_negative_numbers = true)]
    step_base_us: Option<f64>,

    /// Time per token of a prefill chunk, in microseconds, instead of the preset's.
    #[arg(long, value_name = "US", allow_negative_numbers = true)]
    step_prefill_token_us: Option<f64>,

    /// Time per decoded token, in microseconds, instead of the preset's.
    #[arg(long, value_name = "US", allow_negative_numbers = true)]
    step_decode_token_us: Option<f64>,

    /// Time per token of context that attention reads, in microseconds, instead of the preset's.
    #[arg(long, value_name = "US", allow_negative_numbers = true)]
    step_kv_token_us: Option<f64>,

    /// Time per pair of a prefill token and a token that it attends to, in microseconds, instead of the preset's.
    #[arg(long, value_name = "US", allow_negative_numbers = true)]
    step_attention_pair_us: Option<f64>,
}

fn preset_names() -> PossibleValuesParser {
    PossibleValuesParser::new(EXECUTOR_PRESETS.iter().map(|preset| preset.name))
}

impl ExecutorFlags {
    /// The chosen preset.
    pub(crate) fn preset(&self) -> &'static ExecutorPreset {
        ExecutorPreset::find(&self.executor_preset).expect("clap admits names of presets only")
    }

    /// The preset's times, with those replaced that a flag gives.
    pub(crate) fn step_time(&self) -> StepTimeModel {
        let preset = self.preset().step_time;
        StepTimeModel {
            base_us: self.step_base_us.unwrap_or(preset.base_us),
            prefill_token_us: self.step_prefill_token_us.unwrap_or(preset.prefill_token_us),
            decode_token_us: self.step_decode_token_us.unwrap_or(preset.decode_token_us),
            kv_token_us: self.step_kv_token_us.unwrap_or(preset.kv_token_us),
            attention_pair_us: self.step_attention_pair_us.unwrap_or(preset.attention_pair_us),
        }
    }
}
