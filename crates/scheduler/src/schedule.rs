//! The scheduling call, as an outline.

use crate::budget::StepBudget;
use crate::output::SchedulerOutput;
use crate::scheduler::Scheduler;
use crate::step::Step;
use crate::time::Nanos;
use crate::trace::{PlannedStep, StepTrace};

impl Scheduler {
    /// Plans the next step. See [`schedule_into`](Self::schedule_into), which reuses a caller's buffers.
    pub fn schedule(&mut self, now: Nanos, trace: &mut impl StepTrace) -> SchedulerOutput {
        let mut output = SchedulerOutput::default();
        self.schedule_into(now, trace, &mut output);
        output
    }

    /// Plans the next step into `output`, whose previous content is lost and whose buffers are reused.
    ///
    /// The step must be executed and its result handed to [`update_from_output`](Self::update_from_output), empty
    /// steps included. `now` is the time of the SCHEDULED and PREEMPTED events of this call. O(running requests +
    /// admissions + new blocks), and O(waiting requests) behind a limit on adapters that is reached.
    ///
    /// spec: scheduler 2; vLLM 0.32: `Scheduler.schedule`.
    pub fn schedule_into(&mut self, now: Nanos, trace: &mut impl StepTrace, output: &mut SchedulerOutput) {
        let mut step = self.begin_step(now);
        self.schedule_running(&mut step, trace);
        if !step.has_preempted {
            self.schedule_waiting(&mut step, trace);
        }
        self.build_output(&step, output);
        // Decided, but the counters have not moved yet.
        trace.step_planned(&PlannedStep::new(self, &step, output));
        self.commit(&step);
        self.step = step;
        debug_assert_eq!(self.check(), Ok(()));
    }

    /// spec: scheduler 2.1.
    fn begin_step(&mut self, now: Nanos) -> Step {
        self.step_id += 1;
        let num_eligible = self.running.len() + self.waiting.len();
        let budget = StepBudget::new(self.limits.max_num_scheduled_tokens, self.limits.max_num_batched_tokens);
        let mut step = std::mem::take(&mut self.step);
        step.begin(now, budget, self.limits.long_prefill_cap(num_eligible));
        step
    }
}
