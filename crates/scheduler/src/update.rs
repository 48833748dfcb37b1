//! Processing what the model returned for a step.

use std::ops::Range;

use crate::ids::{RequestId, RequestSlot};
use crate::output::{
    EngineCoreOutput, EngineCoreOutputs, ModelRunnerOutput, PrefillStats, RequestNews, ScheduledTokens,
    SchedulerOutput, SchedulerStats,
};
use crate::scheduler::Scheduler;
use crate::status::RequestStatus;
use crate::time::Nanos;
use crate::trace::StepTrace;

/// Why a step's result was refused. The scheduler is as it was before.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UpdateError {
    /// Steps are processed once each, in the order in which they were scheduled.
    #[error("step {got} is processed, expected step {expected}: each step once, in order")]
    WrongStep {
        /// The oldest step that has not been processed.
        expected: u64,
        /// The step of the plan.
        got: u64,
    },
    /// Not one list of tokens per scheduled request.
    #[error("step {step}: the model returned {got} token lists for {expected} scheduled requests")]
    WrongLength {
        /// The step.
        step: u64,
        /// Scheduled requests.
        expected: usize,
        /// Lists returned.
        got: usize,
    },
    /// A request that must sample got no token, or one that is still in its prompt got some.
    #[error(
        "step {step}: the model returned {got} tokens for request `{id}`, which {}",
        if *samples { "reached the end of its tokens: expected at least 1" } else { "has not: expected none" }
    )]
    WrongTokens {
        /// The step.
        step: u64,
        /// The request.
        id: RequestId,
        /// Whether the step ended with its last known token.
        samples: bool,
        /// Tokens returned.
        got: usize,
    },
}

impl Scheduler {
    /// Processes a step's result. See [`update_from_output_into`](Self::update_from_output_into), which reuses a
    /// caller's buffers.
    ///
    /// # Errors
    /// If `result` does not belong to `plan`.
    pub fn update_from_output(
        &mut self,
        plan: &SchedulerOutput,
        result: &ModelRunnerOutput,
        now: Nanos,
        trace: &mut impl StepTrace,
    ) -> Result<EngineCoreOutputs, UpdateError> {
        let mut outputs = EngineCoreOutputs::default();
        self.update_from_output_into(plan, result, now, trace, &mut outputs)?;
        Ok(outputs)
    }

    /// Processes a step's result into `outputs`, whose previous content is lost and whose buffers are reused.
    ///
    /// Called once per scheduled step, in order. Requests that ended while the step ran are passed over. O(requests of
    /// the step + new tokens).
    ///
    /// # Errors
    /// If `result` does not belong to `plan`.
    ///
    /// spec: scheduler 3; vLLM 0.32: `Scheduler.update_from_output`.
    pub fn update_from_output_into(
        &mut self,
        plan: &SchedulerOutput,
        result: &ModelRunnerOutput,
        now: Nanos,
        trace: &mut impl StepTrace,
        outputs: &mut EngineCoreOutputs,
    ) -> Result<(), UpdateError> {
        self.check_order(plan)?;
        self.check_tokens(plan, result)?;
        self.processed_step_id = plan.step;
        outputs.clear();
        let mut some_stopped = false;
        for (scheduled, sampled) in plan.num_scheduled_tokens.iter().zip(result.sampled_token_ids()) {
            let Some(slot) = self.drain_in_flight(scheduled) else { continue };
            if !sampled.is_empty() {
                some_stopped |= self.deliver(slot, sampled, plan.step, now, trace, outputs);
            }
        }
        if some_stopped {
            self.running.retain(|slot| self.requests[*slot].status == RequestStatus::Running);
        }
        outputs.scheduler_stats = self.take_stats();
        debug_assert_eq!(self.check(), Ok(()));
        Ok(())
    }

    fn check_order(&self, plan: &SchedulerOutput) -> Result<(), UpdateError> {
        let expected = self.processed_step_id + 1;
        if plan.step == expected && plan.step <= self.step_id {
            Ok(())
        } else {
            Err(UpdateError::WrongStep { expected, got: plan.step })
        }
    }

    /// A model that skips a token would leave its request running with nothing left to compute.
    fn check_tokens(&self, plan: &SchedulerOutput, result: &ModelRunnerOutput) -> Result<(), UpdateError> {
        let expected = plan.num_scheduled_tokens.len();
        if result.len() != expected {
            return Err(UpdateError::WrongLength { step: plan.step, expected, got: result.len() });
        }
        let wrong = plan
            .num_scheduled_tokens
            .iter()
            .zip(result.sampled_token_ids())
            .find(|(scheduled, sampled)| scheduled.samples == sampled.is_empty());
        match wrong.and_then(|(scheduled, sampled)| Some((self.request_id(scheduled.request)?, scheduled, sampled))) {
            None => Ok(()),
            Some((id, scheduled, sampled)) => Err(UpdateError::WrongTokens {
                step: plan.step,
                id: id.clone(),
                samples: scheduled.samples,
                got: sampled.len(),
            }),
        }
    }

    /// Takes a step's tokens out of flight. Returns the request if it still wants them. spec: scheduler 3.1 to 3.3.
    fn drain_in_flight(&mut self, scheduled: &ScheduledTokens) -> Option<RequestSlot> {
        let slot = self.requests.resolve(scheduled.request)?;
        let state = &mut self.requests[slot];
        if state.status.is_finished() {
            return None;
        }
        state.num_in_flight = state.num_in_flight.saturating_sub(scheduled.num_tokens);
        let is_stale = state.num_stale > 0;
        if is_stale {
            state.num_stale = state.num_stale.saturating_sub(scheduled.num_tokens);
        }
        (!(is_stale && state.drop_stale)).then_some(slot)
    }

    /// Appends tokens until one ends the request, and writes the record. Returns whether the request has ended.
    ///
    /// spec: scheduler 3.6 to 3.9.
    fn deliver(
        &mut self,
        slot: RequestSlot,
        sampled: &[u32],
        step: u64,
        now: Nanos,
        trace: &mut impl StepTrace,
        outputs: &mut EngineCoreOutputs,
    ) -> bool {
        let is_first = self.requests[slot].num_output_tokens() == 0;
        let start = position(outputs.token_ids.len());
        let mut stopped = None;
        for token in sampled {
            outputs.token_ids.push(*token);
            stopped = self.append_token(slot, *token);
            if stopped.is_some() {
                break;
            }
        }
        if is_first {
            trace.first_token(&self.traced_in(slot, step), now);
        }
        let mut record = self.record(slot, start..position(outputs.token_ids.len()));
        if let Some((status, stop_reason)) = stopped {
            record.finish_reason = status.finish_reason();
            record.stop_reason = stop_reason;
            if self.requests[slot].status == RequestStatus::Preempted {
                self.leave_waiting(slot); // stale output ended it
            }
            self.end(slot, status, step, now, trace);
        }
        outputs.outputs.push(record);
        stopped.is_some()
    }

    /// A record with what is due: tokens always, statistics with the first record, events since the last one.
    fn record(&mut self, slot: RequestSlot, token_ids: Range<u32>) -> EngineCoreOutput {
        let news = self.requests[slot].has_news.then(|| Box::new(self.take_news(slot)));
        let request = self.requests.handle(slot);
        EngineCoreOutput { request, token_ids, finish_reason: None, stop_reason: None, news }
    }

    fn take_news(&mut self, slot: RequestSlot) -> RequestNews {
        let prefill_stats = self.prefill_stats(slot);
        let (state, request) = self.requests.both_mut(slot);
        state.has_news = false;
        let is_first = !std::mem::replace(&mut request.has_emitted, true);
        RequestNews { events: std::mem::take(&mut request.events), prefill_stats: is_first.then_some(prefill_stats) }
    }

    /// spec: requests-and-outputs 5, "Prefill statistics".
    fn prefill_stats(&self, slot: RequestSlot) -> PrefillStats {
        let num_prompt_tokens = self.requests[slot].num_prompt_tokens;
        let num_cached_tokens = self.requests.request(slot).num_cached_tokens.unwrap_or(0);
        let num_registered = self.kv.request_metrics(slot, 0, 0).blocks_cached_gpu * self.hasher.block_size();
        PrefillStats {
            num_prompt_tokens,
            num_cached_tokens,
            num_cache_creation_tokens: num_registered.min(num_prompt_tokens).saturating_sub(num_cached_tokens),
        }
    }

    fn take_stats(&mut self) -> SchedulerStats {
        SchedulerStats {
            num_running_reqs: self.running.len(),
            num_waiting_reqs: self.waiting.len() - self.num_deferred,
            num_skipped_waiting_reqs: self.num_deferred,
            kv_cache_usage: self.kv.usage(),
            prefix_cache_stats: self.kv.take_prefix_cache_stats(),
        }
    }
}

/// A place in the tokens of a step, of which there are fewer than budgets can say.
fn position(len: usize) -> u32 {
    u32::try_from(len).expect("a step gives fewer than 2^32 tokens")
}
