//! What is left of a step.

/// Tokens that a step can still schedule. Only [`spend`](Self::spend) and [`give_back`](Self::give_back) change it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct StepBudget {
    /// Of `max_num_scheduled_tokens`.
    token_budget: u32,
    /// Of `max_num_batched_tokens`.
    input_budget: u32,
}

impl StepBudget {
    pub(crate) const fn new(token_budget: u32, input_budget: u32) -> Self {
        Self { token_budget, input_budget }
    }

    /// Tokens that the next request may get at most.
    pub(crate) fn left(self) -> u32 {
        self.token_budget.min(self.input_budget)
    }

    pub(crate) const fn spend(&mut self, num_tokens: u32) {
        self.token_budget -= num_tokens;
        self.input_budget -= num_tokens;
    }

    /// Undoes a [`spend`](Self::spend) of a request that was preempted after all.
    pub(crate) const fn give_back(&mut self, num_tokens: u32) {
        self.token_budget += num_tokens;
        self.input_budget += num_tokens;
    }
}
