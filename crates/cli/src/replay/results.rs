//! The results as JSON: the table and more, without anything that differs from run to run.

use serde::Serialize;
use stepline_engine::{ExecutorPreset, ReplayReport, StepTimeModel};
use stepline_workload::WorkloadReader;

use super::telemetry::TraceRecord;

/// What `--json` writes.
#[derive(Debug, Serialize)]
pub(crate) struct Results<'a> {
    /// Version of Stepline.
    pub(crate) stepline: &'static str,
    pub(crate) workload: WorkloadRecord,
    pub(crate) seed: u64,
    pub(crate) max_requests: Option<u64>,
    pub(crate) executor: ExecutorRecord<'a>,
    /// Every value with its origin.
    pub(crate) config: serde_json::Value,
    pub(crate) report: ReplayReport,
    /// What was traced; null if nothing was.
    pub(crate) trace: Option<TraceRecord>,
}

/// The workload that was replayed.
#[derive(Debug, Serialize)]
pub(crate) struct WorkloadRecord {
    name: String,
    format: String,
}

impl WorkloadRecord {
    pub(crate) fn new(workload: &WorkloadReader) -> Self {
        Self { name: workload.name().to_owned(), format: workload.format().to_string() }
    }
}

/// The executor, with the times that it used.
#[derive(Debug, Serialize)]
pub(crate) struct ExecutorRecord<'a> {
    preset: &'a str,
    model: &'a str,
    gpu: &'a str,
    source: &'a str,
    step_time: StepTimeModel,
}

impl<'a> ExecutorRecord<'a> {
    pub(crate) fn new(preset: &'a ExecutorPreset, step_time: StepTimeModel) -> Self {
        Self { preset: preset.name, model: preset.model, gpu: preset.gpu, source: preset.source, step_time }
    }
}

impl Results<'_> {
    /// Indented, with a line break at the end.
    pub(crate) fn to_json(&self) -> Vec<u8> {
        let mut text = serde_json::to_vec_pretty(self).expect("plain structs with text keys are valid JSON");
        text.push(b'\n');
        text
    }
}
