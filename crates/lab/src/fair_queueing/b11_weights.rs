//! B11: service in proportion to weights.
//!
//! Valente (2014), sections 1 and 3.1.

use headtime_disk::{Kind, Time};
use headtime_sched::{BfqRules, Policy, Share};
use headtime_sim::observe::Observer;
use headtime_sim::stats::Done;
use headtime_sim::workload::suite::files::{FILES, FileActor};
use headtime_sim::workload::suite::{Actor, Disk};

use crate::common::policy_run::{DRIVE_3, PolicyRun};
use crate::experiment::{Cell, Check, Claim, Experiment, Findings, Length, Run, RunError, Spec, Table, Test};

/// The experiment.
pub(crate) const B11: Experiment = Experiment { spec: &SPEC, steps: 2, run };

static SPEC: Spec = Spec {
    id: "B11",
    title: "Service in proportion to weights",
    source: "Valente, New version of BFQ, benchmark suite and experimental results (2014), sections 1 and 3.1",
    drive: DRIVE_3,
    workload: "ten greedy readers with weights 1 to 10; all in order, or every other one at random places",
    claims: &[Claim {
        id: "B11",
        claim: "service in proportion to weights, ten backlogged applications, weights 1 to 10, seeky and sequential \
                mixed",
        paper: "-",
        rule: "in order: within 3% over any 100 s; mixed: files in one zone, time within 3% over any 100 s; at every \
               instant within the proved bound",
        checks: &[
            Check {
                what: "all in order: largest difference of an application's sectors from what is due, in any 100 s",
                unit: "% of what is due",
                test: Test::AtMost(3.0),
            },
            Check { what: "mixed: the same of its time", unit: "% of what is due", test: Test::AtMost(3.0) },
            Check {
                what: "all in order: the furthest that any is behind over any interval",
                unit: "% of the proved bound",
                test: Test::AtMost(100.0),
            },
        ],
        quick: true,
        note: "Ten minutes, the first of them aside. Readers at random places are served by time and not by sectors \
               (section 3.5), so that with such applications the disk's time is what is shared; sectors pass faster \
               at the rim, so that all files are in one zone then. Without low_latency, which takes from some what is \
               due to them. In 100 s the application of weight 1 is due 14 or 15 slices: a slice more or less is 7%.",
    }],
    length: Length::Seconds,
    alone: false,
};

fn run(run: &Run) -> Result<Findings, RunError> {
    let (sectors, time) = (shares(run, false)?, shares(run, true)?);
    // The largest relative deviation of an application from its share over all windows.
    let worst = |windows: &[Vec<f64>]| {
        let off = |w: &Vec<f64>| {
            let all: f64 = w.iter().sum();
            (0..APPLICATIONS).map(|i| 100.0 * (w[i] / all - due(i)).abs() / due(i)).fold(0.0, f64::max)
        };
        windows.iter().map(off).fold(0.0, f64::max)
    };
    let mut f = Findings::default();
    f.figure("B11", &[worst(&sectors.0), worst(&time.1), 100.0 * sectors.2]);
    run.progress.advance(2);
    let mean = |windows: &[Vec<f64>], i: usize| {
        let all: f64 = windows.iter().flatten().sum();
        100.0 * windows.iter().map(|w| w[i]).sum::<f64>() / all
    };
    let least = |windows: &[Vec<f64>], i: usize| {
        let of = |w: &Vec<f64>| 100.0 * w[i] / w.iter().sum::<f64>();
        windows.iter().map(of).fold(f64::INFINITY, f64::min)
    };
    let row = |i| {
        let (sectors, time) = (&sectors.0, &time.1);
        let figures = [mean(sectors, i), least(sectors, i), mean(time, i), least(time, i)];
        [(i + 1) as f64, 100.0 * due(i)].into_iter().chain(figures).map(Cell::from).collect()
    };
    let columns = &[
        "weight",
        "due_percent",
        "in_order_percent_of_sectors",
        "least_in_100_s",
        "mixed_percent_of_time",
        "least_in_100_s_of_time",
    ];
    f.tables.push(Table { name: "shares", columns, rows: (0..APPLICATIONS).map(row).collect() });
    Ok(f)
}

const APPLICATIONS: usize = 10;
/// Seconds.
const WINDOW: usize = 100;
/// Seconds at the beginning in which budgets adapt.
const ADAPTS: usize = 60;
/// The disk that mixed readers have, sectors: 16 GB, less than the first zone.
const ONE_ZONE: u64 = 16_000_000_000 / 512;

/// The share of application `i`; its weight is one more than its number.
fn due(i: usize) -> f64 {
    (i + 1) as f64 / (APPLICATIONS * (APPLICATIONS + 1) / 2) as f64
}

/// Sectors, or nanoseconds of the disk's time, of each application.
type Each = [f64; APPLICATIONS];
/// The same for every [`WINDOW`] consecutive seconds.
type Windows = Vec<Vec<f64>>;

/// Sectors, and nanoseconds of the disk's time, of each application in each second.
#[derive(Debug, Default)]
struct Watch {
    seconds: Vec<(Each, Each)>,
    last: Time,
    lags: [Lag; APPLICATIONS],
}

/// How far an application is behind its share, in sectors.
#[derive(Clone, Copy, Debug, Default)]
struct Lag {
    now: f64,
    least: f64,
    /// The furthest behind over any interval.
    worst: f64,
}

impl Observer for Watch {
    fn finished(&mut self, done: &Done) {
        let second = (done.done.0 / 1_000_000_000) as usize;
        if self.seconds.len() <= second {
            self.seconds.resize(second + 1, Default::default());
        }
        let (sectors, time) = &mut self.seconds[second];
        sectors[done.owner as usize] += f64::from(done.count);
        time[done.owner as usize] += done.done.since(self.last.max(done.dispatched)).0 as f64;
        self.last = done.done;
        for (i, lag) in self.lags.iter_mut().enumerate() {
            let own = if i == done.owner as usize { f64::from(done.count) } else { 0.0 };
            lag.now += due(i) * f64::from(done.count) - own;
            lag.worst = lag.worst.max(lag.now - lag.least);
            lag.least = lag.least.min(lag.now);
        }
    }
}

/// Returns how far behind an application may be over any interval, in sectors
/// (`headtime_sched::internals::bwf2q`), with `largest` the largest budget. All applications are
/// deceptively idle after each request, and may overrun a budget by one.
fn proved_bound(largest: f64, share: f64) -> f64 {
    let (overrun, credit) = (REQUEST_SECTORS, largest);
    let excess = APPLICATIONS as f64 * (overrun + 2.0 * credit);
    let behind = largest + excess * share;
    behind + (largest + overrun) * (1.0 - share) + credit * share
}

/// Sectors of a sequential reader's request.
const REQUEST_SECTORS: f64 = 256.0;

/// The sectors, and the time, of each application in every [`WINDOW`] consecutive seconds, and the
/// largest lag of an application, as a fraction of the proved bound.
fn shares(run: &Run, mixed: bool) -> Result<(Windows, Windows, f64), RunError> {
    let rules = BfqRules { low_latency: None, ..BfqRules::plus() };
    let slice = rules.slice.as_secs_f64();
    let share = |i: usize| (i as u32, Share { weight: i as u32 + 1, ..Share::default() });
    let seconds = run.length(600, 240);
    let bench = PolicyRun {
        shares: (0..APPLICATIONS).map(share).collect(),
        ..PolicyRun::new(DRIVE_3, Policy::Bfq(rules), seconds, run.seed)
    };
    let mut watch = Watch::default();
    let (_, stats) = bench.watched(
        &SPEC,
        |disk| {
            let disk = Disk { capacity: if mixed { ONE_ZONE } else { disk.capacity }, ..*disk };
            let reader = |i: u64| {
                let random = mixed && i.is_multiple_of(2);
                Box::new(FileActor::new(&disk, Kind::Read, random, (i, FILES), run.seed)) as Box<dyn Actor>
            };
            (0..APPLICATIONS as u64).map(reader).collect()
        },
        &mut watch,
    )?;
    let steady = &watch.seconds[ADAPTS..seconds as usize - 1];
    let sum = |of: fn(&(Each, Each)) -> &Each| {
        let windows = steady.windows(WINDOW);
        windows.map(|w| (0..APPLICATIONS).map(|i| w.iter().map(|s| of(s)[i]).sum()).collect()).collect()
    };
    let largest = stats.peak_rate.unwrap_or(0.0) * slice;
    let behind = watch.lags.iter().enumerate().map(|(i, lag)| lag.worst / proved_bound(largest, due(i)));
    Ok((sum(|s| &s.0), sum(|s| &s.1), behind.fold(0.0, f64::max)))
}
