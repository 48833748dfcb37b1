//! `cargo xtask layers`: who may depend on whom.

use std::collections::BTreeSet;
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::schema::workspace_root;

/// The arrows of ARCHITECTURE.md, "Layers"; nothing else may depend on anything.
const MAY_DEPEND_ON: [(&str, &[&str]); 8] = [
    ("stepline-cli", &["stepline-engine", "stepline-telemetry", "stepline-workload", "stepline-config"]),
    ("stepline-engine", &["stepline-scheduler", "stepline-workload", "stepline-config"]),
    ("stepline-telemetry", &["stepline-tracing-schema"]),
    ("stepline-scheduler", &["stepline-kv-cache", "stepline-tracing-schema", "stepline-config"]),
    ("stepline-kv-cache", &[]),
    ("stepline-workload", &[]),
    ("stepline-config", &[]),
    ("stepline-tracing-schema", &[]),
];

/// Crates that a program with the scheduler alone compiles, at most.
const SCHEDULER_CRATES_MAX: usize = 25;

/// Checks the arrows, and what the scheduler brings with it.
pub(crate) fn run() -> Result<ExitCode> {
    let mut broken = broken_arrows()?;
    let crates = crates_of_scheduler()?;
    if crates.len() > SCHEDULER_CRATES_MAX {
        broken.push(format!(
            "stepline-scheduler brings {} crates, at most {SCHEDULER_CRATES_MAX} are fine",
            crates.len()
        ));
    }
    for name in ["figment2", "clap", "tokio", "opentelemetry", "serde_json"] {
        if crates.contains(name) {
            broken.push(format!(
                "stepline-scheduler brings {name}, which a program with the scheduler alone must not compile"
            ));
        }
    }
    for fault in &broken {
        println!("{fault}");
    }
    println!("stepline-scheduler alone: {} crates", crates.len());
    Ok(if broken.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn broken_arrows() -> Result<Vec<String>> {
    let metadata = cargo(&["metadata", "--no-deps", "--format-version", "1"])?;
    let metadata: Value = serde_json::from_str(&metadata).context("cargo metadata")?;
    let mut broken = Vec::new();
    for package in metadata["packages"].as_array().into_iter().flatten() {
        let name = package["name"].as_str().unwrap_or_default();
        let Some((_, allowed)) = MAY_DEPEND_ON.iter().find(|(layer, _)| *layer == name) else { continue };
        let dependencies = package["dependencies"].as_array().into_iter().flatten();
        // Tests may use what they like.
        for dependency in dependencies.filter(|dependency| dependency["kind"].is_null()) {
            let dependency = dependency["name"].as_str().unwrap_or_default();
            if dependency.starts_with("stepline-") && !allowed.contains(&dependency) {
                broken.push(format!("{name} depends on {dependency}, which its layer does not allow"));
            }
        }
    }
    Ok(broken)
}

fn crates_of_scheduler() -> Result<BTreeSet<String>> {
    let tree = cargo(&["tree", "--package", "stepline-scheduler", "--edges", "normal", "--prefix", "none"])?;
    Ok(tree.lines().filter_map(|line| line.split(' ').next()).map(str::to_owned).collect())
}

fn cargo(args: &[&str]) -> Result<String> {
    let output =
        Command::new("cargo").args(args).current_dir(workspace_root()?).output().context("cannot start cargo")?;
    ensure!(output.status.success(), "cargo {}: {}", args.join(" "), String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).context("cargo's output")
}
