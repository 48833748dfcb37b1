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
    sandbox.run(&["replay", "--max-request-memory-gib", "0"]).fails(2, &["--max-request-memory-gib"]);
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
    sandbox.run(&["replay", "w.jsonl", "--json", "newdir/"]).fails(2, &["--json: `newdir/`", "directory"]);
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

#[cfg(unix)]
#[test]
fn links_and_streams_do_not_hide_that_a_file_is_given_twice() {
    let sandbox = Sandbox::new();
    let read = |name: &str| String::from_utf8(sandbox.read(name)).expect("UTF-8");
    let open = |name: &str| std::fs::OpenOptions::new().read(true).append(true).open(sandbox.path(name)).expect("open");
    let ran = |command: &mut std::process::Command| -> Ran { command.output().expect("the binary starts").into() };
    sandbox.write("w.jsonl", requests(2));
    sandbox.write("c.toml", "max_num_seqs = 8\n");
    fs::hard_link(sandbox.path("w.jsonl"), sandbox.path("hard.jsonl")).expect("a link");
    std::os::unix::fs::symlink("new.jsonl", sandbox.path("dangling")).expect("a link");
    fs::create_dir(sandbox.path("dir")).expect("a directory");
    let tracing = ["--enable-journey-tracing"];
    let run = |args: &[&str]| sandbox.run(&[args, &tracing].concat());

    run(&["replay", "w.jsonl", "--trace-out", "hard.jsonl"]).fails(2, &["--trace-out", "WORKLOAD too"]);
    run(&["replay", "w.jsonl", "--config", "c.toml", "--json", "c.toml"]).fails(2, &["--json", "--config too"]);
    run(&["replay", "w.jsonl", "--json", "new", "--trace-out", "dir/../new"]).fails(2, &["--trace-out", "--json too"]);
    run(&["replay", "w.jsonl", "--json", "new.jsonl", "--trace-out", "dangling"]).fails(2, &["--json too"]);

    ran(sandbox.command(&["replay", "-", "--json", "w.jsonl"]).stdin(open("w.jsonl"))).fails(2, &["WORKLOAD too"]);
    ran(sandbox.command(&["replay", "w.jsonl"]).stdout(open("w.jsonl"))).fails(2, &["WORKLOAD", "standard output too"]);
    ran(sandbox.command(&["replay", "w.jsonl", "--json", "-"]).stdout(open("w.jsonl"))).fails(2, &["WORKLOAD too"]);

    assert_eq!((read("w.jsonl"), read("c.toml").as_str()), (requests(2), "max_num_seqs = 8\n"));
    assert_eq!(sandbox.files(), ["c.toml", "dangling", "dir", "hard.jsonl", "w.jsonl"]);
}

#[test]
fn a_trace_file_survives_a_replay_that_cannot_be_set_up() {
    let sandbox = Sandbox::new();
    sandbox.write("w.jsonl", requests(2));
    sandbox.write("keep.jsonl", "kept");
    let args = ["replay", "w.jsonl", "--step-tracing-enabled", "--trace-out", "keep.jsonl"];
    let no_blocks = ["--executor-preset", "rtx4090-llama-3.1-8b", "--block-size", "65536"];
    let ran = sandbox.run(&[&args[..], &no_blocks[..]].concat());
    ran.fails(2, &["block_size: no block of 65536 tokens fits the 41408 tokens", "remedy", "num_gpu_blocks_override"]);
    assert_eq!(sandbox.read("keep.jsonl"), b"kept");
}

#[test]
fn control_characters_of_an_id_do_not_reach_the_terminal() {
    let sandbox = Sandbox::new();
    sandbox.write(
        "w.jsonl",
        "{\"arrival_s\": 0, \"id\": \"a\\u001b[2J\\nerror: b\", \"prompt_len\": 5000, \"output_len\": 1}\n",
    );
    let ran = sandbox.run(&["replay", "w.jsonl", "--max-model-len", "4096"]);
    ran.fails(1, &["request `a\\u{1b}[2J\\nerror: b`"]);
    assert!(!ran.stderr.contains('\u{1b}'), "{ran:#?}");
}

#[cfg(target_os = "linux")]
#[test]
fn requests_that_pile_up_end_the_replay_with_a_message_and_no_abort() {
    let sandbox = Sandbox::new();
    let line = "{\"arrival_s\": 0, \"prompt_len\": 131000, \"output_len\": 1}\n";
    sandbox.write("w.jsonl", line.repeat(3000));
    let command = "ulimit -v 1000000; exec \"$0\" replay w.jsonl --num-gpu-blocks-override 9000 --json o.json";
    let output = std::process::Command::new("sh")
        .args(["-c", command, env!("CARGO_BIN_EXE_stepline")])
        .current_dir(sandbox.path("."))
        .output();
    let ran: Ran = output.expect("a shell").into();
    ran.fails(1, &["request `req-", "need", "more than the system gives", "--max-request-memory-gib"]);
    assert_eq!(sandbox.files(), ["w.jsonl"]);
}

#[cfg(target_os = "linux")]
#[test]
fn results_are_written_though_standard_output_is_full_or_closed() {
    let sandbox = Sandbox::new();
    sandbox.write("w.jsonl", requests(3));
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    let run = |stdout: std::process::Stdio, json: &str| -> Ran {
        sandbox.command(&["replay", "w.jsonl", "--json", json]).stdout(stdout).output().expect("it starts").into()
    };
    run(writer.into(), "closed.json").succeeds();
    let full = fs::OpenOptions::new().write(true).open("/dev/full").expect("a device");
    run(full.into(), "full.json").fails(1, &["standard output: cannot be written"]);
    assert_eq!(sandbox.read("closed.json"), sandbox.read("full.json"));
    assert!(sandbox.read("full.json").ends_with(b"}\n"));
}

#[cfg(target_os = "linux")]
#[test]
fn a_lost_trace_is_told_beside_lost_results() {
    let sandbox = Sandbox::new();
    sandbox.write("w.jsonl", requests(20));
    let tracing = ["--enable-journey-tracing", "--trace-out", "/dev/full"];
    let ran = sandbox.run(&[&["replay", "w.jsonl", "--json", "/dev/full"][..], &tracing[..]].concat());
    ran.fails(1, &["--json: `/dev/full` cannot be written", "the trace is incomplete"]);
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
}

#[test]
fn a_trace_file_without_tracing_is_refused() {
    let sandbox = Sandbox::new();
    sandbox.write("w.jsonl", requests(2));
    sandbox
        .run(&["replay", "w.jsonl", "--trace-out", "t.jsonl"])
        .fails(2, &["--trace-out: `t.jsonl` would stay empty", "--step-tracing-enabled or --enable-journey-tracing"]);
    let args = ["replay", "w.jsonl", "--step-tracing-enabled", "--trace-out", "-"];
    sandbox.run(&args).fails(2, &["--trace-out: `-` is no path", "remedy"]);
    assert_eq!(sandbox.files(), ["w.jsonl"]);
}
