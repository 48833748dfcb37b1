//! The `stepline` command as its users meet it.

mod bad_input;
mod config;
#[cfg(unix)]
mod interrupt;
mod replay;
mod sandbox;
