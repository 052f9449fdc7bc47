//! The loads of claim X8c: several streams, backward reads, local readers, a log, deep queues.
//!
//! Independent readers of the project found these: in each of them headtime once had less, down to
//! a twentieth, of the bare drive's rate. The p99 is in the table and not in the rule. Of several
//! streams the drive's own queue serves one until a request of another has waited for two seconds.
//! So only a few requests of the run wait, each for very long, and the p99 does not show them.

use headtime_disk::Dur;
use headtime_sim::workload::variates::Share;
use headtime_sim::workload::{Arrivals, Gaps, GroupSpec, HostTime, PatternSpec, PlaceSpec, SizeSpec, Think, closed};

use super::bare_drive::Point;

/// Number of loads: a drive has as many cells.
pub(super) const COUNT: usize = LOADS.len();

/// The load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Load {
    /// Sequential readers: their number, KiB of a read, requests outstanding each.
    Streams(u64, u64, u32),
    /// Backward readers, 128 KiB a read: their number, requests outstanding each.
    Backwards(u64, u32),
    /// A sequential reader of 64 KiB and a random one of 4 KiB.
    StreamAndRandom,
    /// A sequential reader of 64 KiB with two requests outstanding, and 30 random ones of 4 KiB.
    StreamAndMany,
    /// Random reads: KiB of a read, requests outstanding.
    Deep(u64, u32),
    /// Sequential writers, 64 KiB a write, two requests outstanding each.
    Writers(u64),
    /// A sequential writer of 64 KiB with two requests outstanding, and two random readers of 4
    /// KiB.
    WriterAndRandom,
    /// Three readers within a two-thousandth of the disk, and three anywhere, 8 KiB a read.
    LocalAndRandom,
    /// A log of 4 KiB, 50 forced writes per second, next to eight clients with a think time of 20
    /// ms.
    Log,
}

/// All of them.
const LOADS: [Load; 16] = [
    Load::Streams(2, 64, 2),
    Load::Streams(2, 128, 2),
    Load::Streams(3, 128, 4),
    Load::Streams(4, 256, 1),
    Load::Backwards(1, 1),
    Load::Backwards(1, 2),
    Load::Backwards(3, 1),
    Load::StreamAndRandom,
    Load::StreamAndMany,
    Load::Deep(256, 32),
    Load::Deep(4, 64),
    Load::Deep(4, 256),
    Load::Writers(2),
    Load::WriterAndRandom,
    Load::LocalAndRandom,
    Load::Log,
];

/// Host time from a completion to the same client's next request: between the figures of X8.
const HOST_US: u64 = 100;
const HOST: HostTime = HostTime::Fixed(Dur::from_us(HOST_US));

/// Requests of one run.
const REQUESTS: u64 = 20_000;

/// The cells of claim X8c.
pub(crate) fn points(drives: &[&'static str]) -> Vec<Point> {
    let point = |drive, load: Load| {
        let groups = load.groups();
        let closed = groups.iter().map(|group| match group.arrivals {
            Arrivals::Closed { tasks, .. } => tasks,
            Arrivals::Open { .. } => 0,
        });
        let outstanding = closed.sum();
        Point { drive, load: load.name(), outstanding, host_us: HOST_US, groups, requests: REQUESTS }
    };
    drives.iter().flat_map(|&drive| LOADS.map(|load| point(drive, load))).collect()
}

impl Load {
    /// Its name in the table.
    fn name(self) -> String {
        let outstanding = |n: u32| if n == 1 { "1 outstanding".to_owned() } else { format!("{n} outstanding each") };
        match self {
            Load::Streams(streams, kib, n) => format!("{streams} sequential readers, {kib} KiB, {}", outstanding(n)),
            Load::Backwards(readers, n) => format!("{readers} backward readers, 128 KiB, {}", outstanding(n)),
            Load::StreamAndRandom => "a sequential reader, 64 KiB, and a random one, 4 KiB".into(),
            Load::StreamAndMany => "a sequential reader, 64 KiB, 2 outstanding, and 30 random ones, 4 KiB".into(),
            Load::Writers(streams) => format!("{streams} sequential writers, 64 KiB, 2 outstanding each"),
            Load::WriterAndRandom => "a sequential writer, 64 KiB, 2 outstanding, and 2 random readers, 4 KiB".into(),
            Load::LocalAndRandom => "3 readers of 0.05% of the disk and 3 of all of it, 8 KiB".into(),
            Load::Deep(kib, n) => format!("random {kib} KiB reads, {n} outstanding"),
            Load::Log => "a log, 50 forced writes of 4 KiB a second, and 8 clients that think for 20 ms".into(),
        }
    }

    /// Its groups of clients.
    fn groups(self) -> Vec<GroupSpec> {
        let reads = |kib: u64, place| PatternSpec { place, ..PatternSpec::random_reads(kib << 10) };
        let group = |n: u32, pattern| GroupSpec { pattern, host: HOST, ..closed(n) };
        let writer = || PatternSpec { reads: Share::NONE, ..reads(64, PlaceSpec::SharedSequential) };
        match self {
            Load::Streams(streams, kib, n) => {
                (0..streams).map(|_| group(n, reads(kib, PlaceSpec::SharedSequential))).collect()
            }
            Load::Backwards(readers, n) => {
                (0..readers).map(|_| group(n, reads(128, PlaceSpec::SharedBackward))).collect()
            }
            Load::StreamAndRandom => {
                vec![group(1, reads(64, PlaceSpec::SharedSequential)), group(1, reads(4, PlaceSpec::Uniform))]
            }
            Load::StreamAndMany => {
                vec![group(2, reads(64, PlaceSpec::SharedSequential)), group(30, reads(4, PlaceSpec::Uniform))]
            }
            Load::Writers(streams) => (0..streams).map(|_| group(2, writer())).collect(),
            Load::WriterAndRandom => vec![group(2, writer()), group(2, reads(4, PlaceSpec::Uniform))],
            Load::LocalAndRandom => {
                vec![
                    group(3, reads(8, PlaceSpec::Part { from: 0.3, to: 0.3005 })),
                    group(3, reads(8, PlaceSpec::Uniform)),
                ]
            }
            Load::Deep(kib, n) => vec![group(n, reads(kib, PlaceSpec::Uniform))],
            Load::Log => {
                let log = PatternSpec { reads: Share::NONE, fua: true, ..reads(4, PlaceSpec::SharedSequential) };
                let size = SizeSpec::Exponential { mean_bytes: 8192, step_bytes: 4096 };
                let mix =
                    PatternSpec { reads: const { Share::new(7, 10).unwrap() }, size, ..reads(4, PlaceSpec::Uniform) };
                let think = Think::Exponential(Dur::from_ms(20));
                vec![
                    GroupSpec {
                        arrivals: Arrivals::Open { mean_gap: Dur::from_ms(20), gaps: Gaps::Exponential },
                        ..group(1, log)
                    },
                    GroupSpec { arrivals: Arrivals::Closed { tasks: 8, think }, ..group(8, mix) },
                ]
            }
        }
    }
}
