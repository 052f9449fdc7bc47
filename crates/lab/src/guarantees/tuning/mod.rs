//! Finds the overhead times between two commands: t_ovh of equation 6 of Reuther and Pohlack
//! (2003), for the four pairs of reads and writes.
//!
//! The paper (section 4.1) tunes them: it schedules a random load with SATF and chooses the values
//! with the highest bandwidth. [`sweep`] does that. It needs hours of the drive, because the curve
//! is flat about its top and every point of it is a run with an error of its own. [`missed`]
//! evaluates single commands instead: each shows for one interval whether the drive needed more
//! time, and a few minutes of them determine the border.
//!
//! Both are passive state machines: the caller runs the drive, in real or virtual time.

pub(super) mod missed;
pub(super) mod sweep;

use headtime_disk::profile::QueuedOverheads;
use headtime_disk::{Dur, Kind};

/// Names of the pairs: the command that ended, and the one pending then.
pub(crate) const PAIRS: [&str; 4] = ["read-read", "read-write", "write-read", "write-write"];

/// A time for each pair, in the order of [`PAIRS`].
pub(crate) type Times = [Dur; 4];

/// The pair's index in [`PAIRS`]. A flush counts as a read: it writes nothing itself.
pub(crate) fn pair(last: Kind, kind: Kind) -> usize {
    2 * usize::from(last == Kind::Write) + usize::from(kind == Kind::Write)
}

/// The times in the profile's form.
pub(crate) fn queued(times: &Times) -> QueuedOverheads {
    let [read_read, read_write, write_read, write_write] = *times;
    QueuedOverheads { read_read, read_write, write_read, write_write }
}

/// The times of a profile.
pub(crate) fn times(queued: &QueuedOverheads) -> Times {
    [queued.read_read, queued.read_write, queued.write_read, queued.write_write]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_named_and_numbered_alike() {
        let (r, w) = (Kind::Read, Kind::Write);
        let name = |last, kind| PAIRS[pair(last, kind)];
        assert_eq!([name(r, r), name(r, w), name(w, r), name(w, w)], PAIRS);
        let different = [1, 2, 3, 4].map(Dur::from_us);
        assert_eq!(times(&queued(&different)), different);
        assert_eq!(queued(&different).write_read, Dur::from_us(3));
        assert_eq!(times(&queued(&different))[pair(w, r)], Dur::from_us(3));
    }
}
