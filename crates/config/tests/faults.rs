//! Bad input: each fault is named with its place, and all of them together.
#![cfg(feature = "load")]

mod common;

use std::fmt::Write;

use common::{Files, environment};
use expect_test::{Expect, expect};
use stepline_config::Loader;

/// Checks the message, with the folder of the test left out.
#[track_caller]
fn check(files: &Files, loader: Loader, expected: &Expect) {
    let error = loader.load().expect_err("a bad configuration").to_string();
    expected.assert_eq(&error.replace(&format!("{}/", files.path("").display()).replace("//", "/"), ""));
}

#[test]
fn all_faults_of_all_layers_are_reported_together() {
    let files = Files::new();
    let path = files.write(
        "stepline.toml",
        "max_num_seqs = 0\n\
         step_tracing_sample_rate = nan\n\
         block_sizes = 16\n\
         block_size = \"16\"\n\
         [model]\n\
         max_model_len = 5\n",
    );
    let variables = environment([
        ("STEPLINE_WATERMARK", "1.0"),
        ("STEPLINE_MAX_NUM_SEQUENCES", "3"),
        ("STEPLINE_STEP_TRACING_SAMPLE_RATE", "1.5"),
        ("HOME", "/root"),
    ]);
    let loader = Loader::new()
        .file(path)
        .environment(variables)
        // Right, but the file's value is reported all the same.
        .flag("step_tracing_sample_rate", "0.5")
        .flag("step_tracing_closure_interval", "9")
        .flag("scheduling_policy", "lifo")
        .flag("max_model_len", "1024")
        .flag("long_prefill_token_threshold", "2048");
    check(
        &files,
        loader,
        &expect![[r#"
            invalid configuration, 11 faults:
              stepline.toml:1: max_num_seqs = 0: must be a whole number, 1 or more (up to 2147483647)
              stepline.toml:2: step_tracing_sample_rate = nan: must be a number from 0 to 1
              stepline.toml:3: block_sizes: no such setting; did you mean `block_size`?
              stepline.toml:4: block_size = "16": must be a whole number from 1 to 65536
              stepline.toml:5: model: is a table, but configuration files are flat: write its settings at the top level, without it
              STEPLINE_MAX_NUM_SEQUENCES: no such setting; did you mean `max_num_seqs`?
              STEPLINE_STEP_TRACING_SAMPLE_RATE: step_tracing_sample_rate = "1.5": must be a number from 0 to 1
              STEPLINE_WATERMARK: watermark = "1.0": must be a number from 0 to below 1
              --step-tracing-closure-interval: step_tracing_closure_interval = "9": must be a whole number from 10 to 10000
              --scheduling-policy: scheduling_policy = "lifo": must be one of fcfs, priority
              --long-prefill-token-threshold: long_prefill_token_threshold = 2048: must be at most max_model_len = 1024"#]],
    );
}

#[test]
fn a_value_of_the_wrong_type_is_named_with_its_line() {
    let files = Files::new();
    let mut out = String::new();
    for (name, text) in [
        ("a.yaml", "max_num_seqs: true"),
        ("b.yaml", "\nmax_num_seqs: [1]"),
        ("c.yaml", "max_num_seqs:"),
        ("d.yaml", "max_num_seqs: {a: [{b: 1}]}\nwatermark: 2"),
        ("e.yaml", "step_tracing_sample_rate: .nan"),
        ("f.yaml", "step_tracing_sample_rate: .inf"),
        ("g.yaml", "enable_prefix_caching: yes"),
        ("h.yaml", "max_num_seqs: 99999999999999999999999999999999999999999999"),
        ("i.yaml", "max_num_seqs: &a 1\nblock_size: *a"),
        ("j.json", "{\"step_tracing_sample_rate\":\n1.5,\n\"watermark\": -0.1}"),
        ("k.json", "{\"step_tracing_sample_rate\": \"abc\"}"),
        ("l.json", "{\"max_num_seqs\": null}"),
        ("m.toml", "max_num_seqs = 2.5"),
        ("n.toml", "step_tracing_sample_rate = inf"),
        ("o.toml", "a = 1979-05-27\nblock_size = 1979-05-27"),
        ("p.toml", "[scheduler.limits]\nmax_num_seqs = 4"),
    ] {
        let error = Loader::new().file(files.write(name, text)).load().expect_err(name).to_string();
        let prefix = format!("{}", files.path("").display());
        writeln!(out, "{}", error.replace(&prefix, "").replace("invalid configuration", "")).expect("text");
    }
    expect![[r#"
        : a.yaml:1: max_num_seqs = true: must be a whole number, 1 or more (up to 2147483647)
        : b.yaml:2: max_num_seqs = a list: must be a whole number, 1 or more (up to 2147483647)
        : c.yaml:1: max_num_seqs = null: must be a whole number, 1 or more (up to 2147483647)
        , 2 faults:
          d.yaml:1: max_num_seqs = a table: must be a whole number, 1 or more (up to 2147483647)
          d.yaml:2: watermark = 2: must be a number from 0 to below 1
        : e.yaml:1: step_tracing_sample_rate = .nan: must be a number from 0 to 1
        : f.yaml:1: step_tracing_sample_rate = .inf: must be a number from 0 to 1
        : g.yaml:1: enable_prefix_caching = "yes": must be true or false
        : h.yaml:1: max_num_seqs = 99999999999999999999999999999999999999999999: must be a whole number, 1 or more (up to 2147483647)
        : i.yaml:2: block_size = an alias: must be a whole number from 1 to 65536
        , 2 faults:
          j.json:2: step_tracing_sample_rate = 1.5: must be a number from 0 to 1
          j.json:3: watermark = -0.1: must be a number from 0 to below 1
        : k.json:1: step_tracing_sample_rate = "abc": must be a number from 0 to 1
        : l.json:1: max_num_seqs = null: must be a whole number, 1 or more (up to 2147483647)
        : m.toml:1: max_num_seqs = 2.5: must be a whole number, 1 or more (up to 2147483647)
        : n.toml:1: step_tracing_sample_rate = inf: must be a number from 0 to 1
        , 2 faults:
          o.toml:1: a: no such setting
          o.toml:2: block_size = a date: must be a whole number from 1 to 65536
        : p.toml:1: scheduler: is a table, but configuration files are flat: write its settings at the top level, without it
    "#]].assert_eq(&out);
}

#[test]
fn a_number_is_shown_as_it_was_written() {
    let files = Files::new();
    for (number, needs_hint) in [("64.0", true), ("1e2", true), ("2.5", false), ("-0.0", true), ("99999999999", false)]
    {
        for (name, text) in [
            ("a.toml", format!("max_num_seqs = {number} # requests")),
            ("a.yaml", format!("max_num_seqs: {number} # requests")),
            ("a.json", format!("{{\"max_num_seqs\": {number} }}")),
        ] {
            let error = Loader::new().file(files.write(name, text)).load().expect_err(name).to_string();
            let hint = if needs_hint { ", written without point and exponent" } else { "" };
            let expected =
                format!("max_num_seqs = {number}: must be a whole number, 1 or more (up to 2147483647){hint}");
            assert!(error.ends_with(&expected), "{error}");
        }
    }
}

#[test]
fn settings_in_a_table_are_told_to_stand_at_the_top_level() {
    let files = Files::new();
    for (name, text) in [
        ("a.toml", "[model]\nmax_model_len = 5"),
        ("b.toml", "[[model]]\nmax_model_len = 5"),
        ("c.toml", "model = { max_model_len = 5 }"),
        ("d.toml", "model.max_model_len = 5"),
        ("a.yaml", "model:\n  max_model_len: 5"),
        ("a.json", "{\"model\": {\"max_model_len\": 5}}"),
    ] {
        let error = Loader::new().file(files.write(name, text)).load().expect_err(name).to_string();
        let rule = "is a table, but configuration files are flat: write its settings at the top level, without it";
        assert!(error.ends_with(&format!("{name}:1: model: {rule}")), "{error}");
    }
}

#[test]
fn a_file_that_is_no_configuration_is_refused_with_the_reason() {
    let files = Files::new();
    std::fs::create_dir(files.path("folder.toml")).expect("a folder");
    for (name, content) in [
        ("broken.toml", "max_num_seqs = 1\nblock_size = = 2".as_bytes()),
        ("twice.toml", b"block_size = 1\nblock_size = 2"),
        ("twice.yaml", b"block_size: 1\n\nblock-size: 2"),
        ("twice.json", b"{\"block_size\": 1,\n\"block_size\": 2}"),
        ("broken.yaml", b"block_size: 1\n  max: [2"),
        ("broken.json", b"{\"block_size\": 1,}"),
        ("empty.json", b""),
        ("list.yaml", b"- 1"),
        ("list.json", b"[1]"),
        ("two.yaml", b"block_size: 1\n---\nblock_size: 2"),
        ("latin.toml", b"otlp_traces_endpoint = \"\xe9\""),
        ("a.ini", b"block_size = 1"),
        ("noextension", b""),
    ] {
        files.write(name, content);
    }
    files.write("large.yaml", "#".repeat((1 << 20) + 1));
    files.write("deep.json", format!("{{\"block_size\": {}{}}}", "[".repeat(5000), "]".repeat(5000)));
    files.write("deep.toml", format!("block_size = {}{}", "[".repeat(5000), "]".repeat(5000)));
    files.write("deep.yaml", format!("block_size: {}{}", "[".repeat(5000), "]".repeat(5000)));
    let mut out = String::new();
    for name in [
        "broken.toml",
        "twice.toml",
        "twice.yaml",
        "twice.json",
        "broken.yaml",
        "broken.json",
        "empty.json",
        "list.yaml",
        "list.json",
        "two.yaml",
        "latin.toml",
        "a.ini",
        "noextension",
        "large.yaml",
        "deep.json",
        "deep.toml",
        "deep.yaml",
        "folder.toml",
        "missing.toml",
    ] {
        let error = Loader::new().file(files.path(name)).load().expect_err(name).to_string();
        let prefix = format!("{}", files.path("").display());
        writeln!(out, "{}", error.replace(&prefix, "").replace("invalid configuration: ", "")).expect("text");
    }
    expect![[r#"
        broken.toml:2: is not TOML: extra `=`, expected nothing
        twice.toml:2: is not TOML: duplicate key
        twice.yaml:3: block-size: given twice; the first is at line 1
        twice.json:2: block_size: given twice; the first is at line 1
        broken.yaml:2: is not YAML: mapping values are not allowed in this context
        broken.json:1: cannot be read as JSON: trailing comma at line 1 column 18
        empty.json:1: cannot be read as JSON: EOF while parsing a value at line 1 column 0
        list.yaml:1: must be a mapping, `name: value`
        list.json:1: cannot be read as JSON: invalid type: sequence, expected an object, {"name": value} at line 1 column 0
        two.yaml:2: holds more than one document; keep one
        latin.toml: is not UTF-8 text: byte 24 is wrong; save it as UTF-8
        a.ini: unknown format: name the file .toml, .yaml, .yml or .json
        noextension: unknown format: name the file .toml, .yaml, .yml or .json
        large.yaml: is larger than 1048576 bytes, which no configuration is
        deep.json:1: block_size = a list: must be a whole number from 1 to 65536
        deep.toml:1: is not TOML: cannot recurse further; max recursion depth met
        deep.yaml:1: is not YAML: recursion limit exceeded
        folder.toml: is not a file
        missing.toml: cannot be read: No such file or directory (os error 2)
    "#]]
    .assert_eq(&out);
}

#[test]
fn of_very_many_faults_the_first_are_printed_and_the_rest_is_counted() {
    let files = Files::new();
    let num_keys = 20_000;
    for (name, start, line, end) in [
        ("a.toml", "", "unknown_N = 1\n", "block_size = 0"),
        ("a.yaml", "", "unknown_N: 1\n", "block_size: 0"),
        ("a.json", "{", "\"unknown_N\": 1,\n", "\"block_size\": 0}"),
    ] {
        let lines: String = (1..=num_keys).map(|number| line.replace('N', &number.to_string())).collect();
        let path = files.write(name, format!("{start}{lines}{end}"));
        let error = Loader::new().file(&path).load().expect_err(name);
        assert_eq!((error.num_faults(), error.faults().len()), (num_keys + 1, 1000), "{name}");
        assert_eq!(error.faults()[999].to_string(), format!("{}:1000: unknown_1000: no such setting", path.display()));
        let printed = error.to_string();
        assert_eq!(printed.lines().count(), 1 + 20 + 1, "{printed}");
        assert!(printed.starts_with("invalid configuration, 20001 faults:\n"), "{printed}");
        assert!(printed.ends_with("unknown_20: no such setting\n  and 19981 more faults"), "{printed}");
    }
}

#[test]
fn a_key_deep_in_a_long_file_is_named_with_its_line() {
    let files = Files::new();
    for (name, text) in [
        ("a.toml", format!("{}block_size = 0", "# é\n".repeat(50_000))),
        ("a.yaml", format!("{}block_size: 0", "# é\n".repeat(50_000))),
        ("a.json", format!("{{{}\"block_size\": 0}}", "\n".repeat(50_000))),
    ] {
        let error = Loader::new().file(files.write(name, text)).load().expect_err(name).to_string();
        assert!(error.contains(&format!("{name}:50001: block_size = 0: ")), "{error}");
    }
}

#[test]
fn a_variable_that_is_unknown_or_unreadable_is_named() {
    let files = Files::new();
    let variables = environment([
        ("STEPLINE_MAX_NUM_SEQ", "1"),
        ("STEPLINE_", "1"),
        ("STEPLINE_block_size", "1"),
        ("STEPLINE_BLOCK_SIZE", ""),
        ("STEPLINE_OTLP_TRACES_ENDPOINT", ""),
        ("STEPLINE_ENABLE_PREFIX_CACHING", "maybe"),
    ]);
    check(
        &files,
        Loader::new().environment(variables),
        &expect![[r#"
            invalid configuration, 6 faults:
              STEPLINE_: no such setting
              STEPLINE_MAX_NUM_SEQ: no such setting; did you mean `max_num_seqs`?
              STEPLINE_block_size: variables are in capitals: STEPLINE_BLOCK_SIZE
              STEPLINE_BLOCK_SIZE: block_size = "": must be a whole number from 1 to 65536; an empty variable is not an absent one: unset it
              STEPLINE_ENABLE_PREFIX_CACHING: enable_prefix_caching = "maybe": must be true or false
              STEPLINE_OTLP_TRACES_ENDPOINT: otlp_traces_endpoint = "": must be a text that is not empty; an empty variable is not an absent one: unset it"#]],
    );
}

#[cfg(unix)]
#[test]
fn a_variable_that_is_not_utf_8_is_refused() {
    use std::os::unix::ffi::OsStringExt;

    let value = std::ffi::OsString::from_vec(vec![b'1', 0xff]);
    let error = Loader::new().environment([("STEPLINE_MAX_NUM_SEQS".into(), value)]).load().expect_err("not text");
    assert!(error.to_string().contains("STEPLINE_MAX_NUM_SEQS: max_num_seqs = bytes that are not UTF-8"), "{error}");
}

#[test]
fn a_rule_is_not_judged_by_a_value_that_was_given_wrongly() {
    // With the default of max_model_len the budget would be too small.
    let loader = Loader::new()
        .flag("enable_chunked_prefill", "false")
        .flag("max_num_batched_tokens", "2048")
        .flag("max_model_len", "many");
    let error = loader.load().expect_err("no number");
    assert_eq!(error.faults().len(), 1, "{error}");
}

#[test]
fn a_broken_rule_names_where_the_value_comes_from() {
    let variables = environment([("STEPLINE_MAX_NUM_SEQS", "64")]);
    let error = Loader::new().environment(variables).flag("max_num_batched_tokens", "32").load().expect_err("too many");
    assert_eq!(
        error.to_string(),
        "invalid configuration: STEPLINE_MAX_NUM_SEQS: max_num_seqs = 64: must be at most max_num_batched_tokens = 32"
    );
}

#[cfg(feature = "cli")]
#[test]
fn every_wrong_flag_is_reported_not_only_the_first() {
    let files = Files::new();
    let flags = common::flags(["--watermark", "-0.1", "--step-tracing-sample-rate", "NaN", "--block-size=-5"]);
    check(
        &files,
        flags.into_loader(),
        &expect![[r#"
            invalid configuration, 3 faults:
              --block-size: block_size = "-5": must be a whole number from 1 to 65536
              --watermark: watermark = "-0.1": must be a number from 0 to below 1
              --step-tracing-sample-rate: step_tracing_sample_rate = "NaN": must be a number from 0 to 1"#]],
    );
}
