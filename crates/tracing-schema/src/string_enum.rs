//! Enumerations that travel as text.

/// A text that names no variant of an enumeration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown {what} `{found}`, expected one of {}", expected.join(", "))]
pub struct UnknownName {
    /// What was to be named, e.g. `request phase`.
    pub what: &'static str,
    /// The text found.
    pub found: String,
    /// The texts that name a variant.
    pub expected: &'static [&'static str],
}

/// Declares an enumeration whose variants are written as fixed texts.
macro_rules! string_enum {
    (
        $(#[$meta:meta])*
        $vis:vis enum $Name:ident ($what:literal) {
            $($(#[$variant_meta:meta])* $Variant:ident = $text:literal,)+
        }
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        $vis enum $Name {
            $($(#[$variant_meta])* $Variant,)+
        }

        impl $Name {
            /// The texts of all variants, in order of declaration.
            $vis const NAMES: &'static [&'static str] = &[$($text),+];

            /// Returns the text that stands for this variant in events.
            #[must_use]
            $vis const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$Variant => $text,)+
                }
            }
        }

        impl std::fmt::Display for $Name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl std::str::FromStr for $Name {
            type Err = $crate::string_enum::UnknownName;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                match text {
                    $($text => Ok(Self::$Variant),)+
                    _ => Err($crate::string_enum::UnknownName {
                        what: $what,
                        found: text.to_owned(),
                        expected: Self::NAMES,
                    }),
                }
            }
        }

        impl $crate::record::Field for $Name {
            const TYPE: $crate::spec::AttributeType = $crate::spec::AttributeType::OneOf(Self::NAMES);

            fn value(&self) -> Option<$crate::AttributeValue<'_>> {
                Some($crate::AttributeValue::Static(self.as_str()))
            }
        }

        #[cfg(feature = "serde")]
        impl serde::Serialize for $Name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }

        #[cfg(feature = "serde")]
        impl<'de> serde::Deserialize<'de> for $Name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }
    };
}

pub(crate) use string_enum;
