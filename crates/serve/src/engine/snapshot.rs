//! The values of the engine's counters at one moment.

use std::collections::BTreeMap;

use headtime_disk::{Dur, Kind, Time};
use headtime_sched::streams::StreamStatus;
use headtime_sched::{FillReport, Overdue};

/// The reported figures of a distribution.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Spread {
    /// Number of samples.
    pub count: u64,
    /// Mean, microseconds.
    pub mean_us: f64,
    /// Median.
    pub p50_us: u64,
    /// 99th percentile.
    pub p99_us: u64,
    /// Maximum.
    pub max_us: u64,
}

/// Counters of one export's clients.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Owned {
    /// Completed reads.
    pub reads: u64,
    /// Completed writes.
    pub writes: u64,
    /// Completed flushes.
    pub flushes: u64,
    /// Failed requests.
    pub failed: u64,
    /// Sectors transferred.
    pub sectors: u64,
    /// Response time, from the engine taking a request to its completion.
    pub response: Spread,
    /// The parts of all response times together.
    pub parts: ResponseParts,
    /// Requests that wait for the limit of the export now.
    pub limited: usize,
}

/// The parts of the response times of finished requests. Their sum is the response time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ResponseParts {
    /// Waiting for the limit of their own export.
    pub limit: Dur,
    /// Waiting in the scheduler for their turn, while the disk worked.
    pub turn: Dur,
    /// Waiting in the scheduler while the disk idled for another application.
    pub idle: Dur,
    /// At the drive.
    pub drive: Dur,
}

/// Predicted head time of foreground requests, by component.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HeadTime {
    /// Seek time.
    pub seek: Dur,
    /// Rotational latency.
    pub rotate: Dur,
    /// Transfer time.
    pub transfer: Dur,
}

/// A completed command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecentCommand {
    /// Read, write or flush.
    pub kind: Kind,
    /// First sector.
    pub lbn: u64,
    /// Sectors.
    pub count: u32,
    /// Sectors at its front that were background data.
    pub free: u32,
    /// When it was dispatched.
    pub sent: Time,
    /// When its completion was noticed.
    pub done: Time,
    /// Whether it failed.
    pub failed: bool,
}

/// All counters at one moment.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    /// Time since the engine started.
    pub at: Time,
    /// Requests pending or in flight.
    pub under_way: usize,
    /// Commands in flight.
    pub at_device: usize,
    /// Counters by export number.
    pub owners: BTreeMap<u32, Owned>,
    /// Completed commands.
    pub commands: u64,
    /// Failed commands.
    pub failed: u64,
    /// Service time, from sending a command to its completion.
    pub service: Spread,
    /// Delay in noticing completions, where their time is known: a virtual drive.
    pub lateness: Spread,
    /// Head time of foreground requests, as predicted when they were dispatched.
    pub head_time: HeadTime,
    /// Time for which the device was busy.
    pub busy: Dur,
    /// Sectors transferred in gaps, without extra head time.
    pub free_sectors: u64,
    /// Predictions compared with the measured times, and those within 150 us.
    pub predictions: (u64, u64),
    /// The freeblock subsystem's report; `None` without one.
    pub freeblock: Option<FillReport>,
    /// Whether the drive's write cache is on, if its service times contradict what was declared.
    pub write_cache: Option<bool>,
    /// The streams at work and their counters.
    pub streams: Vec<StreamStatus>,
    /// Commands that exceeded the device's worst-case service time, and the last of them.
    pub overdue: (u64, Option<Overdue>),
    /// The last completed commands, the oldest first.
    pub recent: Vec<RecentCommand>,
}
