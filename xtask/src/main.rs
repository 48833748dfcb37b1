//! Developer and release tooling: `cargo xtask --help`.

mod ci;
mod golden;
mod layers;
mod schema;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Developer and release tooling of Stepline.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run everything that a change must pass: formatting, lints, docs, schema drift, tests, golden replays
    Ci,
    /// Replay recordings of the real schedulers and compare every decision and every trace event
    ///
    /// Takes any folder of recordings in the formats of golden/README.md and golden/README-tracing.md. Prints, per
    /// kind: files, steps, exact, different, not supported yet; and the first difference of each failing file.
    /// Exits with 1 if a file differs, with 2 if one cannot be read.
    Golden {
        /// Folder with *.jsonl and *.jsonl.gz files, searched with its subfolders [default: golden/ of the repository]
        dir: Option<PathBuf>,
        /// Also name each file and what came of it
        #[arg(long)]
        verbose: bool,
    },
    /// Check who depends on whom, and what the scheduler alone brings with it
    Layers,
    /// Write the generated files: JSON Schemas, configuration reference and event table under docs/
    Schema {
        /// Write nothing; exit with 1 if a committed file differs from what would be written
        #[arg(long)]
        check: bool,
    },
}

fn main() -> ExitCode {
    let result = match Cli::parse().command {
        Command::Ci => ci::run(),
        Command::Golden { dir, verbose } => golden::run(dir, verbose),
        Command::Layers => layers::run(),
        Command::Schema { check } => schema::run(check),
    };
    result.unwrap_or_else(|error| {
        eprintln!("error: {error:#}");
        ExitCode::from(2)
    })
}
