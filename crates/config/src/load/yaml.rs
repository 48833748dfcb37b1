//! YAML, with the line of every key.

use saphyr_parser::{Event, Parser, ScalarStyle, Span};

use super::file::{FileEntry, SyntaxError};
use super::layer::RawValue;
use crate::settings::Value;

/// Takes YAML apart: one mapping at the top, or nothing.
pub(super) fn parse(text: &str) -> Result<Vec<FileEntry>, SyntaxError> {
    let mut events = Events(Parser::new_from_str(text));
    let mut entries = Vec::new();
    let mut num_documents = 0;
    loop {
        let (event, span) = events.next()?;
        match event {
            Event::DocumentStart(_) if num_documents > 0 => {
                return Err(syntax_error(span, "holds more than one document; keep one"));
            }
            Event::DocumentStart(_) => num_documents += 1,
            Event::StreamEnd => return Ok(entries),
            Event::MappingStart(..) => read_entries(&mut events, &mut entries)?,
            // A document of comments only is null.
            Event::Scalar(text, ScalarStyle::Plain, ..) if text.is_empty() || text == "~" || text == "null" => {}
            Event::Scalar(..) | Event::SequenceStart(..) | Event::Alias(_) => {
                return Err(syntax_error(span, "must be a mapping, `name: value`"));
            }
            _ => {}
        }
    }
}

/// Reads keys and values up to the end of the mapping.
fn read_entries(events: &mut Events<'_>, entries: &mut Vec<FileEntry>) -> Result<(), SyntaxError> {
    loop {
        let (event, span) = events.next()?;
        let key = match event {
            Event::MappingEnd => return Ok(()),
            Event::Scalar(key, ..) => key.into_owned(),
            _ => return Err(syntax_error(span, "a key must be a plain name")),
        };
        let value = match events.next()?.0 {
            Event::Scalar(text, ScalarStyle::Plain, _, None) => plain(&text),
            Event::Scalar(text, _, _, None) => RawValue::Typed(Value::Text(text.into_owned())),
            Event::Scalar(..) => RawValue::Other("a value with a tag"),
            Event::SequenceStart(..) => {
                events.skip_to_end()?;
                RawValue::Other("a list")
            }
            Event::MappingStart(..) => {
                events.skip_to_end()?;
                RawValue::Table
            }
            _ => RawValue::Other("an alias"),
        };
        entries.push(FileEntry { key, value, line: span.start.line() });
    }
}

/// A scalar without quotes, by the core schema of YAML 1.2.
fn plain(text: &str) -> RawValue {
    let number = |value| RawValue::Number(value, text.to_owned());
    let other_text = || RawValue::Typed(Value::Text(text.to_owned()));
    match text {
        "" | "~" | "null" | "Null" | "NULL" => RawValue::Other("null"),
        "true" | "True" | "TRUE" => RawValue::Typed(Value::Boolean(true)),
        "false" | "False" | "FALSE" => RawValue::Typed(Value::Boolean(false)),
        ".nan" | ".NaN" | ".NAN" => number(Value::Number(f64::NAN)),
        ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" => number(Value::Number(f64::INFINITY)),
        "-.inf" | "-.Inf" | "-.INF" => number(Value::Number(f64::NEG_INFINITY)),
        // Rust also reads `inf` and `NaN` as numbers; YAML takes them for text.
        _ if !text.contains(|c: char| c.is_ascii_digit()) => other_text(),
        _ => match (text.parse(), text.parse()) {
            (Ok(integer), _) => number(Value::Integer(integer)),
            (_, Ok(value)) => number(Value::Number(value)),
            _ => other_text(),
        },
    }
}

struct Events<'input>(Parser<'input, saphyr_parser::StrInput<'input>>);

impl<'input> Events<'input> {
    fn next(&mut self) -> Result<(Event<'input>, Span), SyntaxError> {
        match self.0.next_event() {
            Some(Ok(event)) => Ok(event),
            Some(Err(error)) => {
                Err(SyntaxError { line: Some(error.marker().line()), reason: format!("is not YAML: {}", error.info()) })
            }
            None => Err(SyntaxError { line: None, reason: "is not YAML: it ends too early".to_owned() }),
        }
    }

    /// Skips the rest of a list or mapping that has just begun, however deep: without recursion.
    fn skip_to_end(&mut self) -> Result<(), SyntaxError> {
        let mut depth = 1_usize;
        while depth > 0 {
            match self.next()?.0 {
                Event::SequenceStart(..) | Event::MappingStart(..) => depth += 1,
                Event::SequenceEnd | Event::MappingEnd => depth -= 1,
                _ => {}
            }
        }
        Ok(())
    }
}

fn syntax_error(span: Span, reason: &str) -> SyntaxError {
    SyntaxError { line: Some(span.start.line()), reason: reason.to_owned() }
}
