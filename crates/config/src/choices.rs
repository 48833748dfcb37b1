//! Settings that are one of a few names.

use std::fmt;
use std::str::FromStr;

/// Declares an enum whose variants are the values of a setting.
macro_rules! choice {
    ($(#[$meta:meta])* $name:ident { $($(#[$variant_meta:meta])* $variant:ident = $text:literal,)+ }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
        #[cfg_attr(feature = "serde", derive(serde::Deserialize))]
        pub enum $name {
            $($(#[$variant_meta])* #[cfg_attr(feature = "serde", serde(rename = $text))] $variant,)+
        }

        impl $name {
            /// The accepted texts.
            pub const NAMES: &'static [&'static str] = &[$($text),+];

            /// The text by which configurations name the value.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text,)+ }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(self.as_str())
            }
        }

        impl FromStr for $name {
            type Err = UnknownChoice;

            fn from_str(text: &str) -> Result<Self, UnknownChoice> {
                match text {
                    $($text => Ok(Self::$variant),)+
                    _ => Err(UnknownChoice { value: text.to_owned(), allowed: Self::NAMES }),
                }
            }
        }
    };
}

/// The text is none of the names that a setting knows.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{value}` is not one of {}", allowed.join(", "))]
pub struct UnknownChoice {
    value: String,
    allowed: &'static [&'static str],
}

choice! {
    /// The order in which waiting requests are admitted, and running ones preempted.
    SchedulingPolicy {
        /// First come, first served.
        #[default]
        Fcfs = "fcfs",
        /// The smallest priority value first, then by arrival.
        Priority = "priority",
    }
}

choice! {
    /// The hash by which vLLM names the content of blocks.
    PrefixCachingHashAlgo {
        /// SHA-256 over Python's pickle.
        #[default]
        Sha256 = "sha256",
        /// SHA-256 over canonical CBOR.
        Sha256Cbor = "sha256_cbor",
        /// xxHash over Python's pickle.
        Xxhash = "xxhash",
        /// xxHash over canonical CBOR.
        XxhashCbor = "xxhash_cbor",
    }
}

choice! {
    /// A part of vLLM that can be traced in detail.
    TracedModule {
        /// The model's forward pass.
        #[default]
        Model = "model",
        /// The worker.
        Worker = "worker",
        /// Everything.
        All = "all",
    }
}

/// The modules of `collect_detailed_traces`; at least one.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize), serde(try_from = "String"))]
pub struct DetailedTraces(Vec<TracedModule>);

impl DetailedTraces {
    /// The modules, in the order given.
    #[must_use]
    pub fn modules(&self) -> &[TracedModule] {
        &self.0
    }
}

impl FromStr for DetailedTraces {
    type Err = UnknownChoice;

    fn from_str(text: &str) -> Result<Self, UnknownChoice> {
        text.split(',').map(|module| module.trim().parse()).collect::<Result<_, _>>().map(Self)
    }
}

impl TryFrom<String> for DetailedTraces {
    type Error = UnknownChoice;

    fn try_from(text: String) -> Result<Self, UnknownChoice> {
        text.parse()
    }
}

impl fmt::Display for DetailedTraces {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (idx, module) in self.0.iter().enumerate() {
            f.write_str(if idx == 0 { "" } else { "," })?;
            module.fmt(f)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_read_back_as_what_it_names() {
        for name in SchedulingPolicy::NAMES {
            assert_eq!(name.parse::<SchedulingPolicy>().map(SchedulingPolicy::as_str), Ok(*name));
        }
        for name in PrefixCachingHashAlgo::NAMES {
            assert_eq!(name.parse::<PrefixCachingHashAlgo>().map(PrefixCachingHashAlgo::as_str), Ok(*name));
        }
        assert!("FCFS".parse::<SchedulingPolicy>().is_err());
    }

    #[test]
    fn detailed_traces_are_a_list_with_commas() {
        let traces: DetailedTraces = "model, worker".parse().expect("two modules");
        assert_eq!(traces.modules(), [TracedModule::Model, TracedModule::Worker]);
        assert_eq!(traces.to_string(), "model,worker");
        assert!("".parse::<DetailedTraces>().is_err());
        assert!("model,,all".parse::<DetailedTraces>().is_err());
    }
}
