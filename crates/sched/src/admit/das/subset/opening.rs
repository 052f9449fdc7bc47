//! Opening and closing of streams: the start of a stream's first period, and the effect of its
//! reservation on the others.

use headtime_disk::{Dur, Time};

use super::super::demand::worst_rate;
use super::super::disk::Service;
use super::super::periods::{Periods, Tally};
use super::super::rates::PARTS;
use super::super::stream::Stream;
use super::charge::Charges;
use super::terms::OpenError;
use super::{Open, Subset};

impl Subset {
    /// Opens an admitted stream with the reservation given by admission; without one it is served
    /// as a mandatory one. Returns the start of its first period: at once, or, for a mandatory one,
    /// when it can make no other late. Earlier requests belong to that period.
    ///
    /// # Errors
    /// The number is in use; there is no such period, which admission would have reported.
    pub fn open(
        &mut self,
        number: u32,
        stream: Stream,
        service: &Service,
        reservation: Option<Dur>,
        now: Time,
    ) -> Result<Time, OpenError> {
        assert!(!stream.is_mandatory() || reservation.is_none(), "a reservation is for an optional stream");
        self.tick(now);
        if self.streams.iter().any(|s| s.number == number) {
            return Err(OpenError::Exists { number });
        }
        let (worst, likely, blocking) = (service.worst, service.likely(), stream.blocking(self.rules.blocker));
        let likely_older = if blocking > Dur::ZERO { self.rules.likely(self.rules.blocker) } else { Dur::ZERO };
        let whole = worst + blocking;
        let charges = (!stream.is_mandatory()).then(|| Charges::new(number, &service.times));
        let rate = if reservation.is_none() { worst_rate(stream.requests, whole, stream.period) } else { 0 };
        // Each rate is rounded up by less than one.
        let rounded = self.streams.len() as u64 + 1;
        if self.streams.iter().map(|s| s.rate).sum::<u64>().saturating_add(rate) > (1 << PARTS) + rounded {
            return Err(OpenError::NoRoom { number });
        }
        let mut begins = stream.period_start(now);
        if begins < now {
            begins += stream.period;
        }
        // Relevant deadlines of the others are at most two of their periods away; beyond them there
        // is room.
        let furthest = self.streams.iter().map(|s| s.periods.end() + s.periods.stream().period).max();
        let give_up = furthest.unwrap_or(now).max(self.at_drive.free_by(now)) + stream.period + stream.period;
        loop {
            let periods = Periods::new(stream, blocking, begins, now);
            self.streams.push(Open {
                number,
                periods,
                worst,
                blocking,
                likely_older,
                likely,
                charges: charges.clone(),
                reservation,
                rate,
                claim: Dur::ZERO,
                claim_rate: 0,
                likely_rate: 0,
            });
            self.ends_changed();
            // A period that begins now has all of its requests at once, and there must be time for
            // them, too. If another's period begins now, its requests may arrive after this, and
            // their time must not have been given away.
            let at_once = if begins == now { stream.requests } else { 0 };
            let last = self.streams.len() - 1;
            let begins_too = |s: &Open| s.reservation.is_none() && s.periods.begins() == now;
            let taken = begins == now && self.streams[..last].iter().any(begins_too);
            if reservation.is_some() || !taken && self.slack_with(|at| if at == last { at_once } else { 0 }, now) >= 0 {
                break;
            }
            self.streams.pop();
            self.ends_changed();
            begins += stream.period;
            if begins > give_up {
                return Err(OpenError::NoRoom { number });
            }
        }
        self.reckon();
        Ok(begins)
    }

    /// Sets the reservations of streams after others were opened or closed. A stream served as a
    /// mandatory one no longer is. Panics if one is not an open optional stream.
    pub fn set_reservations(&mut self, reservations: impl IntoIterator<Item = (u32, Dur)>) {
        self.take_back(None);
        for (number, reservation) in reservations {
            let at = self.find(number);
            let open = &mut self.streams[at];
            assert!(!open.periods.stream().is_mandatory(), "stream {number} is mandatory");
            if open.reservation.replace(reservation).is_none() {
                open.rate = 0;
                if open.blocking == Dur::ZERO {
                    open.periods.counts_no_more_what_waits();
                }
            }
        }
        self.reckon();
    }

    /// Serves a stream with a reservation as a mandatory one from now on, if neither its requests
    /// nor another stream's can become late, and none of its own is blocked without declared
    /// blocking (`blocked_by` of 0). Returns whether it does. Panics if the stream has no
    /// reservation.
    pub fn serve_as_mandatory(&mut self, number: u32, now: Time) -> bool {
        self.tick(now);
        self.take_back(None);
        let at = self.find(number);
        let open = &self.streams[at];
        let before = open.clone();
        assert!(open.reservation.is_some(), "stream {number} is served as a mandatory one already");
        let stream = *open.periods.stream();
        let rate = worst_rate(stream.requests, open.worst + open.blocking, stream.period);
        let rates = self.streams.iter().map(|s| s.rate).sum::<u64>().saturating_add(rate);
        if rates > (1 << PARTS) + self.streams.len() as u64 || open.periods.has_blocked() {
            return false;
        }
        let open = &mut self.streams[at];
        (open.reservation, open.rate) = (None, rate);
        open.periods.excuses_late();
        self.ends_changed();
        // If periods begin now, their requests may arrive after this, and their time must not have
        // been given away.
        let to_come = |s: &Open| if s.reservation.is_none() { s.periods.to_come(now) } else { 0 };
        let more: Vec<u32> = self.streams.iter().map(to_come).collect();
        let fits = self.slack_with(|stream| more[stream], now) >= 0;
        if !fits {
            self.streams[at] = before;
        }
        self.reckon();
        fits
    }

    /// Sets the number of commands in flight at their start for which periods of optional streams
    /// have room ([`super::Rules::crossing`]).
    pub fn set_crossing(&mut self, crossing: u32) {
        self.crossing = crossing;
    }

    /// Closes a stream. The caller must withdraw its unsent requests; its commands in flight count
    /// until they complete.
    pub fn close(&mut self, number: u32) -> Tally {
        let at = self.find(number);
        let gone = self.streams.remove(at);
        self.reckon();
        gone.periods.tally()
    }

    /// Recomputes claims and rates after the set of streams has changed.
    fn reckon(&mut self) {
        for at in 0..self.streams.len() {
            let open = &self.streams[at];
            let stream = *open.periods.stream();
            let claim = open.reservation.map_or(Dur::ZERO, |r| self.claim(open, r, stream.requests));
            let likely = open.likely_work(stream.requests, Dur::ZERO);
            let open = &mut self.streams[at];
            (open.claim, open.claim_rate) = (claim, worst_rate(1, claim, stream.period));
            open.likely_rate = worst_rate(1, likely, stream.period);
        }
        self.next_end = self.streams.iter().map(|s| s.periods.end()).min().unwrap_or(Time::NEVER);
        self.ends_changed();
    }
}
