//! `headtime profiles compare`: differences of two profiles that a host can observe.

use clap::Args;
use headtime_disk::compare::{self, Comparison, Options, Row};
use serde::Serialize;

use crate::failure::Failure;
use crate::{drive, figures, screen};

/// Compare two profiles: period, zones, layout, skews, seeks, angles, overheads, cache
///
/// Each figure with a rule is checked against it: period 10 ppm, zones and sectors per track exact,
/// skews half a sector, layout exact, seeks 30 us at the distances that B has, the angle of 1000
/// random sectors 10 us, overheads 30 us, counts exact. The position of the index mark, and a zone
/// split in two by a file, make no difference. Exit status 0 when all rules hold, 1 when one does
/// not.
#[derive(Debug, Args)]
pub struct Compare {
    /// The reference, or the older profile: a built-in drive, or a profile file (TOML or DiskSim
    /// .parv)
    #[arg(value_name = "A")]
    a: String,
    /// The measured, or the newer profile
    #[arg(value_name = "B")]
    b: String,
    /// Leave out the rules of writes: a profile made by reading alone has no figures of writes
    #[arg(long)]
    reads_only: bool,
    /// Seed of the choice of sectors whose angles are compared
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = figures::seed, allow_negative_numbers = true)]
    seed: u64,
}

/// The `--json` output.
#[derive(Serialize)]
struct Answer<'a> {
    a: &'a str,
    b: &'a str,
    agree: bool,
    rows: Vec<Figure<'a>>,
}

#[derive(Serialize)]
struct Figure<'a> {
    group: &'a str,
    what: &'a str,
    surface: Option<u16>,
    a: &'a str,
    b: &'a str,
    difference: Option<f64>,
    unit: &'a str,
    allowed: Option<f64>,
    /// `null`: there is no rule.
    holds: Option<bool>,
    place: &'a str,
}

/// Runs the command.
pub fn run(args: &Compare, json: bool) -> Result<(), Failure> {
    let (a, b) = (drive::find(&args.a)?, drive::find(&args.b)?);
    // Both profiles parsed; an error from here on is a contradiction between figures, which the
    // message names.
    let options = Options { seed: args.seed, reads_only: args.reads_only, ..Options::default() };
    for (name, profile) in [(&args.a, &a), (&args.b, &b)] {
        headtime_disk::Model::new(profile).map_err(|e| Failure::input(format!("{name}: {e}")))?;
    }
    let found = compare::compare(&a, &b, &options).map_err(Failure::input)?;
    if json {
        screen::print_json(&Answer {
            a: &args.a,
            b: &args.b,
            agree: found.agrees(),
            rows: found.rows.iter().map(figure).collect(),
        })?;
    } else {
        screen::print(&text(args, &found))?;
    }
    if found.agrees() { Ok(()) } else { Err(Failure::Check) }
}

fn figure(r: &Row) -> Figure<'_> {
    Figure {
        group: r.group,
        what: &r.what,
        surface: r.surface,
        a: &r.a,
        b: &r.b,
        difference: r.difference,
        unit: r.unit,
        allowed: r.allowed,
        holds: r.allowed.map(|_| r.holds),
        place: &r.place,
    }
}

fn text(args: &Compare, found: &Comparison) -> String {
    let head = ["", &args.a, &args.b, "apart", "allowed", "holds"];
    let mut rows = vec![head.map(String::from).to_vec()];
    for (r, name) in lines(&found.rows) {
        let holds = match r.allowed {
            None => "-",
            Some(_) if r.holds => "yes",
            Some(_) => "NO",
        };
        rows.push(vec![
            name,
            r.a.clone(),
            r.b.clone(),
            // Figures without a unit are equal or not; they have no difference.
            r.difference.filter(|_| !r.unit.is_empty()).map_or("-".into(), |d| format!("{} {}", number(d), r.unit)),
            r.allowed.map_or("-".into(), |most| if most == 0.0 { "exact".into() } else { number(most) }),
            holds.into(),
        ]);
    }
    let mut text = screen::columns(&rows, &[3, 4]);
    let places: Vec<&Row> = found.rows.iter().filter(|r| !r.place.is_empty() && differs(r)).collect();
    if !places.is_empty() {
        text += "\nWhere:\n";
    }
    for r in places {
        text += &format!("    {}: {}\n", named(r, r.surface), r.place);
    }
    let (broken, ruled) = (found.broken().count(), found.rows.iter().filter(|r| r.allowed.is_some()).count());
    text + &match broken {
        0 => format!("\nThey agree: all {ruled} rules hold.\n"),
        _ => format!("\nThey do not agree: {broken} of {ruled} rules do not hold.\n"),
    }
}

/// The name of a row: `zones`, or `surfaces 0 to 5: zones` if all surfaces up to `last` are equal.
fn named(r: &Row, last: Option<u16>) -> String {
    match (r.surface, last) {
        (Some(s), Some(last)) if s != last => format!("surfaces {s} to {last}: {}", r.what),
        (Some(s), _) => format!("surface {s}: {}", r.what),
        _ => r.what.clone(),
    }
}

/// The rows with their names; consecutive surfaces with equal rows share one.
fn lines(rows: &[Row]) -> Vec<(&Row, String)> {
    let mut shown: Vec<(&Row, Option<u16>)> = Vec::new();
    for r in rows {
        let same = |(s, last): &&mut (&Row, Option<u16>)| {
            let figures = |r: &Row| (r.a.clone(), r.b.clone(), r.difference, r.holds);
            r.surface.is_some()
                && s.what == r.what
                && *last == r.surface.map(|n| n.wrapping_sub(1))
                && figures(s) == figures(r)
        };
        match shown.iter_mut().find(same) {
            Some((_, last)) => *last = r.surface,
            None => shown.push((r, r.surface)),
        }
    }
    shown.into_iter().map(|(r, last)| (r, named(r, last))).collect()
}

fn differs(r: &Row) -> bool {
    !r.holds || r.difference.is_some_and(|d| d != 0.0)
}

/// Formats a number with up to three decimals.
fn number(n: f64) -> String {
    // Avoids minus zero.
    let text = format!("{:.3}", n + 0.0);
    text.trim_end_matches('0').trim_end_matches('.').to_string()
}
