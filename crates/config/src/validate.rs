//! The rules that a configuration obeys: of each value, and between values.

use std::collections::BTreeSet;
use std::fmt::Display;

use crate::engine_config::EngineConfig;
use crate::error::{ConfigErrors, Fault, Problem};
use crate::settings::Setting;

impl EngineConfig {
    /// Checks every value and every rule between values.
    ///
    /// # Errors
    /// All faults together. A rule between values is not checked if one of them is at fault by itself.
    pub fn validate(&self) -> Result<(), ConfigErrors> {
        ConfigErrors::check(faults_of(self, &BTreeSet::new()))
    }
}

/// The faults of `config`, but for rules that involve a setting of `distrusted`.
pub(crate) fn faults_of(config: &EngineConfig, distrusted: &BTreeSet<&'static str>) -> Vec<Fault> {
    let mut distrusted = distrusted.clone();
    let mut faults = Vec::new();
    for (name, value) in config.values() {
        let setting = Setting::find(name).expect("every value belongs to a setting");
        if !setting.kind.admits(&value) {
            distrusted.insert(name);
            faults.push(not_allowed(name, &value));
        }
    }
    let broken =
        broken_rules(config).into_iter().filter(|rule| rule.involves.iter().all(|name| !distrusted.contains(name)));
    faults.extend(broken.map(|rule| Fault {
        field: rule.involves[0].to_owned(),
        value: Some(rule.value),
        problem: Problem::Conflict { rule: rule.rule },
        origin: None,
    }));
    faults
}

/// The fault of a value that the setting `name` does not take.
pub(crate) fn not_allowed(name: &'static str, value: &dyn Display) -> Fault {
    let setting = Setting::find(name).expect("the name of a setting");
    Fault {
        field: name.to_owned(),
        value: Some(value.to_string()),
        problem: Problem::NotAllowed { allowed: setting.kind.allowed() },
        origin: None,
    }
}

struct BrokenRule {
    /// The setting at fault, then those that it contradicts.
    involves: &'static [&'static str],
    /// The value of the first.
    value: String,
    rule: String,
}

/// spec: config 1, 2 and 4.
fn broken_rules(config: &EngineConfig) -> Vec<BrokenRule> {
    let mut broken = Vec::new();
    let mut check = |holds: bool, involves: &'static [&'static str], value: String, rule: String| {
        if !holds {
            broken.push(BrokenRule { involves, value, rule });
        }
    };
    let scheduler = &config.scheduler;
    let max_model_len = config.model.max_model_len;
    check(
        scheduler.max_num_seqs <= scheduler.max_num_batched_tokens,
        &["max_num_seqs", "max_num_batched_tokens"],
        scheduler.max_num_seqs.to_string(),
        format!("must be at most max_num_batched_tokens = {}", scheduler.max_num_batched_tokens),
    );
    check(
        scheduler.max_num_active_seqs <= scheduler.max_num_seqs,
        &["max_num_active_seqs", "max_num_seqs"],
        scheduler.max_num_active_seqs.to_string(),
        format!("must be at most max_num_seqs = {}", scheduler.max_num_seqs),
    );
    check(
        scheduler.enable_chunked_prefill || scheduler.max_num_batched_tokens >= max_model_len,
        &["max_num_batched_tokens", "max_model_len", "enable_chunked_prefill", "max_num_seqs"],
        scheduler.max_num_batched_tokens.to_string(),
        format!("must be at least max_model_len = {max_model_len}, or enable_chunked_prefill must be true"),
    );
    check(
        scheduler.long_prefill_token_threshold <= max_model_len,
        &["long_prefill_token_threshold", "max_model_len"],
        scheduler.long_prefill_token_threshold.to_string(),
        format!("must be at most max_model_len = {max_model_len}"),
    );
    let cache = &config.cache;
    if let Some(unit) = cache.prefix_match_unit {
        check(
            unit == cache.block_size,
            &["prefix_match_unit", "block_size"],
            unit.to_string(),
            format!("must equal block_size = {}", cache.block_size),
        );
    }
    let observability = &config.observability;
    if let Some(modules) = &observability.collect_detailed_traces {
        check(
            observability.otlp_traces_endpoint.is_some(),
            &["collect_detailed_traces", "otlp_traces_endpoint"],
            modules.to_string(),
            "needs otlp_traces_endpoint".to_owned(),
        );
    }
    broken
}
