//! Conservatism: how much longer than predicted a move may take before filling a gap would make the foreground late.
//!
//! It is added to predicted seeks in FILL's decisions only (seed 001 sections 3.3 and 4.2): too little costs the foreground
//! a turn, too much wastes part of each gap. It applies to moves: a transfer on the track where the head is cannot
//! come late.

use headtime_disk::time::Dur;

/// Classes of seek distance.
pub const CLASSES: usize = 24;

/// The class of a seek distance in cylinders: 0 for none (a head switch), then two classes for each doubling.
#[inline]
pub fn class_of(distance: u32) -> usize {
    if distance == 0 {
        return 0;
    }
    let log = 31 - distance.leading_zeros();
    // The bit behind the leading one halves the doubling.
    let half = if log == 0 { 0 } else { distance >> (log - 1) & 1 };
    ((1 + 2 * log + half) as usize).min(CLASSES - 1)
}

/// What is added to predicted moves, by class of distance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Margins {
    by_class: [Dur; CLASSES],
}

impl Margins {
    /// The same for every move.
    pub const fn fixed(margin: Dur) -> Margins {
        Margins { by_class: [margin; CLASSES] }
    }

    /// By class of distance.
    pub const fn by_class(by_class: [Dur; CLASSES]) -> Margins {
        Margins { by_class }
    }

    /// What is added to a move from one track to another; nothing when they are the same.
    #[inline]
    pub fn of_move(&self, from: (u32, u16), to: (u32, u16)) -> Dur {
        match from == to {
            true => Dur::ZERO,
            false => self.by_class[class_of(from.0.abs_diff(to.0))],
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
    fn staying_needs_no_margin() {
        let m = Margins::fixed(Dur::from_us(300));
        assert_eq!(m.of_move((5, 1), (5, 1)), Dur::ZERO);
        assert_eq!(m.of_move((5, 1), (5, 0)), Dur::from_us(300));
    }
}
