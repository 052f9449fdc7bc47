//! A virtual drive under a load that provokes its longest commands, which D1 compares with the
//! worst case.
//!
//! Commands alternate between the edges, where seeks are longest, inner tracks are slowest and 64
//! KiB often cross the end of a track; reads and writes; while another is at the drive and after a
//! pause, so that a read-ahead is under way. The angle at the head's arrival is random, so that
//! among thousands of commands some have just missed their sector. This load does not know the
//! terms of a worst case.

use headtime_disk::profile::Profile;
use headtime_disk::{Command, Drive, DriveConfig, Dur, Kind, Time};
use headtime_sim::workload::variates::{Share, Variates};

use crate::experiment::{RunError, Spec, failed};

/// Random sequence of the requests.
const SEQUENCE: u64 = 1 << 53;
/// Commands begin in this part of the disk at either edge: some cylinders.
const EDGE: u64 = 2_000;
/// The longest pause: several revolutions of the slowest drive, in which a read-ahead crosses
/// tracks.
const PAUSE: Dur = Dur::from_ms(30);

/// The busy times of a drive.
#[derive(Clone, Debug, Default)]
pub(crate) struct BusyTimes {
    /// Busy time of each command: from when it was sent, its predecessor was complete and the arm
    /// stood still.
    times: Vec<Dur>,
}

impl BusyTimes {
    /// The longest.
    pub(crate) fn longest(&self) -> Dur {
        self.times.iter().copied().max().unwrap_or(Dur::ZERO)
    }

    /// Commands that took longer than `worst`.
    pub(crate) fn over(&self, worst: Dur) -> u64 {
        self.times.iter().filter(|t| **t > worst).count() as u64
    }
}

/// Returns the drive with all random figures at their limits: half of the seeks have the largest
/// error, and the head fails to settle as many times as allowed.
pub(crate) fn at_its_limits(profile: &Profile) -> Profile {
    let mut p = profile.clone();
    p.noise.seek_sd = p.noise.seek_max;
    if p.noise.settle_retry_turns > 0 {
        (p.noise.settle_retry_ppm, p.noise.settle_retry_again_ppm) = (1_000_000, Some(1_000_000));
    }
    p
}

/// Sends `commands` commands of `sectors` sectors to the drive, two at a time or one after a pause.
/// `moves_on`: how long after its start a completed command may still move the arm
/// ([`headtime_sched::internals::at_drive::AtDrive`] counts that as busy time of the drive).
pub(crate) fn busy_times(
    spec: &Spec,
    truth: &Profile,
    sectors: u32,
    commands: u64,
    moves_on: Dur,
    seed: u64,
) -> Result<BusyTimes, RunError> {
    let config = DriveConfig::default().with_seed(seed);
    let mut drive = Drive::new(truth, config).map_err(|e| failed(spec, e))?;
    let mut rng = Variates::new(seed, SEQUENCE);
    let half = Share::new(1, 2).unwrap_or(Share::NONE);
    let last = drive.capacity().saturating_sub(u64::from(sectors));
    let edge = (drive.capacity() / EDGE).clamp(1, last.max(1));
    let mut found = BusyTimes::default();
    let (mut now, mut free) = (Time::ZERO, Time::ZERO);
    let mut sent: Vec<(u64, Time)> = Vec::new();
    let most = drive.depth().min(2);
    for id in 0..commands {
        let from = rng.below(edge);
        let lbn = if id % 2 == 0 { from } else { last - from };
        let kind = if rng.chance(half) { Kind::Read } else { Kind::Write };
        let alone = rng.chance(half);
        while sent.len() >= most || alone && !sent.is_empty() {
            let done = answer(spec, &mut drive, &mut now)?;
            let at = sent.iter().position(|s| s.0 == done).ok_or_else(|| failed(spec, "an unknown command"))?;
            let (_, since) = sent.remove(at);
            let began = since.max(free);
            found.times.push(now.saturating_since(began));
            free = now.max(began + moves_on);
        }
        if alone {
            now += Dur(rng.below(PAUSE.0));
            while drive.advance(now).is_some() {}
        }
        let command = Command { id, kind, lbn, count: sectors, fua: false };
        drive.submit(command, now).map_err(|e| failed(spec, e))?;
        sent.push((id, now));
    }
    Ok(found)
}

/// Returns the next completed command; sets `now` to when the host notices it.
fn answer(spec: &Spec, drive: &mut Drive, now: &mut Time) -> Result<u64, RunError> {
    while let Some(at) = drive.next_event() {
        if let Some(done) = drive.advance(at) {
            *now = done.at.max(*now);
            return Ok(done.id);
        }
    }
    Err(failed(spec, "the drive does not answer"))
}
