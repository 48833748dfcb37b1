//! When an output ends.

use crate::output::StopReason;
use crate::request::{RepetitionDetection, Request, RequestState};
use crate::status::RequestStatus;

/// Returns how `last`, the token just appended, ends the request, if it does.
///
/// The order is vLLM's: `min_tokens` guards the repetition detector only. spec: requests-and-outputs 4.
pub(crate) fn check_stop(
    state: &RequestState,
    request: &Request,
    last: u32,
    max_model_len: u32,
) -> Option<(RequestStatus, Option<StopReason>)> {
    if state.eos_token_id == Some(last) {
        return Some((RequestStatus::FinishedStopped, None));
    }
    if state.has_stop_rules && request.sampling.stop_token_ids.contains(&last) {
        return Some((RequestStatus::FinishedStopped, Some(StopReason::Token(last))));
    }
    let num_output_tokens = state.num_output_tokens();
    if state.num_tokens >= max_model_len || num_output_tokens >= state.max_tokens {
        return Some((RequestStatus::FinishedLengthCapped, None));
    }
    if !state.has_stop_rules || num_output_tokens < request.sampling.min_tokens {
        return None;
    }
    let rule = request.sampling.repetition_detection?;
    repeats(&request.output_token_ids, rule)
        .then_some((RequestStatus::FinishedRepetition, Some(StopReason::RepetitionDetected)))
}

/// Whether `tokens` end with some pattern, `min_count` times in a row.
fn repeats(tokens: &[u32], rule: RepetitionDetection) -> bool {
    let sizes = rule.min_pattern_size.max(1)..=rule.max_pattern_size;
    let count = rule.min_count as usize;
    sizes.map(|size| size as usize).take_while(|size| size.saturating_mul(count) <= tokens.len()).any(|size| {
        let tail = &tokens[tokens.len() - size * count..];
        // Equal to itself one pattern later means equal in every window.
        tail[size..] == tail[..tail.len() - size]
    })
}

#[cfg(test)]
mod tests {
    use super::{RepetitionDetection, repeats};

    /// spec: requests-and-outputs 4, example 5.
    #[test]
    fn a_pattern_of_two_is_found_at_its_third_repetition() {
        let rule = RepetitionDetection { max_pattern_size: 2, min_pattern_size: 1, min_count: 3 };
        let output = [1, 2, 1, 2, 1, 2];
        assert!(!repeats(&output[..5], rule));
        assert!(repeats(&output, rule));
        assert!(repeats(&[7, 4, 4, 4], rule));
        assert!(!repeats(&[4, 4], rule));
    }

    #[test]
    fn patterns_outside_the_sizes_are_not_looked_for() {
        let rule = RepetitionDetection { max_pattern_size: 3, min_pattern_size: 2, min_count: 2 };
        assert!(!repeats(&[5, 5, 5], rule));
        assert!(repeats(&[5, 5, 5, 5], rule), "as a pattern of two");
        assert!(!repeats(&[1, 2, 3, 4, 1, 2, 3, 4], rule));
    }
}
