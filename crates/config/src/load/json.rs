//! JSON, with the line of every value.

use std::fmt;

use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue as RawJson;

use super::file::{FileEntry, SyntaxError};
use super::layer::RawValue;
use super::lines::LineIndex;
use crate::settings::Value;

/// Takes `text` apart. Values are kept as slices of it, whose place tells the line; however deep, they are not
/// recursed into.
pub(super) fn parse(text: &str) -> Result<Vec<FileEntry>, SyntaxError> {
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let members = deserializer.deserialize_map(Members).and_then(|members| deserializer.end().map(|()| members));
    let members = members.map_err(|error| SyntaxError {
        line: Some(error.line()).filter(|line| *line > 0),
        reason: format!("cannot be read as JSON: {error}"),
    })?;
    let lines = LineIndex::new(text);
    let entry = |(key, value): (String, &RawJson)| {
        let offset = value.get().as_ptr().addr() - text.as_ptr().addr();
        FileEntry { key, value: value_of(value.get()), line: lines.line_at(offset) }
    };
    Ok(members.into_iter().map(entry).collect())
}

/// The members of an object in their order, those that come again too.
struct Members;

impl<'text> Visitor<'text> for Members {
    type Value = Vec<(String, &'text RawJson)>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object, {\"name\": value}")
    }

    fn visit_map<M: MapAccess<'text>>(self, mut map: M) -> Result<Self::Value, M::Error> {
        let mut members = Vec::new();
        while let Some(member) = map.next_entry()? {
            members.push(member);
        }
        Ok(members)
    }
}

/// A value by its text, which the grammar admits.
fn value_of(text: &str) -> RawValue {
    match text.as_bytes().first() {
        Some(b'[') => RawValue::Other("a list"),
        Some(b'{') => RawValue::Table,
        Some(b'n') => RawValue::Other("null"),
        Some(b't') => RawValue::Typed(Value::Boolean(true)),
        Some(b'f') => RawValue::Typed(Value::Boolean(false)),
        Some(b'"') => serde_json::from_str(text)
            .map_or(RawValue::Other("a text with half a character"), |text| RawValue::Typed(Value::Text(text))),
        _ => match (text.parse(), text.parse()) {
            (Ok(integer), _) => RawValue::Number(Value::Integer(integer), text.to_owned()),
            (_, Ok(number)) => RawValue::Number(Value::Number(number), text.to_owned()),
            _ => RawValue::Other("no number"),
        },
    }
}
