//! `stepline` where something is wrong: a message with place and remedy, the right exit code, nothing half-written.

use std::fs;

use crate::sandbox::{Ran, Sandbox, requests};

#[test]
fn broken_workloads_are_refused_before_anything_is_written() {
    let sandbox = Sandbox::new();
    let good = requests(2);
    let gz = {
        use std::io::Write;
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        encoder.write_all(good.as_bytes()).expect("a vector takes it");
        encoder.finish().expect("a vector takes it")
    };
    let late = "{\"arrival_s\": 9, \"prompt_len\": ";
    let cases: &[(&str, Vec<u8>, &[&str])] = &[
        ("empty.jsonl", Vec::new(), &["empty.jsonl: is empty"]),
        ("truncated.jsonl", format!("{good}{late}").into_bytes(), &["truncated.jsonl:3:", "not a JSON object"]),
        ("truncated.gz", gz[..gz.len() - 9].to_vec(), &["truncated.gz:", "ends in the middle"]),
        ("binary", vec![0xff, 0x00, 0x13], &["binary:1:1: the text is not UTF-8"]),
        ("enormous.jsonl", vec![b'{'; 17 << 20], &["enormous.jsonl:1: the line is longer than"]),
        ("unknown.csv", b"a,b\n1,2\n".to_vec(), &["unknown.csv:1: unknown format", "TIMESTAMP"]),
        (
            "negative.jsonl",
            b"{\"arrival_s\": -1, \"prompt_len\": 1, \"output_len\": 1}".to_vec(),
            &["negative.jsonl:1:15: `arrival_s` is `-1`", "from 0 to"],
        ),
        (
            "nan.jsonl",
            b"{\"arrival_s\": NaN, \"prompt_len\": 1, \"output_len\": 1}".to_vec(),
            &["nan.jsonl:1:15", "NaN and Infinity are not JSON"],
        ),
        (
            "too_many_tokens.jsonl",
            b"{\"arrival_s\": 0, \"prompt_len\": 99999999999, \"output_len\": 1}".to_vec(),
            &["`prompt_len` is `99999999999`", "16777216"],
        ),
    ];
    for (name, content, parts) in cases {
        sandbox.write(name, content);
        let ran = sandbox.run(&["replay", name, "--json", "out.json"]);
        ran.fails(2, parts);
        ran.fails(2, &["expected: ", "remedy: "]);
        assert_eq!(ran.stdout, "");
        fs::remove_file(sandbox.path(name)).expect("the case");
    }
    assert_eq!(sandbox.files(), [""; 0]);
}

#[test]
fn workloads_that_are_no_files_are_refused() {
    let sandbox = Sandbox::new();
    fs::create_dir(sandbox.path("dir")).expect("a directory");
    sandbox.run(&["replay", "dir"]).fails(2, &["dir: is a directory"]);
    sandbox.run(&["replay", "missing.csv"]).fails(2, &["missing.csv: cannot be opened", "check the path"]);
}

#[test]
fn requests_that_can_never_run_are_reported_and_the_rest_is_served() {
    let sandbox = Sandbox::new();
    sandbox.write(
        "w.jsonl",
        "{\"arrival_s\": 0, \"id\": \"long\", \"prompt_len\": 5000, \"output_len\": 1}\n\
         {\"arrival_s\": 0, \"id\": \"large\", \"prompt_len\": 1000, \"output_len\": 9}\n\
         {\"arrival_s\": 0, \"id\": \"good\", \"prompt_len\": 10, \"output_len\": 1}\n",
    );
    let ran = sandbox.run(&["replay", "w.jsonl", "--max-model-len", "4096", "--num-gpu-blocks-override", "10"]);
    ran.succeeds();
    assert!(
        ran.stderr.contains("request `long`: a prompt of 5000 tokens leaves no room in max_model_len 4096"),
        "{ran:#?}"
    );
    assert!(
        ran.stderr.contains("request `large`: its 1009 tokens need 63 KV cache blocks of 16, the cache has 9"),
        "{ran:#?}"
    );
    assert!(ran.stdout.contains("requests rejected   2"), "{ran:#?}");
}

#[test]
fn a_replay_in_which_nothing_can_run_fails() {
    let sandbox = Sandbox::new();
    sandbox.write("w.jsonl", "{\"arrival_s\": 0, \"prompt_len\": 5000, \"output_len\": 1}\n");
    let ran = sandbox.run(&["replay", "w.jsonl", "--max-model-len", "4096"]);
    ran.fails(1, &["request `req-0`: a prompt of 5000 tokens", "none of the 1 requests could run", "remedy: "]);
}

#[test]
fn a_request_that_no_step_admits_ends_the_replay() {
    let sandbox = Sandbox::new();
    sandbox.write("w.jsonl", "{\"arrival_s\": 0, \"id\": \"stuck\", \"prompt_len\": 100, \"output_len\": 1}\n");
    let limits = ["--no-enable-chunked-prefill", "--max-num-scheduled-tokens", "10", "--max-model-len", "1024"];
    let ran = sandbox.run(&[&["replay", "w.jsonl", "--json", "o.json"][..], &limits[..]].concat());
    ran.fails(1, &["request `stuck` can never be scheduled", "max_num_scheduled_tokens"]);
    assert_eq!(sandbox.files(), ["w.jsonl"]);
}

#[test]
fn rates_outside_of_0_to_1_are_refused_from_every_layer() {
    let sandbox = Sandbox::new();
    for value in ["NaN", "1.5", "-0.1"] {
        let flag = format!("--step-tracing-sample-rate={value}");
        sandbox.run(&["replay", &flag]).fails(2, &["--step-tracing-sample-rate", value]);

        let output = sandbox.command(&["replay"]).env("STEPLINE_STEP_TRACING_SAMPLE_RATE", value).output();
        let ran: Ran = output.expect("the binary starts").into();
        ran.fails(2, &["STEPLINE_STEP_TRACING_SAMPLE_RATE", value]);

        sandbox.write(
            "bad.yaml",
            format!("max_num_seqs: 8\nstep_tracing_sample_rate: {}\n", value.replace("NaN", ".nan")),
        );
        sandbox.run(&["replay", "--config", "bad.yaml"]).fails(2, &["step_tracing_sample_rate", "bad.yaml:2"]);
    }
}

#[test]
fn usage_errors_are_told_with_exit_code_2() {
    let sandbox = Sandbox::new();
    sandbox.run(&["replay", "--no-such-flag"]).fails(2, &["--no-such-flag"]);
    sandbox.run(&["replay", "--executor-preset", "abacus"]).fails(2, &["abacus", "rtx4090-llama-3.1-8b"]);
    sandbox.run(&["replay", "--max-requests", "0"]).fails(2, &["--max-requests"]);
    sandbox.run(&["replay", "--step-base-us", "NaN"]).fails(2, &["--step-base-us: base_us is NaN"]);
    sandbox.run(&["replay", "--step-kv-token-us", "-1"]).fails(2, &["--step-kv-token-us: kv_token_us is -1"]);
    sandbox.run(&["replay", "--num-gpu-blocks-override", "0"]).fails(2, &["num_gpu_blocks"]);
}

#[test]
fn outputs_that_cannot_be_written_are_refused_beforehand() {
    let sandbox = Sandbox::new();
    sandbox.write("w.jsonl", requests(2));
    let tracing = ["--step-tracing-enabled", "--step-tracing-sample-rate", "1"];
    sandbox
        .run(&["replay", "w.jsonl", "--json", "missing/out.json"])
        .fails(2, &["--json: `missing/out.json`", "remedy"]);
    sandbox.run(&["replay", "w.jsonl", "--json", "."]).fails(2, &["--json: `.`"]);
    let args = ["replay", "w.jsonl", "--trace-out", "missing/t.jsonl"];
    sandbox.run(&[&args[..], &tracing[..]].concat()).fails(2, &["missing/t.jsonl", "--trace-out"]);
    assert_eq!(sandbox.files(), ["w.jsonl"]);
}

#[test]
fn a_workload_is_not_overwritten_by_its_own_results() {
    let sandbox = Sandbox::new();
    sandbox.write("w.jsonl", requests(2));
    sandbox.run(&["replay", "w.jsonl", "--json", "./w.jsonl"]).fails(2, &["--json", "WORKLOAD too"]);
    sandbox.run(&["replay", "w.jsonl", "--trace-out", "w.jsonl"]).fails(2, &["--trace-out", "WORKLOAD too"]);
    sandbox.run(&["replay", "w.jsonl", "--trace-out", "o", "--json", "o"]).fails(2, &["--trace-out", "--json too"]);
    assert_eq!(sandbox.read("w.jsonl"), requests(2).as_bytes());
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_told_with_exit_code_1() {
    let sandbox = Sandbox::new();
    sandbox.write("w.jsonl", requests(20));
    sandbox.run(&["replay", "w.jsonl", "--json", "/dev/full"]).fails(1, &["--json: `/dev/full` cannot be written"]);
    let tracing = ["--step-tracing-enabled", "--step-tracing-sample-rate", "1", "--trace-out", "/dev/full"];
    let ran = sandbox.run(&[&["replay", "w.jsonl"][..], &tracing[..]].concat());
    ran.fails(1, &["the trace is incomplete", "/dev/full"]);
    assert!(ran.stdout.contains("TTFT"), "the results are shown all the same: {ran:#?}");
}

#[test]
fn an_unreachable_collector_is_told_and_does_not_hang_the_replay() {
    let sandbox = Sandbox::new();
    sandbox.write("w.jsonl", requests(5));
    // A port that was free a moment ago.
    let port = std::net::TcpListener::bind("127.0.0.1:0").and_then(|l| l.local_addr()).expect("a free port").port();
    let endpoint = format!("http://127.0.0.1:{port}");
    let args = ["replay", "w.jsonl", "--otlp-traces-endpoint", &endpoint];
    let tracing = ["--step-tracing-enabled", "--step-tracing-sample-rate", "1"];
    let ran = sandbox.run(&[&args[..], &tracing[..]].concat());
    ran.fails(1, &["warning: no collector answers", &endpoint, "the trace is incomplete"]);
    assert!(ran.stdout.contains("requests finished   5"), "{ran:#?}");

    let ran = sandbox.run(&[&["replay", "w.jsonl", "--otlp-traces-endpoint", "no url"][..], &tracing[..]].concat());
    ran.fails(2, &["otlp_traces_endpoint `no url`"]);
}

#[test]
fn tracing_without_a_destination_is_a_warning() {
    let sandbox = Sandbox::new();
    sandbox.write("w.jsonl", requests(2));
    let ran = sandbox.run(&["replay", "w.jsonl", "--step-tracing-enabled"]);
    ran.succeeds();
    assert!(ran.stderr.contains("warning: tracing is on, but has no destination"), "{ran:#?}");
    let ran = sandbox.run(&["replay", "w.jsonl", "--trace-out", "t.jsonl"]);
    ran.succeeds();
    assert!(ran.stderr.contains("warning: a trace destination is given, but tracing is off"), "{ran:#?}");
}
