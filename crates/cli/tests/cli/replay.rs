//! `stepline replay` where all is well.

use std::io::Write;
use std::process::Stdio;

use crate::sandbox::{Ran, Sandbox, requests, trace};
use serde_json::Value;
use stepline_tracing_schema::TraceRecord;

const TRACE_ALL: [&str; 5] =
    ["--step-tracing-enabled", "--step-tracing-sample-rate", "1", "--step-tracing-rich-subsample-rate", "1"];

#[test]
fn the_embedded_sample_is_replayed_and_its_licence_named() {
    let ran = Sandbox::new().run(&["replay", "--max-requests", "50", "--num-gpu-blocks-override", "9000"]);
    ran.succeeds();
    assert!(ran.stderr.contains("azure_llm_2023_conv") && ran.stderr.contains("CC-BY 4.0"), "{}", ran.stderr);
    for row in ["requests finished", "TTFT", "TPOT", "ITL", "E2E", "queue time", "prefix hit rate", "peak KV usage"] {
        assert!(ran.stdout.contains(row), "no {row} in {}", ran.stdout);
    }
    assert!(
        ran.stdout.lines().any(|line| line.split_whitespace().eq(["requests", "finished", "50"])),
        "{}",
        ran.stdout
    );
    assert!(!ran.stdout.contains('\u{1b}'), "no colours where there is no terminal");
}

#[test]
fn every_request_of_the_real_traces_is_accounted_for() {
    let sandbox = Sandbox::new();
    for (name, total) in [
        ("azure_llm_2023_code_200.csv", 200),
        ("mooncake_conversation_120.jsonl", 120),
        ("servegen_reason_60.jsonl", 60),
    ] {
        // A small pool, for debug builds look at every block after every step.
        let pool = ["--num-gpu-blocks-override", "9000"];
        sandbox.run(&[&["replay", &trace(name), "--json", "out.json"][..], &pool[..]].concat()).succeeds();
        let results: Value = serde_json::from_slice(&sandbox.read("out.json")).expect("valid JSON");
        let requests = &results["report"]["requests"];
        assert_eq!(requests["total"], total, "{name}");
        assert_eq!(requests["finished"].as_u64().zip(requests["rejected"].as_u64()), Some((total, 0)), "{name}");
        assert_eq!(results["report"]["e2e_ms"]["count"], total, "{name}");
    }
    assert_eq!(sandbox.files(), ["out.json"]);
}

#[test]
fn the_same_seed_gives_the_same_bytes() {
    let sandbox = Sandbox::new();
    let run = |seed: &str, json: &str, steps: &str| {
        let trace = trace("mooncake_conversation_120.jsonl");
        let args = ["replay", &trace, "--seed", seed, "--json", json, "--trace-out", steps, "--max-requests", "40"];
        let sampling = ["--step-tracing-enabled", "--step-tracing-sample-rate", "0.5", "--enable-journey-tracing"];
        sandbox.run(&[&args[..], &sampling[..]].concat()).succeeds();
        (sandbox.read(json), sandbox.read(steps))
    };
    let first = run("7", "a.json", "a.jsonl");
    assert!(first.1.len() > 1000);
    assert!(first == run("7", "b.json", "b.jsonl"), "a replay with the same seed differs");
    assert!(first.1 != run("8", "c.json", "c.jsonl").1, "another seed samples other steps");
}

#[test]
fn one_summary_per_step_and_as_many_snapshots_as_run() {
    let sandbox = Sandbox::new();
    let trace = trace("azure_llm_2023_code_200.csv");
    let args = ["replay", &trace, "--json", "out.json", "--trace-out", "t.jsonl", "--num-gpu-blocks-override", "3000"];
    let ran = sandbox.run(&[&args[..], &TRACE_ALL[..]].concat());
    ran.succeeds();
    let results: Value = serde_json::from_slice(&sandbox.read("out.json")).expect("valid JSON");

    let text = String::from_utf8(sandbox.read("t.jsonl")).expect("UTF-8");
    let mut steps = Vec::new();
    for line in text.lines() {
        match serde_json::from_str(line).expect("every line is a record") {
            TraceRecord::BatchSummary(summary) => steps.push((summary.step_id, summary.running_depth, 0)),
            TraceRecord::RequestSnapshot(snapshot) => {
                let (step_id, _, snapshots) = steps.last_mut().expect("a summary comes before its snapshots");
                assert_eq!(snapshot.step_id, *step_id);
                *snapshots += 1;
            }
            other @ TraceRecord::JourneyEvent(_) => panic!("journeys are off: {other:?}"),
        }
    }
    let expected: Vec<u64> = (1..=results["report"]["steps"].as_u64().expect("a count")).collect();
    assert_eq!(steps.iter().map(|(step_id, ..)| *step_id).collect::<Vec<_>>(), expected);
    assert!(steps.iter().all(|(_, running_depth, snapshots)| running_depth == snapshots));
    assert!(steps.iter().any(|(_, running_depth, _)| *running_depth > 1));
    assert!(ran.stderr.contains(&format!("{0} records emitted, {0} written", text.lines().count())), "{}", ran.stderr);
}

#[test]
fn tracing_does_not_change_the_results() {
    let sandbox = Sandbox::new();
    sandbox.write("w.jsonl", requests(30));
    sandbox.run(&["replay", "w.jsonl", "--json", "off.json"]).succeeds();
    let args = ["replay", "w.jsonl", "--json", "on.json", "--trace-out", "t.jsonl"];
    sandbox.run(&[&args[..], &TRACE_ALL[..]].concat()).succeeds();
    let report = |name| {
        let results: Value = serde_json::from_slice(&sandbox.read(name)).expect("valid JSON");
        results["report"].clone()
    };
    assert_eq!(report("on.json"), report("off.json"));
}

#[test]
fn standard_input_and_output_take_part() {
    let sandbox = Sandbox::new();
    let mut child = sandbox
        .command(&["replay", "-", "--json", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary starts");
    child.stdin.take().expect("piped").write_all(requests(3).as_bytes()).expect("it reads");
    let ran: Ran = child.wait_with_output().expect("it ends").into();
    ran.succeeds();
    let results: Value = serde_json::from_str(&ran.stdout).expect("JSON and nothing else");
    assert_eq!(results["report"]["requests"]["finished"], 3);
    assert!(ran.stderr.contains("TTFT"), "the table is not lost: {}", ran.stderr);
}

#[test]
fn a_reader_that_goes_away_is_no_failure() {
    let sandbox = Sandbox::new();
    sandbox.write("w.jsonl", requests(3));
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    let output = sandbox.command(&["replay", "w.jsonl"]).stdout(writer).stderr(Stdio::piped()).output();
    let ran: Ran = output.expect("the binary starts").into();
    ran.succeeds();
    assert_eq!(ran.stderr, "");
}

#[test]
fn a_replay_that_took_no_time_has_no_rates() {
    let sandbox = Sandbox::new();
    sandbox.write("w.jsonl", "{\"arrival_s\": 7, \"prompt_len\": 5000, \"output_len\": 1}\n");
    let ran = sandbox.run(&["replay", "w.jsonl", "--max-model-len", "4096", "--json", "o.json"]);
    ran.fails(1, &["none of the 1 requests could run"]);
    assert!(ran.stdout.contains("0 (–/s)"), "{}", ran.stdout);
    let results: Value = serde_json::from_slice(&sandbox.read("o.json")).expect("valid JSON");
    assert_eq!(results["report"]["interrupted"], false);
    assert_eq!(results["report"]["duration_s"], 0.0);
    assert_eq!(results["report"]["tokens"]["output_per_s"], Value::Null);
}

#[test]
fn executor_flags_change_the_times_of_a_preset() {
    let sandbox = Sandbox::new();
    sandbox.write("w.jsonl", "{\"arrival_s\": 0, \"prompt_len\": 10, \"output_len\": 3}\n");
    let free = ["--step-prefill-token-us", "0", "--step-decode-token-us", "0", "--step-kv-token-us", "0"];
    let args = ["replay", "w.jsonl", "--json", "o.json", "--step-base-us", "2000", "--step-attention-pair-us", "0"];
    sandbox.run(&[&args[..], &free[..]].concat()).succeeds();
    let results: Value = serde_json::from_slice(&sandbox.read("o.json")).expect("valid JSON");
    assert_eq!(results["report"]["duration_s"], 0.006);
    assert_eq!(results["executor"]["step_time"]["base_us"], 2000.0);
}

#[test]
fn gzipped_workloads_are_read() {
    let sandbox = Sandbox::new();
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(requests(5).as_bytes()).expect("a vector takes it");
    sandbox.write("w.jsonl.gz", encoder.finish().expect("a vector takes it"));
    let ran = sandbox.run(&["replay", "w.jsonl.gz"]);
    ran.succeeds();
    assert!(ran.stdout.contains("requests finished   5"), "{}", ran.stdout);
}
