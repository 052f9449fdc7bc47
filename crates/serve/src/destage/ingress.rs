//! The receiving end of the NBD connections' queue for a tokio task in place of the engine: a
//! thread that sleeps like the engine and forwards messages.

use std::io;

use rustix::event::{PollFd, PollFlags, poll};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use crate::engine::inbox::Inbox;
use crate::engine::telling::Telling;

/// Forwards messages of clients until [`Telling::End`]. The clients' budget bounds the queue.
pub fn bridge(inbox: Inbox<Telling>) -> io::Result<UnboundedReceiver<Telling>> {
    let (send, told) = unbounded_channel();
    let thread = std::thread::Builder::new().name("headtime-ingress".into());
    thread.spawn(move || {
        loop {
            let telling = match inbox.take() {
                Some(telling) => telling,
                None => {
                    inbox.falls_asleep();
                    let telling = inbox.take();
                    if telling.is_none() {
                        // After an interrupt or an error the queue is checked again.
                        let _ = poll(&mut [PollFd::from_borrowed_fd(inbox.fd(), PollFlags::IN)], None);
                    }
                    inbox.wakes_up();
                    let Some(telling) = telling else { continue };
                    telling
                }
            };
            if matches!(telling, Telling::End) || send.send(telling).is_err() {
                return;
            }
        }
    })?;
    Ok(told)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::inbox::inbox;
    use crate::engine::telling::Ask;

    #[tokio::test]
    async fn everything_that_is_told_comes_once_and_in_order_until_the_end() {
        let (outbox, inbox) = inbox(64, 0).unwrap();
        let mut told = bridge(inbox).unwrap();
        let teller = std::thread::spawn(move || {
            for lbn in 0..2000u64 {
                while outbox.tell(Telling::Submit(Ask { lbn, ..Ask::flush() })).is_err() {
                    std::thread::yield_now();
                }
                if lbn % 50 == 0 {
                    std::thread::sleep(std::time::Duration::from_micros(100));
                }
            }
            while outbox.tell(Telling::End).is_err() {
                std::thread::yield_now();
            }
        });
        for expected in 0..2000 {
            let Some(Telling::Submit(ask)) = told.recv().await else { panic!("a request") };
            assert_eq!(ask.lbn, expected);
        }
        assert!(told.recv().await.is_none());
        teller.join().unwrap();
    }
}
