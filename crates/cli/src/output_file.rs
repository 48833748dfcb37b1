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
        // A path that ends in a separator or a dot names a directory, also one that is not there.
        if path.file_name().is_none_or(|name| !ends_with(path, name)) {
            return Err(io::Error::from(io::ErrorKind::IsADirectory));
        }
        match fs::metadata(path) {
            Ok(metadata) if metadata.is_dir() => Err(io::Error::from(io::ErrorKind::IsADirectory)),
            Ok(metadata) if !metadata.is_file() => Ok(Self::Direct(path.to_owned())),
            // Through a symbolic link, so that the link stays.
            Ok(_) => Self::replaced(fs::canonicalize(path)?),
            // Its target may be on a disk that is missing; to put a file in place of the link would hide that.
            Err(error) if error.kind() == io::ErrorKind::NotFound && fs::symlink_metadata(path).is_ok() => {
                Err(io::Error::new(error.kind(), "a symbolic link to a file that does not exist"))
            }
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
                if let Ok(replaced) = fs::metadata(path) {
                    file.as_file().set_permissions(replaced.permissions())?;
                }
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

fn ends_with(path: &Path, name: &OsStr) -> bool {
    path.as_os_str().as_encoded_bytes().ends_with(name.as_encoded_bytes())
}

/// A new file beside `path`, with the mode of any other new file: what the umask leaves.
fn temporary(path: &Path) -> io::Result<NamedTempFile> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut builder = tempfile::Builder::new();
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        builder.permissions(fs::Permissions::from_mode(0o666));
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

    #[test]
    fn a_path_that_ends_like_a_directory_is_refused_beforehand() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        for name in ["new/", "new/.", "."] {
            let path = dir.path().join(name);
            assert_eq!(OutputFile::prepare(&path).map_err(|e| e.kind()), Err(io::ErrorKind::IsADirectory), "{name}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_replaced_file_keeps_its_mode() {
        use std::os::unix::fs::PermissionsExt;

        let dir = tempfile::tempdir().expect("a temporary directory");
        let path = dir.path().join("out.json");
        fs::write(&path, "secret").expect("a file");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("it is ours");
        OutputFile::prepare(&path).and_then(|file| file.write(b"new")).expect("written");
        assert_eq!(fs::metadata(&path).expect("it is there").permissions().mode() & 0o777, 0o600);
    }

    #[cfg(unix)]
    #[test]
    fn a_link_to_nowhere_is_refused_and_stays() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let link = dir.path().join("link.json");
        std::os::unix::fs::symlink(dir.path().join("missing.json"), &link).expect("a link");
        let error = OutputFile::prepare(&link).expect_err("it leads nowhere");
        assert!(error.to_string().contains("symbolic link"), "{error}");
        assert!(fs::symlink_metadata(&link).expect("it is there").is_symlink());
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
