//! D13: how many turns the head may need until it has settled, provoked.
//!
//! Reuther and Pohlack (2003), section 4.1, "Parameter n": requests to the innermost and the outermost region of the disk in
//! turn, 100,000 and more, and n computed from equation 5. It is to be held against the n of the worst case that guarantees rest
//! on (D1). The procedure is in [`crate::settling`].

use headtime_disk::command::Kind;
use headtime_disk::model::Model;
use headtime_disk::profile::{self, Profile};
use headtime_disk::time::{Dur, Time};
use headtime_probe::settling::Settling;
use headtime_sched::admit::das::worst::WorstCase;
use headtime_sched::core::Order;
use headtime_sim::run::Limits;
use headtime_sim::simulate::{Setup, Simulation};
use headtime_sim::workload::{Ask, Workload, WorkloadError};

use crate::experiment::{Cell, Check, Claim, Experiment, Findings, Run, RunError, Spec, Table, Test};
use crate::filled::failed;
use crate::svg::{Axis, Chart, Series, Style, XyChart};

/// The experiment.
pub struct D13;

static SPEC: Spec = Spec {
    id: "D13",
    title: "Turns until the head has settled, provoked",
    source: "Reuther, Pohlack, Rotational-Position-Aware Real-Time Disk Scheduling Using a Dynamic Active Subset (2003), \
             section 4.1, table 1",
    drive: "ultrastar36z15, barracuda36es2",
    workload: "reads of one sector in the first and the last two hundredth of the disk in turn, two at the drive",
    claims: &[
        Claim {
            id: "D13a",
            claim: "n of equation 5, from requests to the innermost and the outermost region in turn",
            paper: "5 and 2",
            rule: "at most the n of the worst case computed from the profile, both drives",
            checks: &[Check { what: "drives whose n is larger", unit: "cases", test: Test::Never }],
            quick: true,
            note: "1,000,000 requests (quick: 100,000). The worst case has the paper's 5 and 2.",
        },
        Claim {
            id: "D13b",
            claim: "what that n is, Barracuda 36ES2",
            paper: "2",
            rule: "2",
            checks: &[Check { what: "n", unit: "turns", test: Test::Between(2.0, 2.0) }],
            quick: false,
            note: "",
        },
        Claim {
            id: "D13c",
            claim: "what that n is, Ultrastar 36Z15",
            paper: "5",
            rule: "5",
            checks: &[Check { what: "n", unit: "turns", test: Test::Between(5.0, 5.0) }],
            quick: false,
            note: "The virtual drive tries to settle once a turn, and whether it fails does not depend on whether it failed before: by its \
                   profile 10 times in a million, so four times in a row once in 10^20. The paper's drive met it in 100,000 requests, so \
                   its failures came together. Nothing is published of how, and the profile keeps to what is.",
        },
        Claim {
            id: "D13d",
            claim: "n from drives that fail to settle one time in ten, 100,000 requests",
            paper: "-",
            rule: "as many turns as the profile lets the head need to settle, and one, both drives",
            checks: &[Check { what: "drives with another n", unit: "cases", test: Test::Never }],
            quick: true,
            note: "",
        },
    ],
    alone: false,
};

/// Requests to a drive that fails often, and how often that is.
const REQUESTS: u64 = 100_000;
const OFTEN_PPM: u32 = 100_000;

/// Reads what is asked for, one sector at a time and two of them at the drive, and tells how long each took.
struct Provoking {
    settling: Settling,
    /// Requests that are due, at the time at which the last one was done.
    due: u32,
    done: Option<Time>,
}

impl Workload for Provoking {
    fn next_due(&self) -> Option<Time> {
        (self.due > 0).then_some(self.done.unwrap_or(Time::ZERO))
    }

    fn take(&mut self) -> Result<Ask, WorkloadError> {
        let due = self.next_due().expect("a request was taken while none was due");
        self.due -= 1;
        let lbn = self.settling.ask();
        Ok(Ask { due, kind: Kind::Read, lbn, count: 1, fua: false, sync: true, owner: 0, class: 0 })
    }

    fn finished(&mut self, _owner: u32, now: Time) {
        if let Some(before) = self.done.replace(now) {
            self.settling.took(now.saturating_since(before));
        }
        self.due += 1;
    }

    fn endless(&self) -> bool {
        true
    }
}

/// What was found on one drive.
struct Measured {
    found: Settling,
    worst: WorstCase,
}

/// All terms of equation 5 but the turns; no read-ahead is met.
fn settling(worst: &WorstCase, capacity: u64) -> Settling {
    Settling::new(WorstCase { turns: 0, stop: Dur::ZERO, ..*worst }.total(), worst.turn, capacity)
}

fn measure(run: &Run, profile: &Profile, requests: u64) -> Result<Measured, RunError> {
    let model = Model::new(profile).map_err(|e| failed(&SPEC, e))?;
    let worst = WorstCase::of(profile, &model, 1).map_err(|e| failed(&SPEC, e))?;
    let simulation = Simulation::new(&Setup::new(profile, Order::Fcfs, run.seed)).map_err(|e| failed(&SPEC, e))?;
    let settling = settling(&worst, simulation.target().capacity);
    let mut load = Provoking { settling, due: 2, done: None };
    let limits = Limits { requests: Some(requests), ..Limits::default() };
    simulation.run(&mut load, limits, None, &mut ()).map_err(|e| failed(&SPEC, e))?;
    run.progress.advance(1);
    Ok(Measured { found: load.settling, worst })
}

impl Experiment for D13 {
    fn spec(&self) -> &'static Spec {
        &SPEC
    }

    fn steps(&self) -> u64 {
        4
    }

    fn run(&self, run: &Run) -> Result<Findings, RunError> {
        let mut f = Findings::default();
        let mut rows = Vec::new();
        let mut lines = Vec::new();
        let (mut beyond, mut missed) = (0, 0);
        for (drive, claim) in [("ultrastar36z15", "D13c"), ("barracuda36es2", "D13b")] {
            let profile = profile::builtin(drive).map_err(|e| failed(&SPEC, e))?;
            let mut fails_often = profile.clone();
            fails_often.noise.settle_retry_ppm = OFTEN_PPM;
            let as_it_is = measure(run, &profile, run.length(10 * REQUESTS, REQUESTS))?;
            let often = measure(run, &fails_often, REQUESTS)?;
            beyond += usize::from(as_it_is.found.turns() > as_it_is.worst.turns);
            missed += usize::from(often.found.turns() != profile.noise.settle_retry_turns + 1);
            f.figure(claim, &[f64::from(as_it_is.found.turns())]);
            f.notes.push(("D13a", format!("Seed {}, {drive}: n = {}.", run.seed, as_it_is.found.turns())));
            for (name, m) in [(drive.to_owned(), &as_it_is), (format!("{drive}, fails one time in ten"), &often)] {
                rows.extend(counted(&name, m));
                lines.push(line(name, m));
            }
        }
        f.figure("D13a", &[beyond as f64]);
        f.figure("D13d", &[missed as f64]);
        f.tables.push(Table { name: "turns", columns: &["drive", "n_of_worst_case", "turns", "requests"], rows });
        f.charts.push(Chart::Xy(XyChart {
            title: "Requests from one edge of the disk to the other, by the turns they waited at most".into(),
            subtitle: "The head comes to a random angle, so all wait up to one turn; more wait only those whose head did not settle.".into(),
            x: Axis::range("turns", 0.0, 6.0),
            y: Axis::log("share of requests, %"),
            series: lines,
        }));
        Ok(f)
    }
}

fn counted(name: &str, m: &Measured) -> Vec<Vec<Cell>> {
    let counts = m.found.counts().iter().enumerate();
    let row = |(turns, n): (usize, &u64)| {
        vec![name.into(), f64::from(m.worst.turns).into(), (turns as f64).into(), (*n as f64).into()]
    };
    counts.map(row).collect()
}

fn line(name: String, m: &Measured) -> Series {
    let all = m.found.requests() as f64;
    let points = m.found.counts().iter().enumerate().map(|(turns, n)| (turns as f64, 100.0 * *n as f64 / all));
    Series { name, style: Style::Marked, points: points.collect() }
}

#[cfg(test)]
mod tests {
    use headtime_disk::profile::builtin;
    use headtime_disk::time::Dur;

    use super::*;

    #[test]
    fn two_are_at_the_drive_and_each_takes_from_the_end_of_the_one_before() {
        let profile = builtin("ultrastar36z15").unwrap();
        let worst = WorstCase::of(&profile, &Model::new(&profile).unwrap(), 1).unwrap();
        let settling = settling(&worst, 36_000_000);
        let mut load = Provoking { settling, due: 2, done: None };
        let asks = [load.take().unwrap(), load.take().unwrap()];
        assert_eq!(load.next_due(), None);
        assert!(asks[0].lbn < 180_000 && asks[1].lbn >= 35_820_000, "{asks:?}");
        // When the first one began is not known.
        let heard = Time::ZERO + Dur::from_secs(1);
        load.finished(0, heard);
        assert_eq!((load.settling.requests(), load.next_due()), (0, Some(heard)));
        assert_eq!(load.take().unwrap().due, heard);
        // Sent long before, but the drive was not free.
        load.finished(0, heard + worst.total().saturating_sub(worst.stop));
        assert_eq!((load.settling.requests(), load.settling.turns()), (1, worst.turns));
    }
}
