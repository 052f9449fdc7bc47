//! Bursts of applications that begin together, as in the kernel's BFQ (`bfq_handle_burst`).

use headtime_disk::Time;

use super::rules::Bursts;

/// The current burst.
#[derive(Clone, Debug, Default)]
pub(super) struct Burst {
    /// When the last application joined it.
    last: Option<Time>,
    /// The applications of a burst that is not large yet.
    members: Vec<u32>,
    large: bool,
}

impl Burst {
    /// Adds an application that begins; returns whether the burst is large, and adds to `lowered`
    /// those whose weights were raised when it was not.
    pub(super) fn join(&mut self, rules: &Bursts, queue: u32, lowered: &mut Vec<u32>, now: Time) -> bool {
        let goes_on = self.last.is_some_and(|last| now.saturating_since(last) <= rules.interval);
        if !goes_on {
            self.members.clear();
            self.large = false;
        }
        self.last = Some(now);
        if self.large {
            return true;
        }
        if !self.members.contains(&queue) {
            self.members.push(queue);
        }
        self.large = self.members.len() >= rules.applications;
        if self.large {
            lowered.append(&mut self.members);
        }
        self.large
    }
}

#[cfg(test)]
mod tests {
    use headtime_disk::Dur;

    use super::*;

    #[test]
    fn a_burst_is_large_from_its_eighth_application_on_and_ends_after_a_pause() {
        let (mut burst, mut lowered, mut now) = (Burst::default(), vec![], Time::ZERO);
        let mut join = |queue, after| {
            now += Dur::from_ms(after);
            let large = burst.join(&Bursts::default(), queue, &mut lowered, now);
            (large, std::mem::take(&mut lowered))
        };
        for queue in 1..8 {
            assert_eq!(join(queue, 180), (false, vec![]));
        }
        // One that begins twice counts once.
        assert_eq!(join(7, 10), (false, vec![]));
        assert_eq!(join(8, 180), (true, (1..=8).collect()));
        assert_eq!(join(9, 180), (true, vec![]));
        assert_eq!(join(10, 181), (false, vec![]));
    }
}
