//! Layers: defaults < file < environment < flags.
//!
//! Each layer is read and checked by itself, so that a wrong value is found even where a higher layer hides it, and
//! keeps the origin of every value. Figment then merges what is right.

mod environment;
mod file;
mod json;
mod layer;
mod lines;
mod toml;
mod yaml;

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::PathBuf;

use figment::Figment;

use crate::engine_config::EngineConfig;
use crate::error::{ConfigErrors, Fault, Origin};
use crate::notice::Notice;
use crate::settings::{EngineArgs, Group, SETTINGS, Setting, Value};
use layer::{Layer, RawValue};

/// Collects layers, each optional.
///
/// ```
/// use stepline_config::Loader;
///
/// let environment = [("STEPLINE_MAX_NUM_SEQS".into(), "64".into())];
/// let loaded = Loader::new().environment(environment).flag("step_tracing_sample_rate", "1").load()?;
/// assert_eq!(loaded.config.scheduler.max_num_seqs, 64);
/// assert_eq!(loaded.origin("max_num_seqs").map(|origin| origin.to_string()).as_deref(), Some("STEPLINE_MAX_NUM_SEQS"));
/// # Ok::<(), stepline_config::ConfigErrors>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Loader {
    file: Option<PathBuf>,
    environment: Vec<(OsString, OsString)>,
    flags: Vec<(String, String)>,
}

/// A valid configuration, with the origin of every value.
#[derive(Clone, Debug)]
pub struct LoadedConfig {
    /// The configuration.
    pub config: EngineConfig,
    /// What the user should know of it.
    pub notices: Vec<Notice>,
    /// In the order of [`SETTINGS`].
    origins: Vec<Origin>,
}

/// A value of a loaded configuration, to show.
#[derive(Clone, Debug, PartialEq)]
pub struct ShownValue {
    /// The part of the configuration.
    pub group: Group,
    /// The setting.
    pub name: &'static str,
    /// Its value; of the collector's URL, user and password are hidden.
    pub value: Value,
    /// Where the value comes from.
    pub origin: Origin,
}

impl Loader {
    /// No layer but the defaults.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Reads a TOML, YAML or JSON file; its extension tells which.
    #[must_use]
    pub fn file(mut self, path: impl Into<PathBuf>) -> Self {
        self.file = Some(path.into());
        self
    }

    /// Takes the variables that begin with `STEPLINE_`; others are ignored.
    #[must_use]
    pub fn environment(mut self, variables: impl IntoIterator<Item = (OsString, OsString)>) -> Self {
        self.environment.extend(variables);
        self
    }

    /// Takes the text of a flag, by the name of its setting; the last one of a name counts.
    #[must_use]
    pub fn flag(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.flags.push((name.into(), value.into()));
        self
    }

    /// Reads, checks and merges the layers.
    ///
    /// # Errors
    /// Every fault of every layer, and of the whole, together.
    pub fn load(self) -> Result<LoadedConfig, ConfigErrors> {
        let mut faults = Vec::new();
        let mut layers = Vec::new();
        if let Some(path) = &self.file {
            layers.push(Layer::new("file", file::read(path, &mut faults), &mut faults));
        }
        layers.push(Layer::new("environment", environment::read(self.environment, &mut faults), &mut faults));
        let flags = self.flags.into_iter().map(|(name, value)| layer::Entry {
            origin: Origin::Flag(format!("--{}", name.replace('_', "-"))),
            key: name,
            value: RawValue::Untyped(value),
        });
        layers.push(Layer::new("flags", flags.collect(), &mut faults));

        let distrusted: BTreeSet<_> = layers.iter().flat_map(|layer| layer.refused.iter().copied()).collect();
        let figment = layers.iter().fold(Figment::new(), |figment, layer| figment.merge(layer));
        let args: EngineArgs = match figment.extract() {
            Ok(args) => args,
            Err(error) => {
                faults.push(layer::fault_of_whole(error.to_string()));
                return Err(ConfigErrors::check(faults).expect_err("there is a fault"));
            }
        };
        let given = |name: &str| -> Option<Origin> {
            let layer = &figment.find_metadata(name)?.name;
            layers.iter().find(|candidate| candidate.name == layer)?.origin(name).cloned()
        };
        let resolution = args.resolve_trusting_all_but(&distrusted);
        let origin_of = |setting: &Setting| {
            let derived = || resolution.derived.iter().find(|(name, _)| *name == setting.name);
            given(setting.name).or_else(|| derived().map(|(_, how)| Origin::Derived(how))).unwrap_or(Origin::Default)
        };
        faults.extend(
            resolution
                .faults
                .iter()
                .cloned()
                .map(|fault| Fault { origin: Setting::find(&fault.field).map(origin_of), ..fault }),
        );
        let origins = SETTINGS.iter().map(origin_of).collect();
        ConfigErrors::check(faults)?;
        Ok(LoadedConfig { config: resolution.config, notices: resolution.notices, origins })
    }
}

impl LoadedConfig {
    /// Loads what `--config` names, this process's environment and the flags.
    ///
    /// # Errors
    /// Every fault of every layer, and of the whole, together.
    #[cfg(feature = "cli")]
    pub fn load(flags: crate::cli::EngineFlags) -> Result<Self, ConfigErrors> {
        flags.into_loader().environment(std::env::vars_os()).load()
    }

    /// Every value with its origin, group by group, as [`EngineConfig::values`] shows it.
    pub fn values(&self) -> impl Iterator<Item = ShownValue> + '_ {
        SETTINGS.iter().zip(self.config.values()).zip(&self.origins).map(|((setting, (_, value)), origin)| ShownValue {
            group: setting.group,
            name: setting.name,
            value,
            origin: origin.clone(),
        })
    }

    /// Where the value of the setting `name` comes from; `None` if there is no such setting.
    #[must_use]
    pub fn origin(&self, name: &str) -> Option<&Origin> {
        let idx = SETTINGS.iter().position(|setting| setting.name == name)?;
        self.origins.get(idx)
    }

    /// Every value with its origin: `{"max_num_seqs": {"value": 64, "origin": "--max-num-seqs"}, …}`.
    #[must_use]
    pub fn to_json(&self) -> serde_json::Value {
        let shown = self.values().map(|shown| {
            let value = match shown.value {
                Value::Unset => serde_json::Value::Null,
                Value::Boolean(value) => value.into(),
                // Counts are 32 bits wide.
                Value::Integer(value) => i64::try_from(value).map_or(serde_json::Value::Null, Into::into),
                Value::Number(value) => value.into(),
                Value::Text(value) => value.into(),
            };
            let entry = serde_json::json!({ "value": value, "origin": shown.origin.to_string() });
            (shown.name.to_owned(), entry)
        });
        serde_json::Value::Object(shown.collect())
    }
}
