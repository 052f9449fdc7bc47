//! Streams in the core: the stream that a request belongs to, its queue, the queues that are
//! eligible, and what there is time for beside them.
//!
//! [`super::subset`] counts requests; the pool has them. Between the two, the requests of one
//! stream that belong to one period have a queue of their own, so that a decision names queues and
//! ORDER finds its way in each of them. What belongs to no stream waits in the queues of the policy
//! below, or in one of its own where there is none.

mod opening;
mod queues;
mod terms;

use headtime_disk::command::Command;
use headtime_disk::model::Model;
use headtime_disk::profile::Profile;
use headtime_disk::time::{Dur, Time};

use super::admission::Disk;
use super::ledger::Ledger;
use super::stream::Stream;
use super::subset::{Event, Exhausted, Member, Rules, Sent, Subset};
use super::worst::WorstError;
use super::worsts::{Worsts, class_of};
use crate::request::Request;
use queues::Queues;

pub use queues::STREAM_QUEUES;
pub use terms::{Changes, NotOpened, Opened, Overdue, Sizes, Standing};

/// The queue of what is no stream's, where no policy has the others apart.
pub const BEST_EFFORT: u32 = STREAM_QUEUES - 1;

/// What streams are promised from: what is known of the drive, and what is done where a promise
/// says nothing.
#[derive(Clone, Debug)]
pub struct Setup {
    /// w and X by size of request, and how many commands the drive is given at a time.
    pub disk: Disk,
    /// w of everything else that goes to the drive. A request that is larger than
    /// [`Worsts::most_sectors`] is refused.
    pub worsts: Worsts,
    /// What becomes of an optional stream's requests when its reservation is used up.
    pub exhausted: Exhausted,
    /// Whether a stream has more than its reservation where its requests take longer than X says
    /// ([`Rules::compensates`]); without it, qualities hold as far as X does.
    pub compensates: bool,
}

/// Bytes of the largest request that is no stream's. It is begun only where all promises can wait
/// for it at its worst, and a longer one would hardly ever be.
pub const LARGEST_BYTES: u32 = 1 << 20;

impl Setup {
    /// Promises made from `disk`, which is that of `profile`, from which `model` was compiled.
    ///
    /// # Errors
    /// The drive has no worst case.
    pub fn of(disk: Disk, profile: &Profile, model: &Model, exhausted: Exhausted) -> Result<Setup, WorstError> {
        let worsts = Worsts::of(profile, model, LARGEST_BYTES / model.sector_bytes)?;
        let disk = disk.with_others(worsts.get(worsts.most_sectors()));
        Ok(Setup { disk, worsts, exhausted, compensates: true })
    }
}

#[derive(Clone, Copy, Debug)]
struct Open {
    owner: u32,
    stream: Stream,
    reservation: Option<Dur>,
    closing: bool,
    /// Requests that are not finished.
    unfinished: u32,
}

impl Open {
    /// What it may ask for in this period and the next.
    fn places(&self) -> u32 {
        2 * self.stream.requests
    }
}

/// The streams of a core.
#[derive(Debug)]
pub struct Streams {
    /// The streams as admission has them; brought up to date when one more is asked for.
    ledger: Ledger,
    worsts: Worsts,
    rules: Rules,
    subset: Subset,
    open: Vec<Open>,
    queues: Queues,
    /// Best-effort requests that may go, by class of size.
    best_effort: Vec<u32>,
    /// Who may go by the last decision.
    candidates: Vec<u32>,
    sizes: Sizes,
    overdue: Vec<Overdue>,
    /// A stream has ended since what the others have was found.
    ended: bool,
    /// Requests of streams, by their slots and queues, that wait for older ones.
    bound: Vec<(u32, u32)>,
}

impl Streams {
    /// No stream is at work.
    pub fn new(setup: &Setup) -> Streams {
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
            sizes: Sizes::default(),
            overdue: Vec::new(),
            ended: false,
            bound: Vec::new(),
        }
    }

    /// What is known of the drive.
    pub fn disk(&self) -> &Disk {
        self.ledger.disk()
    }

    /// The streams, in the order in which they came.
    pub fn standings(&self) -> impl Iterator<Item = Standing> + '_ {
        self.open.iter().map(|o| Standing {
            owner: o.owner,
            stream: o.stream,
            reservation: o.reservation,
            closing: o.closing,
            unfinished: o.unfinished,
            tally: self.subset.tally(o.owner).expect("it is at work"),
        })
    }

    /// The stream that a request belongs to.
    fn stream_of(&self, request: &Request) -> Option<usize> {
        let mine = |o: &Open| o.owner == request.owner && !o.closing;
        if request.count == 0 { None } else { self.open.iter().position(mine) }
    }

    /// Whether a request belongs to a stream.
    pub fn is_of_stream(&self, request: &Request) -> bool {
        self.stream_of(request).is_some()
    }

    /// Places for all that streams may ask for in this period and the next, and how many of them
    /// are taken.
    pub fn room(&self) -> (usize, usize) {
        let places = self.open.iter().map(|o| (o.places(), o.places().min(o.unfinished)));
        let (most, taken) = places.fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
        (most as usize, taken as usize)
    }

    /// Whether a request is a stream's that has not asked for as much yet.
    pub fn has_room(&self, request: &Request) -> bool {
        self.stream_of(request).is_some_and(|at| self.open[at].unfinished < self.open[at].places())
    }

    /// Sectors that this request may have at most.
    pub fn most_sectors(&self, request: &Request) -> u32 {
        self.stream_of(request).map_or(self.worsts.most_sectors(), |at| self.open[at].stream.sectors)
    }

    /// A request has come: its queue, if it is a stream's.
    pub fn submitted(&mut self, request: &Request, now: Time) -> Option<u32> {
        let at = self.stream_of(request)?;
        let open = &mut self.open[at];
        let member = self.subset.submit(open.owner, now);
        open.unfinished += 1;
        Some(self.queues.add(member, Time((member.period + 1) * open.stream.period.0)))
    }

    /// Whether a queue is a stream's.
    #[inline]
    pub fn is_stream(queue: u32) -> bool {
        Queues::is_one(queue)
    }

    /// Whether it is the queue of a stream whose reservation has room for what its requests wait
    /// for.
    pub fn reserves_for_older(&self, queue: u32) -> bool {
        let owner = self.queues.get(queue).member.stream;
        self.open.iter().any(|o| o.owner == owner && o.reservation.is_some() && o.stream.blocked_by > 0)
    }

    /// Whether a stream is optional.
    fn is_optional(&self, owner: u32) -> bool {
        self.open.iter().any(|o| o.owner == owner && o.reservation.is_some())
    }

    /// A request that has just been submitted waits for an older one.
    pub fn blocked(&mut self, slot: u32, queue: u32) {
        if Streams::is_stream(queue) {
            let member = self.queues.get(queue).member;
            self.subset.blocked(member);
            self.bound.push((slot, queue));
        }
    }

    /// Requests of streams, by their slots and queues, that wait for older ones: these inherit
    /// their deadlines. Nothing is done for those that are given up.
    pub fn bound(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        self.bound.iter().copied().filter(|&(_, queue)| !self.queues.get(queue).given_up)
    }

    /// Whether a request of `queue` for which one of the queue `waits` waits may go next, and
    /// nothing else.
    pub fn inherits(&mut self, waits: u32, (queue, request): (u32, &Request), now: Time) -> bool {
        let what = match Streams::is_stream(queue) {
            true => Sent::Stream(self.queues.get(queue).member),
            false => Sent::BestEffort,
        };
        self.subset.inherits(self.queues.get(waits).member, what, self.worsts.get(request.count), now)
    }

    /// A request waits for no older one: none when it was submitted (`at_once`), or none any more.
    /// Whether it may be sent some time; if not, it is to be given up.
    pub fn ready(&mut self, slot: u32, queue: u32, request: &Request, at_once: bool, now: Time) -> bool {
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

    /// Queues whose periods are over and whose requests are given up: of what waits in them each is
    /// told of with [`Streams::gives_up`].
    pub fn over(&mut self, now: Time) -> Vec<u32> {
        self.subset.tick(now);
        let (skips, open) = (self.rules.exhausted == Exhausted::Skip, &self.open);
        let of = |member: Member| open.iter().find(|o| o.owner == member.stream).expect("it has requests");
        self.queues.over(now, |member| skips && !of(member).stream.is_mandatory())
    }

    /// A request of a queue whose period is over is given up; `ready`: it was told to be ready when
    /// it still was to be sent.
    pub fn gives_up(&mut self, queue: u32, ready: bool) {
        self.subset.give_up(self.queues.get(queue).member, ready);
        self.gone(queue);
    }

    /// Who may go: queues of streams, and whether best effort is among them.
    pub fn decide(&mut self, now: Time) -> (&[u32], bool) {
        let waits = self.best_effort.iter().rposition(|&n| n > 0);
        let worst = waits.map_or(Dur::ZERO, |class| self.worsts.classes()[class]);
        let active = self.subset.decide_for(worst, now);
        let best_effort = active.best_effort && waits.is_some();
        self.candidates.clear();
        for member in &active.members {
            self.candidates.push(self.queues.of(*member).expect("who may go has a request that waits"));
        }
        (&self.candidates, best_effort)
    }

    /// Leaves only queues of mandatory streams of those that may go, if there is one.
    pub fn only_mandatory(&self, going: &mut Vec<u32>) {
        let optional = |number: u32| self.is_optional(self.queues.get(number).member.stream);
        if going.iter().any(|&number| !optional(number)) {
            going.retain(|&number| !optional(number));
        }
    }

    /// How many requests may go by the last decision: `waiting` of each queue.
    pub fn count(&mut self, best_effort: bool, waiting: impl Fn(u32) -> usize) {
        let mut sizes = Sizes::default();
        for &number in &self.candidates {
            let optional = self.is_optional(self.queues.get(number).member.stream);
            let of = if optional { &mut sizes.optional } else { &mut sizes.mandatory };
            *of += waiting(number) as u32;
        }
        sizes.best_effort = if best_effort { self.best_effort.iter().sum() } else { 0 };
        self.sizes = sizes;
    }

    /// How many requests might go by the last decision.
    pub fn sizes(&self) -> Sizes {
        self.sizes
    }

    /// A request of those that may go was chosen; `slot` is its name until its command goes.
    pub fn chosen(&mut self, slot: u32, queue: u32, request: &Request) {
        if Streams::is_stream(queue) {
            self.subset.chosen(slot, Sent::Stream(self.queues.get(queue).member), Dur::ZERO);
        } else {
            self.best_effort[class_of(request.count)] -= 1;
            self.subset.chosen(slot, Sent::BestEffort, self.worsts.get(request.count));
        }
    }

    /// The command of a request that was chosen goes to the drive, with so many sectors put at its
    /// front.
    pub fn sends(&mut self, slot: u32, command: &Command, front: u32, now: Time) {
        // Without a front it is what the request's own was said to be.
        let worst = if front > 0 { self.worsts.get(command.count) } else { Dur::ZERO };
        self.subset.sends(slot, command.id, worst, now);
    }

    /// A best-effort request that was chosen does not go.
    pub fn withdrawn(&mut self, slot: u32) {
        self.subset.withdrawn(slot);
    }

    /// Something that fills a gap, or idle time, goes to the drive.
    pub fn fills(&mut self, command: &Command, now: Time) {
        self.subset.fills(command.id, self.worsts.get(command.count), now);
    }

    /// Whether there is time, at the worst, for `sectors` sectors of background work at the front
    /// of a command of `others` that is counted already, or, with none, as a command of their own.
    /// In a gap (`in_gap`) it takes no time unless a prediction is wrong. Then mandatory streams
    /// must have it to spare at its worst; optional ones, which are promised a mean, lose what
    /// wrong predictions cost in the mean. In idle time it goes as best effort does.
    pub fn has_time_for(&mut self, sectors: u32, others: u32, in_gap: bool, now: Time) -> bool {
        // With others behind it that is all of both: where the front fails the others go once more.
        let worst = self.worsts.get(sectors.saturating_add(others));
        match in_gap {
            true => worst <= self.subset.spare(now).mandatory,
            false => self.subset.has_room_for(worst, now),
        }
    }

    /// Whether there is time for sending nothing until `until`.
    pub fn can_wait(&mut self, until: Time, now: Time) -> bool {
        let spare = self.subset.spare(now).all;
        spare > Dur::ZERO && until.saturating_since(now) <= spare
    }

    /// A command came back: how long the drive was busy with it, if it was a stream's.
    pub fn completed(&mut self, command: &Command, now: Time) -> Option<Dur> {
        let took = self.subset.completed(command.id, now);
        self.note(command);
        took
    }

    /// A command came back of which the request's own part was not tried: it goes again, and is
    /// known by its slot until then.
    pub fn again(&mut self, command: &Command, slot: u32, now: Time) {
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

    /// What has shown since the last time that w is wrong.
    pub fn next_overdue(&mut self) -> Option<Overdue> {
        if self.overdue.is_empty() { None } else { Some(self.overdue.remove(0)) }
    }

    /// A request of a stream is finished, or given up.
    pub fn gone(&mut self, queue: u32) {
        let owner = self.queues.finished(queue).stream;
        let open = self.open.iter_mut().find(|o| o.owner == owner).expect("it has requests");
        open.unfinished -= 1;
        if open.closing && open.unfinished == 0 {
            self.end_closed();
        }
    }

    /// When the period of a request in this queue is over; `None`: it is no stream's.
    pub fn due(&self, queue: u32) -> Option<Time> {
        Streams::is_stream(queue).then(|| self.queues.get(queue).due)
    }

    /// When it is to be asked again, if nothing happens before: a period ends.
    pub fn next_wakeup(&self) -> Option<Time> {
        self.subset.next_wakeup()
    }
}
