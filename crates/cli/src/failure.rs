//! How a command fails: a readable block, and an exit code.

use std::fmt;
use std::process::ExitCode;

use stepline_workload::WorkloadError;

/// A command that could not do its work.
#[derive(Debug)]
pub(crate) struct Failure {
    kind: Kind,
    message: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// What the user gave is wrong.
    Usage,
    /// What the user gave is right, and it went wrong all the same.
    Runtime,
    /// Whoever read the output has gone away; there is nobody to tell.
    NobodyListens,
}

impl Failure {
    /// Wrong flags, configuration or input: exit code 2.
    pub(crate) fn usage(message: impl fmt::Display) -> Self {
        Self { kind: Kind::Usage, message: message.to_string() }
    }

    /// A failure on the way: exit code 1.
    pub(crate) fn runtime(message: impl fmt::Display) -> Self {
        Self { kind: Kind::Runtime, message: message.to_string() }
    }

    /// Standard output that cannot be written; silent if its reader closed it.
    pub(crate) fn stdout(error: &std::io::Error) -> Self {
        let kind = if error.kind() == std::io::ErrorKind::BrokenPipe { Kind::NobodyListens } else { Kind::Runtime };
        Self { kind, message: format!("standard output: cannot be written: {error}") }
    }

    /// Tells the user and gives the exit code.
    pub(crate) fn report(&self) -> ExitCode {
        if self.kind != Kind::NobodyListens {
            say("error", &self.message);
        }
        match self.kind {
            Kind::Usage => ExitCode::from(2),
            Kind::Runtime => ExitCode::from(1),
            Kind::NobodyListens => ExitCode::SUCCESS,
        }
    }
}

impl From<WorkloadError> for Failure {
    fn from(error: WorkloadError) -> Self {
        Self::usage(format_args!("{error:#}"))
    }
}

/// Prints `error: …`, `warning: …` or `note: …` to standard error, further lines indented.
///
/// What standard error does not take is lost: there is no other place to complain.
pub(crate) fn say(kind: &str, message: &str) {
    use std::io::Write;
    let _ = writeln!(std::io::stderr().lock(), "{kind}: {message}");
}
