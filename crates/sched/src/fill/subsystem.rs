//! The freeblock subsystem put together: the task manager above, the scheduling layer below (seed 002 section 3.3, figure 2),
//! and what watches over both: conservatism, the gate, the idle detectors.

use headtime_disk::command::{Command, Kind, Outcome};
use headtime_disk::mechanics::Head;
use headtime_disk::model::{Model, Place};
use headtime_disk::time::{Dur, Time};

use super::Algorithm;
use super::adaptive::Adaptive;
use super::conservatism::Margins;
use super::evidence::Seen;
use super::forward::{MOST_PROMOTED, PATIENCE};
use super::gap::{Gap, Leg};
use super::gate::Gate;
use super::idling::{IdleConfig, Idling};
use super::offer::Look;
use super::placement::Placement;
use super::planner::{self, Planner};
use super::reach::Gone;
use super::regions::{REGIONS, RegionMemory, Regions};
use crate::dispatch::Sent;
use crate::request::{Prediction, Request};
use crate::tasks::manager::{SessionInfo, TaskManager};
use crate::tasks::memory::Memory;
use crate::tasks::{Limits, Range, SessionId, TaskError, TaskId, TaskSpec, Wants, Who};

/// How much longer than predicted a move may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Conservatism {
    /// Always so much.
    Fixed(Dur),
    /// As much as the drive has shown to be needed, by class of distance; and seek times are corrected by what it shows.
    Adaptive,
}

/// How FILL is set up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FillConfig {
    /// What looks for blocks.
    pub algorithm: Algorithm,
    /// Inside the drive or outside.
    pub placement: Placement,
    /// How careful it is.
    pub conservatism: Conservatism,
    /// Angular regions a cell: a power of two.
    pub regions: u32,
    /// Tracks and tasks that the quick pass of a search may look at, and the refinement after it.
    pub budget: (u32, u32),
    /// What is bounded.
    pub limits: Limits,
    /// Use of idle time; `None`: gaps only.
    pub idle: Option<IdleConfig>,
    /// How long a search takes at most, as the platter sees it, when the drive has nothing to do meanwhile.
    pub search_time: Dur,
    /// Seed of the lottery.
    pub seed: u64,
}

impl FillConfig {
    /// An algorithm outside the drive, as careful as the drive shows to be needed.
    pub fn new(algorithm: Algorithm) -> FillConfig {
        FillConfig {
            algorithm,
            placement: Placement::Host,
            conservatism: Conservatism::Adaptive,
            regions: REGIONS,
            budget: (64, 192),
            limits: Limits::default(),
            idle: Some(IdleConfig::default()),
            search_time: Dur::from_us(50),
            seed: 0,
        }
    }
}

/// What the subsystem has done and what it takes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Searches for something that fits.
    pub searches: u64,
    /// Commands that were freeblock work alone, in gaps.
    pub commands: u64,
    /// Foreground commands that began earlier for free.
    pub merged: u64,
    /// Commands in idle time.
    pub idle: u64,
    /// Sectors moved by these, wanted or bridged.
    pub sectors: u64,
    /// How often filling stopped because the drive surprised.
    pub times_shut: u64,
    /// Whether it is stopped now.
    pub shut: bool,
    /// What the sessions are at.
    pub sessions: Vec<SessionInfo>,
    /// What the task manager takes.
    pub tasks: Memory,
    /// What the scheduling layer takes.
    pub regions: RegionMemory,
}

impl Report {
    /// All bytes that tasks take, in both layers.
    pub fn bytes(&self) -> usize {
        self.tasks.total() + self.regions.total()
    }
}

/// Sectors known to be bad at most; of more, those with the lowest LBNs are forgotten.
const MOST_BAD: usize = 4_096;
/// Ranges set aside in one gap at most.
const MOST_ASIDE: usize = 12;

/// Data is asked for so often at one instant and in vain; then only reads are looked for.
const MOST_ASKS: u32 = 4;
/// What an idle drive cannot be given now is looked at again after so long.
const RECHECK: Dur = Dur::from_ms(100);

/// A write whose data was asked for.
#[derive(Clone, Copy, Debug)]
struct Pending {
    leg: Leg,
    /// What it was found for is over when time has gone on.
    at: Time,
    /// It was found for an idle drive.
    idle: bool,
}

/// What is remembered of a command at the drive, to learn from.
#[derive(Clone, Copy, Debug)]
struct Flown {
    command: u64,
    from: (u32, u16),
    place: Place,
    /// It is freeblock work, or what follows on it.
    filled: bool,
    /// It was sent because the disk was idle.
    idle: bool,
}

/// The subsystem.
#[derive(Clone, Debug)]
pub struct Freeblock {
    pub(crate) tasks: TaskManager,
    pub(super) regions: Regions,
    planner: Planner,
    margins: Margins,
    adaptive: Option<Adaptive>,
    pub(crate) gate: Gate,
    search_time: Dur,
    random: u64,
    /// What no leg may touch now.
    aside: Vec<Range>,
    /// Sectors that could not be read or written.
    bad: Vec<u64>,
    pending: Option<Pending>,
    /// How often data was asked for in vain, and when that was.
    asked: (Time, u32),
    /// Legs sent before the request that is held.
    pub(crate) legs_before: usize,
    /// Pieces of promoted tasks, by the slot of their request.
    pub(super) promoted: Vec<u32>,
    /// A promoted write whose data was asked for.
    pub(super) promoted_pending: Option<Range>,
    flown: Vec<Flown>,
    pub(super) idling: Option<Idling>,
    /// What the command that completed last covered: the drive's cache may hold a part of it and the rest be on its way.
    last: Option<Range>,
    /// The drive answers no more.
    pub(super) dead: bool,
    /// When something was brought last, or a unit was fetched for want of that.
    pub(super) brought: Time,
    report: Report,
}

impl Freeblock {
    /// Nothing is wanted yet.
    pub fn new(config: &FillConfig, model: &Model) -> Freeblock {
        let (margins, adaptive) = match config.conservatism {
            Conservatism::Fixed(margin) => (Margins::fixed(margin), None),
            Conservatism::Adaptive => {
                let adaptive = Adaptive::new(model);
                (*adaptive.margins(), Some(adaptive))
            }
        };
        let regions = Regions::new(&model.geometry, config.regions);
        Freeblock {
            tasks: TaskManager::new(config.limits, model.geometry.capacity()),
            idling: config.idle.as_ref().map(|idle| Idling::new(idle, model, &regions)),
            regions,
            planner: Planner::new(config),
            margins,
            adaptive,
            gate: Gate::default(),
            search_time: config.search_time,
            random: config.seed,
            aside: Vec::new(),
            bad: Vec::new(),
            pending: None,
            asked: (Time::ZERO, 0),
            legs_before: 0,
            promoted: Vec::with_capacity(MOST_PROMOTED),
            promoted_pending: None,
            flown: Vec::new(),
            last: None,
            dead: false,
            brought: Time::ZERO,
            report: Report::default(),
        }
    }

    /// Registers a task.
    pub fn register(&mut self, model: &Model, session: SessionId, spec: &TaskSpec) -> Result<TaskId, TaskError> {
        let task = self.tasks.register(session, spec)?;
        self.regions.has_unit(spec.min_pickup);
        for range in &spec.ranges {
            self.regions.add(session, &model.geometry, *range);
            if let Some(idling) = &mut self.idling {
                idling.registered(model, &self.regions, *range);
            }
        }
        // A later write supersedes earlier ones.
        self.follow(model, Gone::Otherwise);
        Ok(task)
    }

    /// Ends a task.
    pub fn abort(&mut self, model: &Model, task: TaskId) -> Result<(), TaskError> {
        self.tasks.abort(task)?;
        self.follow(model, Gone::Otherwise);
        Ok(())
    }

    /// Closes a session.
    pub fn close(&mut self, model: &Model, session: SessionId) -> Result<(), TaskError> {
        self.tasks.close(session)?;
        self.regions.drop_session(session);
        self.follow(model, Gone::Otherwise);
        Ok(())
    }

    /// Suspends a session, or ends that.
    pub fn suspend(&mut self, session: SessionId, suspended: bool) -> Result<(), TaskError> {
        match suspended {
            true => self.tasks.suspend(session)?,
            false => self.tasks.resume(session)?,
        }
        self.regions.suspend(session, suspended);
        Ok(())
    }

    /// The scheduling layer follows what has become of wants.
    fn follow(&mut self, model: &Model, how: Gone) {
        for change in self.tasks.take_changes() {
            self.regions.recheck(change.session, &model.geometry, &self.tasks, change.range);
            if let Some(idling) = &mut self.idling {
                idling.gone(model, &self.regions, change.range, how);
            }
        }
    }

    /// A foreground request has arrived.
    pub fn arrived(&mut self, model: &Model, request: &Request) {
        if let Some(idling) = &mut self.idling {
            idling.detector().arrived();
        }
        if request.kind == Kind::Write {
            self.tasks.foreground_write(request.lbn, u64::from(request.count));
            self.follow(model, Gone::Otherwise);
        }
    }

    /// A foreground request has finished.
    pub fn finished(&mut self, now: Time) {
        if let Some(idling) = &mut self.idling {
            idling.detector().finished(now);
        }
    }

    /// A command has ended at the drive.
    pub fn completed(&mut self, model: &Model, sent: &Sent, outcome: Outcome, now: Time) {
        let c = &sent.command;
        let was_idle = self.flown.iter().any(|f| f.command == c.id && f.idle);
        let range = Range { lbn: c.lbn, count: u64::from(c.count) };
        if let Some(idling) = &mut self.idling {
            if was_idle {
                idling.detector().completed();
            }
            idling.completed(model, c.kind, range, outcome == Outcome::Ok, was_idle);
        }
        self.dead |= outcome == Outcome::Dead;
        self.last = (c.kind != Kind::Flush).then_some(range);
        self.tasks.completed(c.kind, c.lbn, c.count, outcome, now);
        self.note_bad(c, outcome);
        if self.tasks.has_changes() {
            self.brought = now;
        }
        self.follow(model, if was_idle { Gone::Idle } else { Gone::Free });
    }

    /// A sector that failed is bad until something that covers it succeeds: drives put bad sectors right when they are
    /// written.
    fn note_bad(&mut self, c: &Command, outcome: Outcome) {
        match outcome {
            Outcome::Ok if c.kind != Kind::Flush && !self.bad.is_empty() => {
                let end = c.lbn + u64::from(c.count);
                let (from, to) = (self.bad.partition_point(|&b| b < c.lbn), self.bad.partition_point(|&b| b < end));
                self.bad.drain(from..to);
            }
            Outcome::MediaError { lbn } => {
                if let Err(at) = self.bad.binary_search(&lbn) {
                    self.bad.insert(at, lbn);
                    if self.bad.len() > MOST_BAD {
                        self.bad.remove(0);
                    }
                }
            }
            _ => {}
        }
    }

    /// A command to `place` is sent; the head is to come `from` there.
    pub fn flies(&mut self, command: u64, from: (u32, u16), place: Option<Place>, filled: bool, idle: bool) {
        if let Some(place) = place {
            self.flown.push(Flown { command, from, place, filled, idle });
        }
    }

    /// What a completion showed of the drive.
    pub fn observed(&mut self, model: &mut Model, sent: &Sent, prediction: Option<&Prediction>) {
        let at = self.flown.iter().position(|f| f.command == sent.command.id);
        let Some(flown) = at.map(|i| self.flown.swap_remove(i)) else {
            return;
        };
        // What a drive that reads on is asked for in idle time it may be reading already, and is then sooner there than any move
        // would be: a head switch was taken for nothing. Requests show how the drive moves, and whether it surprises.
        if flown.idle && self.idling.as_ref().is_some_and(Idling::reads_on) {
            return;
        }
        let mut explained = false;
        if let (Some(p), Some(adaptive)) = (prediction, &mut self.adaptive)
            && let Some(seen) = Seen::new(flown.from, &flown.place, sent.command.kind, p, flown.filled)
        {
            explained = adaptive.observe(&seen).explained;
            self.margins = *adaptive.margins();
            if adaptive.revise(&mut model.mechanics) {
                self.margins = *adaptive.margins();
            }
        }
        self.gate.observe(prediction.map(|p| p.surprise), explained);
    }

    /// Whether anything may be put into gaps now.
    pub fn may_fill(&self) -> bool {
        self.gate.is_open() && !self.dead && self.tasks.has_room() && self.wants_something()
    }

    /// Whether anybody wants something now.
    pub(super) fn wants_something(&self) -> bool {
        self.tasks.any(Who::Anyone, Kind::Read) || self.tasks.any(Who::Anyone, Kind::Write)
    }

    /// Asks for the data of a write. False when it cannot be had, or when it has been asked for in vain often enough.
    pub(crate) fn ask(&mut self, leg: &Leg, idle: bool, now: Time) -> bool {
        let asked = self.may_ask(now) && self.tasks.ask(leg.range());
        if asked {
            self.pending = Some(Pending { leg: *leg, at: now, idle });
        }
        asked
    }

    fn may_ask(&self, now: Time) -> bool {
        self.asked.0 != now || self.asked.1 < MOST_ASKS
    }

    /// The write whose data was asked for, if all of it is there and it was found for just this: the gap that is looked at
    /// now, or an idle drive. Else it is let go of.
    pub(crate) fn answered(&mut self, idle: bool, now: Time) -> Option<Leg> {
        let Pending { leg, at, idle: for_idle } = self.pending.take()?;
        if at == now && idle == for_idle && self.tasks.granted(leg.range()) {
            return Some(leg);
        }
        self.refused(&leg, now);
        None
    }

    /// A write that was asked for is not sent.
    pub(crate) fn refused(&mut self, leg: &Leg, now: Time) {
        self.asked = (now, if self.asked.0 == now { self.asked.1 + 1 } else { 1 });
        self.tasks.release(leg.kind, leg.range(), now);
    }

    /// What is added to moves.
    #[inline]
    pub fn margins(&self) -> Margins {
        self.margins
    }

    /// How long a search takes at most, when the drive waits for it.
    #[inline]
    pub fn search_time(&self) -> Dur {
        self.search_time
    }

    /// What no leg may touch: what is at the drive, the destination (which brings its own blocks), bad sectors.
    pub fn set_aside(&mut self, at_drive: impl Iterator<Item = Range>, dest: &Place) {
        self.aside.clear();
        self.aside.extend(at_drive);
        self.aside.push(Range { lbn: dest.lbn, count: u64::from(dest.count) });
        self.aside.extend(self.last);
    }

    /// Nothing of this range for the rest of the gap.
    pub fn leave_out(&mut self, range: Range) {
        self.aside.push(range);
    }

    /// The first leg of the best plan for a gap. `last_read`: the track on which the command before it ends, if that is a
    /// read.
    pub fn search(&mut self, model: &Model, gap: &Gap, last_read: Option<(u32, u16)>) -> Option<Leg> {
        self.report.searches += 1;
        // The lottery: one of the sessions, the likelier the higher its priority (seed 002 section 4.5).
        self.random = self.random.wrapping_add(STEP);
        let winner = self.tasks.draw(mixed(self.random))?;
        loop {
            let plan = self.planner.plan(&planner::Task {
                model,
                gap,
                wants: &self.tasks,
                regions: &self.regions,
                winner,
                exclude: &self.aside,
                last_read,
                legs_before: self.legs_before,
            })?;
            let leg = plan.legs()[0];
            // Known bad sectors are many, and those in a leg are few: they are looked for in what was found.
            let range = leg.range();
            let at = self.bad.partition_point(|&b| b < range.lbn);
            match self.bad.get(at).filter(|&&b| b < range.end()) {
                None => return Some(leg),
                Some(&b) => self.aside.push(Range { lbn: b, count: 1 }),
            }
            if self.aside.len() > MOST_ASIDE {
                return None;
            }
        }
    }

    /// An idle drive is looked after.
    pub fn begin_idle(&mut self) {
        self.aside.clear();
    }

    /// What to send to an idle drive, of what has not been left out.
    pub fn idle_leg(&mut self, model: &Model, head: &Head, now: Time) -> Option<Leg> {
        let kinds: &[Kind] = if self.may_ask(now) { &[Kind::Read, Kind::Write] } else { &[Kind::Read] };
        let idling = self.idling.as_mut().filter(|_| self.tasks.has_room() && !self.dead)?;
        loop {
            let look = Look {
                model,
                wants: &self.tasks,
                head,
                kinds,
                aside: &self.aside,
                margins: self.margins,
                widest: self.regions.widest_unit(),
                reads_on: idling.reads_on(),
            };
            let leg = idling.leg(&look, &self.regions, now)?;
            let range = leg.range();
            let at = self.bad.partition_point(|&b| b < range.lbn);
            match self.bad.get(at).filter(|&&b| b < range.end()) {
                None => return Some(leg),
                Some(&b) => self.aside.push(Range { lbn: b, count: 1 }),
            }
            if self.aside.len() > MOST_ASIDE {
                return None;
            }
        }
    }

    /// What an idle drive is to be asked for is looked for again at `until`: the drive is reading it by itself.
    pub fn idle_waits(&mut self, until: Time) {
        if let Some(idling) = &mut self.idling {
            idling.waits(until);
        }
    }

    /// A leg is sent: of its own, merged, or in idle time.
    pub fn sends(&mut self, leg: &Leg, idle: bool) {
        if let Some(idling) = self.idling.as_mut().filter(|_| idle) {
            idling.detector().sent();
        }
        if leg.kind == Kind::Write {
            self.tasks.picked(leg.range());
        }
        self.report.sectors += u64::from(leg.count);
        match (idle, leg.merged) {
            (true, _) => self.report.idle += 1,
            (false, true) => self.report.merged += 1,
            (false, false) => self.report.commands += 1,
        }
    }

    /// When it wants to be told the time.
    pub fn next_wakeup(&self, now: Time) -> Option<Time> {
        // Units that were refused are offered again at some time.
        let again = self.tasks.next_wakeup();
        let wants = self.wants_something() && self.tasks.has_room() && !self.dead;
        let idling = self.idling.as_ref().filter(|_| wants);
        let idle = idling.and_then(|i| i.next_wakeup(now));
        // What idle time cannot be spent on now is looked at again, and a straggler is fetched.
        let straggler = idling.map(|_| (self.brought + PATIENCE).max(now + RECHECK));
        [idle, again, straggler].into_iter().flatten().filter(|&t| t > now).min()
    }

    /// What it has done and what it takes.
    pub fn report(&self) -> Report {
        Report {
            times_shut: self.gate.times_shut(),
            shut: !self.gate.is_open(),
            sessions: self.tasks.sessions().collect(),
            tasks: self.tasks.memory(),
            regions: self.regions.memory(),
            ..self.report.clone()
        }
    }
}

/// What a splitmix64 generator's state grows by for each number.
const STEP: u64 = 0x9E37_79B9_7F4A_7C15;

/// The number that belongs to a state of a splitmix64 generator.
fn mixed(state: u64) -> u64 {
    let z = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}
