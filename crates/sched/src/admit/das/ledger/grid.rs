//! Bins for computations over a period: fine ones for a stream's own requests, wide ones for sums
//! of others'.

use headtime_disk::Dur;

/// Maximum number of fine bins of a period, and of wide ones, in which sums of many times are kept.
/// Neither exceeds the given width: with long periods rounding would otherwise add as much as the
/// requests take.
const FINE: (u64, Dur) = (1 << 14, Dur::from_us(100));
const WIDE: (u64, Dur) = (1 << 11, Dur::from_us(500));

/// The bins of a period.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Grid {
    pub(super) fine: Dur,
    /// t in fine bins.
    pub(super) period: usize,
    /// Number of fine bins per wide one.
    pub(super) factor: usize,
}

impl Grid {
    /// Returns the grid for a drive whose times have bins of `bin`. All grids' bins are multiples
    /// of each other, by powers of two.
    pub(super) fn of(period: Dur, bin: Dur) -> Grid {
        let parts = |of: Dur, (most, widest): (u64, Dur)| {
            let few = (period.0 / of.0).div_ceil(most).max(1).next_power_of_two();
            let narrow = 1 << (widest.0 / of.0).max(1).ilog2();
            few.min(narrow)
        };
        let fine = Dur(bin.0 * parts(bin, FINE));
        Grid { fine, period: (period.0 / fine.0) as usize, factor: parts(fine, WIDE) as usize }
    }

    pub(in super::super) fn wide(&self) -> Dur {
        Dur(self.fine.0 * self.factor as u64)
    }

    /// Returns the last wide bin of a period.
    pub(in super::super) fn limit(&self) -> usize {
        self.period / self.factor
    }

    /// Returns a time in wide bins, rounded up.
    pub(in super::super) fn in_wide(&self, time: Dur) -> usize {
        time.0.div_ceil(self.wide().0) as usize
    }
}
