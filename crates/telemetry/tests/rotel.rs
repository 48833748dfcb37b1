//! A collector that others wrote, in a process of its own, receives what was emitted.
//!
//! It is the one of the Python package `rotel`: `.ci/install-rotel.sh` installs it, `ROTEL_AGENT` names
//! another one. Without either the test says so and passes.
#![cfg(feature = "otlp")]

mod common;

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

use common::{options, plan, send_journey, send_steps};
use stepline_telemetry::{BuiltSinks, Counts, OtlpProtocol, build_sinks};
use stepline_tracing_schema::TraceSink;

/// When to give up on a collector that does nothing.
const PATIENCE: Duration = Duration::from_mins(1);

/// Returns the collector's program, or why there is none.
fn find_program() -> Result<PathBuf, String> {
    if let Some(path) = env::var_os("ROTEL_AGENT") {
        return Ok(path.into());
    }
    let lib = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.ci/venv/lib");
    let pythons = fs::read_dir(&lib).into_iter().flatten().filter_map(Result::ok);
    pythons
        .map(|python| python.path().join("site-packages/rotel/rotel-agent"))
        .find(|program| program.is_file())
        .ok_or_else(|| "rotel is not installed; run .ci/install-rotel.sh, or set ROTEL_AGENT".to_owned())
}

/// A running collector; it ends with the test, however that ends.
struct Collector {
    process: Child,
    log: Receiver<String>,
    grpc: SocketAddr,
    http: SocketAddr,
}

impl Drop for Collector {
    fn drop(&mut self) {
        // It may have ended by itself; then there is nothing to do.
        let _ended = self.process.kill();
        let _ended = self.process.wait();
    }
}

impl Collector {
    fn start(program: &Path, folder: &Path) -> Self {
        let [grpc, http] = free_ports();
        let mut process = Command::new(program)
            .arg("start")
            .args(["--otlp-grpc-endpoint", &grpc.to_string(), "--otlp-http-endpoint", &http.to_string()])
            .args(["--exporter", "blackhole", "--debug-log", "traces", "--debug-log-verbosity", "detailed"])
            .args(["--pid-file".as_ref(), folder.join("rotel.pid").as_os_str()])
            .args(["--log-file".as_ref(), folder.join("rotel.log").as_os_str()])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the collector starts");
        let (sender, log) = mpsc::channel();
        let stdout = BufReader::new(process.stdout.take().expect("it is piped"));
        thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        let collector = Self { process, log, grpc, http };
        collector.wait_until_it_listens();
        collector
    }

    fn wait_until_it_listens(&self) {
        let deadline = Instant::now() + PATIENCE;
        for address in [self.grpc, self.http] {
            while TcpStream::connect(address).is_err() {
                assert!(Instant::now() < deadline, "the collector does not listen on {address}");
                // Its log is of no use yet, but a wait for it is a wait for the collector.
                let _line = self.log.recv_timeout(Duration::from_millis(20));
            }
        }
    }

    /// Reads the log until it has shown `num_events` events, and counts its lines: `-> Name: step.BATCH_SUMMARY`.
    fn count_lines(&self, num_events: usize) -> BTreeMap<String, usize> {
        let mut lines = BTreeMap::new();
        let mut num_seen = 0;
        while num_seen < num_events {
            let line = self.log.recv_timeout(PATIENCE).unwrap_or_else(|error| {
                panic!("the collector showed {num_seen} of {num_events} events and then nothing ({error}): {lines:?}")
            });
            let line = line.trim();
            num_seen += usize::from(line.starts_with("-> Name: "));
            *lines.entry(line.to_owned()).or_default() += 1;
        }
        lines
    }
}

/// Two ports that were free a moment ago.
fn free_ports() -> [SocketAddr; 2] {
    let listeners = [0, 1].map(|_| TcpListener::bind("127.0.0.1:0").expect("a port is free"));
    listeners.map(|listener| listener.local_addr().expect("it is bound"))
}

#[test]
fn a_collector_of_others_shows_what_was_emitted_over_both_protocols() {
    let program = match find_program() {
        Ok(program) => program,
        Err(reason) => {
            println!("skipped: {reason}");
            return;
        }
    };
    let folder = tempfile::tempdir().expect("a folder");
    let collector = Collector::start(&program, folder.path());
    for (protocol, address) in [(OtlpProtocol::Grpc, collector.grpc), (OtlpProtocol::HttpProtobuf, collector.http)] {
        let built = build_sinks(&plan(Some(format!("http://{address}"))), &options(protocol)).expect("sinks");
        assert_eq!(built.warnings, [], "the collector listens");
        let BuiltSinks { mut sink, handle } = built.sinks.expect("tracing is on");
        send_steps(&mut sink, 25, 20).expect("the sink works");
        send_journey(&mut sink, "A", None).expect("the sink works");
        sink.shutdown(25, 26_000).expect("everything arrives");
        let sent = Counts { spans: 4, events: 25 * 21 + 3 };
        assert_eq!(handle.report().otlp.expect("there is a collector").exported, sent);

        let lines = collector.count_lines(usize::try_from(sent.events).expect("few"));
        let count = |line: &str| lines.get(line).copied().unwrap_or_default();
        let protocol = protocol.as_str();
        assert_eq!(
            count(concat!("InstrumentationScope vllm.scheduler.step ", env!("CARGO_PKG_VERSION"))),
            1,
            "{protocol}: {lines:?}"
        );
        assert_eq!(count(concat!("InstrumentationScope vllm.scheduler ", env!("CARGO_PKG_VERSION"))), 1, "{protocol}");
        assert_eq!(count("-> service.name: Str(stepline)"), 1, "{protocol}");
        assert_eq!(count("-> Name: step.BATCH_SUMMARY"), 25, "{protocol}");
        assert_eq!(count("-> kv.usage_gpu_ratio: Double(0.25)"), 25, "{protocol}");
        assert_eq!(count("-> Name: step.REQUEST_SNAPSHOT"), 500, "{protocol}");
        assert_eq!(count("-> request.id: Str(request-7)"), 25, "{protocol}");
        for name in ["journey.QUEUED", "journey.SCHEDULED", "journey.FINISHED"] {
            assert_eq!(count(&format!("-> Name: {name}")), 1, "{protocol}");
        }
    }
}
