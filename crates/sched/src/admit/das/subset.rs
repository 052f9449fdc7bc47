//! The dynamic active subset: at each decision, all who may go without a guarantee being broken, whoever of them does (Reuther and
//! Pohlack 2003, section 3.2, figure 2).
//!
//! # The rule
//!
//! For an instant d, let *slack* be the time from when the drive is free at the latest until d, less the worst cases of all mandatory
//! requests that are to be done by d ([`super::sweep`]). With one period for all, and d its end, this is what is left in figure 2 of
//! t_left behind step 1. Something with a worst case of w may go if the slack stays above zero wherever it counts:
//!
//! * a mandatory request, if the slack is at least w at every deadline *before its own* (with one period there is none);
//! * an optional request, if its stream has some of its reservation left, the slack is at least w at every deadline, and it is likely
//!   to be done in its period;
//! * a best-effort request, if the slack is at least w at every deadline, less what optional streams can take of their reservations by then; if
//!   at the end of each optional stream's period there is as much left when *everything* that any stream can ask for by then is
//!   taken off, for nobody keeps a stream with a later deadline from going first; and if it is over before the reservations begin anew,
//!   unless these have room enough.
//!
//! # What is guaranteed, and why
//!
//! *No mandatory request is late*, if none takes longer than its worst case. The slack is at least zero at all deadlines when streams are admitted
//! (condition 2), and whatever goes takes w at most where it was at least w. Where it has to be done by d itself, the slack at d loses
//! the w that its demand loses. Time that passes while nothing is sent takes nothing from where a mandatory request waits, for the one with
//! the earliest deadline may always go. So at d the slack is still not below zero, and what was to be done is done.
//!
//! *An optional stream has its reservation, as far as there is time for it.* When a best-effort request goes, everything that the streams can still ask for fits
//! into what is left, at its worst. So only in periods in which none went can a stream have less than it
//! reserved, and in those the streams have the drive to themselves: that is what admission reckons with.
//!
//! # Where this is not figure 2
//!
//! Figure 2 takes off r_left for an optional stream whether it asks for anything or not. Here it is what its waiting requests can still take: their
//! worst cases at most, or r_left and the overrun of its last requests, which figure 2 leaves out. Figure 2 begins nothing but mandatory requests in
//! the last w of each period. Here the end of a period is a deadline only for requests that are still to be done, and the next one is that
//! of the period after: a disk without mandatory requests is not kept idle.
//!
//! A decision looks at each stream once. Requests are counted, not looked at.

use headtime_disk::time::{Dur, Time};

use super::admission::{Service, worst_rate};
use super::at_drive::{AtDrive, Done};
use super::periods::{Periods, Tally};
use super::stream::Stream;
use super::sweep::{At, Demand, Slack, bounded, fine, grown, sweep};

/// What becomes of an optional stream's requests when its reservation is used up before its period is (section 3.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Exhausted {
    /// They wait for the period's end, and are late then.
    Skip,
    /// They go with the best-effort requests.
    #[default]
    AsBestEffort,
    /// They go where best-effort requests might, and those only when there are none.
    BeforeBestEffort,
}

/// How subsets are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// Commands at the drive at most.
    pub outstanding: u32,
    /// w of the largest best-effort request that there ever is.
    pub best_effort: Dur,
    /// What becomes of streams without a reservation left.
    pub exhausted: Exhausted,
    /// How long after it began with a command the drive may move its arm for itself, though the command is done.
    pub moves_on: Dur,
}

/// Somebody who may go: the requests of a stream that belong to one period.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Member {
    /// The stream's number.
    pub stream: u32,
    /// The period, counted from the beginning of the run.
    pub period: u64,
}

/// What a command was sent for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sent {
    /// A request of a stream.
    Stream(Member),
    /// A best-effort request.
    BestEffort,
    /// What fills a gap.
    Fill,
}

/// Everybody who may go.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Active {
    /// Requests of streams.
    pub members: Vec<Member>,
    /// Whether best-effort requests are among them.
    pub best_effort: bool,
}

/// Time that something of no guarantee may take, at its worst, at some instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spare {
    /// When the drive is free at the latest; what is said counts from then.
    pub from: Time,
    /// Without a mandatory request being late.
    pub mandatory: Dur,
    /// Without a stream getting less than its reservation, either.
    pub all: Dur,
}

impl Spare {
    /// When what fills gaps must be over, at its worst.
    pub fn until(&self) -> Time {
        self.from + self.all
    }
}

/// What is to be told of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A request was done when its period was over.
    Late {
        /// The command.
        command: u64,
        /// Whose, and when it was to be done.
        member: Member,
    },
    /// The drive took longer than the worst case: this command shows that w is none.
    Overdue {
        /// The command.
        command: u64,
        /// How long the drive was busy with it.
        took: Dur,
        /// What was thought to be the worst case.
        worst: Dur,
    },
}

/// Why a stream does not begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OpenError {
    /// It is at work already.
    #[error("stream {number} is at work already")]
    Exists {
        /// Its number.
        number: u32,
    },
    /// Mandatory streams take all the time there is.
    #[error("stream {number}: expected a period from which on every mandatory request can be in time, found none")]
    NoRoom {
        /// Its number.
        number: u32,
    },
}

#[derive(Clone, Debug)]
struct Open {
    number: u32,
    periods: Periods,
    worst: Dur,
    likely: Dur,
    /// `None`: mandatory.
    reservation: Option<Dur>,
    /// c w / t of a mandatory stream, in 2^-32.
    rate: u64,
    /// What an optional one can take of its whole reservation, and that as a rate.
    claim: Dur,
    claim_rate: u64,
}

/// Streams at work, what is at the drive, and who may go.
#[derive(Clone, Debug)]
pub struct Subset {
    rules: Rules,
    streams: Vec<Open>,
    at_drive: AtDrive<(Sent, bool)>,
    /// By deadline; made anew when one changes.
    order: Vec<At>,
    stale: bool,
    /// The first end of a period.
    next_end: Time,
    /// What may still be at the drive, at its worst, when reservations begin: they have room enough for it.
    room: Dur,
    active: Active,
    /// The longest best-effort request that the last decision let go.
    decided_for: Dur,
    events: Vec<Event>,
}

impl Subset {
    /// No stream is at work.
    pub fn new(rules: Rules) -> Subset {
        assert!(rules.outstanding > 0, "nothing could ever be sent");
        Subset {
            rules,
            streams: Vec::new(),
            at_drive: AtDrive::default(),
            order: Vec::new(),
            stale: true,
            next_end: Time::NEVER,
            room: Dur(u64::MAX),
            active: Active::default(),
            decided_for: Dur::ZERO,
            events: Vec::new(),
        }
    }

    /// A stream that was admitted begins, with the reservation that admission gave it, if it is optional. When its first period begins: at
    /// once, or, for a mandatory one, when no other can become late by it. What it asks for before then belongs to that period.
    ///
    /// # Errors
    /// The number is in use; there is no such period, which admission would have said.
    pub fn open(
        &mut self,
        number: u32,
        stream: Stream,
        service: &Service,
        reservation: Option<Dur>,
        now: Time,
    ) -> Result<Time, OpenError> {
        assert!(stream.is_mandatory() == reservation.is_none(), "a reservation is for an optional stream");
        self.tick(now);
        if self.streams.iter().any(|s| s.number == number) {
            return Err(OpenError::Exists { number });
        }
        let (worst, likely) = (service.worst, service.likely());
        let rate = if reservation.is_none() { worst_rate(stream.requests, worst, stream.period) } else { 0 };
        // Each rate is rounded up by less than one.
        let rounded = self.streams.len() as u64 + 1;
        if self.streams.iter().map(|s| s.rate).sum::<u64>().saturating_add(rate) > (1 << 32) + rounded {
            return Err(OpenError::NoRoom { number });
        }
        let mut begins = stream.period_start(now);
        if begins < now {
            begins += stream.period;
        }
        // Deadlines of the others that count are at most two of their periods away; behind them there is room for it.
        let furthest = self.streams.iter().map(|s| s.periods.end() + s.periods.stream().period).max();
        let give_up = furthest.unwrap_or(now).max(self.at_drive.free_by(now)) + stream.period + stream.period;
        loop {
            let periods = Periods::new(stream, begins, now);
            self.streams.push(Open {
                number,
                periods,
                worst,
                likely,
                reservation,
                rate,
                claim: Dur::ZERO,
                claim_rate: 0,
            });
            self.changed();
            // A period that begins now has all of its requests at once: there must be time for them, too.
            let at_once = if begins == now { stream.requests } else { 0 };
            if reservation.is_some() || self.slack_with(self.streams.len() - 1, at_once, now) >= -ROUNDED {
                break;
            }
            self.streams.pop();
            self.changed();
            begins += stream.period;
            if begins > give_up {
                return Err(OpenError::NoRoom { number });
            }
        }
        self.reckon();
        Ok(begins)
    }

    /// A stream has another reservation from now on: others have come or gone. Panics when it is not an optional one at work.
    pub fn set_reservation(&mut self, number: u32, reservation: Dur) {
        let at = self.find(number);
        assert!(self.streams[at].reservation.is_some(), "stream {number} is mandatory");
        self.streams[at].reservation = Some(reservation);
        self.reckon();
    }

    /// A stream ends. What of it is not sent is the caller's to withdraw; what is at the drive counts until it is done.
    pub fn close(&mut self, number: u32) -> Tally {
        let at = self.find(number);
        let gone = self.streams.remove(at);
        self.reckon();
        gone.periods.tally()
    }

    /// A stream's request has come: the period that it belongs to. It may go when [`Subset::ready`] says so.
    pub fn submit(&mut self, number: u32, now: Time) -> Member {
        self.tick(now);
        let at = self.find(number);
        let room = self.streams[at].periods.has_room();
        let under_way = room && (self.streams[at].reservation.is_some() || self.fits(at, now));
        let period = self.streams[at].periods.give(under_way);
        self.changed();
        Member { stream: number, period }
    }

    /// A request that was submitted waits for no older one (any more).
    pub fn ready(&mut self, member: Member) {
        let at = self.find(member.stream);
        self.streams[at].periods.ready(member.period);
    }

    /// A request was chosen; its command goes at once or after something that fills the gap before it ([`Subset::sends`]). Until then it is
    /// known as `token`. `worst`: w of what is not a stream's. Panics when the last decision, for which nothing else was chosen, did
    /// not let it go.
    pub fn chosen(&mut self, token: u32, what: Sent, worst: Dur) {
        let (mut late, mut times) = (false, (worst, worst));
        match what {
            Sent::Fill => panic!("what fills a gap is not chosen"),
            Sent::BestEffort => {
                assert!(self.active.best_effort, "best effort was not in the subset");
                assert!(worst <= self.decided_for, "a best-effort request of {worst}, longer than was said");
            }
            Sent::Stream(member) => {
                assert!(self.active.members.contains(&member), "{member:?} was not in the subset");
                let at = self.find(member.stream);
                let open = &mut self.streams[at];
                late = open.periods.sent(member.period);
                times = (open.worst, open.likely);
            }
        }
        self.at_drive.hold(token, (what, late), times);
        self.active.members.clear();
        self.active.best_effort = false;
        self.changed();
    }

    /// The command of a request that was chosen goes to the drive. `worst`: its worst case, if something at its front has made it longer.
    pub fn sends(&mut self, token: u32, command: u64, worst: Dur, now: Time) {
        self.at_drive.sent_held(token, command, worst, now);
    }

    /// A best-effort request that was chosen does not go. Panics when it is a stream's.
    pub fn withdrawn(&mut self, token: u32) {
        let (what, ..) = self.at_drive.withdraw(token);
        assert!(what.0 == Sent::BestEffort, "{what:?} is a guarantee's");
    }

    /// What fills a gap goes to the drive; it is held to [`Subset::spare`] by who plans it.
    pub fn fills(&mut self, command: u64, worst: Dur, now: Time) {
        self.at_drive.sent(command, (Sent::Fill, false), (worst, worst), now);
    }

    /// A request that was chosen goes at once.
    pub fn sent(&mut self, command: u64, what: Sent, worst: Dur, now: Time) {
        const AT_ONCE: u32 = u32::MAX;
        match what {
            Sent::Fill => self.fills(command, worst, now),
            _ => {
                self.chosen(AT_ONCE, what, worst);
                self.sends(AT_ONCE, command, Dur::ZERO, now);
            }
        }
    }

    /// A command came back of which the part that is a request's was not tried: it goes again, and is known as `token` until then.
    pub fn again(&mut self, command: u64, token: u32, now: Time) {
        self.tick(now);
        let done = self.back(command, now);
        self.at_drive.hold(token, done.what, (done.worst, done.likely));
    }

    fn back(&mut self, command: u64, now: Time) -> Done<(Sent, bool)> {
        let done = self.at_drive.done(command, self.rules.moves_on, now);
        if done.took > done.worst {
            self.events.push(Event::Overdue { command, took: done.took, worst: done.worst });
        }
        done
    }

    /// A request of a stream whose period is over is given up: it is not to be sent any more. `ready`: it waits for no older one.
    pub fn give_up(&mut self, member: Member, ready: bool) {
        let at = self.find(member.stream);
        self.streams[at].periods.give_up(member.period, ready);
        self.changed();
    }

    /// A command came back.
    pub fn completed(&mut self, command: u64, now: Time) {
        self.tick(now);
        let done = self.back(command, now);
        let (Sent::Stream(member), was_late) = done.what else { return };
        if let Some(open) = self.streams.iter_mut().find(|s| s.number == member.stream)
            && !open.periods.done(member.period, was_late, done.took, now)
        {
            self.events.push(Event::Late { command, member });
        }
        self.changed();
    }

    /// What has happened since the last time that was not to happen.
    pub fn events(&mut self) -> impl Iterator<Item = Event> + '_ {
        self.events.drain(..)
    }

    /// Who may go now, of best effort whatever waits.
    pub fn decide(&mut self, now: Time) -> &Active {
        self.decide_for(self.rules.best_effort, now)
    }

    /// Who may go now; none of the best-effort requests that wait takes longer than `best_effort`, at its worst.
    pub fn decide_for(&mut self, best_effort: Dur, now: Time) -> &Active {
        assert!(best_effort <= self.rules.best_effort, "best effort of {best_effort}, longer than was said");
        self.decided_for = best_effort;
        self.tick(now);
        let slack = self.slack(now);
        let likely_free = self.at_drive.likely_free_by(now);
        self.active.members.clear();
        let mut exhausted = false;
        // In the order of deadlines, so that the earliest comes first.
        for at in &self.order {
            let open = &self.streams[at.stream];
            let (periods, w) = (&open.periods, signed(open.worst));
            let under_way = Member { stream: open.number, period: periods.current() };
            match open.reservation {
                None if periods.waiting() > 0 && at.before >= w => self.active.members.push(under_way),
                Some(reservation) if periods.waiting() > 0 => {
                    let charged = periods.used() + Dur(open.likely.0 * u64::from(periods.at_drive()));
                    let likely = likely_free + open.likely <= periods.end();
                    if periods.used() >= reservation {
                        let may = self.rules.exhausted != Exhausted::Skip && self.may_cross(&slack, open.worst);
                        exhausted |= may;
                        if may {
                            self.active.members.push(under_way);
                        }
                    } else if charged < reservation && likely && slack.mandatory >= w {
                        self.active.members.push(under_way);
                    }
                }
                _ => {}
            }
            let late =
                periods.oldest_late().filter(|_| open.reservation.is_none() || self.may_cross(&slack, open.worst));
            self.active.members.extend(late.map(|period| Member { stream: open.number, period }));
        }
        let first = exhausted && self.rules.exhausted == Exhausted::BeforeBestEffort;
        self.active.best_effort = !first && self.may_cross(&slack, best_effort);
        &self.active
    }

    /// Whether something that is nobody's may go with a worst case of `worst`.
    fn may_cross(&self, slack: &Slack, worst: Dur) -> bool {
        let claims = worst <= self.room
            || self.streams.iter().all(|s| s.reservation.is_none() || slack.from + worst <= s.periods.end());
        slack.all >= signed(worst) && claims
    }

    /// What may be put before or between the requests now, at its worst.
    pub fn spare(&mut self, now: Time) -> Spare {
        self.tick(now);
        let slack = self.slack(now);
        let optional = self.streams.iter().filter(|s| s.reservation.is_some());
        let releases = optional.map(|s| s.periods.end().saturating_since(slack.from)).min();
        // What is held has left the account of its stream, but must be done in its period all the same.
        let due = self.at_drive.held().filter_map(|(what, late)| match what {
            Sent::Stream(member) if !late => self.due(member),
            _ => None,
        });
        let before = due.min().map_or(Dur(u64::MAX), |due| due.saturating_since(slack.from));
        let span = |slack: i64| Dur(slack.max(0) as u64).min(before);
        let all = span(slack.all).min(releases.unwrap_or(Dur(u64::MAX)).max(self.room));
        Spare { from: slack.from, mandatory: span(slack.mandatory), all }
    }

    /// When it is to be asked again, if nothing happens before: periods end.
    pub fn next_wakeup(&self) -> Option<Time> {
        (self.next_end < Time::NEVER).then_some(self.next_end)
    }

    /// What a stream has asked for and had.
    pub fn tally(&self, number: u32) -> Option<Tally> {
        self.streams.iter().find(|s| s.number == number).map(|s| s.periods.tally())
    }

    /// When a mandatory request must be done.
    fn due(&self, member: Member) -> Option<Time> {
        let open = self.streams.iter().find(|s| s.number == member.stream)?;
        open.reservation.is_none().then(|| Time((member.period + 1) * open.periods.stream().period.0))
    }

    fn find(&self, number: u32) -> usize {
        let at = self.streams.iter().position(|s| s.number == number);
        at.unwrap_or_else(|| panic!("stream {number} is not at work"))
    }

    /// Tells it the time: periods that are over are over.
    pub fn tick(&mut self, now: Time) {
        if now < self.next_end {
            return;
        }
        self.streams.iter_mut().for_each(|s| _ = s.periods.roll(now));
        self.next_end = self.streams.iter().map(|s| s.periods.end()).min().unwrap_or(Time::NEVER);
        self.changed();
    }

    fn changed(&mut self) {
        self.stale = true;
    }

    /// What an optional stream can take of a reservation of `left` at most, with so many requests: the last commands are carried
    /// through.
    fn claim(&self, open: &Open, left: Dur, requests: u32) -> Dur {
        let more = u64::from(self.rules.outstanding - 1);
        let overrun = open.worst.0 + more * (open.worst.0 - open.likely.0);
        Dur((left.0 + overrun).min(open.worst.0 * u64::from(requests)))
    }

    /// After streams have come or gone.
    fn reckon(&mut self) {
        for at in 0..self.streams.len() {
            let open = &self.streams[at];
            let stream = *open.periods.stream();
            let claim = open.reservation.map_or(Dur::ZERO, |r| self.claim(open, r, stream.requests));
            (self.streams[at].claim, self.streams[at].claim_rate) = (claim, worst_rate(1, claim, stream.period));
        }
        let all = &self.streams;
        let room = all.iter().map(|s| {
            let period = s.periods.stream().period;
            let shorter = all.iter().filter(|o| o.periods.stream().period <= period);
            let rate: u64 = shorter.map(|o| o.rate + o.claim_rate).sum();
            let taken = (u128::from(period.0) * u128::from(rate)).div_ceil(1 << 32) as u64;
            Dur(period.0.saturating_sub(taken))
        });
        self.room = room.min().unwrap_or(Dur(u64::MAX));
        self.next_end = self.streams.iter().map(|s| s.periods.end()).min().unwrap_or(Time::NEVER);
        self.changed();
    }

    /// Whether one more request of a mandatory stream can be done in the period under way.
    fn fits(&mut self, at: usize, now: Time) -> bool {
        self.slack_with(at, 1, now) >= -ROUNDED
    }

    /// The slack of mandatory streams if one of the streams had `more` requests.
    fn slack_with(&mut self, at: usize, more: u32, now: Time) -> i64 {
        self.put_in_order(Some((at, more)));
        self.stale = true;
        self.swept(now).mandatory
    }

    fn slack(&mut self, now: Time) -> Slack {
        if self.stale {
            self.put_in_order(None);
            self.stale = false;
        }
        self.swept(now)
    }

    fn swept(&mut self, now: Time) -> Slack {
        let late = self.streams.iter().filter(|s| s.reservation.is_none());
        let late = Dur(late.map(|s| u64::from(s.periods.late()) * s.worst.0).sum());
        let mut slack = sweep(&mut self.order, self.at_drive.free_by(now), late);
        let mut last = None;
        for at in &self.order {
            if let Demand::Optional { by, work } = at.demand
                && work > Dur::ZERO
                && last != Some(by)
            {
                last = Some(by);
                let left = ((i128::from(by.0) - i128::from(slack.from.0)) << 32) - fine(late) - self.wanted_before(by);
                slack.all = slack.all.min(bounded(left));
            }
        }
        slack
    }

    /// Everything that streams can ask for before `end`, whenever it is to be done, in 2^-32 ns.
    fn wanted_before(&self, end: Time) -> i128 {
        let wanted = |at: &At| {
            let open = &self.streams[at.stream];
            let (now, each, rate) = match at.demand {
                Demand::Optional { work, .. } => (work, open.claim, open.claim_rate),
                Demand::Mandatory { work, .. } => {
                    let all = Dur(open.worst.0 * u64::from(open.periods.stream().requests));
                    // Of a stream that waits for nothing it is what comes with its next period.
                    (if open.periods.left() > 0 { work } else { Dur::ZERO }, all, open.rate)
                }
            };
            let release = open.periods.end();
            let again = if release < end { fine(each) + grown(rate, end.since(release).0) } else { 0 };
            fine(now) + again
        };
        self.order.iter().map(wanted).sum()
    }

    /// Deadlines as they are, or as they would be with more requests of one stream.
    fn put_in_order(&mut self, with: Option<(usize, u32)>) {
        self.order.clear();
        for (stream, open) in self.streams.iter().enumerate() {
            let more = with.filter(|w| w.0 == stream).map_or(0, |w| w.1);
            let demand = self.demand(open, more);
            self.order.push(At { stream, demand, before: 0 });
        }
        self.order.sort_unstable_by_key(|at| (at.demand.at(), at.stream));
    }

    fn demand(&self, open: &Open, more: u32) -> Demand {
        let (end, stream) = (open.periods.end(), open.periods.stream());
        let left = open.periods.left() + more;
        let work = |requests: u32| Dur(open.worst.0 * u64::from(requests));
        match open.reservation {
            None if left > 0 => Demand::Mandatory { by: end, work: work(left), rate: open.rate },
            None => Demand::Mandatory { by: end + stream.period, work: work(stream.requests), rate: open.rate },
            Some(reservation) => {
                let reserved = reservation.saturating_sub(open.periods.used());
                let claims = left > 0 && reserved > Dur::ZERO;
                let work = if claims { self.claim(open, reserved, left) } else { Dur::ZERO };
                Demand::Optional { by: end, work }
            }
        }
    }
}

/// Streams with one period may take all of it, and their rates, each rounded up, a few nanoseconds more.
const ROUNDED: i64 = 1_000;

fn signed(d: Dur) -> i64 {
    d.0.min(i64::MAX as u64) as i64
}
