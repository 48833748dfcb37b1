//! What a user should know of a valid configuration.

use std::fmt;

/// A remark on a setting; nothing is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    /// The setting.
    pub field: &'static str,
    /// The remark, to follow the setting's name.
    pub message: String,
}

impl Notice {
    pub(crate) fn new(field: &'static str, message: String) -> Self {
        Self { field, message }
    }
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} = {}", self.field, self.message)
    }
}
