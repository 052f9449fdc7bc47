//! Commands for an idle drive, and their timing: the calls of the core.

use headtime_disk::{Dur, Head, Kind, Model, Time};

use super::gap::Leg;
use super::idling::Takes;
use super::offer::IdleLook;
use super::subsystem::{Freeblock, MAX_ASIDE};

impl Freeblock {
    /// Starts the search for an idle drive.
    pub(crate) fn begin_idle(&mut self) {
        self.aside.clear();
    }

    /// Returns what to send to an idle drive, without excluded ranges.
    pub(crate) fn idle_leg(&mut self, model: &Model, head: &Head, now: Time) -> Option<Leg> {
        let kinds: &[Kind] = if self.may_ask(now) { &[Kind::Read, Kind::Write] } else { &[Kind::Read] };
        let turn = self.turn(now);
        let idling = self.idling.as_mut().filter(|_| self.tasks.has_room() && !self.dead)?;
        loop {
            let look = IdleLook {
                model,
                wants: &self.tasks,
                head,
                kinds,
                aside: &self.aside,
                margins: self.margins,
                widest: self.regions.widest_unit(),
                reads_on: idling.reads_on(),
            };
            let leg = idling.leg(&look, &self.regions, turn, now)?;
            match self.bad.within(&leg) {
                None => return Some(leg),
                Some(bad) => self.aside.push(bad),
            }
            if self.aside.len() > MAX_ASIDE {
                return None;
            }
        }
    }

    /// Returns the duration of a leg on an idle drive if it needs the media
    /// ([`Idling::takes`](super::idling::Idling::takes)).
    pub(crate) fn idle_takes(&self, model: &Model, head: (&Head, bool), leg: &Leg, now: Time) -> Takes {
        self.idling.as_ref().map_or(Takes::of(Dur::ZERO), |i| i.takes(model, &self.margins, head, leg, now))
    }

    /// Returns whether a request will rarely arrive during that command
    /// ([`Idling::rarely_delays`](super::idling::Idling::rarely_delays)); `late`: the lateness of
    /// this host's timers.
    pub(crate) fn rarely_delays(&mut self, takes: Takes, late: Dur, now: Time) -> bool {
        let early = self.search_time() + late;
        self.idling.as_mut().is_some_and(|i| i.rarely_delays(takes, early, now))
    }

    /// Sets when to search again for an idle drive if nothing happens before: the drive is reading
    /// ahead what was found, or its write cache may hold data.
    pub(crate) fn idle_waits(&mut self, until: Time) {
        if let Some(idling) = &mut self.idling {
            idling.waits(until);
        }
    }
}
