//! `cargo xtask golden`: recordings of the real schedulers, replayed and compared.

mod compare;
mod decisions;
mod format;
mod report;
mod support;
mod tracing;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result};

use crate::schema::workspace_root;
use compare::Divergence;
use format::Recording;

/// What came of one file.
enum Outcome {
    Exact,
    Different(Box<Divergence>),
    NotSupported(String),
    Unreadable(anyhow::Error),
}

struct FileResult {
    path: PathBuf,
    kind: String,
    num_steps: usize,
    outcome: Outcome,
}

/// Replays all recordings below `dir`, by default those of the repository, and prints the table.
pub(crate) fn run(dir: Option<PathBuf>, verbose: bool) -> Result<ExitCode> {
    let dir = dir.map_or_else(|| workspace_root().map(|root| root.join("golden")), Ok)?;
    let paths = recordings_below(&dir)?;
    anyhow::ensure!(
        !paths.is_empty(),
        "{}: no *.jsonl or *.jsonl.gz file here; expected a folder of recordings as golden/README.md describes",
        dir.display()
    );
    let results: Vec<FileResult> = paths.into_iter().map(replay_file).collect();
    report::print(&results, verbose);
    let has = |matches: fn(&Outcome) -> bool| results.iter().any(|result| matches(&result.outcome));
    Ok(if has(|outcome| matches!(outcome, Outcome::Unreadable(_))) {
        ExitCode::from(2)
    } else if has(|outcome| matches!(outcome, Outcome::Different(_))) {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    })
}

fn recordings_below(dir: &Path) -> Result<Vec<PathBuf>> {
    let mut paths = Vec::new();
    let entries = std::fs::read_dir(dir).with_context(|| format!("{}: cannot list the folder", dir.display()))?;
    for entry in entries {
        let path = entry.with_context(|| format!("{}: cannot list the folder", dir.display()))?.path();
        if path.is_dir() {
            paths.extend(recordings_below(&path)?);
        } else if is_recording(&path) {
            paths.push(path);
        }
    }
    paths.sort();
    Ok(paths)
}

fn is_recording(path: &Path) -> bool {
    let is_gzip = path.extension().is_some_and(|extension| extension == "gz");
    let path = if is_gzip { path.with_extension("") } else { path.to_owned() };
    path.extension().is_some_and(|extension| extension == "jsonl")
}

fn replay_file(path: PathBuf) -> FileResult {
    match Recording::read(&path) {
        Err(error) => FileResult { path, kind: "unreadable".into(), num_steps: 0, outcome: Outcome::Unreadable(error) },
        Ok(recording) => {
            let outcome = replay(&recording).unwrap_or_else(Outcome::Unreadable);
            FileResult { path, kind: recording.kind().into(), num_steps: recording.num_steps(), outcome }
        }
    }
}

fn replay(recording: &Recording) -> Result<Outcome> {
    if let Some(reason) = support::missing_feature(recording) {
        return Ok(Outcome::NotSupported(reason));
    }
    let divergence = if recording.has_tracing() { tracing::replay(recording)? } else { decisions::replay(recording)? };
    Ok(divergence.map_or(Outcome::Exact, |divergence| Outcome::Different(Box::new(divergence))))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use serde_json::{Value, json};

    use super::format::{Recording, read_lines};
    use super::{Outcome, replay};

    fn lines(name: &str) -> Vec<Value> {
        let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../golden");
        read_lines(&golden.join(name)).expect("a recording of the repository")
    }

    /// What a replay says of lines in which one value was changed: the line and the field that differ.
    #[track_caller]
    fn changed(name: &str, line: usize, pointer: &str, value: Value) -> (usize, String) {
        let mut lines = lines(name);
        *lines[line - 1].pointer_mut(pointer).expect("the line has this field") = value;
        let recording = Recording::from_lines(lines).expect("still a recording");
        let Outcome::Different(divergence) = replay(&recording).expect("readable") else {
            panic!("the change was missed")
        };
        (divergence.line, divergence.field)
    }

    #[test]
    fn a_changed_decision_is_found_where_it_is() {
        let name = "vllm-0.32/preempt_basic.jsonl";
        let schedule = lines(name).iter().position(|line| line["step"] == 7 && line["type"] == "schedule");
        let line = schedule.expect("seven steps") + 1;
        for (pointer, value, field) in [
            ("/free_queue_crc32", json!(1), "free_queue_crc32"),
            ("/num_scheduled_tokens/0/1", json!(3), "num_scheduled_tokens[0][1]"),
            ("/kv_usage", json!(0.123), "kv_usage"),
            ("/running", json!([]), "running[0]"),
        ] {
            assert_eq!(changed(name, line, pointer, value), (line, field.to_owned()));
        }
    }

    #[test]
    fn a_changed_trace_event_is_found_where_it_is() {
        let name = "seed-tracing/01_single_request.jsonl";
        let is_snapshot = |line: &Value| line["name"] == "step.REQUEST_SNAPSHOT";
        let line = lines(name).iter().position(is_snapshot).expect("every step is traced") + 1;
        let pointer = "/attributes/request.num_prompt_tokens";
        let field = "attributes.request.num_prompt_tokens".to_owned();
        assert_eq!(changed(name, line, pointer, json!(11)), (line, field));
    }

    #[test]
    fn a_missing_trace_event_is_found() {
        let mut lines = lines("seed-tracing/01_single_request.jsonl");
        let last = lines.iter().rposition(|line| line["type"] == "event").expect("events");
        lines.remove(last);
        let recording = Recording::from_lines(lines).expect("still a recording");
        assert!(matches!(replay(&recording).expect("readable"), Outcome::Different(_)));
    }

    #[test]
    fn a_recording_with_a_line_dropped_or_doubled_is_never_exact() {
        for name in ["vllm-0.32/budget_shared.jsonl", "seed-tracing/06_aborts.jsonl"] {
            let whole = lines(name);
            for idx in 1..whole.len() - 1 {
                // A file may have less to abort or to draft; everything else belongs together.
                if ["draft_tokens", "abort"].contains(&whole[idx]["type"].as_str().unwrap_or_default()) {
                    continue;
                }
                let mut dropped = whole.clone();
                dropped.remove(idx);
                let mut doubled = whole.clone();
                doubled.insert(idx, whole[idx].clone());
                for (what, lines) in [("dropped", dropped), ("doubled", doubled)] {
                    let outcome = replay(&Recording::from_lines(lines).expect("still a recording"));
                    assert!(!matches!(outcome, Ok(Outcome::Exact)), "{name}: line {} {what}", idx + 1);
                }
            }
        }
    }

    #[test]
    fn a_recording_that_runs_an_unknown_request_is_an_error_and_no_panic() {
        let mut lines = lines("seed-tracing/06_aborts.jsonl");
        let schedule = lines.iter_mut().find(|line| line["type"] == "schedule" && line["running"][0].is_string());
        schedule.expect("somebody runs")["running"][0] = json!("nobody");
        let error = replay(&Recording::from_lines(lines).expect("still a recording")).err().expect("refused");
        assert!(format!("{error:#}").contains("request `nobody` runs"), "{error:#}");
    }

    #[test]
    fn a_cut_off_recording_is_refused() {
        let mut lines = lines("vllm-0.32/single_basic.jsonl");
        lines.pop();
        let error = Recording::from_lines(lines).err().expect("refused");
        assert!(error.to_string().contains("cut off"), "{error}");
    }
}
