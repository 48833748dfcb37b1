//! The `stepline` command as its users meet it.

mod bad_input;
mod config;
mod replay;
mod sandbox;
