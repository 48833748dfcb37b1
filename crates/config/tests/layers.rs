//! File, environment and flags: what reaches the configuration, and from where.
#![cfg(feature = "load")]

mod common;

use common::{Files, environment};
use stepline_config::{EngineConfig, LoadedConfig, Loader, ObservabilityConfig, Rate};

/// Every observability setting with a value that is not its default.
const OBSERVABILITY: [(&str, &str); 16] = [
    ("otlp_traces_endpoint", "http://collector:4317"),
    ("enable_journey_tracing", "true"),
    ("journey_tracing_sample_rate", "0.5"),
    ("step_tracing_enabled", "true"),
    ("step_tracing_sample_rate", "0.25"),
    ("step_tracing_rich_subsample_rate", "0.125"),
    ("step_tracing_closure_interval", "20"),
    ("collect_detailed_traces", "model,worker"),
    ("kv_cache_metrics", "true"),
    ("kv_cache_metrics_sample", "0.75"),
    ("enable_mfu_metrics", "true"),
    ("enable_logging_iteration_details", "true"),
    ("cudagraph_metrics", "true"),
    ("show_hidden_metrics_for_version", "v0.31"),
    ("enable_layerwise_nvtx_tracing", "true"),
    ("enable_mm_processor_stats", "true"),
];

fn expected() -> ObservabilityConfig {
    let rate = |value| Rate::new(value).expect("a rate");
    ObservabilityConfig {
        otlp_traces_endpoint: Some("http://collector:4317".to_owned()),
        enable_journey_tracing: true,
        journey_tracing_sample_rate: rate(0.5),
        step_tracing_enabled: true,
        step_tracing_sample_rate: rate(0.25),
        step_tracing_rich_subsample_rate: rate(0.125),
        step_tracing_closure_interval: 20,
        collect_detailed_traces: "model,worker".parse().ok(),
        kv_cache_metrics: true,
        kv_cache_metrics_sample: rate(0.75),
        enable_mfu_metrics: true,
        enable_logging_iteration_details: true,
        cudagraph_metrics: true,
        show_hidden_metrics_for_version: Some("v0.31".to_owned()),
        enable_layerwise_nvtx_tracing: true,
        enable_mm_processor_stats: true,
    }
}

#[track_caller]
fn load(loader: Loader) -> LoadedConfig {
    loader.load().unwrap_or_else(|error| panic!("{error}"))
}

/// A file's text with a line per setting; text is quoted.
fn lines(separator: &str, quote_key: bool, end: &str) -> String {
    let quoted = |text: &str| format!("\"{text}\"");
    let line = |(name, value): &(&str, &str)| {
        let is_typed = value.parse::<f64>().is_ok() || *value == "true";
        let value = if is_typed { (*value).to_owned() } else { quoted(value) };
        format!("{}{separator}{value}", if quote_key { quoted(name) } else { (*name).to_owned() })
    };
    OBSERVABILITY.iter().map(line).collect::<Vec<_>>().join(end)
}

#[test]
fn every_observability_field_is_wired_from_the_environment() {
    let variables = OBSERVABILITY.map(|(name, value)| (format!("STEPLINE_{}", name.to_uppercase()), value));
    let loaded = load(Loader::new().environment(environment(variables)));
    assert_eq!(loaded.config.observability, expected());
}

#[test]
fn every_observability_field_is_wired_from_files_of_each_format() {
    let files = Files::new();
    for (name, text) in [
        ("a.toml", lines(" = ", false, "\n")),
        ("a.yaml", lines(": ", false, "\n")),
        ("a.json", format!("{{{}}}", lines(": ", true, ",\n"))),
    ] {
        let loaded = load(Loader::new().file(files.write(name, text)));
        assert_eq!(loaded.config.observability, expected(), "{name}");
    }
}

#[cfg(feature = "cli")]
#[test]
fn every_observability_field_is_wired_from_flags() {
    let flags =
        OBSERVABILITY.iter().filter(|(name, _)| *name != "enable_mm_processor_stats").flat_map(|(name, value)| {
            let flag = format!("--{}", name.replace('_', "-"));
            if *value == "true" { vec![flag] } else { vec![flag, (*value).to_owned()] }
        });
    let loaded = load(common::flags(flags).into_loader());
    let expected = ObservabilityConfig { enable_mm_processor_stats: false, ..expected() };
    assert_eq!(loaded.config.observability, expected);
}

#[test]
fn a_flag_outranks_a_variable_and_a_variable_a_file() {
    let files = Files::new();
    let path = files.write("stepline.toml", "\n\nmax-num-seqs = 10\nblock_size = 8\nwatermark = 0.5\n");
    let variables = environment([("STEPLINE_MAX_NUM_SEQS", "20"), ("STEPLINE_BLOCK_SIZE", "64"), ("PATH", "/bin")]);
    let loaded = load(Loader::new().file(&path).environment(variables).flag("max_num_seqs", "30"));
    let EngineConfig { scheduler, cache, .. } = &loaded.config;
    assert_eq!((scheduler.max_num_seqs, cache.block_size), (30, 64));
    let origin = |name| loaded.origin(name).expect("a setting").to_string();
    assert_eq!(origin("max_num_seqs"), "--max-num-seqs");
    assert_eq!(origin("block_size"), "STEPLINE_BLOCK_SIZE");
    assert_eq!(origin("watermark"), format!("{}:5", path.display()));
    assert_eq!(origin("max_num_active_seqs"), "derived: max_num_seqs");
    assert_eq!(origin("max_model_len"), "default");
}

#[test]
fn every_value_is_shown_with_its_origin_also_as_json() {
    let loaded = load(Loader::new().flag("step_tracing_sample_rate", "1"));
    let shown: Vec<_> = loaded.values().collect();
    assert_eq!(shown.len(), stepline_config::settings::SETTINGS.len());
    let json = loaded.to_json();
    assert_eq!(json["step_tracing_sample_rate"]["value"], 1.0);
    assert_eq!(json["step_tracing_sample_rate"]["origin"], "--step-tracing-sample-rate");
    assert!(json["num_gpu_blocks_override"]["value"].is_null());
    assert_eq!(json["max_num_seqs"]["value"], 256);
}

#[test]
fn a_password_in_the_endpoint_reaches_the_configuration_and_is_shown_nowhere() {
    let url = "http://user:secret@collector:4317";
    let loaded = load(Loader::new().flag("otlp_traces_endpoint", url));
    assert_eq!(loaded.config.observability.otlp_traces_endpoint.as_deref(), Some(url));
    let shown = loaded.values().find(|shown| shown.name == "otlp_traces_endpoint").expect("a setting");
    assert_eq!(shown.value.to_string(), "http://***@collector:4317");
    assert_eq!(loaded.to_json()["otlp_traces_endpoint"]["value"], "http://***@collector:4317");

    let files = Files::new();
    // The right value for the wrong setting, the wrong name for the right value, and the setting twice.
    let path = files.write("a.yaml", format!("scheduling_policy: {url}\notlp_endpoint: {url}\nwatermark: 2"));
    let twice =
        files.write("b.json", format!("{{\"otlp_traces_endpoint\": \"{url}\", \"otlp-traces-endpoint\": \"{url}\"}}"));
    for loader in [Loader::new().file(path).flag("max_num_seqs", url), Loader::new().file(twice)] {
        let error = loader.load().expect_err("wrong");
        assert!(!format!("{error} {error:?}").contains("secret"), "{error:?}");
    }
}

#[test]
fn an_empty_file_changes_nothing() {
    let files = Files::new();
    for (name, text) in [("a.toml", ""), ("a.yaml", ""), ("b.yaml", "# nothing\n---\n"), ("a.json", "{}")] {
        let loaded = load(Loader::new().file(files.write(name, text)));
        assert_eq!(loaded.config, Loader::new().load().expect("defaults").config, "{name}");
    }
}

#[test]
fn files_are_read_however_they_are_laid_out() {
    let files = Files::new();
    let url = "http://a/\u{1f600}";
    for (name, text) in [
        ("tabs.json", "{\n\t\"block_size\":\t8,\r\n\t\"otlp_traces_endpoint\": \"http:\\/\\/a\\/\\ud83d\\ude00\"\n}\n"),
        ("one-line.json", "{\"block-size\":8,\"otlp-traces-endpoint\":\"http://a/\u{1f600}\"}"),
        ("flow.yaml", "{block_size: 8, otlp_traces_endpoint: 'http://a/\u{1f600}'}"),
        (
            "marks.yml",
            "\u{feff}--- # first\r\nblock-size: 8 # tokens\r\notlp_traces_endpoint: http://a/\u{1f600}\r\n...\r\n",
        ),
        ("literal.toml", "\u{feff}block_size = 0x8\r\notlp_traces_endpoint = 'http://a/\u{1f600}'"),
        ("quoted.toml", "\"block_size\" = 8\n'otlp_traces_endpoint' = \"http://a/\\U0001f600\""),
    ] {
        let config =
            Loader::new().file(files.write(name, text)).load().unwrap_or_else(|e| panic!("{name}: {e}")).config;
        assert_eq!(config.cache.block_size, 8, "{name}");
        assert_eq!(config.observability.otlp_traces_endpoint.as_deref(), Some(url), "{name}");
    }
}

#[test]
fn what_was_given_without_effect_is_noticed() {
    let loaded = load(Loader::new().flag("max_loras", "4").flag("cudagraph_metrics", "true"));
    let notices: Vec<_> = loaded.notices.iter().map(ToString::to_string).collect();
    assert_eq!(
        notices,
        [
            "max_loras = 4 has no effect without enable_lora",
            "cudagraph_metrics = true has no effect: it measures GPU work, and Stepline runs none",
        ]
    );
    let wide =
        load(Loader::new().flag("max_model_len", "8").flag("max_num_seqs", "2").flag("max_num_batched_tokens", "99"));
    assert_eq!(wide.notices.len(), 1);
}

#[cfg(feature = "cli")]
#[test]
fn the_last_of_a_flag_and_its_opposite_counts() {
    let chunked = |flags: &[&str]| {
        load(common::flags(flags.iter().copied()).into_loader()).config.scheduler.enable_chunked_prefill
    };
    assert!(chunked(&[]));
    assert!(!chunked(&["--no-enable-chunked-prefill", "--max-model-len", "2048"]));
    assert!(chunked(&["--no-enable-chunked-prefill", "--enable-chunked-prefill"]));
    let twice = common::flags(["--block-size", "8", "--block-size", "32"]);
    assert_eq!(load(twice.into_loader()).config.cache.block_size, 32);
}
