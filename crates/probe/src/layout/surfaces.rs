//! The number of surfaces, and the order in which the drive uses them.
//!
//! A move from one track to another takes the longer of the seek and, to another surface, the head
//! switch. So among tracks a few cylinders apart those on one surface are reached sooner, if the
//! head switch takes longer than a short seek. Otherwise a host cannot see the surface of a track,
//! and does not need it.

use headtime_disk::Track;
use headtime_disk::profile::HeadOrder;

use super::in_words;
use super::rows::Row;
use super::units::{MOST_SURFACES, over_slips};
use crate::border::{Border, SHOTS, find as border};
use crate::error::ProbeError;
use crate::pairs::{Pairs, When};
use crate::sampler::Sampler;
use crate::spindle::Spindle;

mod distances;
mod serpentine;
pub(super) mod sharp;

pub use serpentine::Groups;

/// Times that differ by less, ns, count as equal, whatever their error.
const CLEAR_NS: f64 = 15e3;
/// Sufficient error of a time, ns; on noisy drives it is measured again, up to `MOST_TIMES`.
const SUFFICIENT_ERROR_NS: f64 = 12e3;
const MOST_TIMES: u32 = 6;
/// Shots at one slack to decide whether a move takes more or less.
const VOTES: u32 = 5;

/// The order of consecutive tracks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// All heads of a cylinder, then the next.
    Heads {
        /// Number of surfaces.
        surfaces: u16,
        /// The direction of the heads in each cylinder.
        order: HeadOrder,
    },
    /// Groups of tracks on each surface in turn.
    Groups(Groups),
}

/// Measures moves between tracks of a map.
struct Ways<'w, 's, 'g> {
    sampler: &'w mut Sampler<'s>,
    spindle: &'w mut Spindle,
    pairs: &'w Pairs<'g>,
    /// Track number of each row's first track.
    begins: Vec<u64>,
}

/// Finds the order. `pairs` aims at the flat geometry of these rows, most of whose equal ones have
/// `unit` tracks. Returns the confidence too; `None`: undecided.
///
/// # Errors
/// As [`Sampler::run`].
pub(super) fn find(
    sampler: &mut Sampler,
    spindle: &mut Spindle,
    pairs: &Pairs,
    (rows, unit): (&[Row], Option<u64>),
    same: f64,
) -> Result<(Option<Order>, String), ProbeError> {
    sampler.stage("surfaces");
    let rows = &over_slips(rows, unit, same)[..];
    let mut begins = Vec::with_capacity(rows.len());
    let mut track = 0;
    for row in rows {
        begins.push(track);
        track += row.tracks;
    }
    let mut ways = Ways { sampler, spindle, pairs, begins };
    match unit {
        Some(n) if n <= MOST_SURFACES => ways.heads_of_cylinders(rows, n),
        Some(n) => ways.groups(rows, n),
        None => ways.heads_alike(rows),
    }
}

/// Finds the sweeps of a drive whose angles do not show them, because all skews are alike.
///
/// # Errors
/// As [`Sampler::run`].
pub(super) fn hidden_sweeps(
    sampler: &mut Sampler,
    spindle: &mut Spindle,
    pairs: &Pairs,
    rows: &[Row],
) -> Result<Option<sharp::Sweeps>, ProbeError> {
    let tracks = rows.iter().map(|r| r.tracks).sum();
    Ways { sampler, spindle, pairs, begins: Vec::new() }.sharp_sweeps(tracks)
}

/// A row long enough for tracks at any requested distance.
#[derive(Clone, Copy)]
struct LongRow {
    /// Number of its first track.
    begin: u64,
    tracks: u64,
    /// Tracks of its zone in front of it, with skipped ones: a zone begins with the first surface.
    before: u64,
}

/// All long rows.
struct Long(Vec<LongRow>);

impl Long {
    fn of(rows: &[Row], begins: &[u64]) -> Long {
        let mut all = Vec::new();
        let (mut before, mut spt) = (0, 0);
        for (&begin, row) in begins.iter().zip(rows) {
            before = if row.spt == spt { before + row.skipped } else { 0 };
            all.push(LongRow { begin, tracks: row.tracks, before });
            (before, spt) = (before + row.tracks, row.spt);
        }
        all.retain(|row| row.tracks > 3 * MOST_SURFACES);
        Long(all)
    }

    fn some(&self, s: &mut Sampler) -> LongRow {
        self.0[s.below(self.0.len() as u64) as usize]
    }

    /// Chooses a track and the one `k` after it.
    fn anywhere(&self, s: &mut Sampler, k: u64) -> (u64, u64) {
        let row = self.some(s);
        let t = row.begin + s.below(row.tracks - k);
        (t, t + k)
    }

    /// Chooses a track with number `by` modulo `n`, counted from a zone's first, but never a row's
    /// last track.
    fn one_of_each(&self, s: &mut Sampler, n: u64, by: u64) -> u64 {
        let row = self.some(s);
        let first = (by + n - row.before % n) % n;
        row.begin + first + n * s.below(((row.tracks - 1 - first) / n).max(1))
    }
}

/// Returns whether one time is significantly less than another.
fn is_less(a: &Border, b: &Border) -> bool {
    b.at - a.at > CLEAR_NS.max(4.0 * (a.error * a.error + b.error * b.error).sqrt())
}

impl Ways<'_, '_, '_> {
    /// The time of a move between tracks that `choose` returns, as track numbers in LBN order.
    fn time(
        &mut self,
        shots: u32,
        mut choose: impl FnMut(&mut Sampler) -> Option<(u64, u64)>,
    ) -> Result<Option<Border>, ProbeError> {
        let mut known: Option<Border> = None;
        for _ in 0..MOST_TIMES {
            let once = border(self.spindle.period_ns(), shots, |aim| {
                let Some((a, b)) = choose(self.sampler) else { return Ok(None) };
                let (Some(a), Some(b)) = (track(self.pairs, a), track(self.pairs, b)) else { return Ok(None) };
                self.pairs.between(self.sampler, self.spindle, ((&a, &b), When::AtOnce), aim)
            })?;
            let Some(once) = once else { break };
            let all = known.map_or(once, |k| k.and(&once));
            known = Some(all);
            if all.error < SUFFICIENT_ERROR_NS {
                break;
            }
        }
        Ok(known)
    }

    /// Returns whether that move takes less than `ns`; `None`: the shots were useless.
    fn is_within(
        &mut self,
        ns: f64,
        mut choose: impl FnMut(&mut Sampler) -> Option<(u64, u64)>,
    ) -> Result<Option<bool>, ProbeError> {
        let (mut caught, mut missed) = (0, 0);
        for _ in 0..6 * VOTES {
            let Some((a, b)) = choose(self.sampler) else { return Ok(None) };
            let (Some(a), Some(b)) = (track(self.pairs, a), track(self.pairs, b)) else { continue };
            match self.pairs.between(self.sampler, self.spindle, ((&a, &b), When::AtOnce), ns)? {
                Some(shot) if shot.turns <= 0 => caught += 1,
                Some(_) => missed += 1,
                None => {}
            }
            if 2 * caught > VOTES || 2 * missed > VOTES {
                return Ok(Some(caught > missed));
            }
        }
        Ok(None)
    }

    /// Rows are cylinders: finds whether the head order alternates.
    fn heads_of_cylinders(&mut self, rows: &[Row], heads: u64) -> Result<(Option<Order>, String), ProbeError> {
        let whole: Vec<u64> = (1..rows.len())
            .filter(|&i| rows[i - 1].tracks == heads && rows[i].tracks == heads)
            .map(|i| self.begins[i])
            .collect();
        let cylinder = move |s: &mut Sampler| whole[s.below(whole.len() as u64) as usize];
        // To the cylinder's second track; from the last track before it to its first; the same to
        // its last.
        let switch = self.time(SHOTS, |s| Some(cylinder(s)).map(|t| (t, t + 1)))?;
        let next = self.time(SHOTS, |s| Some(cylinder(s)).map(|t| (t - 1, t)))?;
        let over = self.time(SHOTS, |s| Some(cylinder(s)).map(|t| (t - 1, t + heads - 1)))?;
        let surfaces = heads as u16;
        let of = |order| Some(Order::Heads { surfaces, order });
        let (Some(switch), Some(next), Some(over)) = (switch, next, over) else {
            return Ok((of(HeadOrder::Forward), "surfaces by skews; their order is not known".into()));
        };
        let sure = |order, less: &Border| {
            let us = (switch.at - less.at) / 1e3;
            format!("surfaces by skews, {} by {us:.0} us that a head switch takes longer", in_words(order))
        };
        Ok(if is_less(&next, &switch) {
            (of(HeadOrder::AlternatingInZone), sure(HeadOrder::AlternatingInZone, &next))
        } else if is_less(&over, &switch) {
            (of(HeadOrder::Forward), sure(HeadOrder::Forward, &over))
        } else {
            let sure = "surfaces by skews; in which order does not show, for no head switch takes longer than a seek";
            (of(HeadOrder::Forward), sure.into())
        })
    }

    /// All skews are equal, so that it looks like one surface: tracks that are reached sooner than
    /// those before them are on the same surface again.
    fn heads_alike(&mut self, rows: &[Row]) -> Result<(Option<Order>, String), ProbeError> {
        let one = Some(Order::Heads { surfaces: 1, order: HeadOrder::Forward });
        let unknown = "surfaces do not show: all tracks are given as those of one";
        let of = |surfaces: u64, order, sure| Ok((Some(Order::Heads { surfaces: surfaces as u16, order }), sure));
        let there_and_back = |surfaces: u64, us: f64| {
            let order = HeadOrder::AlternatingInZone;
            of(
                surfaces,
                order,
                format!("{}: where they turn the way is {us:.0} us shorter than before", in_words(order)),
            )
        };
        let long = Long::of(rows, &self.begins);
        if long.0.is_empty() {
            return Ok((one, unknown.into()));
        }
        let mut times: Vec<(u64, Border)> = Vec::new();
        for k in 1..=2 * MOST_SURFACES {
            self.sampler.share(k as f64 / (2 * MOST_SURFACES) as f64);
            times.extend(self.time(SHOTS, |s| Some(long.anywhere(s, k)))?.map(|t| (k, t)));
            // Seen at one distance and at twice that.
            if let Some(again) = again(&times)
                && k > 2 * again
            {
                break;
            }
        }
        let Some(again) = again(&times) else {
            if let Some((surfaces, us)) = self.crossings(&long)? {
                let sure = format!(
                    "to the next cylinder the way is {us:.0} us longer than within one; the order does not show"
                );
                return of(surfaces, HeadOrder::Forward, sure);
            }
            // With few surfaces and a head switch hardly longer than a seek, distances do not
            // differ.
            for surfaces in 2..=MOST_SURFACES {
                if let Some(us) = self.turns_back(&long, surfaces)? {
                    return there_and_back(surfaces, us);
                }
            }
            return Ok((one, unknown.into()));
        };
        if again.is_multiple_of(2)
            && again > 2
            && let Some(us) = self.turns_back(&long, again / 2)?
        {
            return there_and_back(again / 2, us);
        }
        let over = |k: u64| times.iter().find(|t| t.0 == k).map(|t| t.1);
        let (Some(near), Some(next)) = (over(again), other(&times)) else { return Ok((one, unknown.into())) };
        let (order, us) = (HeadOrder::Forward, (next.at - near.at) / 1e3);
        let sure = format!("{}: {again} tracks on the way is {us:.0} us shorter than to the next", in_words(order));
        of(again, order, sure)
    }

    /// Tests an alternating order with `surfaces` surfaces: across the reversal the surface is the
    /// same, before it another. Returns by how many us the move is shorter there; `None`: not
    /// shorter both times. Among dozens of numbers one may seem so by chance, but hardly twice.
    fn turns_back(&mut self, long: &Long, surfaces: u64) -> Result<Option<f64>, ProbeError> {
        let mut shorter = None;
        for _ in 0..2 {
            let at_turn = |s: &mut Sampler| long.one_of_each(s, 2 * surfaces, surfaces - 1);
            let back = self.time(SHOTS, |s| Some(at_turn(s)).map(|t| (t, t + 1)))?;
            let across = self.time(SHOTS, |s| Some(at_turn(s)).map(|t| (t - 1, t)))?;
            match (back, across) {
                (Some(back), Some(across)) if is_less(&back, &across) => shorter = Some((across.at - back.at) / 1e3),
                _ => return Ok(None),
            }
        }
        Ok(shorter)
    }

    /// Heads that switch sooner than any seek: the move to the next track is longer if it is on the
    /// next cylinder. Returns the number of surfaces, and by how many us; `None`: equal everywhere.
    fn crossings(&mut self, long: &Long) -> Result<Option<(u64, f64)>, ProbeError> {
        // From the last track of each `n` to the next, and from the first.
        let at = |s: &mut Sampler, n: u64, by: u64| Some(long.one_of_each(s, n, by)).map(|t| (t, t + 1));
        let mut across: Vec<(u64, Border)> = Vec::new();
        for n in 2..=MOST_SURFACES {
            across.extend(self.time(SHOTS, |s| at(s, n, n - 1))?.map(|t| (n, t)));
        }
        let Some(most) = across.iter().map(|a| a.1).max_by(|a, b| a.at.total_cmp(&b.at)) else { return Ok(None) };
        // With a wrong number, moves cross to the next cylinder only occasionally.
        let Some(&(n, found)) = across.iter().find(|a| !is_less(&a.1, &most)) else { return Ok(None) };
        let within = self.time(SHOTS, |s| at(s, n, 0))?;
        Ok(within.filter(|w| is_less(w, &found)).map(|w| (n, (found.at - w.at) / 1e3)))
    }
}

/// The time to another surface: the longest to one of the next tracks, at most two of which are on
/// one surface.
fn other(times: &[(u64, Border)]) -> Option<Border> {
    times.iter().filter(|t| t.0 <= 5).map(|t| t.1).max_by(|a, b| (a.at - a.error).total_cmp(&(b.at - b.error)))
}

/// The least distance at which moves are clearly shorter than to the next track, and again at twice
/// that.
fn again(times: &[(u64, Border)]) -> Option<u64> {
    let next = other(times)?;
    let shortest = times.iter().map(|t| t.1).min_by(|a, b| a.at.total_cmp(&b.at))?;
    let limit = (next.at + shortest.at) / 2.0;
    // The next track: there is no other surface in between, or the head switch is shorter than the
    // seek. It may be slightly shorter anyway, because drives that read ahead are moving to it.
    if times.first().is_some_and(|(k, t)| *k == 1 && !is_less(&shortest, t)) {
        return None;
    }
    let found = times.iter().find(|(k, t)| *k > 1 && is_less(t, &next) && t.at < limit)?.0;
    // At twice that the seek takes slightly longer, and the head switch no less.
    times.iter().any(|(k, t)| *k == 2 * found && next.at - t.at > next.error + t.error).then_some(found)
}

/// The track of this number in LBN order, if there is room on it to aim.
fn track(pairs: &Pairs, number: u64) -> Option<Track> {
    let n = u32::try_from(number).ok()?;
    pairs.geometry().track(n, 0).filter(crate::pairs::holds_enough)
}
