//! An engine that runs as an async task, on one thread and in virtual time that advances only when
//! all tasks wait. Simulations of whole servers use it.

use headtime_disk::Time;
use headtime_sched::Scheduler;
use tokio::time::{Instant, sleep_until};

use super::{End, Engine};
use crate::clock::Timer;
use crate::device::Device;

impl<S: Scheduler, D: Device, T: Timer> Engine<S, D, T> {
    /// Like [`Engine::run`], in tokio's time; `at` converts the engine's time to it. The device
    /// must know its next event in advance ([`Device::fd`] is `None`).
    pub async fn run_as_task(mut self, at: impl Fn(Time) -> Instant) -> End {
        assert!(self.device.fd().is_none(), "a device that knows of everything beforehand");
        loop {
            self.round();
            if let Some(end) = self.end() {
                self.background.end();
                return end;
            }
            let soonest = self.soonest().map(&at);
            if self.handle_message_before_park() {
                continue;
            }
            tokio::select! {
                biased;
                () = self.inbox.notified() => {}
                () = sleep_until(soonest.unwrap_or_else(Instant::now)), if soonest.is_some() => {}
            }
            self.inbox.unpark();
        }
    }
}
