//! The way into the engine: a bounded queue, and a wake-up that costs nothing while the engine is
//! awake.
//!
//! Places in it are kept for requests, whose number [`crate::net::budget`] bounds, and for the end.
//! Other calls wait for places of their own, of which a client has few: however fast one calls,
//! there is room for the others' requests.
//!
//! What clients of the control interface tell has a queue of its own ([`Outbox::of_interface`]), in
//! its order: the engine takes of it when it has time for that, and meanwhile hears and takes what
//! NBD clients ask for.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};

use rustix::event::{EventfdFlags, eventfd};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};

/// Calls of one client that may wait for the engine.
pub const MOST_OF_ONE: usize = 16;

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
    /// The same of the interface's queue.
    asleep_to_interface: AtomicBool,
    /// For an engine that is a task ([`super::Engine::run_as_task`]).
    task: Notify,
}

/// The engine's end.
#[derive(Debug)]
pub struct Inbox<T> {
    queue: Receiver<Queued<T>>,
    interface: Receiver<Queued<T>>,
    wake: Arc<Wake>,
}

/// A client's end; clones are cheap.
#[derive(Debug)]
pub struct Outbox<T> {
    queue: SyncSender<Queued<T>>,
    interface: SyncSender<Queued<T>>,
    is_interface: bool,
    wake: Arc<Wake>,
    /// Places of all calls, of all over the interface, and of those of one client.
    calls: Arc<Semaphore>,
    calls_of_interface: Arc<Semaphore>,
    own: Option<Arc<Semaphore>>,
}

/// One telling, and the places that it takes as long as it waits.
#[derive(Debug)]
struct Queued<T> {
    telling: T,
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

/// Queues for `requests` requests, `calls` calls, and the end.
pub fn inbox<T>(requests: usize, calls: usize) -> io::Result<(Outbox<T>, Inbox<T>)> {
    let fd = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
    let awake = || AtomicBool::new(false);
    let wake = Arc::new(Wake { fd, asleep: awake(), asleep_to_interface: awake(), task: Notify::new() });
    let (queue, told) = sync_channel(requests + calls + 1);
    let (interface, told_over_it) = sync_channel(requests + calls);
    let [calls, calls_of_interface] = [calls; 2].map(|places| Arc::new(Semaphore::new(places)));
    let inbox = Inbox { queue: told, interface: told_over_it, wake: Arc::clone(&wake) };
    Ok((Outbox { queue, interface, is_interface: false, wake, calls, calls_of_interface, own: None }, inbox))
}

impl<T> Outbox<T> {
    /// The same for one client, of whose calls only a few wait at a time.
    #[must_use]
    pub fn of_one_client(&self) -> Outbox<T> {
        Outbox { own: Some(Arc::new(Semaphore::new(MOST_OF_ONE))), ..self.clone() }
    }

    /// The same for the control interface, whose clients are heard when there is time for it.
    #[must_use]
    pub fn of_interface(&self) -> Outbox<T> {
        // Nor do its calls take places from those of write caches.
        Outbox { is_interface: true, calls: Arc::clone(&self.calls_of_interface), ..self.clone() }
    }

    /// Tells the engine of a call, which waits until it has a place.
    ///
    /// # Errors
    /// [`NotTold::Ended`].
    pub async fn call(&self, telling: T) -> Result<(), NotTold> {
        // Neither is ever closed. A client's own place comes first: who waits for it keeps no other
        // back.
        let own = match &self.own {
            Some(own) => Some(Arc::clone(own).acquire_owned().await.map_err(|_| NotTold::Ended)?),
            None => None,
        };
        let place = Arc::clone(&self.calls).acquire_owned().await.map_err(|_| NotTold::Ended)?;
        self.put(Queued { telling, _places: Some((place, own)) })
    }

    /// Tells the engine; never waits. For requests, whose number is bounded, and for the end.
    ///
    /// # Errors
    /// [`NotTold::Ended`]; and [`NotTold::Full`], which is a bug of the caller, who bounds
    /// requests.
    pub fn tell(&self, telling: T) -> Result<(), NotTold> {
        self.put(Queued { telling, _places: None })
    }

    fn put(&self, queued: Queued<T>) -> Result<(), NotTold> {
        let (queue, asleep) = match self.is_interface {
            true => (&self.interface, &self.wake.asleep_to_interface),
            false => (&self.queue, &self.wake.asleep),
        };
        queue.try_send(queued).map_err(|e| match e {
            TrySendError::Full(_) => NotTold::Full,
            TrySendError::Disconnected(_) => NotTold::Ended,
        })?;
        // The engine marks itself asleep before it looks into the queue for the last time: either
        // it sees this telling then, or it is seen asleep here.
        if asleep.swap(false, Ordering::SeqCst) {
            // It can fail only when the counter is full of wake-ups, which is as good.
            let _ = rustix::io::write(&self.wake.fd, &1u64.to_ne_bytes());
            self.wake.task.notify_one();
        }
        Ok(())
    }
}

impl<T> Inbox<T> {
    /// The next telling, if there is one.
    pub fn take(&self) -> Option<T> {
        self.queue.try_recv().ok().map(|queued| queued.telling)
    }

    /// The next one of the control interface's clients.
    pub fn take_of_interface(&self) -> Option<T> {
        self.interface.try_recv().ok().map(|queued| queued.telling)
    }

    /// To be called before sleeping, and then [`Inbox::take`] once more.
    pub fn falls_asleep(&self) {
        self.wake.asleep.store(true, Ordering::SeqCst);
    }

    /// To be called before a sleep that the interface's clients may end, and then
    /// [`Inbox::take_of_interface`] once more.
    pub fn hears_interface(&self) {
        self.wake.asleep_to_interface.store(true, Ordering::SeqCst);
    }

    /// To be called after sleeping.
    pub fn wakes_up(&self) {
        self.wake.asleep.store(false, Ordering::SeqCst);
        self.wake.asleep_to_interface.store(false, Ordering::SeqCst);
        let mut count = [0u8; 8];
        let _ = rustix::io::read(&self.wake.fd, &mut count);
    }

    /// Done when a telling has come since [`Inbox::falls_asleep`], and sometimes without one.
    pub async fn told(&self) {
        self.wake.task.notified().await;
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
        let (outbox, inbox) = inbox(4, 0).unwrap();
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
    fn the_interface_has_a_queue_of_its_own_and_wakes_only_who_hears_it() {
        let (outbox, inbox) = inbox(4, 0).unwrap();
        let interface = outbox.of_interface();
        inbox.falls_asleep();
        assert_eq!((interface.tell(7), interface.of_one_client().tell(8)), (Ok(()), Ok(())));
        assert!(sleeps(&inbox, 5));
        assert_eq!((inbox.take(), outbox.tell(1)), (None, Ok(())));
        assert!(!sleeps(&inbox, 5_000));
        inbox.wakes_up();
        assert_eq!((inbox.take(), inbox.take_of_interface(), inbox.take_of_interface()), (Some(1), Some(7), Some(8)));
        inbox.hears_interface();
        assert_eq!((inbox.take_of_interface(), interface.tell(9)), (None, Ok(())));
        assert!(!sleeps(&inbox, 5_000));
    }

    #[test]
    fn a_full_queue_and_an_engine_that_ended_are_answers() {
        let (outbox, inbox) = inbox(1, 0).unwrap();
        assert_eq!((outbox.tell(1), outbox.tell(2), outbox.tell(2)), (Ok(()), Ok(()), Err(NotTold::Full)));
        drop(inbox);
        assert_eq!(outbox.tell(3), Err(NotTold::Ended));
    }

    #[tokio::test]
    async fn who_calls_without_end_waits_and_takes_no_place_of_a_request_or_of_another_client() {
        let (outbox, inbox) = inbox(2, 3 * MOST_OF_ONE).unwrap();
        let call = |outbox: &Outbox<u32>, what| {
            let outbox = outbox.clone();
            async move { tokio::time::timeout(std::time::Duration::from_millis(20), outbox.call(what)).await }
        };
        let [greedy, other] = [outbox.of_one_client(), outbox.of_one_client()];
        for _ in 0..MOST_OF_ONE {
            assert_eq!(call(&greedy, 1).await, Ok(Ok(())));
        }
        assert!(call(&greedy, 1).await.is_err(), "it waits");
        assert_eq!(call(&other, 2).await, Ok(Ok(())));
        let rest: Vec<_> = (0..4).map(|_| outbox.of_one_client()).collect();
        for one in rest.iter().cycle().take(2 * MOST_OF_ONE - 1) {
            assert_eq!(call(one, 3).await, Ok(Ok(())));
        }
        assert!(call(&other, 2).await.is_err(), "all places are taken");
        assert_eq!((outbox.tell(4), outbox.tell(4), outbox.tell(5)), (Ok(()), Ok(()), Ok(())));
        // Each that is taken makes room for one.
        assert_eq!(inbox.take(), Some(1));
        assert_eq!(call(&greedy, 1).await, Ok(Ok(())));
        drop(inbox);
        assert_eq!(outbox.call(1).await, Err(NotTold::Ended));
    }
}
