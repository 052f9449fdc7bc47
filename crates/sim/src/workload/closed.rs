//! `closed:N`: N requests always outstanding.

use headtime_disk::Time;

use super::HostTime;
use super::generator::PatternSpec;
use super::population::{Arrivals, GroupSpec, Think};

/// Returns `tasks` tasks without think time, each of which submits again after its host time:
/// random reads of 4 KiB, uniform over the disk, aligned to 4 KiB.
pub fn closed(tasks: u32) -> GroupSpec {
    GroupSpec {
        name: format!("closed:{tasks}"),
        arrivals: Arrivals::Closed { tasks, think: Think::None },
        pattern: PatternSpec::random_reads(4096),
        start: Time::ZERO,
        host: HostTime::default(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Population, Target, Workload};
    use super::*;

    #[test]
    fn all_are_due_at_once_and_again_a_host_time_after_their_completion() {
        let target = Target { capacity: 1_000_000, sector_bytes: 512, geometry: None };
        let mut p = Population::of(&closed(5), &target, 1).unwrap();
        for owner in 0..5 {
            let a = p.take().unwrap();
            assert_eq!((a.due, a.owner, a.count), (Time::ZERO, owner, 8));
        }
        assert_eq!(p.next_due(), None);
        p.finished(3, Time(77));
        assert_eq!(p.next_due(), Some(Time(20_077)));
    }
}
