//! Stepline's own JSON lines, documented in `docs/workload-format.md`.

use super::json_object::{Field, JsonObject};
use super::{LineFault, Row};
use crate::error::Fault;
use crate::request::PromptSpec;

const FIELDS: &[&str] = &[
    "arrival_s",
    "arrival_ns",
    "prompt_len",
    "prompt_token_ids",
    "hash_ids",
    "hash_block_size",
    "output_len",
    "priority",
    "lora",
    "cache_salt",
    "id",
];
const FIELDS_TEXT: &str = "arrival_s or arrival_ns, prompt_len or prompt_token_ids, hash_ids, hash_block_size, output_len, \
     priority, lora, cache_salt and id (docs/workload-format.md)";

pub(super) fn parse(line: &str) -> Result<Row, LineFault> {
    let object = JsonObject::parse(line)?;
    object.only(FIELDS, FIELDS_TEXT)?;
    Ok(Row {
        arrival_ns: i128::from(arrival_ns(&object)?),
        prompt: prompt(&object)?,
        output_len: object.required("output_len")?.num_tokens()?,
        priority: object.optional("priority").map_or(Ok(0), |field| field.priority())?,
        lora: object.optional("lora").map(|field| field.text()).transpose()?,
        cache_salt: object.optional("cache_salt").map(|field| field.text()).transpose()?,
        id: object.optional("id").map(|field| field.text()).transpose()?,
    })
}

fn arrival_ns(object: &JsonObject<'_>) -> Result<u64, LineFault> {
    match (object.optional("arrival_s"), object.optional("arrival_ns")) {
        (Some(_), Some(_)) => Err(twice("arrival_ns", ", by `arrival_s` too")),
        (Some(seconds), None) => seconds.time_ns(1_000_000_000),
        (None, Some(nanoseconds)) => nanoseconds.time_ns(1),
        (None, None) => Err(LineFault::new(Fault::Missing { what: "field", name: "arrival_s" })),
    }
}

fn prompt(object: &JsonObject<'_>) -> Result<PromptSpec, LineFault> {
    match (object.optional("prompt_len"), object.optional("prompt_token_ids")) {
        (Some(_), Some(_)) => Err(twice("prompt_token_ids", ", by `prompt_len` too")),
        (None, None) => Err(LineFault::new(Fault::Missing { what: "field", name: "prompt_len" })),
        (Some(len), None) => {
            let len = len.num_tokens()?;
            match (object.optional("hash_ids"), object.optional("hash_block_size")) {
                (None, None) => Ok(PromptSpec::Length(len)),
                (Some(ids), Some(block_size)) => hashed_blocks(len, &ids, block_size.num_tokens()?),
                (Some(_), None) => Err(LineFault::new(Fault::Missing { what: "field", name: "hash_block_size" })),
                (None, Some(_)) => Err(LineFault::new(Fault::Missing { what: "field", name: "hash_ids" })),
            }
        }
        (None, Some(ids)) => {
            // Blocks by id would be a second description of the prompt, and their size says nothing without them.
            for (name, hint) in [("hash_ids", ", by `hash_ids` too"), ("hash_block_size", ", by `hash_block_size` too")]
            {
                if object.optional(name).is_some() {
                    return Err(twice("prompt_token_ids", hint));
                }
            }
            Ok(PromptSpec::TokenIds(ids.token_ids()?))
        }
    }
}

fn hashed_blocks(len: u32, field: &Field<'_>, block_size: u32) -> Result<PromptSpec, LineFault> {
    let ids = field.block_ids()?;
    let max_blocks = len.div_ceil(block_size);
    if ids.len() > max_blocks as usize {
        let expected =
            format!("at most {max_blocks} ids for {len} tokens in blocks of {block_size}, not {}", ids.len());
        return Err(field.fault(expected));
    }
    Ok(PromptSpec::HashedBlocks { len, block_size, ids })
}

fn twice(name: &str, hint: &'static str) -> LineFault {
    LineFault::new(Fault::Duplicate { what: "field", name: name.to_owned(), hint })
}
