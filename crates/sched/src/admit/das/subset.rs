//! The dynamic active subset: at each decision, the eligible requests, each of which can be
//! dispatched without a guarantee being violated (Reuther and Pohlack 2003, section 3.2, figure 2).
//!
//! # The rule
//!
//! For an instant d, *slack* is the time from when the drive is free at the latest until d, less
//! the worst cases of all mandatory requests due by d (`sweep`). With one period for all,
//! and d its end, this is t_left after step 1 of figure 2. A command with a worst case of w is
//! eligible if the slack is w or more wherever it counts:
//!
//! * a mandatory request, if the slack is at least w at every deadline *before its own* (with one
//!   period there is none), except for the ends of periods in which all remaining requests of a
//!   stream are blocked by older requests for longer than declared;
//! * an optional request, if its stream has some of its reservation left, the slack is at least w
//!   at every deadline, the maximum use of the reservations of optional streams with earlier ends
//!   fits behind it (below), and it is likely to complete in its period;
//! * a request of an optional stream whose reservation is used up, if requests with times drawn
//!   from X would not have used it up, the conditions above hold, and all reservations fit behind
//!   it at likely times. Best effort is not eligible then;
//! * a best-effort request, if three conditions hold:
//!   - the slack is at least w at every deadline, less the maximum use of optional streams'
//!     reservations by then;
//!   - at the end of each optional stream's period w is left after deducting everything that may
//!     precede that end: the maximum use of the reservations of optional streams with this end, or
//!     an earlier one, and the maximum demand of mandatory streams by then;
//!   - the same holds at the end of the period after that, or the request is likely to complete
//!     before that begins, or that period's reservations include room for it (`crossing`);
//! * a request that blocks a mandatory one, if the slack is at least w at every deadline (for a
//!   mandatory stream's request that counts: at every one before its own), with the blocking time
//!   of the blocked one reduced by as much. It is dispatched next: it inherits the other's deadline
//!   (`blocking`);
//! * a request that blocks an optional one, if a request of the optional one's stream would be
//!   eligible. It is charged to that stream's reservation.
//!
//! # Guarantees
//!
//! *No mandatory request is late*, if none takes longer than its worst case. The slack is at least
//! zero at all deadlines when streams are admitted (condition 2), and each dispatch takes at most w
//! where the slack was at least w. If the request itself is due by d, the slack at d loses the w
//! that its demand loses. Idle time takes nothing from where a mandatory request waits, because the
//! one with the earliest deadline is always eligible, and none waits for another for longer than
//! every slack allows. So at d the slack is still at least zero, and everything due has completed.
//!
//! *An optional stream has its reservation, as far as there is time for it.* When a best-effort
//! request is dispatched, the maximum remaining demand of the streams fits into the remaining time,
//! at the worst case. So a stream can have less than its reservation only in periods without best
//! effort, in which the streams have the drive to themselves, as admission assumes. But X is that
//! of requests anywhere on a drive without other load. Behind best effort, or if its stream's
//! requests are clustered, a request may take longer. So a stream that has used up its reservation
//! with fewer requests than usual gets more if that harms no other ([`charge`]). Gap filling takes
//! no time unless a prediction is wrong; in gaps only the slack of mandatory requests applies, and
//! an optional stream loses what wrong predictions cost.
//!
//! # Differences from figure 2
//!
//! Figure 2 deducts r_left for an optional stream whether or not it has requests. Here the
//! deduction is the maximum use by its waiting requests: their worst cases, or at most r_left and
//! the overrun of its last requests, which figure 2 omits. In the last w of each period figure 2
//! starts only mandatory requests. Here the end of a period is a deadline only for requests still
//! to be done, and the next one is that of the following period: a disk without mandatory requests
//! is not kept idle.
//!
//! A decision takes time proportional to the number of streams, except for requests that were
//! blocked past their period (`slack_but_of`). Requests are counted, not visited.

use std::cell::OnceCell;

use headtime_disk::{Dur, Time};

use super::at_drive::AtDrive;
use super::periods::Tally;
use super::sweep::{Point, Slack};

mod blocking;
pub(crate) mod charge;
mod dispatch;
mod open;
mod opening;
mod slack;
mod terms;

use open::Open;
pub(crate) use terms::{Active, Spare};
pub use terms::{Event, Exhausted, Member, OpenError, Rules, Sent};

/// A command in flight, and its purpose.
#[derive(Clone, Copy, Debug)]
struct Gone {
    what: Sent,
    /// A request whose period was over at dispatch.
    late: bool,
    /// Cost of a stream's request like those that X was measured with.
    usual: Dur,
    /// It fills the gap before a held request of a stream.
    in_gap: bool,
    /// The member of an optional stream whose request it blocks and whose reservation it is charged
    /// to.
    costs: Option<Member>,
}

/// A request that is dispatched next because it blocks a stream's request.
#[derive(Clone, Copy, Debug)]
struct Lent {
    /// The blocked member.
    member: Member,
    /// The part of its worst case that was deducted from the member's blocking time.
    time: Dur,
    /// Identifier of the request, once chosen.
    token: Option<u32>,
}

/// Time beyond reservations, in ns; negative if there is less than reserved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Claims {
    /// The minimum over the ends of current periods with claims.
    now: i64,
    /// The minimum over the ends of the following periods, or until they begin if that is longer.
    next: i64,
    /// The same over periods that begin before any stream's request is likely to complete.
    next_for_streams: i64,
    /// The same for best effort of the size in question.
    next_for_best_effort: i64,
}

/// Events at an end of a period, in the order in which they count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Step {
    /// The current period of a stream ends.
    Ends,
    /// The following period ends.
    NextEnds,
}

/// Open streams, commands in flight, and eligibility.
#[derive(Clone, Debug)]
pub struct Subset {
    rules: Rules,
    streams: Vec<Open>,
    at_drive: AtDrive<Gone>,
    /// Ends of current periods, and the demand due there; empty after such ends have changed.
    points: Vec<Point>,
    /// Index of the point at each stream's end, and the streams sorted by their ends.
    point_of: Vec<usize>,
    by_end: Vec<usize>,
    /// Worst-case demand of late mandatory requests.
    late: Dur,
    /// The demand at the points, or `late`, is outdated.
    stale: bool,
    /// Time used by filling the gap before the next held request.
    gap_took: Dur,
    /// The earliest end of a period.
    next_end: Time,
    /// Number of commands in flight at their start for which periods have room
    /// ([`Rules::crossing`]).
    crossing: u32,
    /// Per stream, the time that claims leave at ends before its own, in ns, by the last decision.
    before: Vec<i64>,
    /// Ends of periods, sorted; empty after one has changed.
    ends: Vec<(Time, Step, usize)>,
    active: Active,
    /// Worst case of the longest best-effort request covered by the last decision.
    decided_for: Dur,
    /// The request dispatched or eligible because it blocks a stream's request; `None` once its
    /// command was sent.
    lent: Option<Lent>,
    events: Vec<Event>,
}

impl Subset {
    /// Creates a subset without streams.
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

    /// Adds a stream's request; returns its period. It is eligible after [`Subset::ready`].
    pub fn submit(&mut self, number: u32, now: Time) -> Member {
        self.tick(now);
        let at = self.find(number);
        let room = self.streams[at].periods.has_room();
        let under_way = room && self.fits(at, now);
        let period = self.streams[at].periods.give(under_way);
        self.changed();
        Member { stream: number, period }
    }

    /// Marks a submitted request as not blocked.
    pub fn ready(&mut self, member: Member) {
        let at = self.find(member.stream);
        self.streams[at].periods.ready(member.period);
        self.changed();
    }

    /// Marks a submitted request that was not reported to [`Subset::ready`] as blocked by an older
    /// one. A mandatory one counts all the same; an optional one counts only once it is eligible,
    /// unless its stream declared blocking.
    pub fn blocked(&mut self, member: Member) {
        let at = self.find(member.stream);
        let open = &self.streams[at];
        let counts = open.reservation.is_none() || open.blocking > Dur::ZERO;
        self.streams[at].periods.blocked(member.period, counts);
        self.changed();
    }

    /// Unblocks a request. It counts if its period is not over.
    pub fn unblocked(&mut self, member: Member, now: Time) {
        self.tick(now);
        let at = self.find(member.stream);
        let open = &self.streams[at];
        let in_account = member.period >= open.periods.current();
        self.streams[at].periods.unblocked(member.period, in_account);
        self.changed();
    }

    /// Records the expiry of a stream's request whose period is over: it must not be sent any more.
    /// `ready`: it is not blocked.
    pub fn give_up(&mut self, member: Member, ready: bool) {
        let at = self.find(member.stream);
        self.streams[at].periods.give_up(member.period, ready);
        self.changed();
    }

    /// Returns the violations since the last call.
    pub fn events(&mut self) -> impl Iterator<Item = Event> + '_ {
        self.events.drain(..)
    }

    /// Returns the active subset, for best effort of any allowed size.
    pub fn decide(&mut self, now: Time) -> &Active {
        self.decide_for(self.rules.best_effort, now)
    }

    /// Returns the active subset; `best_effort` is an upper bound on the worst case of the waiting
    /// best-effort requests.
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
        // In order of deadlines, the earliest first.
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
                    // Computed at most once, and only if needed.
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

    /// Returns whether a stream's request that does not count in its period is eligible: if best
    /// effort would be, and for a mandatory one also if that harms only its own stream, which has
    /// nothing left to do ([`blocking`]).
    fn excused_may_go(&self, slack: (&Slack, &Claims), stream: usize) -> bool {
        let open = &self.streams[stream];
        let own = open.reservation.is_none() && open.periods.left() == 0;
        self.may_cross(slack, open.worst, slack.1.next_for_streams)
            || own && self.slack_but_of(stream, None, slack.0.from) >= signed(open.worst)
    }

    /// Returns whether a command without a reservation may be dispatched with a worst case of
    /// `worst`; `next`: time that claims leave in the following periods.
    fn may_cross(&self, (slack, claims): (&Slack, &Claims), worst: Dur, next: i64) -> bool {
        let now = slack.all.min(claims.now) >= signed(worst);
        let room = (self.at_drive.all() as u32) < self.crossing && worst <= self.rules.crossing;
        now && (room || next >= signed(worst))
    }

    /// Returns whether a command without a reservation may be dispatched to an idle drive now, with
    /// a worst case of `worst`.
    pub fn has_room_for(&mut self, worst: Dur, now: Time) -> bool {
        self.tick(now);
        let slack = self.slack(now);
        let claims = self.claims(slack.from, self.at_drive.likely_free_by(now), worst);
        self.may_cross((&slack, &claims), worst, claims.next_for_best_effort)
    }

    /// Returns the time for commands before or between the requests now, at the worst case.
    pub fn spare(&mut self, now: Time) -> Spare {
        self.tick(now);
        let slack = self.slack(now);
        let claims = self.claims(slack.from, self.at_drive.likely_free_by(now), Dur::ZERO);
        // A held request is no longer in its stream's account, but must still complete in its
        // period.
        let due = self.at_drive.held().filter_map(|Gone { what, late, .. }| match what {
            Sent::Stream(member) if !late => self.due(member),
            _ => None,
        });
        let before = due.min().map_or(Dur(u64::MAX), |due| due.saturating_since(slack.from));
        let span = |slack: i64| Dur(slack.max(0) as u64).min(before);
        let all = slack.all.min(claims.now).min(claims.next);
        Spare { from: slack.from, mandatory: span(slack.mandatory), all: span(all) }
    }

    /// Returns when the next decision is due without other events: at the end of a period.
    pub fn next_wakeup(&self) -> Option<Time> {
        (self.next_end < Time::NEVER).then_some(self.next_end)
    }

    /// Returns the number of eligible requests of a period. For a period that is over it is halved:
    /// of those requests the nearest ones were dispatched first, so that the rest is half as likely
    /// to be near now.
    pub(super) fn waiting_of(&self, member: Member) -> u32 {
        let periods = &self.streams[self.find(member.stream)].periods;
        if member.period == periods.current() {
            periods.waiting()
        } else {
            periods.waiting_late(member.period).div_ceil(2)
        }
    }

    /// Returns the oldest earlier period of this stream with an eligible request.
    pub(super) fn late_of(&self, number: u32) -> Option<Member> {
        let late = self.streams[self.find(number)].periods.oldest_late();
        late.map(|(period, _)| Member { stream: number, period })
    }

    /// Returns the statistics of a stream.
    pub fn tally(&self, number: u32) -> Option<Tally> {
        self.streams.iter().find(|s| s.number == number).map(|s| s.periods.tally())
    }

    /// Returns the deadline of a mandatory request.
    fn due(&self, member: Member) -> Option<Time> {
        let open = self.streams.iter().find(|s| s.number == member.stream)?;
        open.reservation.is_none().then(|| Time((member.period + 1) * open.periods.stream().period.0))
    }

    fn find(&self, number: u32) -> usize {
        let at = self.streams.iter().position(|s| s.number == number);
        at.unwrap_or_else(|| panic!("stream {number} is not at work"))
    }

    /// Advances the time and ends periods. A request allowed by [`Subset::inherits`] and not chosen
    /// is no longer eligible.
    pub fn tick(&mut self, now: Time) {
        self.take_back(None);
        if now < self.next_end {
            return;
        }
        self.streams.iter_mut().for_each(|s| _ = s.periods.roll(now));
        self.next_end = self.streams.iter().map(|s| s.periods.end()).min().unwrap_or(Time::NEVER);
        self.ends_changed();
    }

    /// Marks the demand as changed.
    fn changed(&mut self) {
        self.stale = true;
    }

    /// Marks the ends of periods, or the set of streams, as changed.
    fn ends_changed(&mut self) {
        self.points.clear();
        self.ends.clear();
        self.changed();
    }
}

fn signed(d: Dur) -> i64 {
    d.0.min(i64::MAX as u64) as i64
}
