//! The worst case of commands that no stream declared: best effort and what fills gaps come in all sizes, and a decision must
//! know quickly how long one of them may take.

use headtime_disk::model::Model;
use headtime_disk::profile::Profile;
use headtime_disk::time::Dur;

use super::worst::{WorstCase, WorstError};

/// The smallest size that has a worst case of its own, in sectors.
const SMALLEST: u32 = 8;

/// w by the size of a command: of powers of two of sectors from 8 on, and of the largest that may come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Worsts {
    /// Size in sectors and w, both ascending.
    by_size: Vec<(u32, Dur)>,
}

impl Worsts {
    /// Of commands of up to `largest` sectors on the drive of `profile`, from which `model` was compiled. Sizes for which the drive
    /// has no worst case because too much lies scattered on it are left out, and all that are larger.
    ///
    /// # Errors
    /// A write-back cache, or no worst case for any size at all.
    pub fn of_drive(profile: &Profile, model: &Model, largest: u32) -> Result<Worsts, WorstError> {
        let powers = std::iter::successors(Some(SMALLEST), |size| size.checked_mul(2));
        let sizes = powers.take_while(|size| *size < largest).chain([largest.max(1)]);
        let mut by_size: Vec<(u32, Dur)> = Vec::new();
        for size in sizes {
            let worst = match WorstCase::of(profile, model, size) {
                Ok(worst) => worst.total(),
                Err(WorstError::Scattered { .. }) if !by_size.is_empty() => break,
                Err(e) => return Err(e),
            };
            // A larger command can take all that a smaller one can.
            let least = by_size.last().map_or(Dur::ZERO, |s| s.1);
            by_size.push((size, worst.max(least)));
        }
        Ok(Worsts { by_size })
    }

    /// w of a command of `count` sectors: that of the least size known that is not smaller. `None`: it is larger than any.
    #[inline]
    pub fn of(&self, count: u32) -> Option<Dur> {
        self.by_size.iter().find(|s| s.0 >= count).map(|s| s.1)
    }

    /// The largest size known, in sectors, and its w.
    pub fn largest(&self) -> (u32, Dur) {
        self.by_size.last().copied().expect("one at least")
    }
}

#[cfg(test)]
mod tests {
    use headtime_disk::profile::builtin;

    use super::*;

    fn drive() -> (Profile, Model) {
        let profile = builtin("barracuda36es2").expect("a built-in drive");
        let model = Model::new(&profile).expect("a drive that works");
        (profile, model)
    }

    #[test]
    fn a_command_has_the_worst_case_of_the_next_size_that_is_known() {
        let (profile, model) = drive();
        let worsts = Worsts::of_drive(&profile, &model, 1_000).expect("it writes through");
        let own = |sectors| Some(WorstCase::of(&profile, &model, sectors).expect("it writes through").total());
        for (count, size) in [(0, 8), (1, 8), (8, 8), (9, 16), (100, 128), (513, 1_000), (1_000, 1_000)] {
            assert_eq!(worsts.of(count), own(size), "{count}");
        }
        assert_eq!(worsts.of(1_001), None);
        assert_eq!(Some(worsts.largest().1), own(1_000));
        assert!((1..1_000).all(|n| worsts.of(n) >= own(n) && worsts.of(n) <= worsts.of(n + 1)));
    }

    #[test]
    fn fewer_sectors_than_the_smallest_size_have_a_size_of_their_own() {
        let (profile, model) = drive();
        let worsts = Worsts::of_drive(&profile, &model, 3).expect("it writes through");
        assert_eq!((worsts.largest().0, worsts.of(4)), (3, None));
    }

    #[test]
    fn a_drive_without_a_worst_case_has_none_of_any_size() {
        let (mut profile, model) = drive();
        profile.electronics.cache.write_back = true;
        assert_eq!(Worsts::of_drive(&profile, &model, 128), Err(WorstError::WriteBack));
    }
}
