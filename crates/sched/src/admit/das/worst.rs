//! Worst-case service time of a request: Reuther and Pohlack 2003, equation 5,
//!
//! > w = t_seek + n t_rot + m t_sector + t_ovh + v t_skew
//!
//! term by term. Guarantees to mandatory streams rest on this sum alone, so every term is rounded
//! up, and random effects in a profile (`[noise]`) count with their limits, not with their means.
//!
//! It is more detailed than in the paper:
//!
//! * n, the maximum number of revolutions waited, was measured there by moving the arm from one
//!   edge to the other. Here it is one revolution, plus those in which the head fails to settle. A
//!   drive that continues reading ahead behind a read before it starts the next command adds one.
//! * A read-ahead in progress has to stop before the next command: a separate term.
//! * The time lost where sectors are not contiguous (a zone's end, a slip, a remapped block), and
//!   at the end of a track if a late move exceeds the skew, is a separate term, and so is a
//!   recalibration, if the profile has them.

use std::fmt;

use headtime_disk::internals::JUST_PASSED;
use headtime_disk::profile::{Figure, Knowledge, Layout, NoiseSpec, Prefetch, Profile, Skew, SpareUnit, ZoneSpec};
use headtime_disk::{Dur, Kind, Model};

use crate::overheads::{between, lead_in};

/// The worst case of one request, each term by name (equation 5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorstCase {
    /// t_seek: from the innermost to the outermost cylinder, including settling before a write.
    pub seek: Dur,
    /// n: maximum number of revolutions until the first sector passes.
    pub turns: u32,
    /// t_rot: one revolution.
    pub turn: Dur,
    /// m: sectors of the largest request.
    pub sectors: u32,
    /// t_sector: one sector of the slowest zone.
    pub sector: Dur,
    /// t_ovh: overhead of drive and bus, for the pair of commands with the longest.
    pub overhead: Dur,
    /// v: maximum number of track ends within a request of m sectors.
    pub skews: u32,
    /// t_skew: maximum loss at one of them.
    pub skew: Dur,
    /// Until a read-ahead that is changing tracks stops; not in equation 5.
    pub stop: Dur,
    /// Additional loss where sectors are not contiguous and where moves exceed skews; not in
    /// equation 5.
    pub detours: Dur,
    /// A recalibration at that moment; not in equation 5, and zero for a drive that has none.
    pub away: Dur,
}

/// Why the worst case of a drive is unbounded or useless.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WorstError {
    /// Write-back takes time that no request's service time includes.
    #[error("expected a drive that writes through, found one that keeps writes in its cache (write_back = true)")]
    WriteBack,
    /// A request without sectors.
    #[error("sectors of a request: expected 1 or more, found 0")]
    NoSectors,
    /// The layout is so irregular that a bound would be useless.
    #[error(
        "a request of {sectors} sectors: expected at most {most} turns lost at slips and remapped blocks, found {found}"
    )]
    Scattered {
        /// Sectors of the request.
        sectors: u32,
        /// Revolutions lost.
        found: u32,
        /// Maximum accepted.
        most: u32,
    },
}

/// Maximum number of revolutions lost at slips and remapped blocks by one request for which a worst
/// case is useful.
const MAX_DETOURS: u32 = 50;

impl WorstCase {
    /// Returns the sum, w.
    pub fn total(&self) -> Dur {
        let times = |n: u32, each: Dur| Dur(each.0.saturating_mul(u64::from(n)));
        self.seek
            + times(self.turns, self.turn)
            + times(self.sectors, self.sector)
            + self.overhead
            + times(self.skews, self.skew)
            + self.stop
            + self.detours
            + self.away
    }

    /// Computes the worst case of requests of up to `sectors` sectors on the drive of `profile`;
    /// `model` was compiled from it.
    ///
    /// # Errors
    /// A write-back cache, no sectors, more slips and remaps in one request than accepted.
    pub fn of(profile: &Profile, model: &Model, sectors: u32) -> Result<WorstCase, WorstError> {
        if profile.electronics.cache.write_back {
            return Err(WorstError::WriteBack);
        }
        if sectors == 0 {
            return Err(WorstError::NoSectors);
        }
        let turn = longest_turn(profile, model);
        let (fewest, _) = tracks(profile);
        let ends = || profile.geometry.zones.iter().map(|z| at_track_end(profile, model, z, turn));
        let skew = ends().map(|e| e.0).max().unwrap_or(Dur::ZERO);
        let end = TrackEnds {
            skew,
            // The first sector may be the last of its track.
            passed: (sectors - 1).div_ceil(fewest),
            late: ends().map(|e| e.1).max().unwrap_or(0),
        };
        let reads_on = u32::from(profile.electronics.cache.same_track_prefetch_delays);
        let detours = detours(profile, model, sectors, &end, turn)?;
        Ok(WorstCase {
            seek: longest_seek(profile, model) + profile.noise.longest_excess(),
            turns: 1 + profile.noise.settle_retry_turns + reads_on,
            turn,
            sectors,
            sector: Dur(turn.0.div_ceil(u64::from(fewest))),
            overhead: overhead(profile, model, sectors),
            skews: end.passed,
            skew,
            stop: stop(profile, model),
            detours,
            away: profile.noise.recalibrate_takes,
        })
    }
}

impl fmt::Display for WorstCase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ms = |d: Dur| d.as_ms_f64();
        write!(f, "{:.2} ms = seek {:.2}", ms(self.total()), ms(self.seek))?;
        write!(
            f,
            " + {} turns of {:.2} + {} sectors of {:.4}",
            self.turns,
            ms(self.turn),
            self.sectors,
            ms(self.sector)
        )?;
        write!(f, " + overhead {:.2} + {} skews of {:.2}", ms(self.overhead), self.skews, ms(self.skew))?;
        if self.stop > Dur::ZERO {
            write!(f, " + stop {:.2}", ms(self.stop))?;
        }
        if self.detours > Dur::ZERO {
            write!(f, " + detours {:.2}", ms(self.detours))?;
        }
        if self.away > Dur::ZERO { write!(f, " + recalibration {:.2}", ms(self.away)) } else { Ok(()) }
    }
}

/// Returns the time until a read-ahead has stopped for a command: a head switch or seek to the next
/// track is completed first, and on some drives the rotational latency, too.
fn stop(profile: &Profile, model: &Model) -> Dur {
    let cache = &profile.electronics.cache;
    if cache.segments == 0 || cache.prefetch == Prefetch::None {
        return Dur::ZERO;
    }
    let far = model.geometry.cylinders().saturating_sub(1);
    let other = u16::from(model.geometry.surfaces() > 1);
    let across = match profile.geometry.layout {
        Layout::HeadFirst(_) => 1,
        Layout::SeekFirst { group_tracks, .. } => group_tracks,
    };
    let moves = [(0, other), (1, 0), (across.min(far), other)];
    let moves = moves.into_iter().map(|to| model.mechanics.reposition((0, 0), to, Kind::Read));
    // If unknown, it waits.
    let at_once = cache.stop_in_sector && *profile.known.of(Figure::ReadAheadStop) != Knowledge::Unknown;
    let sector = if at_once { Dur::ZERO } else { longest_turn(profile, model) };
    moves.max().unwrap_or(Dur::ZERO) + profile.noise.longest_excess() + sector
}

/// Returns how long after the start of a command the drive may move its arm on its own, though the
/// command has completed: on some drives a cache hit moves the arm to where that ended.
pub(super) fn moves_on(profile: &Profile, model: &Model) -> Dur {
    if profile.electronics.cache.segments == 0 || !profile.electronics.cache.prefetch_on_idle_hit {
        return Dur::ZERO;
    }
    let command = overhead(profile, model, 1) + model.bus.arbitration;
    stop(profile, model) + command + longest_seek(profile, model) + profile.noise.longest_excess()
}

/// Returns a revolution at the slowest speed that the profile allows.
fn longest_turn(profile: &Profile, model: &Model) -> Dur {
    let (num, den) = model.mechanics.rotation.period_ratio();
    let NoiseSpec { speed_error_ppb, speed_drift_ppb, .. } = profile.noise;
    let slower = 1_000_000_000 + i128::from(speed_error_ppb).max(0) + i128::from(speed_drift_ppb);
    Dur((u128::from(num) * slower as u128).div_ceil(u128::from(den) * 1_000_000_000) as u64)
}

/// Returns the longest seek. Measured tables are not monotone, so every point counts, not only the
/// last.
fn longest_seek(profile: &Profile, model: &Model) -> Dur {
    let longest = model.geometry.cylinders().saturating_sub(1).max(1);
    let written = profile.mechanics.write_seek.iter().flatten();
    let points = profile.mechanics.seek.iter().chain(written).map(|p| p.0.min(longest));
    let other = u16::from(model.geometry.surfaces() > 1);
    let moves = points.chain([longest]).flat_map(|d| [Kind::Read, Kind::Write].map(|kind| (d, kind)));
    let longest = moves.map(|(d, kind)| model.mechanics.reposition((0, 0), (d, other), kind)).max();
    longest.unwrap_or(Dur::ZERO).max(model.overheads.minimum_seek)
}

/// Returns the sectors of the track with the fewest, and of the one with the most.
fn tracks(profile: &Profile) -> (u32, u32) {
    let all = || profile.geometry.zones.iter().flat_map(|z| z.sectors_per_track.iter().copied());
    (all().min().unwrap_or(1).max(1), all().max().unwrap_or(1).max(1))
}

/// Time lost at track ends within a request.
struct TrackEnds {
    /// t_skew.
    skew: Dur,
    /// v.
    passed: u32,
    /// Revolutions lost in addition at each of them, if the move takes longer than the skew allows.
    late: u32,
}

/// Returns the maximum loss at the end of a track of a zone: the skew, which hides the move, and
/// the revolutions lost if it does not.
fn at_track_end(profile: &Profile, model: &Model, zone: &ZoneSpec, turn: Dur) -> (Dur, u32) {
    let other = u16::from(model.geometry.surfaces() > 1);
    let far = model.geometry.cylinders().saturating_sub(1);
    let (track, cylinder) = match profile.geometry.layout {
        Layout::HeadFirst(_) => ((0, other), (1, other)),
        Layout::SeekFirst { group_tracks, .. } => ((1, 0), (group_tracks.min(far), other)),
    };
    let spares = if zone.sparing.unit == SpareUnit::Track { zone.sparing.spares } else { 0 };
    let lost = |skew: Skew, to: (u32, u16)| {
        let spt = zone.sectors_per_track.iter().copied().min().unwrap_or(1).max(1);
        let hidden = model.mechanics.rotation.time_for(skew.angle(zone.sectors_per_track[0]));
        let hidden = hidden + Dur((turn.0 * spares).div_ceil(u64::from(spt)));
        let moves =
            model.mechanics.reposition((0, 0), to, Kind::Write).max(model.mechanics.reposition((0, 0), to, Kind::Read));
        let grace = model.mechanics.rotation.time_for(JUST_PASSED);
        let late = (moves + profile.noise.longest_excess()).saturating_sub(hidden + grace);
        (hidden, late.0.div_ceil(turn.0.max(1)) as u32)
    };
    let (track, cylinder) = (lost(zone.track_skew, track), lost(zone.cylinder_skew, cylinder));
    (track.0.max(cylinder.0), track.1.max(cylinder.1))
}

/// Returns the maximum loss of one request of `sectors` at track ends beyond their skews, and where
/// LBNs and sectors are not contiguous.
fn detours(profile: &Profile, model: &Model, sectors: u32, ends: &TrackEnds, turn: Dur) -> Result<Dur, WorstError> {
    let capacity = model.geometry.capacity();
    let turns = |n: u32| Dur(turn.0.saturating_mul(u64::from(n)));
    let late = turns(ends.late);
    let mut places: Vec<(u64, Dur)> = Vec::new();
    let mut lbn = 0;
    loop {
        let next = model.geometry.unbroken_until(lbn);
        if next >= capacity {
            break;
        }
        if next <= lbn {
            // Closely spaced spares are not evaluated one by one: at the end of one stretch the
            // skipped sectors pass, and the head may be late for the next by less than a
            // revolution.
            let most = profile.geometry.zones.iter().map(|z| z.sparing.spares).max().unwrap_or(0);
            let (fewest, _) = tracks(profile);
            let passing = u32::try_from(most / u64::from(fewest)).unwrap_or(u32::MAX).saturating_add(1);
            return limit(sectors, turns(passing.saturating_add(ends.passed.saturating_mul(ends.late))), turn);
        }
        let lost = [Kind::Read, Kind::Write].map(|kind| lost_before(profile, model, next, kind, turn));
        let lost = lost[0].max(lost[1]).saturating_sub(ends.skew);
        if lost > Dur::ZERO {
            places.push((next, lost));
        }
        lbn = next;
    }
    // The worst window of this number of sectors.
    let regular = |irregular: usize| {
        let n = u64::from(ends.passed).saturating_sub(irregular as u64);
        Dur(late.0.saturating_mul(n))
    };
    let (mut first, mut sum, mut worst) = (0, Dur::ZERO, regular(0));
    for (last, &(at, lost)) in places.iter().enumerate() {
        sum += lost;
        while first <= last && places[first].0 + u64::from(sectors) <= at + 1 {
            sum = sum.saturating_sub(places[first].1);
            first += 1;
        }
        worst = worst.max(sum + regular(last + 1 - first));
    }
    limit(sectors, worst, turn)
}

/// Returns the loss between the sector before `lbn` and its own, if the move between them is as
/// late as possible.
fn lost_before(profile: &Profile, model: &Model, lbn: u64, kind: Kind, turn: Dur) -> Dur {
    let Some(both) = model.place(lbn - 1, 2, kind) else { return Dur::ZERO };
    let gap = both.transfer.saturating_sub(both.media);
    let (from, to) = ((both.cylinder, both.surface), (both.end_cylinder, both.end_surface));
    if from == to {
        return gap;
    }
    // The head is late for a sector that it would have met, and meets it a revolution later.
    let move_takes = model.mechanics.reposition(from, to, kind) + profile.noise.longest_excess();
    let grace = model.mechanics.rotation.time_for(JUST_PASSED);
    if move_takes > gap + grace { gap + turn } else { gap }
}

fn limit(sectors: u32, lost: Dur, turn: Dur) -> Result<Dur, WorstError> {
    let found = u32::try_from(lost.0.div_ceil(turn.0.max(1))).unwrap_or(u32::MAX);
    if found > MAX_DETOURS {
        return Err(WorstError::Scattered { sectors, found, most: MAX_DETOURS });
    }
    Ok(lost)
}

/// Returns the overhead of drive and bus beyond media time, maximised over the four pairs of
/// commands and over an idle drive and one with the command queued (section 3.3.2).
fn overhead(profile: &Profile, model: &Model, sectors: u32) -> Dur {
    let (o, noise) = (&model.overheads, &profile.noise);
    let (_, most) = tracks(profile);
    let quickest = Dur(model.mechanics.rotation.period().0 / u64::from(most));
    let blocks = u64::from(model.sector_bytes / 512).max(1);
    let on_bus = |block_ps: u64, n: u32| Dur((block_ps * blocks * u64::from(n)).div_ceil(1000));
    // A bus slower than the media falls behind with each sector.
    let behind = |block_ps: u64| {
        let media = Dur(quickest.0 * u64::from(sectors - 1));
        on_bus(block_ps, 1).max(on_bus(block_ps, sectors).saturating_sub(media))
    };
    let bytes = u64::from(sectors) * u64::from(model.sector_bytes);
    let overlap = Dur(noise.overlap_jitter_per_4k.0 * bytes.min(40 * 1024).div_ceil(4096));
    let chance = noise.latest_completion() + overlap;
    let kinds = [Kind::Read, Kind::Write];
    let pairs = kinds.into_iter().flat_map(|last| kinds.map(|kind| (last, kind)));
    let of_pair = |(last, kind): (Kind, Kind)| {
        let before = lead_in(model, last, kind).max(between(model, last, kind));
        let after = match kind {
            Kind::Write => behind(model.bus.write_block_ps) + o.reselect + o.write_completion,
            _ => {
                let bus = behind(model.bus.read_block_ps) + model.bus.arbitration;
                bus + o.reselect + o.data_preparation + o.read_completion
            }
        };
        before + after
    };
    pairs.map(of_pair).max().unwrap_or(Dur::ZERO) + chance
}

#[cfg(test)]
mod tests {
    use headtime_disk::profile::builtin;

    use super::*;

    /// Table 1 of the paper; requests of 64 KiB.
    fn table_1() -> [(WorstCase, f64); 2] {
        let us = Dur::from_us;
        let ibm = WorstCase {
            seek: us(7_180),
            turns: 5,
            turn: us(4_020),
            sectors: 128,
            sector: us(10),
            overhead: us(70),
            skews: 1,
            skew: us(1_060),
            stop: Dur::ZERO,
            detours: Dur::ZERO,
            away: Dur::ZERO,
        };
        let seagate =
            WorstCase { seek: us(11_360), turns: 2, turn: us(8_370), overhead: us(500), skew: us(1_230), ..ibm };
        [(ibm, 29.69), (seagate, 31.11)]
    }

    #[test]
    fn d1_the_terms_of_table_1_add_up_to_its_worst_cases() {
        for (worst, ms) in table_1() {
            assert!((worst.total().as_ms_f64() - ms).abs() < 0.01, "{worst}: expected {ms}");
        }
    }

    #[test]
    fn the_profiles_of_the_papers_drives_give_its_terms_and_what_is_chance_besides() {
        for ((table, _), name) in table_1().into_iter().zip(["ultrastar36z15", "barracuda36es2"]) {
            let profile = builtin(name).expect("a built-in drive");
            let model = Model::new(&profile).expect("a drive that works");
            let worst = WorstCase::of(&profile, &model, 128).expect("it writes through");
            println!("{name}: {worst}");
            assert_eq!((worst.turns, worst.sectors, worst.skews), (table.turns, 128, 1), "{worst}");
            let near = |ours: Dur, theirs: Dur, us: u64| ours >= theirs && ours.0 - theirs.0 <= us * 1_000;
            // A write settles, and a seek may be 60 us late; a revolution at 2,000,000/279 rpm is
            // 8.37 ms.
            assert!(near(worst.seek, table.seek, 260), "{worst}");
            assert!(near(worst.turn, table.turn, 1), "{worst}");
            assert!(near(worst.sector, table.sector, 1), "{worst}");
            assert!(near(worst.overhead, table.overhead, 120), "{worst}");
            assert!(near(worst.skew, table.skew, 1), "{worst}");
        }
    }

    #[test]
    fn a_read_ahead_of_which_nothing_is_known_may_take_a_turn_to_stop() {
        let mut profile = builtin("ultrastar36z15").expect("a built-in drive");
        let model = Model::new(&profile).expect("a drive that works");
        let of = |profile: &Profile| WorstCase::of(profile, &model, 128).expect("it writes through");
        let at_once = of(&profile);
        profile.known.set(Figure::ReadAheadStop, Knowledge::Unknown);
        let unknown = of(&profile);
        assert_eq!(unknown.total(), at_once.total() + unknown.turn);
        profile.electronics.cache.stop_in_sector = false;
        assert_eq!(of(&profile), unknown);
    }

    #[test]
    fn a_larger_request_takes_longer_and_a_profile_without_chance_less() {
        let mut profile = builtin("barracuda36es2").expect("a built-in drive");
        let model = Model::new(&profile).expect("a drive that works");
        let of = |profile: &Profile, sectors| WorstCase::of(profile, &model, sectors).expect("it writes through");
        let (small, large) = (of(&profile, 1), of(&profile, 2_000));
        assert_eq!((small.skews, large.skews), (0, 3));
        assert!(small.total() < of(&profile, 128).total() && of(&profile, 128).total() < large.total());
        let noisy = of(&profile, 128).total();
        profile.noise = NoiseSpec::default();
        let calm = of(&profile, 128);
        // The head always settles.
        assert_eq!((calm.turns, of(&profile, 1).turns), (1, 1));
        assert!(calm.total() < noisy);
        assert_eq!(WorstCase::of(&profile, &model, 0), Err(WorstError::NoSectors));
        profile.electronics.cache.write_back = true;
        assert_eq!(WorstCase::of(&profile, &model, 128), Err(WorstError::WriteBack));
    }
}
