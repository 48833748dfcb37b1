//! How requests are named: by text at the edge, by slot inside.

use std::fmt;
use std::sync::Arc;

pub use stepline_kv_cache::{BlockId, RequestSlot};

/// A request's text id, unique among the requests that have not ended. Cheap to clone.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(pub Arc<str>);

impl RequestId {
    /// The id as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<&str> for RequestId {
    fn from(id: &str) -> Self {
        Self(id.into())
    }
}

impl From<String> for RequestId {
    fn from(id: String) -> Self {
        Self(id.into())
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A request's place in the scheduler's table, with the generation that tells it from earlier users of the place.
///
/// Valid until the `schedule` call that reports the request as finished has returned; later uses find nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RequestHandle {
    /// Place in the table; dense, so it can index a caller's own table.
    pub slot: RequestSlot,
    /// Counts the requests that had this place before.
    pub generation: u32,
}

/// A request by both names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestRef {
    /// Name inside.
    pub handle: RequestHandle,
    /// Name at the edge.
    pub id: RequestId,
}
