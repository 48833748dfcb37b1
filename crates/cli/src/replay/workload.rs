//! The workload of a replay.

use std::fs;
use std::io;
use std::path::Path;

use stepline_workload::{EMBEDDED_SAMPLE, WorkloadReader};

use crate::failure::{Failure, say};

/// Opens the workload, after a look through it if it is a file: a fault in its last row is found before the replay, and
/// the progress bar knows how many requests there are.
pub(super) fn open(path: Option<&Path>, max_requests: Option<u64>) -> Result<(WorkloadReader, Option<u64>), Failure> {
    let Some(path) = path else {
        let sample = EMBEDDED_SAMPLE;
        say(
            "note",
            &format!(
                "no WORKLOAD given, replaying the embedded sample\n  {}\n  {}; {}",
                sample.name, sample.origin, sample.licence
            ),
        );
        let total = count(sample.reader()?, max_requests)?;
        return Ok((sample.reader()?, Some(total)));
    };
    if path == Path::new("-") {
        return Ok((WorkloadReader::from_reader("standard input", io::stdin())?, None));
    }
    if !fs::metadata(path).is_ok_and(|metadata| metadata.is_file()) {
        return Ok((WorkloadReader::open(path)?, None)); // a pipe can be read only once; all else fails here
    }
    let total = count(WorkloadReader::open(path)?, max_requests)?;
    Ok((WorkloadReader::open(path)?, Some(total)))
}

fn count(workload: WorkloadReader, max_requests: Option<u64>) -> Result<u64, Failure> {
    let mut total = 0;
    for request in workload {
        request?;
        total += 1;
        if Some(total) == max_requests {
            break;
        }
    }
    Ok(total)
}
