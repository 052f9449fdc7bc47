//! w by command size, for best-effort requests and gap filling.
//!
//! Streams have declared and admitted sizes. All other commands count in the worst case, too, so
//! their w must be known before dispatch. It is computed once for sizes that double, so that a
//! decision only looks it up. A command larger than the largest computed size takes no longer than
//! its halves one after the other.

use headtime_disk::profile::Profile;
use headtime_disk::{Dur, Model};

use super::worst::{WorstCase, WorstError, moves_on};

/// The smallest size for which w is computed, in sectors.
const MIN_SECTORS: u32 = 8;

/// Number of size classes: up to [`MIN_SECTORS`] sectors, up to twice as many, and so on.
const CLASSES: usize = 30;

/// w by command size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorstCaseTable {
    by_class: [Dur; CLASSES],
    most: u32,
    moves_on: Dur,
}

impl WorstCaseTable {
    /// Computes w on the drive of `profile`, from which `model` was compiled. A request has at most
    /// `most` sectors: a larger one would be eligible only when no guarantee is due for its whole
    /// worst case.
    ///
    /// # Errors
    /// The worst-case service time of the drive is unbounded.
    pub fn of(profile: &Profile, model: &Model, most: u32) -> Result<WorstCaseTable, WorstError> {
        let mut by_class = [Dur::ZERO; CLASSES];
        let mut known = true;
        for class in 0..CLASSES {
            let smaller = class.checked_sub(1).map(|c| by_class[c]);
            known &= class <= class_of(most);
            let own = if known { Some(WorstCase::of(profile, model, MIN_SECTORS << class)) } else { None };
            by_class[class] = match (own, smaller) {
                // A larger command can take all that a smaller one can.
                (Some(Ok(worst)), _) => worst.total().max(smaller.unwrap_or(Dur::ZERO)),
                (Some(Err(e)), None) => return Err(e),
                (Some(Err(e)), _) if !matches!(e, WorstError::Scattered { .. }) => return Err(e),
                (_, smaller) => {
                    known = false;
                    Dur(smaller.expect("the first has its own").0.saturating_mul(2))
                }
            };
        }
        Ok(WorstCaseTable { by_class, most, moves_on: moves_on(profile, model) })
    }

    /// Returns the same w for commands of up to `most` sectors, whatever their size: for a drive
    /// known by its service times alone.
    pub fn flat(worst: Dur, most: u32) -> WorstCaseTable {
        let beyond = |class: usize| class.saturating_sub(class_of(most)) as u32;
        let by_class = std::array::from_fn(|class| Dur(worst.0.saturating_mul(1 << beyond(class))));
        WorstCaseTable { by_class, most, moves_on: Dur::ZERO }
    }

    /// Returns the size in sectors of the largest request without a stream.
    pub fn most_sectors(&self) -> u32 {
        self.most
    }

    /// Returns w of a command of this number of sectors; for a flush, which has none and moves
    /// nothing, that of the smallest size.
    #[inline]
    pub fn get(&self, sectors: u32) -> Dur {
        self.by_class[class_of(sectors)]
    }

    /// Returns how long after the start of a command the drive may move its arm on its own, though
    /// the command has completed.
    pub fn moves_on(&self) -> Dur {
        self.moves_on
    }

    /// Returns w of each size class.
    pub(super) fn classes(&self) -> &[Dur] {
        &self.by_class
    }
}

/// Returns the class of a size.
#[inline]
pub(super) fn class_of(sectors: u32) -> usize {
    u64::from(sectors.max(1).div_ceil(MIN_SECTORS)).next_power_of_two().trailing_zeros() as usize
}

#[cfg(test)]
mod tests {
    use headtime_disk::profile::builtin;

    use super::*;

    #[test]
    fn a_command_has_the_worst_case_of_the_least_size_that_holds_it() {
        let profile = builtin("ultrastar36z15").expect("a drive");
        let model = Model::new(&profile).expect("a drive that works");
        let worsts = WorstCaseTable::of(&profile, &model, 1000).expect("a worst case");
        assert_eq!(worsts.most_sectors(), 1000);
        let w = |sectors| WorstCase::of(&profile, &model, sectors).expect("a worst case").total();
        for (sectors, of) in [(0, 8), (1, 8), (8, 8), (9, 16), (128, 128), (129, 256), (1000, 1024), (1024, 1024)] {
            assert_eq!(worsts.get(sectors), w(of), "{sectors} sectors");
        }
        assert!(w(8) < w(128) && w(128) < w(1024));
        // Beyond, halves one after the other.
        assert_eq!((worsts.get(1025), worsts.get(5000)), (Dur(2 * w(1024).0), Dur(8 * w(1024).0)));
        assert!(worsts.get(1025) >= w(2048) && worsts.get(u32::MAX) > worsts.get(u32::MAX / 2));
    }

    #[test]
    fn a_drive_known_by_its_times_alone_has_one_worst_case_for_all_sizes() {
        let worsts = WorstCaseTable::flat(Dur::from_ms(30), 128);
        let [w, twice] = [30, 60].map(Dur::from_ms);
        assert_eq!((worsts.get(1), worsts.get(128), worsts.get(129)), (w, w, twice));
    }
}
