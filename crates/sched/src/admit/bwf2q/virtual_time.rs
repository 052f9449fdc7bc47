//! The unit in which B-WF²Q+ compares applications of different weights.

/// Virtual time: sectors per unit of weight, in 2^-32; 128 bits outlast the life of any disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Virtual(pub u128);

impl Virtual {
    /// Returns the virtual time of a number of sectors at a weight. A weight of 0 counts as 1.
    pub(super) fn of(sectors: u64, weight: u64) -> Virtual {
        Virtual((u128::from(sectors) << 32) / u128::from(weight.max(1)))
    }

    /// Returns the virtual time at which further sectors have been served at a weight.
    pub(crate) fn after(self, sectors: u64, weight: u64) -> Virtual {
        Virtual(self.0 + Virtual::of(sectors, weight).0)
    }
}
