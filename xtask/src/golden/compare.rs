//! The first difference between what was recorded and what was replayed.

use serde_json::Value;

/// Where a replay left its recording.
#[derive(Debug, PartialEq)]
pub(crate) struct Divergence {
    /// Line of the file, from 1.
    pub(crate) line: usize,
    pub(crate) line_type: String,
    /// The step that the line belongs to.
    pub(crate) step: u64,
    /// The first field that differs, e.g. `new[0].block_ids[0][2]`.
    pub(crate) field: String,
    pub(crate) expected: Value,
    pub(crate) got: Value,
    /// The steps before, shortened.
    pub(crate) before: Vec<String>,
}

/// A field and its two values.
#[derive(Debug, PartialEq)]
pub(crate) struct Difference {
    pub(crate) field: String,
    pub(crate) expected: Value,
    pub(crate) got: Value,
}

/// Returns the first difference, depth first in the order of the recorded fields. A field that is missing on one side
/// is null there.
pub(crate) fn first_difference(expected: &Value, got: &Value) -> Option<Difference> {
    difference_at(String::new(), expected, got)
}

fn difference_at(field: String, expected: &Value, got: &Value) -> Option<Difference> {
    match (expected, got) {
        (Value::Object(left), Value::Object(right)) => {
            let keys = left.keys().chain(right.keys().filter(|key| !left.contains_key(*key)));
            let dot = if field.is_empty() { "" } else { "." };
            keys.into_iter().find_map(|key| difference_at(format!("{field}{dot}{key}"), &expected[key], &got[key]))
        }
        (Value::Array(left), Value::Array(right)) => (0..left.len().max(right.len())).find_map(|idx| {
            let at = |values: &[Value]| values.get(idx).cloned().unwrap_or(Value::Null);
            difference_at(format!("{field}[{idx}]"), &at(left), &at(right))
        }),
        // Ratios are doubles on both sides; a whole one may be written without a fraction.
        (Value::Number(left), Value::Number(right)) if left.as_f64() == right.as_f64() => None,
        _ if expected == got => None,
        _ => Some(Difference { field, expected: expected.clone(), got: got.clone() }),
    }
}

/// A `schedule` line as a reader thinks of it: `6 | A:1 | preempt B | finish C | free 4`.
pub(crate) fn summary(schedule: &Value) -> String {
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let list = |value: &Value| value.as_array().map(Vec::as_slice).unwrap_or_default().to_vec();
    let tokens: Vec<String> =
        list(&schedule["num_scheduled_tokens"]).iter().map(|pair| format!("{}:{}", text(&pair[0]), pair[1])).collect();
    let mut parts = vec![schedule["step"].to_string(), tokens.join(" ")];
    for (name, key) in [("preempt", "preempted"), ("finish", "finished")] {
        let ids: Vec<String> = list(&schedule[key]).iter().map(text).collect();
        if !ids.is_empty() {
            parts.push(format!("{name} {}", ids.join(" ")));
        }
    }
    parts.push(format!("free {}", schedule["free_blocks"]));
    parts.join(" | ")
}

#[cfg(test)]
mod tests {
    use super::{Difference, first_difference, summary};
    use serde_json::json;

    #[test]
    fn the_first_difference_is_named_by_its_path() {
        let expected = json!({"step": 3, "new": [{"id": "a", "block_ids": [[1, 2, 3]]}], "total": 9});
        let got = json!({"step": 3, "new": [{"id": "a", "block_ids": [[1, 2, 4]]}], "total": 8});
        let difference = Difference { field: "new[0].block_ids[0][2]".into(), expected: json!(3), got: json!(4) };
        assert_eq!(first_difference(&expected, &got), Some(difference));
    }

    #[test]
    fn a_missing_field_equals_null_and_nothing_else() {
        assert_eq!(first_difference(&json!({"a": null}), &json!({})), None);
        let difference = Difference { field: "b".into(), expected: json!(null), got: json!(1) };
        assert_eq!(first_difference(&json!({}), &json!({"b": 1})), Some(difference));
    }

    #[test]
    fn a_step_is_summed_up_in_a_line() {
        let schedule = json!({"step": 6, "num_scheduled_tokens": [["A", 1]], "preempted": ["B"], "free_blocks": 4});
        assert_eq!(summary(&schedule), "6 | A:1 | preempt B | free 4");
    }
}
