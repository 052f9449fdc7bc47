//! Opening and closing of streams, and the resulting reservations of the others.

use headtime_disk::{Dur, Time};

use super::super::ledger::ServedStream;
use super::super::stream::Stream;
use super::super::subset::OpenError;
use super::super::verdict::Admitted;
use super::{BEST_EFFORT, Changes, Open, OpenStreamError, OpenedStream, Streams};

impl Streams {
    /// Opens a stream if it is feasible: from now on, requests of `owner` belong to it.
    ///
    /// # Errors
    /// It is infeasible, with the nearest feasible one; or `owner` has a stream.
    pub(crate) fn admit(&mut self, owner: u32, stream: Stream, now: Time) -> Result<OpenedStream, OpenStreamError> {
        self.ledger.become_of(&self.at_work())?;
        for changes in Changes::TRIED {
            let mut ledger = self.ledger.clone();
            ledger.add_at_work(stream, |at| changes.may(self.open[at].unfinished))?;
            match self.begin(owner, stream, &ledger.admitted(), now) {
                Err(OpenStreamError::Busy) => {}
                opened => {
                    let opened = opened?;
                    self.ledger = ledger;
                    return Ok(opened);
                }
            }
        }
        Err(OpenStreamError::Busy)
    }

    /// Starts a stream admitted by a ledger of the streams of [`Streams::standings`]. Panics if it
    /// was a ledger of others.
    ///
    /// # Errors
    /// `owner` has a stream; there is no period with which it could begin; another stream must be
    /// served as a mandatory one and cannot be yet ([`OpenStreamError::Busy`]).
    pub(crate) fn begin(
        &mut self,
        owner: u32,
        stream: Stream,
        admitted: &Admitted,
        now: Time,
    ) -> Result<OpenedStream, OpenStreamError> {
        assert!(owner < BEST_EFFORT, "owner {owner} is one of the queues");
        let (&reservation, others) = admitted.reservations.split_last().expect("one stream at least was admitted");
        assert!(others.len() == self.open.len(), "admitted beside {} streams, not {}", others.len(), self.open.len());
        if self.open.iter().any(|open| open.owner == owner) {
            return Err(OpenError::Exists { number: owner }.into());
        }
        // First: its room may depend on the others being served differently. If it does not start
        // after all, their reservations were computed with one stream more, as if that had ended.
        self.set_reservations(others, admitted.crossing, now)?;
        let service = self.ledger.disk().service_of(&stream).expect("it was admitted");
        let begins = self.subset.open(owner, stream, service, reservation, now).inspect_err(|_| self.ended = true)?;
        self.open.push(Open { owner, stream, reservation, closing: false, unfinished: 0 });
        Ok(OpenedStream { begins, reservation, load: admitted.load })
    }

    /// Returns the streams, and how each is served.
    fn at_work(&self) -> Vec<ServedStream> {
        self.standings().map(|standing| standing.at_work()).collect()
    }

    /// Returns whether a stream has ended since reservations were last computed: the others may
    /// have more room.
    pub(crate) fn may_have_more(&self) -> bool {
        self.ended
    }

    /// Recomputes the reservations after streams have ended, if that leaves more. Takes
    /// milliseconds or more.
    pub(crate) fn find_anew(&mut self, now: Time) {
        self.ended = false;
        // A driver that admits streams with its own ledger ([`Streams::begin`]) may have some that
        // this one does not find feasible; it calls [`Streams::renew`].
        if self.ledger.become_of(&self.at_work()).is_err() {
            return;
        }
        for changes in Changes::TRIED {
            let found = self.ledger.renewed(|at| changes.may(self.open[at].unfinished));
            if self.renew(&found.admitted(), now).is_ok() {
                self.ledger = found;
                return;
            }
        }
    }

    /// Sets the reservations computed by a ledger of [`Streams::standings`] after others had ended.
    /// Panics if they were computed for other streams.
    ///
    /// # Errors
    /// A stream that must be served as a mandatory one cannot be yet ([`OpenStreamError::Busy`]);
    /// nothing has changed then.
    pub(crate) fn renew(&mut self, admitted: &Admitted, now: Time) -> Result<(), OpenStreamError> {
        let Admitted { reservations, crossing, .. } = admitted;
        assert!(reservations.len() == self.open.len(), "found for {} streams", reservations.len());
        self.ended = false;
        self.set_reservations(reservations, *crossing, now)
    }

    /// Sets the reservations of the open streams, and the number of commands in flight at the start
    /// of a period for which periods have room (`crossing`). Reservations are set before other
    /// streams are served as mandatory ones: there may be no time for both as mandatory ones. If
    /// one cannot be yet, nothing changes.
    fn set_reservations(
        &mut self,
        reservations: &[Option<Dur>],
        crossing: u32,
        now: Time,
    ) -> Result<(), OpenStreamError> {
        let before = self.subset.clone();
        let all = || self.open.iter().zip(reservations);
        let to_mandatory = all().filter(|(open, r)| open.reservation.is_some() && r.is_none());
        let to_mandatory: Vec<u32> = to_mandatory.map(|(open, _)| open.owner).collect();
        let reserved: Vec<(u32, Dur)> = all().filter_map(|(open, r)| Some((open.owner, (*r)?))).collect();
        self.subset.set_reservations(reserved);
        if !to_mandatory.iter().all(|&owner| self.subset.serve_as_mandatory(owner, now)) {
            self.subset = before;
            return Err(OpenStreamError::Busy);
        }
        self.subset.set_crossing(crossing);
        for (open, &reservation) in self.open.iter_mut().zip(reservations) {
            open.reservation = reservation;
        }
        Ok(())
    }

    /// Closes a stream: further requests of its owner are best effort. Its pending requests are
    /// served as guaranteed, then its reservation is free for others. Returns whether there was
    /// one.
    pub(crate) fn close(&mut self, owner: u32) -> bool {
        let Some(open) = self.open.iter_mut().find(|o| o.owner == owner && !o.closing) else { return false };
        open.closing = true;
        self.end_closed();
        true
    }

    pub(super) fn end_closed(&mut self) {
        let (subset, ended) = (&mut self.subset, &mut self.ended);
        self.open.retain(|o| {
            let ends = o.closing && o.unfinished == 0;
            if ends {
                subset.close(o.owner);
                *ended = true;
            }
            !ends
        });
    }
}
