//! The freeblock subsystem: the task manager above, the scheduling layer below (Thereska 2003
//! section 3.3, figure 2), and their supervision: conservatism, the gate, idle detection.

pub(crate) mod promotion;

use std::collections::VecDeque;

use headtime_disk::{Dur, Kind, Model, Outcome, Place, Time};
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::SplitMix64;

use super::adaptive::Adaptive;
use super::backwards::Backwards;
use super::bad::Bad;
use super::config::{Conservatism, FillConfig};
use super::conservatism::Margins;
use super::evidence::Seen;
use super::gap::{Gap, Leg};
use super::gate::Gate;
use super::idling::Idling;
use super::offered::Offered;
use super::planner::{self, Planner};
use super::reach::Gone;
use super::regions::Regions;
use super::report::FillReport;
use super::reuse::Reuse;
use crate::dispatch::{Purpose, Sent};
use crate::request::{Prediction, Request};
use crate::tasks::manager::TaskManager;
use crate::tasks::wanted::Wanted;
use crate::tasks::{SessionId, TaskLimits, TaskRange, Wants, Who};
use promotion::{MAX_PROMOTED, Stragglers};

/// Maximum ranges excluded in one gap: each costs another search. Not tuned: only a gap with many
/// bad sectors needs more, and is left unused.
pub(super) const MAX_ASIDE: usize = 12;

/// How many requests for write data may be refused at one instant; after that, only reads are
/// searched for. Each refusal costs a search. Not tuned: it only bounds that cost.
const MAX_ASKS: u32 = 4;
/// Interval after which work that an idle drive could not be given is retried. Not tuned: ten
/// searches a second cost little processor time (docs/freeblock.md).
const RECHECK: Dur = Dur::from_ms(100);

/// A write whose data was requested.
#[derive(Clone, Copy, Debug)]
struct Pending {
    leg: Leg,
    /// When it was found; it is void once time has advanced.
    at: Time,
    /// Whether it was found for an idle drive.
    idle: bool,
}

/// A command in flight, recorded for learning.
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

/// A gap that may be filled.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GapToFill {
    /// The gap.
    pub gap: Gap,
    /// The track on which the command before the gap ends, if that is a read: the drive's cache
    /// treats a second read on the same track depending on the previous command.
    pub last_read: Option<(u32, u16)>,
    /// As in [`planner::Task`].
    pub front_only: bool,
}

/// The subsystem.
#[derive(Clone, Debug)]
pub(crate) struct Freeblock {
    pub(crate) tasks: TaskManager,
    pub(super) regions: Regions,
    pub(super) planner: Planner,
    pub(super) margins: Margins,
    pub(crate) adaptive: Option<Adaptive>,
    pub(crate) gate: Gate,
    /// Whether filling stops when the drive is not as expected ([`FillConfig::stops`]).
    pub(crate) stops: bool,
    pub(crate) reuse: Reuse,
    /// Whether the foreground reads what passes before its reads.
    pub(crate) backwards: Backwards,
    search_time: Dur,
    random: SplitMix64,
    /// Excluded ranges.
    pub(super) aside: Vec<TaskRange>,
    pub(super) bad: Bad,
    pending: Option<Pending>,
    /// The last instant at which a request for data was refused, and how often it was.
    asked: (Time, u32),
    /// Legs sent before the request being held.
    pub(crate) legs_before: usize,
    /// Pieces of promoted tasks and stragglers, by the slot of their request.
    pub(super) promoted: Vec<(u32, Kind, TaskRange)>,
    /// A promoted write whose data was requested.
    pub(super) promoted_pending: Option<TaskRange>,
    flown: Vec<Flown>,
    pub(super) idling: Option<Idling>,
    /// Range of the command that completed last: the drive's cache may hold a part of it and the
    /// rest be on its way.
    last: Option<TaskRange>,
    /// The drive no longer responds.
    pub(super) dead: bool,
    /// When something was last brought, or a straggler was fetched instead: in total, and for each
    /// session that has registered a task.
    pub(super) brought: Time,
    pub(super) brought_for: Vec<(SessionId, Time)>,
    /// When the sessions are checked next for one that receives nothing, and where on the disk the
    /// search for stragglers resumes.
    pub(super) stragglers: Stragglers,
    /// Long ranges whose regions remain to be rechecked.
    pub(super) later: VecDeque<(SessionId, TaskRange)>,
    pub(super) limits: TaskLimits,
    report: FillReport,
    /// Wanted sectors that pass on the way to a request.
    pub(super) passing: Wanted,
}

impl Freeblock {
    /// Creates a subsystem in which nothing is wanted.
    pub(crate) fn new(config: &FillConfig, model: &Model) -> Freeblock {
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
            stops: config.stops,
            reuse: Reuse::default(),
            backwards: Backwards::default(),
            search_time: config.search_time,
            random: SplitMix64::seed_from_u64(config.seed),
            aside: Vec::new(),
            bad: Bad::default(),
            pending: None,
            asked: (Time::ZERO, 0),
            legs_before: 0,
            promoted: Vec::with_capacity(MAX_PROMOTED),
            promoted_pending: None,
            passing: Wanted::new(),
            flown: Vec::new(),
            last: None,
            dead: false,
            brought: Time::ZERO,
            brought_for: Vec::new(),
            stragglers: Stragglers::default(),
            later: VecDeque::new(),
            limits: config.limits,
            report: FillReport::default(),
        }
    }

    /// Handles a notification after which the input of a search may differ.
    pub(crate) fn advance_to(&mut self, now: Time) {
        // Refused units are offered again when due, even on a disk on which nothing completes, and
        // sessions held back by their rate may go on.
        self.tasks.advance(now);
        self.sessions_turned();
    }

    /// Handles the arrival of a foreground request.
    pub(crate) fn arrived(&mut self, model: &Model, request: &Request, now: Time) {
        if let Some(idling) = &mut self.idling {
            idling.detector().arrived(now);
        }
        if request.kind != Kind::Flush {
            self.stragglers.arrived(request.lbn, request.count, now);
        }
        if request.kind == Kind::Write {
            self.tasks.foreground_write(request.lbn, u64::from(request.count));
            self.follow(model, Gone::Otherwise, now);
        }
    }

    /// Sets the end of ADMIT's idling window, if there is one.
    pub(crate) fn set_idling_window(&mut self, until: Option<Time>, now: Time) {
        if let Some(idling) = &mut self.idling {
            let until = until.filter(|_| !idling.leaves_windows());
            idling.detector().set_idling_window(until, now);
        }
    }

    /// Handles the end of a foreground request.
    pub(crate) fn finished(&mut self, now: Time) {
        if let Some(idling) = &mut self.idling {
            idling.detector().finished(now);
        }
    }

    /// Handles the completion of a command at the drive.
    pub(crate) fn completed(&mut self, model: &Model, sent: &Sent, outcome: Outcome, now: Time) {
        let c = &sent.command;
        let was_idle = self.flown.iter().any(|f| f.command == c.id && f.idle);
        let range = TaskRange { lbn: c.lbn, count: u64::from(c.count) };
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
            Purpose::Merged(_, _, front) => {
                TaskRange { lbn: c.lbn + u64::from(front), count: u64::from(c.count - front) }
            }
            Purpose::Free(_) => TaskRange { lbn: c.lbn, count: 0 },
        };
        self.report.by_foreground +=
            self.tasks.events_from(waiting).map(|e| e.brought().map_or(0, |r| r.in_common(&own))).sum::<u64>();
        self.bad.note(c, outcome);
        if self.tasks.has_changes() {
            self.brought = now;
        }
        self.follow(model, if was_idle { Gone::Idle } else { Gone::Free }, now);
    }

    /// Records that a command to `place` is sent, with the head to come `from` there; `alone`: to a
    /// drive with nothing else to do.
    pub(crate) fn flies(&mut self, command: u64, from: (u32, u16), place: Option<Place>, idle: bool, alone: bool) {
        if let Some(place) = place {
            self.flown.push(Flown { command, from, place, idle, alone });
        }
    }

    /// Learns from a completion.
    pub(crate) fn observed(&mut self, model: &mut Model, sent: &Sent, prediction: Option<&Prediction>) {
        let at = self.flown.iter().position(|f| f.command == sent.command.id);
        let Some(flown) = at.map(|i| self.flown.swap_remove(i)) else {
            return;
        };
        // A drive that reads ahead may already be reading what idle work requests, and is then
        // faster than any move: a head switch would be estimated at zero. Foreground requests show
        // how the drive moves, and whether predictions fail.
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

    /// Returns whether gaps may be filled now.
    pub(crate) fn may_fill(&self) -> bool {
        (self.gate.is_open() || !self.stops) && !self.dead && self.tasks.has_room() && self.wants_something()
    }

    /// Returns whether any session wants something now.
    pub(super) fn wants_something(&self) -> bool {
        self.tasks.any(Who::Anyone, Kind::Read) || self.tasks.any(Who::Anyone, Kind::Write)
    }

    /// Requests the data of a write. False when it is not available, or when it has been refused
    /// often enough at this instant.
    pub(crate) fn ask(&mut self, leg: &Leg, idle: bool, now: Time) -> bool {
        let asked = self.may_ask(now) && self.tasks.ask(leg.range());
        if asked {
            self.pending = Some(Pending { leg: *leg, at: now, idle });
        }
        asked
    }

    pub(super) fn may_ask(&self, now: Time) -> bool {
        self.asked.0 != now || self.asked.1 < MAX_ASKS
    }

    /// Returns the write whose data was requested, if all of it is available and it was found for
    /// this purpose: the current gap, or an idle drive. Otherwise releases it.
    pub(crate) fn answered(&mut self, idle: bool, now: Time) -> Option<Leg> {
        let Pending { leg, at, idle: for_idle } = self.pending.take()?;
        if at == now && idle == for_idle && self.tasks.granted(leg.range()) {
            return Some(leg);
        }
        self.refused(&leg, now);
        None
    }

    /// Releases a write whose data was requested but which is not sent.
    pub(crate) fn refused(&mut self, leg: &Leg, now: Time) {
        self.asked = (now, if self.asked.0 == now { self.asked.1 + 1 } else { 1 });
        self.tasks.release(leg.kind, leg.range(), now);
    }

    /// Returns the margins of moves.
    #[inline]
    pub(crate) fn margins(&self) -> Margins {
        self.margins
    }

    /// Returns the maximum duration of a search, and of sending its command, while the drive waits
    /// for it.
    #[inline]
    pub(crate) fn search_time(&self) -> Dur {
        self.adaptive.as_ref().map_or(self.search_time, Adaptive::delay)
    }

    /// Sets the excluded ranges: what is at the drive, the destination (which brings its own
    /// blocks), and what completed last (its rest may be on the way into the drive's cache).
    pub(crate) fn set_aside(&mut self, at_drive: impl Iterator<Item = TaskRange>, dest: &Place) {
        self.aside.clear();
        self.aside.extend(at_drive);
        self.aside.push(TaskRange { lbn: dest.lbn, count: u64::from(dest.count) });
        self.aside.extend(self.last);
    }

    /// Excludes a range for the rest of the gap.
    pub(crate) fn leave_out(&mut self, range: TaskRange) {
        self.aside.push(range);
    }

    /// Returns the first leg of the best plan for a gap.
    pub(crate) fn search(&mut self, model: &Model, to_fill: &GapToFill, now: Time) -> Option<Leg> {
        self.report.searches += 1;
        let winner = self.draw()?;
        loop {
            let leg = self.with_task(model, to_fill, (winner, now), |planner, task| planner.plan(task))?.legs()[0];
            // Known bad sectors may be many, those in a leg are few: only the legs found are
            // checked.
            match self.bad.within(&leg) {
                None => return Some(leg),
                Some(bad) => self.aside.push(bad),
            }
            if self.aside.len() > MAX_ASIDE {
                return None;
            }
        }
    }

    /// Returns the value of the best plan for a gap, after a quick search, in ns of head time.
    /// `None`: the algorithm has no such value.
    pub(crate) fn worth(&mut self, model: &Model, to_fill: &GapToFill, now: Time) -> Option<u64> {
        // Drawn as for the search that will follow.
        let winner = self.tasks.draw(self.random.clone().next_u64())?;
        self.with_task(model, to_fill, (winner, now), |planner, task| planner.worth(task))
    }

    /// Passes the planner its input for a gap.
    fn with_task<R>(
        &mut self,
        model: &Model,
        to_fill: &GapToFill,
        (winner, now): (SessionId, Time),
        f: impl FnOnce(&mut Planner, &planner::Task<Offered>) -> R,
    ) -> R {
        let task = planner::Task {
            model,
            gap: &to_fill.gap,
            wants: &Offered { tasks: &self.tasks, reads_only: !self.may_ask(now) },
            regions: &self.regions,
            winner,
            exclude: &self.aside,
            last_read: to_fill.last_read,
            legs_before: self.legs_before,
            front_only: to_fill.front_only,
        };
        f(&mut self.planner, &task)
    }

    /// Draws one of the sessions, with probabilities according to their priorities (Thereska 2003
    /// section 4.5).
    pub(super) fn draw(&mut self) -> Option<SessionId> {
        self.tasks.draw(self.random.next_u64())
    }

    /// Records that a leg is sent: as a separate command, merged, or in idle time.
    pub(crate) fn sends(&mut self, leg: &Leg, idle: bool) {
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

    /// Returns the next time at which it must be called.
    pub(crate) fn next_wakeup(&self, now: Time) -> Option<Time> {
        // Refused units are offered again later.
        let again = self.tasks.next_wakeup();
        let wants = self.wants_something() && self.tasks.has_room() && !self.dead;
        let idling = self.idling.as_ref().filter(|_| wants);
        let idle = idling.and_then(|i| i.next_wakeup(now));
        // Work that idle time cannot be spent on now is retried, and a straggler may become due.
        let straggler = idling.map(|_| self.stragglers.due(self.brought, now).max(now + RECHECK));
        [idle, again, straggler].into_iter().flatten().filter(|&t| t > now).min()
    }

    /// Returns the statistics.
    pub(crate) fn report(&self) -> FillReport {
        let mut regions = self.regions.memory();
        regions.rest += self.planner.memory_bytes();
        FillReport {
            times_shut: self.gate.times_shut(),
            shut: !self.gate.is_open(),
            sessions: self.tasks.sessions().collect(),
            tasks: self.tasks.memory(),
            regions,
            search_cost: self.planner.cost(),
            ..self.report.clone()
        }
    }
}
