//! One layer: entries with origins, checked against the table, given to figment.

use std::collections::{BTreeMap, BTreeSet};

use figment::value::{Dict, Map, Tag};
use figment::{Metadata, Profile, Provider};

use crate::error::{Fault, MAX_KEPT, Origin, Problem};
use crate::redact::without_user_info;
use crate::settings::{Kind, SETTINGS, Setting, Value};

/// Longer values are cut in messages.
const MAX_SHOWN_CHARS: usize = 60;
/// How much a known name may differ, as a share of likeness, to be suggested.
const LEAST_LIKENESS: f64 = 0.75;

/// A key and its value, as a layer gives them.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Entry {
    /// As written; dashes and underscores are the same.
    pub(super) key: String,
    pub(super) value: RawValue,
    pub(super) origin: Origin,
}

/// A value as it was written.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum RawValue {
    /// The text of a flag or variable, which has no type.
    Untyped(String),
    /// A truth or text of a file.
    Typed(Value),
    /// A number of a file, and its text, as `64.0` and `1e2` are no whole numbers but print like some.
    Number(Value, String),
    /// A table, which no setting takes.
    Table,
    /// What else no setting takes: a list, a date, null.
    Other(&'static str),
}

/// The right entries of a layer.
#[derive(Debug)]
pub(super) struct Layer {
    pub(super) name: &'static str,
    entries: BTreeMap<&'static str, (Value, Origin)>,
    /// Settings that the layer gives wrongly.
    pub(super) refused: BTreeSet<&'static str>,
}

impl Layer {
    /// Checks `entries`; what is wrong becomes a fault and is left out.
    ///
    /// A key that comes again replaces the former one: readers of files have refused it before.
    pub(super) fn new(name: &'static str, entries: Vec<Entry>, faults: &mut Vec<Fault>) -> Self {
        let mut layer = Self { name, entries: BTreeMap::new(), refused: BTreeSet::new() };
        for Entry { key, value, origin } in entries {
            let Some(setting) = Setting::find(&key.replace('-', "_")) else {
                // A comparison with every name costs more than the reading of a key: none for what is not kept.
                let nearest = if faults.len() < MAX_KEPT { nearest(&key) } else { None };
                let problem = if value == RawValue::Table { Problem::Nested } else { Problem::Unknown { nearest } };
                faults.push(Fault { field: shortened(&key), value: None, problem, origin: Some(origin) });
                continue;
            };
            let read = match &value {
                RawValue::Untyped(text) => Some(setting.kind.read(text)),
                RawValue::Typed(value) | RawValue::Number(value, _) => Some(value.clone()),
                RawValue::Table | RawValue::Other(_) => None,
            };
            if let Some(value) = read.filter(|value| setting.kind.admits(value)) {
                layer.entries.insert(setting.name, (value, origin));
            } else {
                layer.refused.insert(setting.name);
                let problem = Problem::NotAllowed { allowed: value.allowed(setting.kind, &origin) };
                let (field, shown) = (setting.name.to_owned(), Some(value.shown()));
                faults.push(Fault { field, value: shown, problem, origin: Some(origin) });
            }
        }
        layer
    }

    /// Where the layer's value of the setting `name` comes from.
    pub(super) fn origin(&self, name: &str) -> Option<&Origin> {
        self.entries.get(name).map(|(_, origin)| origin)
    }
}

impl Provider for Layer {
    fn metadata(&self) -> Metadata {
        Metadata::named(self.name)
    }

    fn data(&self) -> Result<Map<Profile, Dict>, figment::Error> {
        let dict: Dict =
            self.entries.iter().map(|(name, (value, _))| ((*name).to_owned(), to_figment(value))).collect();
        Ok(Profile::Default.collect(dict))
    }
}

fn to_figment(value: &Value) -> figment::value::Value {
    use figment::value::{Empty, Value as Merged};
    match value {
        Value::Unset => Merged::Empty(Tag::Default, Empty::None),
        Value::Boolean(value) => (*value).into(),
        // Serde reads a 32-bit number from 64 bits, not from 128; what is admitted fits.
        Value::Integer(value) => i64::try_from(*value).map_or_else(|_| (*value).into(), Into::into),
        Value::Number(value) => (*value).into(),
        Value::Text(text) => text.as_str().into(),
    }
}

impl RawValue {
    fn shown(&self) -> String {
        match self {
            // Whatever the setting: a URL may have been given to the wrong one.
            Self::Untyped(text) | Self::Typed(Value::Text(text)) => {
                format!("\"{}\"", shortened(&without_user_info(text)))
            }
            Self::Typed(value) => shortened(&value.to_string()),
            Self::Number(_, text) => shortened(text),
            Self::Table => "a table".to_owned(),
            Self::Other(what) => (*what).to_owned(),
        }
    }

    /// What would be right instead of this value, to follow "must be", with what is easily misunderstood.
    fn allowed(&self, kind: Kind, origin: &Origin) -> String {
        let allowed = kind.allowed();
        match (self, kind, origin) {
            (Self::Number(Value::Number(number), text), Kind::Count { .. }, _)
                if number.fract() == 0.0 && text.contains(['.', 'e', 'E']) =>
            {
                format!("{allowed}, written without point and exponent")
            }
            (Self::Untyped(text), _, Origin::Variable(_)) if text.is_empty() => {
                format!("{allowed}; an empty variable is not an absent one: unset it")
            }
            _ => allowed,
        }
    }
}

/// A fault of an input that cannot be taken apart into entries.
pub(super) fn fault_of_whole(reason: String) -> Fault {
    Fault { field: String::new(), value: None, problem: Problem::Unreadable { reason }, origin: None }
}

/// Escapes what would break a message out of its line, and cuts what is long.
pub(super) fn shortened(text: &str) -> String {
    let mut shown: String = text.chars().take(MAX_SHOWN_CHARS).flat_map(char::escape_debug).collect();
    if text.chars().nth(MAX_SHOWN_CHARS).is_some() {
        shown.push('…');
    }
    shown
}

/// The known name that is most like `key`, if any is like it.
pub(super) fn nearest(key: &str) -> Option<&'static str> {
    let key: String = key.chars().take(2 * MAX_SHOWN_CHARS).collect::<String>().to_lowercase().replace('-', "_");
    SETTINGS
        .iter()
        .map(|setting| (strsim::jaro_winkler(&key, setting.name), setting.name))
        .filter(|(likeness, _)| *likeness >= LEAST_LIKENESS)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelt_name_finds_the_setting_that_was_meant() {
        assert_eq!(nearest("max-num-sequences"), Some("max_num_seqs"));
        assert_eq!(nearest("STEP_TRACING_SAMPLERATE"), Some("step_tracing_sample_rate"));
        assert_eq!(nearest("blocksize"), Some("block_size"));
        assert_eq!(nearest("zzz"), None);
    }

    #[test]
    fn a_long_or_many_lined_value_stays_short_and_on_its_line() {
        assert_eq!(shortened("a\nb"), "a\\nb");
        assert_eq!(shortened(&"x".repeat(1000)).chars().count(), MAX_SHOWN_CHARS + 1);
    }
}
