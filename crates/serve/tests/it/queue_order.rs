//! Calls over the control interface and requests of NBD clients at one engine, in virtual time that
//! advances when the clock is read.

use std::io;
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::rig::core;
use headtime_disk::{Dur, Kind, Time};
use headtime_sched::{TaskRange, TaskSpec};
use headtime_serve::clock::Timer;
use headtime_serve::engine::inbox::{Outbox, inbox};
use headtime_serve::engine::messages::{Answer, EngineMessage, Reply, SessionCall, Submission};
use headtime_serve::engine::snapshot::Snapshot;
use headtime_serve::engine::{End, Engine};
use headtime_serve::internals::device::null::Null;
use rustix::event::{PollFd, PollFlags, poll};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::oneshot;

/// The time that each reading of the clock takes.
const CLOCK_READ_TIME: Dur = Dur::from_us(10);
/// The calls of a client that floods the engine.
const CALLS: usize = 2_000;

/// A clock whose sleeps take no time.
#[derive(Default)]
struct Hurried(AtomicU64);

impl Timer for Hurried {
    fn now(&self) -> Time {
        Time(self.0.fetch_add(CLOCK_READ_TIME.0, Ordering::SeqCst))
    }
    fn may_sleep(&self, at: Time) -> bool {
        at.0 > self.0.load(Ordering::SeqCst)
    }
    fn sleep(&self, at: Option<Time>, fds: &[BorrowedFd<'_>]) -> io::Result<()> {
        match at {
            Some(at) => _ = self.0.fetch_max(at.0, Ordering::SeqCst),
            None => {
                let mut set: Vec<PollFd<'_>> =
                    fds.iter().map(|fd| PollFd::from_borrowed_fd(*fd, PollFlags::IN)).collect();
                poll(&mut set, None)?;
            }
        }
        Ok(())
    }
}

fn read(reply: &UnboundedSender<(u64, Answer)>, token: u64) -> EngineMessage {
    let reply = Some((reply.clone(), token));
    EngineMessage::Submit(Submission { kind: Kind::Read, lbn: 1_000 * token, count: 8, reply, ..Submission::flush() })
}

/// Sends calls with some cost; returns their pending answers.
fn calls(interface: &Outbox<EngineMessage>, count: usize) -> Vec<oneshot::Receiver<Snapshot>> {
    let call = |_| {
        let (reply, answer) = oneshot::channel();
        interface.send(EngineMessage::Snapshot(reply)).unwrap();
        answer
    };
    (0..count).map(call).collect()
}

/// Returns the next answered request, and the bytes of its answer.
fn answered(answers: &mut UnboundedReceiver<(u64, Answer)>) -> (u64, usize) {
    let (token, answer) = answers.blocking_recv().unwrap();
    (token, answer.unwrap().len())
}

#[test]
fn a_request_waits_for_no_call_and_each_call_is_heard_in_the_end() {
    let (outbox, inbox) = inbox(4096, 4096).unwrap();
    let (reply, mut answers) = unbounded_channel();
    let waiting = calls(&outbox.of_interface(), CALLS);
    outbox.send(read(&reply, 1)).unwrap();
    let engine = Engine::new(Hurried::default(), core(2000), Null::new(1 << 21, 512, 2), inbox);
    // Everything is queued before the engine starts.
    let ends = std::thread::spawn(move || engine.run().unwrap());
    assert_eq!(answered(&mut answers), (1, 4096));
    let heard: Vec<Snapshot> = waiting.into_iter().map(|call| call.blocking_recv().unwrap()).collect();
    let first = heard.iter().filter(|s| s.commands == 0).count();
    assert!(first <= 64, "{first} of {CALLS} calls went first");
    outbox.send(EngineMessage::End).unwrap();
    assert_eq!(ends.join().unwrap(), End::Drained);
}

#[test]
fn calls_take_a_tenth_of_the_time_and_requests_over_the_interface_keep_their_place_among_them() {
    let (outbox, inbox) = inbox(4096, 4096).unwrap();
    let (reply, mut answers) = unbounded_channel();
    let interface = outbox.of_interface();
    let mut before = calls(&interface, CALLS / 2);
    interface.send(read(&reply, 2)).unwrap();
    let behind = calls(&interface, CALLS / 2);
    let engine = Engine::new(Hurried::default(), core(2000), Null::new(1 << 21, 512, 2), inbox);
    let ends = std::thread::spawn(move || engine.run().unwrap());
    assert_eq!(answered(&mut answers).0, 2);
    assert!(before.iter_mut().all(|call| call.try_recv().is_ok()), "what was said before it was heard before it");
    let last = behind.into_iter().map(|call| call.blocking_recv().unwrap()).last().unwrap();
    // 32 calls are processed in a round, which reads the clock at least twice and is followed by a
    // pause nine times as long.
    let least = (CALLS as u64 / 32) * 10 * CLOCK_READ_TIME.0;
    assert!(last.at.0 > least, "{:?} for {CALLS} calls", last.at);
    outbox.send(EngineMessage::End).unwrap();
    assert_eq!(ends.join().unwrap(), End::Drained);
}

#[test]
fn a_session_with_much_is_closed_a_task_at_a_time() {
    const TASKS: u64 = 100;
    let (outbox, inbox) = inbox(4096, 4096).unwrap();
    let engine = Engine::new(Hurried::default(), core(2000), Null::new(1 << 21, 512, 2), inbox);
    let ends = std::thread::spawn(move || engine.run().unwrap());
    let interface = outbox.of_interface();
    fn call<T>(interface: &Outbox<EngineMessage>, make: impl FnOnce(Reply<T>) -> SessionCall) -> T {
        let (reply, answer) = oneshot::channel();
        interface.send(EngineMessage::Session(make(reply))).unwrap();
        answer.blocking_recv().unwrap().unwrap()
    }
    let (events, _told) = tokio::sync::mpsc::channel(1 << 16);
    let session = call(&interface, |reply| SessionCall::Open { priority: 1, window: 8, events, reply });
    call(&interface, |reply| SessionCall::Suspend { session, reply });
    for task in 0..TASKS {
        let ranges = (0..100).map(|i| TaskRange { lbn: task * 1_000 + i * 8, count: 1 }).collect();
        let spec = TaskSpec { kind: Kind::Read, ranges, blksize: 1, min_pickup: 1 };
        call(&interface, |reply| SessionCall::Register { session, spec, point_in_time: false, reply });
    }
    let at = || calls(&interface, 1).pop().unwrap().blocking_recv().unwrap().at;
    let begun = at();
    call(&interface, |reply| SessionCall::Close { session, reply });
    // Each piece reads the clock at least twice and is followed by a pause nine times as long.
    let took = at().saturating_since(begun);
    assert!(took.0 > TASKS * 20 * CLOCK_READ_TIME.0, "{took:?}");
    outbox.send(EngineMessage::End).unwrap();
    assert_eq!(ends.join().unwrap(), End::Drained);
}
