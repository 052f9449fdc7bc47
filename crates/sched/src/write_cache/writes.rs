//! Writing of dirty data to the disk: for free, by tasks of many ranges, or in the foreground.

use std::collections::BTreeMap;
use std::marker::PhantomData;

use super::Traffic;
use super::cache::{Cache, State};
use super::calls::{Call, Calls, Tokens, WRITE};
use crate::tasks::TaskRange;

/// Maximum bytes of tasks at the scheduler, which accepts 64 MiB.
const MAX_STAGED: u64 = 48 << 20;
/// Maximum bytes of one task: they are sent without interruption, and foreground writes wait behind
/// them.
const MAX_TASK: u64 = 4 << 20;
/// Maximum ranges of one task, each sent in one call: the requests of other clients wait behind
/// them.
const MAX_RANGES: usize = 256;
/// Maximum tasks at the scheduler.
const MAX_TASKS: usize = 1024;
/// Calls that may be queued before another task is registered.
const MAX_CALLS: usize = 256;
/// Minimum bytes written in a gap: also the unit that programs write.
const UNIT: u64 = 4096;
/// Foreground writes in flight: enough to choose from.
const MAX_THROUGH: usize = 32;
/// Maximum bytes of one of them.
const LONGEST_THROUGH: u64 = 1 << 20;
/// Urgent extents examined for one that may be sent.
const TRIES: usize = 256;

/// A foreground write in flight.
#[derive(Debug)]
struct Through {
    range: TaskRange,
    /// Its extents when it was sent, each with the write that it came with.
    pieces: Vec<(TaskRange, u64)>,
}

/// All writes in progress.
#[derive(Debug)]
pub(super) struct Writes<T> {
    sector: u64,
    /// Sectors of each task whose data the scheduler has.
    tasks: BTreeMap<u64, u64>,
    staged: u64,
    through: BTreeMap<u64, Through>,
    /// Their sectors: first, and one past the last. No two overlap.
    busy: BTreeMap<u64, u64>,
    next_task: u64,
    /// Where the search for the next write begins.
    reached: u64,
    /// Maximum bytes of a foreground write.
    longest: u64,
    traffic: PhantomData<T>,
}

impl<T: Traffic> Writes<T> {
    pub(super) fn new(sector_bytes: u32) -> Writes<T> {
        Writes {
            sector: u64::from(sector_bytes),
            tasks: BTreeMap::new(),
            staged: 0,
            through: BTreeMap::new(),
            busy: BTreeMap::new(),
            next_task: 0,
            reached: 0,
            longest: LONGEST_THROUGH,
            traffic: PhantomData,
        }
    }

    /// Sets the maximum bytes of neighbours that are written together; [`LONGEST_THROUGH`] remains
    /// a limit.
    pub(super) fn set_longest(&mut self, bytes: u64) {
        self.longest = bytes.min(LONGEST_THROUGH);
    }

    fn is_busy(&self, range: &TaskRange) -> bool {
        self.busy.range(..range.end()).next_back().is_some_and(|(_, &end)| end > range.lbn)
    }

    /// Registers one task for waiting extents without one. Sectors with a foreground write in
    /// flight are deferred, so that the older data cannot land after the newer.
    pub(super) fn register(&mut self, cache: &mut Cache<T>, calls: &mut Calls<T>) {
        if self.tasks.len() >= MAX_TASKS || calls.others.len() >= MAX_CALLS {
            return;
        }
        let room = MAX_STAGED.saturating_sub(self.staged * self.sector).min(MAX_TASK);
        let (mut chosen, mut ranges, mut sectors) = (Vec::new(), Vec::<TaskRange>::new(), 0);
        for lbn in cache.unassigned() {
            let r = cache.range_of(lbn);
            let continues = ranges.last().is_some_and(|last| last.end() == lbn);
            if (sectors + r.count) * self.sector > room || ranges.len() == MAX_RANGES && !continues {
                break;
            }
            if self.is_busy(&r) {
                continue;
            }
            match ranges.last_mut() {
                Some(last) if last.end() == lbn => last.count += r.count,
                _ => ranges.push(r),
            }
            sectors += r.count;
            chosen.push(lbn);
        }
        if chosen.is_empty() {
            return;
        }
        self.next_task += 1;
        let task = self.next_task;
        let unit = (UNIT / self.sector).max(1) as u32;
        calls.others.push_back(Call::Register { task, ranges: ranges.clone(), unit });
        let mut rest = &chosen[..];
        for range in ranges {
            let (pieces, others) = rest.split_at(rest.partition_point(|&lbn| lbn < range.end()));
            rest = others;
            let data = joined(cache, pieces);
            calls.others.push_back(Call::Data { task, lbn: range.lbn, data });
        }
        for lbn in chosen {
            cache.change(lbn, |e| e.task = Some(task));
        }
        self.tasks.insert(task, sectors);
        self.staged += sectors;
    }

    /// Reduces the sectors of a task at the scheduler.
    fn dealt_with(&mut self, task: u64, sectors: u64) {
        if let Some(left) = self.tasks.get_mut(&task) {
            let sectors = sectors.min(*left);
            *left -= sectors;
            self.staged -= sectors;
        }
    }

    /// Handles sectors of a task that are on the disk.
    pub(super) fn written(&mut self, cache: &mut Cache<T>, task: u64, range: &TaskRange) {
        self.dealt_with(task, range.count);
        for lbn in cache.of_task(range, task) {
            // An extent that is also in flight in the foreground is removed when that is answered.
            match cache.at(lbn).state {
                State::Through(_) => cache.change(lbn, |e| e.task = None),
                State::Waiting | State::Urgent | State::Failed => _ = cache.remove(lbn),
            }
        }
    }

    /// Handles sectors that a task will not write. Those not superseded get the state `then`.
    pub(super) fn not_written(&mut self, cache: &mut Cache<T>, task: u64, range: &TaskRange, then: State) {
        self.dealt_with(task, range.count);
        for lbn in cache.of_task(range, task) {
            cache.change(lbn, |e| {
                e.task = None;
                if e.state == State::Waiting {
                    e.state = then;
                }
            });
        }
    }

    /// Handles the end or rejection of a task. After a regular end all its sectors have been
    /// reported.
    pub(super) fn ended(&mut self, cache: &mut Cache<T>, task: u64, then: State) {
        let Some(left) = self.tasks.remove(&task) else { return };
        self.staged -= left;
        if left > 0 {
            let all = TaskRange { lbn: 0, count: u64::MAX };
            self.not_written(cache, task, &all, then);
        }
    }

    /// Sends urgent extents in LBN order, each with its neighbours, as long as there is room:
    /// writes in flight together lie near each other, and the scheduler chooses among them.
    pub(super) fn send(&mut self, cache: &mut Cache<T>, tokens: &mut Tokens, calls: &mut Calls<T>) {
        while self.through.len() < MAX_THROUGH {
            // Two writes of the same sectors are sent one after the other: each is answered before
            // the next is sent.
            let next = cache.urgent(self.reached).take(TRIES).find(|&lbn| !self.is_busy(&cache.range_of(lbn)));
            let Some(first) = next else { return };
            let mut pieces = vec![cache.range_of(first)];
            let mut end = pieces[0].end();
            let alone = cache.at(first).alone;
            while !alone && cache.is(end, State::Urgent) && !cache.at(end).alone {
                let r = cache.range_of(end);
                if (r.end() - first) * self.sector > self.longest || self.is_busy(&r) {
                    break;
                }
                pieces.push(r);
                end = r.end();
            }
            let token = tokens.next(WRITE);
            let range = TaskRange { lbn: first, count: end - first };
            let data = joined(cache, &pieces.iter().map(|r| r.lbn).collect::<Vec<_>>());
            let pieces: Vec<(TaskRange, u64)> = pieces.into_iter().map(|r| (r, cache.at(r.lbn).seq)).collect();
            for (r, _) in &pieces {
                cache.change(r.lbn, |e| e.state = State::Through(token));
            }
            self.busy.insert(first, end);
            self.through.insert(token, Through { range, pieces });
            self.reached = end;
            calls.others.push_back(Call::Write { token, range, data });
        }
    }

    /// Returns the end of what was sent last.
    pub(super) fn reached(&self) -> u64 {
        self.reached
    }

    fn take(&mut self, token: u64) -> Option<Through> {
        let through = self.through.remove(&token)?;
        self.busy.remove(&through.range.lbn);
        Some(through)
    }

    /// Handles a foreground write that is on the disk; returns its bytes.
    pub(super) fn answered(&mut self, cache: &mut Cache<T>, token: u64) -> u64 {
        let Some(through) = self.take(token) else { return 0 };
        for lbn in cache.of_token(&through.range, token) {
            cache.remove(lbn);
        }
        for (range, seq) in &through.pieces {
            cache.settle(range, *seq);
        }
        through.range.count * self.sector
    }

    /// Handles a failed foreground write. It is retried in small pieces; a piece that fails is
    /// marked as failed until the next attempt. Returns the extents marked.
    pub(super) fn failed(&mut self, cache: &mut Cache<T>, token: u64) -> Vec<u64> {
        let Some(Through { range, .. }) = self.take(token) else { return Vec::new() };
        let unit = (UNIT / self.sector).max(1);
        let small = range.count <= unit;
        cache.split_into(&range, unit);
        // Requests that waited for these sectors may now wait for the data that replaced some of
        // them.
        for lbn in cache.inside(&range) {
            if cache.at(lbn).state == State::Waiting {
                cache.change(lbn, |e| e.state = State::Urgent);
            }
        }
        let all = cache.of_token(&range, token);
        for &lbn in &all {
            cache.change(lbn, |e| {
                e.alone = true;
                e.state = if small { State::Failed } else { State::Urgent };
            });
        }
        if small { all } else { Vec::new() }
    }

    /// Retries the failed extents.
    pub(super) fn retry(&mut self, cache: &mut Cache<T>) {
        for lbn in cache.failed() {
            cache.change(lbn, |e| e.state = State::Urgent);
        }
    }

    /// Handles a new session. No task has data, and what the last session may still be writing in
    /// the foreground is written again in the foreground: the scheduler carries those out in order.
    pub(super) fn forget_session(&mut self, cache: &mut Cache<T>) {
        (self.staged, self.next_task) = (0, 0);
        self.tasks.clear();
        self.busy.clear();
        for lbn in cache.all_of_tasks() {
            cache.change(lbn, |e| e.task = None);
        }
        for Through { range, .. } in std::mem::take(&mut self.through).into_values() {
            for lbn in cache.inside(&range) {
                if cache.at(lbn).state != State::Failed {
                    cache.change(lbn, |e| e.state = State::Urgent);
                }
            }
        }
    }
}

/// Returns the data of consecutive extents.
fn joined<T: Traffic>(cache: &Cache<T>, extents: &[u64]) -> T::Data {
    match extents {
        [one] => cache.at(*one).data.clone(),
        many => T::join(&many.iter().map(|&lbn| &cache.at(lbn).data).collect::<Vec<_>>()),
    }
}
