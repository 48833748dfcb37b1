//! The records of a request's way through the engine.

use std::sync::Arc;

use crate::attributes::SpanAttributes;
use crate::names;
use crate::record::{AttributeValue, Record, record};
use crate::request_snapshot::RequestPhase;
use crate::spec::{AttributeSpec, CORE_SPAN, EventSpec, unit};
use crate::string_enum::string_enum;
use crate::trace_parent::TraceParent;

/// A request's journey begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JourneyStart {
    /// The request's id, unique among the journeys that are open.
    pub request_id: Arc<str>,
    /// Monotonic time of the arrival, ns.
    pub ts_monotonic_ns: u64,
    /// The caller's span, if the request's headers name a valid one.
    pub traceparent: Option<TraceParent>,
}

/// A station on a request's journey.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JourneyEvent {
    /// The request's id.
    pub request_id: Arc<str>,
    /// What happened.
    pub kind: JourneyEventKind,
    /// Monotonic time, ns.
    pub ts_monotonic_ns: u64,
    /// Number of the step concerned; of the latest one for events outside of a step, 0 before the first.
    pub scheduler_step: u64,
    /// WAITING for QUEUED, else by the number of output tokens.
    pub phase: RequestPhase,
    /// Highest number of prompt tokens ever computed, while there was no output token. Survives preemption.
    pub prefill_done_tokens: u32,
    /// Prompt tokens.
    pub prefill_total_tokens: u32,
    /// Output tokens so far.
    pub decode_done_tokens: u32,
    /// Output tokens at most.
    pub decode_max_tokens: u32,
    /// Preemptions so far.
    pub num_preemptions: u32,
}

/// What happened to the request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum JourneyEventKind {
    /// It was added.
    Queued,
    /// It was admitted.
    Scheduled(ScheduleKind),
    /// Its first output token is there. Once in a journey.
    FirstToken,
    /// It lost its blocks and waits again.
    Preempted,
    /// It ended; nothing follows.
    Finished(FinishStatus),
}

string_enum! {
    /// Which admission it was.
    pub enum ScheduleKind("schedule kind") {
        /// The first.
        First = "FIRST",
        /// One after a preemption.
        Resume = "RESUME",
    }
}

string_enum! {
    /// How a request ended.
    pub enum FinishStatus("finish status") {
        /// By a stop token, stop string or repetition.
        Stopped = "stopped",
        /// By its token limit or the model's length.
        Length = "length",
        /// By its client.
        Aborted = "aborted",
        /// Refused: the prompt is longer than the engine takes.
        Ignored = "ignored",
        /// By a fault.
        Error = "error",
    }
}

string_enum! {
    /// The `event.type` of a journey event: its kind without details.
    pub(crate) enum JourneyEventType("journey event type") {
        Queued = "QUEUED",
        Scheduled = "SCHEDULED",
        FirstToken = "FIRST_TOKEN",
        Preempted = "PREEMPTED",
        Finished = "FINISHED",
    }
}

impl JourneyEventKind {
    fn event_type(self) -> JourneyEventType {
        match self {
            Self::Queued => JourneyEventType::Queued,
            Self::Scheduled(_) => JourneyEventType::Scheduled,
            Self::FirstToken => JourneyEventType::FirstToken,
            Self::Preempted => JourneyEventType::Preempted,
            Self::Finished(_) => JourneyEventType::Finished,
        }
    }

    /// Returns the value of `event.type`, e.g. `QUEUED`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        self.event_type().as_str()
    }

    /// Returns the name of the event, e.g. `journey.QUEUED`.
    #[must_use]
    pub fn event_name(self) -> &'static str {
        match self {
            Self::Queued => names::JOURNEY_QUEUED,
            Self::Scheduled(_) => names::JOURNEY_SCHEDULED,
            Self::FirstToken => names::JOURNEY_FIRST_TOKEN,
            Self::Preempted => names::JOURNEY_PREEMPTED,
            Self::Finished(_) => names::JOURNEY_FINISHED,
        }
    }
}

record! {
    /// A journey event as it is written: kind and time as several attributes, and the id of the request first.
    pub(crate) struct JourneyLine {
        /// The request's id. On a span event the span has it, as `gen_ai.request.id`.
        request_id: Arc<str> = SpanAttributes::REQUEST_ID, unit::NONE;
        /// The event's name without its prefix.
        event_type: JourneyEventType = SpanAttributes::EVENT_TYPE, unit::NONE;
        /// Monotonic time, the same as `ts.monotonic_ns`.
        ts_monotonic: f64 = SpanAttributes::TS_MONOTONIC, unit::SECONDS;
        /// Monotonic time.
        ts_monotonic_ns: u64 = SpanAttributes::TS_MONOTONIC_NS, unit::NANOSECONDS;
        /// Number of the step concerned; of the latest one for events outside of a step, 0 before the first.
        scheduler_step: u64 = SpanAttributes::SCHEDULER_STEP, unit::NONE;
        /// WAITING for QUEUED, else PREFILL while there is no output token, else DECODE.
        phase: RequestPhase = SpanAttributes::PHASE, unit::NONE;
        /// Highest number of prompt tokens ever computed while there was no output token. Survives preemption.
        prefill_done_tokens: u32 = SpanAttributes::PREFILL_DONE_TOKENS, unit::TOKENS;
        /// Prompt tokens.
        prefill_total_tokens: u32 = SpanAttributes::PREFILL_TOTAL_TOKENS, unit::TOKENS;
        /// Output tokens so far.
        decode_done_tokens: u32 = SpanAttributes::DECODE_DONE_TOKENS, unit::TOKENS;
        /// Output tokens at most.
        decode_max_tokens: u32 = SpanAttributes::DECODE_MAX_TOKENS, unit::TOKENS;
        /// Preemptions so far.
        num_preemptions: u32 = SpanAttributes::NUM_PREEMPTIONS, unit::PREEMPTIONS;
        /// First admission, or resumption after a preemption. SCHEDULED only.
        schedule_kind: Option<ScheduleKind> = SpanAttributes::SCHEDULE_KIND, unit::NONE;
        /// How the request ended. FINISHED only.
        finish_status: Option<FinishStatus> = SpanAttributes::FINISH_STATUS, unit::NONE;
    }
}

impl From<&JourneyEvent> for JourneyLine {
    fn from(event: &JourneyEvent) -> Self {
        Self {
            request_id: Arc::clone(&event.request_id),
            event_type: event.kind.event_type(),
            ts_monotonic: seconds(event.ts_monotonic_ns),
            ts_monotonic_ns: event.ts_monotonic_ns,
            scheduler_step: event.scheduler_step,
            phase: event.phase,
            prefill_done_tokens: event.prefill_done_tokens,
            prefill_total_tokens: event.prefill_total_tokens,
            decode_done_tokens: event.decode_done_tokens,
            decode_max_tokens: event.decode_max_tokens,
            num_preemptions: event.num_preemptions,
            schedule_kind: match event.kind {
                JourneyEventKind::Scheduled(kind) => Some(kind),
                _ => None,
            },
            finish_status: match event.kind {
                JourneyEventKind::Finished(status) => Some(status),
                _ => None,
            },
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "a double of seconds is what the attribute is; `_ns` is the exact one")]
fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

/// The attributes of an event: those of a line without the request's id.
const EVENT_ATTRIBUTES: &[AttributeSpec] = JourneyLine::ATTRIBUTES.split_at(1).1;

const fn event(name: &'static str, meaning: &'static str) -> EventSpec {
    EventSpec {
        name,
        span: CORE_SPAN.name,
        meaning,
        line_only: JourneyLine::ATTRIBUTES.split_at(1).0,
        attributes: EVENT_ATTRIBUTES,
    }
}

pub(crate) const QUEUED_EVENT: EventSpec = event(names::JOURNEY_QUEUED, "The request was added.");
pub(crate) const SCHEDULED_EVENT: EventSpec =
    event(names::JOURNEY_SCHEDULED, "The request was admitted, for the first time or again after a preemption.");
pub(crate) const FIRST_TOKEN_EVENT: EventSpec =
    event(names::JOURNEY_FIRST_TOKEN, "The request's first output token is there. Once in a journey.");
pub(crate) const PREEMPTED_EVENT: EventSpec =
    event(names::JOURNEY_PREEMPTED, "The request lost its KV blocks and waits again.");
pub(crate) const FINISHED_EVENT: EventSpec = event(names::JOURNEY_FINISHED, "The request ended; the span ends too.");

impl Record for JourneyEvent {
    fn event_name(&self) -> &'static str {
        self.kind.event_name()
    }

    fn for_each_attribute(&self, mut visit: impl FnMut(&'static str, AttributeValue<'_>)) {
        JourneyLine::from(self).visit_fields(|key, value| {
            if key != SpanAttributes::REQUEST_ID {
                visit(key, value);
            }
        });
    }
}

/// Why the attributes of a line are no journey event.
#[cfg(feature = "serde")]
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum JourneyLineError {
    /// Name and `event.type` contradict each other.
    #[error("event `{name}` has `event.type` `{event_type}`")]
    OtherType { name: String, event_type: JourneyEventType },
    /// An event lacks what its type has.
    #[error("a `{event_type}` event has no `{key}`")]
    Missing { key: &'static str, event_type: JourneyEventType },
    /// An event has what its type does not have.
    #[error("a `{event_type}` event has `{key}`, which belongs to `{owner}` events")]
    Stray { key: &'static str, owner: JourneyEventType, event_type: JourneyEventType },
}

#[cfg(feature = "serde")]
impl JourneyLine {
    /// Turns the line named `name` back into the event it was written from.
    pub(crate) fn into_event(self, name: &str) -> Result<JourneyEvent, JourneyLineError> {
        let event_type = self.event_type;
        let details = [
            (SpanAttributes::SCHEDULE_KIND, JourneyEventType::Scheduled, self.schedule_kind.is_some()),
            (SpanAttributes::FINISH_STATUS, JourneyEventType::Finished, self.finish_status.is_some()),
        ];
        for (key, owner, is_there) in details {
            match (owner == event_type, is_there) {
                (true, false) => return Err(JourneyLineError::Missing { key, event_type }),
                (false, true) => return Err(JourneyLineError::Stray { key, owner, event_type }),
                (true, true) | (false, false) => {}
            }
        }
        let kind = match (event_type, self.schedule_kind, self.finish_status) {
            (JourneyEventType::Scheduled, Some(kind), _) => JourneyEventKind::Scheduled(kind),
            (JourneyEventType::Finished, _, Some(status)) => JourneyEventKind::Finished(status),
            (JourneyEventType::FirstToken, ..) => JourneyEventKind::FirstToken,
            (JourneyEventType::Preempted, ..) => JourneyEventKind::Preempted,
            // Only QUEUED is left: SCHEDULED and FINISHED have their details, or were refused above.
            _ => JourneyEventKind::Queued,
        };
        if kind.event_name() != name {
            return Err(JourneyLineError::OtherType { name: name.to_owned(), event_type });
        }
        Ok(JourneyEvent {
            request_id: self.request_id,
            kind,
            ts_monotonic_ns: self.ts_monotonic_ns,
            scheduler_step: self.scheduler_step,
            phase: self.phase,
            prefill_done_tokens: self.prefill_done_tokens,
            prefill_total_tokens: self.prefill_total_tokens,
            decode_done_tokens: self.decode_done_tokens,
            decode_max_tokens: self.decode_max_tokens,
            num_preemptions: self.num_preemptions,
        })
    }
}
