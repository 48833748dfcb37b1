//! A JSON object as fields that remember their text and their place.
//!
//! Values are read from their own text when they are asked for, so that a fault names field, value and column, and
//! so that nothing is built that no format wants.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use serde::de::{self, Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::{LineFault, expected_tokens};
use crate::error::{Fault, excerpt};
use crate::request::{MAX_ARRIVAL_NS, MAX_TOKENS};

/// Fields that an object may have; more is not a request.
const MAX_FIELDS: usize = 64;

/// The fields of one line, in their order.
pub(super) struct JsonObject<'a> {
    line: &'a str,
    fields: Vec<(String, &'a RawValue)>,
}

/// One field with its text.
pub(super) struct Field<'a> {
    name: &'static str,
    text: &'a str,
    column: u64,
}

impl<'a> JsonObject<'a> {
    pub(super) fn parse(line: &'a str) -> Result<Self, LineFault> {
        let Fields(fields) = serde_json::from_str(line).map_err(|e| LineFault {
            column: (e.column() > 0).then_some(e.column() as u64),
            fault: Box::new(Fault::Json { problem: without_position(&e) }),
        })?;
        for (i, (name, value)) in fields.iter().enumerate() {
            if fields[..i].iter().any(|(earlier, _)| earlier == name) {
                let fault = Fault::Duplicate { what: "field", name: excerpt(name), hint: "" };
                return Err(LineFault::at(column_of(line, value.get()), fault));
            }
        }
        Ok(Self { line, fields })
    }

    pub(super) fn contains(&self, name: &str) -> bool {
        self.fields.iter().any(|(other, _)| other == name)
    }

    /// Refuses fields that are not in `known`; `known_text` tells the reader of the message which are.
    pub(super) fn only(&self, known: &[&str], known_text: &'static str) -> Result<(), LineFault> {
        match self.fields.iter().find(|(name, _)| !known.contains(&name.as_str())) {
            None => Ok(()),
            Some((name, value)) => {
                let fault = Fault::UnknownField { name: excerpt(name), known: known_text };
                Err(LineFault::at(column_of(self.line, value.get()), fault))
            }
        }
    }

    /// The field, if it is there and not null.
    pub(super) fn optional(&self, name: &'static str) -> Option<Field<'a>> {
        let (_, value) = self.fields.iter().find(|(other, _)| other == name)?;
        let text = value.get();
        (text != "null").then(|| Field { name, text, column: column_of(self.line, text) })
    }

    pub(super) fn required(&self, name: &'static str) -> Result<Field<'a>, LineFault> {
        self.optional(name).ok_or_else(|| LineFault::new(Fault::Missing { what: "field", name }))
    }
}

impl Field<'_> {
    pub(super) fn num_tokens(&self) -> Result<u32, LineFault> {
        match self.read::<u32>() {
            Some(num_tokens @ 1..=MAX_TOKENS) => Ok(num_tokens),
            _ => Err(self.fault(expected_tokens())),
        }
    }

    /// A time in units of `unit_ns` nanoseconds, with decimals if it has any.
    pub(super) fn time_ns(&self, unit_ns: u64) -> Result<u64, LineFault> {
        let whole = self.read::<u64>().and_then(|units| units.checked_mul(unit_ns));
        let nanoseconds = whole.or_else(|| self.read::<f64>().and_then(|units| rounded_ns(units, unit_ns)));
        match nanoseconds {
            Some(nanoseconds @ 0..=MAX_ARRIVAL_NS) => Ok(nanoseconds),
            _ => Err(self.fault(format!("a number from 0 to {}", MAX_ARRIVAL_NS / unit_ns))),
        }
    }

    pub(super) fn priority(&self) -> Result<i32, LineFault> {
        self.read().ok_or_else(|| self.fault("a whole number from -2147483648 to 2147483647"))
    }

    pub(super) fn text(&self) -> Result<Arc<str>, LineFault> {
        const MAX_BYTES: usize = 1024;
        match self.read::<Cow<'_, str>>() {
            Some(text) if (1..=MAX_BYTES).contains(&text.len()) => Ok(text.into()),
            _ => Err(self.fault(format!("a text of 1 to {MAX_BYTES} bytes"))),
        }
    }

    pub(super) fn token_ids(&self) -> Result<Arc<[u32]>, LineFault> {
        match self.read::<BoundedList<u32>>() {
            Some(list) if !list.items.is_empty() => Ok(list.items.into()),
            _ => Err(self.fault(format!("a list of 1 to {MAX_TOKENS} token ids, whole numbers below 2^32"))),
        }
    }

    pub(super) fn block_ids(&self) -> Result<Arc<[u64]>, LineFault> {
        match self.read::<BoundedList<u64>>() {
            Some(list) => Ok(list.items.into()),
            None => Err(self.fault("a list of block ids, whole numbers below 2^64")),
        }
    }

    pub(super) fn fault(&self, expected: impl Into<Cow<'static, str>>) -> LineFault {
        LineFault::value(self.column, self.name, self.text, expected)
    }

    fn read<'de, T: Deserialize<'de>>(&'de self) -> Option<T> {
        serde_json::from_str(self.text).ok()
    }
}

/// `units` in nanoseconds; `None` if negative, not finite, or too large for a `u64`.
fn rounded_ns(units: f64, unit_ns: u64) -> Option<u64> {
    #[expect(clippy::cast_precision_loss, reason = "units are powers of ten up to 10^9, exact in a double")]
    let nanoseconds = (units * unit_ns as f64).round();
    #[expect(clippy::cast_precision_loss, reason = "10^18 is exact in a double")]
    let max = MAX_ARRIVAL_NS as f64;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "in 0..=10^18 and whole")]
    (units >= 0.0 && nanoseconds <= max).then_some(nanoseconds as u64)
}

/// Byte of `line` at which its part `text` begins, from 1.
fn column_of(line: &str, text: &str) -> u64 {
    (text.as_ptr().addr() - line.as_ptr().addr()) as u64 + 1
}

/// The parser's message without its own position: the line is ours, not the parser's line 1.
fn without_position(error: &serde_json::Error) -> String {
    let text = error.to_string();
    match text.find(" at line ") {
        Some(end) => text[..end].to_owned(),
        None => text,
    }
}

/// An object's entries in their order, values unread.
struct Fields<'a>(Vec<(String, &'a RawValue)>);

impl<'de> Deserialize<'de> for Fields<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct FieldsVisitor;
        impl<'de> Visitor<'de> for FieldsVisitor {
            type Value = Fields<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut fields = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    if fields.len() == MAX_FIELDS {
                        return Err(de::Error::custom(format_args!("more than {MAX_FIELDS} fields")));
                    }
                    fields.push(entry);
                }
                Ok(Fields(fields))
            }
        }
        deserializer.deserialize_map(FieldsVisitor)
    }
}

/// A list of at most [`MAX_TOKENS`] items.
struct BoundedList<T> {
    items: Vec<T>,
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for BoundedList<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ListVisitor<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for ListVisitor<T> {
            type Value = BoundedList<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
                let mut items = Vec::new();
                while let Some(item) = seq.next_element()? {
                    if items.len() == MAX_TOKENS as usize {
                        return Err(de::Error::custom("too many items"));
                    }
                    items.push(item);
                }
                Ok(BoundedList { items })
            }
        }
        deserializer.deserialize_seq(ListVisitor(PhantomData))
    }
}
