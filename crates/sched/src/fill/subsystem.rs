//! The freeblock subsystem put together: the task manager above, the scheduling layer below
//! (Thereska 2003 section 3.3, figure 2), and what watches over both: conservatism, the gate, the
//! idle detectors.

use std::collections::VecDeque;

use headtime_disk::command::{Kind, Outcome};
use headtime_disk::model::{Model, Place};
use headtime_disk::time::{Dur, Time};

use super::Algorithm;
use super::adaptive::Adaptive;
use super::backwards::Backwards;
use super::bad::Bad;
use super::conservatism::Margins;
use super::evidence::Seen;
use super::forward::{MOST_PROMOTED, Starving};
use super::gap::{Gap, Leg};
use super::gate::Gate;
use super::idling::{IdleConfig, Idling};
use super::offered::Offered;
use super::placement::Placement;
use super::planner::{self, Planner};
use super::reach::Gone;
use super::regions::{REGIONS, Regions};
use super::report::Report;
use super::reuse::Reuse;
use crate::dispatch::{Purpose, Sent};
use crate::request::{Prediction, Request};
use crate::tasks::manager::TaskManager;
use crate::tasks::wanted::Wanted;
use crate::tasks::{Limits, Range, SessionId, Wants, Who};

/// How much longer than predicted a move may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Conservatism {
    /// Always so much.
    Fixed(Dur),
    /// As much as the drive has shown to be needed, by class of distance; and seek times are
    /// corrected by what it shows.
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
    /// What the quick pass of a search may cost, and the refinement after it; in units of each
    /// algorithm's own.
    pub budget: (u32, u32),
    /// What is bounded.
    pub limits: Limits,
    /// Use of idle time; `None`: gaps only.
    pub idle: Option<IdleConfig>,
    /// How long a search takes at most, as the platter sees it, when the drive has nothing to do
    /// meanwhile.
    pub search_time: Dur,
    /// Seed of the lottery.
    pub seed: u64,
}

/// Of headtime's own searches. With a fifth more, whole scans of an Atlas 10K and of a 20 TB drive
/// take as long to half a per cent (seeds differ by 2%); with a sixth less they take 1 to 1.5%
/// longer under SPTF.
const BUDGET: (u32, u32) = (64, 160);
/// Of the papers' algorithms: what their authors' machine could do with 8% of its processor.
const PAPERS_BUDGET: (u32, u32) = (64, 192);

impl FillConfig {
    /// An algorithm outside the drive, as careful as the drive shows to be needed.
    pub fn new(algorithm: Algorithm) -> FillConfig {
        let papers = algorithm != Algorithm::Headtime;
        FillConfig {
            algorithm,
            placement: Placement::Host,
            conservatism: Conservatism::Adaptive,
            regions: REGIONS,
            budget: if papers { PAPERS_BUDGET } else { BUDGET },
            limits: Limits::default(),
            // The papers know thresholds only.
            idle: Some(IdleConfig { thresholds_only: papers, ..IdleConfig::default() }),
            search_time: Dur::from_us(50),
            seed: 0,
        }
    }
}

/// Ranges set aside in one gap at most: each costs another search.
pub(super) const MOST_ASIDE: usize = 12;

/// How many requests for write data may be refused at one instant; after that, only reads are
/// searched for. Each refusal costs a search.
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
    /// It was sent because the disk was idle.
    idle: bool,
    /// Nothing else was at the drive.
    alone: bool,
}

/// The subsystem.
#[derive(Clone, Debug)]
pub struct Freeblock {
    pub(crate) tasks: TaskManager,
    pub(super) regions: Regions,
    pub(super) planner: Planner,
    pub(super) margins: Margins,
    pub(crate) adaptive: Option<Adaptive>,
    pub(crate) gate: Gate,
    pub(crate) reuse: Reuse,
    /// Whether it reads what passes before its reads.
    pub(crate) backwards: Backwards,
    search_time: Dur,
    random: u64,
    /// What no leg may touch now.
    pub(super) aside: Vec<Range>,
    pub(super) bad: Bad,
    pending: Option<Pending>,
    /// How often data was asked for in vain, and when that was.
    asked: (Time, u32),
    /// Legs sent before the request that is held.
    pub(crate) legs_before: usize,
    /// Pieces of promoted tasks and stragglers, by the slot of their request.
    pub(super) promoted: Vec<(u32, Kind, Range)>,
    /// A promoted write whose data was asked for.
    pub(super) promoted_pending: Option<Range>,
    flown: Vec<Flown>,
    pub(super) idling: Option<Idling>,
    /// What the command that completed last covered: the drive's cache may hold a part of it and
    /// the rest be on its way.
    last: Option<Range>,
    /// The drive answers no more.
    pub(super) dead: bool,
    /// When something was brought last, or a unit was fetched for want of that: at all, and for
    /// each session that has registered something.
    pub(super) brought: Time,
    pub(super) brought_for: Vec<(SessionId, Time)>,
    /// When the sessions are looked through next for one that gets nothing, and where on the disk
    /// the search for stragglers goes on.
    pub(super) starving: Starving,
    /// Long ranges of which the regions are yet to be looked through for what is still wanted.
    pub(super) later: VecDeque<(SessionId, Range)>,
    pub(super) limits: Limits,
    report: Report,
    /// What is wanted of the sectors that pass on the way to a request.
    pub(super) passing: Wanted,
}

impl Freeblock {
    /// Nothing is wanted yet.
    pub fn new(config: &FillConfig, model: &Model) -> Freeblock {
        let (margins, adaptive) = match config.conservatism {
            Conservatism::Fixed(margin) => (Margins::fixed(margin), None),
            Conservatism::Adaptive => {
                let adaptive = Adaptive::new(model, config.search_time);
                (*adaptive.margins(), Some(adaptive))
            }
        };
        let regions = Regions::new(&model.geometry, config.regions);
        Freeblock {
            tasks: TaskManager::new(config.limits, model.geometry.capacity()),
            idling: config.idle.as_ref().map(|idle| Idling::new(idle, model, &regions)),
            regions,
            planner: Planner::new(config, model),
            margins,
            adaptive,
            gate: Gate::default(),
            reuse: Reuse::default(),
            backwards: Backwards::default(),
            search_time: config.search_time,
            random: config.seed,
            aside: Vec::new(),
            bad: Bad::default(),
            pending: None,
            asked: (Time::ZERO, 0),
            legs_before: 0,
            promoted: Vec::with_capacity(MOST_PROMOTED),
            promoted_pending: None,
            passing: Wanted::new(),
            flown: Vec::new(),
            last: None,
            dead: false,
            brought: Time::ZERO,
            brought_for: Vec::new(),
            starving: Starving::default(),
            later: VecDeque::new(),
            limits: config.limits,
            report: Report::default(),
        }
    }

    /// Something was told: what a search was begun with may be different now.
    pub(crate) fn told(&mut self, now: Time) {
        // What was refused is offered again when its time has come, also on a disk on which nothing
        // completes.
        self.tasks.advance(now);
    }

    /// A foreground request has arrived.
    pub fn arrived(&mut self, model: &Model, request: &Request, now: Time) {
        if let Some(idling) = &mut self.idling {
            idling.detector().arrived(now);
        }
        if request.kind != Kind::Flush {
            self.starving.arrived(request.lbn, request.count, now);
        }
        if request.kind == Kind::Write {
            self.tasks.foreground_write(request.lbn, u64::from(request.count));
            self.follow(model, Gone::Otherwise, now);
        }
    }

    /// ADMIT keeps the disk waiting until then, or does not.
    pub fn keeps_waiting(&mut self, until: Option<Time>, now: Time) {
        if let Some(idling) = &mut self.idling {
            let until = until.filter(|_| !idling.leaves_windows());
            idling.detector().keeps_waiting(until, now);
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
        let waiting = self.tasks.events_waiting();
        self.tasks.completed(c.kind, c.lbn, c.count, outcome, now);
        let own = match sent.purpose {
            Purpose::Request(_) => range,
            Purpose::Merged(_, _, front) => Range { lbn: c.lbn + u64::from(front), count: u64::from(c.count - front) },
            Purpose::Free(_) => Range { lbn: c.lbn, count: 0 },
        };
        self.report.by_foreground +=
            self.tasks.events_from(waiting).map(|e| e.brought().map_or(0, |r| r.in_common(&own))).sum::<u64>();
        self.bad.note(c, outcome);
        if self.tasks.has_changes() {
            self.brought = now;
        }
        self.follow(model, if was_idle { Gone::Idle } else { Gone::Free }, now);
    }

    /// A command to `place` is sent, to a drive with nothing else to do if it is `alone`; the head
    /// is to come `from` there.
    pub fn flies(&mut self, command: u64, from: (u32, u16), place: Option<Place>, idle: bool, alone: bool) {
        if let Some(place) = place {
            self.flown.push(Flown { command, from, place, idle, alone });
        }
    }

    /// What a completion showed of the drive.
    pub fn observed(&mut self, model: &mut Model, sent: &Sent, prediction: Option<&Prediction>) {
        let at = self.flown.iter().position(|f| f.command == sent.command.id);
        let Some(flown) = at.map(|i| self.flown.swap_remove(i)) else {
            return;
        };
        // What a drive that reads on is asked for in idle time it may be reading already, and is
        // then sooner there than any move would be: a head switch was taken for nothing. Requests
        // show how the drive moves, and whether it surprises.
        if flown.idle && self.idling.as_ref().is_some_and(Idling::reads_on) {
            return;
        }
        let mut explained = false;
        if let (Some(p), Some(adaptive)) = (prediction, &mut self.adaptive)
            && let Some(seen) = Seen::new(flown.from, &flown.place, sent.command.kind, p, flown.alone)
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

    /// Asks for the data of a write. False when it cannot be had, or when it has been asked for in
    /// vain often enough.
    pub(crate) fn ask(&mut self, leg: &Leg, idle: bool, now: Time) -> bool {
        let asked = self.may_ask(now) && self.tasks.ask(leg.range());
        if asked {
            self.pending = Some(Pending { leg: *leg, at: now, idle });
        }
        asked
    }

    pub(super) fn may_ask(&self, now: Time) -> bool {
        self.asked.0 != now || self.asked.1 < MOST_ASKS
    }

    /// The write whose data was asked for, if all of it is there and it was found for just this:
    /// the gap that is looked at now, or an idle drive. Else it is let go of.
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

    /// How long a search takes at most, and its command to the drive, when the drive waits for it.
    #[inline]
    pub fn search_time(&self) -> Dur {
        self.adaptive.as_ref().map_or(self.search_time, Adaptive::delay)
    }

    /// What no leg may touch: what is at the drive, the destination (which brings its own blocks),
    /// and what completed last (its rest may be on the way into the drive's cache).
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

    /// The first leg of the best plan for a gap. `last_read`: the track on which the command before
    /// it ends, if that is a read; `front_only`: as in [`planner::Task`].
    pub fn search(
        &mut self,
        model: &Model,
        gap: &Gap,
        last_read: Option<(u32, u16)>,
        front_only: bool,
        now: Time,
    ) -> Option<Leg> {
        self.report.searches += 1;
        let reads_only = !self.may_ask(now);
        let winner = self.draw()?;
        loop {
            let wants = Offered { tasks: &self.tasks, reads_only };
            let (regions, exclude, legs_before) = (&self.regions, &self.aside, self.legs_before);
            let task = planner::Task {
                model,
                gap,
                wants: &wants,
                regions,
                winner,
                exclude,
                last_read,
                legs_before,
                front_only,
            };
            let leg = self.planner.plan(&task)?.legs()[0];
            // Known bad sectors are many, and those in a leg are few: they are looked for in what
            // was found.
            match self.bad.within(&leg) {
                None => return Some(leg),
                Some(bad) => self.aside.push(bad),
            }
            if self.aside.len() > MOST_ASIDE {
                return None;
            }
        }
    }

    /// What the best plan for a gap is worth, after a quick search; nanoseconds of head time.
    /// `None`: the algorithm does not say. The rest is as for [`Freeblock::search`].
    pub fn worth(
        &mut self,
        model: &Model,
        gap: &Gap,
        last_read: Option<(u32, u16)>,
        front_only: bool,
        now: Time,
    ) -> Option<u64> {
        // Drawn as for the search that will follow.
        let winner = self.tasks.draw(mixed(self.random.wrapping_add(STEP)))?;
        let wants = Offered { tasks: &self.tasks, reads_only: !self.may_ask(now) };
        let (regions, exclude, legs_before) = (&self.regions, &self.aside, self.legs_before);
        let task =
            planner::Task { model, gap, wants: &wants, regions, winner, exclude, last_read, legs_before, front_only };
        self.planner.worth(&task)
    }

    /// The lottery: one of the sessions, the likelier the higher its priority (Thereska 2003
    /// section 4.5).
    pub(super) fn draw(&mut self) -> Option<SessionId> {
        self.random = self.random.wrapping_add(STEP);
        self.tasks.draw(mixed(self.random))
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
        let straggler = idling.map(|_| self.starving.due(self.brought, now).max(now + RECHECK));
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
