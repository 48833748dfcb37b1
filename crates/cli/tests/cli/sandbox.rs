//! Runs the binary.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// A directory of its own, in which commands run.
pub(crate) struct Sandbox(tempfile::TempDir);

/// What a command did.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Sandbox {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().expect("a temporary directory"))
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        std::fs::write(self.path(name), content).expect("a file in the sandbox");
    }

    pub(crate) fn read(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.path(name)).unwrap_or_else(|e| panic!("{name}: {e}"))
    }

    pub(crate) fn files(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.0.path()).expect("the sandbox is a directory");
        let mut names: Vec<_> =
            entries.map(|entry| entry.expect("readable").file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    /// A command in this directory, without settings from outside.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_stepline"));
        command.args(args).current_dir(self.0.path()).stdin(Stdio::null());
        for (name, _) in std::env::vars_os() {
            let name = name.to_string_lossy().into_owned();
            if name.starts_with("STEPLINE_") || name.starts_with("OTEL_") {
                command.env_remove(name);
            }
        }
        command
    }

    pub(crate) fn run(&self, args: &[&str]) -> Ran {
        self.command(args).output().expect("the binary starts").into()
    }
}

impl From<Output> for Ran {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout).expect("output is UTF-8"),
            stderr: String::from_utf8(output.stderr).expect("messages are UTF-8"),
        }
    }
}

impl Ran {
    /// Checks exit code and that each of `parts` is in the message.
    #[track_caller]
    pub(crate) fn fails(&self, code: i32, parts: &[&str]) {
        assert_eq!(self.code, Some(code), "{self:#?}");
        assert!(self.stderr.contains("error: "), "{self:#?}");
        assert!(!self.stderr.contains("panicked"), "{self:#?}");
        for part in parts {
            assert!(self.stderr.contains(part), "no `{part}` in {}", self.stderr);
        }
    }

    #[track_caller]
    pub(crate) fn succeeds(&self) {
        assert_eq!(self.code, Some(0), "{self:#?}");
    }
}

/// A file of the workload crate's test data.
pub(crate) fn trace(name: &str) -> String {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../workload/tests/data");
    dir.join(name).to_str().expect("the checkout has a UTF-8 path").to_owned()
}

/// Stepline JSON lines of `n` requests, one every 100 ms.
pub(crate) fn requests(n: u32) -> String {
    let line = |i| format!("{{\"arrival_ns\": {}, \"prompt_len\": 100, \"output_len\": 10}}\n", i * 100_000_000_u64);
    (0..u64::from(n)).map(line).collect()
}
