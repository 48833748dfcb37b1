//! The results as tables for people.

use std::time::Duration;

use comfy_table::{CellAlignment, Table, presets};
use stepline_engine::{Distribution, ReplayReport};

/// Renders a report; `machine` is whose step times were simulated, `real` how long the replay itself took.
pub(crate) fn render(report: &ReplayReport, machine: &str, real: Duration) -> String {
    format!("{}\n\n{}\n", totals(report, machine, real).trim_fmt(), latencies(report).trim_fmt())
}

fn totals(report: &ReplayReport, machine: &str, real: Duration) -> Table {
    let requests = &report.requests;
    let mut table = plain_table();
    if report.interrupted {
        table.add_row(["INTERRUPTED", "the results so far"]);
    }
    table.add_row(["step times of", machine]);
    table.add_row(["requests finished", &count(requests.finished)]);
    if requests.unfinished > 0 {
        table.add_row(["requests unfinished", &count(requests.unfinished)]);
    }
    if requests.clipped > 0 {
        table.add_row(["  cut at max_model_len", &count(requests.clipped)]);
    }
    table
        .add_row(["requests rejected", &count(requests.rejected)])
        .add_row(["duration simulated", &format!("{:.3} s", report.duration_s)])
        .add_row(["duration real", &format!("{:.3} s", real.as_secs_f64())])
        .add_row(["steps", &count(report.steps)])
        .add_row(["prompt tokens", &rate(report.tokens.prompt, report.tokens.prompt_per_s)])
        .add_row(["output tokens", &rate(report.tokens.output, report.tokens.output_per_s)])
        .add_row(["preemptions", &count(report.preemptions)])
        .add_row(["prefix hit rate", &percent(report.prefix_cache.hit_rate)])
        .add_row([
            "peak KV usage",
            &format!(
                "{} of {} blocks",
                percent(report.kv_cache.peak_usage),
                count(u64::from(report.kv_cache.num_blocks))
            ),
        ]);
    aligned_left(table)
}

fn latencies(report: &ReplayReport) -> Table {
    let mut table = plain_table();
    table.set_header(["milliseconds", "mean", "p50", "p90", "p99", "max"]);
    let rows = [
        ("TTFT", &report.ttft_ms),
        ("TPOT", &report.tpot_ms),
        ("ITL", &report.itl_ms),
        ("E2E", &report.e2e_ms),
        ("queue time", &report.queue_ms),
    ];
    for (name, distribution) in rows {
        let Distribution { count, mean, p50, p90, p99, max, .. } = *distribution;
        let figures = [mean, p50, p90, p99, max].map(|ms| if count > 0 { milliseconds(ms) } else { "–".to_owned() });
        table.add_row(std::iter::once(name.to_owned()).chain(figures));
    }
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    aligned_left(table)
}

/// Aligned columns without lines or colours: it reads the same on a terminal and in a file.
fn plain_table() -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table
}

/// Without the space that a border would need.
fn aligned_left(mut table: Table) -> Table {
    for column in table.column_iter_mut() {
        column.set_padding((0, 2));
    }
    table
}

fn rate(num_tokens: u64, per_s: Option<f64>) -> String {
    let per_s = per_s.map_or_else(|| "–".to_owned(), |per_s| grouped_decimals(&format!("{per_s:.1}")));
    format!("{} ({per_s}/s)", count(num_tokens))
}

fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

/// Two decimals, thousands apart.
fn milliseconds(ms: f64) -> String {
    grouped_decimals(&format!("{ms:.2}"))
}

fn grouped_decimals(text: &str) -> String {
    match text.split_once('.') {
        Some((whole, decimals)) => format!("{}.{decimals}", grouped(whole)),
        None => text.to_owned(),
    }
}

fn count(number: u64) -> String {
    grouped(&number.to_string())
}

/// A comma after every third digit from the right.
fn grouped(digits: &str) -> String {
    let mut out = String::with_capacity(digits.len() * 4 / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_over_no_time_is_a_dash() {
        assert_eq!(rate(0, None), "0 (–/s)");
        assert_eq!(rate(1000, Some(2500.0)), "1,000 (2,500.0/s)");
    }

    #[test]
    fn thousands_are_set_apart() {
        let cases = [(0, "0"), (999, "999"), (1000, "1,000"), (12_345_678, "12,345,678")];
        for (number, text) in cases {
            assert_eq!(count(number), text);
        }
        assert_eq!(milliseconds(1_234.567), "1,234.57");
        assert_eq!(milliseconds(0.004), "0.00");
    }
}
