//! The reservation time of one optional stream: the smallest r with E A >= q c (Reuther and Pohlack 2003, condition 3).
//!
//! # What is counted
//!
//! A stream has c requests in a period; Y_1, Y_2, ... are the times that they take one after another, independent and distributed
//! as X, and S_k = Y_1 + ... + Y_k. A command at a drive cannot be taken back. So a request that was *begun* while something of the
//! reservation was left is carried through, and what it takes beyond r is not its stream's fault: request k is begun when S_(k-1) < r. It is of use when it is
//! over before the period is. With V the time that the drive has been busy with others by then,
//!
//! > A >= k   when   S_(k-1) < r,  V + S_(k-1) + x <= t,  and  V + S_k <= t
//!
//! where x is the time for which a request must have a chance to be begun ([`super::subset`]). The paper defines P(A >= k) by
//! the work before it only, and aborts what overruns r, which a disk does not do; its table 2 is met by counting what was begun,
//! and not by counting what was over within r (docs/guarantees.md has the figures).
//!
//! # How it is computed
//!
//! Times are positive, so that at most one k has S_(k-1) = s, and the probability that some request begins when s has been used is
//! h(s) = sum over k of P(S_(k-1) = s), a sum of c convolutions. With g(z) = P(V <= z - x and V + Y <= z),
//!
//! > E A(r) = sum over s < r of h(s) g(t - s)
//!
//! grows with r, and the smallest r that reaches q c is found in one walk over s. What the stream itself takes of
//! the others' time is S_(k-1) + Y_k for the last request k that is begun: [`Work::stopped`], one more convolution.
//!
//! All of it is rounded to the safe side ([`super::distribution`]).

use super::distribution::{CERTAIN, Distribution};

/// What a stream does in one of its periods if nobody stops it.
#[derive(Clone, Debug)]
pub struct Work {
    service: Distribution,
    /// h: the probability that a request begins when so many bins have been used, in 2^-62.
    begins: Vec<u64>,
    /// S_c: the time of all its requests.
    all: Distribution,
}

/// S_0, S_1, S_2, ... of one X: sums of its times, made as they are asked for and kept.
#[derive(Clone, Debug)]
pub struct Sums {
    service: Distribution,
    sums: Vec<Distribution>,
    limit: usize,
}

impl Sums {
    /// Of times distributed as `service`; sums beyond bin `limit` are not of interest.
    pub fn new(service: Distribution, limit: usize) -> Sums {
        let none = Distribution::certain(service.bin(), 0);
        Sums { service, sums: vec![none], limit }
    }

    /// X.
    pub fn service(&self) -> &Distribution {
        &self.service
    }

    /// S_n.
    fn of(&mut self, n: usize) -> &Distribution {
        while self.sums.len() <= n {
            let last = &self.sums[self.sums.len() - 1];
            self.sums.push(last.plus(&self.service, self.limit));
        }
        &self.sums[n]
    }
}

impl Work {
    /// The work of `requests` requests that take what `sums` are of.
    pub fn new(sums: &mut Sums, requests: u32) -> Work {
        let mut begins = vec![0u64; sums.limit + 1];
        for k in 0..requests as usize {
            let before = sums.of(k);
            if before.end() == 0 {
                break;
            }
            before.masses().for_each(|(bin, mass)| begins[bin] += mass);
        }
        assert!(begins.iter().all(|&p| p <= CERTAIN), "times of nothing are not positive");
        let all = sums.of(requests as usize).clone();
        Work { service: sums.service.clone(), begins, all }
    }

    /// The time that all of its requests take.
    pub fn all(&self) -> &Distribution {
        &self.all
    }

    /// The time that those of its requests take that are begun within a reservation of `bins`.
    pub fn stopped(&self, bins: usize) -> Distribution {
        if bins == 0 {
            return Distribution::certain(self.service.bin(), 0);
        }
        let limit = self.begins.len() - 1;
        let begun = Distribution::from_begun(&self.service, &self.begins[..bins.min(limit + 1)]);
        let mut mass = vec![0u64; limit + 1];
        // Within the reservation only the last of all can end.
        let within = self.all.masses().filter(|m| m.0 < bins);
        let beyond = begun.into_iter().enumerate().filter(|m| m.0 >= bins);
        for (bin, m) in within.chain(beyond).filter(|m| m.0 <= limit) {
            mass[bin] += m;
        }
        Distribution::from_mass(self.service.bin(), mass)
    }

    /// E A of a reservation of `bins`, in 2^-62; `fits(s)` is the probability that a request that begins when the stream has used
    /// `s` bins is over in time.
    pub fn expected(&self, bins: usize, fits: impl Fn(usize) -> u64) -> u128 {
        self.begins.iter().take(bins).enumerate().map(|(s, &p)| product(p, fits(s))).sum()
    }

    /// The least reservation, in bins, with E A of at least `wanted` (in 2^-62). If there is none, what is reached at most.
    pub fn reservation(&self, wanted: u128, fits: impl Fn(usize) -> u64) -> Result<usize, u128> {
        let mut expected = 0;
        for (s, &p) in self.begins.iter().enumerate() {
            expected += product(p, fits(s));
            if expected >= wanted {
                return Ok(s + 1);
            }
        }
        Err(expected)
    }
}

fn product(a: u64, b: u64) -> u128 {
    (u128::from(a) * u128::from(b)) >> 62
}

impl Distribution {
    /// When requests that begin at these bins, with these probabilities, end. More than one may, so that this is no distribution.
    fn from_begun(service: &Distribution, begins: &[u64]) -> Vec<u64> {
        let mut sums = vec![0u128; begins.len() + service.end()];
        for (at, &p) in begins.iter().enumerate().filter(|b| *b.1 > 0) {
            for (bin, m) in service.masses() {
                sums[at + bin] += u128::from(p) * u128::from(m);
            }
        }
        sums.into_iter().map(|s| (s >> 62) as u64).collect()
    }
}

/// The room that others leave in a period: g by the bins that a stream has used itself.
#[derive(Clone, Debug)]
pub struct Room {
    /// g(z) in wide bins.
    fits: Vec<u64>,
    factor: usize,
    /// t in fine bins.
    period: usize,
}

impl Room {
    /// Of a period of `period` fine bins, when others take `others`, in bins `factor` times as wide. `service` is the stream's X in
    /// fine bins, and `chance` x, in fine bins: later than that before the period's end nothing is begun.
    pub fn new(period: usize, factor: usize, others: &Distribution, service: &Distribution, chance: usize) -> Room {
        let wide = period / factor;
        let (service, chance) = (service.coarser(factor).cumulated(wide + 1), chance.div_ceil(factor));
        let fits = (0..=wide).map(|z| {
            let before = others.masses().take_while(|m| m.0 + chance <= z);
            let sum: u128 = before.map(|(v, m)| u128::from(m) * u128::from(service[z - v])).sum();
            (sum >> 62) as u64
        });
        Room { fits: fits.collect(), factor, period }
    }

    /// The probability that a request is begun and over in time, when its stream has used `used` fine bins.
    pub fn after(&self, used: usize) -> u64 {
        self.period.checked_sub(used).map_or(0, |left| self.fits[left / self.factor])
    }
}

#[cfg(test)]
mod tests {
    use headtime_disk::time::Dur;

    use super::*;

    const BIN: Dur = Dur::from_us(10);

    /// One or three bins, as likely.
    fn coin() -> Distribution {
        Distribution::from_mass(BIN, vec![0, CERTAIN / 2, 0, CERTAIN / 2])
    }

    #[test]
    fn requests_begin_where_those_before_them_end() {
        let work = Work::new(&mut Sums::new(coin(), 20), 3);
        // 0; 1 or 3; 2, 4, 4 or 6.
        let eighth = CERTAIN / 8;
        assert_eq!(work.begins[..8], [8 * eighth, 4 * eighth, 2 * eighth, 4 * eighth, 4 * eighth, 0, 2 * eighth, 0]);
        assert_eq!(work.all().masses().filter(|m| m.1 > 0).map(|m| m.0).collect::<Vec<_>>(), [3, 5, 7, 9]);
    }

    #[test]
    fn a_reservation_is_the_least_that_begins_enough() {
        let work = Work::new(&mut Sums::new(coin(), 20), 3);
        let always = |_| CERTAIN;
        let wanted = |eighths: u128| eighths * u128::from(CERTAIN / 8);
        // One begins with any reservation; the second at 1 or 3.
        assert_eq!(work.reservation(wanted(8), always), Ok(1));
        assert_eq!(work.reservation(wanted(9), always), Ok(2));
        assert_eq!(work.reservation(wanted(16), always), Ok(4));
        assert_eq!(work.reservation(wanted(24), always), Ok(7));
        assert_eq!(work.reservation(wanted(25), always), Err(wanted(24)));
        assert_eq!(work.expected(4, always), wanted(18));
    }

    #[test]
    fn a_stream_stops_with_the_request_that_uses_its_reservation_up() {
        let work = Work::new(&mut Sums::new(coin(), 20), 3);
        // With two bins: 3 at once; or 1, and then 2 or 4; from 2 on nothing is begun.
        let quarter = CERTAIN / 4;
        let stopped: Vec<_> = work.stopped(2).masses().filter(|m| m.1 > 0).collect();
        assert_eq!(stopped, [(2, quarter), (3, 2 * quarter), (4, quarter)]);
        // With enough, all of it.
        assert_eq!(work.stopped(20), *work.all());
    }

    #[test]
    fn room_is_what_others_leave() {
        // Others take 2 or 4 bins; ten bins, nothing is begun in the last two.
        let others = Distribution::from_mass(BIN, vec![0, 0, CERTAIN / 2, 0, CERTAIN / 2]);
        let room = Room::new(10, 1, &others, &coin(), 2);
        let quarters = |used| room.after(used) / (CERTAIN / 4);
        // Left are 8 or 6; of one bin or three.
        assert_eq!([0, 3, 4, 5, 6, 7, 8].map(quarters), [4, 4, 3, 2, 1, 0, 0]);
        assert_eq!(room.after(11), 0);
        // In wider bins there is never more.
        let wide = Room::new(10, 2, &others.coarser(2), &coin(), 2);
        assert!((0..12).all(|used| wide.after(used) <= room.after(used)));
    }
}
