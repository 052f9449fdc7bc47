//! Work in idle time (Thereska 2003 section 4.6).
//!
//! Short idle time is spent on the track under the head: on a drive that reads ahead, on what its
//! buffer then holds, so that nothing moves; on another, on the whole track. Long idle time is
//! spent on what gaps would not bring ([`super::reach`]). One command is sent at a time, cut as in
//! [`super::offer`]: a request that arrives during it waits for its completion.

use headtime_disk::{Dur, Head, Kind, Model, Time};

use super::banded::Banded;
use super::conservatism::Margins;
use super::gap::Leg;
use super::idle::{Idle, IdleThresholds, State};
use super::offer::{IdleLook, Offer};
use super::reach::{Gone, IdlePolicy, Reach, WantedCells};
use super::regions::Regions;
use crate::tasks::wanted::Wanted;
use crate::tasks::{SessionId, TaskRange, Wants, Who};

/// Configuration of idle work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IdleConfig {
    /// When the disk counts as idle.
    pub thresholds: IdleThresholds,
    /// Policy for long idle time.
    pub policy: IdlePolicy,
    /// ADMIT's idling windows are not used (for comparison).
    pub leave_windows: bool,
    /// Only the thresholds decide when the disk is idle, as published: a request that arrives
    /// during a command waits for it, however probable its arrival was (`periods`).
    pub thresholds_only: bool,
}

/// Sectors of the longest range whose tracks are examined one by one. When all ranges were,
/// registering a task of a whole 20 TB drive took 227 ms. The limit is not tuned: 8 MiB of 512-byte
/// sectors lie on a few dozen tracks.
const SMALL: u64 = 1 << 14;
/// Commands before another session is drawn: on drives that read ahead, what sixteen tracks take.
/// With a draw for each command two sessions on a Cheetah 36ES, in neighbouring stripes, get 12.7
/// MB/s together instead of 48.7.
const STREAK: u32 = 128;
/// Cells tried if the chosen one has nothing that can be fetched now. Not tuned: it bounds the time
/// of one call, and the next call resumes where this one ended.
const TRIES: usize = 16;

/// Scheduler of idle work.
#[derive(Clone, Debug)]
pub(crate) struct Idling {
    policy: IdlePolicy,
    leave_windows: bool,
    idle: Idle,
    reach: Reach,
    banded: Banded,
    wanted: Wanted,
    /// Where to resume the search when no tried cell had anything to offer.
    look_from: Option<u32>,
    /// Whether the drive reads ahead after a read.
    reads_on: bool,
    /// Sectors that one segment of the buffer holds.
    segment: u64,
    /// The drive keeps its buffered sectors of a track when a part of them is written.
    updates: bool,
    /// One past the sector read last; the drive reads ahead from there.
    read_to: Option<u64>,
    /// The session being served, if there are several.
    whose: Option<SessionId>,
    streak: u32,
    /// When to search again if nothing happens before: the drive is reading ahead, its write cache
    /// may hold data, or the command found is to be sent later.
    search_again_at: Time,
    /// Sectors that the drive's buffer will hold once its read-ahead reaches the end of the track,
    /// and that idle work has not requested yet: first LBN, one past the last.
    held: Option<(u64, u64)>,
}

/// Duration of a command on an idle drive.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Takes {
    /// From now to its completion.
    pub all: Dur,
    /// Of that, the rotational latency before its first sector, without the margin of the move: the
    /// command may be sent later by this much.
    pub latency: Dur,
}

impl Takes {
    /// A duration without rotational latency.
    pub(crate) fn of(all: Dur) -> Takes {
        Takes { all, latency: Dur::ZERO }
    }
}

/// The session to be served, if there are several.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// Any: there is only one, or it does not matter.
    Anyone,
    /// This one won the lottery: the next commands go where it wants something.
    Of(SessionId),
    /// This one has received nothing for too long: the current run is interrupted for it.
    Overdue(SessionId),
}

impl Turn {
    fn who(self) -> Who {
        match self {
            Turn::Anyone => Who::Anyone,
            Turn::Of(session) | Turn::Overdue(session) => Who::Session(session),
        }
    }
}

/// The regions as an index of cells for [`Reach`].
struct Numbered<'a>(&'a Regions, Who);

impl WantedCells for Numbered<'_> {
    fn count(&self) -> u32 {
        self.0.cells().count()
    }
    fn next_up(&self, from: u32) -> Option<u32> {
        self.0.next_up(self.1, from, self.0.all())
    }
    fn next_down(&self, from: u32) -> Option<u32> {
        self.0.next_down(self.1, from, self.0.all())
    }
}

impl Idling {
    /// Creates the scheduler; idle from time zero.
    pub(crate) fn new(config: &IdleConfig, model: &Model, regions: &Regions) -> Idling {
        let reads_on = model.reads_ahead();
        let turn = model.mechanics.rotation.period();
        let thresholds = if reads_on { config.thresholds.behind_prefetch(turn) } else { config.thresholds };
        let idle = Idle::new(thresholds, Time::ZERO);
        let idle = if config.thresholds_only { idle.thresholds_only() } else { idle };
        let reach = Reach::new(regions.cells().count(), &model.mechanics, model.geometry.cylinders());
        Idling {
            policy: config.policy,
            leave_windows: config.leave_windows,
            idle,
            banded: Banded::new(regions.cells(), &model.geometry, &reach),
            reach,
            wanted: Wanted::new(),
            look_from: None,
            reads_on,
            segment: u64::from(model.cache.segment_sectors),
            updates: model.cache.updates_segments(),
            read_to: None,
            whose: None,
            streak: 0,
            search_again_at: Time::ZERO,
            held: None,
        }
    }

    /// Returns the detector, which must be notified of arrivals and completions.
    pub(crate) fn detector(&mut self) -> &mut Idle {
        &mut self.idle
    }

    /// Returns whether ADMIT's idling windows are left unused.
    pub(crate) fn leaves_windows(&self) -> bool {
        self.leave_windows
    }

    /// Returns whether the drive reads ahead after a read.
    #[inline]
    pub(crate) fn reads_on(&self) -> bool {
        self.reads_on
    }

    /// Returns the next time at which it must be called.
    pub(crate) fn next_wakeup(&self, now: Time) -> Option<Time> {
        let search_again_at = Some(self.search_again_at).filter(|t| *t > now);
        [self.idle.next_wakeup(now), search_again_at].into_iter().flatten().min()
    }

    /// Sets when to search again if nothing happens before.
    pub(crate) fn waits(&mut self, until: Time) {
        self.search_again_at = until;
    }

    /// Adds a wanted range.
    pub(crate) fn registered(&mut self, model: &Model, regions: &Regions, range: TaskRange) {
        self.by_band(model, regions, range, Reach::wanted_in);
    }

    /// Removes a range that is no longer wanted.
    pub(crate) fn gone(&mut self, model: &Model, regions: &Regions, range: TaskRange, how: Gone) {
        let reach = &mut self.reach;
        match how {
            Gone::Otherwise => self.by_band(model, regions, range, Reach::dropped_in),
            // The rate at which sectors are brought counts too, so tracks are visited one by one.
            Gone::Free | Gone::Idle => {
                by_track(model, regions, range, |cell, sectors| reach.gone(cell, sectors, how));
            }
        }
    }

    fn by_band(&mut self, model: &Model, regions: &Regions, range: TaskRange, tell: fn(&mut Reach, usize, u64)) {
        let (cells, reach) = (regions.cells(), &mut self.reach);
        match range.count <= SMALL {
            true => by_track(model, regions, range, |cell, sectors| tell(reach, reach.band(cell), sectors)),
            false => self.banded.each(cells, &model.geometry, range, |band, sectors| tell(reach, band, sectors)),
        }
    }

    /// Updates the read-ahead position and the buffered sectors after a command completes, of idle
    /// work or not.
    pub(crate) fn completed(&mut self, model: &Model, kind: Kind, range: TaskRange, done: bool, idle: bool) {
        let to_track_end = |first: u64, within: u64| {
            let track = model.geometry.track_of(within)?;
            let until = track.first_lbn + u64::from(track.lbns);
            Some((first.max(until.saturating_sub(self.segment)), until))
        };
        (self.read_to, self.held) = match (kind, done, self.held) {
            (Kind::Flush, ..) => return,
            (Kind::Read, true, Some((first, until))) if first <= range.lbn && range.lbn <= until => {
                // Sectors requested in idle time are done with, even when they are wanted again at
                // once.
                let first = if idle { range.end() } else { first };
                // At the end of the track the drive reads on.
                let held = if range.end() < until { Some((first, until)) } else { to_track_end(first, range.end()) };
                (Some(range.end()), held)
            }
            (Kind::Read, true, _) => (Some(range.end()), to_track_end(range.lbn, range.end() - 1)),
            // A foreground write came before the drive had read ahead; one in idle time comes after
            // that.
            (Kind::Write, true, Some((first, until))) if idle => {
                (None, (self.updates || range.end() <= first || until <= range.lbn).then_some((first, until)))
            }
            _ => (None, None),
        };
    }

    /// Returns the command to send now.
    pub(crate) fn leg<W: Wants>(
        &mut self,
        look: &IdleLook<W>,
        regions: &Regions,
        turn: Turn,
        now: Time,
    ) -> Option<Leg> {
        let state = self.idle.may_send(now)?;
        let here = (look.head.cylinder, look.head.surface);
        if state == State::Short {
            let leg = match self.reads_on {
                true => self.read_ahead(look).or_else(|| self.write_here(look, here)),
                false => look.on_track(&mut self.wanted, here).map(|o| o.leg),
            };
            if leg.is_none() {
                self.idle.nothing_on_track();
            }
            if leg.is_some() || self.idle.may_send(now) != Some(State::Long) {
                return leg;
            }
        }
        let (turn, breaks) = self.keeps(turn);
        self.streak += 1;
        let continues = if breaks { None } else { self.go_on(look).or_else(|| self.stay(look, here)) };
        continues.or_else(|| {
            let of_turn = self.anywhere(look, regions, here, (turn, now));
            if of_turn.is_some() || turn == Turn::Anyone {
                return of_turn;
            }
            // The session wants nothing that can be fetched now.
            self.whose = None;
            self.anywhere(look, regions, here, (Turn::Anyone, now))
        })
    }

    /// Returns the duration of this leg if it needs the media. `sure`: the head's position is
    /// known; if not, as after a cached write, the worst is assumed: the move, and a revolution.
    pub(crate) fn takes(
        &self,
        model: &Model,
        margins: &Margins,
        (head, sure): (&Head, bool),
        leg: &Leg,
        now: Time,
    ) -> Takes {
        let Some(place) = model.place(leg.lbn, leg.count, leg.kind) else {
            return Takes::of(Dur::ZERO);
        };
        let access = model.access(head, &place, leg.kind);
        if !sure {
            let turn = model.mechanics.rotation.period();
            return Takes::of(head.at.saturating_since(now) + access.seek + turn + place.transfer);
        }
        let margin = margins.of_move((head.cylinder, head.surface), (place.cylinder, place.surface));
        let latency = access.latency.saturating_sub(margin);
        Takes { all: access.end.at.saturating_since(now), latency }
    }

    /// Returns whether a request will rarely arrive during a command of this length. If not, sets
    /// when to search again: shortly before the command's sectors pass, if the remaining command is
    /// short enough; otherwise when the command would have completed. `early`: how long before the
    /// sectors pass the search has to begin.
    pub(crate) fn rarely_delays(&mut self, takes: Takes, early: Dur, now: Time) -> bool {
        let rarely = self.idle.rarely_ends_within(takes.all, now);
        if !rarely {
            let wait = takes.latency.saturating_sub(early);
            let helps = self.idle.rarely_ends_within(takes.all - wait, now + wait);
            self.search_again_at = now + if helps { wait } else { takes.all };
        }
        rarely
    }

    /// Returns the session to serve, given the lottery's draw, and whether idle work has to move
    /// elsewhere for it. A session is served for [`STREAK`] commands.
    fn keeps(&mut self, drawn: Turn) -> (Turn, bool) {
        match (drawn, self.whose) {
            (Turn::Of(_), Some(session)) if self.streak < STREAK => (Turn::Of(session), false),
            (Turn::Of(session), before) => {
                (self.whose, self.streak) = (Some(session), 0);
                (drawn, before != Some(session))
            }
            (Turn::Overdue(_), _) => (drawn, true),
            (Turn::Anyone, _) => (drawn, false),
        }
    }

    /// Returns wanted sectors among those read ahead: they come from the drive's buffer, and
    /// nothing moves. At the end of the track the drive keeps the last sectors. In short idle time
    /// the last sector is not requested: the drive would then read ahead on the next track, and
    /// might evict what it holds of this one. In long idle time that is intended (`Idling::go_on`,
    /// `core/idle_time`).
    fn read_ahead<W: Wants>(&mut self, look: &IdleLook<W>) -> Option<Leg> {
        let (first, until) = self.held?;
        let track = look.model.geometry.track_of(until - 1)?;
        let (first, end) = (first.max(track.first_lbn), until - 1);
        let wanted = &mut self.wanted;
        look.following(wanted, first, end, end, track.spt)
    }

    /// Returns a wanted write on the track under the head.
    fn write_here<W: Wants>(&mut self, look: &IdleLook<W>, here: (u32, u16)) -> Option<Leg> {
        let writes: &[Kind] = if look.kinds.contains(&Kind::Write) { &[Kind::Write] } else { &[] };
        IdleLook { kinds: writes, ..*look }.on_track(&mut self.wanted, here).map(|o| o.leg)
    }

    /// Returns wanted sectors after those read last, while the drive reads ahead: from the unit
    /// that was cut off there.
    fn go_on<W: Wants>(&mut self, look: &IdleLook<W>) -> Option<Leg> {
        let end = self.read_to.filter(|_| self.reads_on)?;
        let track = look.model.geometry.track_of(end)?;
        let until = track.first_lbn + u64::from(track.lbns);
        // A unit that begins before the track's end may end behind it.
        let reach = (until + u64::from(look.widest)).min(look.model.geometry.capacity());
        let from = (end + 1).saturating_sub(u64::from(look.widest));
        let leg = look.following(&mut self.wanted, from, until, reach, track.spt)?;
        (leg.lbn <= end + u64::from(track.spt / 8)).then_some(leg)
    }

    /// After a write the drive reads nothing ahead: returns what passes next on the track under the
    /// head, before the arm moves elsewhere and delays an arriving request.
    fn stay<W: Wants>(&mut self, look: &IdleLook<W>, here: (u32, u16)) -> Option<Leg> {
        if !self.reads_on || self.read_to.is_some() {
            return None;
        }
        look.on_track(&mut self.wanted, here).map(|o| o.leg)
    }

    fn anywhere<W: Wants>(
        &mut self,
        look: &IdleLook<W>,
        regions: &Regions,
        here: (u32, u16),
        (turn, now): (Turn, Time),
    ) -> Option<Leg> {
        let cells = regions.cells();
        let numbered = Numbered(regions, turn.who());
        let mut cell = match self.look_from.take().and_then(|c| numbered.next_up(c)) {
            Some(cell) => cell,
            None => {
                let cell = self.policy.choose(&numbered, &self.reach, cells.of(here.0, here.1))?;
                // To a fragment it is further than to the nearest cell. Where a request rarely
                // arrives only during short commands, the way there would take the time of others.
                let goes_far = self.idle.rarely_ends_within(self.reach.within_band(), now);
                match self.policy == IdlePolicy::Smart && goes_far {
                    true => self.reach.least_left(&numbered, cell, |c| look.left_in(&mut self.wanted, cells, c)),
                    false => cell,
                }
            }
        };
        for _ in 0..TRIES {
            let wanted = &mut self.wanted;
            let offers = cells.tracks(cell).filter_map(|track| Some((track, look.on_track(wanted, track)?)));
            // A second read on the track read last makes some drives read all of it before anything
            // else.
            let best = offers.reduce(|a, b| {
                let stays = |o: &((u32, u16), Offer)| look.model.cache.same_track_prefetch_delays && o.0 == here;
                let better = (!stays(&b), b.1.is_better_than(&a.1)) > (!stays(&a), false);
                if better { b } else { a }
            });
            if let Some((_, offer)) = best {
                return Some(offer.leg);
            }
            cell = numbered.next_up(cell + 1).or_else(|| numbered.next_up(0))?;
        }
        self.look_from = Some(cell);
        None
    }
}

/// Calls `f` with each cell of a range, and the number of its sectors there.
fn by_track(model: &Model, regions: &Regions, range: TaskRange, mut f: impl FnMut(u32, u64)) {
    let mut lbn = range.lbn;
    while let Some(track) = model.geometry.track_of(lbn).filter(|_| lbn < range.end()) {
        let end = (track.first_lbn + u64::from(track.lbns)).min(range.end()).max(lbn + 1);
        f(regions.cells().of(track.cylinder, track.surface), end - lbn);
        lbn = end;
    }
}
