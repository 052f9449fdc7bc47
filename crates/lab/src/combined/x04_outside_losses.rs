//! X4: the losses of headtime's own planner outside the drive, term by term.
//!
//! Lumb, Schindler and Ganger (FAST 2002) lost 35% (section 5.3), half to conservatism and half to
//! the rule of one command per track.

use headtime_disk::{DriveNoise, Dur};
use headtime_plot::{Axis, BarChart, BarSeries, Chart};
use headtime_sched::{Algorithm, Conservatism, Order, Placement};

use crate::common::figure9::UNIT;
use crate::common::scan_run::DriveBehaviour;
use crate::common::scans::{Fill, Scan, Scanned, Window};
use crate::experiment::{Cell, Check, Claim, Experiment, Findings, Length, Run, RunError, Spec, Table, Test};

/// The experiment.
pub(crate) const X4: Experiment = Experiment { spec: &SPEC, steps: (STEPS.len() + DRIVES.len()) as u64, run };

static SPEC: Spec = Spec {
    id: "X4",
    title: "Outside the drive against inside, with headtime's planner",
    source: "headtime's own; the paper's figure: Lumb, Schindler, Ganger, Freeblock Scheduling Outside of Disk \
            Firmware (FAST 2002), section 5.3",
    drive: "atlas10k",
    workload: "oltp under SPTF-SW60%; one read of the whole disk in the background in units of 4 KiB, to its end",
    claims: &[Claim {
        id: "X4",
        claim: "host against firmware placement with headtime's planner",
        paper: "65%",
        rule: "at least 90%, the latter freed of every rule of the host",
        checks: &[Check { what: "free bandwidth outside, share of that inside", unit: "%", test: Test::AtLeast(90.0) }],
        quick: false,
        note: "Whole scans; outside with adaptive conservatism, inside with none, for there everything comes as \
               foreseen. Inside, the electronics, the bus and the search take no time, for background work and \
               foreground alike, so nothing of what a host must allow for between two commands applies. The table \
               takes the way from inside to outside step by step.",
    }],
    length: Length::Minutes,
    alone: false,
};

/// Time limit of a scan, and duration of a run without one, virtual seconds.
const MOST_SECONDS: u64 = 20_000;
const ALONE_SECONDS: u64 = 3_000;

/// A step from inside to outside.
struct Step {
    name: &'static str,
    placement: Placement,
    towards: DriveBehaviour,
    conservatism: Conservatism,
}

const fn fixed(us: u64) -> Conservatism {
    Conservatism::Fixed(Dur::from_us(us))
}

const AT_ONCE: DriveBehaviour = DriveBehaviour { noise: DriveNoise::Off, inside: true, at_once: true };
const INSIDE: DriveBehaviour = DriveBehaviour { at_once: false, ..AT_ONCE };
const NO_NOISE: DriveBehaviour = DriveBehaviour { inside: false, ..INSIDE };
const NOISE: DriveBehaviour = DriveBehaviour { noise: DriveNoise::Profile, ..NO_NOISE };

const fn step(name: &'static str, placement: Placement, towards: DriveBehaviour, conservatism: Conservatism) -> Step {
    Step { name, placement, towards, conservatism }
}

const FIRMWARE: usize = 0;
const HOST: usize = 4;
const STEPS: [Step; 9] = [
    step("inside the drive", Placement::Firmware, AT_ONCE, fixed(0)),
    step("inside; electronics and bus", Placement::Firmware, INSIDE, fixed(0)),
    step("outside; no noise", Placement::Host, NO_NOISE, fixed(0)),
    step("outside; no noise; adaptive", Placement::Host, NO_NOISE, Conservatism::Adaptive),
    step("outside; noise; adaptive", Placement::Host, NOISE, Conservatism::Adaptive),
    step("outside; noise; none", Placement::Host, NOISE, fixed(0)),
    step("outside; noise; 0.1 ms", Placement::Host, NOISE, fixed(100)),
    step("outside; noise; 0.3 ms", Placement::Host, NOISE, fixed(300)),
    step("inside; electronics and bus; 0.3 ms", Placement::Firmware, INSIDE, fixed(300)),
];
/// The drives of the steps, which also run the foreground without FILL.
const DRIVES: [DriveBehaviour; 4] = [AT_ONCE, INSIDE, NO_NOISE, NOISE];

fn run(run: &Run) -> Result<Findings, RunError> {
    let scan = Scan::new("atlas10k", UNIT, Order::SptfSw(60), Window::Whole(MOST_SECONDS));
    let mut alone = Vec::new();
    for towards in DRIVES {
        let window = Window::First(ALONE_SECONDS);
        alone.push((towards, Scan { towards: Some(towards), window, ..scan }.measure(&SPEC, run)?));
    }
    let mut scans: Vec<(&Step, Scanned, [f64; 2])> = Vec::new();
    for s in &STEPS {
        let Step { placement, conservatism, towards, .. } = *s;
        let fill = Fill { algorithm: Algorithm::Headtime, placement, conservatism };
        let found = Scan { towards: Some(towards), ..scan }.with(fill).measure(&SPEC, run)?;
        let without = alone.iter().find(|(t, _)| *t == towards);
        let (loss, rise) = without.map_or((f64::NAN, f64::NAN), |(_, w)| (found.loss(w), found.p99_rise(w)));
        scans.push((s, found, [loss, rise]));
    }
    let share = |i: usize| 100.0 * scans[i].1.free_mb_s / scans[FIRMWARE].1.free_mb_s;
    let mut f = Findings::default();
    f.figure("X4", &[share(HOST)]);
    let rows = scans.iter().enumerate().map(|(i, (s, found, loss))| {
        let mut row = vec![Cell::from(s.name), found.free_mb_s.into(), share(i).into()];
        row.extend(found.marks.map(Cell::from));
        row.extend([loss[0], loss[1], 100.0 * found.extra_turns].map(Cell::from));
        row
    });
    f.tables.push(Table {
        name: "from_inside_to_outside",
        columns: &[
            "step",
            "free_mb_s",
            "share_of_inside_percent",
            "half_s",
            "to_90_percent_s",
            "to_99_percent_s",
            "to_99.9_percent_s",
            "whole_s",
            "foreground_loss_percent",
            "p99_higher_percent",
            "a_turn_late_percent",
        ],
        rows: rows.collect(),
    });
    f.charts.push(chart(&scans));
    Ok(f)
}

fn chart(scans: &[(&Step, Scanned, [f64; 2])]) -> Chart {
    Chart::Bars(BarChart {
        title: "From inside the drive to outside, step by step, Atlas 10K".into(),
        subtitle: "Free bandwidth of a whole scan with headtime's planner.".into(),
        axis: Axis::from_zero("free MB/s"),
        categories: scans.iter().map(|(s, ..)| s.name.into()).collect(),
        series: vec![BarSeries {
            name: "free bandwidth".into(),
            values: scans.iter().map(|s| s.1.free_mb_s).collect(),
        }],
        stacked: false,
        marks: Vec::new(),
        mark_name: String::new(),
    })
}
