//! `stepline config`.

use serde_json::Value;

use crate::sandbox::{Ran, Sandbox};

#[test]
fn show_names_the_origin_of_every_value() {
    let sandbox = Sandbox::new();
    sandbox.write("engine.toml", "# comment\nmax_num_seqs = 8\nblock_size = 32\n");
    let output = sandbox
        .command(&["config", "show", "--json", "--config", "engine.toml", "--block-size", "64"])
        .env("STEPLINE_STEP_TRACING_SAMPLE_RATE", "0.5")
        .output();
    let ran: Ran = output.expect("the binary starts").into();
    ran.succeeds();
    let shown: Value = serde_json::from_str(&ran.stdout).expect("JSON");
    let of = |name: &str| (shown[name]["value"].to_string(), shown[name]["origin"].as_str().map(ToOwned::to_owned));
    let expected = |value: &str, origin: &str| (value.to_owned(), Some(origin.to_owned()));
    assert_eq!(of("max_num_seqs"), expected("8", "engine.toml:2"));
    assert_eq!(of("block_size"), expected("64", "--block-size"));
    assert_eq!(of("step_tracing_sample_rate"), expected("0.5", "STEPLINE_STEP_TRACING_SAMPLE_RATE"));
    assert_eq!(of("step_tracing_enabled"), expected("false", "default"));

    let table = sandbox.run(&["config", "show", "--config", "engine.toml"]);
    table.succeeds();
    assert!(table.stdout.lines().any(|line| line.split_whitespace().eq(["max_num_seqs", "8", "engine.toml:2"])));
}

#[test]
fn check_reports_all_faults_of_all_layers_at_once() {
    let sandbox = Sandbox::new();
    sandbox.write("engine.yaml", "max_num_seq: 8\nwatermark: 1.5\n");
    let output = sandbox
        .command(&["config", "check", "--config", "engine.yaml", "--journey-tracing-sample-rate", "NaN"])
        .env("STEPLINE_BLOCK_SIZE", "many")
        .output();
    let ran: Ran = output.expect("the binary starts").into();
    ran.fails(
        2,
        &[
            "engine.yaml:1: max_num_seq",
            "did you mean `max_num_seqs`?",
            "engine.yaml:2: watermark = 1.5",
            "STEPLINE_BLOCK_SIZE: block_size = \"many\"",
            "--journey-tracing-sample-rate: journey_tracing_sample_rate = \"NaN\"",
        ],
    );
    assert_eq!(ran.stdout, "");
}

#[test]
fn check_accepts_what_is_right() {
    let sandbox = Sandbox::new();
    sandbox.write("engine.json", "{\"max-num-seqs\": 8}");
    let ran = sandbox.run(&["config", "check", "--config", "engine.json"]);
    ran.succeeds();
    assert_eq!((ran.stdout.as_str(), ran.stderr.as_str()), ("the configuration is valid\n", ""));
}

#[test]
fn settings_without_effect_are_said_to_be() {
    let ran = Sandbox::new().run(&["config", "check", "--kv-cache-metrics"]);
    ran.succeeds();
    assert!(ran.stderr.starts_with("note: kv_cache_metrics"), "{}", ran.stderr);
}

#[test]
fn schema_is_the_schema_of_a_file() {
    let ran = Sandbox::new().run(&["config", "schema"]);
    ran.succeeds();
    let schema: Value = serde_json::from_str(&ran.stdout).expect("JSON");
    assert_eq!(schema["properties"]["step_tracing_sample_rate"]["maximum"], 1);
    assert_eq!(schema["additionalProperties"], false);
}

#[test]
fn every_command_has_examples_in_its_help() {
    let sandbox = Sandbox::new();
    for command in [&["replay"][..], &["config", "show"], &["config", "check"], &["config", "schema"]] {
        let ran = sandbox.run(&[command, &["--help"]].concat());
        ran.succeeds();
        assert!(ran.stdout.contains("Example") && ran.stdout.contains("  stepline "), "{command:?}");
    }
    let help = sandbox.run(&["replay", "--help"]).stdout;
    for flag in
        ["--max-num-seqs", "--step-tracing-sample-rate", "--otlp-traces-endpoint", "--executor-preset", "--trace-out"]
    {
        assert!(help.contains(flag), "no {flag} in the help");
    }
}
