//! What can be wrong with a workload, where, and what to do about it.

use std::borrow::Cow;
use std::fmt;
use std::io;

use crate::format::WorkloadFormat;

/// A workload that cannot be read, or not be believed.
///
/// `Display` gives place, fault, expectation and remedy, in one line or (`{:#}`) in a line each; the methods give
/// them one by one.
#[derive(Debug)]
pub struct WorkloadError(Box<LocatedFault>);

#[derive(Debug)]
struct LocatedFault {
    input: String,
    line: Option<u64>,
    column: Option<u64>,
    fault: Fault,
}

/// What is wrong.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// The file cannot be opened.
    #[error("cannot be opened: {0}")]
    Open(#[source] io::Error),
    /// The path names a directory.
    #[error("is a directory")]
    Directory,
    /// Reading failed.
    #[error("cannot be read: {0}")]
    Read(#[source] io::Error),
    /// The gzip stream ends too early.
    #[error("the gzip stream ends in the middle")]
    TruncatedGzip,
    /// The gzip stream is damaged.
    #[error("the gzip stream is damaged: {0}")]
    CorruptGzip(#[source] io::Error),
    /// There is no request in it.
    #[error("{0}")]
    Empty(&'static str),
    /// The first line belongs to no known format.
    #[error("unknown format: the first line begins with `{start}`")]
    UnknownFormat {
        /// Its first characters.
        start: String,
    },
    /// A line is too long to be a request.
    #[error("the line is longer than {limit} bytes")]
    LineTooLong {
        /// Bytes that a line may have.
        limit: usize,
    },
    /// The text is not UTF-8.
    #[error("the text is not UTF-8")]
    NotUtf8,
    /// The line is not one JSON object.
    #[error("not a JSON object: {problem}")]
    Json {
        /// The parser's words.
        problem: String,
    },
    /// A field is missing.
    #[error("the {what} `{name}` is missing")]
    Missing {
        /// `field` or `column`.
        what: &'static str,
        /// Its name.
        name: &'static str,
    },
    /// A field is there twice, or as two fields that exclude each other.
    #[error("the {what} `{name}` is given twice{hint}")]
    Duplicate {
        /// `field` or `column`.
        what: &'static str,
        /// Its name.
        name: String,
        /// Which other name gives it too, if any.
        hint: &'static str,
    },
    /// A field that the format does not have.
    #[error("the field `{name}` is unknown")]
    UnknownField {
        /// Its name.
        name: String,
        /// The fields of the format.
        known: &'static str,
    },
    /// A row with too few or too many columns.
    #[error("the row has {found} columns, the header has {expected}")]
    ColumnCount {
        /// Columns of the row.
        found: usize,
        /// Columns of the header.
        expected: usize,
    },
    /// A value that the field cannot have.
    #[error("`{field}` is `{value}`")]
    Value {
        /// The field or column.
        field: &'static str,
        /// The value, shortened if long.
        value: String,
        /// What it may be.
        expected: Cow<'static, str>,
    },
    /// The request arrives before the one above it.
    #[error("arrives at {arrival_ns} ns, before the request above it at {previous_ns} ns")]
    OutOfOrder {
        /// Arrival of this request after the start of the workload.
        arrival_ns: i128,
        /// Arrival of the request before it.
        previous_ns: u64,
    },
    /// The last row has no line break, so it may be half a row.
    #[error("the last row does not end with a line break")]
    Unterminated,
}

impl WorkloadError {
    pub(crate) fn new(input: &str, line: Option<u64>, column: Option<u64>, fault: Fault) -> Self {
        Self(Box::new(LocatedFault { input: input.to_owned(), line, column, fault }))
    }

    /// What is wrong.
    #[must_use]
    pub fn fault(&self) -> &Fault {
        &self.0.fault
    }

    /// Line of the (uncompressed) text, from 1.
    #[must_use]
    pub fn line(&self) -> Option<u64> {
        self.0.line
    }

    /// Byte in the line, from 1.
    #[must_use]
    pub fn column(&self) -> Option<u64> {
        self.0.column
    }

    /// `file:line:column`, as far as known.
    #[must_use]
    pub fn place(&self) -> String {
        let mut place = self.0.input.clone();
        for part in [self.0.line, self.0.column].into_iter().map_while(|part| part) {
            place.push(':');
            place.push_str(&part.to_string());
        }
        place
    }

    /// What would have been right.
    #[must_use]
    pub fn expected(&self) -> Cow<'static, str> {
        self.0.fault.expected()
    }

    /// What to do about it.
    #[must_use]
    pub fn remedy(&self) -> &'static str {
        self.0.fault.remedy()
    }
}

impl fmt::Display for WorkloadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (place, fault, expected, remedy) = (self.place(), &self.0.fault, self.expected(), self.remedy());
        if f.alternate() {
            write!(f, "{place}: {fault}\n  expected: {expected}\n  remedy: {remedy}")
        } else {
            write!(f, "{place}: {fault}; expected {expected}; {remedy}")
        }
    }
}

impl std::error::Error for WorkloadError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        std::error::Error::source(&self.0.fault)
    }
}

impl Fault {
    fn expected(&self) -> Cow<'static, str> {
        match self {
            Self::Open(_) | Self::Read(_) | Self::Directory => "a readable file".into(),
            Self::TruncatedGzip | Self::CorruptGzip(_) => "a whole gzip file".into(),
            Self::Empty(_) => "at least one request".into(),
            Self::UnknownFormat { .. } => WorkloadFormat::RECOGNITION.into(),
            Self::LineTooLong { .. } => "one request per line".into(),
            Self::NotUtf8 => "UTF-8 text, plain or gzipped".into(),
            Self::Json { .. } => "one JSON object per line".into(),
            Self::Missing { what: "column", .. } => "a header that names it".into(),
            Self::Missing { .. } => "it in every request".into(),
            Self::Duplicate { what, .. } => format!("each {what} once").into(),
            Self::UnknownField { known, .. } => (*known).into(),
            Self::ColumnCount { expected, .. } => format!("{expected} columns").into(),
            Self::Value { expected, .. } => expected.clone(),
            Self::OutOfOrder { .. } => "rows in order of arrival".into(),
            Self::Unterminated => "a line break after every row".into(),
        }
    }

    fn remedy(&self) -> &'static str {
        match self {
            Self::Open(_) | Self::Read(_) => "check the path and its permissions",
            Self::Directory => "name one file in it",
            Self::TruncatedGzip | Self::CorruptGzip(_) => "fetch or compress the file again",
            Self::Empty(_) => "check that the right file was given and that it was written to its end",
            Self::UnknownFormat { .. } => "convert the file to one of these (docs/workload-format.md)",
            Self::LineTooLong { .. } => {
                "check that the file is a request trace and that its rows are on lines of their own"
            }
            Self::NotUtf8 => "convert the file to UTF-8; compressions other than gzip have to be undone first",
            Self::Json { .. } => {
                "correct the line; if it is the last one, the file may have been cut off (NaN and Infinity are not JSON)"
            }
            Self::Missing { .. } => "add it",
            Self::Duplicate { .. } => "remove one of them",
            Self::UnknownField { .. } => "correct or remove it",
            Self::ColumnCount { .. } => "correct the row; if it is the last one, the file may have been cut off",
            Self::Value { .. } => "correct the value",
            Self::OutOfOrder { .. } => "sort the file by arrival",
            Self::Unterminated => "the file may have been cut off: fetch it again, or end the row with a line break",
        }
    }
}

/// `text` as it can stand in a message: one line, at most 60 characters.
pub(crate) fn excerpt(text: &str) -> String {
    const MAX_CHARS: usize = 60;
    let mut chars = text.chars();
    let mut out: String = chars.by_ref().take(MAX_CHARS).map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect();
    if chars.next().is_some() {
        out.push('…');
    }
    out
}
