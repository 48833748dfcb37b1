//! `cargo xtask schema`: the files under docs/ that are derived from code.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result};

/// Writes the generated files, or, if `check`, compares them with the committed ones.
pub(crate) fn run(check: bool) -> Result<ExitCode> {
    let root = workspace_root()?;
    let mut num_stale = 0;
    for (path, content) in generated() {
        let path = root.join(path);
        let committed = std::fs::read_to_string(&path).unwrap_or_default();
        if committed == content {
            continue;
        }
        num_stale += 1;
        if check {
            println!("{}: differs from what the code says", path.display());
        } else {
            std::fs::write(&path, content).with_context(|| format!("{}: cannot write", path.display()))?;
            println!("{}: written", path.display());
        }
    }
    if check && num_stale > 0 {
        println!("run `cargo xtask schema` and commit the result");
        return Ok(ExitCode::FAILURE);
    }
    Ok(ExitCode::SUCCESS)
}

/// Every generated file, by its path in the repository.
fn generated() -> [(&'static str, String); 4] {
    [
        ("docs/events.md", stepline_tracing_schema::docs::events_markdown()),
        ("docs/schema/events.schema.json", stepline_tracing_schema::schema::json_schema()),
        ("docs/configuration.md", stepline_config::docs::reference_markdown()),
        ("docs/schema/config.schema.json", stepline_config::schema::json_schema()),
    ]
}

/// The folder of the workspace, wherever the command is run from.
pub(crate) fn workspace_root() -> Result<PathBuf> {
    let manifest_dir = std::env::var_os("CARGO_MANIFEST_DIR").context("run this with `cargo xtask`")?;
    let root = Path::new(&manifest_dir).parent().context("xtask stands in the workspace")?;
    Ok(root.to_owned())
}
