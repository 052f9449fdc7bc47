//! The benchmark suite of seed 003 (Valente 2014 sections 6 and 7) as a workload: greedy readers
//! and writers of private files, and beside them a program that is started repeatedly, a video
//! player, or a developer's tools.
//!
//! Each is an [`Actor`] with application numbers of its own. A cache's writes, for which no process
//! waits, are marked asynchronous, so that a scheduler can use one queue for all of them.
//!
//! * [`files`]: readers and writers
//! * [`named`]: the suite by names
//! * [`rereader`]: hits in the drive's cache
//! * [`startup`], [`recorded`]: program start-up
//! * [`video`]: video playback
//! * [`code`]: compiling, checking out, merging

pub mod code;
pub mod files;
pub mod named;
pub mod recorded;
pub mod rereader;
pub mod startup;
pub mod video;

use headtime_disk::{Dur, Kind, Time};

use super::variates::Variates;
use super::{Ask, HostTime, Target, Workload, WorkloadError};

/// Application numbers of an actor: its own, and further ones in steps of this, one for each
/// process that it starts.
const STEP: u32 = 1024;

/// Number of distinct processes of an actor.
const MOST_PROCESSES: u32 = 1 << 20;

/// Returns the actor of an application number: its index.
pub fn actor_of(owner: u32) -> usize {
    (owner % STEP) as usize
}

/// A request of an actor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Read or write.
    pub kind: Kind,
    /// First sector.
    pub lbn: u64,
    /// Number of sectors.
    pub count: u32,
    /// Whether the actor waits for it.
    pub sync: bool,
    /// The process that submits it.
    pub process: u32,
}

/// A program of the suite.
pub trait Actor: std::fmt::Debug + Send {
    /// Returns when its next request is due; `None` while it waits for a completion, or has ended.
    fn next_due(&self) -> Option<Time>;
    /// Returns that request.
    fn take(&mut self) -> Piece;
    /// Notifies it that a request of one of its processes is finished.
    fn finished(&mut self, process: u32, now: Time);
    /// Notifies it that the run ends now: what it waits for does not come any more.
    fn ended(&mut self, _now: Time) {}
    /// Returns its further results; its bytes are counted by [`Suite`].
    fn account(&self) -> Account {
        Account::default()
    }
}

/// Results of an actor.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Account {
    /// Duration of each start-up.
    pub starts: Vec<Dur>,
    /// Time from the beginning of a start-up that was not finished at the end of the run.
    pub unfinished: Option<Dur>,
    /// Frames shown, and frames dropped.
    pub shown: u64,
    /// See `shown`.
    pub dropped: u64,
    /// Steps of work done.
    pub steps: u64,
}

/// The disk's description for actors.
#[derive(Clone, Copy, Debug)]
pub struct Disk {
    /// Number of sectors.
    pub capacity: u64,
    /// Bytes per sector.
    pub sector_bytes: u64,
}

impl Disk {
    /// Converts bytes to sectors, at least one.
    pub fn sectors(&self, bytes: u64) -> u64 {
        bytes.div_ceil(self.sector_bytes).max(1)
    }

    /// Returns the part of the disk with programs: its first fifth.
    pub fn programs(&self) -> (u64, u64) {
        (0, self.capacity / 5)
    }

    /// Returns first sector and length of file `i` of `n` in the part behind it: `bytes` long, or
    /// as long as there is room. All files are in one partition, as in the report (section 7.2),
    /// which is as large as twice its [`files::FILE`]s, or as there is room.
    pub fn file(&self, i: u64, n: u64, bytes: u64) -> (u64, u64) {
        let from = self.capacity / 4;
        let room = ((self.capacity - from) / n.max(1)).min(2 * self.sectors(files::FILE));
        (from + i * room, self.sectors(bytes).min(room))
    }
}

/// A request of an actor's process.
#[derive(Clone, Copy, Debug)]
struct UnderWay {
    owner: u32,
    sectors: u64,
    sync: bool,
}

/// A workload of several actors.
#[derive(Debug)]
pub struct Suite {
    actors: Vec<Box<dyn Actor>>,
    sector_bytes: u64,
    /// Each actor's requests in flight, oldest first.
    under_way: Vec<Vec<UnderWay>>,
    /// Host time from a completion that an actor waits for until it continues.
    host: HostTime,
    hosts: Variates,
    /// Bytes finished, per actor and second.
    seconds: Vec<Vec<u64>>,
    /// Names of the classes in statistics, and each actor's class.
    classes: Vec<String>,
    class_of: Vec<u16>,
}

impl Suite {
    /// Creates a suite of these actors on this disk. Panics with 1024 or more of them.
    pub fn new(target: &Target, actors: Vec<Box<dyn Actor>>) -> Suite {
        assert!(actors.len() < STEP as usize, "too many actors");
        let n = actors.len();
        Suite {
            actors,
            sector_bytes: u64::from(target.sector_bytes),
            under_way: vec![Vec::new(); n],
            host: HostTime::default(),
            hosts: Variates::new(0, 0),
            seconds: vec![Vec::new(); n],
            classes: Vec::new(),
            class_of: vec![0; n],
        }
    }

    /// Creates a suite of groups of actors that are separate classes in statistics, by their names.
    pub fn classed(target: &Target, groups: Vec<(&str, Vec<Box<dyn Actor>>)>) -> Suite {
        let class_of = groups.iter().enumerate().flat_map(|(i, g)| g.1.iter().map(move |_| i as u16)).collect();
        let classes = groups.iter().map(|g| g.0.to_owned()).collect();
        let suite = Suite::new(target, groups.into_iter().flat_map(|g| g.1).collect());
        Suite { classes, class_of, ..suite }
    }

    /// Sets another host time, by which an actor's notification of an awaited completion is
    /// delayed. The page cache's writes are submitted at the completion itself. `seed` is for
    /// exponential times.
    #[must_use]
    pub fn with_host(self, host: HostTime, seed: u64) -> Suite {
        Suite { host, hosts: Variates::new(seed, u64::MAX), ..self }
    }

    /// Returns the results of actor `i`.
    pub fn account(&self, i: usize) -> Account {
        self.actors[i].account()
    }

    /// Returns the bytes that actor `i` moved in each second so far.
    pub fn seconds(&self, i: usize) -> &[u64] {
        &self.seconds[i]
    }

    /// Returns the bytes that all actors moved in second `s`.
    pub fn second(&self, s: usize) -> u64 {
        self.seconds.iter().map(|of| of.get(s).copied().unwrap_or(0)).sum()
    }

    /// Returns the bytes per second that all actors moved from second `from` up to `to`.
    pub fn rate(&self, from: usize, to: usize) -> f64 {
        let sum: u64 = (from..to).map(|s| self.second(s)).sum();
        sum as f64 / (to.saturating_sub(from)).max(1) as f64
    }

    fn soonest(&self) -> Option<(Time, usize)> {
        let due = self.actors.iter().enumerate().filter_map(|(i, a)| Some((a.next_due()?, i)));
        due.min()
    }
}

impl Workload for Suite {
    fn next_due(&self) -> Option<Time> {
        self.soonest().map(|s| s.0)
    }

    fn take(&mut self) -> Result<Ask, WorkloadError> {
        let (due, i) = self.soonest().expect("asked only when something is due");
        let Piece { kind, lbn, count, sync, process } = self.actors[i].take();
        let owner = i as u32 + (process % MOST_PROCESSES) * STEP;
        self.under_way[i].push(UnderWay { owner, sectors: u64::from(count), sync });
        Ok(Ask { due, kind, lbn, count, fua: false, sync, owner, class: self.class_of[i] })
    }

    fn finished(&mut self, owner: u32, now: Time) {
        let i = actor_of(owner);
        let at = self.under_way[i].iter().position(|u| u.owner == owner).expect("what is finished was asked for");
        // Requests of one process in flight together have the same size, but the first few
        // read-ahead windows, of which the oldest is taken.
        let UnderWay { sectors, sync, .. } = self.under_way[i].remove(at);
        let second = (now.0 / 1_000_000_000) as usize;
        if self.seconds[i].len() <= second {
            self.seconds[i].resize(second + 1, 0);
        }
        self.seconds[i][second] += sectors * self.sector_bytes;
        let heard = if sync { now + self.host.draw(&mut self.hosts) } else { now };
        self.actors[i].finished(owner / STEP, heard);
    }

    fn ended(&mut self, now: Time) {
        self.actors.iter_mut().for_each(|actor| actor.ended(now));
    }

    fn endless(&self) -> bool {
        true
    }

    fn classes(&self) -> &[String] {
        &self.classes
    }

    fn measures(&self) -> Vec<(&'static str, f64)> {
        let accounts: Vec<Account> = self.actors.iter().map(|a| a.account()).collect();
        let starts: Vec<f64> = accounts.iter().flat_map(|a| &a.starts).map(|d| d.as_secs_f64()).collect();
        let sum = |of: fn(&Account) -> u64| accounts.iter().map(of).sum::<u64>() as f64;
        let mut measures = Vec::new();
        if !starts.is_empty() {
            measures.push(("starts", starts.len() as f64));
            measures.push(("start_seconds_mean", starts.iter().sum::<f64>() / starts.len() as f64));
            measures.push(("start_seconds_max", starts.iter().copied().fold(0.0, f64::max)));
        }
        let counts =
            [("frames_shown", sum(|a| a.shown)), ("frames_dropped", sum(|a| a.dropped)), ("steps", sum(|a| a.steps))];
        measures.extend(counts.into_iter().filter(|c| c.1 > 0.0));
        measures
    }
}

#[cfg(test)]
mod tests;
