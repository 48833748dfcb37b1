//! What a setting is: its name, values, default and meaning.
//!
//! The [table](SETTINGS) declares each setting once. File keys, variables, flags, the reference, the JSON Schema and
//! the checks of values all follow from it.

mod kind;
mod table;

pub use kind::{Kind, Value};
pub use table::{EngineArgs, SETTINGS};

/// One setting.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// vLLM's name, as a key of a configuration file.
    pub name: &'static str,
    /// One line of meaning, with the unit.
    pub help: &'static str,
    /// Where it belongs.
    pub group: Group,
    /// Which values it takes.
    pub kind: Kind,
    /// The value if none is given.
    pub default: DefaultValue,
    /// What it does in Stepline.
    pub effect: Effect,
    /// Whether there is a flag; files and variables know every setting.
    pub has_flag: bool,
}

/// The part of the configuration that a setting belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    /// [`ModelConfig`](crate::ModelConfig).
    Model,
    /// [`CacheConfig`](crate::CacheConfig).
    Cache,
    /// [`SchedulerConfig`](crate::SchedulerConfig).
    Scheduler,
    /// [`LoraConfig`](crate::LoraConfig).
    Lora,
    /// [`ObservabilityConfig`](crate::ObservabilityConfig).
    Observability,
}

impl Group {
    /// Every group, in the order of help and reference.
    pub const ALL: [Self; 5] = [Self::Model, Self::Cache, Self::Scheduler, Self::Lora, Self::Observability];

    /// The heading in help and reference.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Self::Model => "Model",
            Self::Cache => "Cache",
            Self::Scheduler => "Scheduler",
            Self::Lora => "LoRA",
            Self::Observability => "Observability",
        }
    }
}

/// The value of a setting that is not given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DefaultValue {
    /// This one.
    Fixed(&'static str),
    /// None.
    Unset,
    /// Computed; says how.
    Derived(&'static str),
}

impl DefaultValue {
    /// The default in words.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Self::Fixed(text) | Self::Derived(text) => text,
            Self::Unset => "unset",
        }
    }
}

/// What a setting does in Stepline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// What it does in vLLM.
    Full,
    /// Nothing; says why. It is accepted so that configurations of vLLM stay usable.
    None(&'static str),
}

impl Setting {
    const fn new(group: Group, kind: Kind, default: DefaultValue) -> Self {
        Self { name: "", help: "", group, kind, default, effect: Effect::Full, has_flag: true }
    }

    const fn without_effect(self, why: &'static str) -> Self {
        Self { effect: Effect::None(why), ..self }
    }

    const fn without_flag(self) -> Self {
        Self { has_flag: false, ..self }
    }

    /// Finds a setting by its name.
    #[must_use]
    pub fn find(name: &str) -> Option<&'static Self> {
        SETTINGS.iter().find(|setting| setting.name == name)
    }

    /// The flag, with its dashes, whether the setting has one or not.
    #[must_use]
    pub fn flag(&self) -> String {
        format!("--{}", self.name.replace('_', "-"))
    }

    /// The environment variable.
    #[must_use]
    pub fn variable(&self) -> String {
        format!("STEPLINE_{}", self.name.to_uppercase())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn names_are_unique_and_spelled_as_in_vllm() {
        let names: BTreeSet<_> = SETTINGS.iter().map(|setting| setting.name).collect();
        assert_eq!(names.len(), SETTINGS.len());
        for name in names {
            assert!(name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_'), "{name}");
        }
    }

    #[test]
    fn documented_defaults_are_what_resolving_gives() {
        let values = EngineArgs::default().resolve().expect("the defaults are valid").values();
        for setting in SETTINGS {
            let value = values.iter().find(|(name, _)| *name == setting.name).map(|(_, value)| value);
            let value = value.unwrap_or_else(|| panic!("{} is not shown", setting.name));
            match setting.default {
                DefaultValue::Fixed(text) => assert_eq!(value.to_string(), text, "{}", setting.name),
                DefaultValue::Unset => assert_eq!(*value, Value::Unset, "{}", setting.name),
                // The only one that is derived to be nothing: LoRA is off.
                DefaultValue::Derived(_) => assert_eq!(*value == Value::Unset, setting.name == "max_loras"),
            }
            assert!(setting.kind.admits(value), "{}: {value}", setting.name);
        }
        assert_eq!(values.len(), SETTINGS.len(), "each setting once");
    }
}
