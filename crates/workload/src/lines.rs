//! Lines with their numbers, bounded in length.

use std::io::{self, BufRead};

use crate::error::{Fault, WorkloadError};
use crate::input::Input;

/// Longest line, in bytes: room for a prompt of some two million token ids.
pub(crate) const MAX_LINE_BYTES: usize = 16 << 20;

const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// The lines of an input, one at a time, in one buffer.
pub(crate) struct Lines {
    input: Input,
    buffer: Vec<u8>,
    number: u64,
    terminated: bool,
}

impl Lines {
    pub(crate) fn new(input: Input) -> Self {
        Self { input, buffer: Vec::new(), number: 0, terminated: true }
    }

    pub(crate) fn input_name(&self) -> &str {
        &self.input.name
    }

    /// Goes on to the next line that is not blank. `false` at the end.
    ///
    /// Line ends are `\n` or `\r\n`; a byte-order mark before the first line is no part of it.
    pub(crate) fn advance(&mut self) -> Result<bool, WorkloadError> {
        loop {
            self.buffer.clear();
            self.terminated = false;
            self.number += 1;
            if !self.read_line()? {
                return Ok(false);
            }
            if self.number == 1 && self.buffer.starts_with(BYTE_ORDER_MARK) {
                self.buffer.drain(..BYTE_ORDER_MARK.len());
            }
            if !self.buffer.trim_ascii().is_empty() {
                return Ok(true);
            }
        }
    }

    /// The line that `advance` went to.
    pub(crate) fn current(&self) -> Result<&str, WorkloadError> {
        std::str::from_utf8(&self.buffer).map_err(|e| self.error(Some(e.valid_up_to() as u64 + 1), Fault::NotUtf8))
    }

    /// Whether the current line ends with a line break, not with the input.
    pub(crate) fn is_terminated(&self) -> bool {
        self.terminated
    }

    /// A fault of the current line.
    pub(crate) fn error(&self, column: Option<u64>, fault: Fault) -> WorkloadError {
        WorkloadError::new(&self.input.name, Some(self.number), column, fault)
    }

    /// `false` if there is nothing left.
    fn read_line(&mut self) -> Result<bool, WorkloadError> {
        loop {
            let chunk = match self.input.bytes.fill_buf() {
                Ok(chunk) => chunk,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                Err(e) => {
                    let fault = self.input.read_fault(e);
                    return Err(self.error(None, fault));
                }
            };
            if chunk.is_empty() {
                return Ok(!self.buffer.is_empty());
            }
            let line_end = chunk.iter().position(|&b| b == b'\n');
            let part = &chunk[..line_end.unwrap_or(chunk.len())];
            if self.buffer.len() + part.len() > MAX_LINE_BYTES {
                return Err(self.error(None, Fault::LineTooLong { limit: MAX_LINE_BYTES }));
            }
            self.buffer.extend_from_slice(part);
            let used = part.len() + usize::from(line_end.is_some());
            self.input.bytes.consume(used);
            if line_end.is_some() {
                self.terminated = true;
                if self.buffer.last() == Some(&b'\r') {
                    self.buffer.pop();
                }
                return Ok(true);
            }
        }
    }
}
