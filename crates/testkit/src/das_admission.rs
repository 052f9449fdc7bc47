//! Admission by enumeration: every outcome of every request's time, and every reservation from the
//! smallest up. For streams with one period, few requests and few times;
//! [`headtime_sched::streams::admit`] must give the same result.

/// A set of streams on a drive with times in whole bins.
#[derive(Clone, Debug)]
pub struct Case {
    /// X by the number of candidates, from one on: equally likely times, ascending, in bins; the
    /// same number for each, and none longer than that of fewer candidates. With more candidates
    /// the last one is used.
    pub times: Vec<Vec<u64>>,
    /// w, in bins.
    pub worst: u64,
    /// x, in bins: with less left no request is started.
    pub likely: u64,
    /// Commands at the drive.
    pub outstanding: usize,
    /// t, in bins.
    pub period: u64,
    /// Mandatory requests in a period.
    pub mandatory: usize,
    /// Optional streams: requests, and quality in parts per million.
    pub optional: Vec<(usize, u64)>,
    /// Older requests that each request of an optional stream may have to wait for.
    pub older: usize,
}

/// One outcome of consecutive request times, as digits of `outcome`.
struct Outcome<'a> {
    times: &'a [Vec<u64>],
    rest: u64,
}

impl Outcome<'_> {
    /// Draws one of `n` possibilities.
    fn one_of(&mut self, n: u64) -> u64 {
        let one = self.rest % n;
        self.rest /= n;
        one
    }

    /// Remaining time of a single request at a random instant: each bin of each of its times is
    /// equally likely.
    fn residual(&mut self) -> u64 {
        let times = &self.times[0];
        let mut at = self.one_of(times.iter().sum());
        for &time in times {
            if at < time {
                return time - at;
            }
            at -= time;
        }
        unreachable!("an instant within one of the times")
    }

    /// The time of a request chosen from this number of candidates.
    fn next(&mut self, candidates: usize) -> u64 {
        let times = &self.times[candidates.min(self.times.len()) - 1];
        times[self.one_of(times.len() as u64) as usize]
    }
}

impl Case {
    /// Returns the reservations in bins, and the number of commands at the drive at a period's
    /// start for which periods have room; `None`: not admitted.
    pub fn admit(&self) -> Option<(Vec<u64>, u32)> {
        if self.mandatory as u64 * self.worst > self.period {
            return None;
        }
        let with = |crossing| Some((self.reserved(crossing)?, crossing as u32));
        (0..=self.outstanding).rev().find_map(with)
    }

    fn reserved(&self, crossing: usize) -> Option<Vec<u64>> {
        let mut reserved = vec![0; self.optional.len()];
        loop {
            let before = reserved.clone();
            for i in 0..reserved.len() {
                reserved[i] = (0..=self.period + 1).find(|&r| {
                    reserved[i] = r;
                    self.is_enough(&reserved, i, crossing)
                })?;
            }
            if reserved == before {
                return Some(reserved);
            }
        }
    }

    /// Returns whether stream `i` has its quality.
    fn is_enough(&self, reserved: &[u64], i: usize, crossing: usize) -> bool {
        let (done, outcomes) = self.done(reserved, i, crossing);
        let (requests, ppm) = self.optional[i];
        u128::from(done) * 1_000_000 >= requests as u128 * u128::from(ppm) * u128::from(outcomes)
    }

    /// Completed requests of stream `i` over all outcomes, and the number of outcomes.
    pub fn done(&self, reserved: &[u64], i: usize, crossing: usize) -> (u64, u64) {
        let draws =
            self.mandatory + self.outstanding + self.optional.iter().map(|o| o.0 * (1 + self.older)).sum::<usize>();
        let whole = draws - crossing.min(1);
        let outcomes = (self.times[0].len() as u64).pow(whole as u32);
        let outcomes = if crossing > 0 { outcomes * self.times[0].iter().sum::<u64>() } else { outcomes };
        let free = self.worst.saturating_sub(self.period - self.mandatory as u64 * self.worst);
        let likely = self.likely * if self.older > 0 { 2 } else { 1 };
        let chance = likely.max(if self.mandatory > 0 { free } else { 0 });
        let mut done = 0;
        for rest in 0..outcomes {
            let mut outcome = Outcome { times: &self.times, rest };
            let mut busy: u64 = if crossing > 0 { outcome.residual() } else { 0 };
            busy += (1..crossing).map(|_| outcome.next(1)).sum::<u64>();
            busy += (crossing..self.outstanding).map(|_| outcome.next(1).saturating_sub(self.likely)).sum::<u64>();
            busy += (1..=self.mandatory).map(|left| outcome.next(left)).sum::<u64>();
            // The other optional streams come before it, too.
            let mut own = Vec::new();
            for (j, &(requests, _)) in self.optional.iter().enumerate() {
                let mut used = 0;
                let mut takes = |time| used += if used < reserved[j] { time } else { 0 };
                for left in (1..=requests).rev() {
                    let mut older = 0;
                    for _ in 0..self.older {
                        let time = outcome.next(1);
                        older += time;
                        takes(time);
                    }
                    let time = outcome.next(if self.older > 0 { 1 } else { left });
                    takes(time);
                    if j == i {
                        own.push((older, time));
                    }
                }
                busy += if j == i { 0 } else { used };
            }
            let mut used = 0;
            for (older, time) in own {
                used += older;
                let begins = used < reserved[i] && busy + used + chance <= self.period;
                if !begins {
                    break;
                }
                used += time;
                done += u64::from(busy + used <= self.period);
            }
        }
        (done, outcomes)
    }
}
