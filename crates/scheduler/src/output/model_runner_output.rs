//! What the model gave.

/// What the model returned for a step: a list of tokens for every entry of
/// [`SchedulerOutput::num_scheduled_tokens`](crate::SchedulerOutput::num_scheduled_tokens), in that order.
///
/// An entry whose [`samples`](crate::ScheduledTokens::samples) is false gets an empty list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ModelRunnerOutput {
    token_ids: Vec<u32>,
    /// Where each request's list ends in `token_ids`.
    ends: Vec<usize>,
}

impl ModelRunnerOutput {
    /// Appends the list of the next request.
    pub fn push(&mut self, sampled_token_ids: &[u32]) {
        self.token_ids.extend_from_slice(sampled_token_ids);
        self.ends.push(self.token_ids.len());
    }

    /// Number of lists.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there are no lists.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The lists, in order.
    #[must_use]
    pub fn sampled_token_ids(&self) -> impl ExactSizeIterator<Item = &[u32]> {
        let mut start = 0;
        self.ends.iter().map(move |end| &self.token_ids[std::mem::replace(&mut start, *end)..*end])
    }

    /// Empties all lists and keeps their memory.
    pub fn clear(&mut self) {
        self.token_ids.clear();
        self.ends.clear();
    }
}
