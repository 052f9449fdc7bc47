//! D5: SATF outside the drive, compared with the drive's own order in its queue of 32, also with
//! more candidates than the queue holds.
//!
//! Reuther and Pohlack (2003), section 4.3.2 and figure 7. "Outside" keeps two requests at the
//! drive and chooses among the others; "drive" fills the drive's queue, and the other requests wait
//! until there is room.

use headtime_disk::profile::{self, Profile, QueuedOverheads};
use headtime_plot::{Axis, Chart, Series, Style, XyChart};
use headtime_sched::Order;
use headtime_sim::run::Limits;
use headtime_sim::simulate::{Scheduling, Setup, Simulation};
use headtime_sim::workload::Population;

use crate::common::load_run::random_reads;
use crate::experiment::{Cell, Check, Claim, Experiment, Findings, Length, Run, RunError, Spec, Table, Test, failed};

/// The experiment.
pub(crate) const D5: Experiment = Experiment { spec: &SPEC, steps: 2 * (2 * (DEPTHS.len() as u64 + 1) + 1), run };

static SPEC: Spec = Spec {
    id: "D5",
    title: "SATF outside against the drive's own queue",
    source: "Reuther, Pohlack, Rotational-Position-Aware Real-Time Disk Scheduling Using a Dynamic Active Subset \
            (2003), section 4.3.2, figure 7",
    drive: "ultrastar36z15, barracuda36es2",
    workload: "random reads of 64 KiB, 1 to 256 always in the system",
    claims: &[
        Claim {
            id: "D5a",
            claim: "SATF against the drive's own queue of 32, Ultrastar 36Z15",
            paper: "-12%",
            rule: "within 5 points: -17 to -7%",
            checks: &[Check { what: "more than the drive's own at 32", unit: "%", test: Test::Between(-17.0, -7.0) }],
            quick: true,
            note: "Which order the firmware of this drive follows is not published. The profile assumes SPTF by \
                   positioning time, the time between two commands left out, and that loses some turns. Where pairs of \
                   commands cost nothing it chooses as well as SATF outside (the other figures), so no more than that \
                   is in the assumption: what made the real drive 12% better must be something that a model of \
                   positions does not have, and nothing is published of it.",
        },
        Claim {
            id: "D5b",
            claim: "the same, Barracuda 36ES2",
            paper: "+6%",
            rule: "within 5 points: 1 to 11%; below 1% when SATF leaves out what it knows of pairs of commands",
            checks: &[
                Check { what: "more than the drive's own at 32", unit: "%", test: Test::Between(1.0, 11.0) },
                Check {
                    what: "the same by SATF without the time between two commands (equation 6)",
                    unit: "%",
                    test: Test::Below(1.0),
                },
            ],
            quick: true,
            note: "The profile's firmware order is the same assumption as for D5a. That the figure is near the \
                   paper's does not confirm it: SATF gains here what that order loses by leaving out the time \
                   between two commands, and loses it when it leaves that out itself.",
        },
        Claim {
            id: "D5c",
            claim: "deeper queues outside against what the drive's own queue gives",
            paper: "outperforms it",
            rule: "wins from 64 on, both drives",
            checks: &[Check {
                what: "numbers of requests from 64 on at which SATF does not win",
                unit: "cases",
                test: Test::Never,
            }],
            quick: true,
            note: "",
        },
    ],
    length: Length::Seconds,
    alone: false,
};

/// Outstanding requests.
const DEPTHS: [u32; 9] = [1, 2, 4, 8, 16, 32, 64, 128, 256];

/// Queue depth of the paper's drives, and the depth from which on SATF must win.
const QUEUE: u32 = 32;
const DEEPER_FROM: u32 = 64;

const BYTES: u64 = 65_536;

/// Megabytes per second by [`DEPTHS`].
type Curve = Vec<f64>;

/// Two curves of one drive.
struct Pair {
    outside: Curve,
    own: Curve,
}

impl Pair {
    fn of(run: &Run, profile: &Profile) -> Result<Pair, RunError> {
        let curve = |scheduling| -> Result<Curve, RunError> {
            DEPTHS.into_iter().map(|depth| rate(run, profile, None, scheduling, depth)).collect()
        };
        Ok(Pair { outside: curve(Scheduling::Host(Order::Sptf))?, own: curve(Scheduling::Drive)? })
    }

    /// The advantage of SATF outside at the drive's queue depth, in percent.
    fn at_queue(&self) -> f64 {
        100.0 * (self.outside[at_queue()] / self.own_at_queue() - 1.0)
    }

    /// The drive's own rate at its queue depth, MB/s.
    fn own_at_queue(&self) -> f64 {
        self.own[at_queue()]
    }

    /// Depths from [`DEEPER_FROM`] on at which SATF outside is no better than the drive's best
    /// rate.
    fn not_won(&self) -> usize {
        let best = self.own.iter().copied().fold(0.0, f64::max);
        DEPTHS.iter().zip(&self.outside).filter(|(depth, outside)| **depth >= DEEPER_FROM && **outside <= best).count()
    }
}

/// The index of the drive's queue depth in [`DEPTHS`].
fn at_queue() -> usize {
    DEPTHS.iter().position(|d| *d == QUEUE).expect("it is one of them")
}

fn run(run: &Run) -> Result<Findings, RunError> {
    let mut f = Findings::default();
    let mut not_won = 0;
    let mut free = Vec::new();
    for (claim, drive, name) in
        [("D5a", "ultrastar36z15", "Ultrastar 36Z15"), ("D5b", "barracuda36es2", "Barracuda 36ES2")]
    {
        let profile = profile::builtin(drive).map_err(|e| failed(&SPEC, e))?;
        let mut costless = profile.clone();
        costless.electronics.overheads.queued = QueuedOverheads::default();
        let pair = Pair::of(run, &profile)?;
        let [outside, own] = [Scheduling::Host(Order::Sptf), Scheduling::Drive];
        let knows_less = rate(run, &profile, Some(&costless), outside, QUEUE)?;
        let knows_less = 100.0 * (knows_less / pair.own_at_queue() - 1.0);
        let (outside, own) = (rate(run, &costless, None, outside, QUEUE)?, rate(run, &costless, None, own, QUEUE)?);
        let without = 100.0 * (outside / own - 1.0);
        match claim {
            "D5b" => f.figure(claim, &[pair.at_queue(), knows_less]),
            _ => f.figure(claim, &[pair.at_queue()]),
        }
        f.notes.push((claim, format!("Seed {}: with pairs of commands that cost nothing {without:+.1}%.", run.seed)));
        free.push(vec![Cell::from(drive), outside.into(), own.into(), without.into(), knows_less.into()]);
        not_won += pair.not_won();
        f.tables.push(table(if drive == "ultrastar36z15" { "ultrastar" } else { "barracuda" }, &pair));
        f.charts.push(chart(name, &pair));
    }
    f.figure("D5c", &[not_won as f64]);
    f.tables.push(Table {
        name: "pairs_cost_nothing",
        columns: &[
            "drive",
            "satf_outside_at_32_mb_s",
            "drive_at_32_mb_s",
            "more_percent",
            "more_percent_when_satf_leaves_pairs_out",
        ],
        rows: free,
    });
    Ok(f)
}

/// MB/s of the drive of `profile`; `belief`: the profile of SATF outside, if it differs.
fn rate(
    run: &Run,
    profile: &Profile,
    belief: Option<&Profile>,
    scheduling: Scheduling,
    depth: u32,
) -> Result<f64, RunError> {
    let setup = Setup { scheduling, belief, ..Setup::new(profile, Order::Fcfs, run.seed) };
    let simulation = Simulation::new(&setup).map_err(|e| failed(&SPEC, e))?;
    let mut load =
        Population::of(&random_reads(BYTES, depth), simulation.target(), run.seed).map_err(|e| failed(&SPEC, e))?;
    let limits = Limits { requests: Some(run.length(50_000, 10_000)), ..Limits::default() };
    let stats = simulation.run(&mut load, limits, None, &mut ()).map_err(|e| failed(&SPEC, e))?;
    run.progress.advance(1);
    Ok(stats.mb_per_second(profile.sector_bytes))
}

fn table(name: &'static str, pair: &Pair) -> Table {
    let rows = DEPTHS.iter().zip(&pair.outside).zip(&pair.own);
    Table {
        name,
        columns: &["requests", "satf_outside_mb_s", "drive_mb_s"],
        rows: rows.map(|((d, a), b)| vec![f64::from(*d).into(), (*a).into(), (*b).into()]).collect(),
    }
}

fn chart(name: &str, pair: &Pair) -> Chart {
    let line = |name: &str, curve: &Curve| Series {
        name: name.into(),
        style: Style::Marked,
        points: DEPTHS.iter().zip(curve).map(|(d, v)| (f64::from(*d), *v)).collect(),
    };
    Chart::Xy(XyChart {
        title: format!("Random reads of 64 KiB by requests in the system, {name}"),
        subtitle: format!(
            "The drive takes {QUEUE} commands, and its line stays level from there on; the one of SATF outside goes on \
             rising."
        ),
        x: Axis::log("requests in the system"),
        y: Axis::from_zero("megabytes per second"),
        series: vec![line("SATF, outside", &pair.outside), line("drive's own", &pair.own)],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(outside: [f64; 9], own: [f64; 9]) -> Pair {
        Pair { outside: outside.to_vec(), own: own.to_vec() }
    }

    #[test]
    fn at_the_queue_s_length_both_are_compared_and_beyond_it_the_drive_s_best_counts() {
        let own = [1.0, 2.0, 3.0, 4.0, 5.0, 10.0, 9.0, 9.0, 11.0];
        let p = pair([1.0, 2.0, 3.0, 4.0, 5.0, 8.8, 12.0, 12.0, 12.0], own);
        assert!((p.at_queue() + 12.0).abs() < 1e-9, "{}", p.at_queue());
        assert_eq!(p.not_won(), 0);
        // Equal to the drive's best is no win; depths below 64 are not tested.
        assert_eq!(pair([0.0, 0.0, 0.0, 0.0, 0.0, 8.8, 12.0, 11.0, 10.9], own).not_won(), 2);
    }
}
