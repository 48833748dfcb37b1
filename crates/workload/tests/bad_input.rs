//! What is refused, and how the message reads.

#![expect(clippy::needless_raw_string_hashes, reason = "expect-test writes snapshots with them")]

use std::io::{Cursor, Read, Write};

use expect_test::{Expect, expect};
use proptest::prelude::*;
use stepline_workload::{RequestSpec, WorkloadError, WorkloadReader};

fn read_bytes(bytes: Vec<u8>) -> Result<Vec<RequestSpec>, WorkloadError> {
    WorkloadReader::from_reader("trace", Cursor::new(bytes))?.collect()
}

/// The message for `text`, as a block.
#[track_caller]
fn check(text: &str, expected: &Expect) {
    let error = read_bytes(text.as_bytes().to_vec()).expect_err("this is to be refused");
    expected.assert_eq(&format!("{error:#}"));
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(bytes).expect("a vector takes it");
    encoder.finish().expect("a vector takes it")
}

fn stepline_line(field: &str, value: &str) -> String {
    let mut fields = vec![("arrival_s", "0"), ("prompt_len", "8"), ("output_len", "8")];
    fields.retain(|(name, _)| *name != field);
    fields.push((field, value));
    let fields: Vec<String> = fields.iter().map(|(name, value)| format!("\"{name}\": {value}")).collect();
    format!("{{{}}}\n", fields.join(", "))
}

const AZURE: &str = "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46.6805900,374,44\n";

#[test]
fn an_empty_workload_is_refused() {
    check(
        "",
        &expect![[r#"
        trace: is empty
          expected: at least one request
          remedy: check that the right file was given and that it was written to its end"#]],
    );
    check(
        "\n \r\n",
        &expect![[r#"
        trace: is empty
          expected: at least one request
          remedy: check that the right file was given and that it was written to its end"#]],
    );
    check(
        "TIMESTAMP,ContextTokens,GeneratedTokens\n",
        &expect![[r#"
        trace:2: has a header and no rows
          expected: at least one request
          remedy: check that the right file was given and that it was written to its end"#]],
    );
    check(
        "TIMESTAMP,ContextTokens,GeneratedTokens",
        &expect![[r#"
        trace:1: has a header and no rows
          expected: at least one request
          remedy: check that the right file was given and that it was written to its end"#]],
    );
}

#[test]
fn unknown_formats_are_refused_with_the_known_ones() {
    check(
        "num_prefill_tokens,num_decode_tokens\n12,3\n",
        &expect![[r#"
        trace:1: unknown format: the first line begins with `num_prefill_tokens,num_decode_tokens`
          expected: a CSV header with TIMESTAMP, ContextTokens and GeneratedTokens, JSON lines with `timestamp` (Mooncake), or JSON lines with `arrival_s` or `arrival_ns` (Stepline)
          remedy: convert the file to one of these (docs/workload-format.md)"#]],
    );
    check(
        "[{\"timestamp\": 1}]",
        &expect![[r#"
        trace:1: unknown format: the first line begins with `[{"timestamp": 1}]`
          expected: a CSV header with TIMESTAMP, ContextTokens and GeneratedTokens, JSON lines with `timestamp` (Mooncake), or JSON lines with `arrival_s` or `arrival_ns` (Stepline)
          remedy: convert the file to one of these (docs/workload-format.md)"#]],
    );
    check(
        "{\"prompt\": \"hello\"}",
        &expect![[r#"
        trace:1: unknown format: the first line begins with `{"prompt": "hello"}`
          expected: a CSV header with TIMESTAMP, ContextTokens and GeneratedTokens, JSON lines with `timestamp` (Mooncake), or JSON lines with `arrival_s` or `arrival_ns` (Stepline)
          remedy: convert the file to one of these (docs/workload-format.md)"#]],
    );
}

#[test]
fn csv_faults_name_line_and_column() {
    check(
        "TIMESTAMP,ContextTokens\n",
        &expect![[r#"
            trace:1: the column `GeneratedTokens` is missing
              expected: a header that names it
              remedy: add it"#]],
    );
    check(
        "TIMESTAMP,TIMESTAMP,ContextTokens,GeneratedTokens\n",
        &expect![[r#"
        trace:1: the column `TIMESTAMP` is given twice
          expected: each column once
          remedy: remove one of them"#]],
    );
    check(
        &format!("{AZURE}2023-11-16 18:15:47,374\n"),
        &expect![[r#"
        trace:3: the row has 2 columns, the header has 3
          expected: 3 columns
          remedy: correct the row; if it is the last one, the file may have been cut off"#]],
    );
    check(
        &format!("{AZURE}2023-11-16 18:15:47,0,44\n"),
        &expect![[r#"
        trace:3:21: `ContextTokens` is `0`
          expected: a whole number of tokens from 1 to 16777216
          remedy: correct the value"#]],
    );
    check(
        &format!("{AZURE}2023-11-16 18:15:47,374,-1\n"),
        &expect![[r#"
        trace:3:25: `GeneratedTokens` is `-1`
          expected: a whole number of tokens from 1 to 16777216
          remedy: correct the value"#]],
    );
    check(
        &format!("{AZURE}2023-11-16 18:15:47,374.0,1\n"),
        &expect![[r#"
        trace:3:21: `ContextTokens` is `374.0`
          expected: a whole number of tokens from 1 to 16777216
          remedy: correct the value"#]],
    );
    check(
        &format!("{AZURE}2023-11-16 18:15:47,99999999999999999999,1\n"),
        &expect![[r#"
        trace:3:21: `ContextTokens` is `99999999999999999999`
          expected: a whole number of tokens from 1 to 16777216
          remedy: correct the value"#]],
    );
    check(
        &format!("{AZURE}yesterday,374,1\n"),
        &expect![[r#"
        trace:3:1: `TIMESTAMP` is `yesterday`
          expected: a timestamp like 2023-11-16 18:15:46.6805900
          remedy: correct the value"#]],
    );
    check(
        &format!("{AZURE}9999-01-01 00:00:00,374,1\n"),
        &expect![[r#"
        trace:3:1: `TIMESTAMP` is `9999-01-01 00:00:00`
          expected: at most 1000000000000000000 ns after the first row
          remedy: correct the value"#]],
    );
}

#[test]
fn a_csv_row_that_may_be_cut_off_is_refused() {
    check(
        &format!("{AZURE}2023-11-16 18:15:47,374,4"),
        &expect![[r#"
        trace:3: the last row does not end with a line break
          expected: a line break after every row
          remedy: the file may have been cut off: fetch it again, or end the row with a line break"#]],
    );
}

#[test]
fn rows_out_of_order_are_refused() {
    check(
        &format!("{AZURE}2023-11-16 18:15:46,374,44\n"),
        &expect![[r#"
        trace:3: arrives at -680590000 ns, before the request above it at 0 ns
          expected: rows in order of arrival
          remedy: sort the file by arrival"#]],
    );
    let lines = stepline_line("arrival_s", "2") + &stepline_line("arrival_s", "1.5");
    check(
        &lines,
        &expect![[r#"
        trace:2: arrives at 1500000000 ns, before the request above it at 2000000000 ns
          expected: rows in order of arrival
          remedy: sort the file by arrival"#]],
    );
}

#[test]
fn json_faults_name_line_field_and_value() {
    check(
        &(stepline_line("priority", "0") + "{\"arrival_s\": 3, \"prompt_"),
        &expect![[r#"
        trace:2:25: not a JSON object: EOF while parsing a string
          expected: one JSON object per line
          remedy: correct the line; if it is the last one, the file may have been cut off (NaN and Infinity are not JSON)"#]],
    );
    check(
        &stepline_line("arrival_s", "NaN"),
        &expect![[r#"
        trace:1:49: not a JSON object: expected value
          expected: one JSON object per line
          remedy: correct the line; if it is the last one, the file may have been cut off (NaN and Infinity are not JSON)"#]],
    );
    check(
        &stepline_line("arrival_s", "\"NaN\""),
        &expect![[r#"
        trace:1:49: `arrival_s` is `"NaN"`
          expected: a number from 0 to 1000000000
          remedy: correct the value"#]],
    );
    check(
        &stepline_line("arrival_s", "-0.5"),
        &expect![[r#"
        trace:1:49: `arrival_s` is `-0.5`
          expected: a number from 0 to 1000000000
          remedy: correct the value"#]],
    );
    check(
        &stepline_line("arrival_s", "1e300"),
        &expect![[r#"
        trace:1:49: `arrival_s` is `1e300`
          expected: a number from 0 to 1000000000
          remedy: correct the value"#]],
    );
    check(
        &stepline_line("arrival_ns", "3"),
        &expect![[r#"
        trace:1: the field `arrival_ns` is given twice, by `arrival_s` too
          expected: each field once
          remedy: remove one of them"#]],
    );
}

#[test]
fn json_lengths_and_options_out_of_range_are_refused() {
    check(
        &stepline_line("prompt_len", "0"),
        &expect![[r#"
        trace:1:49: `prompt_len` is `0`
          expected: a whole number of tokens from 1 to 16777216
          remedy: correct the value"#]],
    );
    check(
        &stepline_line("prompt_len", "16777217"),
        &expect![[r#"
        trace:1:49: `prompt_len` is `16777217`
          expected: a whole number of tokens from 1 to 16777216
          remedy: correct the value"#]],
    );
    check(
        &stepline_line("output_len", "0"),
        &expect![[r#"
        trace:1:49: `output_len` is `0`
          expected: a whole number of tokens from 1 to 16777216
          remedy: correct the value"#]],
    );
    check(
        &stepline_line("output_len", "null"),
        &expect![[r#"
        trace:1: the field `output_len` is missing
          expected: it in every request
          remedy: add it"#]],
    );
    check(
        &stepline_line("output_len", "8, \"output_len\": 9"),
        &expect![[r#"
        trace:1:66: the field `output_len` is given twice
          expected: each field once
          remedy: remove one of them"#]],
    );
    check(
        &stepline_line("priority", "0.5"),
        &expect![[r#"
        trace:1:64: `priority` is `0.5`
          expected: a whole number from -2147483648 to 2147483647
          remedy: correct the value"#]],
    );
    check(
        &stepline_line("lora", "\"\""),
        &expect![[r#"
        trace:1:60: `lora` is `""`
          expected: a text of 1 to 1024 bytes
          remedy: correct the value"#]],
    );
    check(
        &stepline_line("promt_len", "8"),
        &expect![[r#"
        trace:1:65: the field `promt_len` is unknown
          expected: arrival_s or arrival_ns, prompt_len or prompt_token_ids, hash_ids, hash_block_size, output_len, priority, lora, cache_salt and id (docs/workload-format.md)
          remedy: correct or remove it"#]],
    );
}

#[test]
fn json_prompts_that_contradict_themselves_are_refused() {
    check(
        &stepline_line("prompt_token_ids", "[1]"),
        &expect![[r#"
        trace:1: the field `prompt_token_ids` is given twice, by `prompt_len` too
          expected: each field once
          remedy: remove one of them"#]],
    );
    check(
        "{\"arrival_s\": 0, \"prompt_token_ids\": [], \"output_len\": 1}",
        &expect![[r#"
        trace:1:38: `prompt_token_ids` is `[]`
          expected: a list of 1 to 16777216 token ids, whole numbers below 2^32
          remedy: correct the value"#]],
    );
    check(
        "{\"arrival_s\": 0, \"prompt_token_ids\": [1, -1], \"output_len\": 1}",
        &expect![[r#"
        trace:1:38: `prompt_token_ids` is `[1, -1]`
          expected: a list of 1 to 16777216 token ids, whole numbers below 2^32
          remedy: correct the value"#]],
    );
    check(
        "{\"arrival_s\": 0, \"prompt_token_ids\": [1], \"hash_block_size\": 4, \"output_len\": 1}",
        &expect![[r#"
        trace:1: the field `prompt_token_ids` is given twice, by `hash_block_size` too
          expected: each field once
          remedy: remove one of them"#]],
    );
    check(
        &stepline_line("hash_ids", "[1]"),
        &expect![[r#"
        trace:1: the field `hash_block_size` is missing
          expected: it in every request
          remedy: add it"#]],
    );
    check(
        &stepline_line("hash_ids", "[1, 2, 3], \"hash_block_size\": 4"),
        &expect![[r#"
        trace:1:64: `hash_ids` is `[1, 2, 3]`
          expected: at most 2 ids for 8 tokens in blocks of 4, not 3
          remedy: correct the value"#]],
    );
}

#[test]
fn mooncake_needs_an_id_for_every_block() {
    check(
        "{\"timestamp\": 0, \"input_length\": 513, \"output_length\": 1, \"hash_ids\": [0]}",
        &expect![[r#"
        trace:1:71: `hash_ids` is `[0]`
          expected: 2 ids, one per 512 tokens of input_length 513, not 1 (traces with other block sizes can be written as Stepline JSON lines)
          remedy: correct the value"#]],
    );
}

#[test]
fn text_that_is_not_utf8_is_refused() {
    let error = read_bytes([AZURE.as_bytes(), b"2023-11-16 18:15:47,37\xff,4\n"].concat()).expect_err("not UTF-8");
    expect![[r#"
        trace:3:23: the text is not UTF-8
          expected: UTF-8 text, plain or gzipped
          remedy: convert the file to UTF-8; compressions other than gzip have to be undone first"#]]
    .assert_eq(&format!("{error:#}"));
    let utf16: Vec<u8> = std::iter::once(0xfeff).chain(AZURE.encode_utf16()).flat_map(u16::to_le_bytes).collect();
    expect![[r#"
        trace:1:1: the text is not UTF-8
          expected: UTF-8 text, plain or gzipped
          remedy: convert the file to UTF-8; compressions other than gzip have to be undone first"#]]
    .assert_eq(&format!("{:#}", read_bytes(utf16).expect_err("not UTF-8")));
}

#[test]
fn files_that_cannot_be_read_are_named() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let missing = dir.path().join("missing.csv");
    let error = WorkloadReader::open(&missing).expect_err("there is no such file").to_string();
    assert!(error.starts_with(&format!("{}: cannot be opened: ", missing.display())), "{error}");
    let error = WorkloadReader::open(dir.path()).expect_err("a directory").to_string();
    assert!(error.ends_with(": is a directory; expected a readable file; name one file in it"), "{error}");
}

#[test]
fn an_endless_line_is_refused_before_it_fills_the_memory() {
    let endless = std::io::repeat(b'x');
    let error = WorkloadReader::from_reader("zeros", endless).expect_err("too long");
    expect![[r#"
        zeros:1: the line is longer than 16777216 bytes
          expected: one request per line
          remedy: check that the file is a request trace and that its rows are on lines of their own"#]]
    .assert_eq(&format!("{error:#}"));
    // A gzip file of a few kilobytes can hold such a line too.
    let bomb = gzip(&vec![b'x'; 17 << 20]);
    assert!(bomb.len() < 100_000);
    assert!(read_bytes(bomb).expect_err("too long").to_string().contains("longer than"));
}

#[test]
fn a_gzip_file_cut_anywhere_is_refused() {
    let whole = gzip(AZURE.as_bytes());
    assert_eq!(read_bytes(whole.clone()).expect("whole").len(), 1);
    for len in 2..whole.len() {
        let error = read_bytes(whole[..len].to_vec()).expect_err("cut off").to_string();
        assert!(error.contains("the gzip stream ends in the middle"), "cut at {len}: {error}");
    }
}

#[test]
fn a_damaged_gzip_file_is_refused() {
    let mut damaged = gzip(AZURE.as_bytes());
    let checksum = damaged.len() - 8;
    damaged[checksum] ^= 1;
    expect![[r#"
        trace:3: the gzip stream is damaged: corrupt gzip stream does not have a matching checksum
          expected: a whole gzip file
          remedy: fetch or compress the file again"#]]
    .assert_eq(&format!("{:#}", read_bytes(damaged).expect_err("damaged")));
}

#[test]
fn reading_ends_with_the_first_fault() {
    let text = stepline_line("output_len", "0") + &stepline_line("output_len", "1");
    let mut reader = WorkloadReader::from_reader("trace", Cursor::new(text)).expect("a known format");
    assert!(reader.next().is_some_and(|item| item.is_err()));
    assert!(reader.next().is_none());
}

#[test]
fn a_device_that_fails_is_reported_with_its_line() {
    struct FailsAfter(Cursor<Vec<u8>>);
    impl Read for FailsAfter {
        fn read(&mut self, buf: &mut [u8]) -> std::io::Result<usize> {
            match self.0.read(buf)? {
                0 => Err(std::io::Error::other("the disk is gone")),
                n => Ok(n),
            }
        }
    }
    let reader = WorkloadReader::from_reader("disk", FailsAfter(Cursor::new(AZURE.into()))).expect("a header");
    let error = reader.collect::<Result<Vec<_>, _>>().expect_err("the disk is gone");
    expect![[r#"
        disk:3: cannot be read: the disk is gone
          expected: a readable file
          remedy: check the path and its permissions"#]]
    .assert_eq(&format!("{error:#}"));
}

proptest! {
    /// A real file with bytes overwritten and cut: an error or requests within the bounds, never a panic.
    #[test]
    fn damaged_traces_never_panic(
        mooncake in any::<bool>(),
        gzipped in any::<bool>(),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
        cut in any::<prop::sample::Index>(),
    ) {
        let text = if mooncake {
            include_str!("data/mooncake_conversation_120.jsonl")
        } else {
            include_str!("data/azure_llm_2023_code_200.csv")
        };
        let mut bytes = text.as_bytes()[..2000].to_vec();
        if gzipped {
            bytes = gzip(&bytes);
        }
        for (at, byte) in damage {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        bytes.truncate(cut.index(bytes.len() + 1));
        if let Ok(reader) = WorkloadReader::from_reader("damaged", Cursor::new(bytes)) {
            let mut last_ns = 0;
            for request in reader.map_while(Result::ok) {
                prop_assert!(request.arrival_ns >= last_ns);
                last_ns = request.arrival_ns;
                prop_assert!(request.output_len > 0);
                prop_assert_eq!(request.prompt_token_ids(0).len(), request.prompt.num_tokens() as usize);
            }
        }
    }
}
