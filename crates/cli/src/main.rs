//! The `stepline` command.

fn main() {}
