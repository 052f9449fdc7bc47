//! Streams in the core: the stream of a request, its queue, the eligible queues, and the time left
//! for other commands.
//!
//! [`super::subset`] counts requests; the pool holds them. In between, the requests of one stream
//! and one period have their own queue, so that a decision names queues and ORDER chooses within
//! each of them. Other requests wait in the queues of the ADMIT policy, or in one queue of their
//! own without a policy.

mod opening;
mod queues;
mod terms;

use headtime_disk::profile::Profile;
use headtime_disk::{Command, Dur, Model, Time};

use super::disk::Disk;
use super::ledger::Ledger;
use super::stream::Stream;
use super::subset::{Event, Exhausted, Member, Rules, Sent, Subset};
use super::worst::WorstError;
use super::worsts::{WorstCaseTable, class_of};
use crate::request::{Overdue, Request};
use queues::Queues;

pub(crate) use queues::STREAM_QUEUES;
pub use terms::{Changes, OpenStreamError, OpenedStream, StreamStatus, SubsetSizes};

/// The queue of requests without a stream, if no policy separates them.
pub const BEST_EFFORT: u32 = STREAM_QUEUES - 1;

/// Basis of guarantees: the drive's parameters, and the handling of requests without a guarantee.
#[derive(Clone, Debug)]
pub struct GuaranteeConfig {
    /// w and X by size of request, and the maximum number of commands in flight.
    pub disk: Disk,
    /// w of all other commands. A request larger than [`WorstCaseTable::most_sectors`] is refused.
    pub worsts: WorstCaseTable,
    /// Handling of an optional stream's requests after its reservation is used up.
    pub exhausted: Exhausted,
    /// Whether a stream gets more than its reservation if its requests take longer than X
    /// ([`Rules::compensates`]); without it, qualities hold only as far as X does.
    pub compensates: bool,
}

/// Size in bytes of the largest request without a stream. Such a request is eligible only if all
/// guarantees hold behind its worst case, which would hardly ever be so for a longer one.
pub const LARGEST_BYTES: u32 = 1 << 20;

impl GuaranteeConfig {
    /// Returns the setup for `disk`, the drive of `profile`, from which `model` was compiled.
    ///
    /// # Errors
    /// The worst-case service time of the drive is unbounded.
    pub fn of(
        disk: Disk,
        profile: &Profile,
        model: &Model,
        exhausted: Exhausted,
    ) -> Result<GuaranteeConfig, WorstError> {
        let worsts = WorstCaseTable::of(profile, model, LARGEST_BYTES / model.sector_bytes)?;
        let disk = disk.with_others(worsts.get(worsts.most_sectors()));
        Ok(GuaranteeConfig { disk, worsts, exhausted, compensates: true })
    }
}

#[derive(Clone, Copy, Debug)]
struct Open {
    owner: u32,
    stream: Stream,
    reservation: Option<Dur>,
    closing: bool,
    /// Number of unfinished requests.
    unfinished: u32,
}

impl Open {
    /// Returns the number of requests that it may submit in this period and the next.
    fn places(&self) -> u32 {
        2 * self.stream.requests
    }
}

/// The streams of a core.
#[derive(Debug)]
pub(crate) struct Streams {
    /// The streams as seen by admission control; updated when a stream is requested.
    ledger: Ledger,
    worsts: WorstCaseTable,
    rules: Rules,
    subset: Subset,
    open: Vec<Open>,
    queues: Queues,
    /// Eligible best-effort requests by class of size.
    best_effort: Vec<u32>,
    /// Eligible queues of the last decision.
    candidates: Vec<u32>,
    sizes: SubsetSizes,
    overdue: Vec<Overdue>,
    /// A stream has ended since reservations were last computed.
    ended: bool,
    /// Blocked requests of streams, by slot and queue.
    bound: Vec<(u32, u32)>,
}

impl Streams {
    /// Creates the state without streams.
    pub(crate) fn new(setup: &GuaranteeConfig) -> Streams {
        let rules = Rules {
            outstanding: setup.disk.outstanding(),
            best_effort: setup.worsts.get(setup.worsts.most_sectors()),
            blocker: setup.disk.blocker(),
            exhausted: setup.exhausted,
            compensates: setup.compensates,
            crossing: setup.disk.largest().worst,
            crossing_likely: setup.disk.largest().likely(),
            moves_on: setup.worsts.moves_on(),
        };
        Streams {
            ledger: Ledger::new(setup.disk.clone()).under(setup.exhausted),
            best_effort: vec![0; setup.worsts.classes().len()],
            worsts: setup.worsts.clone(),
            rules,
            subset: Subset::new(rules),
            open: Vec::new(),
            queues: Queues::new(),
            candidates: Vec::new(),
            sizes: SubsetSizes::default(),
            overdue: Vec::new(),
            ended: false,
            bound: Vec::new(),
        }
    }

    /// Returns the drive's parameters.
    pub(crate) fn disk(&self) -> &Disk {
        self.ledger.disk()
    }

    /// Returns the streams, in the order in which they were opened.
    pub(crate) fn standings(&self) -> impl Iterator<Item = StreamStatus> + '_ {
        self.open.iter().map(|o| StreamStatus {
            owner: o.owner,
            stream: o.stream,
            reservation: o.reservation,
            closing: o.closing,
            unfinished: o.unfinished,
            tally: self.subset.tally(o.owner).expect("it is at work"),
        })
    }

    /// Returns the stream of a request.
    fn stream_of(&self, request: &Request) -> Option<usize> {
        let mine = |o: &Open| o.owner == request.owner && !o.closing;
        if request.count == 0 { None } else { self.open.iter().position(mine) }
    }

    /// Returns the number of places for all requests that streams may submit in this period and the
    /// next, and how many of them are taken.
    pub(crate) fn room(&self) -> (usize, usize) {
        let places = self.open.iter().map(|o| (o.places(), o.places().min(o.unfinished)));
        let (most, taken) = places.fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
        (most as usize, taken as usize)
    }

    /// Returns whether a request belongs to a stream with a free place.
    pub(crate) fn has_room(&self, request: &Request) -> bool {
        self.stream_of(request).is_some_and(|at| self.open[at].unfinished < self.open[at].places())
    }

    /// Returns the maximum number of sectors of this request.
    pub(crate) fn most_sectors(&self, request: &Request) -> u32 {
        self.stream_of(request).map_or(self.worsts.most_sectors(), |at| self.open[at].stream.sectors)
    }

    /// Adds a request; returns its queue if it belongs to a stream.
    pub(crate) fn submitted(&mut self, request: &Request, now: Time) -> Option<u32> {
        let at = self.stream_of(request)?;
        let open = &mut self.open[at];
        let member = self.subset.submit(open.owner, now);
        open.unfinished += 1;
        Some(self.queues.add(member, Time((member.period + 1) * open.stream.period.0)))
    }

    /// Returns whether a queue belongs to a stream.
    #[inline]
    pub(crate) fn is_stream(queue: u32) -> bool {
        Queues::is_one(queue)
    }

    /// Returns whether the stream of a queue has a reservation that includes blocking requests.
    pub(crate) fn reserves_for_older(&self, queue: u32) -> bool {
        let owner = self.queues.get(queue).member.stream;
        self.open.iter().any(|o| o.owner == owner && o.reservation.is_some() && o.stream.blocked_by > 0)
    }

    /// Returns whether a stream is served as an optional one.
    fn is_optional(&self, owner: u32) -> bool {
        self.open.iter().any(|o| o.owner == owner && o.reservation.is_some())
    }

    /// Marks a newly submitted request as blocked by an older one.
    pub(crate) fn blocked(&mut self, slot: u32, queue: u32) {
        if Streams::is_stream(queue) {
            let member = self.queues.get(queue).member;
            self.subset.blocked(member);
            self.bound.push((slot, queue));
        }
    }

    /// Returns the blocked requests of streams, by slot and queue: the blocking requests inherit
    /// their deadlines. Expired requests are excluded.
    pub(crate) fn bound(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        self.bound.iter().copied().filter(|&(_, queue)| !self.queues.get(queue).given_up)
    }

    /// Returns whether a request of `queue` that blocks one of the queue `waits` may be dispatched
    /// next, ahead of all others.
    pub(crate) fn inherits(&mut self, waits: u32, (queue, request): (u32, &Request), now: Time) -> bool {
        let what = match Streams::is_stream(queue) {
            true => Sent::Stream(self.queues.get(queue).member),
            false => Sent::BestEffort,
        };
        self.subset.inherits(self.queues.get(waits).member, what, self.worsts.get(request.count), now)
    }

    /// Marks a request as unblocked, since its submission if `at_once`. Returns false if it
    /// expired.
    pub(crate) fn ready(&mut self, slot: u32, queue: u32, request: &Request, at_once: bool, now: Time) -> bool {
        if !at_once {
            self.bound.retain(|bound| bound.0 != slot);
        }
        if !Streams::is_stream(queue) {
            self.best_effort[class_of(request.count)] += 1;
            return true;
        }
        let queue = *self.queues.get(queue);
        match (queue.given_up, at_once) {
            (true, _) => {}
            (false, true) => self.subset.ready(queue.member),
            (false, false) => self.subset.unblocked(queue.member, now),
        }
        !queue.given_up
    }

    /// Returns queues whose periods are over and whose requests expire; each waiting request must
    /// then be reported to [`Streams::expire`].
    pub(crate) fn over(&mut self, now: Time) -> Vec<u32> {
        self.subset.tick(now);
        let (skips, open) = (self.rules.exhausted == Exhausted::Skip, &self.open);
        let of = |member: Member| open.iter().find(|o| o.owner == member.stream).expect("it has requests");
        self.queues.over(now, |member| skips && !of(member).stream.is_mandatory())
    }

    /// Records the expiry of a request of a queue whose period is over; `ready`: it was reported as
    /// ready before its expiry.
    pub(crate) fn expire(&mut self, queue: u32, ready: bool) {
        self.subset.give_up(self.queues.get(queue).member, ready);
        self.gone(queue);
    }

    /// Returns the eligible queues of streams, and whether best effort is eligible.
    pub(crate) fn decide(&mut self, now: Time) -> (&[u32], bool) {
        let waits = self.best_effort.iter().rposition(|&n| n > 0);
        let worst = waits.map_or(Dur::ZERO, |class| self.worsts.classes()[class]);
        let active = self.subset.decide_for(worst, now);
        let best_effort = active.best_effort && waits.is_some();
        self.candidates.clear();
        for member in &active.members {
            self.candidates.push(self.queues.of(*member).expect("an eligible stream has a waiting request"));
        }
        (&self.candidates, best_effort)
    }

    /// Removes the queues of optional streams from the eligible ones, if a mandatory one is among
    /// them.
    pub(crate) fn only_mandatory(&self, going: &mut Vec<u32>) {
        let optional = |number: u32| self.is_optional(self.queues.get(number).member.stream);
        if going.iter().any(|&number| !optional(number)) {
            going.retain(|&number| !optional(number));
        }
    }

    /// Counts the eligible requests of the last decision: `waiting` of each queue.
    pub(crate) fn count(&mut self, best_effort: bool, waiting: impl Fn(u32) -> usize) {
        let mut sizes = SubsetSizes::default();
        for &number in &self.candidates {
            let optional = self.is_optional(self.queues.get(number).member.stream);
            let of = if optional { &mut sizes.optional } else { &mut sizes.mandatory };
            *of += waiting(number) as u32;
        }
        sizes.best_effort = if best_effort { self.best_effort.iter().sum() } else { 0 };
        self.sizes = sizes;
    }

    /// Returns the number of eligible requests of the last decision.
    pub(crate) fn sizes(&self) -> SubsetSizes {
        self.sizes
    }

    /// Records the choice of an eligible request; `slot` identifies it until its command is
    /// dispatched.
    pub(crate) fn chosen(&mut self, slot: u32, queue: u32, request: &Request) {
        if Streams::is_stream(queue) {
            self.subset.chosen(slot, Sent::Stream(self.queues.get(queue).member), Dur::ZERO);
        } else {
            self.best_effort[class_of(request.count)] -= 1;
            self.subset.chosen(slot, Sent::BestEffort, self.worsts.get(request.count));
        }
    }

    /// Records the dispatch of a chosen request's command, with `front` sectors of other work at
    /// its front.
    pub(crate) fn sends(&mut self, slot: u32, command: &Command, front: u32, now: Time) {
        // Without a front it is the worst case of the request itself.
        let worst = if front > 0 { self.worsts.get(command.count) } else { Dur::ZERO };
        self.subset.sends(slot, command.id, worst, now);
    }

    /// Records that a chosen best-effort request is not dispatched.
    pub(crate) fn withdrawn(&mut self, slot: u32) {
        self.subset.withdrawn(slot);
    }

    /// Records the dispatch of background work in a gap or idle time.
    pub(crate) fn fills(&mut self, command: &Command, now: Time) {
        self.subset.fills(command.id, self.worsts.get(command.count), now);
    }

    /// Returns whether there is time, at the worst case, for `sectors` sectors of background work
    /// at the front of a command of `others` sectors that is counted already, or, with none, as a
    /// separate command. In a gap (`in_gap`) it takes no time unless a prediction is wrong. Then
    /// mandatory streams must have slack for its worst case; optional ones, whose guarantee is a
    /// mean, lose what wrong predictions cost on average. In idle time the rules for best effort
    /// apply.
    pub(crate) fn has_time_for(&mut self, sectors: u32, others: u32, in_gap: bool, now: Time) -> bool {
        // With others behind it the time is that of the whole command: if the front fails, the
        // others are retried.
        let worst = self.worsts.get(sectors.saturating_add(others));
        match in_gap {
            true => worst <= self.subset.spare(now).mandatory,
            false => self.subset.has_room_for(worst, now),
        }
    }

    /// Returns whether there is time for dispatching nothing until `until`.
    pub(crate) fn can_wait(&mut self, until: Time, now: Time) -> bool {
        let spare = self.subset.spare(now).all;
        spare > Dur::ZERO && until.saturating_since(now) <= spare
    }

    /// Records a completion; returns the service time if it was a stream's.
    pub(crate) fn completed(&mut self, command: &Command, now: Time) -> Option<Dur> {
        let took = self.subset.completed(command.id, now);
        self.note(command);
        took
    }

    /// Records the completion of a command whose request was not tried: it is retried, and
    /// identified by its slot until then.
    pub(crate) fn again(&mut self, command: &Command, slot: u32, now: Time) {
        self.subset.again(command.id, slot, now);
        self.note(command);
    }

    fn note(&mut self, command: &Command) {
        for event in self.subset.events() {
            if let Event::Overdue { took, worst, .. } = event {
                self.overdue.push(Overdue { command: *command, took, worst });
            }
        }
    }

    /// Returns the next report that w is too small.
    pub(crate) fn next_overdue(&mut self) -> Option<Overdue> {
        if self.overdue.is_empty() { None } else { Some(self.overdue.remove(0)) }
    }

    /// Removes a finished or expired request of a stream.
    pub(crate) fn gone(&mut self, queue: u32) {
        let owner = self.queues.finished(queue).stream;
        let open = self.open.iter_mut().find(|o| o.owner == owner).expect("it has requests");
        open.unfinished -= 1;
        if open.closing && open.unfinished == 0 {
            self.end_closed();
        }
    }

    /// Returns when the period of a queue's requests ends; `None`: it belongs to no stream.
    pub(crate) fn due(&self, queue: u32) -> Option<Time> {
        Streams::is_stream(queue).then(|| self.queues.get(queue).due)
    }

    /// Returns when the next decision is due without other events: at the end of a period.
    pub(crate) fn next_wakeup(&self) -> Option<Time> {
        self.subset.next_wakeup()
    }
}
