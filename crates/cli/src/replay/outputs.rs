//! Where the results go.

use std::io::{self, Write};
use std::path::Path;

use super::results::Results;
use crate::failure::Failure;
use crate::output_file::OutputFile;

/// Looks whether `--json` can be written.
pub(super) fn prepare_json(path: &Path) -> Result<OutputFile, Failure> {
    OutputFile::prepare(path).map_err(|e| {
        Failure::usage(format_args!(
            "--json: `{}` cannot be written: {e}\n  expected: a file in a directory that exists and can be written\n  \
             remedy: give another path, or `-` for standard output",
            path.display()
        ))
    })
}

/// Writes the results, then the table to standard output, unless the results go there.
///
/// The file comes first and does not depend on the table: standard output may be closed early, as `head` does.
pub(super) fn write(results: &Results<'_>, json: Option<&OutputFile>, table: &str) -> Result<(), Failure> {
    let print = |out: &mut dyn Write| out.write_all(table.as_bytes()).and_then(|()| out.flush());
    let written = json.map_or(Ok(()), |file| {
        file.write(&results.to_json()).map_err(|e| match file {
            OutputFile::Stdout => Failure::stdout(&e),
            OutputFile::Direct(path) | OutputFile::Replaced(path) => {
                Failure::runtime(format_args!("--json: `{}` cannot be written: {e}", path.display()))
            }
        })
    });
    let printed = if json == Some(&OutputFile::Stdout) {
        let _ = print(&mut io::stderr().lock());
        Ok(())
    } else {
        print(&mut io::stdout().lock()).map_err(|e| Failure::stdout(&e))
    };
    Failure::all([written, printed])
}
