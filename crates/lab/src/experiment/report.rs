//! The results of a set of experiments: as JSON, as a table for a terminal, as files in a
//! directory.

use std::path::Path;

use serde::Serialize;

use crate::experiment::runner::{ClaimResult, ExperimentResult, Options};
use crate::experiment::{Cell, Check, Table};
use headtime_host::whole_file::{self, WriteError};

mod html;

/// One claim, as a row of the JSON list. Everything except `seconds` depends on the seeds alone.
#[derive(Clone, Debug, Serialize)]
struct Row {
    /// The claim's name.
    id: &'static str,
    /// What is claimed.
    claim: &'static str,
    /// The paper's figure.
    paper: &'static str,
    /// Ours: the first check's, mean over the seeds.
    ours: Option<f64>,
    /// Its unit.
    unit: &'static str,
    /// The rule.
    rule: &'static str,
    /// Whether it holds for every seed.
    holds: bool,
    /// Total wall-clock seconds of the experiment's runs.
    seconds: Option<f64>,
    /// Minimum and maximum of our figure over the seeds.
    range: [Option<f64>; 2],
    /// The seeds.
    seeds: Vec<u64>,
    /// Whether runs were shortened.
    quick: bool,
    /// The rule's conditions.
    checks: Vec<CheckRow>,
    /// A remark on the comparison.
    note: String,
}

/// One condition of a claim's rule.
#[derive(Clone, Debug, Serialize)]
struct CheckRow {
    /// Description of its figure.
    what: &'static str,
    /// The figure's unit.
    unit: &'static str,
    /// The figure for each seed.
    by_seed: Vec<Option<f64>>,
    /// Whether it passes for every seed.
    passes: bool,
}

/// The rows, in the order of the experiments.
fn rows(results: &[ExperimentResult], options: &Options) -> Vec<Row> {
    results.iter().flat_map(|e| e.claims.iter().map(|c| row(e, c, options))).collect()
}

fn row(e: &ExperimentResult, c: &ClaimResult, options: &Options) -> Row {
    let check = |(i, check): (usize, &Check)| CheckRow {
        what: check.what,
        unit: check.unit,
        by_seed: c.figures.iter().map(|f| number(f[i])).collect(),
        passes: c.figures.iter().all(|f| check.test.passes(f[i])),
    };
    let (low, high) = c.range(0);
    Row {
        id: c.claim.id,
        claim: c.claim.claim,
        paper: c.claim.paper,
        ours: number(c.mean(0)),
        unit: c.claim.checks[0].unit,
        rule: c.claim.rule,
        holds: c.holds,
        seconds: number(e.seconds),
        range: [number(low), number(high)],
        seeds: options.seeds.clone(),
        quick: options.quick,
        checks: c.claim.checks.iter().enumerate().map(check).collect(),
        note: c.note.clone(),
    }
}

/// The rows as one JSON list, with a newline. Cannot fail: rows contain only numbers and text.
pub fn to_json(results: &[ExperimentResult], options: &Options) -> String {
    let text = serde_json::to_string_pretty(&rows(results, options));
    text.expect("rows have nothing that JSON cannot say") + "\n"
}

/// Lines for a terminal: failed claims are marked, each with its note.
pub fn to_text(results: &[ExperimentResult], options: &Options) -> String {
    let mut rows = vec![["", "id", "what", "paper", "ours", "rule"].map(String::from).to_vec()];
    let mut notes = String::new();
    for e in results {
        for c in &e.claims {
            rows.push(vec![
                if c.holds { "ok" } else { "FAILS" }.into(),
                c.claim.id.into(),
                c.claim.claim.into(),
                c.claim.paper.into(),
                ours(c),
                c.claim.rule.into(),
            ]);
            if !c.holds {
                notes += &failure(c);
            }
        }
    }
    let total: usize = results.iter().map(|e| e.claims.len()).sum();
    let held = results.iter().flat_map(|e| &e.claims).filter(|c| c.holds).count();
    let seeds: Vec<String> = options.seeds.iter().map(u64::to_string).collect();
    format!(
        "{}{notes}{held} of {total} claims hold for each of the seeds {}{}.\n",
        columns(&rows),
        seeds.join(", "),
        if options.quick { " (short runs)" } else { "" }
    )
}

/// Writes `index.html`, `results.json`, and for each experiment `ID.json`, `ID.TABLE.csv` and
/// `ID.N.svg`.
pub fn write(dir: &Path, results: &[ExperimentResult], options: &Options) -> Result<(), WriteError> {
    whole_file::make_directory(dir)?;
    let put = |name: String, text: String| whole_file::write_whole(&dir.join(name), text.as_bytes());
    for e in results {
        let id = e.spec.id;
        put(format!("{id}.json"), to_json(std::slice::from_ref(e), options))?;
        for (name, text) in tables(e, options) {
            put(format!("{id}.{name}.csv"), text)?;
        }
        for (n, chart) in charts(e).enumerate() {
            put(chart_file(id, n), chart.to_svg())?;
        }
    }
    put("results.json".into(), to_json(results, options))?;
    put("index.html".into(), html::page(results, options))
}

/// The pictures are those of the first seed.
fn charts(e: &ExperimentResult) -> impl Iterator<Item = &headtime_plot::Chart> {
    e.findings.first().into_iter().flat_map(|f| &f.charts)
}

fn chart_file(id: &str, n: usize) -> String {
    format!("{id}.{}.svg", n + 1)
}

/// Tables of all seeds, joined by name, with the seed as their first column.
fn tables(e: &ExperimentResult, options: &Options) -> Vec<(&'static str, String)> {
    let first = e.findings.first().map_or(&[][..], |f| &f.tables);
    first
        .iter()
        .map(|t| {
            let mut text = format!("seed,{}\n", t.columns.join(","));
            for (f, seed) in e.findings.iter().zip(&options.seeds) {
                for t in f.tables.iter().filter(|x| x.name == t.name) {
                    csv_rows(&mut text, t, *seed);
                }
            }
            (t.name, text)
        })
        .collect()
}

fn csv_rows(text: &mut String, table: &Table, seed: u64) {
    for row in &table.rows {
        text.push_str(&seed.to_string());
        for cell in row {
            text.push(',');
            match cell {
                Cell::Number(v) => text.push_str(&short(*v)),
                Cell::Text(s) if s.contains([',', '"', '\n']) => {
                    text.push('"');
                    text.push_str(&s.replace('"', "\"\""));
                    text.push('"');
                }
                Cell::Text(s) => text.push_str(s),
            }
        }
        text.push('\n');
    }
}

/// Our figure with its unit, and its range over the seeds if they differ.
fn ours(c: &ClaimResult) -> String {
    let unit = c.claim.checks[0].unit;
    let gap = if unit.is_empty() || unit == "%" { "" } else { " " };
    let (low, high) = (short(c.range(0).0), short(c.range(0).1));
    let range = if low == high { String::new() } else { format!(" ({low} to {high})") };
    format!("{}{gap}{unit}{range}", short(c.mean(0)))
}

/// Why a claim does not hold, in lines.
fn failure(c: &ClaimResult) -> String {
    let mut text = format!("{} does not hold:\n", c.claim.id);
    for (i, check) in c.claim.checks.iter().enumerate() {
        let by_seed: Vec<String> = c.figures.iter().map(|f| short(f[i])).collect();
        let passes = c.figures.iter().all(|f| check.test.passes(f[i]));
        text += &format!(
            "    {} by seed: {} {}{}\n",
            check.what,
            by_seed.join(", "),
            check.unit,
            if passes { "" } else { "  <-" }
        );
    }
    if !c.note.is_empty() {
        text += &format!("    {}\n", c.note);
    }
    text
}

/// Text in columns, two spaces apart.
fn columns(rows: &[Vec<String>]) -> String {
    let width: Vec<usize> =
        (0..rows[0].len()).map(|i| rows.iter().map(|r| r[i].chars().count()).max().unwrap_or(0)).collect();
    let mut text = String::new();
    for row in rows {
        let line: Vec<String> = row.iter().zip(&width).map(|(cell, w)| format!("{cell:<w$}")).collect();
        text += line.join("  ").trim_end();
        text.push('\n');
    }
    text
}

/// Six significant digits: more would only show rounding. NaN and infinities become null.
fn number(v: f64) -> Option<f64> {
    v.is_finite().then(|| format!("{v:.5e}").parse().unwrap_or(v))
}

/// Four significant digits, without an exponent if that stays readable.
fn short(v: f64) -> String {
    if !v.is_finite() {
        return "none".into();
    }
    if v == 0.0 {
        return "0".into();
    }
    let magnitude = v.abs().log10().floor() as i32;
    let decimals = (3 - magnitude).clamp(0, 9) as usize;
    let s = format!("{v:.decimals$}");
    if s.contains('.') { s.trim_end_matches('0').trim_end_matches('.').to_string() } else { s }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::runner::tests::run_fake;
    use serde_json::{Value, json};

    fn options() -> Options {
        Options { seeds: vec![1, 2, 3], quick: false }
    }

    #[test]
    fn the_json_list_has_the_contracts_fields() {
        let r = run_fake(&[1, 2, 3], false).unwrap();
        let v: Value = serde_json::from_str(&to_json(&r, &options())).unwrap();
        let a = &v.as_array().unwrap()[0];
        for key in ["id", "claim", "paper", "ours", "unit", "rule", "holds", "seconds"] {
            assert!(!a[key].is_null(), "{key}");
        }
        assert_eq!(a["ours"], 2.0);
        assert_eq!(a["range"], json!([1.0, 3.0]));
        assert_eq!(v[1]["holds"], false);
        assert_eq!(v[1]["checks"][0]["by_seed"], json!([1.0, 2.0, 3.0]));
    }

    #[test]
    fn a_terminal_reader_sees_what_fails_and_why() {
        let r = run_fake(&[1, 2, 3], false).unwrap();
        let text = to_text(&r, &options());
        assert!(text.contains("FAILS  T1b"), "{text}");
        assert!(text.contains("seed by seed: 1, 2, 3 ms  <-"), "{text}");
        assert!(text.contains("Made up."), "{text}");
        assert!(text.ends_with("1 of 2 claims hold for each of the seeds 1, 2, 3.\n"));
    }

    #[test]
    fn tables_of_all_seeds_are_joined_and_text_is_quoted() {
        let r = run_fake(&[1, 2], false).unwrap();
        let o = Options { seeds: vec![1, 2], quick: false };
        let t = tables(&r[0], &o);
        assert_eq!(t, [("seeds", "seed,what,value\n1,\"a, \"\"b\"\"\",1\n2,\"a, \"\"b\"\"\",2\n".to_string())]);
    }

    #[test]
    fn the_page_shows_failed_claims_first_and_escapes_their_text() {
        let r = run_fake(&[1, 2, 3], false).unwrap();
        let page = html::page(&r, &options());
        let (bad, good) = (page.find("T1b").unwrap(), page.find("T1a").unwrap());
        assert!(bad < good);
        assert!(page.contains("&lt;very&gt;") && !page.contains("<very>"));
        assert!(page.contains("Made up."));
    }

    #[test]
    fn figures_are_short_and_honest() {
        assert_eq!(short(97.512_34), "97.51");
        assert_eq!(short(0.000_123_456), "0.0001235");
        assert_eq!(short(123_456.0), "123456");
        assert_eq!(short(-2.5), "-2.5");
        assert_eq!(short(f64::NAN), "none");
        assert_eq!(number(f64::NAN), None);
        assert_eq!(number(1.234_567_89), Some(1.23457));
    }

    #[test]
    fn every_file_of_a_report_is_written() {
        let dir = std::env::temp_dir().join(format!("headtime-report-{}", std::process::id()));
        let r = run_fake(&[1, 2, 3], false).unwrap();
        write(&dir, &r, &options()).unwrap();
        for name in ["index.html", "results.json", "T1.json", "T1.seeds.csv"] {
            assert!(dir.join(name).is_file(), "{name}");
        }
        std::fs::remove_dir_all(dir).unwrap();
    }
}
