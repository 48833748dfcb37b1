//! Files that are written whole or not at all.

use std::ffi::OsStr;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

/// Where a result goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum OutputFile {
    /// Standard output, given as `-`.
    Stdout,
    /// A file that a finished one replaces.
    Replaced(PathBuf),
    /// A device or pipe, which can only be written into.
    Direct(PathBuf),
}

impl OutputFile {
    /// Looks whether `path` can be written, before the work begins.
    pub(crate) fn prepare(path: &Path) -> io::Result<Self> {
        if path == OsStr::new("-") {
            return Ok(Self::Stdout);
        }
        match fs::metadata(path) {
            Ok(metadata) if metadata.is_dir() => Err(io::Error::from(io::ErrorKind::IsADirectory)),
            Ok(metadata) if !metadata.is_file() => Ok(Self::Direct(path.to_owned())),
            // Through a symbolic link, so that the link stays.
            Ok(_) => Self::replaced(fs::canonicalize(path)?),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Self::replaced(path.to_owned()),
            Err(error) => Err(error),
        }
    }

    /// Writes `content` to its end or leaves what was there.
    pub(crate) fn write(&self, content: &[u8]) -> io::Result<()> {
        match self {
            Self::Stdout => {
                let mut stdout = io::stdout().lock();
                stdout.write_all(content)?;
                stdout.flush()
            }
            Self::Direct(path) => fs::OpenOptions::new().write(true).open(path)?.write_all(content),
            Self::Replaced(path) => {
                let mut file = temporary(path)?;
                file.write_all(content)?;
                file.as_file().sync_all()?;
                file.persist(path)?;
                Ok(())
            }
        }
    }

    fn replaced(path: PathBuf) -> io::Result<Self> {
        // Whether the directory takes files; this one is removed at once.
        temporary(&path)?;
        Ok(Self::Replaced(path))
    }
}

/// A new file beside `path`, readable like any other file.
fn temporary(path: &Path) -> io::Result<NamedTempFile> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut builder = tempfile::Builder::new();
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        builder.permissions(fs::Permissions::from_mode(0o644));
    }
    builder.prefix(".stepline-").tempfile_in(parent)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_replaced_and_nothing_else_is_left() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let path = dir.path().join("out.json");
        fs::write(&path, "old and longer").expect("a file");
        let file = OutputFile::prepare(&path).expect("it can be written");
        assert_eq!(fs::read_to_string(&path).expect("still there"), "old and longer");
        file.write(b"new").expect("written");
        assert_eq!(fs::read_to_string(&path).expect("replaced"), "new");
        assert_eq!(fs::read_dir(dir.path()).expect("a directory").count(), 1);
    }

    #[test]
    fn directories_and_missing_parents_are_refused_beforehand() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        assert_eq!(OutputFile::prepare(dir.path()).map_err(|e| e.kind()), Err(io::ErrorKind::IsADirectory));
        let orphan = dir.path().join("missing/out.json");
        assert_eq!(OutputFile::prepare(&orphan).map_err(|e| e.kind()), Err(io::ErrorKind::NotFound));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_device_is_written_into_and_stays_a_device() {
        let full = OutputFile::prepare(Path::new("/dev/full")).expect("a device");
        assert_eq!(full, OutputFile::Direct("/dev/full".into()));
        assert_eq!(full.write(b"x").map_err(|e| e.kind()), Err(io::ErrorKind::StorageFull));
        assert!(!fs::metadata("/dev/full").expect("still there").is_file());
    }
}
