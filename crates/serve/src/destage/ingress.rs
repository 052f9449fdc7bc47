//! The receiving end of the NBD connections' queue for a tokio task in place of the engine: a
//! thread that sleeps like the engine and forwards messages.

use std::io;

use rustix::event::{PollFd, PollFlags, poll};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use crate::engine::inbox::Inbox;
use crate::engine::messages::EngineMessage;

/// Forwards messages of clients until [`EngineMessage::End`]. The clients' budget bounds the queue.
pub(crate) fn bridge(inbox: Inbox<EngineMessage>) -> io::Result<UnboundedReceiver<EngineMessage>> {
    let (send, messages) = unbounded_channel();
    let thread = std::thread::Builder::new().name("headtime-ingress".into());
    thread.spawn(move || {
        loop {
            let message = match inbox.take() {
                Some(message) => message,
                None => {
                    inbox.prepare_park();
                    let message = inbox.take();
                    if message.is_none() {
                        // After an interrupt or an error the queue is checked again.
                        let _ = poll(&mut [PollFd::from_borrowed_fd(inbox.fd(), PollFlags::IN)], None);
                    }
                    inbox.unpark();
                    let Some(message) = message else { continue };
                    message
                }
            };
            if matches!(message, EngineMessage::End) || send.send(message).is_err() {
                return;
            }
        }
    })?;
    Ok(messages)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::inbox::inbox;
    use crate::engine::messages::Submission;

    #[tokio::test]
    async fn every_event_arrives_once_and_in_order_until_the_end() {
        let (outbox, inbox) = inbox(64, 0).unwrap();
        let mut messages = bridge(inbox).unwrap();
        let teller = std::thread::spawn(move || {
            for lbn in 0..2000u64 {
                while outbox.send(EngineMessage::Submit(Submission { lbn, ..Submission::flush() })).is_err() {
                    std::thread::yield_now();
                }
                if lbn % 50 == 0 {
                    std::thread::sleep(std::time::Duration::from_micros(100));
                }
            }
            while outbox.send(EngineMessage::End).is_err() {
                std::thread::yield_now();
            }
        });
        for expected in 0..2000 {
            let Some(EngineMessage::Submit(ask)) = messages.recv().await else { panic!("a request") };
            assert_eq!(ask.lbn, expected);
        }
        assert!(messages.recv().await.is_none());
        teller.join().unwrap();
    }
}
