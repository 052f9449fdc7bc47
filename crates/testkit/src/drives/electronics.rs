//! Arm, bus, cache, queue and noise of a drawn drive.

use headtime_disk::Dur;
use headtime_disk::profile::{
    BusSpec, ByLast, CacheSpec, Electronics, FirmwareOrder, MechanicsSpec, NoiseSpec, Overheads, Prefetch, QueueSpec,
    QueuedOverheads,
};

use super::choose::Choose;

/// What the layout needs to know of the arm: skews cover its times.
pub(super) struct Moving {
    /// Revolutions per minute, a ratio.
    rpm: (u64, u64),
    /// Time to the next cylinder, us.
    pub(super) shortest_us: u64,
    pub(super) head_switch_us: u64,
}

impl Moving {
    /// Period of a revolution, us.
    pub(super) fn period_us(&self) -> f64 {
        60e6 * self.rpm.1 as f64 / self.rpm.0 as f64
    }

    /// The arm with a seek curve over the stroke: root of the distance, then a line.
    pub(super) fn spec(&self, choose: &mut Choose, cylinders: u32, classes: &mut Vec<&'static str>) -> MechanicsSpec {
        if self.head_switch_us <= self.shortest_us {
            classes.push("switch within the shortest seek");
        }
        let stroke = f64::from(cylinders.saturating_sub(1).max(2));
        let full_us = choose.real(7_000.0, 20_000.0);
        let root_share = choose.real(0.4, 0.9);
        let beyond = full_us - self.shortest_us as f64;
        let time = |d: u32| {
            let part = (f64::from(d) - 1.0) / (stroke - 1.0);
            let us = self.shortest_us as f64 + beyond * (root_share * part.sqrt() + (1.0 - root_share) * part);
            (d, Dur((us * 1e3) as u64))
        };
        let mut distances: Vec<u32> = Vec::new();
        let mut d = 1.0;
        while d < stroke {
            distances.push(d as u32);
            d = (d * 1.25).max(d + 1.0);
        }
        distances.push(stroke as u32);
        distances.dedup();
        MechanicsSpec {
            rpm: self.rpm,
            seek: distances.into_iter().map(time).collect(),
            write_seek: None,
            head_switch: Dur::from_us(self.head_switch_us),
            write_settle_ns: choose.whole(0, 600_000) as i64,
            read_on_arrival: choose.chance(40),
            write_on_arrival: choose.chance(40),
            keep_passing: choose.chance(25),
        }
    }
}

/// Speed and shortest moves.
pub(super) fn mechanics(choose: &mut Choose) -> Moving {
    let rpm = choose.one(&[(5_400, 1), (5_900, 1), (7_200, 1), (72_471, 10), (10_025, 1), (15_000, 1)]);
    Moving { rpm, shortest_us: choose.whole(250, 1_400), head_switch_us: choose.whole(120, 1_600) }
}

/// Bus, overheads, cache and queue.
pub(super) fn electronics(choose: &mut Choose, sector_bytes: u32, classes: &mut Vec<&'static str>) -> Electronics {
    let us = |choose: &mut Choose, from, to| Dur::from_us(choose.whole(from, to));
    let both = |t: Dur| ByLast { after_read: t, after_write: t };
    let block = choose.log(853_333, 25_600_000);
    let (miss, hit) = (us(choose, 20, 400), us(choose, 20, 250));
    let write = us(choose, 20, 400);
    let queued = us(choose, 0, 120);
    let depth = choose.one(&[1, 4, 32, 32, 32]) as u32;
    classes.push(if depth == 1 { "one command at a time" } else { "queue" });
    let segments = if choose.chance(10) { 0 } else { choose.log(1, 64) as u32 };
    if segments == 0 {
        classes.push("no cache");
    }
    let segment_sectors = (choose.log(128, 4_096) as u32 * 512 / sector_bytes).max(32);
    let some = choose.whole(8, u64::from(segment_sectors)) as u32;
    let prefetch = match (segments, choose.whole(0, 4)) {
        (0, _) | (_, 0) => Prefetch::None,
        (_, 1) => Prefetch::TrackAhead,
        (_, 2) => Prefetch::ToTrackEnd(some),
        (_, 3) => Prefetch::ToCylinderEnd(some),
        _ => Prefetch::Sectors(some),
    };
    Electronics {
        bus: BusSpec {
            read_block_ps: block,
            write_block_ps: block,
            hold_for_reads: choose.chance(60),
            hold_for_writes: true,
            ..BusSpec::default()
        },
        overheads: Overheads {
            read_hit: both(hit),
            read_miss: both(miss),
            write_hit: both(hit),
            write_miss: both(write),
            read_completion: us(choose, 0, 60),
            write_completion: us(choose, 0, 60),
            queued: QueuedOverheads { read_read: queued, read_write: queued, write_read: queued, write_write: queued },
            ..Overheads::default()
        },
        cache: CacheSpec {
            segments,
            segment_sectors,
            prefetch,
            prefetch_on_idle_hit: choose.chance(50),
            stop_in_sector: choose.chance(70),
            prefetch_only_sequential: choose.chance(20),
            same_track_prefetch_delays: choose.chance(25),
            keep_delivered: choose.chance(75),
            ..Electronics::neutral().cache
        },
        queue: QueueSpec {
            depth,
            order: if choose.chance(60) { FirmwareOrder::Sptf } else { FirmwareOrder::Fcfs },
            ..QueueSpec::default()
        },
    }
}

/// Randomness, from hardly any to twice that of the built-in drives; the speed is not quite the
/// nominal one.
pub(super) fn noise(choose: &mut Choose, classes: &mut Vec<&'static str>) -> NoiseSpec {
    let sd = choose.whole(0, 40);
    let late = choose.chance(30);
    let retries = choose.chance(50);
    let recalibrates = choose.chance(25);
    if sd > 25 {
        classes.push("noisy");
    }
    let speed_error = choose.whole(0, 1_000_000) as i64 - 500_000;
    NoiseSpec {
        seek_sd: Dur::from_us(sd),
        seek_max: Dur::from_us(3 * sd),
        completion_jitter: Dur::from_us(choose.whole(0, 30)),
        late_completion_ppm: if late { choose.whole(10, 500) as u32 } else { 0 },
        late_completion_max: Dur::from_us(if late { choose.whole(500, 5_000) } else { 0 }),
        overlap_jitter_per_4k: Dur::from_us(choose.whole(0, 12)),
        settle_retry_ppm: if retries { choose.whole(5, 50) as u32 } else { 0 },
        settle_retry_turns: if retries { choose.whole(1, 4) as u32 } else { 0 },
        recalibrate_every: Dur::from_secs(if recalibrates { choose.whole(120, 1_200) } else { 0 }),
        recalibrate_takes: Dur::from_us(if recalibrates { choose.whole(100_000, 700_000) } else { 0 }),
        speed_error_ppb: speed_error,
        speed_drift_ppb: choose.whole(0, 3_000) as u32,
        ..NoiseSpec::default()
    }
}
