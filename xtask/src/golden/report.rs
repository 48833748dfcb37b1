//! What a reader of a golden run sees.

use std::collections::BTreeMap;

use comfy_table::{CellAlignment, Table, presets};

use super::compare::Divergence;
use super::{FileResult, Outcome};

#[derive(Default)]
struct Row {
    files: usize,
    steps: usize,
    exact_steps: usize,
    exact: usize,
    different: usize,
    not_supported: usize,
}

impl Row {
    fn add(&mut self, result: &FileResult) {
        self.files += 1;
        self.steps += result.num_steps;
        match result.outcome {
            Outcome::Exact => {
                self.exact += 1;
                self.exact_steps += result.num_steps;
            }
            Outcome::Different(_) | Outcome::Unreadable(_) => self.different += 1,
            Outcome::NotSupported(_) => self.not_supported += 1,
        }
    }

    fn cells(&self, name: &str) -> Vec<String> {
        let numbers = [self.files, self.exact, self.different, self.not_supported, self.steps, self.exact_steps]
            .map(|n| n.to_string());
        std::iter::once(name.to_owned()).chain(numbers).collect()
    }
}

pub(crate) fn print(results: &[FileResult], verbose: bool) {
    let mut rows: BTreeMap<&str, Row> = BTreeMap::new();
    let mut total = Row::default();
    let mut reasons: BTreeMap<&str, usize> = BTreeMap::new();
    for result in results {
        rows.entry(&result.kind).or_default().add(result);
        total.add(result);
        if let Outcome::NotSupported(reason) = &result.outcome {
            *reasons.entry(reason).or_default() += 1;
        }
        if verbose {
            println!("{}", line(result));
        }
    }
    println!("{}", table(&rows, &total));
    for (reason, files) in reasons {
        println!("not supported yet: {reason} ({files} {})", if files == 1 { "file" } else { "files" });
    }
    for result in results {
        match &result.outcome {
            Outcome::Different(divergence) => println!("\n{}", explain(&result.path.display().to_string(), divergence)),
            Outcome::Unreadable(error) => println!("\n{}: {error:#}", result.path.display()),
            Outcome::Exact | Outcome::NotSupported(_) => {}
        }
    }
}

fn line(result: &FileResult) -> String {
    let outcome = match &result.outcome {
        Outcome::Exact => "exact",
        Outcome::Different(_) => "DIFFERENT",
        Outcome::NotSupported(reason) => reason,
        Outcome::Unreadable(_) => "UNREADABLE",
    };
    format!("{}: {} steps, {outcome}", result.path.display(), result.num_steps)
}

fn table(rows: &BTreeMap<&str, Row>, total: &Row) -> Table {
    let mut table = Table::new();
    table.load_style(presets::UTF8_BORDERS_ONLY);
    table.set_header(["kind", "files", "exact", "different", "not supported yet", "steps", "exact steps"]);
    for (kind, row) in rows {
        table.add_row(row.cells(kind));
    }
    table.add_row(total.cells("total"));
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

fn explain(path: &str, divergence: &Divergence) -> String {
    let Divergence { line, line_type, step, field, expected, got, before } = divergence;
    let before: Vec<String> = before.iter().map(|step| format!("\n  before    {step}")).collect();
    let before = before.concat();
    format!(
        "{path}:{line}: step {step}, {line_type}\n  field     {field}\n  expected  {expected}\n  got       {got}{before}"
    )
}
