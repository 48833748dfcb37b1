//! How a command fails: a readable block, and an exit code.

use std::fmt;
use std::process::ExitCode;

use stepline_workload::WorkloadError;

use crate::interrupt::Signal;

/// A command that could not do its work.
#[derive(Debug)]
pub(crate) struct Failure {
    kind: Kind,
    messages: Vec<String>,
}

/// From the mildest to the one that decides the exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    /// Whoever read the output has gone away; there is nobody to tell.
    NobodyListens,
    /// Somebody wanted no more.
    Interrupted(Signal),
    /// What the user gave is right, and it went wrong all the same.
    Runtime,
    /// What the user gave is wrong.
    Usage,
}

impl Failure {
    /// Wrong flags, configuration or input: exit code 2.
    pub(crate) fn usage(message: impl fmt::Display) -> Self {
        Self { kind: Kind::Usage, messages: vec![message.to_string()] }
    }

    /// A failure on the way: exit code 1.
    pub(crate) fn runtime(message: impl fmt::Display) -> Self {
        Self { kind: Kind::Runtime, messages: vec![message.to_string()] }
    }

    /// Standard output that cannot be written; silent if its reader closed it.
    pub(crate) fn stdout(error: &std::io::Error) -> Self {
        if error.kind() == std::io::ErrorKind::BrokenPipe {
            return Self { kind: Kind::NobodyListens, messages: Vec::new() };
        }
        Self::runtime(format_args!("standard output: cannot be written: {error}"))
    }

    /// A signal: the exit code that shells give it.
    pub(crate) fn interrupted(signal: Signal) -> Self {
        let message = format!("interrupted by {}: the results are of what was done until then", signal.name());
        Self { kind: Kind::Interrupted(signal), messages: vec![message] }
    }

    /// All failures as one: every message, and the exit code of the worst.
    pub(crate) fn all(outcomes: impl IntoIterator<Item = Result<(), Self>>) -> Result<(), Self> {
        let failures = outcomes.into_iter().filter_map(Result::err);
        let joined = failures.reduce(|mut all, next| {
            all.kind = all.kind.max(next.kind);
            all.messages.extend(next.messages);
            all
        });
        joined.map_or(Ok(()), Err)
    }

    /// Tells the user and gives the exit code.
    pub(crate) fn report(&self) -> ExitCode {
        for message in &self.messages {
            say("error", message);
        }
        match self.kind {
            Kind::Usage => ExitCode::from(2),
            Kind::Runtime => ExitCode::from(1),
            Kind::Interrupted(signal) => ExitCode::from(signal.exit_code()),
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
/// Control characters but line breaks are escaped: what a message quotes must not steer a terminal. What standard error
/// does not take is lost: there is no other place to complain.
pub(crate) fn say(kind: &str, message: &str) {
    use std::io::Write;
    let lines: Vec<_> = message.split('\n').map(escaped).collect();
    let _ = writeln!(std::io::stderr().lock(), "{kind}: {}", lines.join("\n"));
}

/// A line of text, control characters and line breaks escaped.
pub(crate) fn escaped(line: &str) -> String {
    let mut out = String::with_capacity(line.len());
    for character in line.chars() {
        if character.is_control() {
            out.extend(character.escape_default());
        } else {
            out.push(character);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_do_not_reach_the_terminal() {
        assert_eq!(escaped("a\u{1b}[2Jb\n\u{9b}c é"), "a\\u{1b}[2Jb\\n\\u{9b}c é");
    }

    #[test]
    fn the_worst_failure_decides_and_none_is_silent() {
        let gone = Failure::stdout(&std::io::ErrorKind::BrokenPipe.into());
        let all = Failure::all([Err(gone), Ok(()), Err(Failure::runtime("a")), Err(Failure::runtime("b"))]);
        let all = all.expect_err("there are failures");
        assert_eq!((all.kind, all.messages), (Kind::Runtime, vec!["a".to_owned(), "b".to_owned()]));
        assert!(Failure::all([Ok(()), Ok(())]).is_ok());
    }
}
