//! Observers of a run: plots, exports, progress bars and experiments see every request, at no cost
//! for other runs.

use headtime_disk::{Command, Completion, Time};
use headtime_sched::TaskEvent;
use headtime_sched::streams::SubsetSizes;

use crate::stats::Done;

/// An observer of a run. All methods do nothing by default.
pub trait Observer {
    /// A command was dispatched to the drive.
    fn issued(&mut self, _command: &Command, _now: Time) {}
    /// A request was selected from the active subset with these sizes, that is, the requests
    /// eligible without breaking a stream's guarantee; called only where there are guarantees.
    fn decided(&mut self, _sizes: SubsetSizes, _now: Time) {}
    /// A command completed; the first `free` sectors of `command` are background work.
    fn completed(&mut self, _command: &Command, _free: u32, _completion: &Completion) {}
    /// An event of background work.
    fn background(&mut self, _event: &TaskEvent, _now: Time) {}
    /// A request is finished.
    fn finished(&mut self, _done: &Done) {}
    /// Returns whether the run is to end now, with what there is.
    fn stops(&self) -> bool {
        false
    }
}

/// No observer.
impl Observer for () {}

impl<A: Observer, B: Observer> Observer for (A, B) {
    fn issued(&mut self, command: &Command, now: Time) {
        self.0.issued(command, now);
        self.1.issued(command, now);
    }
    fn decided(&mut self, sizes: SubsetSizes, now: Time) {
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
    fn background(&mut self, event: &TaskEvent, now: Time) {
        self.0.background(event, now);
        self.1.background(event, now);
    }
    fn stops(&self) -> bool {
        self.0.stops() || self.1.stops()
    }
}

impl<T: Observer> Observer for Option<T> {
    fn issued(&mut self, command: &Command, now: Time) {
        if let Some(o) = self {
            o.issued(command, now);
        }
    }
    fn decided(&mut self, sizes: SubsetSizes, now: Time) {
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
    fn background(&mut self, event: &TaskEvent, now: Time) {
        if let Some(o) = self {
            o.background(event, now);
        }
    }
    fn stops(&self) -> bool {
        self.as_ref().is_some_and(Observer::stops)
    }
}

impl<T: Observer + ?Sized> Observer for &mut T {
    fn issued(&mut self, command: &Command, now: Time) {
        (**self).issued(command, now);
    }
    fn decided(&mut self, sizes: SubsetSizes, now: Time) {
        (**self).decided(sizes, now);
    }
    fn completed(&mut self, command: &Command, free: u32, completion: &Completion) {
        (**self).completed(command, free, completion);
    }
    fn finished(&mut self, done: &Done) {
        (**self).finished(done);
    }
    fn background(&mut self, event: &TaskEvent, now: Time) {
        (**self).background(event, now);
    }
    fn stops(&self) -> bool {
        (**self).stops()
    }
}
