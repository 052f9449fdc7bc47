//! Streams of a core begin and end, and what the others have by it.

use headtime_disk::time::{Dur, Time};

use super::super::admission::Admitted;
use super::super::ledger::AtWork;
use super::super::stream::Stream;
use super::super::subset::OpenError;
use super::{BEST_EFFORT, Changes, NotOpened, Open, Opened, Streams};

impl Streams {
    /// A stream begins, if it can be had: from now on, requests of `owner` are its.
    ///
    /// # Errors
    /// It cannot be had, with what is nearest; or `owner` has a stream.
    pub fn admit(&mut self, owner: u32, stream: Stream, now: Time) -> Result<Opened, NotOpened> {
        self.ledger.become_of(&self.at_work())?;
        for changes in Changes::TRIED {
            let mut ledger = self.ledger.clone();
            ledger.add_at_work(stream, |at| changes.may(self.open[at].unfinished))?;
            match self.begin(owner, stream, &ledger.admitted(), now) {
                Err(NotOpened::Busy) => {}
                opened => {
                    let opened = opened?;
                    self.ledger = ledger;
                    return Ok(opened);
                }
            }
        }
        Err(NotOpened::Busy)
    }

    /// A stream begins that a ledger of those of [`Streams::standings`] has admitted. Panics when
    /// it was a ledger of others.
    ///
    /// # Errors
    /// `owner` has a stream; there is no period with which it could begin; one that is to be served
    /// as a mandatory one cannot be yet ([`NotOpened::Busy`]).
    pub fn begin(&mut self, owner: u32, stream: Stream, admitted: &Admitted, now: Time) -> Result<Opened, NotOpened> {
        assert!(owner < BEST_EFFORT, "owner {owner} is one of the queues");
        let (&reservation, others) = admitted.reservations.split_last().expect("one stream at least was admitted");
        assert!(others.len() == self.open.len(), "admitted beside {} streams, not {}", others.len(), self.open.len());
        if self.open.iter().any(|open| open.owner == owner) {
            return Err(OpenError::Exists { number: owner }.into());
        }
        // Before it begins: it may have room only where others are served otherwise. If it does not
        // begin after all, what these have was found with one stream more, as if that had ended.
        self.set_reservations(others, admitted.crossing, now)?;
        let service = self.ledger.disk().service_of(&stream).expect("it was admitted");
        let begins = self.subset.open(owner, stream, service, reservation, now).inspect_err(|_| self.ended = true)?;
        self.open.push(Open { owner, stream, reservation, closing: false, unfinished: 0 });
        Ok(Opened { begins, reservation, load: admitted.load })
    }

    /// The streams, and how each is served.
    fn at_work(&self) -> Vec<AtWork> {
        self.standings().map(|standing| standing.at_work()).collect()
    }

    /// Whether a stream has ended since what the others have was found: there may be more room for
    /// them.
    pub fn may_have_more(&self) -> bool {
        self.ended
    }

    /// Streams have ended: what the others have is found anew where that leaves more. Takes
    /// milliseconds and more.
    pub fn find_anew(&mut self, now: Time) {
        self.ended = false;
        // A driver that admits streams with a ledger of its own ([`Streams::begin`]) may have some
        // that this one cannot have; it calls [`Streams::renew`].
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

    /// What the streams at work have from now on, found anew by a ledger of [`Streams::standings`]
    /// after others had ended. Panics when it was found for others.
    ///
    /// # Errors
    /// One that is to be served as a mandatory one cannot be yet ([`NotOpened::Busy`]); nothing has
    /// changed then.
    pub fn renew(&mut self, admitted: &Admitted, now: Time) -> Result<(), NotOpened> {
        let Admitted { reservations, crossing, .. } = admitted;
        assert!(reservations.len() == self.open.len(), "found for {} streams", reservations.len());
        self.ended = false;
        self.set_reservations(reservations, *crossing, now)
    }

    /// The streams at work have these reservations from now on, and periods room for `crossing`
    /// commands that are at the drive when they begin. Reservations come before other streams are
    /// served as mandatory ones: there may be no time for both as mandatory ones. If one cannot be
    /// yet, nothing has changed.
    fn set_reservations(&mut self, reservations: &[Option<Dur>], crossing: u32, now: Time) -> Result<(), NotOpened> {
        let before = self.subset.clone();
        let all = || self.open.iter().zip(reservations);
        let to_mandatory = all().filter(|(open, r)| open.reservation.is_some() && r.is_none());
        let to_mandatory: Vec<u32> = to_mandatory.map(|(open, _)| open.owner).collect();
        let reserved: Vec<(u32, Dur)> = all().filter_map(|(open, r)| Some((open.owner, (*r)?))).collect();
        self.subset.set_reservations(reserved);
        if !to_mandatory.iter().all(|&owner| self.subset.serve_as_mandatory(owner, now)) {
            self.subset = before;
            return Err(NotOpened::Busy);
        }
        self.subset.set_crossing(crossing);
        for (open, &reservation) in self.open.iter_mut().zip(reservations) {
            open.reservation = reservation;
        }
        Ok(())
    }

    /// A stream takes no more requests: what its owner asks for from now on is best effort. What it
    /// has asked for is done as was promised, and then its promise is free for others. Whether
    /// there was one.
    pub fn close(&mut self, owner: u32) -> bool {
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
