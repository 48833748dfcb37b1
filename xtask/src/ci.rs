//! `cargo xtask ci`: everything that a change must pass.

use std::process::{Command, ExitCode};
use std::time::Instant;

use anyhow::{Context, Result};

use crate::schema::workspace_root;

/// One check: its name and the arguments for cargo.
struct Check {
    name: &'static str,
    args: &'static [&'static str],
    env: &'static [(&'static str, &'static str)],
}

const CHECKS: [Check; 9] = [
    Check { name: "formatting", args: &["fmt", "--all", "--check"], env: &[] },
    Check {
        name: "lints",
        args: &["clippy", "--workspace", "--all-targets", "--all-features", "--", "-D", "warnings"],
        env: &[],
    },
    Check {
        name: "docs",
        args: &["doc", "--workspace", "--no-deps", "--all-features"],
        env: &[("RUSTDOCFLAGS", "-D warnings")],
    },
    Check { name: "layers", args: &["xtask", "layers"], env: &[] },
    Check { name: "tests", args: &["test", "--workspace", "--all-features"], env: &[] },
    Check {
        name: "allocations",
        args: &["test", "--release", "--package", "stepline-scheduler", "--test", "allocations"],
        env: &[],
    },
    Check { name: "schema drift", args: &["xtask", "schema", "--check"], env: &[] },
    Check { name: "golden replays", args: &["run", "--release", "--package", "xtask", "--", "golden"], env: &[] },
    Check {
        name: "the main job",
        args: &["run", "--release", "--package", "stepline-cli", "--bin", "stepline", "--", "replay"],
        env: &[],
    },
];

/// Runs the checks in order and stops at the first that fails.
pub(crate) fn run() -> Result<ExitCode> {
    let root = workspace_root()?;
    let start = Instant::now();
    for check in CHECKS {
        println!("==> {}: cargo {}", check.name, check.args.join(" "));
        let mut cargo = Command::new("cargo");
        cargo.args(check.args).envs(check.env.iter().copied()).current_dir(&root);
        let status = cargo.status().context("cannot start cargo")?;
        if !status.success() {
            eprintln!("error: the check `{}` failed: cargo {}", check.name, check.args.join(" "));
            return Ok(ExitCode::FAILURE);
        }
    }
    println!("==> all {} checks passed in {} s", CHECKS.len(), start.elapsed().as_secs());
    Ok(ExitCode::SUCCESS)
}
