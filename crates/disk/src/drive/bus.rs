//! The bus between drive and host: one transfer at a time, in the first gap that fits.

use crate::profile::BusSpec;
use crate::time::{Dur, Time};

/// The bus with its reserved transfers.
#[derive(Clone, Debug)]
pub(super) struct Bus {
    read_sector_ps: u64,
    write_sector_ps: u64,
    arbitration: Dur,
    /// Reserved transfers by time; few, because few commands are outstanding.
    promised: Vec<(Time, Time)>,
}

impl Bus {
    /// Creates an idle bus for a drive with sectors of `sector_bytes`.
    pub(super) fn new(spec: &BusSpec, sector_bytes: u32) -> Bus {
        let blocks = (sector_bytes / 512).max(1) as u64;
        Bus {
            read_sector_ps: spec.read_block_ps * blocks,
            write_sector_ps: spec.write_block_ps * blocks,
            arbitration: spec.arbitration,
            promised: Vec::with_capacity(64),
        }
    }

    /// Returns the transfer time of `sectors` to the host.
    #[inline]
    pub(super) fn read_time(&self, sectors: u64) -> Dur {
        Dur((self.read_sector_ps * sectors).div_ceil(1000))
    }

    /// Returns the picoseconds per sector to the drive.
    pub(super) fn write_sector_ps(&self) -> u64 {
        self.write_sector_ps
    }

    /// Returns the transfer time of `sectors` to the drive.
    #[inline]
    pub(super) fn write_time(&self, sectors: u64) -> Dur {
        Dur((self.write_sector_ps * sectors).div_ceil(1000))
    }

    /// Reserves the bus for a transfer that can begin at `ready`, in the first gap that fits.
    /// `finish` returns the end of a transfer that begins at a given time (later than its length if
    /// it must wait for the media). Returns begin and end. Drops reservations that ended before
    /// `now`.
    pub(super) fn promise(&mut self, now: Time, ready: Time, finish: impl Fn(Time) -> Time) -> (Time, Time) {
        if !self.promised.is_empty() {
            self.promised.retain(|&(_, end)| end > now);
        }
        let mut begin = ready + self.arbitration;
        let mut end = finish(begin);
        let mut place = self.promised.len();
        for (i, &(b, e)) in self.promised.iter().enumerate() {
            if end <= b {
                place = i;
                break;
            }
            if begin < e {
                begin = e;
                end = finish(begin);
            }
        }
        self.promised.insert(place, (begin, end));
        (begin, end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bus() -> Bus {
        let spec = BusSpec {
            read_block_ps: 1_000_000,
            write_block_ps: 2_000_000,
            hold_for_reads: false,
            hold_for_writes: false,
            never_disconnect: false,
            arbitration: Dur::ZERO,
        };
        Bus::new(&spec, 4096)
    }

    #[test]
    fn a_4096_byte_sector_takes_eight_blocks_of_time() {
        assert_eq!(bus().read_time(2), Dur(16_000));
        assert_eq!(bus().write_time(1), Dur(16_000));
    }

    #[test]
    fn a_short_transfer_slips_in_before_a_later_promise_and_a_long_one_goes_behind() {
        let mut b = bus();
        b.promise(Time(0), Time(10_000), |t| t + Dur(5_000));
        let short = b.promise(Time(0), Time(1_000), |t| t + Dur(2_000));
        assert_eq!(short, (Time(1_000), Time(3_000)));
        let long = b.promise(Time(0), Time(2_000), |t| t + Dur(9_000));
        assert_eq!(long, (Time(15_000), Time(24_000)));
    }
}
