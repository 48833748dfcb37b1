//! How a declaration is described: what the tables of records and spans become.

use crate::names;

/// Units, in UCUM notation as OpenTelemetry uses it: `{thing}` counts things, `1` is a ratio, empty is no quantity.
pub mod unit {
    /// Not a quantity.
    pub const NONE: &str = "";
    /// A ratio.
    pub const RATIO: &str = "1";
    /// Nanoseconds.
    pub const NANOSECONDS: &str = "ns";
    /// Microseconds.
    pub const MICROSECONDS: &str = "us";
    /// Seconds.
    pub const SECONDS: &str = "s";
    /// A count of steps.
    pub const STEPS: &str = "{step}";
    /// A count of requests.
    pub const REQUESTS: &str = "{request}";
    /// A count of tokens.
    pub const TOKENS: &str = "{token}";
    /// A count of KV blocks.
    pub const BLOCKS: &str = "{block}";
    /// A count of preemptions.
    pub const PREEMPTIONS: &str = "{preemption}";
    /// A count of sequences.
    pub const SEQUENCES: &str = "{sequence}";
}

/// The type of an attribute on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AttributeType {
    /// A non-negative 64-bit integer.
    Int,
    /// A double.
    Float,
    /// Any text.
    Str,
    /// One of these texts.
    OneOf(&'static [&'static str]),
}

impl AttributeType {
    /// Returns the reference's name of the type: `int`, `float` or `string`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Int => "int",
            Self::Float => "float",
            Self::Str | Self::OneOf(_) => "string",
        }
    }
}

/// How far a name can be relied on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stability {
    /// Key, type and meaning stay.
    Stable,
    /// The reference's name for something that the OpenTelemetry conventions have since renamed or never had.
    Legacy,
}

impl Stability {
    /// Returns the word used in the reference table.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Stable => "stable",
            Self::Legacy => "legacy",
        }
    }
}

/// One attribute of a record or span.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AttributeSpec {
    /// Its key.
    pub key: &'static str,
    /// Its type on the wire.
    pub ty: AttributeType,
    /// Its unit; see [`mod@unit`].
    pub unit: &'static str,
    /// What it says.
    pub meaning: &'static str,
    /// Whether it may be missing; `meaning` says when.
    pub optional: bool,
    /// How far it can be relied on.
    pub stability: Stability,
}

/// One event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventSpec {
    /// Its name.
    pub name: &'static str,
    /// The span that carries it, as [`SpanSpec::name`].
    pub span: &'static str,
    /// What it says.
    pub meaning: &'static str,
    /// What a line of the trace file has besides the attributes, because there the span is missing.
    pub line_only: &'static [AttributeSpec],
    /// Its attributes, in order of emission.
    pub attributes: &'static [AttributeSpec],
}

/// One kind of span.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SpanSpec {
    /// Its name; `<n>` stands for a sequence number.
    pub name: &'static str,
    /// Its instrumentation scope.
    pub scope: &'static str,
    /// What it covers.
    pub meaning: &'static str,
    /// Its attributes, in order of emission.
    pub attributes: &'static [AttributeSpec],
}

/// Every event, in the order of the reference table.
pub const EVENTS: &[EventSpec] = &[
    crate::batch_summary::EVENT,
    crate::request_snapshot::EVENT,
    crate::journey::QUEUED_EVENT,
    crate::journey::SCHEDULED_EVENT,
    crate::journey::FIRST_TOKEN_EVENT,
    crate::journey::PREEMPTED_EVENT,
    crate::journey::FINISHED_EVENT,
];

/// Every kind of span.
pub const SPANS: &[SpanSpec] = &[STEP_SPAN, CORE_SPAN, API_SPAN];

const fn attribute(
    key: &'static str,
    ty: AttributeType,
    unit: &'static str,
    meaning: &'static str,
    optional: bool,
    stability: Stability,
) -> AttributeSpec {
    AttributeSpec { key, ty, unit, meaning, optional, stability }
}

use crate::SpanAttributes as Key;
use AttributeType::{Float, Int, Str};
use Stability::{Legacy, Stable};

/// The span of a range of steps.
pub const STEP_SPAN: SpanSpec = SpanSpec {
    name: "scheduler_steps_<n>",
    scope: names::STEP_SCOPE,
    meaning: "A range of steps, closed at a multiple of the closure interval in which a step was sampled, when its \
              event budget is spent, and at shutdown. Kind INTERNAL, a root.",
    attributes: &[
        attribute(Key::SCHEDULER_SPAN_SEQUENCE, Int, unit::NONE, "The `<n>` of the name, from 1.", false, Stable),
        attribute(
            Key::SCHEDULER_STEP_RANGE_START,
            Int,
            unit::NONE,
            "First step whose events may be here.",
            false,
            Stable,
        ),
        attribute(Key::SCHEDULER_CLOSURE_INTERVAL, Int, unit::STEPS, "`step_tracing_closure_interval`.", false, Stable),
        attribute(
            Key::SCHEDULER_STEP_RANGE_END,
            Int,
            unit::NONE,
            "Last step whose events may be here. Set when the span closes.",
            false,
            Stable,
        ),
    ],
};

/// The span of a request in the engine core.
pub const CORE_SPAN: SpanSpec = SpanSpec {
    name: names::CORE_SPAN,
    scope: names::SCHEDULER_SCOPE,
    meaning: "A request from its arrival in the engine core to its end. Kind INTERNAL; child of the span in the \
              request's `traceparent`, or a root.",
    attributes: &[attribute(Key::GEN_AI_REQUEST_ID, Str, unit::NONE, "The request's id.", false, Legacy)],
};

/// The span of a request in the API server. Its names are fixed here; the server emits it.
pub const API_SPAN: SpanSpec = SpanSpec {
    name: names::API_SPAN,
    scope: names::API_SCOPE,
    meaning: "A request from its arrival in the API server to its last output. Emitted by an API server, not by a \
              replay.",
    attributes: &[
        attribute(Key::GEN_AI_REQUEST_ID, Str, unit::NONE, "The request's id.", false, Legacy),
        attribute(
            Key::GEN_AI_REQUEST_MAX_TOKENS,
            Int,
            unit::TOKENS,
            "Sampling parameter `max_tokens`; missing if not given.",
            true,
            Stable,
        ),
        attribute(
            Key::GEN_AI_REQUEST_TEMPERATURE,
            Float,
            unit::RATIO,
            "Sampling parameter `temperature`; missing if not given.",
            true,
            Stable,
        ),
        attribute(
            Key::GEN_AI_REQUEST_TOP_P,
            Float,
            unit::RATIO,
            "Sampling parameter `top_p`; missing if not given.",
            true,
            Stable,
        ),
        attribute(
            Key::GEN_AI_REQUEST_N,
            Int,
            unit::SEQUENCES,
            "Sampling parameter `n`; missing if not given. Now `gen_ai.request.choice.count`.",
            true,
            Legacy,
        ),
        attribute(Key::GEN_AI_RESPONSE_MODEL, Str, unit::NONE, "The model that answered.", true, Stable),
        attribute(
            Key::GEN_AI_USAGE_PROMPT_TOKENS,
            Int,
            unit::TOKENS,
            "Prompt tokens. Now `gen_ai.usage.input_tokens`.",
            true,
            Legacy,
        ),
        attribute(
            Key::GEN_AI_USAGE_COMPLETION_TOKENS,
            Int,
            unit::TOKENS,
            "Output tokens. Now `gen_ai.usage.output_tokens`.",
            true,
            Legacy,
        ),
        attribute(Key::GEN_AI_USAGE_NUM_SEQUENCES, Int, unit::SEQUENCES, "Sequences returned.", true, Legacy),
        latency(Key::GEN_AI_LATENCY_TIME_IN_QUEUE, "From arrival to first scheduling."),
        latency(Key::GEN_AI_LATENCY_TIME_TO_FIRST_TOKEN, "From arrival to the first output token."),
        latency(Key::GEN_AI_LATENCY_E2E, "From arrival to the last output token."),
        latency(Key::GEN_AI_LATENCY_TIME_IN_SCHEDULER, "Time in the scheduler."),
        latency(Key::GEN_AI_LATENCY_TIME_IN_MODEL_FORWARD, "Time in the forward pass."),
        latency(
            Key::GEN_AI_LATENCY_TIME_IN_MODEL_EXECUTE,
            "Time in the model's execution: forward pass, synchronisation and sampling.",
        ),
        latency(Key::GEN_AI_LATENCY_TIME_IN_MODEL_PREFILL, "From first scheduling to the first output token."),
        latency(Key::GEN_AI_LATENCY_TIME_IN_MODEL_DECODE, "From the first output token to the last."),
        latency(Key::GEN_AI_LATENCY_TIME_IN_MODEL_INFERENCE, "From first scheduling to the last output token."),
    ],
};

const fn latency(key: &'static str, meaning: &'static str) -> AttributeSpec {
    attribute(key, Float, unit::SECONDS, meaning, true, Legacy)
}
