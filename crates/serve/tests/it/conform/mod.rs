//! One device model for two drivers: their inputs, and the recording of their decisions.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::io;
use std::os::fd::BorrowedFd;
use std::rc::Rc;

use bytes::Bytes;
use headtime_disk::{Command, Completion, Drive, Kind, Outcome, SubmitError, Time};
use headtime_sched::{Action, Core, Refused, Request, Scheduler};
use headtime_serve::clock::Timer;
use headtime_serve::device::{Device, Done, bytes_of};
use headtime_serve::engine::inbox::Outbox;
use headtime_serve::engine::messages::{EngineMessage, Submission};
use headtime_sim::workload::{Ask as SimAsk, Workload, WorkloadError};
use headtime_testkit::scripted::Scripted;

/// One arrival.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    pub at: Time,
    pub kind: Kind,
    pub lbn: u64,
    pub count: u32,
}

/// Inputs and decisions, one per line.
pub type Log = Rc<RefCell<Vec<String>>>;

/// A recorded input for a replay, with its line in the log.
#[derive(Clone, Copy, Debug)]
pub enum Told {
    Submit(Request, Time),
    Complete(u64, Outcome, Time),
    Tick(Time),
}

impl Told {
    pub fn at(&self) -> Time {
        match *self {
            Told::Submit(_, t) | Told::Complete(_, _, t) | Told::Tick(t) => t,
        }
    }
}

/// A scheduler whose inputs and decisions are recorded.
pub struct Recorded<S> {
    pub inner: S,
    pub log: Log,
    pub told: Rc<RefCell<Vec<(usize, Told)>>>,
}

impl<S> Recorded<S> {
    pub fn new(inner: S, log: &Log) -> Recorded<S> {
        Recorded { inner, log: Rc::clone(log), told: Rc::default() }
    }

    fn note(&self, told: Told, line: String) {
        let mut log = self.log.borrow_mut();
        self.told.borrow_mut().push((log.len(), told));
        log.push(line);
    }
}

impl<S: Scheduler> Scheduler for Recorded<S> {
    fn submit(&mut self, r: Request, now: Time) -> Result<(), Refused> {
        // The drivers number requests differently.
        self.note(Told::Submit(r, now), format!("{now} submit {:?} {}+{}", r.kind, r.lbn, r.count));
        self.inner.submit(r, now)
    }
    fn complete(&mut self, command: u64, outcome: Outcome, now: Time) {
        self.note(Told::Complete(command, outcome, now), format!("{now} complete {command} {outcome:?}"));
        self.inner.complete(command, outcome, now);
    }
    fn tick(&mut self, now: Time) {
        self.note(Told::Tick(now), format!("{now} tick"));
        self.inner.tick(now);
    }
    fn poll(&mut self) -> Option<Action> {
        let action = self.inner.poll();
        if let Some(action) = &action {
            self.log.borrow_mut().push(line(action));
        }
        action
    }
    fn next_wakeup(&self) -> Option<Time> {
        self.inner.next_wakeup()
    }
    fn free_sectors(&self, command: u64) -> u32 {
        self.inner.free_sectors(command)
    }
    fn request_of(&self, command: u64) -> Option<u64> {
        self.inner.request_of(command)
    }
    fn requests_behind(&self, command: u64) -> Vec<u64> {
        Scheduler::requests_behind(&self.inner, command)
    }
    fn searches(&self) -> u64 {
        self.inner.searches()
    }
    fn core(&mut self) -> Option<&mut Core> {
        self.inner.core()
    }
}

pub fn line(action: &Action) -> String {
    match action {
        Action::Finish(f) => {
            format!("finish {:?} submitted {} dispatched {} done {}", f.outcome, f.submitted, f.dispatched, f.done)
        }
        other => format!("{other:?}"),
    }
}

/// A device for both drivers.
pub trait Body {
    fn capacity(&self) -> u64;
    fn send(&mut self, command: Command, now: Time);
    fn next(&self) -> Option<Time>;
    fn go(&mut self, now: Time) -> Option<Completion>;
}

impl Body for Drive {
    fn capacity(&self) -> u64 {
        Drive::capacity(self)
    }
    fn send(&mut self, command: Command, now: Time) {
        self.submit(command, now).expect("the drivers keep to the drive's depth");
    }
    fn next(&self) -> Option<Time> {
        self.next_event()
    }
    fn go(&mut self, now: Time) -> Option<Completion> {
        self.advance(now)
    }
}

impl Body for Scripted {
    fn capacity(&self) -> u64 {
        10_000_000
    }
    fn send(&mut self, command: Command, now: Time) {
        self.submit(command, now);
    }
    fn next(&self) -> Option<Time> {
        self.next_event()
    }
    fn go(&mut self, now: Time) -> Option<Completion> {
        self.advance(now)
    }
}

/// The device for the simulator.
pub struct Simulated<B>(pub B);

impl<B: Body> headtime_sim::device::Device for Simulated<B> {
    fn capacity(&self) -> u64 {
        self.0.capacity()
    }
    fn submit(&mut self, command: Command, now: Time) -> Result<(), SubmitError> {
        self.0.send(command, now);
        Ok(())
    }
    fn next_event(&self) -> Option<Time> {
        self.0.next()
    }
    fn advance(&mut self, now: Time) -> Option<Completion> {
        self.0.go(now)
    }
}

/// The device for the engine.
pub struct Real<B> {
    pub body: B,
    pub at: Vec<Command>,
}

impl<B: Body> Device for Real<B> {
    fn sectors(&self) -> u64 {
        self.body.capacity()
    }
    fn sector_bytes(&self) -> u32 {
        512
    }
    fn depth(&self) -> u32 {
        2
    }
    fn submit(&mut self, command: &Command, data: Bytes, now: Time) {
        assert_eq!(data.len(), if command.kind == Kind::Write { bytes_of(command, 512) } else { 0 });
        self.at.push(*command);
        self.body.send(*command, now);
    }
    fn poll(&mut self, now: Time) -> Option<Done> {
        let done = self.body.go(now)?;
        let i = self.at.iter().position(|c| c.id == done.id).expect("sent");
        let command = self.at.swap_remove(i);
        let reads = command.kind == Kind::Read && done.outcome == Outcome::Ok;
        let data = Bytes::from(vec![0; if reads { bytes_of(&command, 512) } else { 0 }]);
        let fault = (done.outcome != Outcome::Ok).then_some(headtime_serve::device::Fault::Io);
        Some(Done { id: done.id, outcome: done.outcome, fault, data, late: None })
    }
    fn next_event(&self) -> Option<Time> {
        self.body.next()
    }
    fn fd(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}

/// The arrivals for the simulator.
pub struct Arrivals(pub VecDeque<Arrival>);

impl Workload for Arrivals {
    fn next_due(&self) -> Option<Time> {
        self.0.front().map(|a| a.at)
    }
    fn take(&mut self) -> Result<SimAsk, WorkloadError> {
        let a = self.0.pop_front().expect("one is due");
        Ok(SimAsk { due: a.at, kind: a.kind, lbn: a.lbn, count: a.count, fua: false, sync: true, owner: 0, class: 0 })
    }
    fn finished(&mut self, _: u32, _: Time) {}
    fn endless(&self) -> bool {
        false
    }
}

/// A clock on which no operation takes time, and which knows the next arrival.
pub struct Stepping {
    pub now: Cell<Time>,
    pub arrivals: RefCell<VecDeque<Arrival>>,
    pub engine: Outbox<EngineMessage>,
    pub until: Time,
    pub ended: Cell<bool>,
}

pub fn ask(a: &Arrival) -> Submission {
    let bytes = if a.kind == Kind::Write { a.count as usize * 512 } else { 0 };
    Submission {
        kind: a.kind,
        lbn: a.lbn,
        count: a.count,
        fua: false,
        owner: 0,
        data: vec![7; bytes].into(),
        reply: None,
        share: None,
        preserves: false,
        limited: headtime_disk::Dur::ZERO,
        piece_of: None,
    }
}

impl Timer for Stepping {
    fn now(&self) -> Time {
        self.now.get()
    }
    fn may_sleep(&self, _: Time) -> bool {
        true
    }
    fn sleep(&self, at: Option<Time>, _: &[BorrowedFd<'_>]) -> io::Result<()> {
        let mut arrivals = self.arrivals.borrow_mut();
        let next = arrivals.front().map_or(Time::NEVER, |a| a.at);
        let end = if self.ended.get() { Time::NEVER } else { self.until };
        let now = at.unwrap_or(Time::NEVER).min(next).min(end).max(self.now.get());
        assert!(now < Time::NEVER, "the engine would sleep for ever");
        self.now.set(now);
        while let Some(a) = arrivals.front().filter(|a| a.at <= now) {
            self.engine.send(EngineMessage::Submit(ask(a))).expect("it listens");
            arrivals.pop_front();
        }
        if now >= self.until && !self.ended.replace(true) {
            arrivals.clear();
            self.engine.send(EngineMessage::End).expect("it listens");
        }
        Ok(())
    }
}
