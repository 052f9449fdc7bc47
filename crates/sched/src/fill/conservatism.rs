//! Conservatism: margins, by which a move may take longer than predicted before filling a gap would
//! delay the foreground.
//!
//! Margins are added to predicted seeks in FILL's decisions only (Lumb 2002 sections 3.3 and 4.2):
//! a margin that is too small costs the foreground a revolution, one that is too large wastes part
//! of each gap. It applies to moves. Between two commands on one track nothing moves; a short fixed
//! time is reserved there (`STAY`).

use headtime_disk::Dur;

/// Number of classes of seek distance: two per doubling up to a million cylinders, more than any
/// drive has.
pub(crate) const CLASSES: usize = 42;

/// Returns the class of a seek distance in cylinders: 0 for none (a head switch), then two classes
/// per doubling.
#[inline]
pub(crate) fn class_of(distance: u32) -> usize {
    if distance == 0 {
        return 0;
    }
    let log = distance.ilog2();
    // The bit after the leading one halves the doubling.
    let half = (u64::from(distance) << 1 >> log & 1) as u32;
    ((1 + 2 * log + half) as usize).min(CLASSES - 1)
}

/// Returns the distance at the centre of a class; 0 for class 0.
pub(crate) fn centre_of(class: usize) -> u32 {
    let (Some(class), log) = (class.min(CLASSES - 1).checked_sub(1), class.saturating_sub(1) / 2) else {
        return 0;
    };
    let (first, half) = (1u64 << log, (1u64 << log) / 2);
    let first = if class % 2 == 1 { first + half } else { first };
    (first + half.saturating_sub(1) / 2) as u32
}

/// Margins of predicted moves, by class of distance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Margins {
    /// In ns; margins are clamped to four seconds.
    by_class: [u32; CLASSES],
    /// Between two commands on one track.
    stay: u32,
}

/// Margin between two commands on one track. Nothing moves, so no seek can take longer; but the
/// rotation is some parts per million slower or faster than assumed, and the drive's electronics
/// take a few microseconds more or less per command. Without a margin every other such command is a
/// revolution late.
const STAY: Dur = Dur::from_us(100);

/// Lower bound of margins: even with exact knowledge, plans are computed in whole nanoseconds and
/// may be off by this much.
const MIN_MARGIN: Dur = Dur::from_us(2);

const fn ns(margin: Dur) -> u32 {
    if margin.0 > u32::MAX as u64 { u32::MAX } else { margin.0 as u32 }
}

impl Margins {
    /// Creates the same margin for every move.
    pub const fn fixed(margin: Dur) -> Margins {
        let margin = if margin.0 < MIN_MARGIN.0 { MIN_MARGIN } else { margin };
        Margins { by_class: [ns(margin); CLASSES], stay: if margin.0 < STAY.0 { ns(margin) } else { ns(STAY) } }
    }

    /// Creates margins by class of distance.
    pub const fn by_class(by_class: [Dur; CLASSES]) -> Margins {
        let mut margins = Margins { by_class: [0; CLASSES], stay: ns(STAY) };
        let mut class = 0;
        while class < CLASSES {
            margins.by_class[class] = ns(by_class[class]);
            class += 1;
        }
        margins
    }

    /// Returns the margin of a class.
    #[inline]
    pub fn of_class(&self, class: usize) -> Dur {
        Dur(u64::from(self.by_class[class]))
    }

    /// Returns the margin of a move from one track to another; small when they are the same.
    #[inline]
    pub fn of_move(&self, from: (u32, u16), to: (u32, u16)) -> Dur {
        match from == to {
            true => Dur(u64::from(self.stay)),
            false => self.of_class(class_of(from.0.abs_diff(to.0))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_grow_with_distance_two_to_a_doubling() {
        let classes: Vec<usize> = [0, 1, 2, 3, 4, 6, 8, 12, 16].into_iter().map(class_of).collect();
        assert_eq!(classes, [0, 1, 3, 4, 5, 6, 7, 8, 9]);
        assert!((1..1_000_000u32).step_by(7).all(|d| class_of(d) <= class_of(d + 7)));
        assert_eq!(class_of(u32::MAX), CLASSES - 1);
    }

    #[test]
    fn the_middle_of_a_class_is_in_it() {
        // No distance lies between 1 and 2, so class 2 is empty.
        for class in (0..CLASSES).filter(|&c| c != 2) {
            assert_eq!(class_of(centre_of(class)), class, "{}", centre_of(class));
        }
        assert!((3..CLASSES).all(|c| centre_of(c - 1) < centre_of(c)));
    }

    #[test]
    fn margins_are_kept_by_class() {
        let m = Margins::by_class(std::array::from_fn(|c| Dur::from_us(c as u64)));
        assert_eq!(m.of_move((0, 0), (5, 0)), Dur::from_us(5));
        assert_eq!(m.of_class(7), Dur::from_us(7));
    }

    #[test]
    fn staying_needs_little_margin_even_where_the_truth_is_known() {
        let m = Margins::fixed(Dur::from_us(300));
        assert_eq!(m.of_move((5, 1), (5, 1)), STAY);
        assert_eq!(m.of_move((5, 1), (5, 0)), Dur::from_us(300));
        assert_eq!(Margins::fixed(Dur::ZERO).of_move((5, 1), (5, 1)), MIN_MARGIN);
    }
}
