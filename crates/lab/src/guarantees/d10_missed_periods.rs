//! D10: no mandatory request misses its period, whatever was admitted and however noisy the drive
//! is within its worst case.
//!
//! The guarantee of Reuther and Pohlack (2003), section 3.2, is tested with random sets of streams:
//! mandatory and optional ones of two request sizes and several periods. Eight are submitted one by
//! one; the admitted ones run with best effort of one of four kinds. Their drive is noisier than
//! the one on which X was measured: the frequency of settling failures, the frequency of repeated
//! ones, and the variation of seeks are drawn for each set. If the drive settles two or more
//! revolutions sooner than w allows for, its seeks vary by more than w allows for: those
//! revolutions compensate. The Barracuda has one such revolution, so its seeks keep to the
//! profile's limits.
//!
//! In two sets of three, best effort and each stream have separate parts of the drive. In the third
//! all share one region with many writes: a request that overlaps an older one, one of them a
//! write, waits for that, and the older one may be best effort that is not eligible. Mandatory
//! streams there declare for how many they may wait (`blocked-by`, docs/guarantees.md), and the
//! test checks the declaration against the recorded requests. In the smallest region, where
//! requests often wait, they declare as many as can be outstanding together, and optional streams
//! do too.
//!
//! Whether a request is in time is derived from when it was due and done, not from the scheduler's
//! own account.

use std::collections::BTreeMap;

use headtime_disk::Dur;
use headtime_disk::profile::Profile;
use headtime_plot::{Axis, Chart, Series, Style, XyChart};
use headtime_sched::streams::{Admitted, Disk, Exhausted, Ledger, Quality, Stream, admit_under};
use headtime_sim::stats::Stats;
use headtime_sim::workload::variates::{Share, Variates};
use headtime_sim::workload::{Arrivals, GroupSpec, PatternSpec, PlaceSpec, SizeSpec, StreamSpec, Think, oltp};

use super::blocking_count::BlockingCount;
use crate::common::guarantee_check::margin;
use crate::common::load_run::random_reads;
use crate::common::stream_run::{BestEffort, DRIVES, StreamRun, WAITING, drive, known, measured};
use crate::experiment::{Cell, Check, Claim, Experiment, Findings, Length, Run, RunError, Spec, Table, Test, failed};

/// The experiment.
pub(crate) const D10: Experiment = Experiment { spec: &SPEC, steps: 1_000, run };

static SPEC: Spec = Spec {
    id: "D10",
    title: "Mandatory requests that miss their period",
    source: "Reuther, Pohlack, Rotational-Position-Aware Real-Time Disk Scheduling Using a Dynamic Active Subset \
            (2003), section 3.2",
    drive: "ultrastar36z15 and barracuda36es2 in turn, noisier than their profiles' X",
    workload: "1,000 random admitted sets of streams (quick: 24) of 8 and 64 KiB, mandatory and optional, ten \
               minutes each (quick: 30 s), beside best effort; a third of them with everything in one region, with \
               writes",
    claims: &[Claim {
        id: "D10",
        claim: "mandatory requests that miss their period, 1,000 random admitted sets, ten minutes each in virtual \
                time, drive's truth noisier than its profile's X but within w",
        paper: "0",
        rule: "0; qualities are counted and not judged, since the drives are slower than the X that they are promised \
               from",
        checks: &[
            Check { what: "mandatory requests not done in their period", unit: "cases", test: Test::Never },
            Check { what: "of these in sets with one region for all", unit: "cases", test: Test::Never },
            Check { what: "commands that took longer than the worst case", unit: "cases", test: Test::Never },
            Check {
                what: "requests that waited for more older ones than their stream says",
                unit: "cases",
                test: Test::Never,
            },
        ],
        quick: true,
        note: "",
    }],
    length: Length::Minutes,
    alone: false,
};

/// Request sizes of streams, bytes.
const SIZES: [u64; 2] = [8 << 10, 64 << 10];
/// Number of bins of X merged into one, because eight streams are tried for each set. Times are
/// rounded up, which is the safe side.
const MERGED_BINS: u32 = 5;
/// Streams tried per set.
const TRIED_STREAMS: u64 = 8;
/// Every third set has one region for all.
const SHARED_REGION_EVERY: u64 = 3;
/// The region's part of the drive, and the number of older requests that a mandatory request may
/// wait for there (`blocked-by`). In the smallest, 1 to 2 MB, [few](Few) can be outstanding, and
/// the number is that. In the others up to a hundred requests of best effort are outstanding, and
/// chains are rare: of 26 million requests (seeds 1 to 3) none waited for more than two in the
/// second and one in the last; one more is counted.
const REGIONS: [(f64, Option<u32>); 3] = [(0.00005, None), (0.05, Some(3)), (1.0, Some(2))];
/// For `Few`, the most tasks of best effort, streams, and requests of each in a period.
const MAX_OF_FEW: u64 = 3;
/// Their periods, ms: those of one row.
const FEW_PERIODS: [&[u64]; 4] = [&[500], &[250, 500, 1_000], &[1_000, 2_000, 3_000], &[100, 400]];
/// Settling fails after 10^n moves in a million, n from `FAILS_FROM` and one of `FAILS_POWERS`: 0.1
/// to 10%.
const FAILS_FROM: u32 = 3;
const FAILS_POWERS: u64 = 3;
/// Revolutions by which a drive must settle sooner than w allows for, if its seeks vary by more
/// than w allows for: one for a seek, one for a move at the end of a track that comes too late for
/// its skew.
const MADE_UP_FOR: u32 = 2;
/// Largest variation of such seeks, as a multiple of what w allows for.
const SEEKS_DIFFER: u64 = 4;
/// Best effort's part of the drive, from its beginning; each stream has one after it.
const BEST_EFFORT_PART: f64 = 0.2;
/// Periods of a set, ms: those of one row.
const PERIODS: [&[u64]; 4] = [&[500], &[250, 500, 1_000], &[200, 300, 700], &[100, 400]];
/// Fewest periods of a stream whose quality is compared with the requested one.
const MIN_PERIODS: u64 = 30;

fn run(run: &Run) -> Result<Findings, RunError> {
    let sets = run.length(1_000, 24);
    let samples = (run.length(100_000, 20_000), run.seed);
    let disks = DRIVES.map(|name| {
        let profile = measured(&SPEC, &drive(&SPEC, name)?, &SIZES, WAITING, MERGED_BINS, samples)?;
        let disk = known(&SPEC, &profile)?;
        Ok::<_, RunError>((profile, disk))
    });
    let disks = disks.into_iter().collect::<Result<Vec<_>, _>>()?;
    let mut all = Tally::default();
    let mut rows = Vec::new();
    for set in 0..sets {
        let (profile, disk) = &disks[(set % 2) as usize];
        let mut rng = Variates::new(run.seed, (1 << 51) + set);
        let region = (set % SHARED_REGION_EVERY == SHARED_REGION_EVERY - 1).then(|| Region::drawn(&mut rng));
        let (specs, admitted) = admitted_set(disk, region, &mut rng)?;
        // In separate parts no request overlaps another.
        let says = |s: &StreamSpec| s.quality.is_mandatory() || s.blocked_by > 0;
        let said = specs.iter().map(|s| says(s).then_some(s.blocked_by)).collect();
        let mut waits = BlockingCount::new(said);
        let bench = StreamRun {
            truth: Some(noisier(profile, &mut rng)),
            best_effort: BestEffort::Tasks(best_effort(region, &mut rng)),
            length: Dur::from_secs(run.length(600, 30)),
            seed: run.seed.wrapping_mul(1_000_003).wrapping_add(set),
            ..StreamRun::new(profile, disk, specs, WAITING)
        };
        let stats = bench.run(&SPEC, &mut waits)?;
        rows.push(all.count(set, region, profile, &admitted, &stats, &waits));
        run.progress.advance(1_000 * (set + 1) / sets - 1_000 * set / sets);
    }
    let mut f = Findings::default();
    f.figure("D10", &[all.missed, all.missed_together, all.overdue, all.beyond].map(|n| n as f64));
    f.notes.push(("D10", all.words()));
    f.tables.push(Table { name: "sets", columns: COLUMNS, rows });
    f.charts.push(all.chart());
    Ok(f)
}

/// Returns a drive that is noisier than the one of X and stays within w. Its head settles within
/// the revolutions that w allows for, or sooner; if sooner by enough, its seeks vary by more than w
/// allows for.
fn noisier(profile: &Profile, rng: &mut Variates) -> Profile {
    let mut p = profile.clone();
    let most = p.noise.settle_retry_turns;
    let turns = rng.below(u64::from(most) + 1) as u32;
    let (ppm, again) = (10u32.pow(FAILS_FROM + rng.below(FAILS_POWERS) as u32), 100_000 * rng.below(10) as u32);
    let times = 1 + rng.below(SEEKS_DIFFER);
    p.noise.settle_retry_turns = turns;
    (p.noise.settle_retry_ppm, p.noise.settle_retry_again_ppm) = if turns > 0 { (ppm, Some(again)) } else { (0, None) };
    if most - turns >= MADE_UP_FOR {
        p.noise.seek_max = Dur(p.noise.seek_max.0 * times);
    }
    p.noise.seek_sd = p.noise.seek_max;
    p
}

/// A region shared by all, as shares of the drive.
#[derive(Clone, Copy, Debug)]
struct Region {
    from: f64,
    width: f64,
    /// Older requests that a mandatory request may wait for.
    older: u32,
    few: Option<Few>,
}

/// Bounds of outstanding requests in a region with frequent overlaps: optional streams declare them
/// too.
#[derive(Clone, Copy, Debug)]
struct Few {
    /// Tasks of best effort.
    tasks: u32,
    streams: usize,
    /// Most requests of each stream in a period.
    requests: u32,
}

impl Few {
    fn drawn(rng: &mut Variates) -> Few {
        let mut upto = || 1 + rng.below(MAX_OF_FEW) as u32;
        Few { tasks: upto(), streams: upto() as usize, requests: upto() }
    }

    /// Most outstanding requests of others.
    fn older(self) -> u32 {
        self.tasks + self.requests * (self.streams as u32 - 1)
    }
}

impl Region {
    fn drawn(rng: &mut Variates) -> Region {
        let (width, rare) = REGIONS[rng.below(REGIONS.len() as u64) as usize];
        let from = (1.0 - width) * rng.below(1_000) as f64 / 1_000.0;
        let few = Few::drawn(rng);
        match rare {
            Some(older) => Region { from, width, older, few: None },
            None => Region { from, width, older: few.older(), few: Some(few) },
        }
    }

    fn place(self) -> PlaceSpec {
        PlaceSpec::Part { from: self.from, to: (self.from + self.width).min(1.0) }
    }
}

/// The admitted streams of those tried, and the result of admission.
fn admitted_set(
    disk: &Disk,
    region: Option<Region>,
    rng: &mut Variates,
) -> Result<(Vec<StreamSpec>, Admitted), RunError> {
    let few = region.and_then(|region| region.few);
    let (rows, most) = few.map_or((PERIODS, TRIED_STREAMS as usize), |few| (FEW_PERIODS, few.streams));
    let periods = rows[rng.below(rows.len() as u64) as usize];
    let (mut specs, mut ledger) = (Vec::new(), Ledger::new(disk.clone()).under(Exhausted::Skip));
    while specs.is_empty() {
        for _ in 0..TRIED_STREAMS {
            let (spec, stream) = stream(specs.len(), periods, region, rng)?;
            if specs.len() < most && ledger.try_add(stream).is_ok() {
                specs.push(spec);
            }
        }
    }
    // With more than five optional streams not all orders are tried, and a joint test tries others
    // than successive ones.
    loop {
        match admit_under(disk, Exhausted::Skip, &ledger.streams()[..specs.len()]) {
            Ok(admitted) => return Ok((specs, admitted)),
            Err(_) if specs.len() > 1 => _ = specs.pop(),
            Err(e) => return Err(failed(&SPEC, e)),
        }
    }
}

/// Draws a stream that requests up to a third of the drive's time: an optional one by its mean, a
/// mandatory one by its worst case, without blocking time. With [few](Few), less.
fn stream(
    number: usize,
    periods: &[u64],
    region: Option<Region>,
    rng: &mut Variates,
) -> Result<(StreamSpec, Stream), RunError> {
    let ms = periods[rng.below(periods.len() as u64) as usize];
    let bytes = SIZES[rng.below(2) as usize];
    let mandatory = rng.chance(HALF);
    let quality = match mandatory {
        true => Quality::MANDATORY,
        false => Quality::from_ppm(500_000 + rng.below(499_000) as u32).map_err(|e| failed(&SPEC, e))?,
    };
    let few = region.and_then(|region| region.few);
    let most = few.map_or(ms / if mandatory { 90 } else { 20 }, |few| u64::from(few.requests));
    let requests = 1 + rng.below(most.max(1)) as u32;
    let mut spec = StreamSpec::new(format!("stream {}", number + 1), requests, Dur::from_ms(ms), quality);
    spec.pattern = PatternSpec::random_reads(bytes);
    // All of its part, or one end of it.
    let from = BEST_EFFORT_PART + (1.0 - BEST_EFFORT_PART) * number as f64 / TRIED_STREAMS as f64;
    let width = (1.0 - BEST_EFFORT_PART) / TRIED_STREAMS as f64;
    let own = PlaceSpec::Part { from, to: (from + width / [1.0, 20.0][rng.below(2) as usize]).min(1.0) };
    spec.pattern.place = region.map_or(own, Region::place);
    if rng.chance(HALF) {
        spec.pattern.reads = Share::NONE;
    }
    let sectors = (bytes / 512) as u32;
    spec.blocked_by = region.filter(|r| mandatory || r.few.is_some()).map_or(0, |region| region.older);
    let stream = Stream::new(requests, spec.period, quality, sectors).map_err(|e| failed(&SPEC, e))?;
    let stream = stream.only(spec.kinds()).blocked_by(spec.blocked_by).map_err(|e| failed(&SPEC, e))?;
    Ok((spec, stream))
}

/// One half.
const HALF: Share = match Share::new(1, 2) {
    Some(half) => half,
    None => Share::NONE,
};

/// The best effort next to the streams; in a shared region it always includes writes.
fn best_effort(region: Option<Region>, rng: &mut Variates) -> GroupSpec {
    let mixed = |tasks, think| GroupSpec { arrivals: Arrivals::Closed { tasks, think }, ..oltp() };
    let mut group = match rng.below(4) {
        0 => random_reads(64 << 10, WAITING),
        1 => random_reads(4 << 10, 100),
        // Many writes of all sizes, under constant backlog.
        2 => {
            let mut many = mixed(20, Think::None);
            many.pattern.size = SizeSpec::Uniform { min_bytes: 4 << 10, max_bytes: 256 << 10, step_bytes: 4 << 10 };
            many
        }
        // A drive with occasional idle time.
        _ => mixed(10, Think::Exponential(Dur::from_ms(100))),
    };
    group.pattern.place = region.map_or(PlaceSpec::Part { from: 0.0, to: BEST_EFFORT_PART }, Region::place);
    if region.is_some() && group.pattern.reads == Share::ALL {
        group.pattern.reads = HALF;
    }
    if let Arrivals::Closed { tasks, .. } = &mut group.arrivals
        && let Some(few) = region.and_then(|region| region.few)
    {
        *tasks = few.tasks;
    }
    group
}

/// The totals of all sets.
#[derive(Debug, Default)]
struct Tally {
    /// Mandatory requests, and those that were late.
    mandatory: u64,
    missed: u64,
    /// Late requests in sets with a shared region, and the number of such sets with one or more.
    missed_together: u64,
    sets_missed_together: u64,
    sets_together: u64,
    overdue: u64,
    /// Requests that waited for more older ones than their stream declares, and the largest number
    /// that one waited for.
    beyond: u64,
    most: u32,
    /// Optional streams, and those below their requested quality by more than chance explains.
    optional: u64,
    below: u64,
    /// Achieved less requested quality of optional streams, in percentage points.
    margins: Vec<f64>,
    /// Sets by the worst-case share of mandatory streams, in tenths.
    loads: BTreeMap<u64, u64>,
}

const COLUMNS: &[&str] = &[
    "set",
    "drive",
    "one_region_percent",
    "streams",
    "mandatory_streams",
    "worst_load_percent",
    "expected_load_percent",
    "mandatory_requests",
    "missed",
    "least_margin_points",
    "below_beyond_chance",
    "overdue",
    "most_older_waited_for",
    "waited_for_more_than_said",
];

impl Tally {
    fn count(
        &mut self,
        set: u64,
        region: Option<Region>,
        profile: &Profile,
        admitted: &Admitted,
        stats: &Stats,
        waits: &BlockingCount,
    ) -> Vec<Cell> {
        let (mut requests, mut missed, mut below) = (0, 0, 0u64);
        let mut least = f64::INFINITY;
        let mut mandatory = 0u64;
        for s in &stats.streams {
            if s.stream.is_mandatory() {
                mandatory += 1;
                requests += s.periods() * u64::from(s.stream.requests);
                missed += s.missed();
                continue;
            }
            self.optional += 1;
            let margin = margin(s);
            self.margins.extend(margin);
            least = least.min(margin.unwrap_or(f64::INFINITY));
            let chance = s.quality_plus_minus().map_or(f64::INFINITY, |q| 100.0 * q);
            below += u64::from(s.periods() >= MIN_PERIODS && margin.is_some_and(|m| m < -chance));
        }
        self.mandatory += requests;
        self.missed += missed;
        self.below += below;
        let width = region.map_or(0.0, |r| 100.0 * r.width);
        if region.is_some() {
            self.sets_together += 1;
            self.missed_together += missed;
            self.sets_missed_together += u64::from(missed > 0);
        }
        self.overdue += stats.overdue_commands;
        self.beyond += waits.beyond;
        self.most = self.most.max(waits.most);
        *self.loads.entry(admitted.load.worst_ppm / 100_000).or_default() += 1;
        let streams = stats.streams.len() as f64;
        let share = |ppm: u64| ppm as f64 / 1e4;
        let figures = [
            width,
            streams,
            mandatory as f64,
            share(admitted.load.worst_ppm),
            share(admitted.load.expected_ppm),
            requests as f64,
            missed as f64,
            if least.is_finite() { least } else { 0.0 },
            below as f64,
            stats.overdue_commands as f64,
            f64::from(waits.most),
            waits.beyond as f64,
        ];
        [Cell::from(set as f64), Cell::from(&*profile.name)].into_iter().chain(figures.map(Cell::from)).collect()
    }

    fn words(&self) -> String {
        let mean = self.margins.iter().sum::<f64>() / (self.margins.len().max(1) as f64);
        let least = self.margins.iter().copied().fold(f64::INFINITY, f64::min);
        format!(
            "{} mandatory requests; {} of {} sets with one region for all have late ones; the most older \
             requests that one waited for are {}. {} optional streams had \
             {mean:+.2} points more than they asked for in the mean and {least:+.2} the least; {} of them had less \
             by more than chance explains (95%), on drives that are slower than X says.",
            self.mandatory, self.sets_missed_together, self.sets_together, self.most, self.optional, self.below
        )
    }

    fn chart(mut self) -> Chart {
        self.margins.sort_by(f64::total_cmp);
        Chart::Xy(XyChart {
            title: "Optional streams on a drive that is noisier than X".into(),
            subtitle: "Quality less that asked for, over all optional streams of all sets. Mandatory streams are not \
                    in it: they have all of theirs or the claim fails."
                .into(),
            x: Axis::linear("points more than asked for"),
            y: Axis::range("share of streams", 0.0, 1.0),
            series: vec![Series {
                name: "optional streams".into(),
                style: Style::Step,
                points: {
                    let n = self.margins.len();
                    self.margins.iter().enumerate().map(|(i, m)| (*m, (i + 1) as f64 / n as f64)).collect()
                },
            }],
        })
    }
}
