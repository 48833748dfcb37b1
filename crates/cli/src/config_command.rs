//! `stepline config show`, `check` and `schema`.

use std::io::{self, Write};

use comfy_table::{Table, presets};
use stepline_config::cli::EngineFlags;
use stepline_config::{LoadedConfig, schema};

use crate::configuration;
use crate::failure::Failure;

/// Shows or checks a configuration.
#[derive(clap::Subcommand, Debug)]
pub(crate) enum ConfigCommand {
    /// Print every value with its origin: default, file and line, variable, or flag.
    #[command(after_help = "\
Examples:
  stepline config show
  stepline config show --config engine.toml --max-num-seqs 64
  stepline config show --json | jq .max_num_seqs")]
    Show {
        /// Print JSON instead of a table.
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        engine: EngineFlags,
    },
    /// Check a configuration and report all of its faults at once.
    #[command(after_help = "\
Examples:
  stepline config check --config engine.yaml
  STEPLINE_STEP_TRACING_SAMPLE_RATE=0.5 stepline config check")]
    Check {
        #[command(flatten)]
        engine: EngineFlags,
    },
    /// Print the JSON Schema of a configuration file.
    #[command(after_help = "\
Example:
  stepline config schema > stepline.schema.json")]
    Schema,
}

/// Runs the command.
pub(crate) fn run(command: ConfigCommand) -> Result<(), Failure> {
    match command {
        ConfigCommand::Show { json, engine } => {
            let loaded = configuration::load(engine)?;
            print(&if json { to_json(&loaded) } else { to_table(&loaded) })
        }
        ConfigCommand::Check { engine } => {
            configuration::load(engine)?;
            print("the configuration is valid\n")
        }
        ConfigCommand::Schema => print(&schema::json_schema()),
    }
}

/// Setting, value, origin; a heading per group.
fn to_table(loaded: &LoadedConfig) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    let mut group = None;
    for shown in loaded.values() {
        if group != Some(shown.group) {
            let gap = if group.is_some() { "\n" } else { "" };
            table.add_row([format!("{gap}{}", shown.group.title())]);
            group = Some(shown.group);
        }
        table.add_row([format!("  {}", shown.name), shown.value.to_string(), shown.origin.to_string()]);
    }
    for column in table.column_iter_mut() {
        column.set_padding((0, 2));
    }
    format!("{}\n", table.trim_fmt())
}

fn to_json(loaded: &LoadedConfig) -> String {
    format!("{:#}\n", loaded.to_json())
}

fn print(text: &str) -> Result<(), Failure> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()).map_err(|e| Failure::stdout(&e))
}
