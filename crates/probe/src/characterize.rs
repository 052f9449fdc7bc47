//! The complete characterisation, which produces a profile.

use std::collections::BTreeMap;

use headtime_disk::profile::{
    BusSpec, ByLast, CacheSpec, Electronics, Figure, FirmwareOrder, Knowledge, Known, Late, MechanicsSpec, NoiseSpec,
    Overheads, Prefetch, Profile, QueueSpec, QueuedOverheads,
};
use headtime_disk::{Dur, Geometry};

use crate::device::Device;
use crate::error::ProbeError;
use crate::findings::Findings;
use crate::habits::{self, Habits};
use crate::layout::lay_out;
use crate::map::Mapper;
use crate::overheads::{self, ReadOverheads};
use crate::sampler::{Sampler, Surprises};
use crate::seeks::{self, Seeks};
use crate::settling::{self, Lost};
use crate::shingled;
use crate::spindle::Spindle;
use crate::tracks::Tracer;
use crate::verify::{VerifyError, verify};
use crate::watch::{Finding, Watch};
use crate::writes::{self, Writes};

/// Options of a characterisation.
#[derive(Clone, Debug)]
pub struct Options {
    /// Seed of random requests.
    pub seed: u64,
    /// Limit of the device's time in minutes.
    pub budget_minutes: Option<u64>,
    /// Number of reads that verify the profile at the end.
    pub verified_by: usize,
    /// Number of requests of the search for settling failures and recalibrations. It takes hours,
    /// because they are rare. 0: no search.
    pub settling: u64,
    /// Range of sectors that may be overwritten, first and end: writes are timed too.
    pub writable: Option<(u64, u64)>,
}

/// Number of requests that meets an event of 10 in a million with a probability of 95%.
pub const THOROUGH_REQUESTS: u64 = 300_000;

impl Default for Options {
    fn default() -> Options {
        Options { seed: 1, budget_minutes: None, verified_by: 2_000, settling: 0, writable: None }
    }
}

/// The result of a characterisation.
#[derive(Clone, Debug)]
pub struct Found {
    /// The profile.
    pub profile: Profile,
    /// The findings as text, with their confidence.
    pub findings: Vec<Finding>,
    /// Unexpected events of the run.
    pub surprises: Surprises,
    /// Whether the profile predicts the drive well enough to be used: 95% of random reads within
    /// 150 us, and moves and angles of every class as predicted.
    pub good: bool,
}

/// Variation of the overlap of bus and media for each 4 KiB: not measured, but taken from the
/// literature.
const OVERLAP: (Dur, &str) = (Dur::from_us(10), "Lumb, Schindler and Ganger 2002, section 5.2: about 100 us for 40 KB");

/// Upper bound of read-ahead, sectors.
const MAX_READ_AHEAD_SECTORS: u32 = 1 << 20;

/// Characterises a drive by reading.
///
/// # Errors
/// The device fails, the budget is used up, the watcher stops the run, or it is not a rotating
/// disk.
pub fn characterize(device: &mut dyn Device, watch: &mut dyn Watch, options: &Options) -> Result<Found, ProbeError> {
    let mut sampler = Sampler::new(device, watch, options.seed);
    if let Some(minutes) = options.budget_minutes {
        sampler.limit(minutes);
    }
    let mut told = Findings::default();
    sampler.find_cache()?;
    let mut spindle = Spindle::find(&mut sampler)?;
    let mut tracer = Tracer { sampler: &mut sampler, spindle: &mut spindle };
    let spans = Mapper::new(&mut tracer).map()?;
    let laid = lay_out(&mut sampler, &mut spindle, &spans)?;
    let spec = laid.spec;
    told.tracks(&mut sampler, &spans, laid.slipped);
    told.layout(&mut sampler, laid.order, laid.sure);
    let built = Geometry::new(&spec).map_err(|e| unfit(e.to_string()))?;
    if built.capacity() != sampler.sectors() {
        return Err(unfit(format!("{} sectors instead of {}", built.capacity(), sampler.sectors())));
    }
    let distances = seeks::distances(seeks::longest(&built));
    let seeks = seeks::measure(&mut sampler, &mut spindle, &built, &distances)?;
    if seeks.points.is_empty() {
        return Err(unfit("no seek that takes the same time twice".into()));
    }
    told.seeks(&mut sampler, &seeks);
    let overheads = overheads::measure(&mut sampler, &mut spindle, &built, &seeks)?;
    told.overheads(&mut sampler, &overheads);
    let habits = habits::measure(&mut sampler, &mut spindle, &built, &seeks)?;
    told.habits(&mut sampler, &habits);
    told.rotation(&mut sampler, &spindle);
    let mut profile = Profile {
        name: "unnamed".into(),
        title: "A drive that was characterised".into(),
        year: None,
        synthesised: None,
        sources: sources(),
        sector_bytes: sampler.sector_bytes(),
        stated_sectors: Some(sampler.sectors()),
        geometry: spec,
        mechanics: mechanics(&spindle, &seeks, &habits),
        electronics: electronics(&sampler, &overheads, &habits),
        noise: noise(&seeks, overheads.jitter),
        known: known_by_reading(),
        rig: None,
        service_times: Vec::new(),
    };
    if let Some(region) = options.writable {
        let moved = shingled::moved(&mut sampler, &mut spindle, region)?;
        told.shingles(&mut sampler, &moved);
        let writes = writes::measure(&mut sampler, &mut spindle, &built, &seeks, region)?;
        told.writes(&mut sampler, &writes);
        take(&mut profile, &writes, sampler.depth());
    }
    let (good, late) = held_against(&mut sampler, &mut spindle, &mut told, (&profile, options.verified_by))?;
    profile.known.late = Some(late);
    if options.settling > 0 {
        let lost = settling::provoke(&mut sampler, &spindle, &seeks, overheads.read_miss.time, options.settling)?;
        told.settling(&mut sampler, Some(&lost));
        settled(&mut profile, &lost);
    } else {
        told.settling(&mut sampler, None);
    }
    Ok(Found { profile, findings: told.0, surprises: sampler.surprises().clone(), good })
}

/// Verifies an older profile against the drive, which takes a few minutes.
///
/// # Errors
/// As [`characterize`]; or the profile is another drive's.
pub fn recheck(
    device: &mut dyn Device,
    watch: &mut dyn Watch,
    options: &Options,
    old: &Profile,
) -> Result<Found, ProbeError> {
    let mut sampler = Sampler::new(device, watch, options.seed);
    if let Some(minutes) = options.budget_minutes {
        sampler.limit(minutes);
    }
    let mut told = Findings::default();
    sampler.find_cache()?;
    let mut spindle = Spindle::find(&mut sampler)?;
    let (good, _) = held_against(&mut sampler, &mut spindle, &mut told, (old, options.verified_by))?;
    Ok(Found { profile: old.clone(), findings: told.0, surprises: sampler.surprises().clone(), good })
}

/// Returns whether a profile predicts the drive.
fn held_against(
    sampler: &mut Sampler,
    spindle: &mut Spindle,
    told: &mut Findings,
    (profile, reads): (&Profile, usize),
) -> Result<(bool, Late), ProbeError> {
    let verdict = verify(sampler, spindle, profile, reads).map_err(|e| match e {
        VerifyError::Probe(e) => e,
        other => unfit(other.to_string()),
    })?;
    told.verdict(sampler, &verdict);
    Ok((verdict.good, verdict.late))
}

/// The figures of the worst case that are known when only reads were timed and no rare events were
/// searched for: zeros in the profile are then no findings.
fn known_by_reading() -> Known {
    let mut known = Known::default();
    let unseen = [
        Figure::SettleTurns,
        Figure::Recalibration,
        Figure::ReadAheadStop,
        Figure::WriteSettle,
        Figure::WriteOverheads,
    ];
    for figure in unseen {
        known.set(figure, Knowledge::Unknown);
    }
    known.set(Figure::SeekSpread, Knowledge::Measured("four times the spread of nine in ten of the seeks".into()));
    known.set(Figure::Overlap, Knowledge::Bounded(OVERLAP.1.into()));
    known
}

/// Applies the results of the search for rare events.
fn settled(profile: &mut Profile, lost: &Lost) {
    let how = format!("{} requests from edge to edge, {} of them late; {}", lost.requests, lost.retries, lost.unseen());
    for figure in [Figure::SettleTurns, Figure::Recalibration] {
        profile.known.set(figure, Knowledge::Measured(how.clone()));
    }
    let noise = &mut profile.noise;
    (noise.settle_retry_turns, noise.settle_retry_ppm) = (lost.turns, 0);
    if lost.turns > 0 {
        noise.settle_retry_ppm = (lost.retries * 1_000_000 / lost.requests.max(1)).max(1) as u32;
    }
    if let Some((every, _)) = lost.recalibrations {
        // The longest possible duration, because a worst case depends on it.
        (noise.recalibrate_every, noise.recalibrate_takes) = (every, lost.longest);
    }
    let said = "measured: completion jitter, by how much seeks differ, settling, recalibrations; [known] has the rest";
    profile.sources.insert("noise".into(), said.into());
}

/// Applies the results of writes to the profile of a drive with queue depth `depth`.
fn take(profile: &mut Profile, writes: &Writes, depth: u32) {
    let Some(through) = &writes.through else {
        profile.electronics.cache.write_back = true;
        profile.electronics.cache.dirty_segments = profile.electronics.cache.segments.max(1);
        return;
    };
    let o = &mut profile.electronics.overheads;
    if let Some(command) = through.command {
        let before = Dur(command.time.0.saturating_sub(o.write_completion.0));
        o.write_miss = ByLast { after_read: before, after_write: before };
    }
    profile.mechanics.write_settle_ns = through.settle_ns.unwrap_or(0);
    for (figure, found) in
        [(&mut o.queued.read_write, through.read_write), (&mut o.queued.write_read, through.write_read)]
    {
        if let Some(found) = found {
            *figure = found.time;
        }
    }
    // Between a write and one that continues it, any overhead above zero costs a revolution;
    // sequential writes show whether it is zero.
    o.queued.write_write = match (through.loses_turn, through.write_write) {
        (Some(false), _) => Dur::ZERO,
        (Some(true), Some(found)) => found.time.max(found.error),
        (None, Some(found)) => found.time,
        (_, None) => o.queued.write_write,
    };
    if through.settle_ns.is_some() {
        let how = "writes behind reads on other tracks, against those on the same one";
        profile.known.set(Figure::WriteSettle, Knowledge::Measured(how.into()));
    }
    // A drive with queue depth 1 never has a pending command.
    let pairs = [through.read_write, through.write_read, through.write_write];
    if through.command.is_some() && (depth == 1 || pairs.iter().all(Option::is_some)) {
        let how = "writes behind reads and writes on the same track and on others";
        profile.known.set(Figure::WriteOverheads, Knowledge::Measured(how.into()));
    }
    for table in ["mechanics", "electronics"] {
        profile.sources.insert(table.into(), "measured with reads and writes".into());
    }
}

/// Derives seek noise from the spreads of the borders: half of the seeks differ by no more than the
/// median spread, and hardly any by four times the widest of most.
fn noise(seeks: &Seeks, jitter: Dur) -> NoiseSpec {
    let mut spreads: Vec<Dur> = seeks.points.iter().map(|p| p.spread).collect();
    spreads.sort_unstable();
    let part = |of: usize, parts: usize| spreads.get(spreads.len() * of / parts).copied().unwrap_or_default();
    NoiseSpec {
        completion_jitter: Dur(2 * jitter.0),
        seek_sd: part(1, 2),
        seek_max: Dur(4 * part(9, 10).0),
        overlap_jitter_per_4k: OVERLAP.0,
        ..NoiseSpec::default()
    }
}

fn unfit(found: String) -> ProbeError {
    ProbeError::NoDisk { what: "the profile as found", expected: "one of this drive".into(), found }
}

fn sources() -> BTreeMap<String, String> {
    let of = [
        ("geometry", "measured: angles of sectors, and which tracks are reached sooner than by a head switch"),
        ("mechanics", "measured with reads; writes are taken to be as quick"),
        ("electronics", "measured with reads; what concerns writes is taken from them"),
        ("noise", "measured: completion jitter, and by how much seeks differ; [known] has the rest"),
    ];
    of.into_iter().map(|(k, v)| (k.to_string(), v.to_string())).collect()
}

fn mechanics(spindle: &Spindle, seeks: &Seeks, habits: &Habits) -> MechanicsSpec {
    MechanicsSpec {
        // To a hundred-thousandth of a revolution per minute, a billionth part.
        rpm: ((6e15 / spindle.mean_period_ns()).round() as u64, 100_000),
        // As measured: a drive's own times decrease in places, and measurement error is no reason
        // to smooth them.
        seek: seeks.table(),
        write_seek: None,
        head_switch: seeks.head_switch.as_ref().or(seeks.points.first()).map_or(Dur::ZERO, |p| p.time),
        write_settle_ns: 0,
        read_on_arrival: habits.read_on_arrival.holds(),
        write_on_arrival: false,
        keep_passing: habits.keep_passing.holds(),
    }
}

fn electronics(sampler: &Sampler, o: &ReadOverheads, habits: &Habits) -> Electronics {
    let both = |t: Dur| ByLast { after_read: t, after_write: t };
    let (miss, completion) = (o.read_miss.time, o.read_completion.time);
    let queued = o.queued_read_read.map_or(miss, |f| f.time);
    let block = o.read_block_ps.unwrap_or(0);
    let cache = habits.cache.as_ref();
    Electronics {
        bus: BusSpec {
            read_block_ps: block,
            write_block_ps: block,
            hold_for_reads: true,
            hold_for_writes: true,
            never_disconnect: false,
            arbitration: Dur::ZERO,
        },
        overheads: Overheads {
            read_hit: both(o.read_hit.map_or(miss, |f| f.time)),
            read_miss: both(miss),
            write_hit: both(miss),
            write_miss: both(miss),
            read_completion: completion,
            write_completion: completion,
            reselect: o.reselect,
            queued: QueuedOverheads { read_read: queued, read_write: queued, write_read: queued, write_write: queued },
            ..Overheads::default()
        },
        cache: CacheSpec {
            segments: cache.map_or(0, |c| c.segments),
            segment_sectors: cache.and_then(|c| c.segment_sectors).unwrap_or(2_048),
            prefetch: match cache.map_or(Prefetch::None, |c| c.prefetch) {
                // No end was found within the searched range; use the bound of any segment.
                Prefetch::ToTrackEnd(n) => Prefetch::ToTrackEnd(n.min(MAX_READ_AHEAD_SECTORS)),
                other => other,
            },
            prefetch_on_idle_hit: cache.is_some(),
            // Not measured, and the findings say so: the part of a sector that passes first is
            // below the error of seek borders.
            stop_in_sector: true,
            prefetch_only_sequential: cache.is_some_and(|c| c.only_sequential),
            same_track_prefetch_delays: habits.same_track_delays.holds(),
            keep_delivered: cache.is_none_or(|c| c.keep_delivered.holds()),
            read_watermark_permille: o.watermark_permille,
            ..Electronics::neutral().cache
        },
        queue: QueueSpec {
            depth: sampler.depth(),
            order: if habits.reorders_waiting.holds() { FirmwareOrder::Sptf } else { FirmwareOrder::Fcfs },
            ..QueueSpec::default()
        },
    }
}
