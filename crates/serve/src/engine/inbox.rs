//! The engine's message queue: bounded, with a wake-up that costs nothing while the engine is
//! awake.
//!
//! Slots are reserved for requests, whose number [`crate::net::budget`] bounds, and for the
//! shutdown message. Other calls wait for slots of their own, of which each client has few, so that
//! a client that calls fast leaves room for the requests of others.
//!
//! The control interface's clients have a separate FIFO queue ([`Outbox::of_interface`]). The
//! engine serves it when it has time, and serves the requests of NBD clients in the meantime.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};

use rustix::event::{EventfdFlags, eventfd};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};

/// Calls of one client that may be queued.
pub const MAX_OF_ONE: usize = 16;

/// Why the engine could not be reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SendError {
    /// The queue is full, although the caller must bound its requests.
    #[error("the engine's queue is full")]
    Full,
    /// The engine has ended.
    #[error("the engine has ended")]
    Ended,
}

#[derive(Debug)]
struct Wake {
    fd: OwnedFd,
    /// The engine is asleep, or is about to be and will check the queue once more.
    asleep: AtomicBool,
    /// The same for the interface's queue.
    asleep_to_interface: AtomicBool,
    /// The wake-up of an engine that runs as a task ([`super::Engine::run_as_task`]).
    task: Notify,
}

/// The engine's end.
#[derive(Debug)]
pub struct Inbox<T> {
    queue: Receiver<Queued<T>>,
    interface: Receiver<Queued<T>>,
    wake: Arc<Wake>,
}

/// A client's end; cheap to clone.
#[derive(Debug)]
pub struct Outbox<T> {
    queue: SyncSender<Queued<T>>,
    interface: SyncSender<Queued<T>>,
    is_interface: bool,
    wake: Arc<Wake>,
    /// Slots for the calls of all clients, of all over the interface, and of this client.
    calls: Arc<Semaphore>,
    calls_of_interface: Arc<Semaphore>,
    own: Option<Arc<Semaphore>>,
}

/// A message, and the slots it takes while it is queued.
#[derive(Debug)]
struct Queued<T> {
    message: T,
    _places: Option<(OwnedSemaphorePermit, Option<OwnedSemaphorePermit>)>,
}

impl<T> Clone for Outbox<T> {
    fn clone(&self) -> Outbox<T> {
        Outbox {
            queue: self.queue.clone(),
            interface: self.interface.clone(),
            is_interface: self.is_interface,
            wake: Arc::clone(&self.wake),
            calls: Arc::clone(&self.calls),
            calls_of_interface: Arc::clone(&self.calls_of_interface),
            own: self.own.clone(),
        }
    }
}

/// Creates queues for `requests` requests, `calls` calls and the shutdown message.
pub fn inbox<T>(requests: usize, calls: usize) -> io::Result<(Outbox<T>, Inbox<T>)> {
    let fd = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
    let awake = || AtomicBool::new(false);
    let wake = Arc::new(Wake { fd, asleep: awake(), asleep_to_interface: awake(), task: Notify::new() });
    let (queue, receiver) = sync_channel(requests + calls + 1);
    let (interface, interface_receiver) = sync_channel(requests + calls);
    let [calls, calls_of_interface] = [calls; 2].map(|places| Arc::new(Semaphore::new(places)));
    let inbox = Inbox { queue: receiver, interface: interface_receiver, wake: Arc::clone(&wake) };
    Ok((Outbox { queue, interface, is_interface: false, wake, calls, calls_of_interface, own: None }, inbox))
}

impl<T> Outbox<T> {
    /// Returns an outbox for one client, whose queued calls are limited.
    #[must_use]
    pub fn of_one_client(&self) -> Outbox<T> {
        Outbox { own: Some(Arc::new(Semaphore::new(MAX_OF_ONE))), ..self.clone() }
    }

    /// Returns an outbox for the control interface, which is served when there is time.
    #[must_use]
    pub fn of_interface(&self) -> Outbox<T> {
        // Its calls take no slots from those of write caches.
        Outbox { is_interface: true, calls: Arc::clone(&self.calls_of_interface), ..self.clone() }
    }

    /// Sends the engine a call; waits until it has a slot.
    ///
    /// # Errors
    /// [`SendError::Ended`].
    pub async fn call(&self, message: T) -> Result<(), SendError> {
        // Neither semaphore is ever closed. The client's own slot comes first, so that waiting for
        // it does not hold up other clients.
        let own = match &self.own {
            Some(own) => Some(Arc::clone(own).acquire_owned().await.map_err(|_| SendError::Ended)?),
            None => None,
        };
        let place = Arc::clone(&self.calls).acquire_owned().await.map_err(|_| SendError::Ended)?;
        self.put(Queued { message, _places: Some((place, own)) })
    }

    /// Sends a message without waiting: a request, whose number is bounded, or the shutdown.
    ///
    /// # Errors
    /// [`SendError::Ended`]; and [`SendError::Full`], which is a bug in the caller's bound on
    /// requests.
    pub fn send(&self, message: T) -> Result<(), SendError> {
        self.put(Queued { message, _places: None })
    }

    fn put(&self, queued: Queued<T>) -> Result<(), SendError> {
        let (queue, asleep) = match self.is_interface {
            true => (&self.interface, &self.wake.asleep_to_interface),
            false => (&self.queue, &self.wake.asleep),
        };
        queue.try_send(queued).map_err(|e| match e {
            TrySendError::Full(_) => SendError::Full,
            TrySendError::Disconnected(_) => SendError::Ended,
        })?;
        // The engine marks itself asleep before it checks the queue for the last time: either it
        // finds this message there, or it is seen asleep here.
        if asleep.swap(false, Ordering::SeqCst) {
            // The write fails only if the counter is full of wake-ups, which is as good.
            let _ = rustix::io::write(&self.wake.fd, &1u64.to_ne_bytes());
            self.wake.task.notify_one();
        }
        Ok(())
    }
}

impl<T> Inbox<T> {
    /// Returns the next message, if any.
    pub fn take(&self) -> Option<T> {
        self.queue.try_recv().ok().map(|queued| queued.message)
    }

    /// Returns the next message of the control interface's clients, if any.
    pub fn take_of_interface(&self) -> Option<T> {
        self.interface.try_recv().ok().map(|queued| queued.message)
    }

    /// Marks the engine asleep, so that messages wake it. Call before sleeping, and then
    /// [`Inbox::take`] once more.
    pub fn prepare_park(&self) {
        self.wake.asleep.store(true, Ordering::SeqCst);
    }

    /// Lets the interface's clients end the sleep. Call before sleeping, and then
    /// [`Inbox::take_of_interface`] once more.
    pub fn wake_on_interface(&self) {
        self.wake.asleep_to_interface.store(true, Ordering::SeqCst);
    }

    /// Marks the engine awake. Call after sleeping.
    pub fn unpark(&self) {
        self.wake.asleep.store(false, Ordering::SeqCst);
        self.wake.asleep_to_interface.store(false, Ordering::SeqCst);
        let mut count = [0u8; 8];
        let _ = rustix::io::read(&self.wake.fd, &mut count);
    }

    /// Completes after a message since [`Inbox::prepare_park`], and sometimes without one.
    pub async fn notified(&self) {
        self.wake.task.notified().await;
    }

    /// Returns a descriptor, readable after a message since [`Inbox::prepare_park`].
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
        let (outbox, inbox) = inbox(4, 0).unwrap();
        inbox.prepare_park();
        assert_eq!(inbox.take(), None);
        assert!(sleeps(&inbox, 5));
        let other = std::thread::spawn(move || outbox.send(7));
        assert!(!sleeps(&inbox, 5_000));
        inbox.unpark();
        other.join().unwrap().unwrap();
        assert_eq!(inbox.take(), Some(7));
        inbox.prepare_park();
        assert!(sleeps(&inbox, 5), "an old wake-up does not wake again");
    }

    #[test]
    fn the_interface_has_a_queue_of_its_own_and_wakes_only_its_reader() {
        let (outbox, inbox) = inbox(4, 0).unwrap();
        let interface = outbox.of_interface();
        inbox.prepare_park();
        assert_eq!((interface.send(7), interface.of_one_client().send(8)), (Ok(()), Ok(())));
        assert!(sleeps(&inbox, 5));
        assert_eq!((inbox.take(), outbox.send(1)), (None, Ok(())));
        assert!(!sleeps(&inbox, 5_000));
        inbox.unpark();
        assert_eq!((inbox.take(), inbox.take_of_interface(), inbox.take_of_interface()), (Some(1), Some(7), Some(8)));
        inbox.wake_on_interface();
        assert_eq!((inbox.take_of_interface(), interface.send(9)), (None, Ok(())));
        assert!(!sleeps(&inbox, 5_000));
    }

    #[test]
    fn a_full_queue_and_an_engine_that_ended_are_answers() {
        let (outbox, inbox) = inbox(1, 0).unwrap();
        assert_eq!((outbox.send(1), outbox.send(2), outbox.send(2)), (Ok(()), Ok(()), Err(SendError::Full)));
        drop(inbox);
        assert_eq!(outbox.send(3), Err(SendError::Ended));
    }

    #[tokio::test]
    async fn who_calls_without_end_waits_and_takes_no_place_of_a_request_or_of_another_client() {
        let (outbox, inbox) = inbox(2, 3 * MAX_OF_ONE).unwrap();
        let call = |outbox: &Outbox<u32>, what| {
            let outbox = outbox.clone();
            async move { tokio::time::timeout(std::time::Duration::from_millis(20), outbox.call(what)).await }
        };
        let [greedy, other] = [outbox.of_one_client(), outbox.of_one_client()];
        for _ in 0..MAX_OF_ONE {
            assert_eq!(call(&greedy, 1).await, Ok(Ok(())));
        }
        assert!(call(&greedy, 1).await.is_err(), "it waits");
        assert_eq!(call(&other, 2).await, Ok(Ok(())));
        let rest: Vec<_> = (0..4).map(|_| outbox.of_one_client()).collect();
        for one in rest.iter().cycle().take(2 * MAX_OF_ONE - 1) {
            assert_eq!(call(one, 3).await, Ok(Ok(())));
        }
        assert!(call(&other, 2).await.is_err(), "all places are taken");
        assert_eq!((outbox.send(4), outbox.send(4), outbox.send(5)), (Ok(()), Ok(()), Ok(())));
        // Each message taken frees a slot for one.
        assert_eq!(inbox.take(), Some(1));
        assert_eq!(call(&greedy, 1).await, Ok(Ok(())));
        drop(inbox);
        assert_eq!(outbox.call(1).await, Err(SendError::Ended));
    }
}
