//! From flags, environment and file to a configuration.

use stepline_config::LoadedConfig;
use stepline_config::cli::EngineFlags;

use crate::failure::{Failure, say};

/// Loads the configuration and passes on what the user should know of it.
pub(crate) fn load(flags: EngineFlags) -> Result<LoadedConfig, Failure> {
    let loaded = LoadedConfig::load(flags).map_err(Failure::usage)?;
    for notice in &loaded.notices {
        say("note", &notice.to_string());
    }
    Ok(loaded)
}
