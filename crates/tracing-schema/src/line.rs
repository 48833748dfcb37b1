//! Records as JSON objects, one on each line of a trace file.
//!
//! `name`, the event's name, comes first, then the attributes under their keys. Reading a line back gives an equal
//! record, if floats are parsed exactly (`serde_json` needs its feature `float_roundtrip` for that).

use std::borrow::Cow;
use std::fmt;

use serde::de::{Error as _, MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::journey::JourneyLine;
use crate::spec::EVENTS;
use crate::{AttributeValue, BatchSummary, JourneyEvent, Record, RequestSnapshot, names};

/// The key of the event's name.
pub(crate) const NAME: &str = "name";

/// Any record, as a line of a trace file holds it.
#[derive(Debug, Clone, PartialEq)]
pub enum TraceRecord {
    /// `step.BATCH_SUMMARY`
    BatchSummary(BatchSummary),
    /// `step.REQUEST_SNAPSHOT`
    RequestSnapshot(RequestSnapshot),
    /// `journey.*`
    JourneyEvent(JourneyEvent),
}

impl From<BatchSummary> for TraceRecord {
    fn from(record: BatchSummary) -> Self {
        Self::BatchSummary(record)
    }
}

impl From<RequestSnapshot> for TraceRecord {
    fn from(record: RequestSnapshot) -> Self {
        Self::RequestSnapshot(record)
    }
}

impl From<JourneyEvent> for TraceRecord {
    fn from(record: JourneyEvent) -> Self {
        Self::JourneyEvent(record)
    }
}

/// What becomes of a field that a line does not have.
pub(crate) trait Absent: Sized {
    fn absent<E: serde::de::Error>(key: &'static str) -> Result<Self, E>;
}

impl<T> Absent for Option<T> {
    fn absent<E: serde::de::Error>(_key: &'static str) -> Result<Self, E> {
        Ok(None)
    }
}

macro_rules! required {
    ($($Type:ty),+) => {
        $(impl Absent for $Type {
            fn absent<E: serde::de::Error>(key: &'static str) -> Result<Self, E> {
                Err(E::missing_field(key))
            }
        })+
    };
}

required!(u32, u64, f64, std::sync::Arc<str>, crate::RequestPhase, crate::journey::JourneyEventType);

impl Serialize for AttributeValue<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Int(value) => serializer.serialize_i64(*value),
            Self::Float(value) => serializer.serialize_f64(*value),
            Self::Static(text) => serializer.serialize_str(text),
            Self::Shared(text) => serializer.serialize_str(text),
        }
    }
}

/// Writes the name, then what `visit` shows.
fn serialize_line<S: Serializer>(
    serializer: S,
    name: &str,
    visit: impl FnOnce(&mut dyn FnMut(&'static str, AttributeValue<'_>)),
) -> Result<S::Ok, S::Error> {
    let mut map = serializer.serialize_map(None)?;
    map.serialize_entry(NAME, name)?;
    let mut outcome = Ok(());
    visit(&mut |key, value| {
        if outcome.is_ok() {
            outcome = map.serialize_entry(key, &value);
        }
    });
    outcome?;
    map.end()
}

impl Serialize for BatchSummary {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serialize_line(serializer, self.event_name(), |visit| self.visit_fields(visit))
    }
}

impl Serialize for RequestSnapshot {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serialize_line(serializer, self.event_name(), |visit| self.visit_fields(visit))
    }
}

impl Serialize for JourneyEvent {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serialize_line(serializer, self.event_name(), |visit| JourneyLine::from(self).visit_fields(visit))
    }
}

impl Serialize for TraceRecord {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::BatchSummary(record) => record.serialize(serializer),
            Self::RequestSnapshot(record) => record.serialize(serializer),
            Self::JourneyEvent(record) => record.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for TraceRecord {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(LineVisitor)
    }
}

struct LineVisitor;

impl<'de> Visitor<'de> for LineVisitor {
    type Value = TraceRecord;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a trace event: an object that begins with `name`")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<TraceRecord, A::Error> {
        match map.next_key::<Cow<'de, str>>()?.as_deref() {
            Some(NAME) => {}
            Some(other) => {
                return Err(A::Error::custom(format_args!("the first key is `{other}`, expected `{NAME}`")));
            }
            None => return Err(A::Error::missing_field(NAME)),
        }
        let name: Cow<'de, str> = map.next_value()?;
        match name.as_ref() {
            names::BATCH_SUMMARY => BatchSummary::from_map(map).map(TraceRecord::BatchSummary),
            names::REQUEST_SNAPSHOT => RequestSnapshot::from_map(map).map(TraceRecord::RequestSnapshot),
            journey if EVENTS.iter().any(|event| event.name == journey) => {
                JourneyLine::from_map(map)?.into_event(journey).map(TraceRecord::JourneyEvent).map_err(A::Error::custom)
            }
            unknown => {
                let known: Vec<_> = EVENTS.iter().map(|event| event.name).collect();
                Err(A::Error::custom(format_args!("unknown event `{unknown}`, expected one of {}", known.join(", "))))
            }
        }
    }
}

/// Reads any record, and refuses one of another kind.
macro_rules! deserialize_one {
    ($($Record:ident: $what:literal),+) => {
        $(impl<'de> Deserialize<'de> for $Record {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                match TraceRecord::deserialize(deserializer)? {
                    TraceRecord::$Record(record) => Ok(record),
                    other => Err(D::Error::custom(format_args!("the event is `{}`, expected {}", other.name(), $what))),
                }
            }
        })+
    };
}

deserialize_one!(
    BatchSummary: "`step.BATCH_SUMMARY`",
    RequestSnapshot: "`step.REQUEST_SNAPSHOT`",
    JourneyEvent: "a `journey.` event"
);

impl TraceRecord {
    /// Returns the name of the event.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::BatchSummary(record) => record.event_name(),
            Self::RequestSnapshot(record) => record.event_name(),
            Self::JourneyEvent(record) => record.event_name(),
        }
    }
}
