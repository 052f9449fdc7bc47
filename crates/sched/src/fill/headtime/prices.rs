//! What a block is worth: the head time that it takes whenever it is read.
//!
//! Sectors are worth the time in which they pass, so that outer tracks, which hold more of them, are not preferred
//! (Angle-EP-Greedy's reason, seed 002 section 4.4). A unit that lies on two tracks takes the passing over from one to
//! the other as well, a skew that is about as long as the unit itself; few gaps are long enough for both, and these
//! units make the tail of a scan. So the time of passing over is priced too, when the unit on both sides is wanted.
//!
//! How high is a trade: a higher price takes time from the beginning of a scan and gives it back at the end. A price by
//! bands of cylinders, from what is still wanted there, was tried and made no difference with requests spread evenly.

use headtime_disk::time::Dur;

use super::line::Line;

/// Prices, in 256ths of a nanosecond's worth for each nanosecond of head time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prices {
    /// Of time spent on passing over to the next track for a unit that lies on both. Sectors cost 256.
    pub crossing: u32,
}

impl Default for Prices {
    fn default() -> Prices {
        Prices { crossing: 384 }
    }
}

impl Prices {
    /// The worth of so many sectors of a track.
    #[inline]
    pub fn value(&self, line: &Line, sectors: u32) -> u64 {
        line.takes(sectors).0
    }

    /// The worth of the time spent on passing over to the next track.
    #[inline]
    pub fn passing_over(&self, time: Dur) -> u64 {
        time.0.saturating_mul(u64::from(self.crossing)) / 256
    }

    /// The most that any time can be worth.
    #[inline]
    pub fn most(&self, time: Dur) -> u64 {
        time.0.saturating_mul(u64::from(self.crossing.max(256))) / 256
    }
}
