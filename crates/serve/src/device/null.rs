//! A device that completes at once and stores nothing, to measure the cost of a request without a
//! device.

use std::collections::VecDeque;
use std::os::fd::BorrowedFd;

use bytes::Bytes;
use headtime_disk::{Command, Kind, Time};

use super::{Device, Done, bytes_of};

/// A device of zeros.
#[derive(Debug)]
pub struct Null {
    sectors: u64,
    sector_bytes: u32,
    depth: u32,
    zeros: Bytes,
    done: VecDeque<Done>,
}

impl Null {
    /// Creates a device of `sectors` sectors of zeros.
    pub fn new(sectors: u64, sector_bytes: u32, depth: u32) -> Null {
        Null { sectors, sector_bytes, depth, zeros: Bytes::new(), done: VecDeque::new() }
    }
}

impl Device for Null {
    fn sectors(&self) -> u64 {
        self.sectors
    }
    fn sector_bytes(&self) -> u32 {
        self.sector_bytes
    }
    fn depth(&self) -> u32 {
        self.depth
    }
    fn submit(&mut self, command: &Command, _: Bytes, _: Time) {
        let len = if command.kind == Kind::Read { bytes_of(command, self.sector_bytes) } else { 0 };
        if self.zeros.len() < len {
            self.zeros = vec![0; len].into();
        }
        self.done.push_back(Done::ok(command.id, self.zeros.slice(..len)));
    }
    fn poll(&mut self, _: Time) -> Option<Done> {
        self.done.pop_front()
    }
    fn next_event(&self) -> Option<Time> {
        (!self.done.is_empty()).then_some(Time::ZERO)
    }
    fn fd(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}
