//! Features beside the core algorithm, each behind a few functions that a pass calls at one place.

pub(crate) mod lora;
