//! `stepline replay`.

mod args;
mod progress;
mod results;
mod table;
mod telemetry;

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;

use stepline_config::EngineConfig;
use stepline_engine::{Replay, ReplayError, ReplayOptions, ReplayReport, SimulatedExecutor};
use stepline_workload::{EMBEDDED_SAMPLE, WorkloadReader};

use crate::configuration;
use crate::failure::{Failure, say};
use crate::output_file::OutputFile;
pub(crate) use args::ReplayArgs;
use progress::ReplayProgress;
use results::{ExecutorRecord, Results, WorkloadRecord};
use telemetry::ReplayTrace;

/// Replays a workload and shows what came of it.
pub(crate) fn run(args: ReplayArgs) -> Result<(), Failure> {
    let ReplayArgs { workload, max_requests, seed, json, trace_out, executor, engine } = args;
    let loaded = configuration::load(engine)?;
    refuse_one_file_for_two(&[("WORKLOAD", &workload), ("--json", &json), ("--trace-out", &trace_out)])?;
    let json = json.map(|path| prepare_json(&path)).transpose()?;

    let preset = executor.preset();
    let step_time = executor.step_time();
    let num_gpu_blocks = preset.num_gpu_blocks_of(loaded.config.cache.block_size);
    let simulated = SimulatedExecutor::new(step_time, num_gpu_blocks, seed)
        .map_err(|e| Failure::usage(format_args!("--step-{}: {e}", e.name.replace('_', "-"))))?;
    warn_of_small_cache(&loaded.config, num_gpu_blocks);

    let (workload, total) = open_workload(workload.as_deref(), max_requests)?;
    let workload_record = WorkloadRecord::new(&workload);
    let mut trace = ReplayTrace::new(&loaded.config, trace_out, seed)?;
    let options = ReplayOptions { seed, max_requests };
    let mut replay =
        Replay::new(&loaded.config, simulated, workload, trace.take_tracer(), options).map_err(Failure::usage)?;

    let progress = ReplayProgress::new(total);
    let start = Instant::now();
    let outcome = replay.run(|state| progress.update(state));
    let real = start.elapsed();
    progress.finish();
    let trace_record = replay.trace_mut().map(telemetry::TraceRecord::new);
    let report = match outcome {
        Ok(report) => report,
        Err(error) => {
            // The broken replay is the news; a broken trace of it is a note beside it.
            let _ = trace.finish(replay.trace_mut());
            return Err(failure_of(error));
        }
    };

    warn_of_rejections(&report);
    let table = table::render(&report, real);
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
    write_results(&results, json.as_ref(), &table)?;
    trace.finish(replay.trace_mut())?;
    refuse_if_nothing_ran(&results.report)
}

/// Opens the workload, after a look through it if it is a file: a fault in its last row is found before the replay, and
/// the progress bar knows how many requests there are.
fn open_workload(path: Option<&Path>, max_requests: Option<u64>) -> Result<(WorkloadReader, Option<u64>), Failure> {
    let Some(path) = path else {
        let sample = EMBEDDED_SAMPLE;
        say(
            "note",
            &format!(
                "no WORKLOAD given, replaying the embedded sample\n  {}\n  {}; {}",
                sample.name, sample.origin, sample.licence
            ),
        );
        let total = count(sample.reader()?, max_requests)?;
        return Ok((sample.reader()?, Some(total)));
    };
    if path == Path::new("-") {
        return Ok((WorkloadReader::from_reader("standard input", io::stdin())?, None));
    }
    if !fs::metadata(path).is_ok_and(|metadata| metadata.is_file()) {
        return Ok((WorkloadReader::open(path)?, None)); // a pipe can be read only once; all else fails here
    }
    let total = count(WorkloadReader::open(path)?, max_requests)?;
    Ok((WorkloadReader::open(path)?, Some(total)))
}

fn count(workload: WorkloadReader, max_requests: Option<u64>) -> Result<u64, Failure> {
    let mut total = 0;
    for request in workload {
        request?;
        total += 1;
        if Some(total) == max_requests {
            break;
        }
    }
    Ok(total)
}

/// A file cannot be read and replaced in one go, nor take two outputs.
fn refuse_one_file_for_two(files: &[(&str, &Option<PathBuf>)]) -> Result<(), Failure> {
    let resolved: Vec<(&str, PathBuf)> = files
        .iter()
        .filter_map(|(name, path)| Some((*name, path.as_ref()?)))
        .filter(|(_, path)| path.as_path() != Path::new("-"))
        .filter_map(|(name, path)| {
            Some((name, fs::canonicalize(path).ok().or_else(|| std::path::absolute(path).ok())?))
        })
        .filter(|(_, path)| !fs::metadata(path).is_ok_and(|metadata| !metadata.is_file()))
        .collect();
    for (i, (name, path)) in resolved.iter().enumerate() {
        if let Some((other, _)) = resolved[..i].iter().find(|(_, earlier)| earlier == path) {
            return Err(Failure::usage(format_args!(
                "{name}: `{}` is given for {other} too\n  expected: a file of its own\n  remedy: give another path",
                path.display()
            )));
        }
    }
    Ok(())
}

fn prepare_json(path: &Path) -> Result<OutputFile, Failure> {
    OutputFile::prepare(path).map_err(|e| {
        Failure::usage(format_args!(
            "--json: `{}` cannot be written: {e}\n  expected: a file in a directory that exists and can be written\n  \
             remedy: give another path, or `-` for standard output",
            path.display()
        ))
    })
}

fn failure_of(error: ReplayError) -> Failure {
    match error {
        ReplayError::Workload(error) => error.into(),
        ReplayError::Engine(_) | ReplayError::NoProgress { .. } => Failure::runtime(error),
    }
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
        say("warning", &format!("rejected: {}{others}", rejection.first));
    }
}

/// Some rejected requests are a finding; a replay of nothing is a mistake in the workload or the configuration.
fn refuse_if_nothing_ran(report: &ReplayReport) -> Result<(), Failure> {
    if report.requests.finished > 0 {
        return Ok(());
    }
    Err(Failure::runtime(format_args!(
        "none of the {} requests could run, see the warnings\n  expected: requests that fit max_model_len and the KV \
         cache\n  remedy: raise max_model_len or num_gpu_blocks_override, or choose another --executor-preset",
        report.requests.total
    )))
}

/// The table to standard output, unless the results go there.
fn write_results(results: &Results<'_>, json: Option<&OutputFile>, table: &str) -> Result<(), Failure> {
    let print = |out: &mut dyn Write| out.write_all(table.as_bytes()).and_then(|()| out.flush());
    if json == Some(&OutputFile::Stdout) {
        let _ = print(&mut io::stderr().lock());
    } else {
        print(&mut io::stdout().lock()).map_err(|e| Failure::stdout(&e))?;
    }
    let Some(file) = json else { return Ok(()) };
    file.write(&results.to_json()).map_err(|e| match file {
        OutputFile::Stdout => Failure::stdout(&e),
        OutputFile::Direct(path) | OutputFile::Replaced(path) => {
            Failure::runtime(format_args!("--json: `{}` cannot be written: {e}", path.display()))
        }
    })
}
