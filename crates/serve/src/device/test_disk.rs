//! A virtual drive for tests of storage software: it has faults, its power fails, and it may be
//! faster than the real one.
//!
//! Its plan (`faults::plan`) says what happens and when, by the clock on the wall. The drive's own
//! time passes `speed` times as fast, so that seeks, revolutions and transfers take a fraction of
//! the time.

use std::os::fd::BorrowedFd;

use bytes::Bytes;
use headtime_disk::{Command, Dur, Fault as Planted, Time};
use tokio::sync::oneshot;

use super::virtual_drive::VirtualDrive;
use super::{Device, Done};
use crate::faults::calls::{Answer, Call, Calls, Status};
use crate::faults::plan::{Action, Fault, Plan, PlanError, without};
use crate::faults::table::DriveSize;
use crate::faults::worn::Random;

/// The highest speed. At 1000 a revolution takes 8 us, less than the engine needs for a command.
pub const MAX_SPEED: u64 = 1000;

/// A virtual drive with faults.
#[derive(Debug)]
pub struct TestDisk {
    inner: VirtualDrive,
    plan: Plan,
    speed: u64,
    calls: Calls,
    /// When the power returns by itself.
    power_on_at: Option<Time>,
    had_write_cache: bool,
    random: Random,
    /// Answers that wait until a power failure is complete.
    settling: Vec<(oneshot::Sender<Answer>, Answer)>,
}

impl TestDisk {
    /// Creates a drive `speed` times as fast as `inner`, from 1 to [`MAX_SPEED`]. `seed`: of what
    /// power failures lose.
    pub fn new(inner: VirtualDrive, speed: u64, seed: u64) -> TestDisk {
        assert!((1..=MAX_SPEED).contains(&speed), "the speed was checked");
        let size = DriveSize { sectors: inner.sectors(), sector_bytes: inner.sector_bytes() };
        let had_write_cache = inner.has_write_cache();
        TestDisk {
            inner,
            plan: Plan::new(size),
            speed,
            calls: Calls::default(),
            power_on_at: None,
            had_write_cache,
            random: Random(seed),
            settling: Vec::new(),
        }
    }

    /// Adds faults before the first command.
    ///
    /// # Errors
    /// There are too many.
    pub fn with_faults(mut self, faults: Vec<Fault>) -> Result<TestDisk, PlanError> {
        for fault in faults {
            self.plan.add(fault, Time::ZERO)?;
        }
        Ok(self)
    }

    /// Returns the queue of calls that change its faults.
    pub fn calls(&self) -> Calls {
        self.calls.clone()
    }

    /// Returns the drive's own time.
    fn own(&self, now: Time) -> Time {
        Time(now.0.saturating_mul(self.speed))
    }

    /// Returns the drive's faults, with the times of the clock on the wall.
    fn planted(&self) -> Vec<Planted> {
        let slower = |f: &Planted| match *f {
            Planted::Hang { at, takes } => Planted::Hang { at, takes: Dur(takes.0 / self.speed) },
            ref other => other.clone(),
        };
        self.inner.faults().iter().map(slower).collect()
    }

    fn plant(&mut self, faults: Vec<Planted>, now: Time) {
        let faster = |f: Planted| match f {
            Planted::Hang { at, takes } => Planted::Hang { at, takes: Dur(takes.0.saturating_mul(self.speed)) },
            other => other,
        };
        let faults = faults.into_iter().map(faster).collect();
        self.inner.set_faults(faults, self.own(now));
    }

    /// Does what is due.
    fn act(&mut self, now: Time) {
        if self.power_on_at.is_some_and(|at| at <= now) {
            self.power_on(now);
        }
        while let Some(action) = self.plan.due(now) {
            let own = self.own(now);
            match action {
                Action::Plant(planted) => {
                    let mut faults = self.planted();
                    faults.extend(planted);
                    self.plant(faults, now);
                }
                Action::PowerOff { lasts, lost } => {
                    self.inner.power_off(lost, &mut self.random, own);
                    self.power_on_at = lasts.map(|d| now + d);
                }
                Action::PowerOn => self.power_on(now),
                Action::WriteCache(on) => self.inner.switch_write_cache(on, own),
            }
        }
    }

    fn power_on(&mut self, now: Time) {
        self.power_on_at = None;
        self.inner.power_on(self.own(now));
    }

    fn clear(&mut self, number: Option<u32>, now: Time) -> Result<usize, PlanError> {
        let cleared = self.plan.clear(number)?;
        if !cleared.planted.is_empty() {
            self.plant(without(&self.planted(), &cleared.planted), now);
        }
        if cleared.power {
            self.power_on(now);
        }
        if cleared.write_cache {
            self.inner.switch_write_cache(self.had_write_cache, self.own(now));
        }
        Ok(cleared.faults)
    }

    fn status(&self, now: Time) -> Status {
        Status {
            seconds: now.0 as f64 / 1e9,
            commands: self.plan.commands(),
            speed: self.speed,
            power: self.inner.has_power(),
            write_cache: self.inner.has_write_cache(),
            volatile_sectors: self.inner.volatile_sectors(),
            problem: self.inner.problem().map(Into::into),
            faults: self.plan.list(&self.planted()),
        }
    }

    fn answer(&mut self, call: Call, now: Time) -> Answer {
        match call {
            Call::List => Answer::Status(self.status(now)),
            Call::Clear(number) => match self.clear(number, now) {
                Ok(faults) => Answer::Cleared(faults),
                Err(e) => Answer::Refused(e.to_string()),
            },
            Call::Add(table) => {
                let fault = table.fault(self.plan.drive()).map_err(|e| e.to_string());
                match fault.and_then(|fault| self.plan.add(fault, now).map_err(|e| e.to_string())) {
                    Ok(number) => {
                        self.act(now);
                        Answer::Added(number)
                    }
                    Err(why) => Answer::Refused(why),
                }
            }
        }
    }

    /// Answers the calls that wait.
    fn answer_calls(&mut self, now: Time) {
        while let Some((call, reply)) = self.calls.take() {
            let answer = self.answer(call, now);
            self.settling.push((reply, answer));
        }
        if !self.settling.is_empty() && self.inner.is_settled() {
            for (reply, answer) in self.settling.drain(..) {
                // The caller may have gone.
                let _ = reply.send(answer);
            }
        }
    }
}

impl Device for TestDisk {
    fn sectors(&self) -> u64 {
        self.inner.sectors()
    }
    fn sector_bytes(&self) -> u32 {
        self.inner.sector_bytes()
    }
    fn depth(&self) -> u32 {
        self.inner.depth()
    }

    fn submit(&mut self, command: &Command, data: Bytes, now: Time) {
        self.plan.count_command();
        self.act(now);
        self.inner.submit(command, data, self.own(now));
    }

    fn poll(&mut self, now: Time) -> Option<Done> {
        self.act(now);
        let done = self.inner.poll(self.own(now)).map(|done| {
            let late = done.late.map(|late| Dur(late.0 / self.speed));
            Done { late, ..done }
        });
        self.answer_calls(now);
        done
    }

    fn next_event(&self) -> Option<Time> {
        if !self.calls.is_empty() {
            return Some(Time::ZERO);
        }
        let own = self.inner.next_event().map(|at| Time(at.0.div_ceil(self.speed)));
        [own, self.plan.next_time(), self.power_on_at].into_iter().flatten().min()
    }

    fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.inner.fd()
    }
}

#[cfg(test)]
mod tests;
