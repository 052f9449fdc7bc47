//! Freeblock calls by applications, some with invalid IDs.

use headtime_disk::Kind;
use headtime_sched::{Rate, SessionId, TaskError, TaskId, TaskRange, TaskSpec};

use super::Run;

impl Run {
    /// Returns an open session, or occasionally an invalid ID.
    fn session(&mut self) -> SessionId {
        let open = self.shadow.sessions();
        match self.rng.below(40) {
            0 => SessionId(u32::MAX - 1),
            n if !open.is_empty() => open[(n as usize * 7 + self.rng.below(64) as usize) % open.len()],
            _ => SessionId(0),
        }
    }

    fn task(&mut self) -> TaskId {
        let tasks = self.shadow.tasks();
        match self.rng.below(40) {
            0 => TaskId(u64::MAX),
            _ if tasks.is_empty() => TaskId(0),
            _ => tasks[self.rng.below(tasks.len() as u64) as usize],
        }
    }

    pub(super) fn open(&mut self) {
        let answer = self.core.open(1 + self.rng.below(5) as u32, self.now);
        if let Ok(id) = self.answered(answer, true) {
            self.shadow.opened(id);
        }
    }

    /// Counts a refusal. `known`: the ID exists, so only a limit may have been reached.
    fn answered<T>(&mut self, answer: Result<T, TaskError>, known: bool) -> Result<T, TaskError> {
        match &answer {
            Ok(_) if !known => self.shadow.tally.complain("a call with a wrong name was accepted".into()),
            Err(TaskError::Full { .. }) => self.shadow.tally.refused += 1,
            Err(_) if !known => self.shadow.tally.refused += 1,
            Err(e) => self.shadow.tally.complain(format!("a good call was refused: {e}")),
            Ok(_) => {}
        }
        answer
    }

    pub(super) fn register(&mut self) {
        let session = self.session();
        let blksize = [1, 4, 8, 16][self.rng.below(4) as usize];
        let unit = blksize << self.rng.below(3);
        let mut ranges: Vec<TaskRange> = vec![];
        for _ in 0..=self.rng.below(4) {
            let most = if self.rng.below(10) == 0 { 2_000 } else { 160 };
            let count = 1 + self.rng.below(most).min(self.area / 4);
            let range = TaskRange { lbn: self.rng.below(self.area - count), count };
            if ranges.iter().all(|r| !r.overlaps(&range)) {
                ranges.push(range);
            }
        }
        let kind = if self.rng.below(3) == 0 { Kind::Write } else { Kind::Read };
        let spec = TaskSpec { kind, ranges, blksize, min_pickup: unit };
        let known = self.shadow.is_open(session);
        let answer = self.core.register(session, &spec, self.now);
        if let Ok(task) = self.answered(answer, known) {
            self.shadow.registered(session, task, &spec);
        }
    }

    pub(super) fn abort(&mut self) {
        let task = self.task();
        let known = self.shadow.exists(task);
        let answer = self.core.abort(task, self.now);
        if self.answered(answer, known).is_ok() {
            self.shadow.aborted(task);
        }
    }

    pub(super) fn promote(&mut self) {
        let task = self.task();
        let known = self.shadow.exists(task);
        let answer = self.core.promote(task, self.now);
        let _ = self.answered(answer, known);
    }

    pub(super) fn suspend(&mut self, suspended: bool) {
        let session = self.session();
        let known = self.shadow.is_open(session);
        let answer = match suspended {
            true => self.core.suspend(session, self.now),
            false => self.core.resume(session, self.now),
        };
        if self.answered(answer, known).is_ok() {
            self.shadow.suspended(session, suspended);
        }
    }

    pub(super) fn close(&mut self) {
        let session = self.session();
        let known = self.shadow.is_open(session);
        let answer = self.core.close(session, self.now);
        if self.answered(answer, known).is_ok() {
            self.shadow.closed(session);
        }
    }

    pub(super) fn window(&mut self) {
        let session = self.session();
        let known = self.shadow.is_open(session);
        let sectors = if self.rng.below(2) == 0 { u64::MAX } else { self.rng.below(400) };
        let answer = self.core.set_window(session, sectors, self.now);
        if self.answered(answer, known).is_ok() {
            self.shadow.window(session, sectors);
        }
    }

    pub(super) fn take(&mut self) {
        let session = self.session();
        let known = self.shadow.is_open(session);
        let sectors = self.rng.below(500);
        let answer = self.core.taken(session, sectors, self.now);
        if self.answered(answer, known).is_ok() {
            self.shadow.taken(session, sectors);
        }
    }

    pub(super) fn rate(&mut self) {
        let session = self.session();
        let known = self.shadow.is_open(session);
        // No limit, a few units a second, or as much as the drive gives.
        let rate = Rate::per_second([0.0, 5e4, 5e7][self.rng.below(3) as usize]);
        let answer = self.core.set_rate(session, rate, self.now);
        if self.answered(answer, known).is_ok() {
            self.shadow.limited(session, rate.is_some());
        }
    }

    pub(super) fn priority(&mut self) {
        let session = self.session();
        let known = self.shadow.is_open(session);
        let answer = self.core.set_priority(session, 1 + self.rng.below(9) as u32, self.now);
        let _ = self.answered(answer, known);
    }
}
