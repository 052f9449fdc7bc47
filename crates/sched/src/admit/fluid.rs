//! The ideal reference of fair queueing: generalised processor sharing, in which all backlogged
//! applications are served at the same time, in proportion to their weights. It decides nothing;
//! [`super::bwf2q`] is compared with it.
//!
//! Time is counted in total sectors served, as by an ideal server whose speed always equals the
//! disk's. Between two moments at which an application's backlog begins or ends all rates are
//! constant, so service is piecewise linear. Virtual time `v` grows by `s / W` while `s` sectors
//! are served, with `W` the sum of the weights of the backlogged applications; an application of
//! weight `w` is served `w` sectors per unit of `v`. Unlike in [`super::bwf2q`], only the
//! applications backlogged in *this* system count; it knows nothing of the real one.
//!
//! In the worst case for an application all others are always backlogged: [`Fluid::guaranteed`].

use std::collections::VecDeque;

/// Fraction bits of sectors and of virtual time: 64, so that rounding errors of divisions stay far
/// below a sector.
const FINE: u32 = 64;
/// An infinite backlog.
const ENDLESS: u128 = u128::MAX;

#[derive(Clone, Debug)]
struct Queue {
    weight: u64,
    /// Start of its backlog in virtual time, and its service before that.
    since: u128,
    before: u128,
    /// End of its backlog in virtual time, if no more work arrives.
    ends: u128,
    /// End of each piece of work not yet done, in virtual time.
    pieces: VecDeque<u128>,
    /// Completion of pieces, in total sectors served.
    done: VecDeque<u128>,
}

/// An ideal server. Applications are identified by numbers from 0.
#[derive(Clone, Debug)]
pub struct Fluid {
    now: u128,
    virtual_time: u128,
    queues: Vec<Queue>,
}

impl Fluid {
    /// Creates a server of idle applications with these weights.
    pub fn new(weights: impl IntoIterator<Item = u64>) -> Fluid {
        let new = |weight: u64| Queue {
            weight: weight.max(1),
            since: 0,
            before: 0,
            ends: 0,
            pieces: VecDeque::new(),
            done: VecDeque::new(),
        };
        Fluid { now: 0, virtual_time: 0, queues: weights.into_iter().map(new).collect() }
    }

    /// Creates a server of one application, number 0, with this fraction of all weights; the others
    /// are always backlogged.
    pub fn guaranteed(weight: u64, of: u64) -> Fluid {
        let mut fluid = Fluid::new(Some(weight));
        if of > weight {
            fluid.queues.push(Queue { ends: ENDLESS, ..Fluid::new(Some(of - weight)).queues.remove(0) });
        }
        fluid
    }

    /// Adds work for an application.
    pub fn arrive(&mut self, application: usize, sectors: u64) {
        let v = self.virtual_time;
        let q = &mut self.queues[application];
        if q.ends <= v {
            (q.before, q.since, q.ends) = (q.before + u128::from(q.weight) * (q.ends - q.since), v, v);
        }
        q.ends += (u128::from(sectors) << FINE) / u128::from(q.weight);
        q.pieces.push_back(q.ends);
    }

    /// Serves this number of sectors in total.
    pub fn serve(&mut self, sectors: u64) {
        let mut left = u128::from(sectors) << FINE;
        loop {
            let v = self.virtual_time;
            let busy = self.queues.iter().filter(|q| q.ends > v);
            let (mut weights, mut first) = (0, ENDLESS);
            for q in busy {
                (weights, first) = (weights + u128::from(q.weight), first.min(q.ends));
            }
            if weights == 0 {
                self.now += left;
                return;
            }
            let takes = (first - v).checked_mul(weights).unwrap_or(ENDLESS);
            let to = if takes <= left { first } else { v + left / weights };
            for q in &mut self.queues {
                while let Some(&end) = q.pieces.front().filter(|end| **end <= to) {
                    q.pieces.pop_front();
                    q.done.push_back(self.now + (end - v) * weights);
                }
            }
            self.virtual_time = to;
            self.now += left.min(takes);
            if takes > left {
                return;
            }
            left -= takes;
        }
    }

    /// Returns the total number of sectors served.
    pub fn now(&self) -> f64 {
        in_sectors(self.now)
    }

    /// Returns the sectors served to an application.
    pub fn served(&self, application: usize) -> f64 {
        let q = &self.queues[application];
        in_sectors(q.before + u128::from(q.weight) * (self.virtual_time.min(q.ends) - q.since))
    }

    /// Returns when the oldest piece of an application's work not yet asked for was done, in total
    /// sectors served, or `None` if it is not done. Either way the next call is about the next
    /// piece.
    pub fn done(&mut self, application: usize) -> Option<f64> {
        let q = &mut self.queues[application];
        let done = q.done.pop_front();
        if done.is_none() {
            q.pieces.pop_front();
        }
        done.map(in_sectors)
    }
}

fn in_sectors(fine: u128) -> f64 {
    (fine >> FINE) as f64 + (fine as u64) as f64 / 2.0_f64.powi(FINE as i32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_backlogged_applications_are_served_at_once_in_proportion_to_their_weights() {
        let mut f = Fluid::new([1, 3]);
        f.arrive(0, 100);
        f.arrive(1, 150);
        f.serve(100);
        assert_eq!((f.served(0), f.served(1), f.now()), (25.0, 75.0, 100.0));
        // The second ends at 200; the first then has the whole rate and ends at 250.
        f.serve(150);
        assert_eq!((f.served(0), f.served(1)), (100.0, 150.0));
        assert_eq!((f.done(1), f.done(0)), (Some(200.0), Some(250.0)));
    }

    #[test]
    fn an_application_that_comes_later_is_not_compensated() {
        let mut f = Fluid::new([1, 1]);
        f.arrive(0, 100);
        f.serve(60);
        f.arrive(1, 10);
        f.serve(20);
        assert_eq!((f.served(0), f.served(1), f.done(1)), (70.0, 10.0, Some(80.0)));
        f.serve(5);
        f.arrive(1, 10);
        f.serve(20);
        assert_eq!((f.served(0), f.served(1)), (85.0, 20.0));
    }

    #[test]
    fn in_the_worst_case_an_application_has_its_part_and_no_more() {
        let mut f = Fluid::guaranteed(1, 4);
        f.arrive(0, 10);
        f.arrive(0, 10);
        f.arrive(0, 5);
        f.serve(60);
        assert_eq!((f.served(0), f.done(0), f.done(0)), (15.0, Some(40.0), None));
        f.serve(100);
        assert_eq!((f.served(0), f.done(0)), (25.0, Some(100.0)));
        let mut alone = Fluid::guaranteed(7, 7);
        alone.arrive(0, 10);
        alone.serve(10);
        assert_eq!(alone.done(0), Some(10.0));
    }
}
