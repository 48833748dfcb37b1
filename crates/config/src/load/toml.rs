//! TOML, with the line of every key.

use toml_edit::{Document, Item, Value as TomlValue};

use super::file::{FileEntry, SyntaxError};
use super::layer::RawValue;
use super::lines::LineIndex;
use crate::settings::Value;

/// Takes `text` apart. Keys stand at the top level; a table is a value that no setting takes.
pub(super) fn parse(text: &str) -> Result<Vec<FileEntry>, SyntaxError> {
    let lines = LineIndex::new(text);
    let document = Document::parse(text).map_err(|error| SyntaxError {
        line: error.span().map(|span| lines.line_at(span.start)),
        reason: format!("is not TOML: {}", error.message().replace('\n', "; ")),
    })?;
    let table = document.as_table();
    let entries = table.iter().map(|(key, item)| {
        // A table has no span if only its sub-tables are written; its key has one all the same.
        let span = table.key(key).and_then(toml_edit::Key::span).or_else(|| item.span());
        FileEntry {
            key: key.to_owned(),
            value: value_of(item, text),
            line: span.map_or(1, |span| lines.line_at(span.start)),
        }
    });
    Ok(entries.collect())
}

fn value_of(item: &Item, text: &str) -> RawValue {
    let number = |value: Value| {
        // A value that was parsed has its place; one without could only be shown in our own spelling.
        let written = item.span().and_then(|span| text.get(span)).map_or_else(|| value.to_string(), ToOwned::to_owned);
        RawValue::Number(value, written)
    };
    match item {
        Item::Value(TomlValue::String(text)) => RawValue::Typed(Value::Text(text.value().clone())),
        Item::Value(TomlValue::Integer(value)) => number(Value::Integer((*value.value()).into())),
        Item::Value(TomlValue::Float(value)) => number(Value::Number(*value.value())),
        Item::Value(TomlValue::Boolean(truth)) => RawValue::Typed(Value::Boolean(*truth.value())),
        Item::Value(TomlValue::Datetime(_)) => RawValue::Other("a date"),
        Item::Value(TomlValue::Array(_)) => RawValue::Other("a list"),
        Item::Value(TomlValue::InlineTable(_)) | Item::Table(_) | Item::ArrayOfTables(_) => RawValue::Table,
        Item::None => RawValue::Other("nothing"),
    }
}
