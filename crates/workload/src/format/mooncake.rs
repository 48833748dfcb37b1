//! Mooncake's public traces.
//!
//! ```text
//! {"timestamp": 3000, "input_length": 700, "output_length": 12, "hash_ids": [46, 47]}
//! ```
//!
//! `timestamp` is in milliseconds after the start. `hash_ids` names the blocks of 512 prompt tokens, the last one
//! possibly partial: `ceil(input_length / 512)` of them. Traces without prefix information leave it out.

use super::json_object::JsonObject;
use super::{LineFault, Row};
use crate::request::PromptSpec;

/// Tokens that one hash id stands for.
const BLOCK_SIZE: u32 = 512;

const FIELDS: &[&str] = &["timestamp", "input_length", "output_length", "hash_ids"];
const FIELDS_TEXT: &str = "timestamp, input_length, output_length and hash_ids (Mooncake JSON lines)";

pub(super) fn parse(line: &str) -> Result<Row, LineFault> {
    let object = JsonObject::parse(line)?;
    object.only(FIELDS, FIELDS_TEXT)?;
    let arrival_ns = object.required("timestamp")?.time_ns(1_000_000)?;
    let len = object.required("input_length")?.num_tokens()?;
    let output_len = object.required("output_length")?.num_tokens()?;
    let prompt = match object.optional("hash_ids") {
        None => PromptSpec::Length(len),
        Some(field) => {
            let ids = field.block_ids()?;
            let num_blocks = len.div_ceil(BLOCK_SIZE);
            if ids.len() != num_blocks as usize {
                let expected = format!(
                    "{num_blocks} ids, one per {BLOCK_SIZE} tokens of input_length {len}, not {} (traces with other \
                     block sizes can be written as Stepline JSON lines)",
                    ids.len()
                );
                return Err(field.fault(expected));
            }
            PromptSpec::HashedBlocks { len, block_size: BLOCK_SIZE, ids }
        }
    };
    Ok(Row::new(i128::from(arrival_ns), prompt, output_len))
}
