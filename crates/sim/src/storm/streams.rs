//! Streams of a storm, which begin and end continually.

use headtime_disk::Dur;
use headtime_sched::streams::{OpenStreamError, Quality, Stream};

use super::Run;

impl Run {
    pub(super) fn is_stream(&self, owner: u32) -> bool {
        self.core.standings().iter().any(|s| s.owner == owner)
    }

    /// Opens or closes a stream.
    pub(super) fn stream(&mut self) {
        let owner = self.rng.below(u64::from(self.owners)) as u32;
        if self.rng.below(3) == 0 {
            let there = self.core.standings().iter().any(|s| s.owner == owner && !s.closing);
            if self.core.close_stream(owner, self.now) != there {
                self.shadow.tally.complain(format!("stream {owner} was there: {there}, and its end says otherwise"));
            }
            return;
        }
        let period = Dur::from_ms(100 * (1 + self.rng.below(4)));
        let quality = Quality::from_ppm([1_000_000, 900_000, 500_000][self.rng.below(3) as usize]);
        let stream = Stream::new(1 + self.rng.below(4) as u32, period, quality.expect("a quality"), 24);
        match self.core.open_stream(owner, stream.expect("a stream"), self.now) {
            Ok(_) => self.shadow.tally.streams += 1,
            Err(OpenStreamError::NoStreams) => self.shadow.tally.complain("there are no streams".into()),
            Err(
                OpenStreamError::Refused(_) | OpenStreamError::Open(_) | OpenStreamError::Order | OpenStreamError::Busy,
            ) => self.shadow.tally.refused += 1,
            Err(why) => self.shadow.tally.complain(format!("a reason that the storm does not know: {why}")),
        }
    }
}
