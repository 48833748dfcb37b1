//! The `stepline` command.
//!
//! It knows nothing of scheduling: it turns flags into a configuration, hands a workload to the engine, and shows what
//! came of it. Results go to standard output, everything else to standard error. Exit codes: 0 for success, 1 for a
//! failure on the way, 2 for wrong flags, configuration or input, 130 and 143 after SIGINT and SIGTERM.
//!
//! | module | holds |
//! |---|---|
//! | `replay` | `stepline replay` |
//! | `config_command` | `stepline config show`, `check` and `schema` |
//! | `configuration` | flags, environment and file into a configuration |
//! | `output_file` | files written whole or not at all |
//! | `interrupt` | SIGINT and SIGTERM |
//! | `failure` | messages and exit codes |

mod config_command;
mod configuration;
mod failure;
mod interrupt;
mod output_file;
mod replay;

use std::process::ExitCode;

use clap::Parser;

/// The scheduler and paged KV cache of vLLM V1 as a simulator, every step observable.
#[derive(Parser, Debug)]
#[command(name = "stepline", version, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand, Debug)]
enum Command {
    Replay(Box<replay::ReplayArgs>),
    #[command(subcommand)]
    Config(config_command::ConfigCommand),
}

fn main() -> ExitCode {
    let outcome = match Cli::parse().command {
        Command::Replay(args) => replay::run(*args),
        Command::Config(command) => config_command::run(command),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}
