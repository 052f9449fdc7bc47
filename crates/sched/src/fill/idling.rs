//! What is fetched while the drive has nothing else to do (Thereska 2003 section 4.6).
//!
//! Short idle time is spent on the track where the head is: of a drive that reads ahead, on what
//! lies in its buffer then, so that nothing moves; of another, on all the track. Long idle time is
//! spent on what gaps would not bring ([`super::reach`]). One command at a time, cut as
//! [`super::offer`] says: a request that arrives meanwhile waits for the one that runs.

use headtime_disk::command::Kind;
use headtime_disk::mechanics::Head;
use headtime_disk::model::Model;
use headtime_disk::profile::Prefetch;
use headtime_disk::time::{Dur, Time};

use super::banded::Banded;
use super::conservatism::Margins;
use super::gap::Leg;
use super::idle::{Idle, State, Thresholds};
use super::offer::{Look, Offer};
use super::reach::{Cells, Gone, IdlePolicy, Reach};
use super::regions::Regions;
use crate::tasks::wanted::Wanted;
use crate::tasks::{Range, SessionId, Wants, Who};

/// How idle time is used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IdleConfig {
    /// When the disk counts as idle.
    pub thresholds: Thresholds,
    /// What long idle time is spent on.
    pub policy: IdlePolicy,
    /// What the disk waits for somebody is not used (for comparison).
    pub leave_windows: bool,
    /// Only the thresholds say when the disk is idle, as published: a request that arrives while a
    /// command runs waits for it, however probable that was ([`super::periods`]).
    pub thresholds_only: bool,
}

/// Sectors of the longest range of which the tracks are looked at one by one.
const SMALL: u64 = 1 << 14;
/// Commands before it is another session's turn: on drives that read on by themselves what sixteen
/// tracks take.
const STREAK: u32 = 128;
/// Cells looked at for one that still has something to offer, when what one has cannot be had now.
const TRIES: usize = 16;

/// The use of idle time.
#[derive(Clone, Debug)]
pub struct Idling {
    policy: IdlePolicy,
    leave_windows: bool,
    idle: Idle,
    reach: Reach,
    banded: Banded,
    wanted: Wanted,
    /// Where to go on looking when all the cells that were tried had nothing to offer.
    look_from: Option<u32>,
    /// Whether the drive reads ahead behind a read.
    reads_on: bool,
    /// How many sectors of it the buffer keeps.
    segment: u64,
    /// Whether a second read on one track makes the drive read the track to its end before anything
    /// else.
    delays: bool,
    /// It keeps what it holds of a track when a part of that is written.
    updates: bool,
    /// One past what was read last; the drive reads on there.
    read_to: Option<u64>,
    /// Whose turn it is, of several sessions, and for how many commands it has been.
    whose: Option<SessionId>,
    streak: u32,
    /// When to search again if nothing happens before: the drive is reading ahead, its write cache
    /// may hold data, or what was found is to be sent later.
    search_again_at: Time,
    /// Sectors that the drive's buffer will hold once its read-ahead reaches the end of the track,
    /// and that idle work has not requested yet: first LBN, one past the last.
    held: Option<(u64, u64)>,
}

/// How long a command for an idle drive takes.
#[derive(Clone, Copy, Debug)]
pub struct Takes {
    /// From now to its completion.
    pub all: Dur,
    /// Of that, the wait for its first sector to pass, without the margin of the move: by so much
    /// later it may be sent.
    pub latency: Dur,
}

impl Takes {
    /// Without a wait.
    pub fn of(all: Dur) -> Takes {
        Takes { all, latency: Dur::ZERO }
    }
}

/// Whose turn it is, of several sessions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// There is but one, or it does not matter.
    Anyone,
    /// This one won the lottery: the next commands go where it wants something.
    Of(SessionId),
    /// This one has got nothing for too long: what runs is broken off for it.
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

/// The regions as [`Reach`] sees them.
struct Numbered<'a>(&'a Regions, Who);

impl Cells for Numbered<'_> {
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
    /// Idle from time zero on.
    pub fn new(config: &IdleConfig, model: &Model, regions: &Regions) -> Idling {
        let reads_on = model.cache.segments > 0 && model.cache.prefetch != Prefetch::None;
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
            delays: model.cache.same_track_prefetch_delays,
            updates: model.cache.updates_segments(),
            read_to: None,
            whose: None,
            streak: 0,
            search_again_at: Time::ZERO,
            held: None,
        }
    }

    /// The detector, to be told of what comes and goes.
    pub fn detector(&mut self) -> &mut Idle {
        &mut self.idle
    }

    /// Whether the disk's waiting for somebody is left unused.
    pub fn leaves_windows(&self) -> bool {
        self.leave_windows
    }

    /// Whether the drive reads on behind a read.
    #[inline]
    pub fn reads_on(&self) -> bool {
        self.reads_on
    }

    /// When it wants to be told the time.
    pub fn next_wakeup(&self, now: Time) -> Option<Time> {
        let search_again_at = Some(self.search_again_at).filter(|t| *t > now);
        [self.idle.next_wakeup(now), search_again_at].into_iter().flatten().min()
    }

    /// Sets when to search again if nothing happens before.
    pub fn waits(&mut self, until: Time) {
        self.search_again_at = until;
    }

    /// A range is wanted.
    pub fn registered(&mut self, model: &Model, regions: &Regions, range: Range) {
        self.by_band(model, regions, range, Reach::wanted_in);
    }

    /// A range is wanted no more.
    pub fn gone(&mut self, model: &Model, regions: &Regions, range: Range, how: Gone) {
        let reach = &mut self.reach;
        match how {
            Gone::Otherwise => self.by_band(model, regions, range, Reach::dropped_in),
            // How often something is brought counts, too.
            Gone::Free | Gone::Idle => {
                by_track(model, regions, range, |cell, sectors| reach.gone(cell, sectors, how));
            }
        }
    }

    fn by_band(&mut self, model: &Model, regions: &Regions, range: Range, tell: fn(&mut Reach, usize, u64)) {
        let (cells, reach) = (regions.cells(), &mut self.reach);
        match range.count <= SMALL {
            true => by_track(model, regions, range, |cell, sectors| tell(reach, reach.band(cell), sectors)),
            false => self.banded.each(cells, &model.geometry, range, |band, sectors| tell(reach, band, sectors)),
        }
    }

    /// A command has completed, one of idle work or not: what the drive reads on behind it, and
    /// what it holds then.
    pub fn completed(&mut self, model: &Model, kind: Kind, range: Range, done: bool, idle: bool) {
        let to_track_end = |first: u64, within: u64| {
            let track = model.geometry.track_of(within)?;
            let until = track.first_lbn + u64::from(track.lbns);
            Some((first.max(until.saturating_sub(self.segment)), until))
        };
        (self.read_to, self.held) = match (kind, done, self.held) {
            (Kind::Flush, ..) => return,
            (Kind::Read, true, Some((first, until))) if first <= range.lbn && range.lbn <= until => {
                // What was asked for in idle time is done with, even when it is wanted again at
                // once.
                let first = if idle { range.end() } else { first };
                // At the end of the track it reads on.
                let held = if range.end() < until { Some((first, until)) } else { to_track_end(first, range.end()) };
                (Some(range.end()), held)
            }
            (Kind::Read, true, _) => (Some(range.end()), to_track_end(range.lbn, range.end() - 1)),
            // A foreground write came before the drive had read on; one in idle time comes behind
            // that.
            (Kind::Write, true, Some((first, until))) if idle => {
                (None, (self.updates || range.end() <= first || until <= range.lbn).then_some((first, until)))
            }
            _ => (None, None),
        };
    }

    /// What to send now.
    pub fn leg<W: Wants>(&mut self, look: &Look<W>, regions: &Regions, turn: Turn, now: Time) -> Option<Leg> {
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
        let goes_on = if breaks { None } else { self.go_on(look).or_else(|| self.stay(look, here)) };
        goes_on.or_else(|| {
            let of_turn = self.anywhere(look, regions, here, turn);
            if of_turn.is_some() || turn == Turn::Anyone {
                return of_turn;
            }
            // It wants nothing that can be had now.
            self.whose = None;
            self.anywhere(look, regions, here, Turn::Anyone)
        })
    }

    /// How long this leg takes if it needs the media. `sure`: the head is there; if not, as after a
    /// write that the drive cached, the worst is assumed: the move, and a turn.
    pub fn takes(&self, model: &Model, margins: &Margins, (head, sure): (&Head, bool), leg: &Leg, now: Time) -> Takes {
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

    /// Whether a request will rarely arrive during a command of this length. If not, sets when to
    /// search again: shortly before the command's sectors pass, if the command is short enough by
    /// then; otherwise when the command would have completed. `early`: how long before the sectors
    /// pass the search has to begin.
    pub fn rarely_delays(&mut self, takes: Takes, early: Dur, now: Time) -> bool {
        let rarely = self.idle.rarely_ends_within(takes.all, now);
        if !rarely {
            let wait = takes.latency.saturating_sub(early);
            let helps = self.idle.rarely_ends_within(takes.all - wait, now + wait);
            self.search_again_at = now + if helps { wait } else { takes.all };
        }
        rarely
    }

    /// The session whose turn it is, given the lottery's draw, and whether idle work has to move
    /// elsewhere for it. A session keeps its turn for [`STREAK`] commands.
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

    /// What is wanted of what the drive has read ahead: it comes from its buffer, and nothing moves
    /// for it. Having come to the end of the track the drive keeps what came last. In short idle
    /// time the last sector is left: asked for that the drive would read on, on the next track, and
    /// might lose what it holds of this one. In long idle time that is meant (`Idling::go_on`,
    /// `core/idle_time`).
    fn read_ahead<W: Wants>(&mut self, look: &Look<W>) -> Option<Leg> {
        let (first, until) = self.held?;
        let track = look.model.geometry.track_of(until - 1)?;
        let (first, end) = (first.max(track.first_lbn), until - 1);
        let wanted = &mut self.wanted;
        look.following(wanted, first, end, end, track.spt)
    }

    /// What is wanted written on the track where the head is.
    fn write_here<W: Wants>(&mut self, look: &Look<W>, here: (u32, u16)) -> Option<Leg> {
        let writes: &[Kind] = if look.kinds.contains(&Kind::Write) { &[Kind::Write] } else { &[] };
        Look { kinds: writes, ..*look }.on_track(&mut self.wanted, here).map(|o| o.leg)
    }

    /// What comes behind what was read last, while the drive reads on: from the unit on that was
    /// cut off there.
    fn go_on<W: Wants>(&mut self, look: &Look<W>) -> Option<Leg> {
        let end = self.read_to.filter(|_| self.reads_on)?;
        let track = look.model.geometry.track_of(end)?;
        let until = track.first_lbn + u64::from(track.lbns);
        // A unit that begins before the track's end may end behind it.
        let reach = (until + u64::from(look.widest)).min(look.model.geometry.capacity());
        let from = (end + 1).saturating_sub(u64::from(look.widest));
        let leg = look.following(&mut self.wanted, from, until, reach, track.spt)?;
        (leg.lbn <= end + u64::from(track.spt / 8)).then_some(leg)
    }

    /// Behind a write the drive reads nothing ahead: what passes next on the track where the head
    /// is, before the arm is sent elsewhere, which a request that comes would have to wait for.
    fn stay<W: Wants>(&mut self, look: &Look<W>, here: (u32, u16)) -> Option<Leg> {
        let stays = self.reads_on && self.read_to.is_none();
        look.on_track(&mut self.wanted, here).filter(|_| stays).map(|o| o.leg)
    }

    fn anywhere<W: Wants>(&mut self, look: &Look<W>, regions: &Regions, here: (u32, u16), turn: Turn) -> Option<Leg> {
        let cells = regions.cells();
        let numbered = Numbered(regions, turn.who());
        let chosen = || self.policy.choose(&numbered, &self.reach, cells.of(here.0, here.1));
        let mut cell = self.look_from.take().and_then(|c| numbered.next_up(c)).or_else(chosen)?;
        for _ in 0..TRIES {
            let wanted = &mut self.wanted;
            let offers = cells.tracks(cell).filter_map(|track| Some((track, look.on_track(wanted, track)?)));
            // A second read on the track read last makes some drives read all of it before anything
            // else.
            let best = offers.reduce(|a, b| {
                let stays = |o: &((u32, u16), Offer)| self.delays && o.0 == here;
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

/// The cells that a range lies in, with how many of its sectors each has.
fn by_track(model: &Model, regions: &Regions, range: Range, mut f: impl FnMut(u32, u64)) {
    let mut lbn = range.lbn;
    while let Some(track) = model.geometry.track_of(lbn).filter(|_| lbn < range.end()) {
        let end = (track.first_lbn + u64::from(track.lbns)).min(range.end()).max(lbn + 1);
        f(regions.cells().of(track.cylinder, track.surface), end - lbn);
        lbn = end;
    }
}
