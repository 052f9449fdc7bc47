//! The common part of all reading applications: it registers the remaining units as tasks, passes
//! each unit on once, and reconnects to a server that restarts.
//!
//! There are three kinds of tasks. The *main* task covers all remaining units and waits for gaps. A
//! *pushed* task covers some of them and is promoted at once, when the job falls behind its floor
//! ([`super::pace`]). Its data also satisfies the main task, which therefore delivers it again; the
//! second delivery is acknowledged and dropped. A *narrow* task covers units that could not be
//! read, sector by sector, and is promoted, since gap filling avoids sectors that are known to be
//! bad.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use headtime_sched::TaskRange;
use tokio::sync::watch;
use tokio::time::Instant;
use tonic::Code;

use super::error::AppError;
use super::job::{End, Job, Sink, Stage, State, Status};
use super::link::{Link, look};
use super::narrow::Narrow;
use super::pace::{Debt, Rates};
use super::progress::Progress;
use crate::control::client::{ClientError, Session};
use crate::control::v1::session_call::Call;
use crate::control::v1::{self, Kind, Register, TaskRef};
use crate::engine::paced;
use held::Held;

mod delivery;
mod held;

/// Ranges of one registration; more fragmented progress is coalesced.
const MAX_RANGES: usize = paced::MAX_RANGES;
/// Ranges of one pushed task.
const MAX_PUSHED: usize = 256;
/// The least size of a pushed task in bytes, or what a second brings if that is less: small pieces
/// cost the foreground more than they gain.
const LEAST_PUSHED: u64 = 256 << 10;
/// The interval at which the pace is checked.
const TICK: Duration = Duration::from_millis(250);
/// The journal's counter of the milliseconds in which the job waited for its sink.
pub(super) const WAITED: &str = "waited_milliseconds";
/// Delays before reconnecting: the first, and the longest.
const BACKOFF: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(5));

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    Main,
    /// A pushed task, with the bytes not delivered yet.
    Pushed(u64),
    Narrow,
}

/// State of one session.
#[derive(Default)]
struct Tasks {
    roles: BTreeMap<u64, Role>,
    next: u64,
    narrow: Narrow,
    /// Whether a client has suspended the session.
    suspended: bool,
    /// The unit from which the next pushed task searches.
    push_from: u64,
}

impl Tasks {
    fn pushed(&self) -> u64 {
        self.roles.values().map(|r| if let Role::Pushed(left) = r { *left } else { 0 }).sum()
    }
}

struct Runner<'a> {
    job: &'a Job,
    progress: &'a mut Progress,
    sink: &'a mut (dyn Sink + Send),
    watch: &'a mut (dyn FnMut(&Status) + Send),
    rates: Rates,
    debt: Debt,
    held: Held,
    begun: Instant,
    /// Milliseconds of work in earlier runs, and of them those of waiting for the sink.
    before: (u64, u64),
    /// Time spent working, of that the time of waiting for the sink, and the time up to which both
    /// are accounted for.
    worked: Duration,
    waited: Duration,
    reckoned: Instant,
    saved: Instant,
    save_after: Duration,
    session: Option<u32>,
    /// Whether an event has arrived in this session.
    heard: bool,
    connected: bool,
}

async fn stopped(stop: &mut watch::Receiver<bool>) {
    // A dropped sender counts as a stop.
    let _ = stop.wait_for(|&s| s).await;
}

/// Returns what the sink reports next; never completes for a sink that finishes units at once, or
/// that has ended.
async fn next_stage(sink: &mut (dyn Sink + Send)) -> (u64, Stage) {
    let told = match sink.stages() {
        Some(stages) => stages.recv().await,
        None => None,
    };
    match told {
        Some(stage) => stage,
        None => std::future::pending().await,
    }
}

/// Runs a job until it completes, `stop` becomes true, or it fails. In all cases the journal
/// records what was done.
pub async fn run(
    job: &Job,
    progress: &mut Progress,
    sink: &mut (dyn Sink + Send),
    watch: &mut (dyn FnMut(&Status) + Send),
    mut stop: watch::Receiver<bool>,
) -> Result<End, AppError> {
    let now = Instant::now();
    let before = (progress.notes.milliseconds, progress.notes.counts.get(WAITED).copied().unwrap_or(0));
    let mut runner = Runner {
        job,
        before,
        progress,
        sink,
        watch,
        rates: Rates::default(),
        debt: Debt::new(job.floor),
        held: Held::default(),
        begun: now,
        worked: Duration::ZERO,
        waited: Duration::ZERO,
        reckoned: now,
        saved: now,
        save_after: job.save_every,
        session: None,
        heard: false,
        connected: false,
    };
    let end = runner.sessions(&mut stop).await;
    let saved = match end {
        // There is nothing left to continue, so a failure to write the journal does not matter.
        Ok(End::Complete) => runner.save_data().map(|()| _ = runner.write_journal()),
        _ => runner.save(),
    };
    end.and_then(|end| saved.map(|()| end))
}

/// Returns whether the session may be opened again after this error.
fn may_come_again(e: &AppError) -> bool {
    match e {
        // Closed because its events were not read in time: this machine or this program was
        // suspended.
        AppError::Client(ClientError::Status(s)) if s.code() == Code::ResourceExhausted => true,
        AppError::Client(e) => e.is_temporary(),
        _ => false,
    }
}

impl Runner<'_> {
    async fn sessions(&mut self, stop: &mut watch::Receiver<bool>) -> Result<End, AppError> {
        let mut wait = BACKOFF.0;
        loop {
            let why = match self.session(stop).await {
                // A server that was never reached is reported to the user as an error.
                Err(e) if self.connected && may_come_again(&e) => e,
                end => return end,
            };
            self.session = None;
            if self.job.point_in_time {
                return Err(AppError::Lost(why.to_string()));
            }
            if std::mem::take(&mut self.heard) {
                wait = BACKOFF.0;
            }
            self.save()?;
            self.tell(State::Away);
            tokio::select! {
                biased;
                () = stopped(stop) => return Ok(End::Stopped),
                () = tokio::time::sleep(wait) => {}
            }
            wait = (wait * 2).min(BACKOFF.1);
            self.reckoned = Instant::now();
        }
    }

    /// Runs one session.
    async fn session(&mut self, stop: &mut watch::Receiver<bool>) -> Result<End, AppError> {
        if self.progress.is_complete() {
            return Ok(End::Complete);
        }
        let Some(window) = self.next_window(stop).await? else { return Ok(End::Stopped) };
        let opening = async {
            let (mut control, info) = look(&self.job.control).await?;
            self.job.check(self.progress, &info)?;
            let window = (window / self.progress.sector_bytes()).max(1);
            let session = Session::open(&mut control, &info, &self.job.name, self.job.priority, window).await?;
            let mut link = Link::new(session, window);
            if let Some(mb) = self.job.max_mb_s {
                link.say(Call::MaxMbS(mb));
            }
            Ok::<Link, AppError>(link)
        };
        let mut link = tokio::select! {
            biased;
            opened = opening => opened?,
            () = stopped(stop) => return Ok(End::Stopped),
        };
        self.connected = true;
        self.session = Some(link.opened.session);
        self.reckoned = Instant::now();
        let mut tasks = Tasks::default();
        self.register_main(&mut tasks, &mut link);
        let mut tick = tokio::time::interval(TICK);
        tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            if self.progress.is_complete() {
                return Ok(End::Complete);
            }
            // Events come last, so that a continuous flow of them does not block the rest.
            tokio::select! {
                biased;
                () = stopped(stop) => return Ok(End::Stopped),
                _ = tick.tick() => self.tick(&mut tasks, &mut link)?,
                (index, stage) = next_stage(self.sink) => link.acknowledge(self.handle_stage(index, stage)),
                event = link.next() => self.handle_event(event?, &mut tasks, &mut link)?,
            }
        }
    }

    fn register(&mut self, tasks: &mut Tasks, link: &mut Link, role: Role, ranges: &[TaskRange], unit: u32) -> u64 {
        let task = tasks.next;
        tasks.next += 1;
        tasks.roles.insert(task, role);
        link.say(Call::Register(Register {
            task,
            kind: Kind::Read.into(),
            ranges: ranges.iter().map(|r| v1::Range { lbn: r.lbn, count: r.count }).collect(),
            blksize: unit,
            min_pickup: unit,
            point_in_time: self.job.point_in_time && role == Role::Main,
        }));
        if role != Role::Main {
            link.say(Call::Promote(TaskRef { task }));
        }
        task
    }

    fn register_main(&mut self, tasks: &mut Tasks, link: &mut Link) {
        let (left, unit) = (self.progress.left(MAX_RANGES), self.progress.units().unit());
        self.register(tasks, link, Role::Main, &left, unit);
    }

    /// Does the periodic work.
    fn tick(&mut self, tasks: &mut Tasks, link: &mut Link) -> Result<(), AppError> {
        let (now, suspended) = (Instant::now(), tasks.suspended);
        self.work(now, suspended);
        let (done, total) = self.progress.bytes();
        let wall = now - self.begun;
        let owed = self.debt.owes(wall, total - done, !suspended).saturating_sub(tasks.pushed());
        let rate = self.debt.needed(wall, total - done).unwrap_or(0.0);
        if !suspended && owed > 0 && owed >= LEAST_PUSHED.min(rate as u64).min(total - done) {
            self.push(tasks, link, owed);
        }
        self.save_if_due(now)?;
        self.tell(match suspended {
            true => State::Paused,
            false if self.waits_for_sink() => State::AwaitsDestination,
            false => State::Working,
        });
        Ok(())
    }

    /// Accounts for the time until now, spent working or suspended.
    fn work(&mut self, now: Instant, suspended: bool) {
        if !suspended {
            self.worked += now - self.reckoned;
            if self.waits_for_sink() {
                self.waited += now - self.reckoned;
            }
        }
        self.reckoned = now;
        self.rates.at(self.worked);
    }

    /// Registers and promotes this number of the remaining bytes, in ascending order from where the
    /// last promoted task ended, and then from the beginning.
    fn push(&mut self, tasks: &mut Tasks, link: &mut Link, bytes: u64) {
        let (units, sector) = (self.progress.units(), self.progress.sector_bytes());
        let each = u64::from(units.unit()) * sector;
        let (mut left, mut ranges, mut taken) = (bytes, VecDeque::new(), 0);
        while left > 0 && ranges.len() < MAX_PUSHED {
            let Some((first, end)) = self.next_wanted(tasks.push_from) else {
                // Start again at the beginning, but not while some of it is in flight.
                if tasks.pushed() == 0 && ranges.is_empty() && tasks.push_from > 0 {
                    tasks.push_from = 0;
                    continue;
                }
                break;
            };
            let end = end.min(first + left.div_ceil(each));
            for range in units.stretches(first, end) {
                taken += range.count * sector;
                ranges.push_back(range);
            }
            left = left.saturating_sub((end - first) * each);
            tasks.push_from = end;
        }
        if taken > 0 {
            let unit = units.unit();
            self.register(tasks, link, Role::Pushed(taken), &Vec::from(ranges), unit);
        }
    }

    fn tell(&mut self, state: State) {
        let (done, total) = self.progress.bytes();
        let status = Status {
            state,
            session: self.session,
            done,
            total,
            lately: self.rates.lately(),
            left: self.rates.time_left(total - done).filter(|_| state.is_working()),
            promoted: self.progress.notes.promoted_bytes,
            unreadable: self.progress.notes.counts.get("unreadable_sectors").copied().unwrap_or(0),
        };
        (self.watch)(&status);
    }

    /// Records the working time, and makes the data durable if there is a journal.
    fn save_data(&mut self) -> Result<(), AppError> {
        self.progress.notes.milliseconds = self.before.0 + self.worked.as_millis() as u64;
        let waited = self.before.1 + self.waited.as_millis() as u64;
        if waited > 0 {
            self.progress.notes.counts.insert(WAITED.into(), waited);
        }
        match self.job.journal {
            Some(_) => self.sink.save(),
            None => Ok(()),
        }
    }

    /// Writes the journal.
    fn write_journal(&mut self) -> Result<(), AppError> {
        match &self.job.journal {
            Some(journal) => Ok(self.progress.save(journal)?),
            None => Ok(()),
        }
    }

    /// Writes the journal if it was not written for some time.
    fn save_if_due(&mut self, now: Instant) -> Result<(), AppError> {
        if now - self.saved >= self.save_after { self.save() } else { Ok(()) }
    }

    /// Makes the data durable first and then writes the journal.
    fn save(&mut self) -> Result<(), AppError> {
        let begun = Instant::now();
        self.save_data()?;
        self.write_journal()?;
        // A slow disk, or a large journal, must not take a large part of the time.
        self.save_after = self.job.save_every.max(begun.elapsed() * 20);
        self.saved = Instant::now();
        Ok(())
    }
}
