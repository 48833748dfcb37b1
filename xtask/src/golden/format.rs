//! The recordings as they are on disk. See golden/README.md and golden/README-tracing.md.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use anyhow::{Context, Result, bail};
use flate2::read::MultiGzDecoder;
use serde::Deserialize;
use serde_json::Value;

/// A recording: its first line, and the others as JSON objects with a `type`.
pub(crate) struct Recording {
    pub(crate) scenario: Option<Scenario>,
    kind: String,
    /// Line numbers start at 2.
    pub(crate) lines: Vec<Value>,
}

/// The first line of a scenario.
#[derive(Deserialize)]
pub(crate) struct Scenario {
    pub(crate) config: Config,
    pub(crate) tracing: Option<Tracing>,
    #[serde(default)]
    pub(crate) span_event_limit: u32,
    pub(crate) requests: Vec<Request>,
}

#[derive(Deserialize)]
#[expect(clippy::struct_excessive_bools, reason = "the fields of the format")]
pub(crate) struct Config {
    pub(crate) max_num_seqs: u32,
    pub(crate) max_num_active_seqs: Option<u32>,
    pub(crate) max_num_batched_tokens: u32,
    pub(crate) max_num_scheduled_tokens: Option<u32>,
    pub(crate) long_prefill_token_threshold: u32,
    #[serde(default)]
    pub(crate) long_prefill_token_threshold_adaptive: bool,
    pub(crate) enable_chunked_prefill: bool,
    pub(crate) max_model_len: u32,
    pub(crate) policy: String,
    pub(crate) async_scheduling: bool,
    #[serde(default)]
    pub(crate) scheduler_reserve_full_isl: bool,
    #[serde(default)]
    pub(crate) watermark: f64,
    pub(crate) num_gpu_blocks: u32,
    pub(crate) block_size: u32,
    pub(crate) enable_prefix_caching: bool,
    #[serde(default)]
    pub(crate) kv_cache_groups: Vec<Group>,
    #[serde(default)]
    pub(crate) enable_kv_cache_events: bool,
    #[serde(default)]
    pub(crate) speculative: Value,
    pub(crate) max_loras: Option<u32>,
    #[serde(default)]
    pub(crate) encoder: Value,
}

#[derive(Deserialize)]
pub(crate) struct Group {
    #[serde(rename = "type")]
    pub(crate) kind: String,
}

#[derive(Deserialize)]
#[expect(clippy::struct_field_names, reason = "the names of the format")]
pub(crate) struct Tracing {
    pub(crate) enable_journey_tracing: bool,
    pub(crate) endpoint: bool,
    pub(crate) step_tracing_enabled: bool,
    pub(crate) step_tracing_sample_rate: f64,
    pub(crate) step_tracing_rich_subsample_rate: f64,
    pub(crate) step_tracing_closure_interval: u32,
    pub(crate) step_sampler: Sampler,
    pub(crate) rich_sampler: Sampler,
}

#[derive(Clone, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(crate) enum Sampler {
    Always,
    Never,
    AtSteps { steps: Vec<u64> },
    Sha1 { seed: u64 },
}

#[derive(Clone, Deserialize)]
pub(crate) struct Request {
    pub(crate) id: String,
    pub(crate) prompt_token_ids: Vec<u32>,
    pub(crate) max_tokens: u32,
    pub(crate) min_tokens: u32,
    #[serde(default)]
    pub(crate) ignore_eos: bool,
    pub(crate) eos_token_id: Option<u32>,
    pub(crate) stop_token_ids: Vec<u32>,
    pub(crate) priority: i32,
    /// Seconds; only orders requests.
    pub(crate) arrival_time: f64,
    pub(crate) lora: Option<Lora>,
    pub(crate) cache_salt: Option<String>,
    #[serde(default)]
    pub(crate) skip_reading_prefix_cache: bool,
    pub(crate) repetition_detection: Option<Repetition>,
    pub(crate) trace_headers: Option<BTreeMap<String, String>>,
}

#[derive(Clone, Deserialize)]
pub(crate) struct Lora {
    pub(crate) name: String,
    pub(crate) int_id: u32,
    pub(crate) path: String,
}

#[derive(Clone, Deserialize)]
pub(crate) struct Repetition {
    pub(crate) max_pattern_size: u32,
    pub(crate) min_pattern_size: u32,
    pub(crate) min_count: u32,
}

impl Recording {
    /// Reads a file, decompressing it if it is gzip.
    pub(crate) fn read(path: &Path) -> Result<Self> {
        Self::from_lines(read_lines(path)?).with_context(|| format!("{}", path.display()))
    }

    pub(crate) fn from_lines(mut lines: Vec<Value>) -> Result<Self> {
        if lines.is_empty() {
            bail!("the file is empty, expected a `scenario` line first");
        }
        let first = lines.remove(0);
        if first["format"] != 1 {
            bail!("line 1: format {}, expected 1", first["format"]);
        }
        match line_type(&first) {
            "scenario" => {
                let kind = first["kind"].as_str().unwrap_or("scenario").to_owned();
                let scenario = Scenario::deserialize(&first).context("line 1: not a scenario")?;
                if lines.last().map(line_type) != Some("end") {
                    bail!("the last line is not `end`: the file is cut off");
                }
                if lines.iter().filter(|line| line_type(line) == "end").count() > 1 {
                    bail!("there is more than one `end` line");
                }
                Ok(Self { scenario: Some(scenario), kind, lines })
            }
            other => Ok(Self { scenario: None, kind: other.to_owned(), lines }),
        }
    }

    pub(crate) fn kind(&self) -> &str {
        &self.kind
    }

    pub(crate) fn num_steps(&self) -> usize {
        self.lines.iter().filter(|line| line_type(line) == "schedule").count()
    }

    pub(crate) fn has_tracing(&self) -> bool {
        self.scenario.as_ref().is_some_and(|scenario| scenario.tracing.is_some())
    }
}

/// The JSON objects of a file, one a line.
pub(crate) fn read_lines(path: &Path) -> Result<Vec<Value>> {
    let name = path.display();
    let file = File::open(path).with_context(|| format!("{name}: cannot open"))?;
    let is_gzip = path.extension().is_some_and(|extension| extension == "gz");
    let reader: Box<dyn Read> = if is_gzip { Box::new(MultiGzDecoder::new(file)) } else { Box::new(file) };
    let lines = BufReader::new(reader).lines().enumerate();
    lines
        .map(|(idx, line)| {
            let place = || format!("{name}:{}", idx + 1);
            let line = line.with_context(|| format!("{}: cannot read", place()))?;
            serde_json::from_str(&line).with_context(|| format!("{}: expected a JSON object", place()))
        })
        .collect()
}

/// The `type` of a line.
pub(crate) fn line_type(line: &Value) -> &str {
    line["type"].as_str().unwrap_or_default()
}
