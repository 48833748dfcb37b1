//! Azure's public LLM inference traces (2023 and later with the same columns).
//!
//! ```text
//! TIMESTAMP,ContextTokens,GeneratedTokens
//! 2023-11-16 18:15:46.6805900,374,44
//! ```
//!
//! Arrivals count from the first row. Timestamps without an offset are taken as UTC, like the originals.

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;

use super::{LineFault, Row, expected_tokens};
use crate::error::Fault;
use crate::request::{MAX_ARRIVAL_NS, MAX_TOKENS, PromptSpec};

const COLUMNS: [&str; 3] = ["TIMESTAMP", "ContextTokens", "GeneratedTokens"];

/// The columns of a trace and the moment of its first row.
pub(crate) struct AzureCsv {
    /// Position in the row, in the order of [`COLUMNS`].
    position: [usize; 3],
    num_columns: usize,
    start_ns: Option<i128>,
}

impl AzureCsv {
    /// Reads the header; `None` if it has none of the columns.
    pub(crate) fn from_header(line: &str) -> Result<Option<Self>, LineFault> {
        let header: Vec<&str> = line.split(',').map(str::trim).collect();
        if !COLUMNS.iter().any(|name| header.contains(name)) {
            return Ok(None);
        }
        let mut position = [0; 3];
        for (slot, name) in position.iter_mut().zip(COLUMNS) {
            let mut found = header.iter().enumerate().filter(|(_, column)| **column == name);
            let Some((index, _)) = found.next() else {
                return Err(LineFault::new(Fault::Missing { what: "column", name }));
            };
            if found.next().is_some() {
                return Err(LineFault::new(Fault::Duplicate { what: "column", name: name.to_owned(), hint: "" }));
            }
            *slot = index;
        }
        Ok(Some(Self { position, num_columns: header.len(), start_ns: None }))
    }

    pub(crate) fn parse(&mut self, line: &str) -> Result<Row, LineFault> {
        let found = line.split(',').count();
        if found != self.num_columns {
            return Err(LineFault::new(Fault::ColumnCount { found, expected: self.num_columns }));
        }
        let cell = |column: usize| Cell::find(line, COLUMNS[column], self.position[column]);
        let timestamp = cell(0);
        let now_ns = timestamp.timestamp_ns()?;
        let start_ns = self.start_ns.unwrap_or(now_ns);
        let arrival_ns = now_ns - start_ns;
        if arrival_ns > i128::from(MAX_ARRIVAL_NS) {
            return Err(timestamp.fault(format!("at most {MAX_ARRIVAL_NS} ns after the first row")));
        }
        let row = Row::new(arrival_ns, PromptSpec::Length(cell(1).num_tokens()?), cell(2).num_tokens()?);
        self.start_ns = Some(start_ns);
        Ok(row)
    }
}

/// One value of a row.
struct Cell<'a> {
    name: &'static str,
    text: &'a str,
    column: u64,
}

impl<'a> Cell<'a> {
    fn find(line: &'a str, name: &'static str, position: usize) -> Self {
        let text = line.split(',').nth(position).unwrap_or_default();
        let column = (text.as_ptr().addr() - line.as_ptr().addr()) as u64 + 1;
        Self { name, text: text.trim(), column }
    }

    fn timestamp_ns(&self) -> Result<i128, LineFault> {
        let parse = || -> Result<Timestamp, jiff::Error> {
            // `Timestamp` wants an offset, `DateTime` ignores one: the order matters.
            if let Ok(with_offset) = self.text.parse::<Timestamp>() {
                return Ok(with_offset);
            }
            TimeZone::UTC.to_timestamp(self.text.parse::<DateTime>()?)
        };
        parse().map(Timestamp::as_nanosecond).map_err(|_| self.fault("a timestamp like 2023-11-16 18:15:46.6805900"))
    }

    fn num_tokens(&self) -> Result<u32, LineFault> {
        match self.text.parse::<u32>() {
            Ok(num_tokens @ 1..=MAX_TOKENS) => Ok(num_tokens),
            _ => Err(self.fault(expected_tokens())),
        }
    }

    fn fault(&self, expected: impl Into<std::borrow::Cow<'static, str>>) -> LineFault {
        LineFault::value(self.column, self.name, self.text, expected)
    }
}
