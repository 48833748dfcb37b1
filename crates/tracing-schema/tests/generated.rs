//! The committed pages are what the declarations say. `UPDATE_EXPECT=1 cargo test` writes them.
#![cfg(feature = "schema")]

use expect_test::expect_file;
use stepline_tracing_schema::{docs, schema};

#[test]
fn the_reference_table_of_events_is_up_to_date() {
    expect_file!["../../../docs/events.md"].assert_eq(&docs::events_markdown());
}

#[test]
fn the_json_schema_of_events_is_up_to_date() {
    expect_file!["../../../docs/schema/events.schema.json"].assert_eq(&schema::json_schema());
}
