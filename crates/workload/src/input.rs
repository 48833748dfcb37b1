//! From a path or a reader to plain bytes: files, pipes, gzip.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::path::Path;

use flate2::bufread::MultiGzDecoder;

use crate::error::{Fault, WorkloadError};

/// The first bytes of every gzip file.
const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];

/// Plain bytes of a workload.
pub(crate) struct Input {
    /// As it stands in messages.
    pub(crate) name: String,
    pub(crate) bytes: Box<dyn BufRead + Send>,
    pub(crate) gzipped: bool,
}

impl Input {
    pub(crate) fn open(path: &Path) -> Result<Self, WorkloadError> {
        let name = path.display().to_string();
        let fail = |fault| WorkloadError::new(&name, None, None, fault);
        let file = File::open(path).map_err(|e| fail(Fault::Open(e)))?;
        if file.metadata().map_err(|e| fail(Fault::Open(e)))?.is_dir() {
            return Err(fail(Fault::Directory));
        }
        Self::new(name, BufReader::with_capacity(1 << 16, file))
    }

    /// Looks at the first bytes of `reader` and undoes gzip if they are gzip's.
    pub(crate) fn new(name: String, mut reader: impl BufRead + Send + 'static) -> Result<Self, WorkloadError> {
        let mut head = Vec::with_capacity(GZIP_MAGIC.len());
        // A pipe may give a single byte at a time.
        if let Err(e) = reader.by_ref().take(GZIP_MAGIC.len() as u64).read_to_end(&mut head) {
            return Err(WorkloadError::new(&name, None, None, Fault::Read(e)));
        }
        let gzipped = head == GZIP_MAGIC;
        let whole = Cursor::new(head).chain(reader);
        let bytes: Box<dyn BufRead + Send> =
            if gzipped { Box::new(BufReader::new(MultiGzDecoder::new(whole))) } else { Box::new(whole) };
        Ok(Self { name, bytes, gzipped })
    }

    /// What a failed read means.
    pub(crate) fn read_fault(&self, error: io::Error) -> Fault {
        match error.kind() {
            io::ErrorKind::UnexpectedEof if self.gzipped => Fault::TruncatedGzip,
            io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData if self.gzipped => Fault::CorruptGzip(error),
            _ => Fault::Read(error),
        }
    }
}
