//! No output overwrites an input or another output.

use std::fs::{self, Metadata};
use std::path::{Path, PathBuf};

use crate::failure::Failure;

/// What tells files apart, whatever they are called.
#[derive(Clone, Debug, PartialEq, Eq)]
enum FileIdentity {
    /// An existing file: device and inode, so that hard and symbolic links are seen through.
    #[cfg(unix)]
    Inode(u64, u64),
    /// A file that is not there yet, or an existing one where there are no inodes.
    Path(PathBuf),
}

/// A file of the command line.
pub(super) struct NamedFile<'a> {
    /// The flag or argument.
    pub(super) name: &'static str,
    /// Its value; `-` is a standard stream.
    pub(super) path: &'a Path,
    /// What `-` stands for.
    pub(super) stream: Stream,
}

/// A standard stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stream {
    Stdin,
    Stdout,
}

/// Refuses files of which one is given twice; devices and pipes may be.
///
/// Standard output takes part even if it is not named: the table goes there.
pub(super) fn refuse_one_file_for_two(files: &[NamedFile<'_>]) -> Result<(), Failure> {
    let mut seen: Vec<(&str, FileIdentity)> = Vec::new();
    let is_stdout_named = files.iter().any(|file| file.path == Path::new("-") && file.stream == Stream::Stdout);
    if !is_stdout_named && let Some(identity) = identity_of_stream(Stream::Stdout) {
        seen.push(("standard output", identity));
    }
    for NamedFile { name, path, stream } in files {
        let identity = if *path == Path::new("-") { identity_of_stream(*stream) } else { identity_of_path(path) };
        let Some(identity) = identity else { continue };
        if let Some((other, _)) = seen.iter().find(|(_, earlier)| *earlier == identity) {
            return Err(Failure::usage(format_args!(
                "{name}: `{}` is given for {other} too\n  expected: a file of its own\n  remedy: give another path",
                path.display()
            )));
        }
        seen.push((name, identity));
    }
    Ok(())
}

/// `None` for what is no regular file, and for paths that cannot be looked at: opening them will say why.
fn identity_of_path(path: &Path) -> Option<FileIdentity> {
    const MAX_LINKS: u32 = 40;
    identity_of_path_within(path, MAX_LINKS)
}

fn identity_of_path_within(path: &Path, depth: u32) -> Option<FileIdentity> {
    if let Ok(metadata) = fs::metadata(path) {
        return identity_of(&metadata, || fs::canonicalize(path).ok());
    }
    // A link to nowhere stands for the file that would be created.
    if let Ok(target) = fs::read_link(path) {
        let target = path.parent().unwrap_or(Path::new(".")).join(target);
        return (depth > 0).then(|| identity_of_path_within(&target, depth - 1))?;
    }
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    Some(FileIdentity::Path(fs::canonicalize(parent).ok()?.join(path.file_name()?)))
}

#[cfg(unix)]
fn identity_of(metadata: &Metadata, _canonical: impl FnOnce() -> Option<PathBuf>) -> Option<FileIdentity> {
    use std::os::unix::fs::MetadataExt;

    metadata.is_file().then(|| FileIdentity::Inode(metadata.dev(), metadata.ino()))
}

#[cfg(not(unix))]
fn identity_of(metadata: &Metadata, canonical: impl FnOnce() -> Option<PathBuf>) -> Option<FileIdentity> {
    if metadata.is_file() { canonical().map(FileIdentity::Path) } else { None }
}

#[cfg(unix)]
fn identity_of_stream(stream: Stream) -> Option<FileIdentity> {
    use std::os::fd::AsFd;

    let file = match stream {
        Stream::Stdin => std::io::stdin().as_fd().try_clone_to_owned(),
        Stream::Stdout => std::io::stdout().as_fd().try_clone_to_owned(),
    };
    identity_of(&fs::File::from(file.ok()?).metadata().ok()?, || None)
}

/// A stream has no path to compare.
#[cfg(not(unix))]
fn identity_of_stream(_stream: Stream) -> Option<FileIdentity> {
    None
}
