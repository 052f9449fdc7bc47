//! The dynamic active subset: at each decision, the eligible requests, each of which can be
//! dispatched without a guarantee being broken (Reuther and Pohlack 2003, section 3.2, figure 2).
//!
//! # The rule
//!
//! For an instant d, let *slack* be the time from when the drive is free at the latest until d,
//! less the worst cases of all mandatory requests that are to be done by d ([`super::sweep`]). With
//! one period for all, and d its end, this is what is left in figure 2 of t_left behind step 1.
//! Something with a worst case of w may go if the slack is w or more wherever it counts:
//!
//! * a mandatory request, if the slack is at least w at every deadline *before its own* (with one
//!   period there is none), but for the ends of periods in which all that a stream has left waits
//!   for older requests, longer than it said;
//! * an optional request, if its stream has some of its reservation left, the slack is at least w
//!   at every deadline, all that optional streams with earlier ends can take of their reservations
//!   fits behind it (below), and it is likely to be done in its period;
//! * a request of an optional stream whose reservation is used up, if requests with times drawn
//!   from X would not have used it up, the conditions above hold, and all that is reserved fits
//!   behind it at likely times. Best effort is not eligible then;
//! * a best-effort request, if three conditions hold:
//!   - the slack is at least w at every deadline, less what optional streams can take of their
//!     reservations by then;
//!   - at the end of each optional stream's period w is left of the time when everything is taken
//!     off that may go before that end: what optional streams with this end, or an earlier one, can
//!     take of their reservations, and all that mandatory streams can ask for by then;
//!   - the same holds at the end of the period after that, or the request is likely to be over
//!     before that begins, or that period's reservations were made with room for it (`crossing`);
//! * a request for which a mandatory one waits, if the slack is at least w at every deadline (of a
//!   mandatory stream's that counts: at every one before its own), the blocking time of the waiting
//!   one less by as much. It goes next then: it inherits the other's deadline (`blocking`);
//! * a request for which an optional one waits, where its stream's could go. It costs the stream's
//!   reservation.
//!
//! # What is guaranteed, and why
//!
//! *No mandatory request is late*, if none takes longer than its worst case. The slack is at least
//! zero at all deadlines when streams are admitted (condition 2), and whatever goes takes w at most
//! where it was at least w. Where it has to be done by d itself, the slack at d loses the w that
//! its demand loses. Time that passes while nothing is sent takes nothing from where a mandatory
//! request waits, for the one with the earliest deadline may always go, and no request waits for
//! another longer than every slack allows. So at d the slack is still not below zero, and what was
//! to be done is done.
//!
//! *An optional stream has its reservation, as far as there is time for it.* When a best-effort
//! request goes, everything that the streams can still ask for fits into what is left, at its
//! worst. So only in periods in which none went can a stream have less than it reserved, and in
//! those the streams have the drive to themselves: that is what admission reckons with. But X is
//! that of requests anywhere on a drive where nothing else goes. Behind best effort, or where its
//! stream's requests lie together, one may have a longer way. So a stream that has used up its
//! reservation with fewer requests than usual has more where that harms no other ([`charge`]). What
//! fills a gap takes no time, unless a prediction is wrong; there it is held to the slack of
//! mandatory requests alone, and an optional stream loses what wrong predictions cost.
//!
//! # Where this is not figure 2
//!
//! Figure 2 takes off r_left for an optional stream whether it asks for anything or not. Here it is
//! what its waiting requests can still take: their worst cases at most, or r_left and the overrun
//! of its last requests, which figure 2 leaves out. Figure 2 begins nothing but mandatory requests
//! in the last w of each period. Here the end of a period is a deadline only for requests that are
//! still to be done, and the next one is that of the period after: a disk without mandatory
//! requests is not kept idle.
//!
//! A decision takes time in proportion to the number of streams, but for requests that waited for
//! an older one until their period was over (`slack_but_of`). Requests are counted, not looked at.

use std::cell::OnceCell;

use headtime_disk::time::{Dur, Time};

use super::at_drive::AtDrive;
use super::periods::Tally;
use super::sweep::{Point, Slack};

mod blocking;
pub mod charge;
mod going;
mod open;
mod opening;
mod slack;
mod terms;

use open::Open;
pub use terms::{Active, Event, Exhausted, Member, OpenError, Rules, Sent, Spare};

/// Why a command went to the drive.
#[derive(Clone, Copy, Debug)]
struct Gone {
    what: Sent,
    /// A request whose period was over when it went.
    late: bool,
    /// What one of a stream costs that is like those that X was measured with.
    usual: Dur,
    /// It fills the gap before a stream's request that is held.
    in_gap: bool,
    /// A best-effort request for which one of an optional stream waits, whose reservation it costs.
    costs: Option<Member>,
}

/// A request goes next because one of a stream waits for it.
#[derive(Clone, Copy, Debug)]
struct Lent {
    /// Who waits.
    member: Member,
    /// Of the worst case of what goes, what was counted as blocking time of the one that waits, and
    /// is not any more.
    time: Dur,
    /// The name of what goes, once it was chosen.
    token: Option<u32>,
}

/// What there is beyond reservations, in ns; below zero where there is less than they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Claims {
    /// At the least end of a period under way for which something is claimed.
    now: i64,
    /// At the least end of a period after that, or until it begins if that is longer.
    next: i64,
    /// The same of periods before which a stream's request of any size is not likely to be over.
    next_for_streams: i64,
    /// The same for best effort of the size that is asked about.
    next_for_best_effort: i64,
}

/// What happens at an end of a period, in the order in which it counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Step {
    /// The one under way of a stream ends.
    Ends,
    /// The one after it does.
    NextEnds,
}

/// Streams at work, what is at the drive, and who may go.
#[derive(Clone, Debug)]
pub struct Subset {
    rules: Rules,
    streams: Vec<Open>,
    at_drive: AtDrive<Gone>,
    /// Ends of periods under way, and what is due there; empty when such ends have changed since
    /// they were put in.
    points: Vec<Point>,
    /// Of each stream the point at its end, and the streams by their ends.
    point_of: Vec<usize>,
    by_end: Vec<usize>,
    /// What mandatory requests that are late take at their worst.
    late: Dur,
    /// What is due at the points, or late, is not what they say.
    stale: bool,
    /// How long what filled the gap took that the next request was held for.
    gap_took: Dur,
    /// The first end of a period.
    next_end: Time,
    /// For how many commands that are at the drive when they begin periods have room
    /// ([`Rules::crossing`]).
    crossing: u32,
    /// For each stream what claims leave at ends before its own, in ns, by the last decision.
    before: Vec<i64>,
    /// Ends of periods, in order; empty when one has changed since they were put in it.
    ends: Vec<(Time, Step, usize)>,
    active: Active,
    /// The longest best-effort request that the last decision let go.
    decided_for: Dur,
    /// What went last, or may go, because a stream's request waits for it; `None` once its command
    /// was sent.
    lent: Option<Lent>,
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
            points: Vec::new(),
            point_of: Vec::new(),
            by_end: Vec::new(),
            late: Dur::ZERO,
            stale: true,
            gap_took: Dur::ZERO,
            next_end: Time::NEVER,
            crossing: 0,
            before: Vec::new(),
            ends: Vec::new(),
            active: Active::default(),
            decided_for: Dur::ZERO,
            lent: None,
            events: Vec::new(),
        }
    }

    /// A stream's request has come: the period that it belongs to. It may go when [`Subset::ready`]
    /// says so.
    pub fn submit(&mut self, number: u32, now: Time) -> Member {
        self.tick(now);
        let at = self.find(number);
        let room = self.streams[at].periods.has_room();
        let under_way = room && self.fits(at, now);
        let period = self.streams[at].periods.give(under_way);
        self.changed();
        Member { stream: number, period }
    }

    /// A request that was submitted waits for no older one (any more).
    pub fn ready(&mut self, member: Member) {
        let at = self.find(member.stream);
        self.streams[at].periods.ready(member.period);
        self.changed();
    }

    /// A request that was submitted, and of which [`Subset::ready`] was not told, waits for an
    /// older one. A mandatory one counts all the same; an optional one does not until it may go, if
    /// its stream did not say that it may wait.
    pub fn blocked(&mut self, member: Member) {
        let at = self.find(member.stream);
        let open = &self.streams[at];
        let counts = open.reservation.is_none() || open.blocking > Dur::ZERO;
        self.streams[at].periods.blocked(member.period, counts);
        self.changed();
    }

    /// A request that waited for an older one may go. It counts if its period is not over.
    pub fn unblocked(&mut self, member: Member, now: Time) {
        self.tick(now);
        let at = self.find(member.stream);
        let open = &self.streams[at];
        let in_account = member.period >= open.periods.current();
        self.streams[at].periods.unblocked(member.period, in_account);
        self.changed();
    }

    /// A request of a stream whose period is over is given up: it is not to be sent any more.
    /// `ready`: it waits for no older one.
    pub fn give_up(&mut self, member: Member, ready: bool) {
        let at = self.find(member.stream);
        self.streams[at].periods.give_up(member.period, ready);
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

    /// Who may go now; none of the best-effort requests that wait takes longer than `best_effort`,
    /// at its worst.
    pub fn decide_for(&mut self, best_effort: Dur, now: Time) -> &Active {
        assert!(best_effort <= self.rules.best_effort, "best effort of {best_effort}, longer than was said");
        self.decided_for = best_effort;
        self.tick(now);
        let slack = self.slack(now);
        let likely_free = self.at_drive.likely_free_by(now);
        let claims = self.claims(slack.from, likely_free, best_effort);
        let spared = self.points_but_of_stuck(slack.from);
        let points = spared.as_ref().unwrap_or(&self.points);
        let slack = (&slack, &claims);
        self.active.members.clear();
        let (mut first, spare) = (false, OnceCell::new());
        // In the order of deadlines, so that the earliest comes first.
        for &at in &self.by_end {
            let open = &self.streams[at];
            let before = points[self.point_of[at]].before;
            let (periods, w) = (&open.periods, signed(open.worst));
            let under_way = Member { stream: open.number, period: periods.current() };
            match open.reservation {
                None if periods.waiting() > 0 && before >= w => self.active.members.push(under_way),
                Some(reservation) if periods.waiting() > 0 => {
                    let in_time = likely_free + open.likely <= periods.end();
                    let in_turn = in_time && slack.0.mandatory >= w && self.before[at] >= w;
                    let used_up = periods.used() >= reservation;
                    // Worked out once, and only where it is asked for.
                    let spare = || spare.get_or_init(|| self.likely_spare(likely_free))[self.point_of[at]];
                    let compensates = || self.rules.compensates && spare() >= signed(open.likely);
                    let has_more = || open.has_more(reservation, self.older_at_drive(under_way));
                    if in_turn && has_more() && (!used_up || compensates()) {
                        first |= used_up;
                        self.active.members.push(under_way);
                    } else if used_up
                        && self.rules.exhausted != Exhausted::Skip
                        && self.may_cross(slack, open.worst, slack.1.next_for_streams)
                    {
                        first |= self.rules.exhausted == Exhausted::BeforeBestEffort;
                        self.active.members.push(under_way);
                    }
                }
                None if periods.has_excused() && self.excused_may_go(slack, at) => {
                    self.active.members.push(under_way);
                }
                _ => {}
            }
            let owed = |counted: bool| counted && open.reservation.is_none();
            let late = periods.oldest_late();
            let late = late.filter(|(_, counted)| owed(*counted) || self.excused_may_go(slack, at));
            self.active.members.extend(late.map(|(period, _)| Member { stream: open.number, period }));
        }
        self.active.best_effort = !first && self.may_cross(slack, best_effort, claims.next_for_best_effort);
        &self.active
    }

    /// Whether a stream's request may go that does not count in its period: where best effort may,
    /// and a mandatory one also where that harms no stream but its own, which has nothing left to
    /// do ([`blocking`]).
    fn excused_may_go(&self, slack: (&Slack, &Claims), stream: usize) -> bool {
        let open = &self.streams[stream];
        let own = open.reservation.is_none() && open.periods.left() == 0;
        self.may_cross(slack, open.worst, slack.1.next_for_streams)
            || own && self.slack_but_of(stream, None, slack.0.from) >= signed(open.worst)
    }

    /// Whether something that belongs to no reservation may go with a worst case of `worst`;
    /// `next`: what claims leave it in periods to come.
    fn may_cross(&self, (slack, claims): (&Slack, &Claims), worst: Dur, next: i64) -> bool {
        let now = slack.all.min(claims.now) >= signed(worst);
        let room = (self.at_drive.all() as u32) < self.crossing && worst <= self.rules.crossing;
        now && (room || next >= signed(worst))
    }

    /// Whether something that belongs to no reservation may go to an idle drive now, with a worst
    /// case of `worst`.
    pub fn has_room_for(&mut self, worst: Dur, now: Time) -> bool {
        self.tick(now);
        let slack = self.slack(now);
        let claims = self.claims(slack.from, self.at_drive.likely_free_by(now), worst);
        self.may_cross((&slack, &claims), worst, claims.next_for_best_effort)
    }

    /// What may be put before or between the requests now, at its worst.
    pub fn spare(&mut self, now: Time) -> Spare {
        self.tick(now);
        let slack = self.slack(now);
        let claims = self.claims(slack.from, self.at_drive.likely_free_by(now), Dur::ZERO);
        // What is held has left the account of its stream, but must be done in its period all the
        // same.
        let due = self.at_drive.held().filter_map(|Gone { what, late, .. }| match what {
            Sent::Stream(member) if !late => self.due(member),
            _ => None,
        });
        let before = due.min().map_or(Dur(u64::MAX), |due| due.saturating_since(slack.from));
        let span = |slack: i64| Dur(slack.max(0) as u64).min(before);
        let all = slack.all.min(claims.now).min(claims.next);
        Spare { from: slack.from, mandatory: span(slack.mandatory), all: span(all) }
    }

    /// When it is to be asked again, if nothing happens before: periods end.
    pub fn next_wakeup(&self) -> Option<Time> {
        (self.next_end < Time::NEVER).then_some(self.next_end)
    }

    /// Requests of a period that may go. What is left of one that is over was the nearest to
    /// nothing that went since, so that it is half as likely to be now.
    pub(super) fn waiting_of(&self, member: Member) -> u32 {
        let periods = &self.streams[self.find(member.stream)].periods;
        if member.period == periods.current() {
            periods.waiting()
        } else {
            periods.waiting_late(member.period).div_ceil(2)
        }
    }

    /// The oldest period before the one under way of which a request of this stream may go.
    pub(super) fn late_of(&self, number: u32) -> Option<Member> {
        let late = self.streams[self.find(number)].periods.oldest_late();
        late.map(|(period, _)| Member { stream: number, period })
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

    /// Tells it the time: periods that are over are over. What might have gone by
    /// [`Subset::inherits`] and was not chosen does not go.
    pub fn tick(&mut self, now: Time) {
        self.take_back(None);
        if now < self.next_end {
            return;
        }
        self.streams.iter_mut().for_each(|s| _ = s.periods.roll(now));
        self.next_end = self.streams.iter().map(|s| s.periods.end()).min().unwrap_or(Time::NEVER);
        self.ends_changed();
    }

    /// What is due has changed.
    fn changed(&mut self) {
        self.stale = true;
    }

    /// Ends of periods have changed, or there are other streams.
    fn ends_changed(&mut self) {
        self.points.clear();
        self.ends.clear();
        self.changed();
    }
}

fn signed(d: Dur) -> i64 {
    d.0.min(i64::MAX as u64) as i64
}
