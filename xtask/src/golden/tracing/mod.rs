//! Replays the tracing of a recording: its decisions are given, its spans and events are compared.
//!
//! The decisions of these recordings are an older release's. They are fed, through a model of the requests, to the
//! tracer of the scheduler and the span sink of the telemetry, whose spans and events must be the recorded ones.

mod model;
mod spans;

use std::sync::Arc;

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;
use stepline_config::Rate;
use stepline_scheduler::Nanos;
use stepline_scheduler::trace::{Sampler, Sha1Sampler, StepTracer, StepTracing};

use super::compare::{Divergence, first_difference, summary};
use super::format::{self, Recording, Scenario, line_type};
use model::Model;
use spans::RecordedSpans;

/// Returns the first difference between the recorded and the replayed spans and events, if there is one.
pub(crate) fn replay(recording: &Recording) -> Result<Option<Divergence>> {
    let scenario = recording.scenario.as_ref().context("not a scenario")?;
    let mut replayer = Replayer::new(scenario)?;
    let is_traced = |line: &Value| line.get("during").is_some();
    let mut expected = recording.lines.iter().enumerate().filter(|(_, line)| is_traced(line));
    let mut got = replayer.spans.take("init");
    for (idx, line) in recording.lines.iter().enumerate().filter(|(_, line)| !is_traced(line)) {
        let during = replayer.apply(line).with_context(|| format!("line {}", idx + 2))?;
        got.extend(replayer.spans.take(during));
        if line_type(line) == "schedule" {
            replayer.before = std::mem::take(&mut replayer.before).into_iter().rev().take(1).collect();
            replayer.before.push(summary(line));
        }
        for got in got.drain(..) {
            let Some((idx, line)) = expected.next() else {
                return Ok(Some(replayer.divergence(recording.lines.len(), &Value::Null, got)));
            };
            if let Some(divergence) = replayer.compare(idx + 2, line, got) {
                return Ok(Some(divergence));
            }
        }
    }
    Ok(expected.next().map(|(idx, line)| replayer.divergence(idx + 2, line, Value::Null)))
}

struct Replayer<'a> {
    model: Model<'a>,
    tracer: Option<StepTracer>,
    spans: RecordedSpans,
    is_shut_down: bool,
    before: Vec<String>,
}

impl<'a> Replayer<'a> {
    fn new(scenario: &'a Scenario) -> Result<Self> {
        let spans = RecordedSpans::new(scenario);
        let tracing = scenario.tracing.as_ref().context("a scenario without tracing")?;
        let tracer = tracing.endpoint.then(|| tracer(tracing, &spans)).transpose()?;
        Ok(Self { model: Model::new(scenario), tracer, spans, is_shut_down: false, before: Vec::new() })
    }

    /// Does what the line says. Returns the name of the call that it stands for.
    fn apply(&mut self, line: &Value) -> Result<&'static str> {
        let trace = &mut self.tracer;
        Ok(match line_type(line) {
            "add" => {
                self.model.add(line, trace)?;
                "add"
            }
            "abort" => {
                self.model.abort(line, trace)?;
                "abort"
            }
            "reset_prefix_cache" => {
                self.model.reset(line, trace)?;
                "reset"
            }
            "schedule" => {
                self.model.schedule(line, trace)?;
                "schedule"
            }
            "engine_output" => {
                self.model.engine_output(line, trace)?;
                "update"
            }
            "shutdown" => {
                ensure!(!std::mem::replace(&mut self.is_shut_down, true), "a second `shutdown`");
                if let Some(tracer) = trace {
                    tracer.shutdown(self.model.step(), Nanos(0));
                }
                "shutdown"
            }
            "model_output" => {
                self.model.model_output(line)?;
                "execute"
            }
            "end" => {
                self.model.end(line)?;
                "nothing"
            }
            "draft_tokens" => "nothing",
            other => bail!("unknown type `{other}`"),
        })
    }

    fn compare(&self, number: usize, expected: &Value, got: Value) -> Option<Divergence> {
        first_difference(expected, &got).map(|difference| Divergence {
            field: difference.field,
            expected: difference.expected,
            got: difference.got,
            ..self.divergence(number, expected, got)
        })
    }

    fn divergence(&self, line: usize, expected: &Value, got: Value) -> Divergence {
        let either = if expected.is_null() { &got } else { expected };
        Divergence {
            line,
            line_type: line_type(either).to_owned(),
            step: self.model.step(),
            field: "the whole line".into(),
            expected: expected.clone(),
            before: self.before.clone(),
            got,
        }
    }
}

fn tracer(tracing: &format::Tracing, spans: &RecordedSpans) -> Result<StepTracer> {
    let steps = if tracing.step_tracing_enabled {
        Some(StepTracing {
            sample_rate: Rate::new(tracing.step_tracing_sample_rate)?,
            rich_subsample_rate: Rate::new(tracing.step_tracing_rich_subsample_rate)?,
            closure_interval: tracing.step_tracing_closure_interval,
            batch_sampler: sampler(&tracing.step_sampler),
            rich_sampler: sampler(&tracing.rich_sampler),
        })
    } else {
        None
    };
    Ok(StepTracer::new(steps, tracing.enable_journey_tracing, Box::new(Arc::clone(spans.sink()))))
}

fn sampler(sampler: &format::Sampler) -> Box<dyn Sampler> {
    match sampler.clone() {
        format::Sampler::Always => Box::new(|_: u64, _: Rate| true),
        format::Sampler::Never => Box::new(|_: u64, _: Rate| false),
        format::Sampler::AtSteps { steps } => Box::new(move |step: u64, _: Rate| steps.contains(&step)),
        format::Sampler::Sha1 { seed } => Box::new(Sha1Sampler { seed }),
    }
}
