//! A request's tokens grow, and with them its block hashes.

use stepline_kv_cache::TokenView;

use crate::ids::RequestSlot;
use crate::output::StopReason;
use crate::scheduler::Scheduler;
use crate::status::RequestStatus;
use crate::stop::check_stop;

impl Scheduler {
    /// Appends an output token. Returns how it ends the request, if it does.
    pub(crate) fn append_token(
        &mut self,
        slot: RequestSlot,
        token: u32,
    ) -> Option<(RequestStatus, Option<StopReason>)> {
        let (state, request) = self.requests.both_mut(slot);
        request.output_token_ids.push(token);
        state.num_tokens += 1;
        let stop = check_stop(state, request, token, self.limits.max_model_len);
        if state.num_tokens >= state.next_hash_at {
            self.extend_hashes(slot);
        }
        stop
    }

    /// Hashes the blocks that have become full.
    pub(crate) fn extend_hashes(&mut self, slot: RequestSlot) {
        if !self.kv.config().enable_caching {
            return;
        }
        let (state, request) = self.requests.both_mut(slot);
        let tokens = TokenView { prompt: &request.prompt_token_ids, output: &request.output_token_ids };
        request.block_hashes.extend(&mut self.hasher, tokens, request.extra_keys);
        let block_size = self.hasher.block_size();
        state.next_hash_at = (state.num_tokens / block_size + 1).saturating_mul(block_size);
    }
}
