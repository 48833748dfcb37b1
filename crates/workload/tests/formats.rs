//! What the formats accept.

use stepline_workload::{PromptSpec, RequestSpec, WorkloadFormat, WorkloadReader};

#[track_caller]
fn read(text: &str) -> Vec<RequestSpec> {
    let reader = WorkloadReader::from_reader("test", std::io::Cursor::new(text.to_owned())).expect("a known format");
    reader.map(|request| request.unwrap_or_else(|e| panic!("{e}"))).collect()
}

#[test]
fn every_field_of_stepline_json_lines_is_read() {
    let requests = read(concat!(
        r#"{"arrival_s": 0.25, "prompt_len": 40, "hash_block_size": 16, "hash_ids": [7, 8], "output_len": 3}"#,
        "\n",
        r#"{"arrival_ns": 250000001, "prompt_token_ids": [5, 4294967295], "output_len": 1, "priority": -3, "#,
        r#""lora": "sql", "cache_salt": "tenant \"7\"", "id": "chat-17"}"#,
    ));
    let expected = [
        RequestSpec {
            ordinal: 0,
            id: "req-0".into(),
            arrival_ns: 250_000_000,
            prompt: PromptSpec::HashedBlocks { len: 40, block_size: 16, ids: [7, 8].into() },
            output_len: 3,
            priority: 0,
            lora: None,
            cache_salt: None,
        },
        RequestSpec {
            ordinal: 1,
            id: "chat-17".into(),
            arrival_ns: 250_000_001,
            prompt: PromptSpec::TokenIds([5, u32::MAX].into()),
            output_len: 1,
            priority: -3,
            lora: Some("sql".into()),
            cache_salt: Some("tenant \"7\"".into()),
        },
    ];
    assert_eq!(requests, expected);
}

#[test]
fn null_means_not_given() {
    let requests = read(r#"{"arrival_s": 0, "prompt_len": 1, "output_len": 1, "priority": null, "lora": null}"#);
    assert_eq!((requests[0].priority, &requests[0].lora), (0, &None));
}

#[test]
fn times_are_exact_in_integers_and_rounded_in_decimals() {
    let arrival_ns = |text: &str| read(&format!("{{{text}, \"prompt_len\": 1, \"output_len\": 1}}"))[0].arrival_ns;
    assert_eq!(arrival_ns(r#""arrival_ns": 999999999999999999"#), 999_999_999_999_999_999);
    assert_eq!(arrival_ns(r#""arrival_s": 999999999"#), 999_999_999_000_000_000);
    assert_eq!(arrival_ns(r#""arrival_s": 0.1"#), 100_000_000);
    assert_eq!(arrival_ns(r#""arrival_s": 1.5e-9"#), 2);
    assert_eq!(arrival_ns(r#""arrival_s": -0.0"#), 0);
}

#[test]
fn byte_order_mark_crlf_and_blank_lines_change_nothing() {
    let requests = read(
        "\u{feff}TIMESTAMP,ContextTokens,GeneratedTokens\r\n\r\n2023-11-16 18:15:46.6805900,374,44\r\n\
         2023-11-16 18:15:46.6805901,396,109\r\n  \n",
    );
    let figures: Vec<_> = requests.iter().map(|r| (r.arrival_ns, r.prompt.num_tokens(), r.output_len)).collect();
    assert_eq!(figures, [(0, 374, 44), (100, 396, 109)]);
}

#[test]
fn azure_columns_are_found_by_name_and_offsets_are_honoured() {
    let requests = read(
        "GeneratedTokens, TIMESTAMP ,model,ContextTokens\n\
         1,2024-05-10 00:00:00.009930+00:00,a,10\n\
         2,2024-05-10 01:00:00.009931+01:00,b,20\n",
    );
    let figures: Vec<_> = requests.iter().map(|r| (r.arrival_ns, r.prompt.num_tokens(), r.output_len)).collect();
    assert_eq!(figures, [(0, 10, 1), (1000, 20, 2)]);
}

#[test]
fn a_last_json_line_needs_no_line_break() {
    assert_eq!(read(r#"{"timestamp": 27.5, "input_length": 4, "output_length": 5}"#)[0].arrival_ns, 27_500_000);
}

#[test]
fn a_pipe_that_gives_single_bytes_is_read_like_a_file() {
    struct Dribble(std::io::Cursor<&'static [u8]>);
    impl std::io::Read for Dribble {
        fn read(&mut self, buf: &mut [u8]) -> std::io::Result<usize> {
            let len = buf.len().min(1);
            self.0.read(&mut buf[..len])
        }
    }
    let text: &[u8] = b"{\"arrival_s\":1,\"prompt_len\":2,\"output_len\":3}\n";
    let reader = WorkloadReader::from_reader("pipe", Dribble(std::io::Cursor::new(text))).expect("a known format");
    assert_eq!(reader.format(), WorkloadFormat::SteplineJsonl);
    assert_eq!(reader.count(), 1);
}
