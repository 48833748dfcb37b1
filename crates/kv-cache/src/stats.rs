//! Prefix-cache counters.

/// What the prefix cache gave since the counters were last taken. Token counts, except where it says requests.
///
/// Counted once per successful admission that did a lookup; requests that were preempted before have their own
/// counters, which no hit rate includes. spec: requests-and-outputs 7.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PrefixCacheStats {
    /// Whether the cache was reset since the last taking.
    pub reset: bool,
    /// Requests admitted for the first time.
    pub requests: u64,
    /// Known tokens of those requests.
    pub queries: u64,
    /// Tokens of those requests that were found.
    pub hits: u64,
    /// Requests admitted again after a preemption.
    pub preempted_requests: u64,
    /// Known tokens of those requests, prompt and output.
    pub preempted_queries: u64,
    /// Tokens of those requests that were found.
    pub preempted_hits: u64,
}

impl PrefixCacheStats {
    /// Counts one admission of a request with `num_tokens` known tokens, `num_hits` of them found.
    pub const fn record(&mut self, num_tokens: u32, num_hits: u32, was_preempted: bool) {
        if was_preempted {
            self.preempted_requests += 1;
            self.preempted_queries += num_tokens as u64;
            self.preempted_hits += num_hits as u64;
        } else {
            self.requests += 1;
            self.queries += num_tokens as u64;
            self.hits += num_hits as u64;
        }
    }
}
