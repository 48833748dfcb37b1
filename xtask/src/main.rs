//! Developer and release tooling.

fn main() {}
