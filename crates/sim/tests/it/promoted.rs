//! The rest of background work can be promoted to foreground requests.

use headtime_disk::{Kind, Time, profile};
use headtime_sched::{Algorithm, FillConfig, Order, TaskEvent, TaskRange, TaskSpec};
use headtime_sim::background::{Job, Jobs};
use headtime_sim::observe::Observer;
use headtime_sim::run::Limits;
use headtime_sim::simulate::{Setup, Simulation};
use headtime_sim::stats::{End, Stats};
use headtime_sim::workload::{Population, oltp};

/// 64 blocks of 4 KiB, far apart.
const BLOCKS: u64 = 64;

#[derive(Default)]
struct Got(Vec<u64>);

impl Observer for Got {
    fn background(&mut self, event: &TaskEvent, _: Time) {
        if let TaskEvent::Delivered { range, .. } = event {
            assert_eq!(range.count, 8);
            self.0.push(range.lbn);
        }
    }
}

fn go(promoted_blocks: u64) -> (Stats, Vec<u64>) {
    let profile = profile::builtin("atlas10k").unwrap();
    let setup = Setup::new(&profile, Order::Sptf, 1).filled(FillConfig::new(Algorithm::Headtime));
    let simulation = Simulation::new(&setup).unwrap();
    let mut programs = Population::of(&oltp(), simulation.target(), 1).unwrap();
    let ranges = (0..BLOCKS).map(|i| TaskRange { lbn: i * 280_000, count: 8 }).collect();
    let task = TaskSpec { kind: Kind::Read, ranges, blksize: 8, min_pickup: 8 };
    let job = Job { name: "blocks".into(), priority: 1, tasks: vec![task], again: false };
    let mut jobs = Jobs::new(vec![job]).promoting_last(promoted_blocks * 8);
    let limits = Limits { until: Some(Time(600_000_000_000)), until_scanned: true, ..Limits::default() };
    let mut got = Got::default();
    let stats = simulation.run_with(&mut programs, &mut jobs, limits, None, &mut got).unwrap();
    (stats, got.0)
}

#[test]
fn the_last_blocks_of_a_job_are_promoted_and_each_comes_once() {
    let (slow, _) = go(0);
    let (quick, mut got) = go(BLOCKS - 1);
    assert_eq!(quick.end, End::Scanned);
    got.sort_unstable();
    assert_eq!(got, (0..BLOCKS).map(|i| i * 280_000).collect::<Vec<_>>());
    assert!(quick.background.done_at.unwrap() < Time(slow.ended_at.0 / 2), "{} {}", quick.ended_at, slow.ended_at);
    // Promoted or not, they do not count as the programs' requests.
    assert_eq!(quick.requests, quick.reads.samples() + quick.writes.samples());
}
