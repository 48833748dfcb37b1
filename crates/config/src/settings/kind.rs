//! Kinds of values: what is allowed, and how it reads.

use std::fmt;

/// The most that a count may be: counts of vLLM fit into a signed 32-bit tensor, and sums of two into a `u32`.
pub(crate) const MAX_COUNT: u64 = i32::MAX as u64;

/// Which values a setting takes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// True or false.
    Boolean,
    /// A whole number from `min` to `max`, both included.
    Count {
        /// The smallest.
        min: u64,
        /// The largest.
        max: u64,
    },
    /// A number from 0 to 1.
    Rate,
    /// A number above 0, to 1.
    PositiveRate,
    /// A number from 0 to below 1.
    Watermark,
    /// One of these texts.
    Choice(&'static [&'static str]),
    /// One or several of these texts, with commas between.
    Choices(&'static [&'static str]),
    /// Any text but the empty one.
    Text,
}

/// The value of a setting, without its type.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// No value.
    Unset,
    /// True or false.
    Boolean(bool),
    /// A whole number.
    Integer(i128),
    /// Any other number.
    Number(f64),
    /// Text.
    Text(String),
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unset => f.write_str("unset"),
            Self::Boolean(value) => value.fmt(f),
            Self::Integer(value) => value.fmt(f),
            Self::Number(value) => value.fmt(f),
            Self::Text(value) => value.fmt(f),
        }
    }
}

impl Kind {
    /// A whole number from `min` on.
    pub(crate) const fn count_from(min: u64) -> Self {
        Self::Count { min, max: MAX_COUNT }
    }

    /// Whether the setting may have `value`. "Unset" is no matter of kinds and always admitted.
    #[must_use]
    pub fn admits(self, value: &Value) -> bool {
        match (self, value) {
            (_, Value::Unset) | (Self::Boolean, Value::Boolean(_)) => true,
            (Self::Count { min, max }, Value::Integer(value)) => (i128::from(min)..=i128::from(max)).contains(value),
            (Self::Rate | Self::PositiveRate | Self::Watermark, Value::Integer(value)) => match value {
                0 => self != Self::PositiveRate,
                1 => self != Self::Watermark,
                _ => false,
            },
            (Self::Rate, Value::Number(value)) => (0.0..=1.0).contains(value),
            (Self::PositiveRate, Value::Number(value)) => *value > 0.0 && *value <= 1.0,
            (Self::Watermark, Value::Number(value)) => (0.0..1.0).contains(value),
            (Self::Choice(names), Value::Text(text)) => names.contains(&text.as_str()),
            (Self::Choices(names), Value::Text(text)) => text.split(',').all(|name| names.contains(&name.trim())),
            (Self::Text, Value::Text(text)) => !text.is_empty(),
            _ => false,
        }
    }

    /// What the setting takes, to follow "must be".
    #[must_use]
    pub fn allowed(self) -> String {
        match self {
            Self::Boolean => "true or false".to_owned(),
            Self::Count { min, max: MAX_COUNT } => format!("a whole number, {min} or more (up to {MAX_COUNT})"),
            Self::Count { min, max } if min == max => format!("{min}"),
            Self::Count { min, max } => format!("a whole number from {min} to {max}"),
            Self::Rate => "a number from 0 to 1".to_owned(),
            Self::PositiveRate => "a number above 0, at most 1".to_owned(),
            Self::Watermark => "a number from 0 to below 1".to_owned(),
            Self::Choice(names) => format!("one of {}", names.join(", ")),
            Self::Choices(names) => format!("one or several of {}, with commas between", names.join(", ")),
            Self::Text => "a text that is not empty".to_owned(),
        }
    }

    /// The range in short, for help and reference.
    #[must_use]
    pub fn range(self) -> String {
        match self {
            Self::Boolean => "true, false".to_owned(),
            Self::Count { min, max: MAX_COUNT } => format!("≥ {min}"),
            Self::Count { min, max } if min == max => format!("{min}"),
            Self::Count { min, max } => format!("{min}..={max}"),
            Self::Rate => "0 ≤ x ≤ 1".to_owned(),
            Self::PositiveRate => "0 < x ≤ 1".to_owned(),
            Self::Watermark => "0 ≤ x < 1".to_owned(),
            Self::Choice(names) => names.join(", "),
            Self::Choices(names) => format!("some of {}", names.join(", ")),
            Self::Text => "text".to_owned(),
        }
    }

    /// Reads the text of a flag or variable, which carries no type. What cannot be read stays text, which is then not
    /// admitted.
    #[must_use]
    pub fn read(self, text: &str) -> Value {
        let read = match self {
            Self::Boolean => match text {
                "true" | "1" => Some(Value::Boolean(true)),
                "false" | "0" => Some(Value::Boolean(false)),
                _ => None,
            },
            Self::Count { .. } => text.parse().ok().map(Value::Integer),
            Self::Rate | Self::PositiveRate | Self::Watermark => text.parse().ok().map(Value::Number),
            Self::Choice(_) | Self::Choices(_) | Self::Text => None,
        };
        read.unwrap_or_else(|| Value::Text(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_is_a_whole_number_in_its_range() {
        let kind = Kind::Count { min: 10, max: 10_000 };
        for text in ["10", "100", "10000"] {
            assert!(kind.admits(&kind.read(text)), "{text}");
        }
        for text in ["9", "10001", "-10", "1e3", "10.0", "", "ten", "340282366920938463463374607431768211456"] {
            assert!(!kind.admits(&kind.read(text)), "{text}");
        }
    }

    #[test]
    fn a_rate_is_a_number_from_0_to_1() {
        for text in ["0", "1", "0.5", "1e-3", "-0.0"] {
            assert!(Kind::Rate.admits(&Kind::Rate.read(text)), "{text}");
        }
        for text in ["NaN", "inf", "-inf", "1.5", "-0.1", "abc", "true", ""] {
            assert!(!Kind::Rate.admits(&Kind::Rate.read(text)), "{text}");
        }
        assert!(!Kind::Watermark.admits(&Value::Integer(1)));
        assert!(!Kind::PositiveRate.admits(&Value::Number(0.0)));
    }

    #[test]
    fn a_value_of_another_type_is_not_admitted() {
        assert!(!Kind::Boolean.admits(&Value::Integer(1)), "a file has booleans");
        assert!(!Kind::count_from(1).admits(&Value::Boolean(true)));
        assert!(!Kind::count_from(1).admits(&Value::Text("64".to_owned())), "quotes make text");
        assert!(!Kind::Text.admits(&Value::Integer(7)));
    }
}
