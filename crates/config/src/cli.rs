//! The flags of an engine, for clap: one per setting, from the table.

use std::path::PathBuf;

use clap::builder::ValueParser;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};

use crate::load::Loader;
use crate::settings::{DefaultValue, Effect, Group, Kind, SETTINGS, Setting};

/// `--config` and a flag per setting, under vLLM's names; to be flattened into a command.
///
/// Values stay text here: [`Loader`] checks them together with those of the other layers, so that all faults are
/// reported at once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EngineFlags {
    /// The configuration file.
    pub config: Option<PathBuf>,
    /// Names of settings and the text that was given.
    given: Vec<(&'static str, String)>,
}

impl EngineFlags {
    /// A loader of the file and the flags.
    #[must_use]
    pub fn into_loader(self) -> Loader {
        let loader = self.config.into_iter().fold(Loader::new(), Loader::file);
        self.given.into_iter().fold(loader, |loader, (name, value)| loader.flag(name, value))
    }
}

impl Args for EngineFlags {
    fn augment_args(command: Command) -> Command {
        let config = Arg::new("config")
            .long("config")
            .value_name("FILE")
            .value_parser(ValueParser::path_buf())
            .help("Settings from a TOML, YAML or JSON file; flags and STEPLINE_… variables rank above it")
            .help_heading("Configuration");
        Group::ALL
            .iter()
            .flat_map(|group| SETTINGS.iter().filter(move |setting| setting.group == *group && setting.has_flag))
            .fold(command.arg(config), |command, setting| command.args(args_of(setting)))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for EngineFlags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut flags = Self::default();
        flags.update_from_arg_matches(matches)?;
        Ok(flags)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        if let Some(path) = matches.get_one::<PathBuf>("config") {
            self.config = Some(path.clone());
        }
        for setting in SETTINGS.iter().filter(|setting| setting.has_flag) {
            let given = if setting.kind == Kind::Boolean {
                // Each overrides the other, so at most one is set.
                let yes = matches.get_flag(setting.name).then_some("true");
                yes.or_else(|| matches.get_flag(&no_id(setting)).then_some("false")).map(ToOwned::to_owned)
            } else {
                matches.get_one::<String>(setting.name).cloned()
            };
            self.given.extend(given.map(|value| (setting.name, value)));
        }
        Ok(())
    }
}

fn no_id(setting: &Setting) -> String {
    format!("no_{}", setting.name)
}

/// The flag of `setting`; a boolean has two.
fn args_of(setting: &'static Setting) -> Vec<Arg> {
    let long = setting.name.replace('_', "-");
    let arg = Arg::new(setting.name).long(long.clone()).help(help_of(setting)).help_heading(setting.group.title());
    if setting.kind != Kind::Boolean {
        return vec![
            arg.value_name(value_name(setting.kind)).allow_negative_numbers(true).overrides_with(setting.name),
        ];
    }
    let no = Arg::new(no_id(setting))
        .long(format!("no-{long}"))
        .help_heading(setting.group.title())
        .action(ArgAction::SetTrue)
        .overrides_with_all([no_id(setting), setting.name.to_owned()]);
    let no = if setting.default == DefaultValue::Fixed("true") {
        no.help(format!("Turn --{long} off"))
    } else {
        // Off is the default; the help need not say it twice.
        no.hide(true)
    };
    vec![arg.action(ArgAction::SetTrue).overrides_with_all([setting.name.to_owned(), no_id(setting)]), no]
}

fn value_name(kind: Kind) -> &'static str {
    match kind {
        Kind::Boolean => "BOOL",
        Kind::Count { .. } => "N",
        Kind::Rate | Kind::PositiveRate | Kind::Watermark => "X",
        Kind::Choice(_) | Kind::Choices(_) => "NAME",
        Kind::Text => "TEXT",
    }
}

fn help_of(setting: &Setting) -> String {
    let default = setting.default.text();
    let facts = match setting.kind {
        Kind::Boolean => format!("default: {default}"),
        kind => format!("default: {default}; {}", kind.range()),
    };
    let effect = match setting.effect {
        Effect::Full => "",
        Effect::None(_) => "; no effect in Stepline",
    };
    format!("{} [{facts}{effect}]", setting.help)
}
