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
        FileEntry { key: key.to_owned(), value: value_of(item), line: span.map_or(1, |span| lines.line_at(span.start)) }
    });
    Ok(entries.collect())
}

fn value_of(item: &Item) -> RawValue {
    match item {
        Item::Value(TomlValue::String(text)) => RawValue::Typed(Value::Text(text.value().clone())),
        Item::Value(TomlValue::Integer(number)) => RawValue::Typed(Value::Integer((*number.value()).into())),
        Item::Value(TomlValue::Float(number)) => RawValue::Typed(Value::Number(*number.value())),
        Item::Value(TomlValue::Boolean(truth)) => RawValue::Typed(Value::Boolean(*truth.value())),
        Item::Value(TomlValue::Datetime(_)) => RawValue::Other("a date"),
        Item::Value(TomlValue::Array(_)) | Item::ArrayOfTables(_) => RawValue::Other("a list"),
        Item::Value(TomlValue::InlineTable(_)) | Item::Table(_) => RawValue::Other("a table"),
        Item::None => RawValue::Other("nothing"),
    }
}
