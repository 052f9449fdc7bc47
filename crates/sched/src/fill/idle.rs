//! Detection of idle time (Thereska 2003 section 4.6).
//!
//! "Most idle periods are just a few milliseconds in length, but the bulk of idle time comes in
//! very long durations." So there are two timers, both started when the last foreground request
//! completes. After the short one, wanted sectors of the track under the head may be fetched: the
//! arm stays, so that requests which continue there lose nothing. After the long one, any
//! background work may run. If the lengths of idle periods are remembered ([`super::periods`]) they
//! decide when a command may be sent, instead of the long timer.
//!
//! [`super::reach`] chooses what to fetch.
//!
//! A command cannot be cancelled when a foreground request arrives. Its delay is bounded by sending
//! one command at a time, of at most one track, or an eighth or a quarter of one on a drive that
//! reads ahead ([`super::offer`]); a larger unit is one command all the same.

use headtime_disk::{Dur, Time};

use super::periods::Periods;

/// Idle thresholds: how long no foreground request must have been pending.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IdleThresholds {
    /// Until work on the track under the head may begin.
    pub short: Dur,
    /// Until any work may begin, where idle periods are not remembered.
    pub long: Dur,
}

impl Default for IdleThresholds {
    /// Returns 2 ms, which excludes requests that follow each other at once, and the 20 ms of
    /// Thereska 2003 (its section 4.6, footnote 5).
    fn default() -> IdleThresholds {
        IdleThresholds { short: Dur::from_ms(2), long: Dur::from_ms(20) }
    }
}

impl IdleThresholds {
    /// Adapts the thresholds to a drive that reads the rest of a track ahead after a read. It is
    /// given the revolution that takes: the prefetched sectors can then be read from its cache, and
    /// no command in between discards what the following requests need.
    pub fn behind_prefetch(self, turn: Dur) -> IdleThresholds {
        IdleThresholds { short: self.short.max(turn + self.short).min(self.long), ..self }
    }
}

/// Whether the disk is idle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// Foreground requests are pending or at the drive.
    Busy,
    /// No foreground requests, but not yet for the short threshold, which is reached at this time.
    ShortWait(Time),
    /// Wanted sectors of the track under the head may be fetched.
    Short,
    /// Nothing is wanted on that track; other work may begin at this time.
    LongWait(Time),
    /// Any background work may run.
    Long,
}

/// Detector of idle time, from the arrivals and completions of requests.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Idle {
    thresholds: IdleThresholds,
    /// Foreground requests that have arrived and are not finished.
    foreground: u64,
    /// Commands of idle work in flight.
    background: u32,
    /// When the last foreground request finished.
    quiet_since: Time,
    /// Nothing more is wanted on the track under the head.
    track_done: bool,
    /// ADMIT's idling window, in which the disk is kept idle for one client although others have
    /// requests pending: its beginning and end.
    window: Option<(Time, Time)>,
    /// How long such a window must have lasted before work may begin. Excludes the revolution for
    /// read-ahead ([`IdleThresholds::behind_prefetch`]), for which the window is too short.
    window_short: Dur,
    /// Lengths of earlier idle periods; `None`: only the thresholds count.
    periods: Option<Periods>,
}

impl Idle {
    /// Creates a detector of a disk that is idle since `now`.
    pub(crate) fn new(thresholds: IdleThresholds, now: Time) -> Idle {
        let window_short = thresholds.short.min(IdleThresholds::default().short);
        Idle {
            thresholds,
            foreground: 0,
            background: 0,
            quiet_since: now,
            track_done: false,
            window: None,
            window_short,
            periods: Some(Periods::default()),
        }
    }

    /// Sets the end of ADMIT's idling window; `None`: there is none. Only sectors on the track
    /// under the head may be fetched in it, because the awaited client will probably continue there
    /// (Valente 2014 section 3.4).
    pub(crate) fn set_idling_window(&mut self, until: Option<Time>, now: Time) {
        self.window = match (self.window, until) {
            (Some((since, _)), Some(until)) => Some((since, until)),
            (None, Some(until)) => {
                self.track_done = false;
                Some((now, until))
            }
            (_, None) => None,
        };
    }

    /// Counts the arrival of a foreground request.
    #[inline]
    pub(crate) fn arrived(&mut self, now: Time) {
        // Shorter periods are useless to idle work, and would hide the others.
        let quiet = now.saturating_since(self.quiet_since);
        if self.foreground == 0 && quiet >= self.thresholds.short {
            self.periods.iter_mut().for_each(|p| p.ended(quiet));
        }
        self.foreground += 1;
    }

    /// Counts a piece of a task that is promoted to a foreground request. It ends no idle period:
    /// no client sent it.
    #[inline]
    pub(crate) fn promoted(&mut self) {
        self.foreground += 1;
    }

    /// Whether a request is unlikely to arrive during a command of length `takes` that is sent now.
    /// Always true in ADMIT's idling window, where the disk waits for a request anyway, and when
    /// only the thresholds count.
    pub(crate) fn rarely_ends_within(&self, takes: Dur, now: Time) -> bool {
        let quiet = now.saturating_since(self.quiet_since);
        self.foreground > 0 || self.periods.is_none_or(|p| p.rarely_end(quiet, takes))
    }

    /// Returns the same detector with the thresholds alone.
    #[must_use]
    pub(crate) fn thresholds_only(self) -> Idle {
        Idle { periods: None, ..self }
    }

    /// Counts a foreground request that finished or was withdrawn.
    #[inline]
    pub(crate) fn finished(&mut self, now: Time) {
        assert!(self.foreground > 0, "more foreground requests finished than arrived");
        self.foreground -= 1;
        if self.foreground == 0 {
            self.quiet_since = now;
            self.track_done = false;
        }
    }

    /// Counts a command of idle work sent to the drive.
    #[inline]
    pub(crate) fn sent(&mut self) {
        self.background += 1;
    }

    /// Counts the completion of a command of idle work.
    #[inline]
    pub(crate) fn completed(&mut self) {
        assert!(self.background > 0, "more commands completed than were sent");
        self.background -= 1;
    }

    /// Notes that nothing is wanted on the track under the head, so short idle time has no further
    /// use.
    #[inline]
    pub(crate) fn nothing_on_track(&mut self) {
        self.track_done = true;
    }

    /// Returns the state at `now`.
    pub(crate) fn state(&self, now: Time) -> State {
        let IdleThresholds { short, long } = self.thresholds;
        let quiet = now.saturating_since(self.quiet_since);
        match () {
            () if self.foreground > 0 => self.state_of_window(now),
            () if quiet >= long => State::Long,
            () if quiet < short => State::ShortWait(self.quiet_since + short),
            () if self.track_done && self.periods.is_some() => State::Long,
            () if self.track_done => State::LongWait(self.quiet_since + long),
            () => State::Short,
        }
    }

    fn state_of_window(&self, now: Time) -> State {
        match self.window {
            Some((since, until)) if !self.track_done && now < until => match since + self.window_short {
                begins if now < begins => State::ShortWait(begins),
                _ => State::Short,
            },
            _ => State::Busy,
        }
    }

    /// Returns the state if a command of idle work may be sent now. One at a time, because each
    /// delays a request that arrives during it.
    pub(crate) fn may_send(&self, now: Time) -> Option<State> {
        let state = self.state(now);
        (self.background == 0 && matches!(state, State::Short | State::Long)).then_some(state)
    }

    /// Returns when the state changes next if nothing happens.
    pub(crate) fn next_wakeup(&self, now: Time) -> Option<Time> {
        match self.state(now) {
            State::Busy | State::Long => None,
            State::ShortWait(until) | State::LongWait(until) => Some(until),
            State::Short if self.foreground > 0 => None,
            State::Short => Some(self.quiet_since + self.thresholds.long),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn idle() -> Idle {
        Idle::new(IdleThresholds::default(), Time::ZERO)
    }

    fn at(ms: u64) -> Time {
        Time::ZERO + Dur::from_ms(ms)
    }

    #[test]
    fn both_timers_begin_when_the_last_request_is_finished() {
        let mut i = idle();
        i.arrived(at(0));
        i.arrived(at(0));
        i.finished(at(5));
        assert_eq!((i.state(at(100)), i.next_wakeup(at(100))), (State::Busy, None));
        i.finished(at(100));
        assert_eq!((i.state(at(101)), i.next_wakeup(at(101))), (State::ShortWait(at(102)), Some(at(102))));
        assert_eq!((i.state(at(102)), i.next_wakeup(at(102))), (State::Short, Some(at(120))));
        assert_eq!((i.state(at(120)), i.next_wakeup(at(120))), (State::Long, None));
        i.arrived(at(130));
        assert_eq!(i.state(at(130)), State::Busy);
    }

    #[test]
    fn a_track_with_nothing_wanted_ends_short_idle_time_until_the_next_request() {
        let mut i = idle().thresholds_only();
        assert_eq!(i.may_send(at(3)), Some(State::Short));
        i.nothing_on_track();
        assert_eq!((i.state(at(3)), i.may_send(at(3))), (State::LongWait(at(20)), None));
        assert_eq!(i.next_wakeup(at(3)), Some(at(20)));
        assert_eq!(i.may_send(at(20)), Some(State::Long));
        i.arrived(at(20));
        i.finished(at(30));
        assert_eq!(i.state(at(33)), State::Short);
    }

    #[test]
    fn the_long_timer_is_not_waited_for_where_idle_periods_are_remembered() {
        let mut i = idle();
        assert_eq!(i.may_send(at(3)), Some(State::Short));
        i.nothing_on_track();
        assert_eq!(i.may_send(at(3)), Some(State::Long));
        i.arrived(at(4));
        i.finished(at(5));
        assert_eq!((i.state(at(6)), i.state(at(7))), (State::ShortWait(at(7)), State::Short));
    }

    #[test]
    fn one_command_at_a_time_is_sent_and_does_not_end_the_idle_time() {
        let mut i = idle();
        assert_eq!(i.may_send(at(25)), Some(State::Long));
        i.sent();
        assert_eq!((i.state(at(26)), i.may_send(at(26))), (State::Long, None));
        i.completed();
        assert_eq!(i.may_send(at(31)), Some(State::Long));
    }

    #[test]
    fn the_current_track_may_be_read_while_the_disk_idles_for_an_application() {
        let mut i = idle();
        i.arrived(at(1));
        assert_eq!(i.state(at(1)), State::Busy);
        i.set_idling_window(Some(at(9)), at(1));
        assert_eq!((i.state(at(2)), i.next_wakeup(at(2))), (State::ShortWait(at(3)), Some(at(3))));
        i.set_idling_window(Some(at(9)), at(2));
        assert_eq!((i.may_send(at(3)), i.next_wakeup(at(3))), (Some(State::Short), None));
        assert_eq!(i.state(at(9)), State::Busy);
        i.nothing_on_track();
        assert_eq!(i.state(at(4)), State::Busy);
        // Never long: requests that wait for the disk do not wait for a seek of idle work.
        i.set_idling_window(None, at(9));
        i.set_idling_window(Some(at(100)), at(10));
        assert_eq!(i.state(at(99)), State::Short);
        i.set_idling_window(None, at(99));
        assert_eq!(i.state(at(99)), State::Busy);
    }

    #[test]
    fn a_drive_that_reads_on_is_given_its_turn() {
        let turn = Dur::from_us(5_985);
        let t = IdleThresholds::default().behind_prefetch(turn);
        assert_eq!((t.short, t.long), (Dur::from_us(7_985), Dur::from_ms(20)));
        assert_eq!(t.behind_prefetch(Dur::from_ms(30)).short, Dur::from_ms(20));
    }
}
