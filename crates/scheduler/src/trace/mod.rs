//! What the scheduler shows of itself while it works.
//!
//! [`StepTrace`] is the observer that the scheduler's calls take last; `()` is "off". It sees a view of what was
//! decided and pulls detail only if it wants it; nothing flows back. [`StepTracer`] is the observer that samples steps,
//! builds records and hands them to a [`TraceSink`](stepline_tracing_schema::TraceSink).

mod guarded_sink;
mod sampler;
mod step_tracer;
mod view;

use stepline_tracing_schema::{FinishStatus, ScheduleKind};

use crate::time::Nanos;

pub use guarded_sink::SinkFault;
#[cfg(feature = "sha1")]
pub use sampler::Sha1Sampler;
pub use sampler::{HashSampler, Sampler, SamplingStage};
pub use step_tracer::{StepTracer, StepTracing, TracerStats};
pub(crate) use view::PlannedStep;
pub use view::{RequestProgress, StepView, TracedRequest};

/// An observer of the scheduler. All methods do nothing by default.
pub trait StepTrace {
    /// A request was added.
    fn queued(&mut self, request: &dyn TracedRequest, now: Nanos) {
        let _ = (request, now);
    }

    /// A request was admitted, for the first time or again.
    fn scheduled(&mut self, request: &dyn TracedRequest, kind: ScheduleKind, now: Nanos) {
        let _ = (request, kind, now);
    }

    /// A request lost its blocks.
    fn preempted(&mut self, request: &dyn TracedRequest, now: Nanos) {
        let _ = (request, now);
    }

    /// A request got its first output.
    fn first_token(&mut self, request: &dyn TracedRequest, now: Nanos) {
        let _ = (request, now);
    }

    /// A request has ended.
    fn finished(&mut self, request: &dyn TracedRequest, status: FinishStatus, now: Nanos) {
        let _ = (request, status, now);
    }

    /// A step was planned; the counters of its requests have not moved yet.
    fn step_planned(&mut self, step: &dyn StepView) {
        let _ = step;
    }
}

/// Tracing is off.
impl StepTrace for () {}

/// Tracing is on or off, as decided at run time.
impl<T: StepTrace> StepTrace for Option<T> {
    fn queued(&mut self, request: &dyn TracedRequest, now: Nanos) {
        if let Some(trace) = self {
            trace.queued(request, now);
        }
    }

    fn scheduled(&mut self, request: &dyn TracedRequest, kind: ScheduleKind, now: Nanos) {
        if let Some(trace) = self {
            trace.scheduled(request, kind, now);
        }
    }

    fn preempted(&mut self, request: &dyn TracedRequest, now: Nanos) {
        if let Some(trace) = self {
            trace.preempted(request, now);
        }
    }

    fn first_token(&mut self, request: &dyn TracedRequest, now: Nanos) {
        if let Some(trace) = self {
            trace.first_token(request, now);
        }
    }

    fn finished(&mut self, request: &dyn TracedRequest, status: FinishStatus, now: Nanos) {
        if let Some(trace) = self {
            trace.finished(request, status, now);
        }
    }

    fn step_planned(&mut self, step: &dyn StepView) {
        if let Some(trace) = self {
            trace.step_planned(step);
        }
    }
}
