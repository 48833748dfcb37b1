//! `stepline replay`.

mod args;
mod distinct_files;
mod outputs;
mod progress;
mod results;
mod table;
mod telemetry;
mod workload;

use std::time::Instant;

use stepline_config::EngineConfig;
use stepline_engine::{ExecutorPreset, Replay, ReplayError, ReplayOptions, ReplayReport, SimulatedExecutor};

use crate::configuration;
use crate::failure::{Failure, escaped, say};
use crate::interrupt::Interrupt;
pub(crate) use args::ReplayArgs;
use distinct_files::{NamedFile, Stream, refuse_one_file_for_two};
use progress::ReplayProgress;
use results::{ExecutorRecord, Results, WorkloadRecord};
use telemetry::ReplayTrace;

/// Replays a workload and shows what came of it.
///
/// All that can be wrong with what the user gave is found before the first file is created.
pub(crate) fn run(args: ReplayArgs) -> Result<(), Failure> {
    refuse_one_file_for_two(&named_files(&args))?;
    let ReplayArgs { workload, max_requests, seed, json, trace_out, max_request_memory_gib, executor, engine } = args;
    let loaded = configuration::load(engine)?;
    telemetry::check_trace_out(&loaded.config, trace_out.as_deref())?;
    let json = json.map(|path| outputs::prepare_json(&path)).transpose()?;

    let preset = executor.preset();
    let step_time = executor.step_time();
    let num_gpu_blocks = num_gpu_blocks(&loaded.config, preset)?;
    let simulated = SimulatedExecutor::new(step_time, num_gpu_blocks, seed)
        .map_err(|e| Failure::usage(format_args!("--step-{}: {e}", e.name.replace('_', "-"))))?;
    warn_of_small_cache(&loaded.config, num_gpu_blocks);

    let (workload, total) = workload::open(workload.as_deref(), max_requests)?;
    let workload_record = WorkloadRecord::new(&workload);
    let max_request_memory_bytes = u64::from(max_request_memory_gib) << 30;
    let options = ReplayOptions { seed, max_requests, max_request_memory_bytes };
    let mut replay = Replay::new(&loaded.config, simulated, workload, None, options).map_err(Failure::usage)?;
    let interrupt = Interrupt::catch().map_err(|e| Failure::runtime(format_args!("signals cannot be caught: {e}")))?;
    let mut trace = ReplayTrace::new(&loaded.config, trace_out, seed)?;
    if let Some(tracer) = trace.take_tracer() {
        replay.set_trace(tracer);
    }

    let progress = ReplayProgress::new(total);
    let start = Instant::now();
    let outcome = replay.run_until(|| interrupt.signal().is_some(), |state| progress.update(state));
    let real = start.elapsed();
    progress.finish();
    let trace_record = replay.trace_mut().map(telemetry::TraceRecord::new);
    let report = match outcome {
        Ok(report) => report,
        Err(error) => return Failure::all([Err(failure_of(error)), trace.finish(replay.trace_mut())]),
    };

    warn_of_rejections(&report);
    let is_changed = step_time != preset.step_time;
    let machine = format!("{}{}", preset.name, if is_changed { ", changed by flags" } else { "" });
    let table = table::render(&report, &machine, real);
    let results = Results {
        stepline: env!("CARGO_PKG_VERSION"),
        workload: workload_record,
        seed,
        max_requests,
        executor: ExecutorRecord::new(preset, step_time),
        config: loaded.to_json(),
        report,
        trace: trace_record,
    };
    let written = outputs::write(&results, json.as_ref(), &table);
    let traced = trace.finish(replay.trace_mut());
    Failure::all([written, traced, refuse_if_not_done(&results.report, &interrupt)])
}

/// Inputs first, so that a message names the output that is wrong.
fn named_files(args: &ReplayArgs) -> Vec<NamedFile<'_>> {
    let files = [
        ("WORKLOAD", args.workload.as_deref(), Stream::Stdin),
        ("--config", args.engine.config.as_deref(), Stream::Stdin),
        ("--json", args.json.as_deref(), Stream::Stdout),
        ("--trace-out", args.trace_out.as_deref(), Stream::Stdout),
    ];
    files.into_iter().filter_map(|(name, path, stream)| Some(NamedFile { name, path: path?, stream })).collect()
}

fn failure_of(error: ReplayError) -> Failure {
    match error {
        ReplayError::Workload(error) => error.into(),
        // One line, in which an id of the workload may have brought anything.
        ReplayError::Engine(_) | ReplayError::OutOfMemory(_) | ReplayError::NoProgress { .. } => {
            Failure::runtime(escaped(&error.to_string()))
        }
    }
}

/// The blocks that fit the preset's memory, if nothing else is said.
fn num_gpu_blocks(config: &EngineConfig, preset: &ExecutorPreset) -> Result<u32, Failure> {
    let block_size = config.cache.block_size;
    let num_gpu_blocks = preset.num_gpu_blocks_of(block_size);
    if num_gpu_blocks > 0 || config.cache.num_gpu_blocks.is_some() {
        return Ok(num_gpu_blocks);
    }
    let num_tokens = u64::from(preset.num_gpu_blocks) * u64::from(ExecutorPreset::BLOCK_SIZE);
    Err(Failure::usage(format_args!(
        "block_size: no block of {block_size} tokens fits the {num_tokens} tokens of the KV cache of --executor-preset \
         {}\n  expected: room for 1 block or more\n  remedy: lower block_size, or set num_gpu_blocks_override",
        preset.name
    )))
}

/// vLLM would not start, for fear of requests that never fit; a replay rejects those that do not.
fn warn_of_small_cache(config: &EngineConfig, num_gpu_blocks: u32) {
    let num_blocks = config.cache.num_gpu_blocks.unwrap_or(num_gpu_blocks).saturating_sub(1);
    let num_tokens = u64::from(num_blocks) * u64::from(config.cache.block_size);
    let max_model_len = config.model.max_model_len;
    if num_tokens < u64::from(max_model_len) {
        say(
            "warning",
            &format!(
                "the KV cache holds {num_tokens} tokens, fewer than max_model_len {max_model_len}: vLLM would refuse to \
                 start; requests that do not fit will be rejected"
            ),
        );
    }
}

fn warn_of_rejections(report: &ReplayReport) {
    for rejection in &report.rejections {
        let others = match rejection.count {
            1 => String::new(),
            count => format!("\n  and {} more requests for the same reason", count - 1),
        };
        say("warning", &format!("rejected: {}{others}", escaped(&rejection.first)));
    }
}

/// Some rejected requests are a finding; a replay of nothing is a mistake in the workload or the configuration.
fn refuse_if_not_done(report: &ReplayReport, interrupt: &Interrupt) -> Result<(), Failure> {
    if report.interrupted {
        return interrupt.signal().map_or(Ok(()), |signal| Err(Failure::interrupted(signal)));
    }
    if report.requests.finished > 0 {
        return Ok(());
    }
    Err(Failure::runtime(format_args!(
        "none of the {} requests could run, see the warnings\n  expected: requests that fit max_model_len and the KV \
         cache\n  remedy: raise max_model_len or num_gpu_blocks_override, or choose another --executor-preset",
        report.requests.total
    )))
}
