//! What tests of layers share.

use std::ffi::OsString;
use std::path::PathBuf;

/// A folder of configuration files that vanishes with the test.
pub(crate) struct Files(tempfile::TempDir);

impl Files {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().expect("a temporary folder"))
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        std::fs::write(&path, content).expect("a writable folder");
        path
    }
}

pub(crate) fn environment<const N: usize>(
    variables: [(impl Into<OsString>, &str); N],
) -> impl Iterator<Item = (OsString, OsString)> {
    variables.into_iter().map(|(name, value)| (name.into(), value.into()))
}

/// Reads flags as the command line does.
#[cfg(feature = "cli")]
#[track_caller]
pub(crate) fn flags(args: impl IntoIterator<Item = impl Into<OsString>>) -> stepline_config::cli::EngineFlags {
    use clap::{Args, FromArgMatches};
    use stepline_config::cli::EngineFlags;

    let command = EngineFlags::augment_args(clap::Command::new("stepline").no_binary_name(true));
    let args: Vec<OsString> = args.into_iter().map(Into::into).collect();
    let matches = command.try_get_matches_from(args).unwrap_or_else(|error| panic!("{error}"));
    EngineFlags::from_arg_matches(&matches).expect("flags")
}
