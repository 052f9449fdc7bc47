//! Streams in a run: opening, closing, and dropped requests.

use headtime_disk::Time;
use headtime_sched::Scheduler;
use headtime_sched::streams::OpenStreamError;

use super::{Loop, RunError};
use crate::device::Device;
use crate::observe::Observer;
use crate::stats::streams::StreamAccount;
use crate::workload::{StreamCall, Workload};

impl<D: Device, S: Scheduler, W: Workload + ?Sized, O: Observer> Loop<'_, D, S, W, O> {
    /// Opens or closes a stream at the scheduler. A scheduler without guarantees is not notified,
    /// and the stream begins with its next period.
    pub(super) fn stream_call(&mut self) -> Result<(), RunError> {
        let now = self.now;
        match self.workload.call() {
            None => {}
            Some(StreamCall::Open { owner, class, stream }) => {
                let name = self.workload.classes().get(usize::from(class)).cloned().unwrap_or_default();
                let begins = match self.scheduler.core().filter(|core| core.promised_from().is_some()) {
                    Some(core) => {
                        let opened = core.open_stream(owner, stream, now);
                        let opened = match opened {
                            Ok(opened) => opened,
                            Err(why) => return Err(self.not_opened(name, &why)),
                        };
                        self.stats.load = Some(opened.load);
                        opened.begins
                    }
                    None => Time(now.0.next_multiple_of(stream.period.0)),
                };
                self.stats.streams.push(StreamAccount::new(name, owner, stream, begins));
                self.workload.opened(owner, begins);
            }
            Some(StreamCall::Close { owner }) => {
                if let Some(core) = self.scheduler.core() {
                    core.close_stream(owner, now);
                }
                if let Some(account) = self.stats.stream(owner) {
                    account.closed(now);
                }
            }
        }
        // A new stream reduces the reservations of others.
        self.note_reservations();
        Ok(())
    }

    /// Updates the reservations after streams have ended.
    pub(super) fn streams_have_ended(&mut self) {
        let now = self.now;
        if self.scheduler.core().is_some_and(|core| core.find_streams_anew(now)) {
            self.note_reservations();
        }
    }

    fn note_reservations(&mut self) {
        for standing in self.scheduler.standings() {
            if let Some(account) = self.stats.stream(standing.owner) {
                account.reservation = standing.reservation;
            }
        }
    }

    /// Explains why stream `name` was not opened, with the names of those opened before it.
    fn not_opened(&mut self, name: String, why: &OpenStreamError) -> RunError {
        let before: Vec<u32> = self.scheduler.standings().iter().map(|s| s.owner).collect();
        let account =
            |place: usize| before.get(place).and_then(|owner| self.stats.streams.iter().find(|a| a.owner == *owner));
        let why = why.with_names(|place| format!("stream \"{}\"", account(place).map_or(&name, |a| &a.name)));
        RunError::Stream { name, why }
    }

    /// Handles a request that the scheduler has dropped.
    pub(super) fn given_up(&mut self, request: u64) {
        let ask = self.slots[request as usize].ask;
        self.free.push(request as u32);
        self.stats.given_up += 1;
        if let Some(account) = self.stats.stream(ask.owner) {
            account.dropped += 1;
        }
        self.workload.completed(&ask, self.now);
    }
}
