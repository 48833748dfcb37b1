//! `stepline replay` and signals.

use std::io::Write;
use std::process::{Child, ChildStdin, Command, Stdio};

use serde_json::Value;
use stepline_tracing_schema::TraceRecord;

use crate::sandbox::{Ran, Sandbox, requests};

/// A replay of standard input, which catches signals and waits for more requests.
fn start(sandbox: &Sandbox, stdout: Stdio) -> (Child, ChildStdin) {
    let tracing = ["--enable-journey-tracing", "--trace-out", "t.jsonl"];
    let mut child = sandbox
        .command(&[&["replay", "-", "--json", "o.json"][..], &tracing[..]].concat())
        .stdin(Stdio::piped())
        .stdout(stdout)
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary starts");
    let mut stdin = child.stdin.take().expect("piped");
    stdin.write_all(requests(3).as_bytes()).expect("it reads");
    // The trace is opened after signals are caught.
    while !sandbox.path("t.jsonl").exists() {
        assert!(child.try_wait().expect("our child").is_none(), "it ended before the trace was opened");
        std::thread::yield_now();
    }
    (child, stdin)
}

fn send(signal: &str, child: &Child) {
    let sent = Command::new("sh").args(["-c", &format!("kill -{signal} {}", child.id())]).status();
    assert!(sent.expect("a shell").success());
}

#[test]
fn a_signal_ends_the_replay_with_whole_files_and_the_results_so_far() {
    for (signal, code) in [("INT", 130), ("TERM", 143)] {
        let sandbox = Sandbox::new();
        let (child, mut stdin) = start(&sandbox, Stdio::piped());
        // Twice, as `timeout` does.
        send(signal, &child);
        send(signal, &child);
        // There is always more to replay, so that nothing but the signal can end it; its end breaks the pipe.
        let more = "{\"arrival_s\": 9, \"prompt_len\": 1, \"output_len\": 1}\n";
        while stdin.write_all(more.as_bytes()).is_ok() {}
        let ran: Ran = child.wait_with_output().expect("it ends").into();
        ran.fails(code, &[&format!("interrupted by SIG{signal}")]);
        assert!(ran.stdout.starts_with("INTERRUPTED"), "{ran:#?}");

        let results: Value = serde_json::from_slice(&sandbox.read("o.json")).expect("valid JSON");
        assert_eq!(results["report"]["interrupted"], true);
        let requests = &results["report"]["requests"];
        let of = |name: &str| requests[name].as_u64().expect("a count");
        assert_eq!(of("total"), of("finished") + of("rejected") + of("unfinished"));
        let trace = String::from_utf8(sandbox.read("t.jsonl")).expect("UTF-8");
        assert!(trace.is_empty() || trace.ends_with('\n'));
        for line in trace.lines() {
            serde_json::from_str::<TraceRecord>(line).expect("every line is a record");
        }
    }
}

/// What a pipe holds while nobody reads.
#[cfg(target_os = "linux")]
const PIPE_BYTES: usize = 64 << 10;

#[cfg(target_os = "linux")]
#[test]
fn a_second_signal_ends_the_process_at_once() {
    let sandbox = Sandbox::new();
    // A full pipe that nobody reads: the table has nowhere to go, so the first signal alone cannot end the process.
    let (reader, mut writer) = std::io::pipe().expect("a pipe");
    writer.write_all(&vec![0; PIPE_BYTES]).expect("a pipe holds as much");
    let (mut child, stdin) = start(&sandbox, writer.into());
    // A signal right after the first counts as the same wish, so they are sent until one does not.
    while child.try_wait().expect("our child").is_none() {
        send("INT", &child);
    }
    let ran: Ran = child.wait_with_output().expect("it ends").into();
    assert_eq!(ran.code, Some(130), "{ran:#?}");
    assert!(!ran.stderr.contains("interrupted by"), "it ended by itself: {ran:#?}");
    drop((reader, stdin));
}
