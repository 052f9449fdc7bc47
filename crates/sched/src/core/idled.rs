//! How long the disk has idled while requests waited: ADMIT waited for the next request of another
//! application, or a stream's guarantee left no time for them.

use headtime_disk::{Dur, Time};

use super::Core;

/// The sum of these times.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Idled {
    ended: Dur,
    since: Option<Time>,
}

impl Core {
    /// Notes that requests wait and none may be dispatched. The disk idles if it has no command.
    pub(super) fn begin_idling(&mut self) {
        if self.dispatch.at_drive().is_empty() {
            self.idled.since.get_or_insert(self.now);
        }
    }

    /// Notes that a command was dispatched.
    pub(super) fn end_idling(&mut self) {
        if let Some(since) = self.idled.since.take() {
            self.idled.ended += self.now.since(since);
        }
    }

    /// Returns for how long the disk had no command until `now` while requests waited and none
    /// might be dispatched. While a request is at the drive it does not grow: its growth from a
    /// request's submission to its completion is the part of the request's waiting time in which
    /// the disk idled for another application, or kept time free for a stream.
    pub fn idled(&self, now: Time) -> Dur {
        self.idled.ended + self.idled.since.map_or(Dur::ZERO, |since| now.saturating_since(since))
    }
}

#[cfg(test)]
mod tests {
    use headtime_disk::{Kind, Model, Outcome, profile};

    use super::*;
    use crate::{Action, BfqRules, Config, Order, Policy, Request};

    /// Returns the command that is dispatched, if any, and the requests that finish.
    fn poll(core: &mut Core) -> (Option<u64>, Vec<u64>) {
        let (mut sent, mut finished) = (None, vec![]);
        while let Some(action) = core.poll() {
            match action {
                Action::Issue(command) => sent = Some(command.id),
                Action::Finish(f) => finished.push(f.request),
                other => panic!("{other:?}"),
            }
        }
        (sent, finished)
    }

    #[test]
    fn time_counts_while_the_disk_waits_for_one_application_and_another_has_a_request() {
        let model = Model::new(&profile::builtin("atlas10k").unwrap()).unwrap();
        let rules = BfqRules { low_latency: None, ..BfqRules::plus() };
        let config = Config::new(Order::Sptf).with_outstanding(1).with_capacity(10);
        let mut core = Core::new(config, model).admitting(&Policy::Bfq(rules));
        let read = |id: u64, owner: u32, lbn: u64| Request {
            id,
            kind: Kind::Read,
            lbn,
            count: 128,
            fua: false,
            sync: true,
            owner,
        };
        let mut now = Time(1_000_000);
        core.submit(read(0, 1, 0), now).unwrap();
        let (mut command, _) = poll(&mut core);
        // A sequential reader that comes back at once, and without another application's request.
        for id in 1..20 {
            now += Dur::from_ms(4);
            core.complete(command.expect("a command is at the drive"), Outcome::Ok, now);
            poll(&mut core);
            core.submit(read(id, 1, id * 128), now).unwrap();
            command = poll(&mut core).0;
        }
        core.submit(read(20, 2, 4_000_000), now).unwrap();
        assert_eq!((poll(&mut core).0, core.idled(now)), (None, Dur::ZERO), "the drive has a command");
        // It does not come back: the disk idles for it.
        now += Dur::from_ms(4);
        core.complete(command.expect("a command is at the drive"), Outcome::Ok, now);
        assert_eq!(poll(&mut core), (None, vec![19]));
        let (ended, wakes) = (now, core.next_wakeup().expect("idling ends"));
        assert!(wakes > ended, "it idles");
        assert_eq!(core.idled(Time(ended.0 + 1_000)), Dur(1_000), "it grows while it idles");
        core.tick(wakes);
        let (command, _) = poll(&mut core);
        assert_eq!(core.idled(wakes), wakes.since(ended));
        // And not while the other request is at the drive.
        now = wakes + Dur::from_ms(9);
        core.complete(command.expect("the other application's"), Outcome::Ok, now);
        assert_eq!(poll(&mut core).1, [20]);
        assert_eq!(core.idled(now), wakes.since(ended));
    }
}
