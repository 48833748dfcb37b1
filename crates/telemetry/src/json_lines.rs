//! A trace file: one JSON object on each line.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use stepline_tracing_schema::{BatchSummary, JourneyEvent, JourneyStart, RequestSnapshot, SinkError, TraceSink};

use crate::error::TelemetryError;
use crate::report::FileReport;

/// Lines are collected up to this many bytes before they are written.
const BUFFER_BYTES: usize = 256 << 10;

/// Where lines go: something that can be cut back to its last whole line.
pub trait LineFile: Write {
    /// Cuts the file to its first `len` bytes, and goes on writing there.
    ///
    /// # Errors
    /// If the file cannot be cut, as a pipe or a device cannot.
    fn truncate(&mut self, len: u64) -> io::Result<()>;
}

impl LineFile for File {
    fn truncate(&mut self, len: u64) -> io::Result<()> {
        use std::io::{Seek as _, SeekFrom};

        self.set_len(len)?;
        self.seek(SeekFrom::Start(len))?;
        Ok(())
    }
}

/// A [`TraceSink`] that writes every record as a line of JSON.
///
/// The file holds whole lines at any time when nothing is being written, also after a fault: lines are written many at
/// once, and what a failed write left of a line is cut off again. The first fault ends the trace.
#[derive(Debug)]
pub struct JsonLinesSink<F: LineFile = File> {
    file: F,
    /// Whole lines that are not written yet.
    buffer: Vec<u8>,
    /// Bytes in the file, all of them whole lines.
    num_bytes: u64,
    report: Arc<Mutex<FileReport>>,
    /// No more writing: a fault, or the end.
    is_closed: bool,
}

impl JsonLinesSink<File> {
    /// Creates the file, or empties it if there is one.
    ///
    /// # Errors
    /// If the file cannot be created.
    pub fn create(path: &Path) -> Result<Self, TelemetryError> {
        match File::create(path) {
            Ok(file) => Ok(Self::new(file, path.to_owned())),
            Err(source) => Err(TelemetryError::TraceFile { path: path.to_owned(), source }),
        }
    }
}

impl<F: LineFile> JsonLinesSink<F> {
    /// Writes to `file`, which is empty; `path` names it in messages.
    pub fn new(file: F, path: PathBuf) -> Self {
        let report = FileReport { path, ..FileReport::default() };
        Self {
            file,
            buffer: Vec::with_capacity(BUFFER_BYTES),
            num_bytes: 0,
            report: Arc::new(Mutex::new(report)),
            is_closed: false,
        }
    }

    /// Returns what the sink has done so far; it goes on counting after the sink has been given away.
    pub fn report(&self) -> Arc<Mutex<FileReport>> {
        Arc::clone(&self.report)
    }

    fn take(&mut self, record: &impl serde::Serialize) -> Result<(), SinkError> {
        if self.is_closed {
            return Ok(());
        }
        let start_of_line = self.buffer.len();
        if let Err(error) = serde_json::to_writer(&mut self.buffer, record) {
            self.buffer.truncate(start_of_line);
            return Err(self.fail("encode a record", error.into()));
        }
        self.buffer.push(b'\n');
        self.update(|report| report.records += 1);
        if self.buffer.len() >= BUFFER_BYTES { self.flush() } else { Ok(()) }
    }

    /// Writes the lines collected.
    fn flush(&mut self) -> Result<(), SinkError> {
        let (num_written, outcome) = write_all_counting(&mut self.file, &self.buffer);
        let lines = match &outcome {
            Ok(()) => self.buffer.len(),
            // Only what ends in a line feed stays.
            Err(_) => self.buffer[..num_written].iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1),
        };
        let num_lines = self.buffer[..lines].split(|byte| *byte == b'\n').count() - 1;
        self.num_bytes += lines as u64;
        self.update(|report| report.written += num_lines as u64);
        self.buffer.clear();
        let Err(error) = outcome else { return Ok(()) };
        if num_written > lines
            && let Err(cut) = self.file.truncate(self.num_bytes)
        {
            let half = format!("{error}; the file ends in half a line, which could not be cut off: {cut}");
            return Err(self.fail("write", half.into()));
        }
        Err(self.fail("write", error.into()))
    }

    fn fail(&mut self, operation: &'static str, error: Box<dyn std::error::Error + Send + Sync>) -> SinkError {
        self.is_closed = true;
        self.buffer = Vec::new();
        let mut path = PathBuf::new();
        self.update(|report| {
            report.error = Some(format!("{operation}: {error}"));
            path.clone_from(&report.path);
        });
        SinkError::new(format!("file `{}`", path.display()), operation, error)
    }

    fn update(&self, change: impl FnOnce(&mut FileReport)) {
        // A panic elsewhere leaves counters that are still right.
        change(&mut self.report.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

/// Writes `bytes`, and returns how many of them were taken.
fn write_all_counting(file: &mut impl Write, bytes: &[u8]) -> (usize, io::Result<()>) {
    let mut num_written = 0;
    while num_written < bytes.len() {
        match file.write(&bytes[num_written..]) {
            Ok(0) => return (num_written, Err(io::ErrorKind::WriteZero.into())),
            Ok(more) => num_written += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return (num_written, Err(error)),
        }
    }
    (num_written, file.flush())
}

impl<F: LineFile> TraceSink for JsonLinesSink<F> {
    fn batch_summary(&mut self, record: &BatchSummary) -> Result<(), SinkError> {
        self.take(record)
    }

    fn request_snapshot(&mut self, record: &RequestSnapshot) -> Result<(), SinkError> {
        self.take(record)
    }

    /// Writes nothing: intervals shape spans, and a file has none.
    fn interval_closed(&mut self, _step: u64, _ts_monotonic_ns: u64) -> Result<(), SinkError> {
        Ok(())
    }

    /// Writes nothing: the journey's first event follows.
    fn journey_started(&mut self, _start: &JourneyStart) -> Result<(), SinkError> {
        Ok(())
    }

    fn journey_event(&mut self, event: &JourneyEvent) -> Result<(), SinkError> {
        self.take(event)
    }

    fn shutdown(&mut self, _last_step: u64, _ts_monotonic_ns: u64) -> Result<(), SinkError> {
        if self.is_closed {
            return Ok(());
        }
        self.flush()?;
        self.is_closed = true;
        Ok(())
    }
}

impl<F: LineFile> Drop for JsonLinesSink<F> {
    fn drop(&mut self) {
        // Without a shutdown, as after a panic: what is complete is worth keeping. The report has the outcome.
        if !self.is_closed {
            let _reported = self.flush();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::rc::Rc;

    use stepline_tracing_schema::{RequestPhase, TraceRecord};

    use super::*;

    /// A disk with room for some bytes.
    #[derive(Debug, Clone)]
    struct FullDisk {
        content: Rc<RefCell<Vec<u8>>>,
        room: usize,
        can_truncate: bool,
    }

    impl Write for FullDisk {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let mut content = self.content.borrow_mut();
            let taken = bytes.len().min(self.room - content.len());
            if taken == 0 {
                return Err(io::Error::new(io::ErrorKind::StorageFull, "no room"));
            }
            content.extend_from_slice(&bytes[..taken]);
            Ok(taken)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl LineFile for FullDisk {
        fn truncate(&mut self, len: u64) -> io::Result<()> {
            if !self.can_truncate {
                return Err(io::ErrorKind::InvalidInput.into());
            }
            self.content.borrow_mut().truncate(usize::try_from(len).expect("it fits memory"));
            Ok(())
        }
    }

    fn snapshot(step_id: u64) -> RequestSnapshot {
        RequestSnapshot {
            step_id,
            request_id: "A".into(),
            phase: RequestPhase::Decode,
            num_prompt_tokens: 1,
            num_computed_tokens: 2,
            num_output_tokens: 3,
            num_preemptions: 4,
            scheduled_tokens_this_step: 5,
            kv_blocks_allocated_gpu: 6,
            kv_blocks_cached_gpu: 7,
            effective_prompt_len: Some(8),
        }
    }

    fn line_bytes() -> usize {
        serde_json::to_string(&snapshot(0)).expect("a record is JSON").len() + 1
    }

    fn disk(room: usize) -> FullDisk {
        FullDisk { content: Rc::default(), room, can_truncate: true }
    }

    #[track_caller]
    fn check_whole_lines(content: &[u8], expected_steps: std::ops::Range<u64>) {
        let text = std::str::from_utf8(content).expect("the file is text");
        assert!(text.is_empty() || text.ends_with('\n'), "the file ends in half a line");
        let steps: Vec<_> =
            text.lines().map(|line| serde_json::from_str::<TraceRecord>(line).expect("a record")).collect();
        let expected: Vec<_> = expected_steps.map(|step| TraceRecord::from(snapshot(step))).collect();
        assert_eq!(steps, expected);
    }

    #[test]
    fn a_full_disk_leaves_whole_lines_and_switches_the_sink_off() {
        let disk = disk(2 * line_bytes() + 10);
        let mut sink = JsonLinesSink::new(disk.clone(), "t.jsonl".into());
        for step in 0..4 {
            sink.request_snapshot(&snapshot(step)).expect("lines are only collected");
        }
        let error = sink.shutdown(4, 0).expect_err("the disk is full");
        assert_eq!(error.to_string(), "trace sink file `t.jsonl`: write: no room");
        check_whole_lines(&disk.content.borrow(), 0..2);
        let report = sink.report().lock().expect("nothing panicked").clone();
        assert_eq!((report.records, report.written), (4, 2));
        assert_eq!(report.error.as_deref(), Some("write: no room"));

        sink.request_snapshot(&snapshot(9)).expect("a closed sink takes no more");
        drop(sink);
        check_whole_lines(&disk.content.borrow(), 0..2);
    }

    #[test]
    fn a_file_that_cannot_be_cut_is_said_to_end_in_half_a_line() {
        let disk = FullDisk { can_truncate: false, ..disk(line_bytes() / 2) };
        let mut sink = JsonLinesSink::new(disk, "pipe".into());
        sink.request_snapshot(&snapshot(0)).expect("the line is only collected");
        let error = sink.shutdown(1, 0).expect_err("the disk is full");
        assert!(error.to_string().contains("the file ends in half a line"), "{error}");
    }

    #[test]
    fn a_sink_that_is_dropped_without_shutdown_has_written_its_lines() {
        let disk = disk(1 << 20);
        let mut sink = JsonLinesSink::new(disk.clone(), "t.jsonl".into());
        sink.request_snapshot(&snapshot(0)).expect("there is room");
        assert!(disk.content.borrow().is_empty(), "the line was not collected");
        drop(sink);
        check_whole_lines(&disk.content.borrow(), 0..1);
    }

    #[test]
    fn many_records_are_written_before_the_end_and_all_of_them_stand_in_the_file() {
        let disk = disk(8 << 20);
        let mut sink = JsonLinesSink::new(disk.clone(), "t.jsonl".into());
        for step in 0..3_000 {
            sink.request_snapshot(&snapshot(step)).expect("there is room");
        }
        assert!(disk.content.borrow().len() > BUFFER_BYTES, "everything waits for the end");
        sink.shutdown(3_000, 0).expect("there is room");
        check_whole_lines(&disk.content.borrow(), 0..3_000);
        let report = sink.report().lock().expect("nothing panicked").clone();
        assert_eq!((report.records, report.written, report.error), (3_000, 3_000, None));
    }
}
