//! Watching a run: pictures, exports, progress bars and experiments see every request without a
//! cost for others.

use headtime_disk::command::{Command, Completion};
use headtime_disk::time::Time;
use headtime_sched::admit::das::streams::Sizes;
use headtime_sched::tasks::Event;

use crate::stats::Done;

/// Something that watches a run. All methods do nothing unless overridden.
pub trait Observer {
    /// A command went to the drive.
    fn issued(&mut self, _command: &Command, _now: Time) {}
    /// A request was chosen of so many that might go without a promise to a stream being broken;
    /// only where there are such promises.
    fn decided(&mut self, _sizes: Sizes, _now: Time) {}
    /// The drive answered; `command` is what was sent, its first `free` sectors for background
    /// work.
    fn completed(&mut self, _command: &Command, _free: u32, _completion: &Completion) {}
    /// Something happened to background work.
    fn background(&mut self, _event: &Event, _now: Time) {}
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
    fn decided(&mut self, sizes: Sizes, now: Time) {
        self.0.decided(sizes, now);
        self.1.decided(sizes, now);
    }
    fn completed(&mut self, command: &Command, free: u32, completion: &Completion) {
        self.0.completed(command, free, completion);
        self.1.completed(command, free, completion);
    }
    fn finished(&mut self, done: &Done) {
        self.0.finished(done);
        self.1.finished(done);
    }
    fn background(&mut self, event: &Event, now: Time) {
        self.0.background(event, now);
        self.1.background(event, now);
    }
}

impl<T: Observer> Observer for Option<T> {
    fn issued(&mut self, command: &Command, now: Time) {
        if let Some(o) = self {
            o.issued(command, now);
        }
    }
    fn decided(&mut self, sizes: Sizes, now: Time) {
        if let Some(o) = self {
            o.decided(sizes, now);
        }
    }
    fn completed(&mut self, command: &Command, free: u32, completion: &Completion) {
        if let Some(o) = self {
            o.completed(command, free, completion);
        }
    }
    fn finished(&mut self, done: &Done) {
        if let Some(o) = self {
            o.finished(done);
        }
    }
    fn background(&mut self, event: &Event, now: Time) {
        if let Some(o) = self {
            o.background(event, now);
        }
    }
}

impl<T: Observer + ?Sized> Observer for &mut T {
    fn issued(&mut self, command: &Command, now: Time) {
        (**self).issued(command, now);
    }
    fn decided(&mut self, sizes: Sizes, now: Time) {
        (**self).decided(sizes, now);
    }
    fn completed(&mut self, command: &Command, free: u32, completion: &Completion) {
        (**self).completed(command, free, completion);
    }
    fn finished(&mut self, done: &Done) {
        (**self).finished(done);
    }
    fn background(&mut self, event: &Event, now: Time) {
        (**self).background(event, now);
    }
}
