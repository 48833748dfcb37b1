//! The layer of a configuration file: which format, and what bounds it.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use super::layer::{Entry, RawValue};
use super::{json, toml, yaml};
use crate::error::{Fault, Origin, Problem};

/// A configuration file is a page or two; whatever is larger is something else.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// A key, its value and its line, counted from 1.
#[derive(Debug)]
pub(super) struct FileEntry {
    pub(super) key: String,
    pub(super) value: RawValue,
    pub(super) line: usize,
}

/// Why a text is no configuration, and the line, counted from 1, if it is known.
#[derive(Debug)]
pub(super) struct SyntaxError {
    pub(super) line: Option<usize>,
    pub(super) reason: String,
}

#[derive(Clone, Copy)]
enum Format {
    Toml,
    Yaml,
    Json,
}

/// Returns the entries of the file at `path`, each key once.
pub(super) fn read(path: &Path, faults: &mut Vec<Fault>) -> Vec<Entry> {
    let origin = |line| Some(Origin::File { path: path.to_owned(), line });
    let parsed = format_of(path)
        .and_then(|format| Ok((format, read_text(path)?)))
        .map_err(|reason| SyntaxError { line: None, reason });
    let entries = match parsed.and_then(|(format, text)| parse(format, &text)) {
        Ok(entries) => entries,
        Err(SyntaxError { line, reason }) => {
            let problem = Problem::Unreadable { reason };
            faults.push(Fault { field: String::new(), value: None, problem, origin: origin(line) });
            return Vec::new();
        }
    };
    let mut first_lines = BTreeMap::new();
    let mut once = Vec::new();
    for FileEntry { key, value, line } in entries {
        let name = key.replace('-', "_");
        if let Some(first_line) = first_lines.get(&name) {
            let problem = Problem::Duplicate { first_line: *first_line };
            faults.push(Fault {
                field: super::layer::shortened(&key),
                value: None,
                problem,
                origin: origin(Some(line)),
            });
        } else {
            first_lines.insert(name, line);
        }
        // Also the second one: its value may be wrong too.
        once.push(Entry { key, value, origin: Origin::File { path: path.to_owned(), line: Some(line) } });
    }
    once
}

fn format_of(path: &Path) -> Result<Format, String> {
    let extension = path.extension().map(|extension| extension.to_string_lossy().to_lowercase());
    match extension.as_deref() {
        Some("toml") => Ok(Format::Toml),
        Some("yaml" | "yml") => Ok(Format::Yaml),
        Some("json") => Ok(Format::Json),
        _ => Err("unknown format: name the file .toml, .yaml, .yml or .json".to_owned()),
    }
}

fn read_text(path: &Path) -> Result<String, String> {
    let unreadable = |error: std::io::Error| format!("cannot be read: {error}");
    let metadata = std::fs::metadata(path).map_err(unreadable)?;
    // Also keeps a pipe without a writer from blocking for ever.
    if !metadata.is_file() {
        return Err("is not a file".to_owned());
    }
    let mut bytes = Vec::new();
    File::open(path).and_then(|file| file.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes)).map_err(unreadable)?;
    if bytes.len() as u64 > MAX_FILE_BYTES {
        return Err(format!("is larger than {MAX_FILE_BYTES} bytes, which no configuration is"));
    }
    let text = String::from_utf8(bytes).map_err(|error| {
        let offset = error.utf8_error().valid_up_to();
        format!("is not UTF-8 text: byte {offset} is wrong; save it as UTF-8")
    })?;
    Ok(text.strip_prefix('\u{feff}').map_or(text.clone(), ToOwned::to_owned))
}

fn parse(format: Format, text: &str) -> Result<Vec<FileEntry>, SyntaxError> {
    match format {
        Format::Toml => toml::parse(text),
        Format::Yaml => yaml::parse(text),
        Format::Json => json::parse(text),
    }
}
