//! One parser per format. A parser turns a line into a [`Row`]; numbering and order are the reader's.

mod azure;
mod json_object;
mod mooncake;
mod stepline;

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use crate::error::{Fault, excerpt};
use crate::request::{MAX_TOKENS, PromptSpec};
use azure::AzureCsv;
use json_object::JsonObject;

/// A format that [`WorkloadReader`](crate::WorkloadReader) recognises.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum WorkloadFormat {
    /// Azure's public traces: calendar timestamps, prompt and output lengths.
    AzureCsv,
    /// Mooncake's public traces: milliseconds, lengths, and ids of 512-token blocks.
    MooncakeJsonl,
    /// Stepline's own, documented in `docs/workload-format.md`.
    SteplineJsonl,
}

impl WorkloadFormat {
    pub(crate) const RECOGNITION: &'static str = "a CSV header with TIMESTAMP, ContextTokens and GeneratedTokens, \
         JSON lines with `timestamp` (Mooncake), or JSON lines with `arrival_s` or `arrival_ns` (Stepline)";
}

impl fmt::Display for WorkloadFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::AzureCsv => "Azure CSV",
            Self::MooncakeJsonl => "Mooncake JSON lines",
            Self::SteplineJsonl => "Stepline JSON lines",
        })
    }
}

/// A request before it has its place in the workload.
pub(crate) struct Row {
    /// After the start of the workload; negative if before, which the reader refuses.
    pub(crate) arrival_ns: i128,
    pub(crate) prompt: PromptSpec,
    pub(crate) output_len: u32,
    pub(crate) priority: i32,
    pub(crate) lora: Option<Arc<str>>,
    pub(crate) cache_salt: Option<Arc<str>>,
    pub(crate) id: Option<Arc<str>>,
}

impl Row {
    /// A row of a format that knows arrivals and lengths only.
    fn new(arrival_ns: i128, prompt: PromptSpec, output_len: u32) -> Self {
        Self { arrival_ns, prompt, output_len, priority: 0, lora: None, cache_salt: None, id: None }
    }
}

/// A fault in a line; the reader knows which line.
pub(crate) struct LineFault {
    /// Byte in the line, from 1.
    pub(crate) column: Option<u64>,
    pub(crate) fault: Box<Fault>,
}

impl LineFault {
    fn new(fault: Fault) -> Self {
        Self { column: None, fault: Box::new(fault) }
    }

    fn at(column: u64, fault: Fault) -> Self {
        Self { column: Some(column), fault: Box::new(fault) }
    }

    fn value(column: u64, field: &'static str, value: &str, expected: impl Into<Cow<'static, str>>) -> Self {
        Self::at(column, Fault::Value { field, value: excerpt(value), expected: expected.into() })
    }
}

/// The parser of a recognised format.
pub(crate) enum Parser {
    AzureCsv(AzureCsv),
    MooncakeJsonl,
    SteplineJsonl,
}

impl Parser {
    /// The parser for a workload with this first line; `None` if no format is known to begin so.
    pub(crate) fn recognise(first_line: &str) -> Result<Option<Self>, LineFault> {
        if first_line.trim_start().starts_with('{') {
            let object = JsonObject::parse(first_line)?;
            let has_any = |names: &[&str]| names.iter().any(|name| object.contains(name));
            return Ok(if has_any(&["arrival_s", "arrival_ns"]) {
                Some(Self::SteplineJsonl)
            } else if has_any(&["timestamp"]) {
                Some(Self::MooncakeJsonl)
            } else {
                None
            });
        }
        Ok(AzureCsv::from_header(first_line)?.map(Self::AzureCsv))
    }

    pub(crate) fn format(&self) -> WorkloadFormat {
        match self {
            Self::AzureCsv(_) => WorkloadFormat::AzureCsv,
            Self::MooncakeJsonl => WorkloadFormat::MooncakeJsonl,
            Self::SteplineJsonl => WorkloadFormat::SteplineJsonl,
        }
    }

    pub(crate) fn parse(&mut self, line: &str) -> Result<Row, LineFault> {
        match self {
            Self::AzureCsv(csv) => csv.parse(line),
            Self::MooncakeJsonl => mooncake::parse(line),
            Self::SteplineJsonl => stepline::parse(line),
        }
    }
}

/// What a number of tokens may be.
fn expected_tokens() -> String {
    format!("a whole number of tokens from 1 to {MAX_TOKENS}")
}
