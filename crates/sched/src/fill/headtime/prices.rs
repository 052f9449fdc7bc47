//! What a sector is worth.
use super::line::Line;

/// Prices (placeholder until measured).
#[derive(Clone, Debug, Default)]
pub struct Prices {
    /// One price a band, 256 is par.
    pub bands: Vec<u32>,
    /// log2 of cylinders a band
    pub shift: u32,
    /// Price of time spent on passing over from one track to the next, for what lies on both.
    pub crossing: u32,
}

impl Prices {
    /// Price of a track's head time.
    #[inline]
    pub fn of(&self, cylinder: u32) -> u32 {
        self.bands.get((cylinder >> self.shift) as usize).copied().unwrap_or(256)
    }
    /// The highest price.
    #[inline]
    pub fn dearest(&self) -> u32 {
        let most = self.bands.iter().copied().max().unwrap_or(256);
        most.max(most * self.crossing / 256)
    }
    /// Worth of the time spent on passing over to the next track for what lies on both.
    #[inline]
    pub fn crossing(&self, line: &Line, time: headtime_disk::time::Dur) -> u64 {
        time.0 * u64::from(self.crossing) / 256 * u64::from(self.of(line.track.cylinder)) / 256
    }
    /// Worth of sectors on a track: their head time in ns times price.
    #[inline]
    pub fn value(&self, line: &Line, sectors: u32) -> u64 {
        (line.takes(sectors).0) * u64::from(self.of(line.track.cylinder)) / 256
    }
}
