//! What every record can do, and the table that declares one.

use std::sync::Arc;

use crate::spec::AttributeType;

/// The value of an attribute, borrowed from its record.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum AttributeValue<'a> {
    /// An integer. Counters above `i64::MAX` become `i64::MAX`: OTLP has no larger integer.
    Int(i64),
    /// A double.
    Float(f64),
    /// One of a fixed set of texts.
    Static(&'static str),
    /// A text that exporters may share instead of copying it.
    Shared(&'a Arc<str>),
}

impl AttributeValue<'_> {
    /// Returns the text of a string attribute.
    #[must_use]
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Self::Static(text) => Some(text),
            Self::Shared(text) => Some(text),
            Self::Int(_) | Self::Float(_) => None,
        }
    }
}

impl From<u64> for AttributeValue<'_> {
    fn from(value: u64) -> Self {
        Self::Int(i64::try_from(value).unwrap_or(i64::MAX))
    }
}

/// A typed trace event.
pub trait Record {
    /// Returns the name of the event, e.g. `step.BATCH_SUMMARY`.
    fn event_name(&self) -> &'static str;

    /// Shows the attributes to `visit`, in order of emission. Allocates nothing.
    fn for_each_attribute(&self, visit: impl FnMut(&'static str, AttributeValue<'_>));
}

/// A Rust type that can be the field of a record.
pub(crate) trait Field {
    const TYPE: AttributeType;
    const OPTIONAL: bool = false;

    /// Returns the attribute, or `None` if it is to be left out.
    fn value(&self) -> Option<AttributeValue<'_>>;
}

impl Field for u32 {
    const TYPE: AttributeType = AttributeType::Int;

    fn value(&self) -> Option<AttributeValue<'_>> {
        Some(AttributeValue::Int(i64::from(*self)))
    }
}

impl Field for u64 {
    const TYPE: AttributeType = AttributeType::Int;

    fn value(&self) -> Option<AttributeValue<'_>> {
        Some((*self).into())
    }
}

impl Field for f64 {
    const TYPE: AttributeType = AttributeType::Float;

    fn value(&self) -> Option<AttributeValue<'_>> {
        Some(AttributeValue::Float(*self))
    }
}

impl Field for Arc<str> {
    const TYPE: AttributeType = AttributeType::Str;

    fn value(&self) -> Option<AttributeValue<'_>> {
        Some(AttributeValue::Shared(self))
    }
}

impl<F: Field> Field for Option<F> {
    const TYPE: AttributeType = F::TYPE;
    const OPTIONAL: bool = true;

    fn value(&self) -> Option<AttributeValue<'_>> {
        self.as_ref().and_then(F::value)
    }
}

/// Declares a record: for each field its type, attribute key and unit, and in the doc comment its meaning.
///
/// Derives the struct, its [`AttributeSpec`](crate::spec::AttributeSpec)s, the walk over its attributes and, with the
/// feature `serde`, how it is read from the map of a JSON line.
macro_rules! record {
    (
        $(#[$meta:meta])*
        $vis:vis struct $Record:ident {
            $(
                $(#[doc = $meaning:literal])+
                $field:ident: $Type:ty = $key:path, $unit:path;
            )+
        }
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq)]
        $vis struct $Record {
            $($(#[doc = $meaning])+ $vis $field: $Type,)+
        }

        impl $Record {
            /// The attributes of this record, in order of emission.
            pub(crate) const ATTRIBUTES: &'static [$crate::spec::AttributeSpec] = &[
                $($crate::spec::AttributeSpec {
                    key: $key,
                    ty: <$Type as $crate::record::Field>::TYPE,
                    unit: $unit,
                    meaning: concat!($($meaning),+),
                    optional: <$Type as $crate::record::Field>::OPTIONAL,
                    stability: $crate::spec::Stability::Stable,
                },)+
            ];

            pub(crate) fn visit_fields(&self, mut visit: impl FnMut(&'static str, $crate::AttributeValue<'_>)) {
                $(
                    if let Some(value) = $crate::record::Field::value(&self.$field) {
                        visit($key, value);
                    }
                )+
            }

            /// Reads the rest of a line, after its name. Unknown and repeated keys are errors.
            #[cfg(feature = "serde")]
            pub(crate) fn from_map<'de, A: serde::de::MapAccess<'de>>(mut map: A) -> Result<Self, A::Error> {
                use serde::de::Error as _;

                const KEYS: &[&str] = &[$($key),+];
                $(let mut $field: Option<$Type> = None;)+
                while let Some(key) = map.next_key::<std::borrow::Cow<'de, str>>()? {
                    match key.as_ref() {
                        $($key => {
                            if $field.replace(map.next_value()?).is_some() {
                                return Err(A::Error::duplicate_field($key));
                            }
                        })+
                        unknown => return Err(A::Error::unknown_field(unknown, KEYS)),
                    }
                }
                Ok(Self {
                    $($field: match $field {
                        Some(value) => value,
                        None => <$Type as $crate::line::Absent>::absent($key)?,
                    },)+
                })
            }
        }
    };
}

pub(crate) use record;
