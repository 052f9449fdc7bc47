//! Times between two commands from the turns that the second one missed.
//!
//! When a command waits in the drive while the one before it ends, the arm sets out once a time has
//! passed that is a figure of the pair. How long that takes never shows in a completion, because
//! the head waits for the first sector anyway. What does show is whether it came too late and
//! waited for a turn more. With no time between the two the head would have waited for some
//! *slack*; a command that is a turn late says that the time is longer than its slack, one that is
//! not says that it is no longer. The border between the two is the time. Seeks that are a little
//! longer or shorter blur it to both sides alike and do not move it.
//!
//! It needs commands whose slack is about what is looked for: among random ones those are few; SATF
//! with a model in which the drive needs no time at all prefers them.

use std::collections::BTreeMap;

use headtime_disk::command::Kind;
use headtime_disk::model::{Model, Place};
use headtime_disk::time::{Dur, Time};

use super::pair;

/// A command that is certain to be in the drive's queue has been sent this long before the one in
/// front of it ended: idle drives need half a millisecond until they set out (Reuther and Pohlack
/// 2003, table 1: t_ovh of the Barracuda 36ES2).
const UNDERSTOOD: Dur = Dur::from_ms(1);

/// Slacks this far from a border, in parts of a turn, count as evidence for it.
const NEAR: u64 = 16;

/// So many commands near the border must lie on each side of it, or it is not said to have been
/// found.
const EVIDENCE: usize = 10;

/// A command with what the host saw of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timed {
    /// Read or write.
    pub kind: Kind,
    /// First LBN.
    pub lbn: u64,
    /// Sectors.
    pub count: u32,
    /// When it was sent.
    pub sent: Time,
    /// When the host heard of its end.
    pub done: Time,
}

/// What was found for one pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Border {
    /// The time between the two commands.
    pub time: Dur,
    /// Commands whose slack was within a sixteenth of a turn of it.
    pub near: usize,
    /// How many commands, of all, lie on the wrong side: late in spite of a larger slack, or in
    /// time with a smaller one.
    pub contrary: usize,
}

/// Collects commands of one drive.
#[derive(Debug)]
pub struct Missed<'a> {
    model: &'a Model,
    last: Option<(Timed, Place)>,
    /// By pair: slack, and whether the turn was missed.
    samples: [Vec<(Dur, bool)>; 4],
}

impl<'a> Missed<'a> {
    /// With what is known of the drive: its geometry, its seek table and its speed. The times that
    /// are looked for are not used.
    pub fn new(model: &'a Model) -> Missed<'a> {
        Missed { model, last: None, samples: Default::default() }
    }

    /// Takes note of a command, in the order in which the host heard of their ends. What it cannot
    /// use it ignores: flushes, commands that the drive was not waiting with, and whatever took a
    /// time that no number of turns explains (a cache answered, say).
    pub fn command(&mut self, timed: &Timed) {
        let place = match timed.kind {
            Kind::Flush => None,
            kind => self.model.place(timed.lbn, timed.count, kind),
        };
        let last = std::mem::replace(&mut self.last, place.map(|p| (*timed, p)));
        let (Some((last, before)), Some(place)) = (last, place) else {
            return;
        };
        if last.done.saturating_since(timed.sent) < UNDERSTOOD {
            return;
        }
        let mechanics = &self.model.mechanics;
        let rotation = &mechanics.rotation;
        let from = (before.end_cylinder, before.end_surface);
        let seek = mechanics.reposition(from, (place.cylinder, place.surface), timed.kind);
        let slack = rotation.wait(before.end_angle + rotation.angle_after(seek), place.angle);
        // In turns more than it would have taken without a time between the two; what bus and host
        // add is little of a turn.
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

    /// Commands that could be used, by pair.
    pub fn used(&self) -> [usize; 4] {
        [0, 1, 2, 3].map(|i| self.samples[i].len())
    }

    /// Commands of a pair by their slack, in classes so wide: where a class begins, how many of it
    /// missed the turn, and how many there are. Empty classes are left out.
    pub fn classes(&self, pair: usize, width: Dur) -> Vec<(Dur, usize, usize)> {
        let width = width.0.max(1);
        let mut classes: BTreeMap<u64, (usize, usize)> = BTreeMap::new();
        for (slack, missed) in self.samples.get(pair).into_iter().flatten() {
            let class = classes.entry(slack.0 / width).or_default();
            class.0 += usize::from(*missed);
            class.1 += 1;
        }
        classes.into_iter().map(|(at, (missed, all))| (Dur(at * width), missed, all)).collect()
    }

    /// The borders, by pair; `None` where too few commands came near one.
    pub fn borders(&self) -> [Option<Border>; 4] {
        [0, 1, 2, 3].map(|i| border(&self.samples[i], self.model.mechanics.rotation.period()))
    }
}

/// The slack that separates best what missed from what did not.
fn border(samples: &[(Dur, bool)], turn: Dur) -> Option<Border> {
    let mut sorted = samples.to_vec();
    sorted.sort_unstable();
    // With the border below all of them, those that missed a turn are on the wrong side.
    let mut contrary = sorted.iter().filter(|(_, missed)| *missed).count();
    let mut fewest = usize::MAX;
    let (mut low, mut high) = (Dur::ZERO, Dur::ZERO);
    let mut below = Dur::ZERO;
    for at in 0..=sorted.len() {
        let above = sorted.get(at).map_or(turn, |s| s.0);
        // The border may lie anywhere from `below` to `above`. Where several places are as good,
        // they are as good because chance has it so, and the truth is among them.
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
        let is_near = |s: &&(Dur, bool)| s.1 == missed && s.0.0.abs_diff(time.0) <= turn.0 / NEAR;
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
        // Seven misses are too few to say so.
        assert_eq!(found, None);
        let dense: Vec<(Dur, bool)> = (0..2000).map(|i| (us(i * 2), i * 2 < 65)).collect();
        let found = border(&dense, TURN).unwrap();
        assert_eq!((found.time, found.contrary), (us(65), 0));
        // 0 to 315 us: a sixteenth of a turn beyond the border.
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

    /// Two reads, the second done `more` after its first sector could have come first.
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
        // Half a turn more is no turn, and two are no question of some microseconds.
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
        // Earlier than what was before it: reads and writes overtake each other on the bus.
        missed.command(&t(Kind::Read, 500, 50));
        missed.command(&t(Kind::Write, 9_000, 40));
        assert_eq!(missed.used(), [0; 4]);
    }
}
