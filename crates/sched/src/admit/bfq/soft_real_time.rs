//! Detection of soft real-time applications, as in the kernel's BFQ
//! (`bfq_bfqq_softrt_next_start`).
//!
//! Such an application submits a batch of requests, has all of them, waits, and submits the next.
//! If it always waited at least until its mean rate from the start of the batch had fallen to the
//! largest rate that counts as soft real-time, it is one. A greedy application submits its next
//! request at once, and never is: the next batch must begin later than the disk would idle.

use headtime_disk::{Dur, Time};

use super::rules::SoftRealTime;

/// Added to the time for which the disk idles: think times of greedy applications are sometimes a
/// little longer (the kernel adds 4 ticks).
const MARGIN: Dur = Dur::from_ms(4);

/// A batch of requests.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Batch {
    /// When it began, and the sectors served of it.
    begun: Time,
    sectors: u64,
    /// When the next may begin.
    next: Option<Time>,
}

impl Batch {
    /// Accounts sectors that were served.
    pub(crate) fn served(&mut self, sectors: u64) {
        self.sectors += sectors;
    }

    /// Ends the batch: all its requests are served. `idle`: how long the disk idles.
    pub(crate) fn end(&mut self, rules: &SoftRealTime, sector_bytes: u32, idle: Dur, now: Time) {
        let bytes = u128::from(self.sectors) * u128::from(sector_bytes);
        let lasts = bytes * 1_000_000_000 / u128::from(rules.bytes_per_second.max(1));
        let by_rate = self.begun + Dur(u64::try_from(lasts).unwrap_or(u64::MAX / 2));
        let next = by_rate.max(now + idle + MARGIN);
        self.next = Some(self.next.map_or(next, |before| before.max(next)));
    }

    /// Begins the next batch; returns whether it is one of a soft real-time application.
    pub(crate) fn begin(&mut self, now: Time) -> bool {
        (self.begun, self.sectors) = (now, 0);
        self.next.is_some_and(|next| now >= next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Time {
        Time::ZERO + Dur::from_ms(ms)
    }

    /// Whether batches of `sectors` that take 10 ms and begin `every` ms are soft real-time.
    fn is_soft(sectors: u64, every: u64) -> Vec<bool> {
        let mut batch = Batch::default();
        (0..5)
            .map(|i| {
                let soft = batch.begin(ms(i * every));
                batch.served(sectors);
                batch.end(&SoftRealTime::default(), 512, Dur::from_ms(8), ms(i * every + 10));
                soft
            })
            .collect()
    }

    #[test]
    fn its_rate_and_its_pauses_tell_a_soft_real_time_application() {
        // 256 sectors at 7,000 a second last 36.6 ms. Of the first batch nothing is known.
        assert_eq!(is_soft(256, 37), [false, true, true, true, true]);
        assert_eq!(is_soft(256, 36), [false; 5]);
        // However few the sectors, the disk idles for 8 ms from the end of the batch.
        assert_eq!(is_soft(1, 22), [false, true, true, true, true]);
        assert_eq!(is_soft(1, 21), [false; 5]);
    }

    #[test]
    fn a_large_batch_is_made_up_for_by_a_long_pause() {
        let mut batch = Batch::default();
        batch.begin(ms(0));
        batch.served(7_000);
        batch.end(&SoftRealTime::default(), 512, Dur::from_ms(8), ms(100));
        let early = Batch { ..batch }.begin(ms(999));
        assert_eq!((early, batch.begin(ms(1_000))), (false, true));
    }
}
