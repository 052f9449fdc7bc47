//! Counts the older requests that each request of a stream had to wait for, from times of arrival
//! and completion.
//!
//! A request waits for an older one that overlaps it, if one of them writes, and for those that
//! this one waits for. Excluded are requests already started by the drive at its arrival, which
//! admission counts separately, and requests of its own stream, which count by themselves. Dropped
//! requests are not seen here.

use std::collections::VecDeque;

use headtime_disk::{Dur, Kind, Outcome, Time};
use headtime_sim::observe::Observer;
use headtime_sim::stats::Done;
use headtime_sim::workload::stream_of;

/// Age at which completed requests are forgotten: with D10's periods of three seconds at most, no
/// request that is in time is outstanding for as long.
const KEPT_TIME: Dur = Dur::from_secs(10);

/// Counts requests that waited for more older ones than their stream declares.
#[derive(Debug)]
pub(crate) struct BlockingCount {
    /// Declared number for each request of a stream, by stream; `None`: no declaration.
    said: Vec<Option<u32>>,
    /// Requests of streams that waited for more.
    pub beyond: u64,
    /// The largest number that one waited for.
    pub most: u32,
    /// In order of completion.
    done: VecDeque<Past>,
}

/// A completed request.
#[derive(Clone, Copy, Debug)]
struct Past {
    sequence: u64,
    owner: u32,
    writes: bool,
    lbn: u64,
    end: u64,
    dispatched: Time,
    done: Time,
}

impl Past {
    fn conflicts(&self, other: &Past) -> bool {
        (self.writes || other.writes) && self.lbn < other.end && other.lbn < self.end
    }
}

impl BlockingCount {
    /// Starts with the declared numbers, by stream.
    pub(crate) fn new(said: Vec<Option<u32>>) -> BlockingCount {
        BlockingCount { said, beyond: 0, most: 0, done: VecDeque::new() }
    }

    /// The number of older requests that a request submitted at `submitted` waited for.
    fn older(&self, request: Past, submitted: Time) -> u32 {
        // Newest first: a request waits only for older ones.
        let mut outstanding: Vec<Past> = self
            .done
            .iter()
            .rev()
            .take_while(|p| p.done > submitted)
            .filter(|p| p.sequence < request.sequence)
            .copied()
            .collect();
        outstanding.sort_unstable_by_key(|p| std::cmp::Reverse(p.sequence));
        let mut waits_for = vec![request];
        for p in outstanding {
            if waits_for.iter().any(|w| w.conflicts(&p)) {
                waits_for.push(p);
            }
        }
        waits_for.iter().filter(|p| p.dispatched >= submitted && p.owner != request.owner).count() as u32
    }
}

impl Observer for BlockingCount {
    fn finished(&mut self, done: &Done) {
        let Done { sequence, owner, lbn, count, dispatched, .. } = *done;
        if done.outcome != Outcome::Ok || done.kind == Kind::Flush {
            return;
        }
        let past = Past {
            sequence,
            owner,
            writes: !done.kind.is_read(),
            lbn,
            end: lbn + u64::from(count),
            dispatched,
            done: done.done,
        };
        let stream = stream_of(owner).and_then(|at| *self.said.get(at)?);
        if let Some(said) = stream {
            let older = self.older(past, done.submitted);
            self.most = self.most.max(older);
            self.beyond += u64::from(older > said);
        }
        self.done.push_back(past);
        while self.done.front().is_some_and(|p| p.done + KEPT_TIME < done.done) {
            self.done.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use headtime_sim::workload::FIRST_STREAM;

    /// A request that completes `done` ms after the start.
    #[derive(Clone, Copy)]
    struct One {
        sequence: u64,
        owner: u32,
        writes: bool,
        sectors: (u64, u64),
        submitted: u64,
        dispatched: u64,
        done: u64,
    }

    /// The largest number that a request waited for, of a stream that declares one, and the number
    /// of requests that waited for more.
    fn waited(requests: &[One]) -> (u32, u64) {
        let mut waits = BlockingCount::new(vec![Some(1)]);
        for r in requests {
            let at = |ms| Time::ZERO + Dur::from_ms(ms);
            waits.finished(&Done {
                sequence: r.sequence,
                owner: r.owner,
                class: 0,
                kind: if r.writes { Kind::Write } else { Kind::Read },
                lbn: r.sectors.0,
                count: (r.sectors.1 - r.sectors.0) as u32,
                due: at(r.submitted),
                submitted: at(r.submitted),
                dispatched: at(r.dispatched),
                done: at(r.done),
                outcome: Outcome::Ok,
                prediction: None,
            });
        }
        (waits.most, waits.beyond)
    }

    #[test]
    fn a_request_waits_for_what_touches_it_and_for_what_that_waits_for() {
        let asked = One {
            sequence: 9,
            owner: FIRST_STREAM,
            writes: false,
            sectors: (0, 8),
            submitted: 10,
            dispatched: 60,
            done: 70,
        };
        let write = |sequence, sectors, submitted, done| One {
            sequence,
            owner: 0,
            writes: true,
            sectors,
            submitted,
            dispatched: done - 5,
            done,
        };
        let direct = write(5, (7, 21), 6, 40);
        let behind_it = write(3, (20, 30), 5, 30);
        let elsewhere = write(7, (40, 50), 7, 45);
        let newer = write(10, (0, 8), 11, 50);
        let only_reads = One { writes: false, ..write(4, (0, 7), 5, 35) };
        assert_eq!(waited(&[behind_it, only_reads, direct, elsewhere, newer, asked]), (2, 1));
        assert_eq!(waited(&[only_reads, direct, elsewhere, newer, asked]), (1, 0), "as many as its stream says");
        let begun_before = One { dispatched: 9, ..direct };
        let own = One { owner: FIRST_STREAM, ..direct };
        let done_before = One { done: 10, ..begun_before };
        for other in [begun_before, own, done_before] {
            assert_eq!(waited(&[other, asked]), (0, 0));
        }
    }
}
