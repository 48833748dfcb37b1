//! The observer that samples steps and reports journeys.

use stepline_config::{ObservabilityConfig, Rate};
use stepline_tracing_schema::{
    FinishStatus, JourneyEvent, JourneyEventKind, JourneyStart, RequestPhase, ScheduleKind, TraceSink,
};

use super::guarded_sink::{GuardedSink, SinkFault};
use super::sampler::{HashSampler, Sampler, SamplingStage};
use super::{StepTrace, StepView, TracedRequest};
use crate::time::Nanos;

/// Which steps are traced.
pub struct StepTracing {
    /// Share of steps with a batch summary.
    pub sample_rate: Rate,
    /// Share of these steps that also get snapshots.
    pub rich_subsample_rate: Rate,
    /// Steps after which what was emitted is closed off.
    pub closure_interval: u32,
    /// Asked for every step.
    pub batch_sampler: Box<dyn Sampler>,
    /// Asked for steps with a batch summary only.
    pub rich_sampler: Box<dyn Sampler>,
}

impl StepTracing {
    /// The rates of a configuration with the default samplers; `None` if step tracing is not enabled.
    #[must_use]
    pub fn from_config(config: &ObservabilityConfig, seed: u64) -> Option<Self> {
        config.step_tracing_enabled.then(|| Self {
            sample_rate: config.step_tracing_sample_rate,
            rich_subsample_rate: config.step_tracing_rich_subsample_rate,
            closure_interval: config.step_tracing_closure_interval,
            batch_sampler: Box::new(HashSampler::new(seed, SamplingStage::BatchSummary)),
            rich_sampler: Box::new(HashSampler::new(seed, SamplingStage::RequestSnapshots)),
        })
    }

    fn interval(&self) -> u64 {
        u64::from(self.closure_interval.max(1))
    }
}

/// What a tracer has done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TracerStats {
    /// Batch summaries made.
    pub num_batch_summaries: u64,
    /// Request snapshots made.
    pub num_request_snapshots: u64,
    /// Journey events made.
    pub num_journey_events: u64,
    /// Of all these records: those that the sink did not get because it had failed.
    pub num_lost: u64,
}

/// Samples steps in two stages, builds their records and hands them to a sink.
///
/// A batch summary, then the snapshots of all running requests if the step is sampled twice. A fault of the sink, a
/// panic included, or the panic of a sampler or a clock, switches the sink off and is kept for
/// [`take_fault`](Self::take_fault); scheduling never sees it.
pub struct StepTracer {
    steps: Option<StepTracing>,
    journeys: bool,
    sink: GuardedSink,
    clock: Option<Box<dyn FnMut() -> Nanos + Send>>,
    /// The next step that is a multiple of the closure interval.
    interval_end: u64,
    /// Whether a step was sampled since the last multiple of the closure interval.
    interval_has_events: bool,
    stats: TracerStats,
}

impl StepTracer {
    /// A tracer of steps (if `steps` is given) and of the journeys of traced requests (if `journeys`).
    #[must_use]
    pub fn new(steps: Option<StepTracing>, journeys: bool, sink: Box<dyn TraceSink + Send>) -> Self {
        Self {
            interval_end: steps.as_ref().map_or(0, StepTracing::interval),
            steps,
            journeys,
            sink: GuardedSink::new(sink),
            clock: None,
            interval_has_events: false,
            stats: TracerStats::default(),
        }
    }

    /// Reads the end of each sampled scheduling call from `clock`, the clock that the calls' `now` comes from.
    ///
    /// Without a clock a call ends when it starts, which is right for virtual time.
    #[must_use]
    pub fn with_clock(mut self, clock: impl FnMut() -> Nanos + Send + 'static) -> Self {
        self.clock = Some(Box::new(clock));
        self
    }

    /// What has been recorded and lost so far.
    #[must_use]
    pub fn stats(&self) -> TracerStats {
        TracerStats { num_lost: self.sink.num_lost(), ..self.stats }
    }

    /// Returns the fault that switched the sink off, the first time it is asked after the fault.
    pub fn take_fault(&mut self) -> Option<SinkFault> {
        self.sink.take_fault()
    }

    /// Ends the trace after `last_step`: the sink delivers what it can.
    pub fn shutdown(&mut self, last_step: u64, now: Nanos) {
        self.sink.notify(|sink| sink.shutdown(last_step, now.0));
    }

    fn journey_event(&mut self, request: &dyn TracedRequest, kind: JourneyEventKind, now: Nanos) {
        if !self.journeys || request.journey().is_none() {
            return;
        }
        let progress = request.progress();
        let phase = match kind {
            JourneyEventKind::Queued => RequestPhase::Waiting,
            _ => RequestPhase::of_admitted(progress.decode_done_tokens),
        };
        let event = JourneyEvent {
            request_id: progress.id.clone(),
            kind,
            ts_monotonic_ns: now.0,
            scheduler_step: progress.scheduler_step,
            phase,
            prefill_done_tokens: progress.prefill_done_tokens,
            prefill_total_tokens: progress.prefill_total_tokens,
            decode_done_tokens: progress.decode_done_tokens,
            decode_max_tokens: progress.decode_max_tokens,
            num_preemptions: progress.num_preemptions,
        };
        self.stats.num_journey_events += 1;
        self.sink.record(|sink| sink.journey_event(&event));
    }

    /// Closes off what was emitted up to a multiple of the closure interval, if anything was.
    fn close_interval(&mut self, view: &dyn StepView) {
        let step = view.step_id();
        if let Some(steps) = &self.steps {
            self.interval_end = (step / steps.interval() + 1) * steps.interval();
        }
        if std::mem::take(&mut self.interval_has_events) {
            let now = view.batch_summary().ts_start_ns;
            self.sink.notify(|sink| sink.interval_closed(step, now));
        }
    }

    /// Records a sampled step: its summary and, if sampled again, its snapshots.
    fn record_step(&mut self, view: &dyn StepView, is_rich: bool) {
        let mut summary = view.batch_summary();
        if let Some(clock) = &mut self.clock {
            let now = self.sink.guard(clock).unwrap_or_default();
            summary.ts_end_ns = now.0.max(summary.ts_start_ns);
            summary.duration_us = (summary.ts_end_ns - summary.ts_start_ns) / 1_000;
        }
        self.stats.num_batch_summaries += 1;
        self.sink.record(|sink| sink.batch_summary(&summary));
        if is_rich {
            view.for_each_snapshot(&mut |snapshot| {
                self.stats.num_request_snapshots += 1;
                self.sink.record(|sink| sink.request_snapshot(snapshot));
            });
        }
    }
}

impl StepTrace for StepTracer {
    fn queued(&mut self, request: &dyn TracedRequest, now: Nanos) {
        if let Some(journey) = request.journey().filter(|_| self.journeys) {
            let request_id = request.progress().id.clone();
            let start = JourneyStart { request_id, ts_monotonic_ns: now.0, traceparent: journey.traceparent };
            self.sink.notify(|sink| sink.journey_started(&start));
        }
        self.journey_event(request, JourneyEventKind::Queued, now);
    }

    fn scheduled(&mut self, request: &dyn TracedRequest, kind: ScheduleKind, now: Nanos) {
        self.journey_event(request, JourneyEventKind::Scheduled(kind), now);
    }

    fn preempted(&mut self, request: &dyn TracedRequest, now: Nanos) {
        self.journey_event(request, JourneyEventKind::Preempted, now);
    }

    fn first_token(&mut self, request: &dyn TracedRequest, now: Nanos) {
        self.journey_event(request, JourneyEventKind::FirstToken, now);
    }

    fn finished(&mut self, request: &dyn TracedRequest, status: FinishStatus, now: Nanos) {
        self.journey_event(request, JourneyEventKind::Finished(status), now);
    }

    fn step_planned(&mut self, view: &dyn StepView) {
        let Some(steps) = &mut self.steps else { return };
        let step = view.step_id();
        let sampled = self.sink.guard(|| {
            let in_batch = steps.batch_sampler.sample(step, steps.sample_rate);
            in_batch.then(|| steps.rich_sampler.sample(step, steps.rich_subsample_rate))
        });
        match sampled {
            Some(Some(is_rich)) => {
                self.interval_has_events = true;
                self.record_step(view, is_rich);
            }
            Some(None) => {}
            // A sampler that panicked is not asked again.
            None => self.steps = None,
        }
        if step >= self.interval_end {
            self.close_interval(view);
        }
    }
}

impl std::fmt::Debug for StepTracer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StepTracer")
            .field("steps", &self.steps.is_some())
            .field("journeys", &self.journeys)
            .field("sink", &self.sink)
            .field("stats", &self.stats)
            .finish_non_exhaustive()
    }
}
