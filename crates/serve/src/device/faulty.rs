//! A device with injected faults, for tests of the engine.

use std::collections::VecDeque;
use std::os::fd::BorrowedFd;

use bytes::Bytes;
use headtime_disk::{Command, Dur, Kind, Time};

use super::{Device, Done, Fault};

/// A fault of one command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Planted {
    /// It fails at once and does not reach the device.
    Fails(Fault),
    /// A read returns only this number of bytes.
    Short(usize),
    /// It is carried out, but its completion is delayed by this time.
    Hangs(Dur),
    /// It never completes.
    Lost,
}

/// A device and its faults, by command number, counted from 0 in order of submission.
#[derive(Debug)]
pub struct Faulty<D> {
    inner: D,
    plan: VecDeque<(u64, Planted)>,
    sent: u64,
    /// All commands from this number on fail.
    gone_from: u64,
    marked: Vec<(u64, Planted)>,
    held: Vec<(Time, Done)>,
}

impl<D: Device> Faulty<D> {
    /// Creates a device with these faults, in ascending order of command numbers.
    pub fn new(inner: D, plan: impl IntoIterator<Item = (u64, Planted)>) -> Faulty<D> {
        let plan: VecDeque<_> = plan.into_iter().collect();
        assert!(plan.iter().zip(plan.iter().skip(1)).all(|(a, b)| a.0 < b.0), "the plan is in order");
        Faulty { inner, plan, sent: 0, gone_from: u64::MAX, marked: Vec::new(), held: Vec::new() }
    }

    /// Makes every command from this number on fail.
    pub fn gone_from(mut self, number: u64) -> Faulty<D> {
        self.gone_from = number;
        self
    }
}

impl<D: Device> Device for Faulty<D> {
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
        let number = self.sent;
        self.sent += 1;
        if number >= self.gone_from {
            self.held.push((now, Done::failed(command, Fault::Gone)));
            return;
        }
        if self.plan.front().is_some_and(|p| p.0 == number) {
            let (_, planted) = self.plan.pop_front().expect("looked at above");
            match planted {
                Planted::Fails(fault) => {
                    self.held.push((now, Done::failed(command, fault)));
                    return;
                }
                Planted::Lost => return,
                Planted::Short(_) if command.kind != Kind::Read => {}
                Planted::Short(_) | Planted::Hangs(_) => self.marked.push((command.id, planted)),
            }
        }
        self.inner.submit(command, data, now);
    }

    fn poll(&mut self, now: Time) -> Option<Done> {
        loop {
            if let Some(i) = self.held.iter().position(|(at, _)| *at <= now) {
                return Some(self.held.remove(i).1);
            }
            let mut done = self.inner.poll(now)?;
            match self.marked.iter().position(|(id, _)| *id == done.id).map(|i| self.marked.swap_remove(i).1) {
                None => return Some(done),
                Some(Planted::Short(bytes)) => {
                    done.data.truncate(bytes);
                    return Some(done);
                }
                Some(Planted::Hangs(takes)) => self.held.push((now + takes, done)),
                Some(Planted::Fails(_) | Planted::Lost) => unreachable!("these never reach the device"),
            }
        }
    }

    fn next_event(&self) -> Option<Time> {
        let held = self.held.iter().map(|(at, _)| *at).min();
        match (held, self.inner.next_event()) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }

    fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.inner.fd()
    }
}
