//! Reads anywhere.
//!
//! Random reads, one at a time, are predicted by the scheduler's own predictor, which knows only
//! when commands were sent and answered (as Lumb, Schindler and Ganger 2002 compare in section
//! 5.2): what is good here is good for the scheduler. A prediction that is off by a revolution is
//! no matter of microseconds: the head was predicted to arrive before the sector and came after it,
//! or vice versa. Some of those are unavoidable, because seeks vary and sectors just at that border
//! are as likely as others.

use headtime_disk::profile::{LATE_TURNS, Late, Profile};
use headtime_disk::{Kind, Model};
use headtime_sched::internals::predictor::Predictor;

use crate::device::Ask;
use crate::sampler::Sampler;

use super::{LookAt, Verdict, VerifyError};

/// A profile is good if at least this share is predicted within [`LOOSE_NS`]: on a drive with seeks
/// that vary by 20 us, a per cent or two of random reads are off by a revolution with any profile.
const MIN_GOOD_SHARE: f64 = 0.95;
/// Largest error on a drive whose figures are all right.
const TIGHT_NS: f64 = 50e3;
/// Largest error that costs a scheduler little (Lumb et al. 2002, figure 9: with seeks assumed 0.3
/// ms longer, the foreground loses 1 to 2%).
const LOOSE_NS: f64 = 150e3;
/// Length of the longest read, bytes.
const MAX_READ_BYTES: u32 = 8 * 1024;
/// Number of parts of the drive that are examined separately.
const REGIONS: usize = 16;
/// Upper ends of seek classes, in parts of the longest stroke.
const CLASSES: [f64; 5] = [0.001, 0.01, 0.1, 0.3, 1.0];
/// Fewest reads of a class or region.
const MIN_CLASS_READS: usize = 20;

/// One compared read.
#[derive(Clone, Copy, Debug)]
struct Seen {
    lbn: u64,
    /// Absolute difference in sectors from the previous read.
    step: u32,
    distance: u32,
    /// Answer less prediction, ns.
    error: f64,
}

/// Predicts `reads` random reads of a sector to 8 KiB and compares them with the answers.
///
/// # Errors
/// As [`Sampler::run`]; the profile is invalid, or another drive's; or too few reads could be
/// compared.
pub(super) fn verify(sampler: &mut Sampler, profile: &Profile, reads: usize) -> Result<Verdict, VerifyError> {
    sampler.stage("verification");
    let model = Model::new(profile)?;
    let (capacity, bytes) = (model.geometry.capacity(), profile.sector_bytes);
    if capacity != sampler.sectors() || bytes != sampler.sector_bytes() {
        return Err(VerifyError::Size {
            profile: capacity,
            profile_bytes: bytes,
            drive: sampler.sectors(),
            drive_bytes: sampler.sector_bytes(),
        });
    }
    let most = (MAX_READ_BYTES / bytes.max(1)).max(1);
    let mut seen: Vec<Seen> = Vec::with_capacity(reads);
    let mut predictor = Predictor::new(1, &model);
    let (mut last, mut from) = (0, 0);
    for i in 0..reads {
        sampler.share(i as f64 / reads.max(1) as f64);
        let count = 1 + sampler.below(u64::from(most)) as u32;
        let lbn = sampler.below((capacity + 1).saturating_sub(u64::from(count)).max(1));
        let place = model.place(lbn, count, Kind::Read);
        let answer = sampler.run(&[Ask::read(lbn, count)], 1)?[0];
        let cylinder = place.map_or(from, |p| p.cylinder);
        predictor.sent(&model, i as u64, Kind::Read, place.as_ref(), answer.sent);
        if let Some(p) = predictor.completed(&model, i as u64, answer.outcome, answer.done) {
            let (step, distance) = (count.abs_diff(last), cylinder.abs_diff(from));
            seen.push(Seen { lbn, step, distance, error: p.error_ns() as f64 });
        }
        (last, from) = (count, cylinder);
    }
    if seen.len() < (reads / 2).max(1) {
        return Err(VerifyError::TooFew { reads: seen.len(), asked: reads });
    }
    Ok(judge(&model, &seen, reads - seen.len()))
}

/// Computes shares, quantiles, and the location of the fault.
fn judge(model: &Model, seen: &[Seen], left_out: usize) -> Verdict {
    let turn = model.mechanics.rotation.period().0 as f64;
    let share = |what: &dyn Fn(&Seen) -> bool| share_of(seen, |_| true, what).unwrap_or(0.0);
    let mut errors: Vec<f64> = seen.iter().map(|s| s.error).collect();
    errors.sort_unstable_by(f64::total_cmp);
    let quantile = |permille: usize| errors[(errors.len() - 1) * permille / 1000] / 1e3;
    let within_150us = share(&|s| s.error.abs() <= LOOSE_NS);
    let good = within_150us >= MIN_GOOD_SHARE;
    Verdict {
        reads: seen.len(),
        left_out,
        within_50us: share(&|s| s.error.abs() <= TIGHT_NS),
        within_150us,
        turn_late: share(&|s| (s.error - turn).abs() <= LOOSE_NS),
        turn_early: share(&|s| (s.error + turn).abs() <= LOOSE_NS),
        late: late(seen, turn),
        quantiles_us: [10, 50, 250, 500, 750, 950, 990].map(quantile),
        classes: Vec::new(),
        good,
        look_at: if good { LookAt::Nothing } else { fault(model, seen, turn) },
    }
}

/// Counts reads by whole revolutions later than predicted; [`LATE_TURNS`] includes more.
fn late(seen: &[Seen], turn: f64) -> Late {
    let mut by_turns = vec![0u32; LATE_TURNS];
    let mut early = 0;
    for s in seen {
        match (s.error / turn).round() as i64 {
            ..0 => early += 1,
            0 => {}
            turns => by_turns[(turns as usize).min(LATE_TURNS) - 1] += 1,
        }
    }
    by_turns[0] = by_turns[0].saturating_sub(early);
    by_turns.truncate(by_turns.iter().rposition(|n| *n > 0).map_or(0, |last| last + 1));
    Late { reads: seen.len() as u32, by_turns }
}

/// Share of a class for which `what` holds; `None` if the class is too small.
fn share_of(seen: &[Seen], class: impl Fn(&Seen) -> bool, what: impl Fn(&Seen) -> bool) -> Option<f64> {
    let (mut all, mut those) = (0usize, 0usize);
    for s in seen.iter().filter(|s| class(s)) {
        (all, those) = (all + 1, those + usize::from(what(s)));
    }
    (all >= MIN_CLASS_READS).then(|| those as f64 / all as f64)
}

/// Finds where most errors are.
fn fault(model: &Model, seen: &[Seen], turn: f64) -> LookAt {
    // By whole revolutions, or otherwise.
    let is_off = |s: &Seen| (s.error - (s.error / turn).round() * turn).abs() > LOOSE_NS;
    let is_turned = |s: &Seen| !is_off(s) && s.error.abs() > LOOSE_NS;
    let count = |what: &dyn Fn(&Seen) -> bool| seen.iter().filter(|s| what(s)).count();
    if count(&is_turned) > count(&is_off) {
        let stroke = f64::from(model.geometry.cylinders());
        let edges = CLASSES.map(|part| (part * stroke) as u32);
        let classes = edges.iter().enumerate().map(|(i, to)| (if i == 0 { 0 } else { edges[i - 1] + 1 }, *to));
        let worst = classes
            .filter_map(|(from, to)| {
                let share = share_of(seen, |s| (from..=to).contains(&s.distance), is_turned)?;
                Some((share, from, to))
            })
            .max_by(|a, b| a.0.total_cmp(&b.0));
        let Some((_, from, to)) = worst else { return LookAt::Everything };
        let late = count(&|s| (from..=to).contains(&s.distance) && is_turned(s) && s.error > 0.0);
        let early = count(&|s| (from..=to).contains(&s.distance) && is_turned(s) && s.error < 0.0);
        return if late >= early { LookAt::SlowSeeks(from, to) } else { LookAt::QuickSeeks(from, to) };
    }
    let all = share_of(seen, |_| true, is_off).unwrap_or(1.0);
    // An error due to a read's length also affects the next read's prediction.
    let most = seen.iter().map(|s| s.step).max().unwrap_or(0);
    let (short, long) = (share_of(seen, |s| s.step <= most / 8, is_off), share_of(seen, |s| s.step > most / 2, is_off));
    if let (Some(short), Some(long)) = (short, long)
        && long > 3.0 * short
    {
        return LookAt::LongReads;
    }
    let part = model.geometry.capacity().div_ceil(REGIONS as u64).max(1);
    let worst = (0..REGIONS as u64)
        .filter_map(|r| Some((share_of(seen, |s| s.lbn / part == r, is_off)?, r)))
        .max_by(|a, b| a.0.total_cmp(&b.0));
    match worst {
        // A read of a wrong region spoils the next one anywhere, so other regions have errors too.
        Some((share, r)) if share > 1.8 * all => {
            LookAt::Region(r * part, ((r + 1) * part).min(model.geometry.capacity()))
        }
        _ => LookAt::Everything,
    }
}
