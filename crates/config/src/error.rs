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

/// Every fault of a configuration; at least one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigErrors(Vec<Fault>);

impl ConfigErrors {
    /// `Ok` if there are no faults.
    pub(crate) fn check(faults: Vec<Fault>) -> Result<(), Self> {
        if faults.is_empty() { Ok(()) } else { Err(Self(faults)) }
    }

    /// The faults, in the order of layers, then of settings.
    #[must_use]
    pub fn faults(&self) -> &[Fault] {
        &self.0
    }
}

impl fmt::Display for ConfigErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.as_slice() {
            [fault] => write!(f, "invalid configuration: {fault}"),
            faults => {
                write!(f, "invalid configuration, {} faults:", faults.len())?;
                faults.iter().try_for_each(|fault| write!(f, "\n  {fault}"))
            }
        }
    }
}

impl std::error::Error for ConfigErrors {}
