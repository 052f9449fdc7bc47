//! Timeline of the head's activities for the first part of a run: for plots and exports.

use headtime_disk::{Command, Completion, Kind, Time};

use crate::observe::Observer;
use crate::stats::Done;

/// Activity of the head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doing {
    /// Seeking and settling.
    Seek,
    /// Rotational latency.
    Rotate,
    /// Foreground transfer.
    Transfer,
    /// Background transfer.
    Free,
    /// Idle.
    Idle,
}

impl Doing {
    /// Returns its name: `seek`, `rotate`, `transfer`, `free`, `idle`.
    pub fn name(self) -> &'static str {
        match self {
            Doing::Seek => "seek",
            Doing::Rotate => "rotate",
            Doing::Transfer => "transfer",
            Doing::Free => "free",
            Doing::Idle => "idle",
        }
    }
}

/// An interval of head time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slice {
    /// Activity.
    pub doing: Doing,
    /// Start.
    pub from: Time,
    /// End; later than `from`.
    pub to: Time,
    /// The command; `None` when idle.
    pub command: Option<Command>,
}

/// Recorder of head-time intervals and finished requests, up to a limit.
#[derive(Clone, Debug)]
pub struct Timeline {
    slices: Vec<Slice>,
    requests: Vec<Done>,
    most: usize,
    until: Time,
    busy_until: Time,
}

impl Timeline {
    /// Creates a recorder of at most `most` requests, and of nothing that begins at `until` or
    /// later.
    pub fn new(most: usize, until: Option<Time>) -> Timeline {
        Timeline {
            slices: Vec::new(),
            requests: Vec::new(),
            most,
            until: until.unwrap_or(Time::NEVER),
            busy_until: Time::ZERO,
        }
    }

    /// Returns the head's activities in order, without gaps or overlaps, from time zero.
    pub fn slices(&self) -> &[Slice] {
        &self.slices
    }

    /// Returns the finished requests, in order.
    pub fn requests(&self) -> &[Done] {
        &self.requests
    }

    /// Whether a limit is reached, so that no more is recorded.
    pub fn full(&self) -> bool {
        self.requests.len() >= self.most || self.busy_until >= self.until
    }

    fn push(&mut self, doing: Doing, to: Time, command: Option<Command>) {
        let from = self.busy_until;
        if to > from {
            self.slices.push(Slice { doing, from, to, command });
            self.busy_until = to;
        }
    }
}

impl Observer for Timeline {
    fn completed(&mut self, command: &Command, free: u32, completion: &Completion) {
        let Some(m) = completion.media else { return };
        if self.full() || command.kind == Kind::Flush {
            return;
        }
        self.push(Doing::Idle, m.start, None);
        self.push(Doing::Seek, m.seek_end, Some(*command));
        // Rotational latency inside a request is drawn before the transfer, so that each interval
        // has the length of its part of the head time.
        self.push(Doing::Rotate, Time(m.end.0 - m.transfer().0), Some(*command));
        let free_ns = u128::from(m.transfer().0) * u128::from(free) / u128::from(command.count.max(1));
        self.push(Doing::Free, Time(m.end.0 - m.transfer().0 + free_ns as u64), Some(*command));
        self.push(Doing::Transfer, m.end, Some(*command));
    }

    fn finished(&mut self, done: &Done) {
        if self.requests.len() < self.most && done.due < self.until {
            self.requests.push(*done);
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::device::fixed::Fixed;
    use crate::run::{Limits, run};
    use crate::workload::{Population, Target, oltp};
    use headtime_disk::Dur;
    use headtime_sched::Firmware;

    pub(crate) fn recorded(most: usize, until: Option<Time>) -> Timeline {
        let target = Target { capacity: 1_000_000, sector_bytes: 512, geometry: None };
        let mut w = Population::of(&oltp(), &target, 1).unwrap();
        let mut d = Fixed::new(Dur::from_ms(2), 2);
        let mut t = Timeline::new(most, until);
        let limits = Limits { requests: Some(200), ..Limits::default() };
        run(&mut d, &mut Firmware::new(2, 100), &mut w, limits, None, &mut t).unwrap();
        t
    }

    #[test]
    fn slices_follow_each_other_without_gaps() {
        let t = recorded(40, None);
        assert_eq!(t.requests().len(), 40);
        assert_eq!(t.slices()[0].from, Time::ZERO);
        assert!(t.slices().windows(2).all(|w| w[0].to == w[1].from && w[0].from < w[0].to));
        assert!(t.slices().iter().any(|s| s.doing == Doing::Idle && s.command.is_none()));
        let transfers = t.slices().iter().filter(|s| s.doing == Doing::Transfer).count();
        assert_eq!(transfers, 40);
    }

    #[test]
    fn a_bound_in_time_is_kept() {
        let t = recorded(1000, Some(Time(50_000_000)));
        assert!(!t.requests().is_empty() && t.requests().iter().all(|d| d.due < Time(50_000_000)));
        assert!(t.full() && t.slices().last().unwrap().from < Time(55_000_000));
    }
}
