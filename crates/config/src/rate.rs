//! Shares that cannot leave their interval: [`Rate`] and [`Watermark`].

use std::fmt;
use std::str::FromStr;

/// A share from 0 to 1, both included: of steps, requests or blocks.
///
/// Cannot hold NaN, and negative zero becomes zero, so equal rates print alike.
///
/// ```
/// use stepline_config::Rate;
///
/// let rate: Rate = "0.25".parse()?;
/// assert_eq!(rate.get(), 0.25);
/// assert!(Rate::new(1.5).is_err());
/// assert!(Rate::new(f64::NAN).is_err());
/// # Ok::<(), stepline_config::RateError>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize), serde(try_from = "f64"))]
pub struct Rate(f64);

/// The value is no [`Rate`].
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("`{value}` is not a rate: give a number from 0 to 1")]
pub struct RateError {
    value: String,
}

impl Rate {
    /// Never.
    pub const ZERO: Self = Self(0.0);
    /// Always.
    pub const ONE: Self = Self(1.0);

    /// Takes a number from 0 to 1.
    ///
    /// # Errors
    /// If `value` is NaN, negative or above 1.
    pub fn new(value: f64) -> Result<Self, RateError> {
        if (0.0..=1.0).contains(&value) {
            Ok(Self(without_sign_of_zero(value)))
        } else {
            Err(RateError { value: value.to_string() })
        }
    }

    /// Returns the share as a number.
    #[must_use]
    pub const fn get(self) -> f64 {
        self.0
    }

    /// Whether something with these uniform random bits is in the share: never at 0, always at 1, and at a higher rate
    /// whenever at a lower one.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "53 bits fit a double")]
    pub fn admits(self, uniform_bits: u64) -> bool {
        // From 0 to below 1, exactly.
        let draw = (uniform_bits >> 11) as f64 / (1_u64 << 53) as f64;
        draw < self.0
    }
}

/// The share of KV cache blocks that admission leaves free: from 0 to 1, 1 excluded.
///
/// At 1 no request could ever be admitted.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize), serde(try_from = "f64"))]
pub struct Watermark(f64);

/// The value is no [`Watermark`].
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("`{value}` is not a watermark: give a number from 0 to below 1")]
pub struct WatermarkError {
    value: String,
}

impl Watermark {
    /// Admission may use every free block.
    pub const ZERO: Self = Self(0.0);

    /// Takes a number from 0 to below 1.
    ///
    /// # Errors
    /// If `value` is NaN, negative, 1 or above.
    pub fn new(value: f64) -> Result<Self, WatermarkError> {
        if (0.0..1.0).contains(&value) {
            Ok(Self(without_sign_of_zero(value)))
        } else {
            Err(WatermarkError { value: value.to_string() })
        }
    }

    /// Returns the share as a number.
    #[must_use]
    pub const fn get(self) -> f64 {
        self.0
    }
}

/// Adding zero turns -0.0 into 0.0 and changes nothing else.
fn without_sign_of_zero(value: f64) -> f64 {
    value + 0.0
}

impl TryFrom<f64> for Rate {
    type Error = RateError;

    fn try_from(value: f64) -> Result<Self, RateError> {
        Self::new(value)
    }
}

impl TryFrom<f64> for Watermark {
    type Error = WatermarkError;

    fn try_from(value: f64) -> Result<Self, WatermarkError> {
        Self::new(value)
    }
}

impl FromStr for Rate {
    type Err = RateError;

    fn from_str(text: &str) -> Result<Self, RateError> {
        let value = text.parse().map_err(|_| RateError { value: text.to_owned() })?;
        Self::new(value)
    }
}

impl FromStr for Watermark {
    type Err = WatermarkError;

    fn from_str(text: &str) -> Result<Self, WatermarkError> {
        let value = text.parse().map_err(|_| WatermarkError { value: text.to_owned() })?;
        Self::new(value)
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for Watermark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for Rate {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Rate".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "number", "minimum": 0, "maximum": 1 })
    }
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for Watermark {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Watermark".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "number", "minimum": 0, "exclusiveMaximum": 1 })
    }
}

#[cfg(test)]
#[expect(clippy::manual_range_contains, reason = "the tests say by comparisons what the code says by ranges")]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn no_bits_are_in_nothing_and_all_bits_are_in_everything() {
        for bits in [0, 1, u64::MAX / 2, u64::MAX] {
            assert!(!Rate::ZERO.admits(bits));
            assert!(Rate::ONE.admits(bits));
        }
        let half = Rate::new(0.5).expect("a rate");
        assert!(half.admits(u64::MAX / 2) && !half.admits(u64::MAX / 2 + 1));
    }

    proptest! {
        #[test]
        fn a_rate_is_exactly_a_number_from_0_to_1(value in prop_oneof![any::<f64>(), -0.5..1.5]) {
            prop_assert_eq!(Rate::new(value).is_ok(), value >= 0.0 && value <= 1.0);
            prop_assert_eq!(Watermark::new(value).is_ok(), value >= 0.0 && value < 1.0);
        }

        #[test]
        fn a_rate_survives_being_printed_and_read(value in 0.0..=1.0) {
            let rate = Rate::new(value).expect("in range");
            prop_assert_eq!(rate.to_string().parse::<Rate>(), Ok(rate));
        }
    }

    #[test]
    fn the_ends_belong_to_a_rate_but_one_is_no_watermark() {
        assert_eq!(Rate::new(0.0), Ok(Rate::ZERO));
        assert_eq!(Rate::new(1.0), Ok(Rate::ONE));
        assert_eq!(Watermark::new(0.0), Ok(Watermark::ZERO));
        assert!(Watermark::new(1.0).is_err());
        assert!(Watermark::new(1.0_f64.next_down()).is_ok());
        assert!(Rate::new(1.0_f64.next_up()).is_err());
    }

    #[test]
    fn negative_zero_becomes_zero() {
        assert_eq!(Rate::new(-0.0).expect("zero").to_string(), "0");
        assert_eq!(Watermark::new(-0.0).expect("zero").to_string(), "0");
    }

    #[test]
    fn text_that_is_no_number_in_range_is_refused_by_name() {
        for text in ["NaN", "inf", "-0.1", "1.5", "abc", "", " 0.5"] {
            let error = text.parse::<Rate>().expect_err(text);
            assert!(error.to_string().contains("from 0 to 1"), "{error}");
        }
    }
}
