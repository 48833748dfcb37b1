//! What the scheduler cannot do yet.

use serde_json::Value;

use super::format::{Config, Recording, line_type};

/// Returns the first feature that a recording needs and the scheduler lacks.
///
/// Recordings with tracing lines bring their decisions with them, so they need nothing.
pub(crate) fn missing_feature(recording: &Recording) -> Option<String> {
    let Some(scenario) = &recording.scenario else {
        return Some(format!("recordings of type {}", recording.kind()));
    };
    if scenario.tracing.is_some() {
        return None;
    }
    missing_in_config(&scenario.config).or_else(|| recording.lines.iter().find_map(missing_in_line)).map(str::to_owned)
}

fn missing_in_config(config: &Config) -> Option<&'static str> {
    let is_full_attention = |config: &Config| config.kv_cache_groups.iter().all(|group| group.kind == "full_attention");
    let missing = [
        (config.async_scheduling, "asynchronous scheduling"),
        (!config.speculative.is_null(), "speculative decoding"),
        (!config.encoder.is_null(), "multimodal inputs"),
        (config.enable_kv_cache_events, "KV events"),
        (config.kv_cache_groups.len() > 1, "several KV cache groups"),
        (!is_full_attention(config), "sliding-window and chunked-local attention"),
    ];
    missing.into_iter().find_map(|(needed, feature)| needed.then_some(feature))
}

fn missing_in_line(line: &Value) -> Option<&'static str> {
    match line_type(line) {
        "pause" => Some("pause states"),
        "schedule" if line["throttle_prefills"] == true => Some("prefill throttling"),
        "draft_tokens" => Some("speculative decoding"),
        _ => None,
    }
}
