//! D4: whether equation 6 predicts completions, with one command at the drive and with two.
//!
//! Reuther and Pohlack (2003), section 4.3.1 and figure 6. The next request is either known while
//! its predecessor is in service, or dispatched after the completion. In addition to requests in
//! order of arrival, the table has those that SATF chose among 32: it prefers sectors that the head
//! only just reaches, and so meets every error of the model.

use headtime_sched::{Order, PredictionStats};
use headtime_sim::workload::variates::Share;
use headtime_sim::workload::{GroupSpec, PatternSpec, closed};

use crate::common::load_run::Choice;
use crate::common::predictions::{self, percent};
use crate::experiment::{Check, Claim, Experiment, Findings, Length, Run, RunError, Spec, Test};

/// The experiment.
pub(crate) const D4: Experiment = Experiment { spec: &SPEC, steps: 8, run };

const PREDICTION_RULE: &str =
    "at least 97.5% within 50 us with two, in order and chosen by SATF; fewer whole turns with two than with one";

static SPEC: Spec = Spec {
    id: "D4",
    title: "Predicted service time without and with two outstanding",
    source: "Reuther, Pohlack, Rotational-Position-Aware Real-Time Disk Scheduling Using a Dynamic Active Subset \
            (2003), section 4.3.1, figure 6",
    drive: "ultrastar36z15, barracuda36es2",
    workload: "random requests of 4 KiB, half of them writes: as many as are at the drive, in order; 32 in the system, \
            chosen by SATF",
    claims: &[
        Claim {
            id: "D4a",
            claim: "predicted service time without and with two outstanding, Ultrastar 36Z15",
            paper: "some one turn late; nearly all right",
            rule: PREDICTION_RULE,
            checks: &CHECKS,
            quick: true,
            note: NOTE,
        },
        Claim {
            id: "D4b",
            claim: "the same, Barracuda 36ES2",
            paper: "some one turn late; nearly all right",
            rule: PREDICTION_RULE,
            checks: &CHECKS,
            quick: true,
            note: NOTE,
        },
    ],
    length: Length::Seconds,
    alone: false,
};

const CHECKS: [Check; 3] = [
    Check { what: "within 50 us with two, in order", unit: "%", test: Test::AtLeast(97.5) },
    Check { what: "within 50 us with two, chosen by SATF", unit: "%", test: Test::AtLeast(97.5) },
    Check { what: "orders in which two lose no fewer turns than one", unit: "cases", test: Test::Never },
];

const NOTE: &str = "With one command at the drive the host must guess from its completion, which is late by chance, \
        when the platter began to turn towards the next request; with two that time is the drive's own. What is wrong \
        is nearly always wrong by a whole turn, as in the paper: the arm was some 20 us later or sooner than its table \
        says, and the sector was just missed or just caught.";

/// Outstanding requests under SATF: the queue depth of the paper's drives.
const QUEUE: u32 = 32;

/// Small requests, half of them writes, with `tasks` outstanding.
fn small(tasks: u32) -> GroupSpec {
    let reads = const { Share::new(1, 2).unwrap() };
    GroupSpec { pattern: PatternSpec { reads, ..PatternSpec::random_reads(4096) }, ..closed(tasks) }
}

/// Results of one drive.
struct Measured {
    in_order: [PredictionStats; 2],
    chosen: [PredictionStats; 2],
}

impl Measured {
    fn of(run: &Run, drive: &'static str) -> Result<Measured, RunError> {
        let measure = |tasks, choice| predictions::chosen(&SPEC, run, drive, small(tasks), choice);
        Ok(Measured {
            in_order: [measure(1, Choice::OneByOne(Order::Fcfs))?, measure(2, Choice::Outside(Order::Fcfs))?],
            chosen: [measure(QUEUE, Choice::OneByOne(Order::Sptf))?, measure(QUEUE, Choice::Outside(Order::Sptf))?],
        })
    }

    fn figures(&self) -> [f64; 3] {
        let within = |p: &PredictionStats| percent(p.within_50us, p.samples);
        let late = |p: &PredictionStats| percent(p.extra_turn, p.samples);
        let worse = [&self.in_order, &self.chosen].iter().filter(|[one, two]| late(two) >= late(one)).count();
        [within(&self.in_order[1]), within(&self.chosen[1]), worse as f64]
    }
}

fn run(run: &Run) -> Result<Findings, RunError> {
    let ibm = Measured::of(run, "ultrastar36z15")?;
    let seagate = Measured::of(run, "barracuda36es2")?;
    let rows = [
        ("ultrastar36z15, one, in order", &ibm.in_order[0]),
        ("ultrastar36z15, two, in order", &ibm.in_order[1]),
        ("ultrastar36z15, one, SATF", &ibm.chosen[0]),
        ("ultrastar36z15, two, SATF", &ibm.chosen[1]),
        ("barracuda36es2, one, in order", &seagate.in_order[0]),
        ("barracuda36es2, two, in order", &seagate.in_order[1]),
        ("barracuda36es2, one, SATF", &seagate.chosen[0]),
        ("barracuda36es2, two, SATF", &seagate.chosen[1]),
    ];
    let mut f = Findings::default();
    f.figure("D4a", &ibm.figures());
    f.figure("D4b", &seagate.figures());
    f.tables.push(predictions::summary(&rows));
    f.tables.push(predictions::table(&rows));
    for (name, m) in [("Ultrastar 36Z15", &ibm), ("Barracuda 36ES2", &seagate)] {
        for (outstanding, p) in ["one", "two"].iter().zip(&m.chosen) {
            let title = format!("Prediction error, {outstanding} outstanding, SATF among {QUEUE}, {name}");
            f.charts.push(predictions::chart(&title, p));
        }
    }
    Ok(f)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stats(samples: u64, within_50us: u64, extra_turn: u64) -> PredictionStats {
        let mut stats = PredictionStats::default();
        (stats.samples, stats.within_50us, stats.extra_turn) = (samples, within_50us, extra_turn);
        stats
    }

    #[test]
    fn two_that_lose_as_many_turns_as_one_are_counted() {
        let better = [stats(1000, 980, 20), stats(1000, 995, 5)];
        let same = [stats(1000, 980, 20), stats(2000, 1960, 40)];
        let m = Measured { in_order: better.clone(), chosen: better.clone() };
        assert_eq!(m.figures(), [99.5, 99.5, 0.0]);
        let m = Measured { in_order: better, chosen: same };
        assert_eq!(m.figures(), [99.5, 98.0, 1.0]);
    }
}
