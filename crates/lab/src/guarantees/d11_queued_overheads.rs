//! D11: the overhead times between two commands are found by tuning.
//!
//! Reuther and Pohlack (2003), section 4.1, "Overhead times": t_ovh of equation 6 for the four
//! pairs of reads and writes. The scheduler's model knows the whole drive except these, which are
//! zero in it; the drive has those of its profile. The paper's procedure, and a quicker one, are in
//! [`super::tuning`].

use headtime_disk::profile::{self, Profile};
use headtime_disk::{Command, Completion, Dur, Model, Time};
use headtime_plot::{Axis, Chart, Series, Style, XyChart};
use headtime_sched::Order;
use headtime_sim::observe::Observer;
use headtime_sim::run::Limits;
use headtime_sim::simulate::{Setup, Simulation};
use headtime_sim::stats::Stats;
use headtime_sim::workload::variates::Share;
use headtime_sim::workload::{GroupSpec, PatternSpec, Population, closed};

use super::tuning::missed::{Missed, Timed};
use super::tuning::sweep::{Sweep, Trial};
use super::tuning::{PAIRS, Times, queued, times};
use crate::experiment::{Cell, Check, Claim, Experiment, Findings, Length, Run, RunError, Spec, Table, Test, failed};

/// The experiment.
pub(crate) const D11: Experiment =
    Experiment { spec: &SPEC, steps: 2 * (1 + ROUNDS as u64 * PAIRS.len() as u64 * STEPS), run };

static SPEC: Spec = Spec {
    id: "D11",
    title: "Times between two commands, found by tuning",
    source: "Reuther, Pohlack, Rotational-Position-Aware Real-Time Disk Scheduling Using a Dynamic Active Subset \
            (2003), section 4.1",
    drive: "ultrastar36z15, barracuda36es2",
    workload: "random requests of 4 KiB, half of them writes, 32 always in the system, SATF",
    claims: &[
        Claim {
            id: "D11a",
            claim: "the tuning experiment finds the command overheads: by the values with which the drive moves more \
                    and less",
            paper: "-",
            rule: "within 30 us of the truth, each of the four on both drives",
            checks: &[
                Check { what: "largest error, Ultrastar 36Z15", unit: "us", test: Test::AtMost(30.0) },
                Check { what: "largest error, Barracuda 36ES2", unit: "us", test: Test::AtMost(30.0) },
            ],
            quick: false,
            note: "About the truth the curve is flat for as far as seeks differ from their table: the single value \
                   with which a drive moved most is a matter of chance. What counts here is where the two lines meet \
                   that fit the whole curve best; the single best values, which the paper takes, are in the table and \
                   up to 60 us off.",
        },
        Claim {
            id: "D11b",
            claim: "the command overheads from which commands missed a turn, one run",
            paper: "-",
            rule: "within 30 us of the truth, each of the four on both drives",
            checks: &[
                Check { what: "largest error, Ultrastar 36Z15", unit: "us", test: Test::AtMost(30.0) },
                Check { what: "largest error, Barracuda 36ES2", unit: "us", test: Test::AtMost(30.0) },
            ],
            quick: true,
            note: "headtime's own way; the paper has none. A value that is not found counts as wrong by a whole turn.",
        },
    ],
    length: Length::Seconds,
    alone: false,
};

/// Outstanding requests: the drives' own queue depth, which is in the paper's figure 7.
const TASKS: u32 = 32;

/// Step and number of values for each of the four, in us, and number of rounds.
const STEP_US: u64 = 15;
const STEPS: u64 = 21;
const ROUNDS: u32 = 2;

/// Requests of one run, by bandwidth and by missed revolutions.
const SWEPT_REQUESTS: u64 = 60_000;
const WATCHED_REQUESTS: u64 = 20_000;

/// Class width of the charts of missed revolutions.
const CLASS: Dur = Dur::from_us(10);

const DRIVES: [(&str, &str); 2] = [("ultrastar36z15", "Ultrastar 36Z15"), ("barracuda36es2", "Barracuda 36ES2")];

fn run(run: &Run) -> Result<Findings, RunError> {
    let mut f = Findings::default();
    let mut rows = Vec::new();
    let (mut by_missed, mut by_rate) = (Vec::new(), Vec::new());
    for (drive, name) in DRIVES {
        let truth = profile::builtin(drive).map_err(|e| failed(&SPEC, e))?;
        let right = times(&truth.electronics.overheads.queued);
        let model = Model::new(&truth).map_err(|e| failed(&SPEC, e))?;
        let turn = model.mechanics.rotation.period();

        let mut missed = Missed::new(&model);
        let watched = simulate(run, &truth, &[Dur::ZERO; 4], WATCHED_REQUESTS, &mut Watched::new(&mut missed))?;
        let borders = missed.borders();
        let found = borders.map(|b| b.map(|b| b.time));
        by_missed.push(largest_error(&found, &right, turn));
        rows.extend(found_rows(drive, "missed turns", &right, &found, watched.ended_at.as_secs_f64()));
        f.charts.push(missed_chart(name, &missed));
        run.progress.advance(1);

        // A short run has no time for hundreds of runs.
        if run.quick {
            run.progress.advance(u64::from(ROUNDS) * PAIRS.len() as u64 * STEPS);
            continue;
        }
        let values = (0..STEPS).map(|i| Dur::from_us(i * STEP_US)).collect();
        let mut sweep = Sweep::new([Dur::ZERO; 4], values, ROUNDS);
        let mut seconds = 0.0;
        while let Some(times) = sweep.next() {
            let stats = simulate(run, &truth, &times, SWEPT_REQUESTS, &mut ())?;
            seconds += stats.ended_at.as_secs_f64();
            sweep.moved(stats.mb_per_second(truth.sector_bytes));
            run.progress.advance(1);
        }
        by_rate.push(largest_error(&sweep.found(), &right, turn));
        rows.extend(found_rows(drive, "bandwidth, lines", &right, &sweep.found(), seconds));
        rows.extend(found_rows(drive, "bandwidth, largest", &right, &largest(&sweep), seconds));
        f.tables.push(swept_table(drive, &sweep, &right));
        f.charts.push(swept_chart(name, &sweep, &right));
    }
    f.figure("D11b", &by_missed);
    if !run.quick {
        f.figure("D11a", &by_rate);
    }
    f.tables.push(Table {
        name: "found",
        columns: &["drive", "procedure", "pair", "truth_us", "found_us", "seconds_of_the_drive"],
        rows,
    });
    Ok(f)
}

/// One run: the true drive, and a scheduler with `believed` overheads between two commands.
fn simulate<O: Observer>(
    run: &Run,
    truth: &Profile,
    believed: &Times,
    requests: u64,
    observer: &mut O,
) -> Result<Stats, RunError> {
    let mut belief = truth.clone();
    belief.electronics.overheads.queued = queued(believed);
    let setup = Setup { belief: Some(&belief), ..Setup::new(truth, Order::Sptf, run.seed) };
    let simulation = Simulation::new(&setup).map_err(|e| failed(&SPEC, e))?;
    let reads = const { Share::new(1, 2).unwrap() };
    let load = GroupSpec { pattern: PatternSpec { reads, ..PatternSpec::random_reads(4096) }, ..closed(TASKS) };
    let mut load = Population::of(&load, simulation.target(), run.seed).map_err(|e| failed(&SPEC, e))?;
    let limits = Limits { requests: Some(requests), ..Limits::default() };
    simulation.run(&mut load, limits, None, observer).map_err(|e| failed(&SPEC, e))
}

/// An observer that reports the dispatch and completion times of every command.
struct Watched<'a, 'b> {
    missed: &'a mut Missed<'b>,
    /// Commands at the drive: two.
    sent: Vec<(u64, Time)>,
}

impl<'a, 'b> Watched<'a, 'b> {
    fn new(missed: &'a mut Missed<'b>) -> Watched<'a, 'b> {
        Watched { missed, sent: Vec::new() }
    }
}

impl Observer for Watched<'_, '_> {
    fn issued(&mut self, command: &Command, now: Time) {
        self.sent.push((command.id, now));
    }

    fn completed(&mut self, command: &Command, _free: u32, completion: &Completion) {
        if let Some(i) = self.sent.iter().position(|s| s.0 == command.id) {
            let (_, sent) = self.sent.swap_remove(i);
            let Command { kind, lbn, count, .. } = *command;
            self.missed.command(&Timed { kind, lbn, count, sent, done: completion.at });
        }
    }
}

/// The largest error, in us; a value that was not found counts as wrong by a revolution.
fn largest_error(found: &[Option<Dur>; 4], right: &Times, turn: Dur) -> f64 {
    let error = |(f, r): (&Option<Dur>, &Dur)| f.map_or(turn.0, |f| f.0.abs_diff(r.0)) as f64 / 1e3;
    found.iter().zip(right).map(error).fold(0.0, f64::max)
}

/// The values with the highest bandwidth in the last round.
fn largest(sweep: &Sweep) -> [Option<Dur>; 4] {
    [0, 1, 2, 3].map(|pair| {
        let curve = sweep.curve(ROUNDS - 1, pair);
        curve.into_iter().max_by(|a, b| a.1.total_cmp(&b.1)).map(|p| p.0)
    })
}

fn found_rows(drive: &str, procedure: &str, right: &Times, found: &[Option<Dur>; 4], seconds: f64) -> Vec<Vec<Cell>> {
    let us = |d: Dur| d.0 as f64 / 1e3;
    let row = |i: usize| {
        let found = found[i].map_or(Cell::from("none"), |d| us(d).into());
        vec![drive.into(), procedure.into(), PAIRS[i].into(), us(right[i]).into(), found, seconds.into()]
    };
    (0..PAIRS.len()).map(row).collect()
}

fn swept_table(drive: &str, sweep: &Sweep, right: &Times) -> Table {
    let row = |t: &Trial| -> Vec<Cell> {
        let us = |d: Dur| Cell::from(d.0 as f64 / 1e3);
        vec![f64::from(t.round).into(), PAIRS[t.pair].into(), us(right[t.pair]), us(t.times[t.pair]), t.rate.into()]
    };
    Table {
        name: if drive == DRIVES[0].0 { "ultrastar" } else { "barracuda" },
        columns: &["round", "pair", "truth_us", "tried_us", "mb_s"],
        rows: sweep.trials().iter().map(row).collect(),
    }
}

fn swept_chart(name: &str, sweep: &Sweep, right: &Times) -> Chart {
    let series = (0..PAIRS.len()).map(|pair| {
        let off = |d: Dur| (d.0 as f64 - right[pair].0 as f64) / 1e3;
        let points = sweep.curve(ROUNDS - 1, pair).into_iter().map(|(d, rate)| (off(d), rate));
        Series { name: PAIRS[pair].into(), style: Style::Marked, points: points.collect() }
    });
    Chart::Xy(XyChart {
        title: format!("What the drive moves by the time believed to pass between two commands, {name}"),
        subtitle: "Too little and turns are missed; too much and sectors are left out that could be had.".into(),
        x: Axis::linear("believed less true, us"),
        y: Axis::linear("megabytes per second"),
        series: series.collect(),
    })
}

fn missed_chart(name: &str, missed: &Missed) -> Chart {
    let series = (0..PAIRS.len()).map(|pair| {
        let classes = missed.classes(pair, CLASS);
        let points = classes.into_iter().map(|(at, late, all)| (at.0 as f64 / 1e3, 100.0 * late as f64 / all as f64));
        let shown = points.filter(|p| p.0 <= (STEPS * STEP_US) as f64).collect();
        Series { name: PAIRS[pair].into(), style: Style::Step, points: shown }
    });
    Chart::Xy(XyChart {
        title: format!("Commands that missed a turn by their slack, {name}"),
        subtitle: "Slack: what the head would have waited if no time passed between two commands. Where a line falls \
                through one half, there that time lies."
            .into(),
        x: Axis::from_zero("slack, us"),
        y: Axis::range("missed, %", 0.0, 100.0),
        series: series.collect(),
    })
}

#[cfg(test)]
mod tests {
    use headtime_disk::{Kind, Outcome};

    use super::*;

    #[test]
    fn what_was_not_found_is_wrong_by_a_turn() {
        let right = [30, 60, 40, 70].map(Dur::from_us);
        let found = right.map(|d| Some(d + Dur::from_us(3)));
        assert_eq!(largest_error(&found, &right, Dur::from_us(4_020)), 3.0);
        assert_eq!(largest_error(&[found[0], None, found[2], found[3]], &right, Dur::from_us(4_020)), 4_020.0);
    }

    #[test]
    fn a_command_that_ended_is_forgotten_and_a_flush_says_nothing() {
        let truth = profile::builtin("ultrastar36z15").unwrap();
        let model = Model::new(&truth).unwrap();
        let mut missed = Missed::new(&model);
        let mut watched = Watched::new(&mut missed);
        let command = Command { id: 1, kind: Kind::Flush, lbn: 0, count: 0, fua: false };
        watched.issued(&command, Time::ZERO);
        let completion = Completion { id: 1, outcome: Outcome::Ok, at: Time::ZERO + Dur::from_ms(1), media: None };
        watched.completed(&command, 0, &completion);
        assert!(watched.sent.is_empty());
        assert_eq!(missed.used(), [0; 4]);
    }
}
