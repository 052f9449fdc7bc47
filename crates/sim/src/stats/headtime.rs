//! Account of the head time.

use headtime_disk::{Dur, HiddenWork, MediaTimes, Time};

/// Sums of the head's activities, from the drive's own knowledge
/// ([`headtime_disk::Completion`]), and from the work that no completion reports
/// ([`HiddenWork`]: write-backs, read-ahead that is hit). Read-ahead that is never hit counts as
/// idle: the next command stops it at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HeadTime {
    /// Seeking and settling.
    pub seek: Dur,
    /// Rotational latency of foreground transfers ([`MediaTimes::rotate`]).
    pub rotate: Dur,
    /// Of `rotate`, the time within requests in which the head had landed ([`MediaTimes::turned`]).
    pub turned: Dur,
    /// Foreground transfers, including moves at track ends ([`MediaTimes::transfer`]).
    pub transfer: Dur,
    /// Background transfers, in gaps and in idle time.
    pub free: Dur,
    busy_until: Time,
}

/// The head time as shares of a run; they sum to 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HeadShares {
    /// Seeking and settling.
    pub seek: f64,
    /// Rotational latency.
    pub rotate: f64,
    /// Foreground transfers.
    pub transfer: f64,
    /// Background transfers in gaps.
    pub free: f64,
    /// Idle.
    pub idle: f64,
}

impl HeadTime {
    /// Adds a media access. Time already covered by an earlier access is not counted twice.
    #[inline]
    pub fn record(&mut self, m: &MediaTimes) {
        self.record_with(m, 0, 1);
    }

    /// Adds an access of `count` sectors, the first `free` of which are background work: their part
    /// of the transfer counts as `free`. Background seeks count as `seek`, background waits as
    /// `rotate`: only the transfer is free.
    #[inline]
    pub fn record_with(&mut self, m: &MediaTimes, free: u32, count: u32) {
        let from = self.busy_until;
        let span = |a: Time, b: Time| b.saturating_since(a.max(from));
        self.seek += span(m.start, m.seek_end);
        self.rotate += span(m.seek_end, m.transfer_start);
        let transfer = span(m.transfer_start, m.end);
        let turned = m.turned.min(transfer);
        self.rotate += turned;
        self.turned += turned;
        let passed = transfer - turned;
        let for_free = Dur((u128::from(passed.0) * u128::from(free) / u128::from(count.max(1))) as u64);
        self.free += for_free;
        self.transfer += passed - for_free;
        self.busy_until = self.busy_until.max(m.end);
    }

    /// Adds the drive's unreported work, as background work or not.
    pub fn add_hidden(&mut self, h: &HiddenWork, free: bool) {
        self.seek += h.seek;
        self.rotate += h.rotate;
        match free {
            true => self.free += h.transfer,
            false => self.transfer += h.transfer,
        }
    }

    /// Returns the sum of seek, rotational latency and transfer: the head time of foreground
    /// requests.
    pub fn given(&self) -> Dur {
        self.seek + self.rotate + self.transfer
    }

    /// Returns seek, rotational latency and transfer in percent of their sum; zeros if it is zero.
    pub fn percent(&self) -> [f64; 3] {
        let sum = self.given().as_secs_f64().max(f64::MIN_POSITIVE);
        [self.seek, self.rotate, self.transfer].map(|d| 100.0 * d.as_secs_f64() / sum)
    }

    /// Returns the shares of a run that ended at `end`; all idle for a run of zero length.
    pub fn shares(&self, end: Time) -> HeadShares {
        // An access beyond the end is counted completely.
        let busy = self.given() + self.free;
        let total = end.max(self.busy_until).0.max(busy.0);
        if total == 0 {
            return HeadShares { seek: 0.0, rotate: 0.0, transfer: 0.0, free: 0.0, idle: 1.0 };
        }
        let of = |d: Dur| d.0 as f64 / total as f64;
        HeadShares {
            seek: of(self.seek),
            rotate: of(self.rotate),
            transfer: of(self.transfer),
            free: of(self.free),
            idle: of(Dur(total).saturating_sub(busy)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn media(start: u64, seek_end: u64, transfer_start: u64, end: u64) -> MediaTimes {
        MediaTimes {
            turned: Dur::ZERO,
            start: Time(start),
            seek_end: Time(seek_end),
            transfer_start: Time(transfer_start),
            end: Time(end),
        }
    }

    #[test]
    fn shares_sum_to_one() {
        let mut h = HeadTime::default();
        h.record(&media(10, 40, 60, 70));
        h.record(&media(70, 70, 75, 80));
        let s = h.shares(Time(100));
        assert_eq!((s.seek, s.rotate, s.transfer), (0.30, 0.25, 0.15));
        assert!((s.seek + s.rotate + s.transfer + s.free + s.idle - 1.0).abs() < 1e-12);
        assert!((s.idle - 0.30).abs() < 1e-12);
    }

    #[test]
    fn overlapping_accesses_are_not_counted_twice() {
        let mut h = HeadTime::default();
        h.record(&media(0, 50, 60, 100));
        h.record(&media(40, 90, 110, 120));
        assert_eq!(h.given(), Dur(120));
        assert_eq!((h.seek, h.rotate), (Dur(50), Dur(20)));
    }

    #[test]
    fn write_backs_are_not_idle_time() {
        let mut h = HeadTime::default();
        h.record(&media(0, 10, 20, 30));
        h.add_hidden(&HiddenWork { seek: Dur(20), rotate: Dur(10), transfer: Dur(10) }, false);
        let s = h.shares(Time(100));
        assert_eq!((s.seek, s.rotate, s.transfer), (0.3, 0.2, 0.2));
        assert!((s.idle - 0.3).abs() < 1e-12);
    }

    #[test]
    fn a_run_of_no_time_is_idle() {
        assert_eq!(HeadTime::default().shares(Time::ZERO).idle, 1.0);
    }
}
