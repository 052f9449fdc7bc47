//! Background work on an idle drive (Thereska 2003 section 4.6).
//!
//! A command in flight delays a request that arrives during its service. It is sent only if an
//! arrival is improbable in that time ([`crate::fill::periods`]). For data that the drive has read
//! ahead, that is the bus time.

use headtime_disk::{Command, Dur, Head, Kind, Time};

use super::Core;
use super::filling::SEARCHES;
use crate::fill::gap::Leg;
use crate::fill::idling::Takes;
use crate::overheads::{crossing, hit_ready, to_drive};

/// Safety margin: sectors that the drive reads ahead count as buffered this long after they are
/// predicted to be. Not tuned: it costs this much of an idle drive's time, and a command that comes
/// too early delays a request that arrives.
pub(super) const IN_BUFFER: Dur = Dur::from_us(50);

impl Core {
    /// Returns the next command for an idle drive. The head position need not be known: no request
    /// is eligible.
    pub(super) fn send_idle(&mut self) -> Option<Command> {
        if !self.ready_to_idle() {
            return None;
        }
        let answered = self.fill.as_mut().expect("FILL is on").answered(true, self.now);
        let heads = self.likely_heads();
        if let Some(leg) = answered {
            if !self.pool.conflicts(leg.kind, leg.lbn, leg.count) && self.has_time_for(leg.count, 0, false) {
                return Some(self.send_free(&leg, true));
            }
            self.fill.as_mut().expect("FILL is on").refused(&leg, self.now);
        }
        if !self.has_time_for(1, 0, false) {
            return None;
        }
        self.fill.as_mut().expect("FILL is on").begin_idle();
        for _ in 0..SEARCHES {
            let leg = self.fill.as_mut().expect("FILL is on").idle_leg(&self.model, &heads.0, self.now)?;
            let ahead = match leg.kind {
                Kind::Read => self.predictor.reads_ahead(&self.model, leg.lbn, leg.range().end(), self.now),
                _ => None,
            };
            // Sectors that the drive is reading ahead are requested once they are in its buffer.
            // Until then no command delays a request that arrives: the drive drops a read-ahead at
            // once, but completes a command. The command ends where the read-ahead ends; some
            // drives then continue reading ahead. This is intended in long idle time; in short idle
            // time `Idling` leaves the last sector, so that the drive does not move on. If a unit
            // crosses that end, the whole unit is read later.
            let leg = ahead.map_or(leg, |(until, _)| Leg { count: (until - leg.lbn) as u32, ..leg });
            if let Some((_, there)) = ahead
                && there + IN_BUFFER > self.now
                && there > Time::ZERO
            {
                self.fill.as_mut().expect("FILL is on").idle_waits(there + IN_BUFFER);
                return None;
            }
            let (takes, data) = self.idle_takes(&leg, ahead.is_some(), heads);
            let fill = self.fill.as_mut().expect("FILL is on");
            if !fill.rarely_delays(takes, self.commit.lateness() + data, self.now) {
                return None;
            }
            let conflicts = self.pool.conflicts(leg.kind, leg.lbn, leg.count);
            if !conflicts && !self.has_time_for(leg.count, 0, false) {
                return None;
            }
            if !conflicts && leg.kind == Kind::Read {
                return Some(self.send_free(&leg, true));
            }
            let fill = self.fill.as_mut().expect("FILL is on");
            if !conflicts && fill.ask(&leg, true, self.now) {
                return None;
            }
            fill.leave_out(leg.range());
        }
        None
    }

    /// Returns whether an idle drive may be given work now.
    fn ready_to_idle(&mut self) -> bool {
        if !self.dispatch.at_drive().is_empty() {
            return false;
        }
        let dirty = self.dirty_until();
        let fill = self.fill.as_mut().expect("FILL is on");
        if let Some(until) = dirty {
            fill.idle_waits(until);
            return false;
        }
        fill.set_idling_window(self.idling_until, self.now);
        self.pool.waiting() == 0 || self.idling_until.is_some()
    }

    /// Returns what a command of idle work takes, and the time in which the data of a write cross
    /// the bus, before the head moves. `ahead`: the drive has read its sectors ahead; `heads`: for
    /// a read and for a write.
    fn idle_takes(&mut self, leg: &Leg, ahead: bool, heads: (Head, Head)) -> (Takes, Dur) {
        let (head, data) = match leg.kind {
            Kind::Write => (&heads.1, to_drive(&self.model, leg.count)),
            _ => (&heads.0, Dur::ZERO),
        };
        let in_buffer =
            ahead || leg.kind == Kind::Read && self.predictor.has_all(&self.model, leg.lbn, leg.count, self.now);
        let mut takes = if in_buffer {
            let ready = hit_ready(&self.model, self.predictor.last_kind(), self.now, None);
            Takes::of(ready.since(self.now) + crossing(&self.model, leg.count))
        } else {
            let fill = self.fill.as_ref().expect("FILL is on");
            fill.idle_takes(&self.model, (head, self.predictor.is_sure()), leg, self.now)
        };
        takes.all += data;
        (takes, data)
    }
}
