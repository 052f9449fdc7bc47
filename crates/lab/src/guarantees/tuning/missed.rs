//! Overhead times between two commands from the revolutions missed by the second one.
//!
//! If a command is pending in the drive when its predecessor ends, the mechanism starts after a
//! time that depends on the pair. This time never shows in a completion, because the head waits for
//! the first sector anyway. What shows is whether it came too late and waited for another
//! revolution. With no time between the two the head would have waited for some *slack*; a command
//! that is a revolution late has a time longer than its slack, any other a time that is no longer.
//! The border between the two is the time. Slightly longer or shorter seeks blur it symmetrically
//! and do not move it.
//!
//! This needs commands with slacks near the border: among random ones those are few; SATF with a
//! model without such times prefers them.

use std::collections::BTreeMap;

use headtime_disk::{Dur, Kind, Model, Place, Time};

use super::pair;

/// A command is certainly pending in the drive if it was sent this long before the end of its
/// predecessor: idle drives need half a millisecond until they start (Reuther and Pohlack 2003,
/// table 1: t_ovh of the Barracuda 36ES2).
const DECODE_TIME: Dur = Dur::from_ms(1);

/// Slacks this far from a border, in parts of a revolution, count as evidence for it.
const EVIDENCE_PART: u64 = 16;

/// Fewest commands near the border on each side of it.
const EVIDENCE: usize = 10;

/// A command with the host's observations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Timed {
    /// Read or write.
    pub kind: Kind,
    /// First LBN.
    pub lbn: u64,
    /// Sectors.
    pub count: u32,
    /// Time of dispatch.
    pub sent: Time,
    /// Time at which the host noticed the completion.
    pub done: Time,
}

/// The border of one pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Border {
    /// The time between the two commands.
    pub time: Dur,
    /// Commands with a slack within a sixteenth of a revolution of it.
    pub near: usize,
    /// Number of commands, of all, on the wrong side: late in spite of a larger slack, or in time
    /// with a smaller one.
    pub contrary: usize,
}

/// Collects commands of one drive.
#[derive(Debug)]
pub(crate) struct Missed<'a> {
    model: &'a Model,
    last: Option<(Timed, Place)>,
    /// By pair: slack, and whether a revolution was missed.
    samples: [Vec<(Dur, bool)>; 4],
}

impl<'a> Missed<'a> {
    /// Starts with the known figures of the drive: its geometry, its seek table and its speed. The
    /// times to be found are not used.
    pub(crate) fn new(model: &'a Model) -> Missed<'a> {
        Missed { model, last: None, samples: Default::default() }
    }

    /// Adds a command, in the order of completions as the host noticed them. Ignores unusable ones:
    /// flushes, commands that were not pending, and durations that no number of revolutions
    /// explains (a cache hit, for example).
    pub(crate) fn command(&mut self, timed: &Timed) {
        let place = match timed.kind {
            Kind::Flush => None,
            kind => self.model.place(timed.lbn, timed.count, kind),
        };
        let last = std::mem::replace(&mut self.last, place.map(|p| (*timed, p)));
        let (Some((last, before)), Some(place)) = (last, place) else {
            return;
        };
        if last.done.saturating_since(timed.sent) < DECODE_TIME {
            return;
        }
        let mechanics = &self.model.mechanics;
        let rotation = &mechanics.rotation;
        let from = (before.end_cylinder, before.end_surface);
        let seek = mechanics.reposition(from, (place.cylinder, place.surface), timed.kind);
        let slack = rotation.wait(before.end_angle + rotation.angle_after(seek), place.angle);
        // In revolutions beyond the duration without a time between the two; bus and host add a
        // small part of a revolution.
        let turn = rotation.period().0;
        let took = timed.done.saturating_since(last.done).0;
        let least = (seek + slack + place.transfer).0;
        let turns = took.saturating_add(turn / 2).checked_sub(least).map(|more| more / turn);
        let off = turns.map(|n| took.abs_diff(least + n * turn));
        match (turns, off) {
            (Some(turns @ 0..=1), Some(off)) if off <= turn / 8 => {
                self.samples[pair(last.kind, timed.kind)].push((slack, turns == 1));
            }
            _ => {}
        }
    }

    /// Number of usable commands, by pair.
    #[cfg(test)]
    pub(crate) fn used(&self) -> [usize; 4] {
        [0, 1, 2, 3].map(|i| self.samples[i].len())
    }

    /// Commands of a pair by their slack, in classes of `width`: the start of a class, the number
    /// of missed revolutions in it, and the number of commands. Empty classes are left out.
    pub(crate) fn classes(&self, pair: usize, width: Dur) -> Vec<(Dur, usize, usize)> {
        let width = width.0.max(1);
        let mut classes: BTreeMap<u64, (usize, usize)> = BTreeMap::new();
        for (slack, missed) in self.samples.get(pair).into_iter().flatten() {
            let class = classes.entry(slack.0 / width).or_default();
            class.0 += usize::from(*missed);
            class.1 += 1;
        }
        classes.into_iter().map(|(at, (missed, all))| (Dur(at * width), missed, all)).collect()
    }

    /// The borders, by pair; `None` if too few commands are near one.
    pub(crate) fn borders(&self) -> [Option<Border>; 4] {
        [0, 1, 2, 3].map(|i| border(&self.samples[i], self.model.mechanics.rotation.period()))
    }
}

/// The slack that best separates misses from catches.
fn border(samples: &[(Dur, bool)], turn: Dur) -> Option<Border> {
    let mut sorted = samples.to_vec();
    sorted.sort_unstable();
    // With the border below all slacks, all misses are on the wrong side.
    let mut contrary = sorted.iter().filter(|(_, missed)| *missed).count();
    let mut fewest = usize::MAX;
    let (mut low, mut high) = (Dur::ZERO, Dur::ZERO);
    let mut below = Dur::ZERO;
    for at in 0..=sorted.len() {
        let above = sorted.get(at).map_or(turn, |s| s.0);
        // The border may lie anywhere from `below` to `above`. Equally good places are equal by
        // chance, and the true one is among them.
        if contrary < fewest {
            (fewest, low, high) = (contrary, below, above);
        } else if contrary == fewest {
            high = above;
        }
        let Some(&(slack, missed)) = sorted.get(at) else {
            break;
        };
        contrary = if missed { contrary - 1 } else { contrary + 1 };
        below = slack;
    }
    let time = Dur(low.0 + (high.0 - low.0) / 2);
    let near = |missed: bool| {
        let is_near = |s: &&(Dur, bool)| s.1 == missed && s.0.0.abs_diff(time.0) <= turn.0 / EVIDENCE_PART;
        sorted.iter().filter(is_near).count()
    };
    let (late, in_time) = (near(true), near(false));
    (late >= EVIDENCE && in_time >= EVIDENCE).then_some(Border { time, near: late + in_time, contrary: fewest })
}

#[cfg(test)]
mod tests {
    use headtime_disk::profile::builtin;

    use super::*;

    const TURN: Dur = Dur::from_us(4_000);

    fn us(n: u64) -> Dur {
        Dur::from_us(n)
    }

    #[test]
    fn the_border_lies_between_what_missed_and_what_did_not() {
        let sharp: Vec<(Dur, bool)> = (0..400).map(|i| (us(i * 10), i * 10 < 65)).collect();
        let found = border(&sharp, TURN);
        // Seven misses are too few.
        assert_eq!(found, None);
        let dense: Vec<(Dur, bool)> = (0..2000).map(|i| (us(i * 2), i * 2 < 65)).collect();
        let found = border(&dense, TURN).unwrap();
        assert_eq!((found.time, found.contrary), (us(65), 0));
        // 0 to 315 us: a sixteenth of a revolution beyond the border.
        assert_eq!(found.near, 158);
    }

    #[test]
    fn errors_to_both_sides_and_turns_that_are_missed_anywhere_do_not_move_it() {
        // Within 20 us of the border every other command is on the wrong side, and of the rest one
        // in fifty is late.
        let blurred: Vec<(Dur, bool)> = (0..4000)
            .map(|i| {
                let slack = us(i);
                let wrong = slack.0.abs_diff(us(300).0) < us(20).0 && i % 2 == 0;
                (slack, (slack < us(300)) != wrong || i % 50 == 7)
            })
            .collect();
        let found = border(&blurred, TURN).unwrap();
        assert!(found.time.0.abs_diff(us(300).0) <= us(20).0, "{found:?}");
        assert!(found.contrary > 80, "{found:?}");
    }

    #[test]
    fn without_commands_nothing_is_found() {
        assert_eq!(border(&[], TURN), None);
        let all_in_time: Vec<(Dur, bool)> = (0..1000).map(|i| (us(4 * i), false)).collect();
        assert_eq!(border(&all_in_time, TURN), None);
    }

    /// Two reads, the second completed `more` after its first sector could have come first.
    fn after(model: &Model, waited: Dur, more: Dur) -> usize {
        let (a, b) = (model.place(1_000, 8, Kind::Read).unwrap(), model.place(9_000_000, 8, Kind::Read).unwrap());
        let mechanics = &model.mechanics;
        let seek = mechanics.reposition((a.end_cylinder, a.end_surface), (b.cylinder, b.surface), Kind::Read);
        let slack = mechanics.rotation.wait(a.end_angle + mechanics.rotation.angle_after(seek), b.angle);
        let done = Time::ZERO + Dur::from_ms(50);
        let mut missed = Missed::new(model);
        let first = Timed { kind: Kind::Read, lbn: 1_000, count: 8, sent: Time::ZERO, done };
        let ended = done + seek + slack + b.transfer + more;
        missed.command(&first);
        missed.command(&Timed { lbn: 9_000_000, sent: Time(done.0 - waited.0), done: ended, ..first });
        assert_eq!(missed.used()[1..], [0, 0, 0]);
        assert!(missed.samples[0].iter().all(|s| *s == (slack, more > us(1_000))), "{:?}", missed.samples[0]);
        missed.used()[0]
    }

    #[test]
    fn only_what_waited_and_took_whole_turns_more_is_used() {
        let model = Model::new(&builtin("ultrastar36z15").unwrap()).unwrap();
        let turn = model.mechanics.rotation.period();
        assert_eq!(after(&model, Dur::from_ms(5), Dur::ZERO), 1);
        assert_eq!(after(&model, Dur::from_ms(5), us(100)), 1);
        assert_eq!(after(&model, Dur::from_ms(5), turn + us(100)), 1);
        // Half a revolution more is no whole one, and two are no matter of some microseconds.
        assert_eq!(after(&model, Dur::from_ms(5), us(2_000)), 0);
        assert_eq!(after(&model, Dur::from_ms(5), turn + turn), 0);
        // The drive may have been waiting for it.
        assert_eq!(after(&model, us(900), Dur::ZERO), 0);
    }

    #[test]
    fn what_no_drive_has_and_what_moves_nothing_is_ignored() {
        let model = Model::new(&builtin("ultrastar36z15").unwrap()).unwrap();
        let mut missed = Missed::new(&model);
        let t = |kind, lbn, ms| Timed { kind, lbn, count: 8, sent: Time::ZERO, done: Time::ZERO + Dur::from_ms(ms) };
        missed.command(&t(Kind::Read, 0, 10));
        missed.command(&t(Kind::Flush, 0, 20));
        missed.command(&t(Kind::Read, u64::MAX, 30));
        // Earlier than its predecessor: reads and writes overtake each other on the bus.
        missed.command(&t(Kind::Read, 500, 50));
        missed.command(&t(Kind::Write, 9_000, 40));
        assert_eq!(missed.used(), [0; 4]);
    }
}
