//! All of it, one after the other, as a profile.

use std::collections::BTreeMap;

use headtime_disk::geometry::Geometry;
use headtime_disk::profile::{
    BusSpec, ByLast, CacheSpec, Electronics, FirmwareOrder, MechanicsSpec, NoiseSpec, Overheads, Prefetch, Profile,
    QueueSpec, QueuedOverheads,
};
use headtime_disk::time::Dur;

use crate::device::Device;
use crate::habits::{self, Habits, Seen};
use crate::layout::{Order, lay_out};
use crate::map::Mapper;
use crate::overheads::{self, ReadOverheads};
use crate::sampler::{ProbeError, Sampler, Surprises, Watch};
use crate::seeks::{self, Seeks};
use crate::settling::{self, Lost};
use crate::spindle::Spindle;
use crate::tracks::Tracer;
use crate::verify::{VerifyError, verify};
use crate::writes::{self, Writes};

/// How to go about it.
#[derive(Clone, Debug)]
pub struct Options {
    /// What is asked for at random follows from it.
    pub seed: u64,
    /// Minutes of the device's time at most.
    pub budget_minutes: Option<u64>,
    /// Reads that the profile is held against in the end.
    pub verified_by: usize,
    /// Requests by which settling and recalibrations are looked for, which takes hours: they are rare. 0: they are not.
    pub settling: u64,
    /// Sectors from and to that may be written to, of which nothing is left: writes are timed, too.
    pub writable: Option<(u64, u64)>,
}

/// Requests by which what happens ten times in a million is met with a chance of 95%.
pub const THOROUGH: u64 = 300_000;

impl Default for Options {
    fn default() -> Options {
        Options { seed: 1, budget_minutes: None, verified_by: 2_000, settling: 0, writable: None }
    }
}

/// One thing that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// What it is.
    pub what: &'static str,
    /// What was found.
    pub value: String,
    /// How.
    pub how: String,
    /// How sure it is.
    pub sure: String,
}

/// Everything that was found.
#[derive(Clone, Debug)]
pub struct Found {
    /// The profile.
    pub profile: Profile,
    /// The same in words, with how sure it is.
    pub findings: Vec<Finding>,
    /// What was met on the way.
    pub surprises: Surprises,
    /// Whether the profile foretells the drive well enough to be used: 95% of random reads within 150 us.
    pub good: bool,
}

/// No drive reads so many sectors ahead.
const FURTHEST: u32 = 1 << 20;

/// Collects what is found, and tells who watches.
#[derive(Default)]
struct Told(Vec<Finding>);

impl Told {
    fn tell(&mut self, sampler: &mut Sampler, what: &'static str, value: String, how: &str, sure: String) {
        sampler.found(what, &value, how, &sure);
        self.0.push(Finding { what, value, how: how.into(), sure });
    }
}

/// Finds the profile of a drive by reading.
///
/// # Errors
/// The device, the budget, whoever watches; or it is no disk that turns.
pub fn characterize(device: &mut dyn Device, watch: &mut dyn Watch, options: &Options) -> Result<Found, ProbeError> {
    let mut sampler = Sampler::new(device, watch, options.seed);
    if let Some(minutes) = options.budget_minutes {
        sampler.limit(minutes);
    }
    let mut told = Told::default();
    sampler.find_cache()?;
    let mut spindle = Spindle::find(&mut sampler)?;
    let mut tracer = Tracer { sampler: &mut sampler, spindle: &mut spindle };
    let spans = Mapper::new(&mut tracer).map()?;
    let laid = lay_out(&mut sampler, &mut spindle, &spans)?;
    let spec = laid.spec;
    let tracks: u64 = spans.iter().map(|s| s.times * s.runs.iter().map(|r| r.tracks).sum::<u64>()).sum();
    let per_track = || spans.iter().flat_map(|s| s.runs.iter()).filter(|r| r.tracks > 1).map(|r| r.sectors);
    let (most, fewest) = (per_track().max().unwrap_or(0), per_track().min().unwrap_or(0));
    let value = format!("{tracks} tracks of {most} to {fewest} sectors, {} with bad ones", laid.slipped);
    told.tell(&mut sampler, "tracks", value, "angles of sectors", "each boundary between two answers".into());
    let value = match laid.order {
        None => "not known: tracks are in the order of their sectors".into(),
        Some(Order::Heads { surfaces, .. }) => format!("surfaces: {surfaces}; heads first"),
        Some(Order::Groups(g)) => format!("surfaces: {}; groups of {} tracks", g.surfaces, g.tracks),
    };
    told.tell(&mut sampler, "layout", value, "which tracks are reached sooner than by a head switch", laid.sure);
    let built = Geometry::new(&spec).map_err(|e| unfit(e.to_string()))?;
    if built.capacity() != sampler.sectors() {
        return Err(unfit(format!("{} sectors", built.capacity())));
    }
    let distances = seeks::distances(seeks::longest(&built));
    let seeks = seeks::measure(&mut sampler, &mut spindle, &built, &distances)?;
    let value = match (seeks.points.first(), seeks.points.last()) {
        (Some(a), Some(b)) => format!(
            "{:.3} ms over {} track, {:.3} ms over {}",
            a.time.as_ms_f64(),
            a.distance,
            b.time.as_ms_f64(),
            b.distance
        ),
        _ => return Err(unfit("no seek that takes the same time twice".into())),
    };
    let lost = format!("{} distances measured, {} not", seeks.points.len(), seeks.lost.len());
    told.tell(&mut sampler, "seeks", value, "which reads come a turn late", lost);
    if let Some(h) = &seeks.head_switch {
        let (value, sure) = (format!("{:.3} ms", h.time.as_ms_f64()), format!("to {} us", us(h.error)));
        told.tell(&mut sampler, "head switch", value, "as seeks", sure);
    }
    let overheads = overheads::measure(&mut sampler, &mut spindle, &built, &seeks)?;
    let value = format!(
        "{} us before a read, {} us behind it",
        us(overheads.read_miss.time),
        us(overheads.read_completion.time)
    );
    let sure = format!("to {} us", us(overheads.read_miss.error));
    told.tell(&mut sampler, "overheads", value, "reads on one track, and hits", sure);
    let habits = habits::measure(&mut sampler, &mut spindle, &built, &seeks)?;
    let value = match &habits.cache {
        None => "no cache".to_string(),
        Some(c) => {
            let ahead = match c.prefetch {
                Prefetch::None => "nothing".into(),
                Prefetch::TrackAhead => "a track".into(),
                Prefetch::ToTrackEnd(n) => format!("{n} sectors, to the track's end at most"),
                Prefetch::ToCylinderEnd(n) => format!("{n} sectors, to the cylinder's end at most"),
                Prefetch::Sectors(n) => format!("{n} sectors"),
            };
            format!("segments: {}; reads ahead: {ahead}", c.segments)
        }
    };
    told.tell(&mut sampler, "cache", value, "which answers the platter does not explain", "by majority".into());
    let value = format!("{:.6} ms", spindle.mean_period_ns() / 1e6);
    let span = format!("over {:.0} s", spindle.span_s());
    told.tell(&mut sampler, "period", value, "times between reads of one sector", span);
    let value = format!("answers are {:.0} us off, the usual one", spindle.noise_ns() / 1e3);
    told.tell(&mut sampler, "noise", value, "the same reads, about the line through them", "the last two dozen".into());
    let yes = |seen: &Seen| format!("{} ({} of {})", if seen.holds() { "yes" } else { "no" }, seen.yes, seen.of);
    for (what, seen) in [
        ("reads a track to its end before it goes on", &habits.same_track_delays),
        ("reorders two commands", &habits.reorders_two),
        ("reorders commands that wait", &habits.reorders_waiting),
    ] {
        let sure = if seen.is_sure() { "sure" } else { "not sure" };
        told.tell(&mut sampler, what, yes(seen), "which of two answers comes first", sure.into());
    }
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
        rig: None,
        service_times: Vec::new(),
    };
    if let Some(region) = options.writable {
        let writes = writes::measure(&mut sampler, &mut spindle, &built, &seeks, region)?;
        let value = match &writes.through {
            None => "answered before they are on the media: the write cache is on".to_string(),
            Some(w) => match w.settle_ns {
                Some(ns) => format!("settling {} us", ns / 1_000),
                None => "through to the media; settling does not show".into(),
            },
        };
        told.tell(&mut sampler, "writes", value, "which writes come a turn late", "by borders".into());
        take(&mut profile, &writes);
    }
    let good = held_against(&mut sampler, &mut told, &profile, options.verified_by)?;
    if options.settling > 0 {
        let lost = settling::provoke(&mut sampler, &spindle, &seeks, overheads.read_miss.time, options.settling)?;
        settled(&mut sampler, &mut told, &mut profile, &lost);
    } else {
        let value = "not looked for (rare: --thorough, hours)".into();
        told.tell(&mut sampler, "settling", value, "requests from edge to edge", "-".into());
    }
    Ok(Found { profile, findings: told.0, surprises: sampler.surprises().clone(), good })
}

/// Holds an older profile against the drive, which takes a minute or so.
///
/// # Errors
/// As [`characterize`]; or it is another drive's.
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
    let mut told = Told::default();
    sampler.find_cache()?;
    let good = held_against(&mut sampler, &mut told, old, options.verified_by)?;
    Ok(Found { profile: old.clone(), findings: told.0, surprises: sampler.surprises().clone(), good })
}

/// Whether a profile foretells the drive.
fn held_against(sampler: &mut Sampler, told: &mut Told, profile: &Profile, reads: usize) -> Result<bool, ProbeError> {
    let verdict = verify(sampler, profile, reads).map_err(|e| match e {
        VerifyError::Probe(e) => e,
        other => unfit(other.to_string()),
    })?;
    let value = format!(
        "{:.1}% of {} random reads within 50 us, {:.1}% within 150",
        100.0 * verdict.within_50us,
        verdict.reads,
        100.0 * verdict.within_150us
    );
    let sure = if verdict.good { "good".into() } else { format!("not good enough; look at: {:?}", verdict.look_at) };
    told.tell(sampler, "verified", value, "reads foretold with this profile", sure);
    Ok(verdict.good)
}

/// What was lost now and then.
fn settled(sampler: &mut Sampler, told: &mut Told, profile: &mut Profile, lost: &Lost) {
    let noise = &mut profile.noise;
    (noise.settle_retry_turns, noise.settle_retry_ppm) = (lost.turns, 0);
    if lost.turns > 0 {
        noise.settle_retry_ppm = (lost.retries * 1_000_000 / lost.requests.max(1)).max(1) as u32;
    }
    let how = "requests from edge to edge";
    let value = format!("{} of {} requests came up to {} turns late", lost.retries, lost.requests, lost.turns);
    // Of what has not been seen in so many, there may be three in as many.
    let sure = format!("rarer than {:.1} in a million is not seen", 3e6 / lost.requests.max(1) as f64);
    told.tell(sampler, "settling", value, how, sure);
    let value = match lost.recalibrations {
        Some((every, takes)) => {
            (noise.recalibrate_every, noise.recalibrate_takes) = (every, takes);
            format!("every {:.0} s, {:.0} ms", every.as_secs_f64(), takes.as_ms_f64())
        }
        None => "none".into(),
    };
    told.tell(sampler, "recalibrations", value, how, "what comes regularly".into());
    let said = "measured: completion jitter, by how much seeks differ, settling, recalibrations";
    profile.sources.insert("noise".into(), said.into());
}

/// What writes told.
fn take(profile: &mut Profile, writes: &Writes) {
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
    for (figure, found) in [
        (&mut o.queued.read_write, through.read_write),
        (&mut o.queued.write_read, through.write_read),
        (&mut o.queued.write_write, through.write_write),
    ] {
        if let Some(found) = found {
            *figure = found.time;
        }
    }
    for table in ["mechanics", "electronics"] {
        profile.sources.insert(table.into(), "measured with reads and writes".into());
    }
}

/// Single seeks differ as their borders are spread: half of them by no more than the middle one, and hardly any by four times the widest of most.
fn noise(seeks: &Seeks, jitter: Dur) -> NoiseSpec {
    let mut spreads: Vec<Dur> = seeks.points.iter().map(|p| p.spread).collect();
    spreads.sort_unstable();
    let part = |of: usize, parts: usize| spreads.get(spreads.len() * of / parts).copied().unwrap_or_default();
    NoiseSpec {
        completion_jitter: Dur(2 * jitter.0),
        seek_sd: part(1, 2),
        seek_max: Dur(4 * part(9, 10).0),
        ..NoiseSpec::default()
    }
}

fn us(d: Dur) -> u64 {
    d.0 / 1_000
}

fn unfit(found: String) -> ProbeError {
    ProbeError::NoDisk { what: "the profile as found", expected: "one of this drive".into(), found }
}

fn sources() -> BTreeMap<String, String> {
    let of = [
        ("geometry", "measured: angles of sectors, and which tracks are reached sooner than by a head switch"),
        ("mechanics", "measured with reads; writes are taken to be as quick"),
        ("electronics", "measured with reads; what concerns writes is taken from them"),
        ("noise", "measured: completion jitter, and by how much seeks differ; nothing else"),
    ];
    of.into_iter().map(|(k, v)| (k.to_string(), v.to_string())).collect()
}

fn mechanics(spindle: &Spindle, seeks: &Seeks, habits: &Habits) -> MechanicsSpec {
    MechanicsSpec {
        // To a hundred-thousandth of a turn a minute, a billionth part.
        rpm: ((6e15 / spindle.mean_period_ns()).round() as u64, 100_000),
        // As measured: a drive's own times fall in places, and an error is no reason to think otherwise.
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
            queued: QueuedOverheads { read_read: queued, read_write: queued, write_read: queued, write_write: queued },
            ..Overheads::default()
        },
        cache: CacheSpec {
            segments: cache.map_or(0, |c| c.segments),
            segment_sectors: cache.and_then(|c| c.segment_sectors).unwrap_or(2_048),
            prefetch: match cache.map_or(Prefetch::None, |c| c.prefetch) {
                // Further than was looked for: as far as any segment holds.
                Prefetch::ToTrackEnd(n) => Prefetch::ToTrackEnd(n.min(FURTHEST)),
                other => other,
            },
            prefetch_on_idle_hit: cache.is_some(),
            stop_in_sector: true,
            prefetch_only_sequential: cache.is_some_and(|c| c.only_sequential),
            same_track_prefetch_delays: habits.same_track_delays.holds(),
            keep_delivered: cache.is_none_or(|c| c.keep_delivered.holds()),
            ..Electronics::neutral().cache
        },
        queue: QueueSpec {
            depth: sampler.depth(),
            order: if habits.reorders_waiting.holds() { FirmwareOrder::Sptf } else { FirmwareOrder::Fcfs },
        },
    }
}
