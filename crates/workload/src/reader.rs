//! The stream of requests of a workload.

use std::io::{BufReader, Read};
use std::path::Path;
use std::sync::Arc;

use crate::error::{Fault, WorkloadError, excerpt};
use crate::format::{Parser, WorkloadFormat};
use crate::input::Input;
use crate::lines::Lines;
use crate::request::RequestSpec;

/// Reads a workload, one request at a time, in order of arrival.
///
/// After an error the iterator ends: what follows a broken row is not to be trusted.
pub struct WorkloadReader {
    lines: Lines,
    parser: Parser,
    /// The current line, looked at for its format, is still to be read as a request.
    first_is_request: bool,
    ordinal: u64,
    last_arrival_ns: u64,
    ended: bool,
}

impl WorkloadReader {
    /// Opens a file, plain or gzipped, and recognises its format.
    ///
    /// # Errors
    /// If it cannot be read, is empty, or its first line belongs to no known format.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, WorkloadError> {
        Self::new(Input::open(path.as_ref())?)
    }

    /// Reads from anything; `name` stands in messages where the path of a file would.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn from_reader(name: impl Into<String>, reader: impl Read + Send + 'static) -> Result<Self, WorkloadError> {
        Self::new(Input::new(name.into(), BufReader::new(reader))?)
    }

    /// The recognised format.
    #[must_use]
    pub fn format(&self) -> WorkloadFormat {
        self.parser.format()
    }

    /// The path or name given.
    #[must_use]
    pub fn name(&self) -> &str {
        self.lines.input_name()
    }

    fn new(input: Input) -> Result<Self, WorkloadError> {
        let mut lines = Lines::new(input);
        if !lines.advance()? {
            return Err(WorkloadError::new(lines.input_name(), None, None, Fault::Empty("is empty")));
        }
        let first = lines.current()?;
        let parser = match Parser::recognise(first) {
            Ok(Some(parser)) => parser,
            Ok(None) => return Err(lines.error(None, Fault::UnknownFormat { start: excerpt(first.trim()) })),
            Err(e) => return Err(lines.error(e.column, *e.fault)),
        };
        let first_is_request = parser.format() != WorkloadFormat::AzureCsv;
        if !first_is_request && !lines.is_terminated() {
            return Err(lines.error(None, Fault::Empty("has a header and no rows")));
        }
        Ok(Self { lines, parser, first_is_request, ordinal: 0, last_arrival_ns: 0, ended: false })
    }

    fn read(&mut self) -> Result<Option<RequestSpec>, WorkloadError> {
        if !std::mem::take(&mut self.first_is_request) && !self.lines.advance()? {
            if self.ordinal == 0 {
                return Err(self.lines.error(None, Fault::Empty("has a header and no rows")));
            }
            return Ok(None);
        }
        let parsed = self.parser.parse(self.lines.current()?);
        let row = parsed.map_err(|e| self.lines.error(e.column, *e.fault))?;
        // Half a CSV row can look like a whole one; half a JSON object cannot.
        if self.format() == WorkloadFormat::AzureCsv && !self.lines.is_terminated() {
            return Err(self.lines.error(None, Fault::Unterminated));
        }
        let previous_ns = self.last_arrival_ns;
        let arrival_ns = match u64::try_from(row.arrival_ns) {
            Ok(arrival_ns) if arrival_ns >= previous_ns => arrival_ns,
            _ => return Err(self.lines.error(None, Fault::OutOfOrder { arrival_ns: row.arrival_ns, previous_ns })),
        };
        let ordinal = self.ordinal;
        self.last_arrival_ns = arrival_ns;
        self.ordinal += 1;
        Ok(Some(RequestSpec {
            ordinal,
            id: row.id.unwrap_or_else(|| Arc::from(format!("req-{ordinal}"))),
            arrival_ns,
            prompt: row.prompt,
            output_len: row.output_len,
            priority: row.priority,
            lora: row.lora,
            cache_salt: row.cache_salt,
        }))
    }
}

impl Iterator for WorkloadReader {
    type Item = Result<RequestSpec, WorkloadError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let item = self.read().transpose();
        self.ended = !matches!(item, Some(Ok(_)));
        item
    }
}

impl std::iter::FusedIterator for WorkloadReader {}

impl std::fmt::Debug for WorkloadReader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WorkloadReader")
            .field("name", &self.name())
            .field("format", &self.format())
            .field("requests_read", &self.ordinal)
            .finish_non_exhaustive()
    }
}
