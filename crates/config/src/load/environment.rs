//! The layer of environment variables.

use std::ffi::OsString;

use super::layer::{Entry, RawValue, nearest, shortened};
use crate::error::{Fault, Origin, Problem};
use crate::settings::{SETTINGS, Setting};

const PREFIX: &str = "STEPLINE_";

/// Returns the entries of `STEPLINE_…`, in the order of their names.
pub(super) fn read(variables: Vec<(OsString, OsString)>, faults: &mut Vec<Fault>) -> Vec<Entry> {
    let mut ours: Vec<_> = variables
        .into_iter()
        // A name that is not Unicode is none of ours, unless it begins like ours: then it is unknown.
        .map(|(name, value)| (name.to_string_lossy().into_owned(), value))
        .filter(|(name, _)| name.starts_with(PREFIX))
        .collect();
    ours.sort();
    ours.into_iter().filter_map(|(name, value)| entry(name, value, faults)).collect()
}

fn entry(name: String, value: OsString, faults: &mut Vec<Fault>) -> Option<Entry> {
    let Some(setting) = SETTINGS.iter().find(|setting| setting.variable() == name) else {
        let nearest = nearest(&name[PREFIX.len()..]);
        let problem = match nearest.and_then(Setting::find) {
            // The spelling is right, the case is not.
            Some(setting) if setting.variable() == name.to_uppercase() => {
                Problem::Unreadable { reason: format!("variables are in capitals: {}", setting.variable()) }
            }
            _ => Problem::Unknown { nearest },
        };
        let origin = Origin::Variable(shortened(&name));
        faults.push(Fault { field: String::new(), value: None, problem, origin: Some(origin) });
        return None;
    };
    let origin = Origin::Variable(name);
    match value.into_string() {
        Ok(text) => Some(Entry { key: setting.name.to_owned(), value: RawValue::Untyped(text), origin }),
        // Kept as an entry, so that rules between values do not judge a setting that was given wrongly.
        Err(_) => {
            Some(Entry { key: setting.name.to_owned(), value: RawValue::Other("bytes that are not UTF-8"), origin })
        }
    }
}
