//! Watching a run: pictures, exports, progress bars and experiments see every request without a cost for others.

use headtime_disk::command::{Command, Completion};
use headtime_disk::time::Time;

use crate::stats::Done;

/// Something that watches a run. All methods do nothing unless overridden.
pub trait Observer {
    /// A command went to the drive.
    fn issued(&mut self, _command: &Command, _now: Time) {}
    /// The drive answered; `command` is what was sent.
    fn completed(&mut self, _command: &Command, _completion: &Completion) {}
    /// A request is finished.
    fn finished(&mut self, _done: &Done) {}
}

/// Nobody watches.
impl Observer for () {}

impl<A: Observer, B: Observer> Observer for (A, B) {
    fn issued(&mut self, command: &Command, now: Time) {
        self.0.issued(command, now);
        self.1.issued(command, now);
    }
    fn completed(&mut self, command: &Command, completion: &Completion) {
        self.0.completed(command, completion);
        self.1.completed(command, completion);
    }
    fn finished(&mut self, done: &Done) {
        self.0.finished(done);
        self.1.finished(done);
    }
}

impl<T: Observer> Observer for Option<T> {
    fn issued(&mut self, command: &Command, now: Time) {
        if let Some(o) = self {
            o.issued(command, now);
        }
    }
    fn completed(&mut self, command: &Command, completion: &Completion) {
        if let Some(o) = self {
            o.completed(command, completion);
        }
    }
    fn finished(&mut self, done: &Done) {
        if let Some(o) = self {
            o.finished(done);
        }
    }
}

impl<T: Observer + ?Sized> Observer for &mut T {
    fn issued(&mut self, command: &Command, now: Time) {
        (**self).issued(command, now);
    }
    fn completed(&mut self, command: &Command, completion: &Completion) {
        (**self).completed(command, completion);
    }
    fn finished(&mut self, done: &Done) {
        (**self).finished(done);
    }
}
