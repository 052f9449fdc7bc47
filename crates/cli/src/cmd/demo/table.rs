//! The demo's printed text.

use std::path::Path;

use headtime_disk::Dur;
use headtime_disk::profile::Profile;

use headtime_sim::background::PROMOTED_PART;

use super::runs::{Row, Rows};
use crate::screen::columns;

/// Returns the demo's text.
pub fn text(profile: &Profile, rows: &Rows, picture: &Path) -> String {
    let free = &rows.free;
    let title = profile.title.split(',').next().unwrap_or(&profile.name);
    let gigabytes = free.scan.map_or(0.0, |s| s.of as f64 / 1e9);
    format!(
        "A busy disk: ten programs ask a {title} for random blocks, wait for the answer, think for 30 ms\n\
         and ask again. At the same time all of its {gigabytes:.1} GB are to be read, as a backup or a scrub\n\
         does:\n\n{}\n\
         bare drive  its own queue orders the requests, 32 at a time; nothing is read beside the programs\n\
         idle class  the same, and reads of 128 KiB when no other request waits, or once in 200 ms\n\
         \x20           (ionice -c3 with Linux's bfq)\n\
         limited     the same, and such reads at a rate: the one that headtime reaches\n\
         headtime    reads, in any order, what passes under the head while it waits for a program's block\n\n\
         {}\n\
         Picture: {}\n\
         Next: headtime simulate --fill headtime --background scan, headtime reproduce, headtime --help\n",
        columns(&cells(rows), &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]),
        moral(&rows.bare, &rows.limited, free),
        picture.display()
    )
}

/// Summarises the figures, whichever way they compare.
fn moral(bare: &Row, limited: &Row, free: &Row) -> String {
    let late = |r: &Row| ms(r.responses.quantile(990));
    let slower = match late(free) / late(bare) - 1.0 {
        d if d < 0.005 => String::new(),
        _ => {
            format!(" (the slowest in a hundred come {} later)", change(late(free), late(bare)).trim_start_matches('+'))
        }
    };
    format!(
        "Reading the disk at {:.1} MB/s costs the programs {} of their requests when it takes its turn,\n\
         and {} when it fits into the gaps{slower}.\n\
         The last blocks, one in {}, which hardly any gap reaches, are asked for in turn. headtime selects\n\
         requests and gaps together (--order sptf-joint).\n",
        free.scan_mb_s(),
        lost(bare, limited),
        lost(bare, free),
        thousands(PROMOTED_PART),
    )
}

/// The table with its headings.
fn cells(rows: &Rows) -> Vec<Vec<String>> {
    let heads = ["", "requests/s", "", "mean ms", "", "p95 ms", "", "p99 ms", "", "scan MB/s", "disk read in"];
    let mut table = vec![heads.map(String::from).to_vec()];
    let bare = &rows.bare;
    for (i, row) in rows.in_order().into_iter().enumerate() {
        let mut cells = vec![row.name.clone()];
        let figures: [fn(&Row) -> f64; 4] = [
            Row::per_second,
            |r| ms(r.responses.mean()),
            |r| ms(r.responses.quantile(950)),
            |r| ms(r.responses.quantile(990)),
        ];
        for figure in figures {
            cells.push(format!("{:.1}", figure(row)));
            cells.push(if i == 0 { String::new() } else { change(figure(row), figure(bare)) });
        }
        cells.push(if row.scan.is_some() { format!("{:.2}", row.scan_mb_s()) } else { "-".into() });
        cells.push(duration(row));
        table.push(cells);
    }
    table
}

fn ms(d: Option<Dur>) -> f64 {
    d.map_or(0.0, Dur::as_ms_f64)
}

/// A change in percent with its sign, with one decimal if it is small.
pub fn change(now: f64, before: f64) -> String {
    let percent = 100.0 * (now / before - 1.0);
    let text = if percent.abs() < 9.95 { format!("{percent:+.1}%") } else { format!("{percent:+.0}%") };
    if text == "-0.0%" { "+0.0%".into() } else { text }
}

/// The relative loss of the programs' request rate, in words.
fn lost(bare: &Row, row: &Row) -> String {
    let percent = 100.0 * (1.0 - row.per_second() / bare.per_second());
    if percent < 0.05 { "none".into() } else { format!("{percent:.1}%") }
}

/// Duration of the scan, measured, or extrapolated if the run ended first.
pub fn duration(row: &Row) -> String {
    let Some(seconds) = row.scan_seconds() else { return "-".into() };
    if !seconds.is_finite() {
        return "never".into();
    }
    let minutes = seconds / 60.0;
    let time = if minutes < 90.0 { format!("{minutes:.0} min") } else { format!("{:.1} h", minutes / 60.0) };
    let measured = row.scan.is_some_and(|s| s.done_at.is_some());
    if measured { time } else { format!("{time} at this rate") }
}

/// Formats a number with thousands separators.
fn thousands(n: u64) -> String {
    if n < 1000 { n.to_string() } else { format!("{},{:03}", thousands(n / 1000), n % 1000) }
}

#[cfg(test)]
mod tests {
    use headtime_disk::Time;
    use headtime_sim::stats::histogram::Histogram;

    use super::super::runs::Scan;
    use super::super::window::Window;
    use super::*;

    fn row(bytes: u64, done_at: Option<u64>) -> Row {
        let mut responses = Histogram::default();
        responses.record(Dur::from_ms(8));
        let scan = Scan { bytes, of: 9_000_000_000, done_at: done_at.map(|s| Time(s * 1_000_000_000)) };
        let ended_at = Time(3600 * 1_000_000_000);
        Row { name: "a".into(), responses, ended_at, scan: Some(scan), window: Window::new() }
    }

    #[test]
    fn a_scan_that_is_not_through_is_an_estimate_and_says_so() {
        assert_eq!(duration(&row(9_000_000_000, Some(3000))), "50 min");
        assert_eq!(duration(&row(900_000_000, None)), "10.0 h at this rate");
        assert_eq!(duration(&row(0, None)), "never");
        assert_eq!(duration(&Row { scan: None, ..row(0, None) }), "-");
    }

    #[test]
    fn changes_have_a_sign_and_no_more_digits_than_they_are_worth() {
        assert_eq!(change(100.0, 100.0), "+0.0%");
        assert_eq!(change(99.99, 100.0), "+0.0%");
        assert_eq!(change(81.4, 100.0), "-19%");
        assert_eq!(change(101.23, 100.0), "+1.2%");
        assert_eq!(thousands(10_000), "10,000");
    }
}
