//! The requests of a recording, as its decision lines tell them.

use std::cmp::Reverse;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;
use stepline_scheduler::trace::{RequestProgress, StepTrace, StepView, TracedRequest};
use stepline_scheduler::{JourneyContext, Nanos};
use stepline_tracing_schema::{BatchSummary, FinishStatus, RequestPhase, RequestSnapshot, ScheduleKind};

use super::super::format::{Request, Scenario};

/// A request as far as the recording has told.
struct Tracked<'a> {
    request: &'a Request,
    id: Arc<str>,
    journey: Option<JourneyContext>,
    num_output_tokens: u32,
    num_computed_tokens: u32,
    num_preemptions: u32,
    /// Asynchronous scheduling: output tokens that are scheduled and not known.
    num_placeholders: u32,
    /// The hit of the first admission.
    num_cached_tokens: Option<u32>,
    num_blocks: u32,
    /// Full blocks registered in the prefix cache.
    num_registered: u32,
    prefill_done_tokens: u32,
    /// In the step at hand.
    num_scheduled_tokens: u32,
}

impl Tracked<'_> {
    fn num_prompt_tokens(&self) -> u32 {
        u32::try_from(self.request.prompt_token_ids.len()).unwrap_or(u32::MAX)
    }

    fn num_tokens(&self) -> u32 {
        self.num_prompt_tokens() + self.num_output_tokens
    }

    fn preempt(&mut self) {
        self.num_computed_tokens = 0;
        self.num_placeholders = 0;
        self.num_blocks = 0;
        self.num_registered = 0;
        self.num_preemptions += 1;
    }

    fn snapshot(&self, step_id: u64) -> RequestSnapshot {
        let num_prompt_tokens = self.num_prompt_tokens();
        let num_uncached = num_prompt_tokens.saturating_sub(self.num_cached_tokens.unwrap_or(0));
        RequestSnapshot {
            step_id,
            request_id: Arc::clone(&self.id),
            phase: RequestPhase::of_admitted(self.num_output_tokens),
            num_prompt_tokens,
            num_computed_tokens: self.num_computed_tokens,
            num_output_tokens: self.num_output_tokens,
            num_preemptions: self.num_preemptions,
            scheduled_tokens_this_step: self.num_scheduled_tokens,
            kv_blocks_allocated_gpu: self.num_blocks,
            kv_blocks_cached_gpu: self.num_registered,
            effective_prompt_len: Some(num_uncached).filter(|len| *len > 0),
        }
    }
}

/// A request in a step.
struct InStep<'m, 'a> {
    request: &'m Tracked<'a>,
    step: u64,
}

impl TracedRequest for InStep<'_, '_> {
    fn journey(&self) -> Option<&JourneyContext> {
        self.request.journey.as_ref()
    }

    fn progress(&self) -> RequestProgress<'_> {
        RequestProgress {
            id: &self.request.id,
            scheduler_step: self.step,
            prefill_done_tokens: self.request.prefill_done_tokens,
            prefill_total_tokens: self.request.num_prompt_tokens(),
            decode_done_tokens: self.request.num_output_tokens,
            decode_max_tokens: self.request.request.max_tokens,
            num_preemptions: self.request.num_preemptions,
        }
    }
}

/// A step that was planned, before counters advance.
struct PlannedStep<'m, 'a> {
    model: &'m Model<'a>,
    line: &'m Value,
}

impl StepView for PlannedStep<'_, '_> {
    fn step_id(&self) -> u64 {
        self.model.step
    }

    fn batch_summary(&self) -> BatchSummary {
        let count = |key: &str| u32::try_from(self.line[key].as_array().map_or(0, Vec::len)).unwrap_or(u32::MAX);
        let scheduled = || self.model.requests.values().filter(|request| request.num_scheduled_tokens > 0);
        let (prefill, decode): (Vec<_>, Vec<_>) = scheduled().partition(|request| request.num_output_tokens == 0);
        let tokens = |requests: &[&Tracked<'_>]| requests.iter().map(|request| request.num_scheduled_tokens).sum();
        let reqs = |requests: &[&Tracked<'_>]| u32::try_from(requests.len()).unwrap_or(u32::MAX);
        BatchSummary {
            step_id: self.model.step,
            ts_start_ns: 0,
            ts_end_ns: 0,
            duration_us: 0,
            running_depth: count("running"),
            waiting_depth: count("waiting"),
            num_prefill_reqs: reqs(&prefill),
            num_decode_reqs: reqs(&decode),
            scheduled_tokens: scheduled().map(|request| request.num_scheduled_tokens).sum(),
            prefill_tokens: tokens(&prefill),
            decode_tokens: tokens(&decode),
            num_finished: count("finished"),
            num_preempted: count("preempted"),
            kv_usage_gpu_ratio: self.line["kv_usage"].as_f64().unwrap_or(f64::NAN),
            kv_blocks_total_gpu: self.model.num_gpu_blocks - 1,
            kv_blocks_free_gpu: number(&self.line["free_blocks"]),
        }
    }

    fn for_each_snapshot(&self, visit: &mut dyn FnMut(&RequestSnapshot)) {
        for id in &self.model.running {
            let request = self.model.requests.get(id).expect("running requests were checked to be known");
            visit(&request.snapshot(self.model.step));
        }
    }
}

/// A step that waits for its output.
struct InFlight {
    step: u64,
    /// Tokens of each request, and its draft tokens among them.
    scheduled: Vec<(String, u32, u32)>,
}

pub(super) struct Model<'a> {
    scenario: &'a Scenario,
    num_gpu_blocks: u32,
    step: u64,
    requests: BTreeMap<String, Tracked<'a>>,
    running: Vec<String>,
    in_flight: VecDeque<InFlight>,
    /// Tokens of each request that the model returned for the oldest of them, if they have been told.
    sampled: Option<Vec<(String, u32)>>,
    /// How requests ended, and their output tokens.
    ends: BTreeMap<String, (FinishStatus, u32)>,
}

const NOW: Nanos = Nanos(0);

impl<'a> Model<'a> {
    pub(super) fn new(scenario: &'a Scenario) -> Self {
        Self {
            scenario,
            num_gpu_blocks: scenario.config.num_gpu_blocks.max(1),
            step: 0,
            requests: BTreeMap::new(),
            running: Vec::new(),
            in_flight: VecDeque::new(),
            sampled: None,
            ends: BTreeMap::new(),
        }
    }

    pub(super) const fn step(&self) -> u64 {
        self.step
    }

    pub(super) fn add(&mut self, line: &Value, trace: &mut impl StepTrace) -> Result<()> {
        let id = line["id"].as_str().context("`add` without an id")?;
        let request = self.scenario.requests.iter().find(|request| request.id == id).context("an unknown request")?;
        let headers = request.trace_headers.iter().flatten().map(|(name, value)| (name.as_str(), value.as_str()));
        let tracked = Tracked {
            request,
            id: id.into(),
            journey: JourneyContext::from_headers(headers),
            num_output_tokens: 0,
            num_computed_tokens: 0,
            num_preemptions: 0,
            num_placeholders: 0,
            num_cached_tokens: None,
            num_blocks: 0,
            num_registered: 0,
            prefill_done_tokens: 0,
            num_scheduled_tokens: 0,
        };
        ensure!(!self.requests.contains_key(id), "request `{id}` is added twice");
        trace.queued(&InStep { request: &tracked, step: self.step }, NOW);
        self.requests.insert(id.to_owned(), tracked);
        Ok(())
    }

    pub(super) fn abort(&mut self, line: &Value, trace: &mut impl StepTrace) -> Result<()> {
        let status: FinishStatus = line["status"].as_str().context("`abort` without a status")?.parse()?;
        for id in texts(&line["aborted"]) {
            let request = self.requests.remove(&id).context("an unknown request is aborted")?;
            trace.finished(&InStep { request: &request, step: self.step }, status, NOW);
            self.ends.insert(id.clone(), (status, request.num_output_tokens));
            self.running.retain(|other| *other != id);
        }
        Ok(())
    }

    pub(super) fn reset(&mut self, line: &Value, trace: &mut impl StepTrace) -> Result<()> {
        if line["reset_running_requests"] == true {
            for id in std::mem::take(&mut self.running).into_iter().rev() {
                self.preempt(&id, trace)?;
            }
        }
        Ok(())
    }

    pub(super) fn schedule(&mut self, line: &Value, trace: &mut impl StepTrace) -> Result<()> {
        let step = line["step"].as_u64().context("`schedule` without a step")?;
        ensure!(step == self.step + 1, "step {step} follows step {}", self.step);
        self.step = step;
        for id in self.in_order_of_preemption(texts(&line["preempted"])) {
            self.preempt(&id, trace)?;
        }
        self.running = texts(&line["running"]);
        if let Some(id) = self.running.iter().find(|id| !self.requests.contains_key(*id)) {
            bail!("request `{id}` runs, but was not added or has ended");
        }
        self.take_in_tables(line)?;
        let in_flight = self.take_in_tokens(line)?;
        self.report_admissions(line, &in_flight, trace)?;
        trace.step_planned(&PlannedStep { model: self, line });
        self.commit(&in_flight)?;
        self.in_flight.push_back(in_flight);
        Ok(())
    }

    pub(super) fn model_output(&mut self, line: &Value) -> Result<()> {
        let oldest = self.in_flight.front().context("`model_output` without a scheduled step")?;
        ensure!(line["step"] == oldest.step, "output of step {}, expected that of step {}", line["step"], oldest.step);
        ensure!(self.sampled.is_none(), "the model's output for step {} is told twice", oldest.step);
        let pairs = line["sampled"].as_array().context("`model_output` without `sampled`")?;
        let length = |value: &Value| u32::try_from(value.as_array().map_or(0, Vec::len)).unwrap_or(u32::MAX);
        let told = pairs.iter().map(|pair| (pair[0].as_str().unwrap_or_default().to_owned(), length(&pair[1])));
        self.sampled = Some(told.collect());
        Ok(())
    }

    pub(super) fn engine_output(&mut self, line: &Value, trace: &mut impl StepTrace) -> Result<()> {
        let in_flight = self.in_flight.pop_front().context("output without a step")?;
        let sampled = self.sampled.take().context("`engine_output` without a `model_output`")?;
        self.take_back_rejected(&in_flight, &sampled);
        for output in line["outputs"].as_array().context("`engine_output` without `outputs`")? {
            let id = output["id"].as_str().context("an output without an id")?;
            let request = self.requests.get_mut(id).context("output of an unknown request")?;
            let num_new = u32::try_from(output["new_token_ids"].as_array().map_or(0, Vec::len))?;
            let is_first = request.num_output_tokens == 0 && num_new > 0;
            request.num_output_tokens += num_new;
            if self.scenario.config.async_scheduling {
                request.num_placeholders = request.num_placeholders.saturating_sub(num_new);
                let num_known = request.num_computed_tokens.saturating_sub(request.num_placeholders);
                Self::register(self.scenario, request, num_known);
            }
            let view = InStep { request, step: in_flight.step };
            if is_first {
                trace.first_token(&view, NOW);
            }
            if let Some(reason) = output["finish_reason"].as_str() {
                let status = if reason == "stop" { FinishStatus::Stopped } else { reason.parse()? };
                trace.finished(&view, status, NOW);
                self.ends.insert(id.to_owned(), (status, request.num_output_tokens));
                self.requests.remove(id);
                self.running.retain(|other| other != id);
            }
        }
        Ok(())
    }

    /// Compares what is left with the `end` line.
    pub(super) fn end(&self, line: &Value) -> Result<()> {
        ensure!(self.in_flight.is_empty(), "{} steps were never processed", self.in_flight.len());
        ensure!(line["steps"] == self.step, "{} steps, the file says {}", self.step, line["steps"]);
        for told in line["requests"].as_array().into_iter().flatten() {
            let id = told[0].as_str().unwrap_or_default();
            let Some((status, num_output_tokens)) = self.ends.get(id) else { bail!("request `{id}` has not ended") };
            ensure!(
                told[1] == status.as_str() && told[2] == *num_output_tokens,
                "request `{id}` ended as {} with {num_output_tokens} tokens, the file says {told}",
                status.as_str()
            );
        }
        Ok(())
    }

    fn preempt(&mut self, id: &str, trace: &mut impl StepTrace) -> Result<()> {
        let request = self.requests.get_mut(id).context("an unknown request is preempted")?;
        request.preempt();
        trace.preempted(&InStep { request, step: self.step }, NOW);
        Ok(())
    }

    /// The recordings sort preempted ids; the events come in the order in which the victims were chosen.
    fn in_order_of_preemption(&self, mut ids: Vec<String>) -> Vec<String> {
        let place = |id: &str| self.running.iter().position(|other| other == id);
        let arrival = |id: &str| self.requests.get(id).map_or(0.0, |request| request.request.arrival_time);
        let priority = |id: &str| self.requests.get(id).map_or(0, |request| request.request.priority);
        if self.scenario.config.policy == "priority" {
            // The least urgent first, of equals the first in running order.
            ids.sort_by(|a, b| {
                let by_urgency = (priority(b), arrival(b)).partial_cmp(&(priority(a), arrival(a)));
                by_urgency.unwrap_or(std::cmp::Ordering::Equal).then(place(a).cmp(&place(b)))
            });
        } else {
            ids.sort_by_key(|id| Reverse(place(id)));
        }
        ids
    }

    fn take_in_tables(&mut self, line: &Value) -> Result<()> {
        for new in line["new"].as_array().into_iter().flatten() {
            let request = self.known(&new["id"])?;
            request.num_computed_tokens = number(&new["num_computed_tokens"]);
            request.num_blocks = num_blocks(&new["block_ids"]);
            request.num_registered = 0;
        }
        for cached in line["cached"].as_array().into_iter().flatten() {
            let request = self.known(&cached["id"])?;
            request.num_computed_tokens = number(&cached["num_computed_tokens"]);
            if cached["resumed"] == true {
                request.num_blocks = 0;
            }
            request.num_blocks += num_blocks(&cached["new_block_ids"]);
        }
        Ok(())
    }

    fn take_in_tokens(&mut self, line: &Value) -> Result<InFlight> {
        let mut scheduled = Vec::new();
        for pair in line["num_scheduled_tokens"].as_array().into_iter().flatten() {
            let num_tokens = number(&pair[1]);
            let scenario = self.scenario;
            let request = self.known(&pair[0])?;
            request.num_scheduled_tokens = num_tokens;
            // Blocks are registered when they are allocated, before they are computed; drafts never.
            let num_known = (request.num_computed_tokens + num_tokens).min(request.num_tokens());
            Self::register(scenario, request, num_known);
            let id = pair[0].as_str().unwrap_or_default().to_owned();
            let num_drafts = u32::try_from(line["spec_tokens"][&id].as_array().map_or(0, Vec::len))?;
            scheduled.push((id, num_tokens, num_drafts));
        }
        Ok(InFlight { step: self.step, scheduled })
    }

    fn report_admissions(&mut self, line: &Value, in_flight: &InFlight, trace: &mut impl StepTrace) -> Result<()> {
        let is_in = |list: &Value, id: &str, resumed: bool| {
            list.as_array()
                .into_iter()
                .flatten()
                .any(|entry| entry["id"] == id && (!resumed || entry["resumed"] == true))
        };
        for (id, ..) in &in_flight.scheduled {
            let step = self.step;
            let request = self.requests.get_mut(id).context("an unknown request is scheduled")?;
            if is_in(&line["new"], id, false) {
                request.num_cached_tokens.get_or_insert(request.num_computed_tokens);
                trace.scheduled(&InStep { request, step }, ScheduleKind::First, NOW);
            } else if is_in(&line["cached"], id, true) {
                trace.scheduled(&InStep { request, step }, ScheduleKind::Resume, NOW);
            }
        }
        Ok(())
    }

    fn commit(&mut self, in_flight: &InFlight) -> Result<()> {
        let is_async = self.scenario.config.async_scheduling;
        for (id, num_tokens, num_drafts) in &in_flight.scheduled {
            let request = self.requests.get_mut(id).context("an unknown request is scheduled")?;
            request.num_scheduled_tokens = 0;
            request.num_computed_tokens += num_tokens;
            if request.num_output_tokens == 0 {
                let num_done = request.num_computed_tokens.min(request.num_prompt_tokens());
                request.prefill_done_tokens = request.prefill_done_tokens.max(num_done);
            }
            if is_async && request.num_computed_tokens >= request.num_tokens() + request.num_placeholders {
                request.num_placeholders += 1 + num_drafts;
            }
        }
        Ok(())
    }

    /// Draft tokens that the model did not accept were not computed after all.
    fn take_back_rejected(&mut self, in_flight: &InFlight, sampled: &[(String, u32)]) {
        for (id, _, num_drafts) in in_flight.scheduled.iter().filter(|(_, _, num_drafts)| *num_drafts > 0) {
            let num_sampled = sampled.iter().find(|(other, _)| other == id).map_or(0, |(_, n)| *n);
            if let Some(request) = self.requests.get_mut(id) {
                let num_rejected = (num_drafts + 1).saturating_sub(num_sampled);
                request.num_computed_tokens = request.num_computed_tokens.saturating_sub(num_rejected);
            }
        }
    }

    fn register(scenario: &Scenario, request: &mut Tracked<'_>, num_known: u32) {
        if scenario.config.enable_prefix_caching {
            request.num_registered = request.num_registered.max(num_known / scenario.config.block_size);
        }
    }

    fn known(&mut self, id: &Value) -> Result<&mut Tracked<'a>> {
        let id = id.as_str().context("an entry without an id")?;
        self.requests.get_mut(id).with_context(|| format!("request `{id}` is unknown"))
    }
}

fn number(value: &Value) -> u32 {
    value.as_u64().and_then(|value| u32::try_from(value).ok()).unwrap_or(0)
}

fn num_blocks(groups: &Value) -> u32 {
    let blocks = groups.as_array().into_iter().flatten().map(|group| group.as_array().map_or(0, Vec::len));
    u32::try_from(blocks.sum::<usize>()).unwrap_or(u32::MAX)
}

fn texts(list: &Value) -> Vec<String> {
    list.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}
