//! D6: the longest wait of a request that is far from all others.
//!
//! Reuther and Pohlack (2003), section 4.3.3 and figure 8: one stream requests blocks in the first
//! quarter of the disk, the other a hundredth of that number at its very end, both reads and
//! writes.

use std::collections::{BTreeMap, VecDeque};

use headtime_disk::profile::{self, Profile};
use headtime_disk::{Dur, Time};
use headtime_plot::{Axis, Chart, XyChart};
use headtime_sched::Order;
use headtime_sim::observe::Observer;
use headtime_sim::run::Limits;
use headtime_sim::simulate::{Scheduling, Setup, Simulation};
use headtime_sim::stats::histogram::Histogram;
use headtime_sim::stats::{Done, Stats};
use headtime_sim::workload::variates::{Share, Variates};
use headtime_sim::workload::{Ask, Pattern, PatternSpec, PlaceSpec, Target, Workload, WorkloadError};

use crate::experiment::{Cell, Check, Claim, Experiment, Findings, Length, Run, RunError, Spec, Table, Test, failed};

/// The experiment.
pub(crate) const D6: Experiment = Experiment { spec: &SPEC, steps: 2 * ORDERS.len() as u64, run };

static SPEC: Spec = Spec {
    id: "D6",
    title: "Waiting for two skewed streams",
    source: "Reuther, Pohlack, Rotational-Position-Aware Real-Time Disk Scheduling Using a Dynamic Active Subset \
            (2003), section 4.3.3, figure 8",
    drive: "ultrastar36z15, barracuda36es2",
    workload: "random requests of 64 KiB, half of them writes: 31 always in the system within the first quarter of the \
            disk, and for each 100 of them one in its last hundredth",
    claims: &[
        Claim {
            id: "D6a",
            claim: "largest wait with SATF, the drive's own order, SATFUF with 500 ms, FCFS; Ultrastar 36Z15",
            paper: "10 s / 2.4 s / about 0.5 s / compact",
            rule: RULE,
            checks: &CHECKS,
            quick: true,
            note: NOTE,
        },
        Claim {
            id: "D6b",
            claim: "the same, Barracuda 36ES2",
            paper: "10 s / 1.4 s / about 0.5 s / compact",
            rule: RULE,
            checks: &CHECKS,
            quick: true,
            note: NOTE,
        },
    ],
    length: Length::Seconds,
    alone: false,
};

const RULE: &str = "same order; SATFUF at most 0.6 s";

const CHECKS: [Check; 2] = [
    Check { what: "neighbours of which the first waits no longer", unit: "cases", test: Test::Never },
    Check { what: "SATFUF's largest wait", unit: "s", test: Test::AtMost(0.6) },
];

const NOTE: &str = "SATF never comes to the far stream while 31 others wait: its requests wait as long as the run goes \
        on, and that is its largest wait here. How the paper's streams went on when one of them starved is not said. \
        The virtual drive lets no command wait for more than 2 s by a rule that is assumed for its firmware.";

/// Outstanding requests of the near stream: with one of the far stream, the drive's queue depth.
const NEAR_REQUESTS: u32 = 31;
/// Requests of the near stream per request of the far one.
const RATIO: u64 = 100;
/// SATFUF's threshold.
const THRESHOLD: Dur = Dur::from_ms(500);

const ORDERS: [(&str, Option<Order>); 4] = [
    ("SATF", Some(Order::Sptf)),
    ("drive's own", None),
    ("SATFUF, 500 ms", Some(Order::SatfUf(THRESHOLD))),
    ("FCFS", Some(Order::Fcfs)),
];

/// The two streams. Far requests come with every hundredth near one, whether their predecessors are
/// complete or not, so that the load is the same for every order.
struct Skewed {
    near: Pattern,
    far: Pattern,
    rng: [Variates; 2],
    /// Arrival times and owners; owners from [`NEAR_REQUESTS`] on are single requests of the far
    /// stream.
    due: VecDeque<(Time, u32)>,
    asked: u64,
    far_asked: u32,
    /// Incomplete requests with their arrival times.
    waiting: BTreeMap<u32, Time>,
    names: [String; 2],
}

impl Skewed {
    fn new(target: &Target, seed: u64) -> Result<Skewed, WorkloadError> {
        let reads = const { Share::new(1, 2).unwrap() };
        let part =
            |from, to| PatternSpec { reads, place: PlaceSpec::Part { from, to }, ..PatternSpec::random_reads(65_536) };
        let mut rng = [Variates::new(seed, 0), Variates::new(seed, 1)];
        Ok(Skewed {
            near: Pattern::new(&part(0.0, 0.25), target, &mut rng[0])?,
            far: Pattern::new(&part(0.99, 1.0), target, &mut rng[1])?,
            rng,
            due: (0..NEAR_REQUESTS).map(|owner| (Time::ZERO, owner)).collect(),
            asked: 0,
            far_asked: 0,
            waiting: BTreeMap::new(),
            names: ["near".to_owned(), "far".to_owned()],
        })
    }

    /// The number of one stream's incomplete requests at `end`, and the longest of their waits.
    fn unfinished(&self, far: bool, end: Time) -> (usize, Dur) {
        let waits = || {
            self.waiting
                .iter()
                .filter(|(name, _)| (**name >= NEAR_REQUESTS) == far)
                .map(|(_, due)| end.saturating_since(*due))
        };
        (waits().count(), waits().max().unwrap_or(Dur::ZERO))
    }
}

impl Workload for Skewed {
    fn next_due(&self) -> Option<Time> {
        self.due.front().map(|(at, _)| *at)
    }

    fn take(&mut self) -> Result<Ask, WorkloadError> {
        let (due, owner) = self.due.pop_front().expect("a request was taken while none was due");
        let is_far = owner >= NEAR_REQUESTS;
        self.waiting.insert(owner, due);
        let drawn = match is_far {
            true => self.far.next(&mut self.rng[1], &mut None),
            false => self.near.next(&mut self.rng[0], &mut None),
        };
        if !is_far {
            self.asked += 1;
            if self.asked.is_multiple_of(RATIO) {
                let name = NEAR_REQUESTS + self.far_asked;
                self.far_asked += 1;
                self.due.push_front((due, name));
            }
        }
        let class = u16::from(is_far);
        Ok(Ask { due, kind: drawn.kind, lbn: drawn.lbn, count: drawn.count, fua: drawn.fua, sync: true, owner, class })
    }

    fn finished(&mut self, owner: u32, now: Time) {
        self.waiting.remove(&owner);
        if owner < NEAR_REQUESTS {
            self.due.push_back((now, owner));
        }
    }

    fn endless(&self) -> bool {
        true
    }

    fn classes(&self) -> &[String] {
        &self.names
    }
}

/// Response times of the near and the far stream, in ms.
#[derive(Default)]
struct Waits([Vec<f64>; 2]);

impl Observer for Waits {
    fn finished(&mut self, done: &Done) {
        self.0[usize::from(done.class)].push(done.response().as_ms_f64());
    }
}

/// One run.
struct Measured {
    name: &'static str,
    stats: Stats,
    waits: [Vec<f64>; 2],
    /// Near and far: incomplete requests, and the longest wait including theirs.
    streams: [(usize, Dur); 2],
}

impl Measured {
    fn longest(&self) -> Dur {
        self.streams[0].1.max(self.streams[1].1)
    }
}

fn measure(run: &Run, profile: &Profile, name: &'static str, order: Option<Order>) -> Result<Measured, RunError> {
    let scheduling = order.map_or(Scheduling::Drive, Scheduling::Host);
    let setup = Setup { scheduling, ..Setup::new(profile, Order::Fcfs, run.seed) };
    let simulation = Simulation::new(&setup).map_err(|e| failed(&SPEC, e))?;
    let mut load = Skewed::new(simulation.target(), run.seed).map_err(|e| failed(&SPEC, e))?;
    let until = Time::ZERO + Dur::from_secs(run.length(600, 60));
    let mut waits = Waits::default();
    let limits = Limits { until: Some(until), ..Limits::default() };
    let stats = simulation.run(&mut load, limits, None, &mut waits).map_err(|e| failed(&SPEC, e))?;
    run.progress.advance(1);
    let streams = [false, true].map(|far| {
        let (unfinished, wait) = load.unfinished(far, until);
        (unfinished, wait.max(stats.classes[usize::from(far)].1.max().unwrap_or(Dur::ZERO)))
    });
    Ok(Measured { name, stats, waits: waits.0, streams })
}

fn run(run: &Run) -> Result<Findings, RunError> {
    let mut f = Findings::default();
    let drives = [("D6a", "ultrastar36z15", "Ultrastar 36Z15"), ("D6b", "barracuda36es2", "Barracuda 36ES2")];
    let mut rows = Vec::new();
    for (claim, drive, name) in drives {
        let profile = profile::builtin(drive).map_err(|e| failed(&SPEC, e))?;
        let all: Vec<Measured> = ORDERS
            .iter()
            .map(|(order_name, order)| measure(run, &profile, order_name, *order))
            .collect::<Result<_, _>>()?;
        let longest: Vec<f64> = all.iter().map(|m| m.longest().as_secs_f64()).collect();
        f.figure(claim, &[out_of_order(&longest), longest[2]]);
        let said: Vec<String> = all.iter().map(|m| format!("{:.2} s", m.longest().as_secs_f64())).collect();
        f.notes.push((claim, format!("Seed {}: {}.", run.seed, said.join(" / "))));
        rows.extend(all.iter().flat_map(|m| table_rows(drive, m, profile.sector_bytes)));
        f.charts.extend([chart(name, &all, 0), chart(name, &all, 1)]);
    }
    f.tables.push(Table {
        name: "waits",
        columns: &[
            "drive",
            "order",
            "stream",
            "requests",
            "mean_ms",
            "p50_ms",
            "p99_ms",
            "largest_ms",
            "unfinished",
            "largest_with_unfinished_ms",
            "both_streams_mb_s",
        ],
        rows,
    });
    Ok(f)
}

/// Number of neighbours of which the first does not wait longer than the second.
fn out_of_order(longest: &[f64]) -> f64 {
    longest.windows(2).filter(|w| w[0] <= w[1]).count() as f64
}

fn table_rows(drive: &str, m: &Measured, sector_bytes: u32) -> Vec<Vec<Cell>> {
    let ms = |d: Option<Dur>| d.unwrap_or(Dur::ZERO).as_ms_f64();
    let row = |(i, (stream, h)): (usize, &(String, Histogram))| {
        let (unfinished, longest) = m.streams[i];
        let figures = [
            h.samples() as f64,
            ms(h.mean()),
            ms(h.quantile(500)),
            ms(h.quantile(990)),
            ms(h.max()),
            unfinished as f64,
            longest.as_ms_f64(),
            m.stats.mb_per_second(sector_bytes),
        ];
        let names = [Cell::from(drive), m.name.into(), stream.as_str().into()];
        names.into_iter().chain(figures.map(Cell::from)).collect()
    };
    m.stats.classes.iter().enumerate().map(row).collect()
}

/// The waits of one stream's requests, without incomplete ones.
fn chart(name: &str, all: &[Measured], stream: usize) -> Chart {
    let sets: Vec<(&str, &[f64])> = all.iter().map(|m| (m.name, m.waits[stream].as_slice())).collect();
    let said = |m: &Measured| format!("{} {:.2} s", m.name, m.streams[stream].1.as_secs_f64());
    let said: Vec<String> = all.iter().map(said).collect();
    let which = ["near", "far"][stream];
    Chart::Xy(XyChart::cdf(
        &format!("Response times of the {which} of two skewed streams, {name}"),
        &format!("Largest waits, what never finished included: {}.", said.join(", ")),
        Axis::range("response time, ms", 0.0, 2500.0),
        &sets,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_that_wait_as_long_are_out_of_order() {
        assert_eq!(out_of_order(&[10.0, 2.4, 0.5, 0.4]), 0.0);
        assert_eq!(out_of_order(&[10.0, 10.0, 0.5, 0.7]), 2.0);
    }

    #[test]
    fn one_request_in_a_hundred_and_one_is_far_and_waits_until_it_is_finished() {
        let target = Target { capacity: 1_000_000, sector_bytes: 512, geometry: None };
        let mut load = Skewed::new(&target, 1).unwrap();
        let (mut near, mut far, mut first_far) = (0, 0, Time::ZERO);
        for i in 0..1010 {
            let at = load.next_due().expect("one waits for it");
            let ask = load.take().unwrap();
            assert_eq!(ask.due, at);
            match ask.class {
                0 => {
                    near += 1;
                    assert!(ask.lbn + u64::from(ask.count) <= 250_000, "{}", ask.lbn);
                    load.finished(ask.owner, Time(i * 1_000_000));
                }
                _ => {
                    far += 1;
                    assert!(ask.lbn >= 990_000, "{}", ask.lbn);
                    // The first of them is never served.
                    if far == 1 {
                        first_far = ask.due;
                    } else {
                        load.finished(ask.owner, Time(i * 1_000_000));
                    }
                }
            }
        }
        assert_eq!((near, far), (1000, 10));
        let end = Time(2_000_000_000);
        let (unfinished, longest) = load.unfinished(true, end);
        assert_eq!((unfinished, longest), (1, end.since(first_far)));
        // The near stream's next requests are due, but not yet taken.
        assert_eq!(load.unfinished(false, end), (0, Dur::ZERO));
    }
}
