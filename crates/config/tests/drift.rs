//! The committed files that are made from the table of settings.

use std::path::Path;

#[track_caller]
fn check(path: &str, generated: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path);
    let committed = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(committed == generated, "{} is out of date: run `cargo xtask schema`", path.display());
}

#[test]
fn the_committed_reference_is_what_the_table_says() {
    check("docs/configuration.md", &stepline_config::docs::reference_markdown());
}

#[cfg(feature = "schema")]
#[test]
fn the_committed_schema_is_what_the_table_says() {
    check("docs/schema/config.schema.json", &stepline_config::schema::json_schema());
}
