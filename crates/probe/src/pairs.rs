//! Pairs of reads of which the second is aimed: its sector passes a chosen time after the drive
//! could begin with it.
//!
//! The geometry gives the position of each sector, the spindle the time at which it passes. The
//! answer then shows, to a microsecond, when it did pass, so the aim need not be exact.

use headtime_disk::profile::SectorAddress;
use headtime_disk::{Angle, Dur, Geometry, Kind, Outcome, Track};

use crate::border::Shot;
use crate::device::{Answer, Ask};
use crate::error::ProbeError;
use crate::sampler::Sampler;
use crate::spindle::{Spindle, apart, fraction};

/// An answer this far from its sector's predicted passing, ns, has another source: a cache hit, or
/// a wrong geometry there. Half a sector of a wide track (P3) and completion jitter are far less.
const EXPLAINED_NS: f64 = 150e3;
/// On noisier drives, the same in multiples of a single answer's error.
const NOISY_DEVIATIONS: f64 = 6.0;
/// The same for an answer early enough for a cache hit: a few times the usual completion jitter.
const CACHE_HIT_OFF_NS: f64 = 25e3;
/// Upper bound of cache hits, ns: no disk completes a revolution within it, and no bus needs as
/// much for a sector.
const MAX_HIT_NS: f64 = 2e6;
/// A command certainly pends in the drive if it was sent this long before the end of its
/// predecessor: idle drives need up to half a millisecond to decode one (Reuther and Pohlack 2003,
/// table 1).
const DECODE_TIME: Dur = Dur::from_ms(1);
/// Sectors read to align the platter with the geometry's angles.
const ALIGNMENT_READS: usize = 25;
/// Attempts to find a pair of tracks.
const TRIES: u32 = 200;

/// Fewer cylinders than this to choose from count as few.
const FEW_CYLINDERS: u32 = 200;

/// Relative position of the tracks of a pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Apart {
    /// Distance in cylinders.
    pub cylinders: u32,
    /// On different surfaces.
    pub other_surface: bool,
}

/// Dispatch time of the second read of a pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// As soon as the first completes: the arm is where that left it.
    AtOnce,
    /// After this delay, and then as soon as its slack is right: the drive reads ahead in the
    /// meantime, and the arm may end on a later track.
    Later(Dur),
}

/// Aims reads at a drive with known geometry.
#[derive(Clone, Debug)]
pub struct Pairs<'g> {
    geometry: &'g Geometry,
    /// Revolutions from a sector's end in the geometry to the spindle's angle at its completion.
    offset: f64,
    /// The median deviation of a single answer from the geometry's angle, in revolutions.
    pub off: f64,
    /// Duration of a cache hit, ns; `None`: there is no cache.
    pub hit: Option<f64>,
}

impl<'g> Pairs<'g> {
    /// Reads some sectors anywhere to align the platter with the geometry, whose angles have an
    /// arbitrary origin.
    ///
    /// # Errors
    /// As [`Sampler::run`]; or the geometry is not this drive's.
    pub fn new(sampler: &mut Sampler, spindle: &mut Spindle, geometry: &'g Geometry) -> Result<Pairs<'g>, ProbeError> {
        let mut seen = Vec::with_capacity(ALIGNMENT_READS);
        for _ in 0..4 * ALIGNMENT_READS {
            let lbn = sampler.below(geometry.capacity().min(sampler.sectors()));
            let (Some(end), Some(angle)) = (end_of(geometry, lbn), spindle.angle(sampler, lbn)?) else { continue };
            seen.push(fraction(angle - end));
            if seen.len() == ALIGNMENT_READS {
                break;
            }
        }
        let Some(&first) = seen.first() else {
            return Err(no_match("nothing that could be read".into()));
        };
        let mut about: Vec<f64> = seen.iter().map(|s| apart(first, *s)).collect();
        about.sort_unstable_by(f64::total_cmp);
        let median = about[about.len() / 2];
        // The median deviation from the median.
        let mut distances: Vec<f64> = about.iter().map(|a| apart(median, *a).abs()).collect();
        distances.sort_unstable_by(f64::total_cmp);
        let off = distances[distances.len() / 2];
        if off * spindle.period_ns() > 2.0 * EXPLAINED_NS {
            return Err(no_match(format!("angles that differ from it by {:.3} of a turn", off)));
        }
        let hit = sampler.usual_hit()?.map(|hit| hit.0 as f64);
        Ok(Pairs { geometry, offset: fraction(first + median), off, hit })
    }

    /// The geometry.
    pub fn geometry(&self) -> &'g Geometry {
        self.geometry
    }

    /// Returns the spindle's angle at the completion of a sector that is read alone.
    pub fn completion_angle(&self, lbn: u64) -> Option<f64> {
        Some(fraction(end_of(self.geometry, lbn)? + self.offset))
    }

    /// Returns the time of a sector of a track, ns.
    pub fn sector(&self, spindle: &Spindle, track: &Track) -> f64 {
        spindle.period_ns() / f64::from(track.spt.max(1))
    }

    /// Returns the first sector of a track whose completion is at or after this angle of the
    /// spindle.
    pub fn sector_at(&self, track: &Track, angle: f64) -> Option<u64> {
        let along = fraction(angle - self.offset - track.angle.turns()) * f64::from(track.spt);
        let first = along.ceil() as u32 + track.spt - 1;
        // Skip a few holes.
        (0..8).find_map(|k| {
            let sector = (first + k) % track.spt.max(1);
            self.geometry.lbn_at(SectorAddress { cylinder: track.cylinder, surface: track.surface, sector })
        })
    }

    /// Chooses two tracks in this relative position, anywhere on the disk and in either direction;
    /// `None`: there are none.
    pub fn tracks(&self, sampler: &mut Sampler, how: Apart) -> Option<(Track, Track)> {
        let g = self.geometry;
        let places = u64::from(g.cylinders().checked_sub(how.cylinders)?);
        if places == 0 || (how.other_surface && g.surfaces() < 2) {
            return None;
        }
        for _ in 0..TRIES {
            let cylinder = sampler.below(places) as u32;
            let surface = sampler.below(u64::from(g.surfaces())) as u16;
            let further = 1 + sampler.below(u64::from(g.surfaces()).saturating_sub(1).max(1)) as u16;
            let other = if how.other_surface { (surface + further) % g.surfaces() } else { surface };
            let a = g.track(cylinder, surface).filter(holds_enough);
            let b = g.track(cylinder + how.cylinders, other).filter(holds_enough);
            if let (Some(a), Some(b)) = (a, b) {
                return Some(if sampler.below(2) == 0 { (a, b) } else { (b, a) });
            }
        }
        None
    }

    /// Chooses a sector in the first half of a track, so that read-ahead stays on the track for a
    /// while.
    pub fn anywhere_on(&self, sampler: &mut Sampler, track: &Track) -> Option<u64> {
        let lbn = track.first_lbn + sampler.below(u64::from(track.lbns / 2).max(1));
        (!self.geometry.is_remapped(lbn)).then_some(lbn)
    }

    /// Reads anywhere on the first track, and on its completion a sector of the second, aimed such
    /// that its start passes `aim` ns after the command is sent (including the overhead after the
    /// media, which is in every slack here). `None`: useless.
    ///
    /// # Errors
    /// As [`Sampler::run`].
    pub fn behind(
        &self,
        sampler: &mut Sampler,
        spindle: &mut Spindle,
        (a, b): (&Track, &Track),
        when: When,
        aim: f64,
    ) -> Result<Option<Aimed>, ProbeError> {
        self.sent_behind(sampler, spindle, (a, b), (Kind::Read, when), aim)
    }

    /// The same with a second command of either kind. A write goes to the second track.
    ///
    /// # Errors
    /// As [`Sampler::run`].
    pub fn sent_behind(
        &self,
        sampler: &mut Sampler,
        spindle: &mut Spindle,
        (a, b): (&Track, &Track),
        (kind, when): (Kind, When),
        aim: f64,
    ) -> Result<Option<Aimed>, ProbeError> {
        spindle.keep(sampler)?;
        let Some(first) = self.anywhere_on(sampler, a) else { return Ok(None) };
        let Some(answer) = sampler.read(first, 1)? else { return Ok(None) };
        if sampler.is_quick(&answer) {
            sampler.forget_all()?;
            return Ok(None);
        }
        let (turn, sector) = (spindle.period_ns(), self.sector(spindle, b));
        let now = match when {
            When::AtOnce => sampler.now(),
            When::Later(by) => sampler.now() + by,
        };
        let wanted = aim + sector;
        let Some(lbn) = self.sector_at(b, spindle.angle_at(now) + wanted / turn) else { return Ok(None) };
        let Some(completion) = self.completion_angle(lbn) else { return Ok(None) };
        // Wait for the distance between the aim and the sector.
        let behind = apart(wanted / turn, completion - spindle.angle_at(now)) * turn;
        let not_before = now + Dur(behind.clamp(0.0, turn / 8.0) as u64);
        let answer = sampler.run(&[Ask { kind, not_before, ..Ask::read(lbn, 1) }], 1)?[0];
        let may_be_cached = kind == Kind::Read && sampler.is_quick(&answer);
        Ok(self.evaluate(spindle, (lbn, sector), &answer, may_be_cached, aim))
    }

    /// Evaluates an aimed read: its slack, and whether the platter explains its time.
    fn evaluate(
        &self,
        spindle: &Spindle,
        (lbn, sector): (u64, f64),
        answer: &Answer,
        may_be_cached: bool,
        aim: f64,
    ) -> Option<Aimed> {
        if answer.outcome != Outcome::Ok {
            return None;
        }
        let turn = spindle.period_ns();
        let took = answer.done.0 as f64 - answer.sent.0 as f64;
        let comes = fraction(self.completion_angle(lbn)? - spindle.angle_at(answer.sent));
        // The passing nearest to the aim, by angle alone.
        let foreseen = aim + sector + apart((aim + sector) / turn, comes) * turn;
        let turns = ((took - foreseen) / turn).round();
        let off = took - foreseen - turns * turn;
        let noisy = NOISY_DEVIATIONS * self.off * turn;
        let explained =
            if may_be_cached { CACHE_HIT_OFF_NS.max(noisy).min(EXPLAINED_NS) } else { EXPLAINED_NS.max(noisy) };
        // With noisy answers, hits and media reads are distinguished by the nearer of the two
        // predicted times. A sector that passes only after a hit would have completed cannot have
        // been read ahead.
        let is_like_hit = |hit: f64| foreseen < hit && (took - hit).abs() < off.abs();
        let is_media = off.abs() <= explained && !(may_be_cached && self.hit.is_some_and(is_like_hit));
        let slack = if is_media { took - turns * turn } else { foreseen } - sector;
        let (shot, answer) = (Shot { slack, turns: turns as i64 }, *answer);
        Some(Aimed { shot, foreseen: foreseen - sector, sector, lbn, answer, is_media })
    }

    /// Reads elsewhere in between if so few track pairs exist that the same ones recur: after two
    /// reads on one track some drives read it to its end before anything else (Lumb et al. 2002,
    /// section 4.3).
    fn leave(&self, sampler: &mut Sampler, how: Apart) -> Result<(), ProbeError> {
        if self.geometry.cylinders().saturating_sub(how.cylinders) < FEW_CYLINDERS {
            let elsewhere = sampler.below(sampler.sectors());
            sampler.read(elsewhere, 1)?;
        }
        Ok(())
    }

    /// Returns whether a read of one sector was a cache hit: early, and at a time that the platter
    /// does not explain.
    pub fn is_cached(&self, spindle: &Spindle, lbn: u64, answer: &Answer) -> bool {
        let Some(completion) = self.completion_angle(lbn) else { return false };
        let turn = spindle.period_ns();
        let took = answer.done.0 as f64 - answer.sent.0 as f64;
        let off = apart(took / turn, completion - spindle.angle_at(answer.sent)) * turn;
        took < MAX_HIT_NS && off.abs() > CACHE_HIT_OFF_NS.max(NOISY_DEVIATIONS * self.off * turn)
    }

    /// A shot for a seek on an idle drive between tracks in this relative position.
    ///
    /// # Errors
    /// As [`Sampler::run`].
    pub fn idle(
        &self,
        sampler: &mut Sampler,
        spindle: &mut Spindle,
        (how, when): (Apart, When),
        aim: f64,
    ) -> Result<Option<Shot>, ProbeError> {
        let Some((a, b)) = self.tracks(sampler, how) else { return Ok(None) };
        self.leave(sampler, how)?;
        self.between(sampler, spindle, ((&a, &b), when), aim)
    }

    /// A shot for the move from one track to another on an idle drive.
    ///
    /// # Errors
    /// As [`Sampler::run`].
    pub fn between(
        &self,
        sampler: &mut Sampler,
        spindle: &mut Spindle,
        (tracks, when): ((&Track, &Track), When),
        aim: f64,
    ) -> Result<Option<Shot>, ProbeError> {
        Ok(match self.behind(sampler, spindle, tracks, when, aim)? {
            Some(aimed) if aimed.is_media => Some(aimed.shot),
            // An earlier read has been here.
            Some(_) => {
                sampler.forget_all()?;
                None
            }
            None => None,
        })
    }

    /// A shot on one track, without a move. A sector that was read ahead before the command arrives
    /// has passed: missed.
    ///
    /// # Errors
    /// As [`Sampler::run`].
    pub fn same_track(
        &self,
        sampler: &mut Sampler,
        spindle: &mut Spindle,
        when: When,
        aim: f64,
    ) -> Result<Option<Aimed>, ProbeError> {
        let here = Apart { cylinders: 0, other_surface: false };
        let Some((a, _)) = self.tracks(sampler, here) else { return Ok(None) };
        self.behind(sampler, spindle, (&a, &a), when, aim)
    }

    /// A shot with both reads at the drive: the slack counts from the end of the first to the start
    /// of the second's sector.
    ///
    /// # Errors
    /// As [`Sampler::run`].
    pub fn queued(
        &self,
        sampler: &mut Sampler,
        spindle: &mut Spindle,
        how: Apart,
        aim: f64,
    ) -> Result<Option<Shot>, ProbeError> {
        let Some((a, b)) = self.tracks(sampler, how) else { return Ok(None) };
        self.leave(sampler, how)?;
        let Some(first) = self.anywhere_on(sampler, &a) else { return Ok(None) };
        self.both(sampler, spindle, (Kind::Read, first), (Kind::Read, &b), aim)
    }

    /// A shot with both commands at the drive: the given one, and one aimed at a sector of a track.
    /// A write overwrites its sector.
    ///
    /// # Errors
    /// As [`Sampler::run`].
    pub fn both(
        &self,
        sampler: &mut Sampler,
        spindle: &mut Spindle,
        (one_kind, first): (Kind, u64),
        (two_kind, b): (Kind, &Track),
        aim: f64,
    ) -> Result<Option<Shot>, ProbeError> {
        spindle.keep(sampler)?;
        let (turn, sector) = (spindle.period_ns(), self.sector(spindle, b));
        let Some(from) = self.completion_angle(first) else { return Ok(None) };
        let Some(lbn) = self.sector_at(b, from + (aim + sector) / turn) else { return Ok(None) };
        let Some(completion) = self.completion_angle(lbn) else { return Ok(None) };
        let asks = [Ask { kind: one_kind, ..Ask::read(first, 1) }, Ask { kind: two_kind, ..Ask::read(lbn, 1) }];
        let answers = sampler.run(&asks, 2)?;
        let (one, two) = (answers[0], answers[1]);
        let fine = answers.iter().all(|a| a.outcome == Outcome::Ok);
        let waited = one.done.saturating_since(two.sent) >= DECODE_TIME;
        if !fine || !waited || (one_kind == Kind::Read && sampler.is_quick(&one)) {
            return Ok(None);
        }
        let took = two.done.0 as f64 - one.done.0 as f64;
        let foreseen = aim + sector + apart((aim + sector) / turn, completion - from) * turn;
        let turns = ((took - foreseen) / turn).round();
        let off = took - foreseen - turns * turn;
        if off.abs() > EXPLAINED_NS.max(NOISY_DEVIATIONS * self.off * turn) {
            sampler.forget_all()?;
            return Ok(None);
        }
        // Reads complete later than writes; between two of the same kind that cancels.
        let slack = if one_kind == two_kind { took - turns * turn } else { foreseen };
        Ok(Some(Shot { slack: slack - sector, turns: turns as i64 }))
    }
}

/// An aimed read with its answer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Aimed {
    /// The slack; by the answer if the platter explains it, otherwise by the angles.
    pub shot: Shot,
    /// The slack by angles alone, ns.
    pub foreseen: f64,
    /// Time of the sector, ns.
    pub sector: f64,
    /// The sector read.
    pub lbn: u64,
    /// Its answer.
    pub answer: Answer,
    /// Whether the platter explains the answer's time.
    pub is_media: bool,
}

/// Returns whether there is room on a track to aim: at least half of it holds data.
pub fn holds_enough(track: &Track) -> bool {
    track.lbns >= 8 && track.lbns >= track.spt / 2
}

/// Returns the angle of a sector's end, in revolutions.
fn end_of(geometry: &Geometry, lbn: u64) -> Option<f64> {
    let p = geometry.locate(lbn)?;
    Some((p.angle + Angle::fraction(1, u64::from(p.spt.max(1)))).turns())
}

fn no_match(found: String) -> ProbeError {
    ProbeError::NoDisk {
        what: "the angles of sectors against the geometry",
        expected: "one offset for all".into(),
        found,
    }
}
