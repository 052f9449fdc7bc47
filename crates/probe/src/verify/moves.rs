//! Moves from track to track, in classes.
//!
//! The profile predicts when the head can read on another track. A read is aimed at a sector that
//! passes a margin later, and must be caught; another at one that passes a margin earlier, and must
//! come a revolution later. A wrong surface, group or cylinder of a track moves the border by the
//! difference of a head switch and a seek, or of two seeks, which is more than the margin on every
//! drive on which it makes a difference.

use headtime_disk::profile::Profile;
use headtime_disk::{Dur, Geometry, Kind, Model, Track};

use crate::error::ProbeError;
use crate::pairs::{Pairs, When, holds_enough};
use crate::sampler::Sampler;
use crate::spindle::Spindle;

use super::parts::Part;
use super::{Checked, Class};

/// Pairs of tracks of a class of the whole drive, and of a part of it. A fault in one pair of a
/// hundred is missed once in twenty drives.
const PAIRS: u32 = 300;
const PART_PAIRS: u32 = 40;
/// Largest share of pairs that do not move as predicted, in a class.
const MOST_WRONG: f64 = 0.05;
/// The margin, ns: at least and at most. Within it lie the errors of measured seeks (P5), the
/// variation of single ones, and what interpolation adds.
const MARGIN_NS: (f64, f64) = (100e3, 150e3);
/// The margin by the variation of seeks: in standard deviations, and the error of a table besides,
/// ns.
const MARGIN_DEVIATIONS: f64 = 3.0;
const TABLE_ERROR_NS: f64 = 30e3;
/// Shots that decide on a pair whose first one is not as predicted: a single seek may take longer,
/// and a head may fail to settle.
const VOTES: u32 = 3;
/// Attempts per pair, and per shot.
const TRIES: u32 = 8;
/// Most tracks from a random one to the end of its group.
const MOST_STEPS: u32 = 4_000;
/// Cylinders of a near move, and tracks of a move from a part, at most.
const NEAR: u64 = 64;
const FROM_PART: u64 = 1_000;
/// Tracks at either side of a boundary.
const ABOUT: u64 = 3;

/// Checks the moves of each class.
///
/// # Errors
/// As [`Sampler::run`].
pub(super) fn check(
    sampler: &mut Sampler,
    spindle: &mut Spindle,
    model: &Model,
    pairs: &Pairs,
    (profile, parts): (&Profile, &[Part]),
) -> Result<Vec<Checked>, ProbeError> {
    let whole =
        [Class::NextTrack, Class::Crossing, Class::ZoneEnd, Class::Near, Class::Few, Class::Hundreds, Class::Anywhere];
    let within = parts.iter().map(|p| Class::Within(p.first, p.last, p.surface));
    let classes: Vec<Class> = whole.into_iter().chain(within).collect();
    let o = &profile.electronics.overheads;
    let blocks = u64::from((profile.sector_bytes / 512).max(1));
    let on_bus = profile.electronics.bus.read_block_ps as f64 / 1e3 * blocks as f64;
    let command = o.per_request + o.read_miss.after_read + o.reselect + o.data_preparation + o.read_completion;
    let deviations = MARGIN_DEVIATIONS * profile.noise.seek_sd.0 as f64 + TABLE_ERROR_NS;
    let mut moves = Moves {
        sampler,
        spindle,
        model,
        table: &profile.mechanics.seek,
        pairs,
        parts,
        command: (command + profile.electronics.bus.arbitration).0 as f64 + on_bus,
        margin: deviations.clamp(MARGIN_NS.0, MARGIN_NS.1),
    };
    let mut all = Vec::with_capacity(classes.len());
    for (i, class) in classes.iter().enumerate() {
        moves.sampler.share(i as f64 / classes.len() as f64);
        all.extend(moves.class(*class)?);
    }
    Ok(all)
}

/// What a shot is predicted to do.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Predicted {
    Caught,
    Missed,
}

struct Moves<'m, 's, 'g> {
    sampler: &'m mut Sampler<'s>,
    spindle: &'m mut Spindle,
    model: &'m Model,
    /// The profile's seek times by distance, ascending.
    table: &'m [(u32, Dur)],
    pairs: &'m Pairs<'g>,
    parts: &'m [Part],
    /// An idle drive's time from a command until the arm starts, and from the media to the answer,
    /// ns.
    command: f64,
    margin: f64,
}

impl Moves<'_, '_, '_> {
    /// Checks a class; `None`: the drive has no such moves.
    fn class(&mut self, class: Class) -> Result<Option<Checked>, ProbeError> {
        let count = if matches!(class, Class::Within(..)) { PART_PAIRS } else { PAIRS };
        let (mut asked, mut wrong) = (0, 0);
        for _ in 0..count {
            let Some((a, b)) = (0..TRIES).find_map(|_| self.choose(class)) else { continue };
            if let Some(right) = self.is_right(&a, &b)? {
                asked += 1;
                wrong += u32::from(!right);
            }
        }
        let good = f64::from(wrong) <= MOST_WRONG * f64::from(asked);
        Ok((asked > 0).then_some(Checked { class, asked, wrong, good }))
    }

    /// Returns whether a move is as predicted; `None`: the shots were useless.
    fn is_right(&mut self, a: &Track, b: &Track) -> Result<Option<bool>, ProbeError> {
        let (low, high) = self.takes(a, b);
        // A drive that reads ahead may complete the sector under the head before it moves.
        let stop = if self.model.reads_ahead() { self.pairs.sector(self.spindle, a) } else { 0.0 };
        let mut asked = false;
        let shots = [(high + self.margin + stop, Predicted::Caught), (low - self.margin, Predicted::Missed)];
        for (aim, predicted) in shots {
            match self.happens((a, b), aim, predicted)? {
                Some(true) => asked = true,
                Some(false) => return Ok(Some(false)),
                None => {}
            }
        }
        Ok(asked.then_some(true))
    }

    /// The slack that a move needs by the profile, ns: at least and at most. A seek whose distance
    /// is not in the table takes a time between those of its neighbours: real curves have steps.
    fn takes(&self, a: &Track, b: &Track) -> (f64, f64) {
        let (from, to) = ((a.cylinder, a.surface), (b.cylinder, b.surface));
        let predicted = self.model.mechanics.reposition(from, to, Kind::Read).0 as f64;
        let distance = a.cylinder.abs_diff(b.cylinder);
        let above = self.table.partition_point(|(d, _)| *d < distance);
        let measured = self.table.get(above).is_none_or(|(d, _)| *d == distance);
        let (mut low, mut high) = (predicted, predicted);
        if let (false, Some(below)) = (measured, above.checked_sub(1)) {
            let switch = if a.surface == b.surface { 0.0 } else { self.model.mechanics.head_switch.0 as f64 };
            for (_, time) in &self.table[below..=above] {
                let time = switch.max(time.0 as f64);
                (low, high) = (low.min(time), high.max(time));
            }
        }
        (self.command + low, self.command + high)
    }

    /// Returns whether a shot does what is predicted, by majority if the first does not.
    fn happens(
        &mut self,
        tracks: (&Track, &Track),
        aim: f64,
        predicted: Predicted,
    ) -> Result<Option<bool>, ProbeError> {
        let (mut right, mut wrong) = (0, 0);
        for _ in 0..TRIES {
            match self.pairs.between(self.sampler, self.spindle, (tracks, When::AtOnce), aim)? {
                Some(shot) if (shot.turns <= 0) == (predicted == Predicted::Caught) => right += 1,
                Some(_) => wrong += 1,
                None => {}
            }
            if (right == 1 && wrong == 0) || 2 * right > VOTES {
                return Ok(Some(true));
            }
            if 2 * wrong > VOTES {
                return Ok(Some(false));
            }
        }
        Ok(None)
    }

    /// Chooses two tracks of a class, in either order.
    fn choose(&mut self, class: Class) -> Option<(Track, Track)> {
        let g = self.pairs.geometry();
        let (a, b) = match class {
            Class::NextTrack => self.in_order(g, (1, 1))?,
            Class::Few => self.in_order(g, (2, 20))?,
            Class::Hundreds => self.in_order(g, (21, 2_000))?,
            Class::Anywhere => (self.any(g)?, self.any(g)?),
            Class::Crossing => self.crossing(g)?,
            Class::ZoneEnd => self.zone_end(g)?,
            Class::Near => {
                let a = self.any(g)?;
                let by = self.about(NEAR) as u32 - 1;
                let surface = self.sampler.below(u64::from(g.surfaces())) as u16;
                (a, g.track(a.cylinder.checked_add(by)?, surface)?)
            }
            Class::Within(first, last, surface) => {
                let (cylinder, surface) = Part { first, last, surface }.place(self.sampler, g.surfaces());
                let a = g.track(cylinder, surface)?;
                let by = self.about(FROM_PART);
                (a, self.beyond(g, &a, by)?)
            }
            Class::Angles(..) => return None,
        };
        if (a.cylinder, a.surface) == (b.cylinder, b.surface) || !holds_enough(&a) || !holds_enough(&b) {
            return None;
        }
        Some(if self.sampler.below(2) == 0 { (a, b) } else { (b, a) })
    }

    fn any(&mut self, g: &Geometry) -> Option<Track> {
        g.track_of(self.sampler.below(g.capacity()))
    }

    /// A number from 1 to `most`, small ones as often as large ones.
    fn about(&mut self, most: u64) -> u64 {
        let scale = self.sampler.below(u64::from(most.ilog2()) + 1) as u32;
        let low = 1u64 << scale;
        (low + self.sampler.below(low)).min(most)
    }

    /// A track and one a number of tracks after it, in the order of sectors.
    fn in_order(&mut self, g: &Geometry, (fewest, most): (u64, u64)) -> Option<(Track, Track)> {
        let a = self.any(g)?;
        let by = fewest + self.sampler.below(most - fewest + 1);
        Some((a, self.beyond(g, &a, by)?))
    }

    /// The track about `by` tracks after another; exactly the next for 1.
    fn beyond(&self, g: &Geometry, a: &Track, by: u64) -> Option<Track> {
        match by {
            1 => g.track_of(a.first_lbn + u64::from(a.lbns)),
            _ => g.track_of(a.first_lbn + by * u64::from(a.lbns)),
        }
    }

    /// Tracks at either side of the next boundary: of a cylinder on head-first drives, else of a
    /// group's tracks on one surface.
    fn crossing(&mut self, g: &Geometry) -> Option<(Track, Track)> {
        if g.surfaces() < 2 {
            return None;
        }
        let from = self.any(g)?;
        let crosses = |a: &Track, b: &Track| match g.group_tracks() {
            Some(_) => a.surface != b.surface,
            None => a.cylinder != b.cylinder,
        };
        let (mut a, mut steps) = (from, 0);
        let mut b = loop {
            let b = self.beyond(g, &a, 1)?;
            if crosses(&a, &b) {
                break b;
            }
            (a, steps) = (b, steps + 1);
            if steps > MOST_STEPS {
                return None;
            }
        };
        for _ in 0..self.sampler.below(ABOUT) {
            a = a.first_lbn.checked_sub(1).and_then(|lbn| g.track_of(lbn))?;
        }
        for _ in 0..self.sampler.below(ABOUT) {
            b = self.beyond(g, &b, 1)?;
        }
        Some((a, b))
    }

    /// Tracks at either side of a part's end.
    fn zone_end(&mut self, g: &Geometry) -> Option<(Track, Track)> {
        let part = self.parts[self.sampler.below(self.parts.len() as u64) as usize];
        let mut surface = || part.surface.unwrap_or_else(|| self.sampler.below(u64::from(g.surfaces())) as u16);
        let (one, other) = (surface(), surface());
        let (before, behind) = (self.sampler.below(ABOUT) as u32, self.sampler.below(ABOUT) as u32);
        // The last cylinders of a zone may be spare.
        let a = (0..NEAR as u32).find_map(|more| {
            g.track(part.last.checked_sub(before + more)?, one).filter(|t| t.cylinder >= part.first && holds_enough(t))
        })?;
        let b = g.track((part.last + 1).checked_add(behind)?, other)?;
        Some((a, b))
    }
}
