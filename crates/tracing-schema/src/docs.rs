//! The reference table of events, `docs/events.md`, written from the declarations.

use std::fmt::Write as _;

use crate::spec::{AttributeSpec, AttributeType, EVENTS, SPANS};

/// Returns the text of `docs/events.md`.
#[must_use]
pub fn events_markdown() -> String {
    let mut page = String::from(HEAD);
    page.push_str("\n## Spans\n");
    for span in SPANS {
        let _infallible = write!(page, "\n### `{}`\n\nScope `{}`. {}\n\n", span.name, span.scope, span.meaning);
        table(&mut page, span.attributes);
    }
    page.push_str("\n## Events\n");
    let mut rest = EVENTS;
    while let Some(first) = rest.first() {
        // Events with the same attributes share a table.
        let same = rest.iter().take_while(|event| event.attributes == first.attributes).count();
        let (group, others) = rest.split_at(same);
        rest = others;
        page.push('\n');
        for event in group {
            let _infallible = writeln!(page, "### `{}`\n\nOn `{}`. {}\n", event.name, event.span, event.meaning);
        }
        if group.len() > 1 {
            page.push_str("Attributes of the events above:\n\n");
        }
        table(&mut page, first.attributes);
        if !first.line_only.is_empty() {
            page.push_str("\nOnly in the trace file, where no span says it:\n\n");
            table(&mut page, first.line_only);
        }
    }
    page
}

const HEAD: &str = "\
# Trace events

Generated from the declarations in `crates/tracing-schema` by `cargo xtask schema`; do not edit.

Attributes stand in the order of emission. An *optional* one may be missing; its meaning says when. Units are UCUM:
`{token}` counts tokens, `1` is a ratio. *Stable* names keep key, type and meaning; *legacy* ones are the reference's
names for what the OpenTelemetry conventions have since renamed, or never had.

In a trace file (`--trace-out`) an event is one JSON object on one line: `name`, which is the event's name, then its
attributes under the same keys. `docs/schema/events.schema.json` describes such a line.
";

fn table(page: &mut String, attributes: &[AttributeSpec]) {
    page.push_str("| attribute | type | unit | meaning | stability |\n|---|---|---|---|---|\n");
    for attribute in attributes {
        let optional = if attribute.optional { ", optional" } else { "" };
        let unit = if attribute.unit.is_empty() { String::new() } else { format!("`{}`", attribute.unit) };
        let values = match attribute.ty {
            AttributeType::OneOf(names) => format!(" One of `{}`.", names.join("`, `")),
            AttributeType::Int | AttributeType::Float | AttributeType::Str => String::new(),
        };
        let _infallible = writeln!(
            page,
            "| `{}` | {}{optional} | {unit} | {}{values} | {} |",
            attribute.key,
            attribute.ty.name(),
            attribute.meaning.trim(),
            attribute.stability.name(),
        );
    }
}
