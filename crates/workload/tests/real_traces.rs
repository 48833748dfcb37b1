//! The real traces, read to their end and checked against figures taken from the files by other means.

use std::io::Write;
use std::path::PathBuf;

use stepline_workload::{EMBEDDED_SAMPLE, PromptSpec, RequestSpec, WorkloadError, WorkloadFormat, WorkloadReader};

fn data(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name)
}

#[track_caller]
fn read(reader: Result<WorkloadReader, WorkloadError>) -> (WorkloadFormat, Vec<RequestSpec>) {
    let reader = reader.expect("the trace opens");
    let format = reader.format();
    (format, reader.collect::<Result<_, _>>().expect("every row is a request"))
}

#[test]
fn azure_rows_become_requests_counted_from_the_first_row() {
    let (format, requests) = read(WorkloadReader::open(data("azure_llm_2023_code_200.csv")));
    assert_eq!(format, WorkloadFormat::AzureCsv);
    assert_eq!(requests.len(), 200);
    // 2023-11-16 18:17:03.9799600,4808,10 and 2023-11-16 18:17:04.0319600,3180,8
    assert_eq!((requests[0].arrival_ns, &requests[0].prompt), (0, &PromptSpec::Length(4808)));
    assert_eq!((requests[1].arrival_ns, requests[1].output_len), (51_999_900 + 100, 8));
    assert_eq!(&*requests[1].id, "req-1");
}

#[test]
fn mooncake_rows_share_the_blocks_they_name() {
    let (format, requests) = read(WorkloadReader::open(data("mooncake_conversation_120.jsonl")));
    assert_eq!(format, WorkloadFormat::MooncakeJsonl);
    assert_eq!(requests.len(), 120);
    let (first, second) = (requests[0].prompt_token_ids(1), requests[1].prompt_token_ids(1));
    assert_eq!((first.len(), second.len()), (6758, 7322));
    // Both begin with block 0 and go on with different blocks.
    assert_eq!(first[..512], second[..512]);
    assert_ne!(first[512..516], second[512..516]);
}

#[test]
fn rows_without_hash_ids_are_prompts_by_length() {
    let (format, requests) = read(WorkloadReader::open(data("servegen_reason_60.jsonl")));
    assert_eq!(format, WorkloadFormat::MooncakeJsonl);
    assert_eq!(requests[1].arrival_ns, 3_000_000);
    assert_eq!(requests[1].prompt, PromptSpec::Length(190));
    assert_eq!(requests[1].output_len, 420);
}

#[test]
fn embedded_sample_is_whole() {
    let (format, requests) = read(EMBEDDED_SAMPLE.reader());
    assert_eq!(format, WorkloadFormat::AzureCsv);
    assert_eq!(requests.len(), 1500);
    assert_eq!((&requests[0].prompt, requests[0].output_len), (&PromptSpec::Length(374), 44));
    // From 18:15:46.6805900 to 18:20:56.2918490.
    let last = requests.last().expect("1,500 requests");
    assert!((309_000_000_000..310_000_000_000).contains(&last.arrival_ns), "{}", last.arrival_ns);
}

#[test]
fn gzipped_files_give_the_same_requests() {
    for name in ["azure_llm_2023_code_200.csv", "mooncake_conversation_120.jsonl"] {
        let plain = std::fs::read(data(name)).expect("test data");
        // In two members, as `cat a.gz b.gz` makes them.
        let mut gzipped = Vec::new();
        for half in [&plain[..1000], &plain[1000..]] {
            let mut encoder = flate2::write::GzEncoder::new(&mut gzipped, flate2::Compression::default());
            encoder.write_all(half).expect("a vector takes it");
            encoder.finish().expect("a vector takes it");
        }
        let expected = read(WorkloadReader::open(data(name)));
        assert_eq!(read(WorkloadReader::from_reader("gzipped", std::io::Cursor::new(gzipped))), expected);
    }
}
