//! Replays the decisions of a recording on the real scheduler.

use std::collections::{BTreeMap, VecDeque};

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Value, json};
use stepline_config::{EngineArgs, EngineConfig, SchedulingPolicy};
use stepline_scheduler::{
    EngineCoreOutputs, ExternalFinish, LoraRequest, ModelRunnerOutput, Nanos, NewRequest, RepetitionDetection,
    SamplingParams, Scheduler, SchedulerOutput, StopReason,
};

use super::compare::{Divergence, first_difference, summary};
use super::format::{Config, Recording, Request, Scenario, line_type};

/// Steps of context that a divergence comes with.
const NUM_STEPS_BEFORE: usize = 2;

/// Returns the first difference between the recording and the scheduler, if there is one.
pub(crate) fn replay(recording: &Recording) -> Result<Option<Divergence>> {
    let scenario = recording.scenario.as_ref().context("not a scenario")?;
    let mut replayer = Replayer::new(scenario)?;
    for (idx, line) in recording.lines.iter().enumerate() {
        let number = idx + 2;
        let got = replayer.apply(line).with_context(|| format!("line {number}"))?;
        if let Some(difference) = got.and_then(|got| first_difference(line, &got)) {
            return Ok(Some(Divergence {
                line: number,
                line_type: line_type(line).to_owned(),
                step: replayer.scheduler.step_id(),
                field: difference.field,
                expected: difference.expected,
                got: difference.got,
                before: replayer.before.iter().map(summary).collect(),
            }));
        }
        replayer.scheduler.check().with_context(|| format!("after line {number}"))?;
        replayer.remember(line);
    }
    Ok(None)
}

struct Replayer<'a> {
    scheduler: Scheduler,
    requests: BTreeMap<&'a str, &'a Request>,
    /// In the order of the recording.
    order: Vec<&'a str>,
    /// Steps scheduled and not processed, oldest first.
    plans: VecDeque<SchedulerOutput>,
    /// The model's output for the oldest of them, if it has been told.
    result: Option<ModelRunnerOutput>,
    /// How each request ended, and its output tokens.
    ends: BTreeMap<String, (String, u64)>,
    before: VecDeque<Value>,
}

impl<'a> Replayer<'a> {
    fn new(scenario: &'a Scenario) -> Result<Self> {
        let config = engine_config(&scenario.config)?;
        Ok(Self {
            scheduler: Scheduler::new(&config, scenario.config.num_gpu_blocks)?,
            requests: scenario.requests.iter().map(|request| (request.id.as_str(), request)).collect(),
            order: scenario.requests.iter().map(|request| request.id.as_str()).collect(),
            plans: VecDeque::new(),
            result: None,
            ends: BTreeMap::new(),
            before: VecDeque::new(),
        })
    }

    /// Does what the line says. Returns the line as the scheduler would have written it, if it is a result.
    fn apply(&mut self, line: &Value) -> Result<Option<Value>> {
        match line_type(line) {
            "add" => self.add(line).map(|()| None),
            "abort" => self.abort(line).map(Some),
            "reset_prefix_cache" => {
                let reset_running = line["reset_running_requests"] == true;
                let success = self.scheduler.reset_prefix_cache(reset_running, Nanos(0), &mut ());
                Ok(Some(with(line, &[("success", json!(success))])))
            }
            "schedule" => Ok(Some(self.schedule())),
            "model_output" => self.model_output(line).map(|()| None),
            "engine_output" => self.engine_output().map(Some),
            "end" => {
                ensure!(self.plans.is_empty(), "{} steps were never processed", self.plans.len());
                Ok(Some(self.end(line)))
            }
            other => bail!("unknown type `{other}`"),
        }
    }

    fn remember(&mut self, line: &Value) {
        if line_type(line) == "schedule" {
            self.before.push_back(line.clone());
            if self.before.len() > NUM_STEPS_BEFORE {
                self.before.pop_front();
            }
        }
    }

    fn add(&mut self, line: &Value) -> Result<()> {
        let id = line["id"].as_str().context("`add` without an id")?;
        let request = self.requests.get(id).with_context(|| format!("request `{id}` is not in the scenario"))?;
        self.scheduler.add_request(new_request(request), Nanos(0), &mut ())?;
        Ok(())
    }

    fn abort(&mut self, line: &Value) -> Result<Value> {
        let ids = line["ids"].as_array().context("`abort` without ids")?;
        let ids = ids.iter().filter_map(Value::as_str);
        let aborted = self.scheduler.finish_requests(ids, ExternalFinish::Aborted, Nanos(0), &mut ());
        for id in &aborted {
            self.ends.entry(id.to_string()).or_default().0 = "abort".into();
        }
        let aborted: Vec<&str> = aborted.iter().map(stepline_scheduler::RequestId::as_str).collect();
        Ok(with(line, &[("aborted", json!(aborted))]))
    }

    fn schedule(&mut self) -> Value {
        let plan = self.scheduler.schedule(Nanos(0), &mut ());
        let got = describe_plan(&self.scheduler, &plan);
        self.plans.push_back(plan);
        got
    }

    fn model_output(&mut self, line: &Value) -> Result<()> {
        let plan = self.plans.front().context("`model_output` without a scheduled step")?;
        ensure!(line["step"] == plan.step, "output of step {}, expected that of step {}", line["step"], plan.step);
        ensure!(self.result.is_none(), "the model's output for step {} is told twice", plan.step);
        let pairs = line["sampled"].as_array().context("`model_output` without `sampled`")?;
        let mut result = ModelRunnerOutput::default();
        for (idx, pair) in pairs.iter().enumerate() {
            // The record of a request that has ended meanwhile has no id any more.
            let scheduled = plan.num_scheduled_tokens.get(idx).context("`sampled` is longer than the step")?;
            if let Some(id) = self.scheduler.request_id(scheduled.request) {
                ensure!(pair[0] == id.as_str(), "`sampled[{idx}]` is of {}, the step has `{id}` there", pair[0]);
            }
            let tokens: Vec<u32> = serde_json::from_value(pair[1].clone()).context("`sampled`")?;
            result.push(&tokens);
        }
        self.result = Some(result);
        Ok(())
    }

    fn engine_output(&mut self) -> Result<Value> {
        let plan = self.plans.pop_front().context("`engine_output` without a scheduled step")?;
        let result = self.result.take().context("`engine_output` without a `model_output`")?;
        let outputs = self.scheduler.update_from_output(&plan, &result, Nanos(0), &mut ())?;
        let got = describe_outputs(&self.scheduler, plan.step, &outputs);
        for output in &outputs.outputs {
            let id = self.scheduler.request_id(output.request).context("the record of an unknown request")?;
            let end = self.ends.entry(id.to_string()).or_default();
            end.1 += outputs.new_token_ids(output).len() as u64;
            if let Some(reason) = output.finish_reason {
                reason.as_str().clone_into(&mut end.0);
            }
        }
        Ok(got)
    }

    fn end(&self, line: &Value) -> Value {
        let requests: Vec<Value> = self
            .order
            .iter()
            .map(|id| {
                let (reason, num_tokens) = self.ends.get(*id).cloned().unwrap_or_default();
                json!([id, reason, num_tokens])
            })
            .collect();
        let steps = self.scheduler.step_id();
        let free_blocks = self.scheduler.kv_cache().num_free_blocks();
        with(line, &[("steps", json!(steps)), ("requests", json!(requests)), ("free_blocks", json!(free_blocks))])
    }
}

/// A copy of the line with what was replayed in place of what was recorded.
fn with(line: &Value, fields: &[(&str, Value)]) -> Value {
    let mut line = line.clone();
    for (name, value) in fields {
        line[*name] = value.clone();
    }
    line
}

/// The configuration of a recording.
pub(crate) fn engine_config(config: &Config) -> Result<EngineConfig> {
    let policy = match config.policy.as_str() {
        "fcfs" => SchedulingPolicy::Fcfs,
        "priority" => SchedulingPolicy::Priority,
        other => bail!("unknown policy `{other}`"),
    };
    let args = EngineArgs {
        max_model_len: Some(config.max_model_len),
        block_size: Some(config.block_size),
        enable_prefix_caching: Some(config.enable_prefix_caching),
        max_num_seqs: Some(config.max_num_seqs),
        max_num_active_seqs: config.max_num_active_seqs,
        max_num_batched_tokens: Some(config.max_num_batched_tokens),
        max_num_scheduled_tokens: config.max_num_scheduled_tokens,
        long_prefill_token_threshold: Some(config.long_prefill_token_threshold),
        long_prefill_token_threshold_adaptive: Some(config.long_prefill_token_threshold_adaptive),
        enable_chunked_prefill: Some(config.enable_chunked_prefill),
        scheduling_policy: Some(policy),
        scheduler_reserve_full_isl: Some(config.scheduler_reserve_full_isl),
        watermark: Some(config.watermark),
        enable_lora: Some(config.max_loras.is_some()),
        max_loras: config.max_loras,
        ..EngineArgs::default()
    };
    Ok(args.resolve()?)
}

fn new_request(request: &Request) -> NewRequest {
    let sampling = SamplingParams {
        max_tokens: Some(request.max_tokens),
        min_tokens: request.min_tokens,
        eos_token_id: request.eos_token_id.filter(|_| !request.ignore_eos),
        stop_token_ids: request.stop_token_ids.clone(),
        repetition_detection: request.repetition_detection.as_ref().map(|rule| RepetitionDetection {
            max_pattern_size: rule.max_pattern_size,
            min_pattern_size: rule.min_pattern_size,
            min_count: rule.min_count,
        }),
    };
    NewRequest {
        priority: request.priority,
        arrival_time: Some(nanos(request.arrival_time)),
        lora: request.lora.as_ref().map(|lora| LoraRequest {
            name: lora.name.as_str().into(),
            id: lora.int_id,
            path: lora.path.as_str().into(),
        }),
        cache_salt: request.cache_salt.as_deref().map(Into::into),
        skip_reading_prefix_cache: request.skip_reading_prefix_cache,
        ..NewRequest::new(request.id.as_str(), request.prompt_token_ids.as_slice(), sampling)
    }
}

/// Recorded seconds, all small and not negative.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates, and only orders requests")]
fn nanos(seconds: f64) -> Nanos {
    Nanos((seconds * 1e9).round() as u64)
}

/// A plan in the words of a `schedule` line.
fn describe_plan(scheduler: &Scheduler, plan: &SchedulerOutput) -> Value {
    let id = |handle| scheduler.request_id(handle).map(ToString::to_string);
    let ids = |references: &[stepline_scheduler::RequestRef]| {
        let mut ids: Vec<String> = references.iter().map(|reference| reference.id.to_string()).collect();
        ids.sort();
        ids
    };
    let blocks = |blocks: &[stepline_scheduler::BlockId]| json!([blocks.iter().map(|id| id.0).collect::<Vec<_>>()]);
    let new: Vec<Value> = plan
        .scheduled_new_reqs
        .iter()
        .map(|new| {
            let block_ids = blocks(plan.block_ids(new));
            json!({"id": new.request.id.as_str(), "num_computed_tokens": new.num_computed_tokens, "block_ids": block_ids})
        })
        .collect();
    let cached: Vec<Value> = plan
        .scheduled_cached_reqs
        .iter()
        .map(|cached| {
            let new_blocks = plan.new_block_ids(cached);
            json!({
                "id": id(cached.request),
                "resumed": cached.resumed,
                "num_computed_tokens": cached.num_computed_tokens,
                "num_output_tokens": cached.num_output_tokens,
                "new_block_ids": if new_blocks.is_empty() { Value::Null } else { blocks(new_blocks) },
            })
        })
        .collect();
    let num_scheduled_tokens: Vec<Value> = plan
        .num_scheduled_tokens
        .iter()
        .map(|scheduled| json!([id(scheduled.request), scheduled.num_tokens]))
        .collect();
    let mut deferred: Vec<&str> = scheduler.deferred().map(stepline_scheduler::RequestId::as_str).collect();
    deferred.sort_unstable();
    let kv_cache = scheduler.kv_cache();
    json!({
        "type": "schedule",
        "step": plan.step,
        "new": new,
        "cached": cached,
        "num_scheduled_tokens": num_scheduled_tokens,
        "total": plan.total_num_scheduled_tokens,
        "preempted": ids(&plan.preempted_req_ids),
        "finished": ids(&plan.finished_req_ids),
        "running": scheduler.running().map(stepline_scheduler::RequestId::as_str).collect::<Vec<_>>(),
        "waiting": scheduler.waiting().map(stepline_scheduler::RequestId::as_str).collect::<Vec<_>>(),
        "deferred": if deferred.is_empty() { Value::Null } else { json!(deferred) },
        "free_blocks": kv_cache.num_free_blocks(),
        "kv_usage": kv_cache.usage(),
        "free_queue_crc32": free_queue_crc32(scheduler),
    })
}

fn free_queue_crc32(scheduler: &Scheduler) -> u32 {
    let mut crc = crc32fast::Hasher::new();
    for id in scheduler.kv_cache().free_queue() {
        crc.update(&id.0.to_le_bytes());
    }
    crc.finalize()
}

/// Outputs in the words of an `engine_output` line.
fn describe_outputs(scheduler: &Scheduler, step: u64, outputs: &EngineCoreOutputs) -> Value {
    let records: Vec<Value> = outputs
        .outputs
        .iter()
        .map(|output| {
            let stop_reason = output.stop_reason.map(|reason| match reason {
                StopReason::Token(token) => json!(token),
                StopReason::RepetitionDetected => json!("repetition_detected"),
            });
            json!({
                "id": scheduler.request_id(output.request).map(ToString::to_string),
                "new_token_ids": outputs.new_token_ids(output),
                "finish_reason": output.finish_reason.map(stepline_scheduler::FinishReason::as_str),
                "stop_reason": stop_reason,
                "num_cached_tokens": output.prefill_stats().map(|stats| stats.num_cached_tokens),
            })
        })
        .collect();
    let stats = outputs.scheduler_stats;
    let prefix = stats.prefix_cache_stats;
    let prefix_cache = (prefix != stepline_scheduler::PrefixCacheStats::default()).then(|| {
        json!({
            "reset": prefix.reset,
            "requests": prefix.requests,
            "queries": prefix.queries,
            "hits": prefix.hits,
            "preempted_requests": prefix.preempted_requests,
            "preempted_queries": prefix.preempted_queries,
            "preempted_hits": prefix.preempted_hits,
        })
    });
    json!({
        "type": "engine_output",
        "step": step,
        "outputs": records,
        "stats": {
            "num_running": stats.num_running_reqs,
            "num_waiting": stats.num_waiting_reqs,
            "num_deferred": stats.num_skipped_waiting_reqs,
            "kv_usage": stats.kv_cache_usage,
            "prefix_cache": prefix_cache,
        },
    })
}
