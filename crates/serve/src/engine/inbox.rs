//! The way into the engine: a bounded queue, and a wake-up that costs nothing while the engine is awake.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};

use rustix::event::{EventfdFlags, eventfd};

/// Why the engine was not told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotTold {
    /// More tellings wait than it takes; whoever bounds what is under way should have bounded this.
    #[error("the engine's queue is full")]
    Full,
    /// It has ended.
    #[error("the engine has ended")]
    Ended,
}

#[derive(Debug)]
struct Wake {
    fd: OwnedFd,
    /// The engine sleeps, or is about to and will look into the queue once more.
    asleep: AtomicBool,
}

/// The engine's end.
#[derive(Debug)]
pub struct Inbox<T> {
    queue: Receiver<T>,
    wake: Arc<Wake>,
}

/// A client's end; clones are cheap.
#[derive(Debug)]
pub struct Outbox<T> {
    queue: SyncSender<T>,
    wake: Arc<Wake>,
}

impl<T> Clone for Outbox<T> {
    fn clone(&self) -> Outbox<T> {
        Outbox { queue: self.queue.clone(), wake: Arc::clone(&self.wake) }
    }
}

/// A queue for `capacity` tellings.
pub fn inbox<T>(capacity: usize) -> io::Result<(Outbox<T>, Inbox<T>)> {
    let fd = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
    let wake = Arc::new(Wake { fd, asleep: AtomicBool::new(false) });
    let (sender, receiver) = sync_channel(capacity);
    Ok((Outbox { queue: sender, wake: Arc::clone(&wake) }, Inbox { queue: receiver, wake }))
}

impl<T> Outbox<T> {
    /// Tells the engine; never waits.
    pub fn tell(&self, telling: T) -> Result<(), NotTold> {
        self.queue.try_send(telling).map_err(|e| match e {
            TrySendError::Full(_) => NotTold::Full,
            TrySendError::Disconnected(_) => NotTold::Ended,
        })?;
        // The engine marks itself asleep before it looks into the queue for the last time: either it sees this telling then,
        // or it is seen asleep here.
        if self.wake.asleep.swap(false, Ordering::SeqCst) {
            // It can fail only when the counter is full of wake-ups, which is as good.
            let _ = rustix::io::write(&self.wake.fd, &1u64.to_ne_bytes());
        }
        Ok(())
    }
}

impl<T> Inbox<T> {
    /// The next telling, if there is one.
    pub fn take(&self) -> Option<T> {
        self.queue.try_recv().ok()
    }

    /// To be called before sleeping, and then [`Inbox::take`] once more.
    pub fn falls_asleep(&self) {
        self.wake.asleep.store(true, Ordering::SeqCst);
    }

    /// To be called after sleeping.
    pub fn wakes_up(&self) {
        self.wake.asleep.store(false, Ordering::SeqCst);
        let mut count = [0u8; 8];
        let _ = rustix::io::read(&self.wake.fd, &mut count);
    }

    /// Readable when a telling has come since [`Inbox::falls_asleep`].
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.wake.fd.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::event::{PollFd, PollFlags, Timespec, poll};

    fn sleeps(i: &Inbox<u32>, ms: i64) -> bool {
        let mut fds = [PollFd::new(&i.wake.fd, PollFlags::IN)];
        poll(&mut fds, Some(&Timespec { tv_sec: ms / 1_000, tv_nsec: ms % 1_000 * 1_000_000 })).unwrap() == 0
    }

    #[test]
    fn a_sleeper_is_woken_by_what_comes_and_only_then() {
        let (outbox, inbox) = inbox(4).unwrap();
        inbox.falls_asleep();
        assert_eq!(inbox.take(), None);
        assert!(sleeps(&inbox, 5));
        let other = std::thread::spawn(move || outbox.tell(7));
        assert!(!sleeps(&inbox, 5_000));
        inbox.wakes_up();
        other.join().unwrap().unwrap();
        assert_eq!(inbox.take(), Some(7));
        inbox.falls_asleep();
        assert!(sleeps(&inbox, 5), "an old wake-up does not wake again");
    }

    #[test]
    fn a_full_queue_and_an_engine_that_ended_are_answers() {
        let (outbox, inbox) = inbox(1).unwrap();
        assert_eq!((outbox.tell(1), outbox.tell(2)), (Ok(()), Err(NotTold::Full)));
        drop(inbox);
        assert_eq!(outbox.tell(3), Err(NotTold::Ended));
    }
}
