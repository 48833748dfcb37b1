//! Faults of a configuration, and where its values come from.

use std::fmt;
use std::path::PathBuf;

/// Where a value comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The documented default.
    Default,
    /// Computed from other settings; says how.
    Derived(&'static str),
    /// A configuration file; the line counts from 1.
    File {
        /// The path as it was given.
        path: PathBuf,
        /// The line of the key or value, if a line is to blame.
        line: Option<usize>,
    },
    /// The environment variable of this name.
    Variable(String),
    /// The flag of this name, with its dashes.
    Flag(String),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::Derived(how) => write!(f, "derived: {how}"),
            Self::File { path, line: Some(line) } => write!(f, "{}:{line}", path.display()),
            Self::File { path, line: None } => path.display().fmt(f),
            Self::Variable(name) | Self::Flag(name) => f.write_str(name),
        }
    }
}

/// What is wrong with a value or an input.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// Wrong type, or out of range.
    #[error("must be {allowed}")]
    NotAllowed {
        /// What would be right.
        allowed: String,
    },
    /// Two settings contradict each other.
    #[error("{rule}")]
    Conflict {
        /// The broken rule and how to obey it.
        rule: String,
    },
    /// No setting has this name.
    #[error("no such setting{}", nearest.map(|name| format!("; did you mean `{name}`?")).unwrap_or_default())]
    Unknown {
        /// The known name that is most like it.
        nearest: Option<&'static str>,
    },
    /// A table of settings; no setting has its name.
    #[error("is a table, but configuration files are flat: write its settings at the top level, without it")]
    Nested,
    /// The same setting twice in one file.
    #[error("given twice; the first is at line {first_line}")]
    Duplicate {
        /// The line of the first one.
        first_line: usize,
    },
    /// A file or variable that cannot be read as a configuration at all.
    #[error("{reason}")]
    Unreadable {
        /// Why, and what to do.
        reason: String,
    },
}

/// One fault of a configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The setting as it was named; empty if the whole input is at fault.
    pub field: String,
    /// The value, shortened if long; absent if there is none.
    pub value: Option<String>,
    /// What is wrong.
    pub problem: Problem,
    /// Where the value comes from; absent for configurations made by code.
    pub origin: Option<Origin>,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(origin) = &self.origin {
            write!(f, "{origin}: ")?;
        }
        match (self.field.as_str(), &self.value) {
            ("", _) => {}
            (field, None) => write!(f, "{field}: ")?,
            (field, Some(value)) => write!(f, "{field} = {value}: ")?,
        }
        self.problem.fmt(f)
    }
}

/// Faults that are kept: more only say again that the input is something else.
pub(crate) const MAX_KEPT: usize = 1000;
/// Faults that are printed: about a screen.
const MAX_PRINTED: usize = 20;

/// The faults of a configuration; at least one.
///
/// Prints the first 20, and how many more there are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigErrors {
    /// The first [`MAX_KEPT`] of them.
    kept: Vec<Fault>,
    num_faults: usize,
}

impl ConfigErrors {
    /// `Ok` if there are no faults.
    pub(crate) fn check(mut faults: Vec<Fault>) -> Result<(), Self> {
        let num_faults = faults.len();
        if num_faults == 0 {
            return Ok(());
        }
        faults.truncate(MAX_KEPT);
        Err(Self { kept: faults, num_faults })
    }

    /// The faults, in the order of layers, then of settings; of more than 1000, the first 1000.
    #[must_use]
    pub fn faults(&self) -> &[Fault] {
        &self.kept
    }

    /// How many faults there are, those that were not kept included.
    #[must_use]
    pub const fn num_faults(&self) -> usize {
        self.num_faults
    }
}

impl fmt::Display for ConfigErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let [fault] = self.kept.as_slice() {
            return write!(f, "invalid configuration: {fault}");
        }
        write!(f, "invalid configuration, {} faults:", self.num_faults)?;
        self.kept.iter().take(MAX_PRINTED).try_for_each(|fault| write!(f, "\n  {fault}"))?;
        match self.num_faults.saturating_sub(MAX_PRINTED) {
            0 => Ok(()),
            1 => f.write_str("\n  and 1 more fault"),
            num_more => write!(f, "\n  and {num_more} more faults"),
        }
    }
}

impl std::error::Error for ConfigErrors {}
