//! Sectors that the drive could not read or write.
//!
//! A command over one of them takes many revolutions before it fails, which no gap has time for:
//! known bad sectors are read by stragglers only ([`super::subsystem::promotion`]). Writing them is
//! harmless, since drives reallocate bad sectors on a write.

use headtime_disk::{Command, Kind, Outcome};

use super::gap::Leg;
use crate::tasks::TaskRange;

/// Maximum sectors remembered; of more, those with the lowest LBNs are dropped and found again. A
/// drive with this number is failing.
const MAX_SECTORS: usize = 4_096;

/// The list of bad sectors.
#[derive(Clone, Debug, Default)]
pub(crate) struct Bad {
    /// Ascending.
    sectors: Vec<u64>,
}

impl Bad {
    /// Records a completed command: a sector that failed is bad until a command that covers it
    /// succeeds.
    pub(crate) fn note(&mut self, c: &Command, outcome: Outcome) {
        match outcome {
            Outcome::Ok if c.kind != Kind::Flush && !self.sectors.is_empty() => {
                let at = |lbn| self.sectors.partition_point(|&b| b < lbn);
                let (from, to) = (at(c.lbn), at(c.end()));
                self.sectors.drain(from..to);
            }
            Outcome::MediaError { lbn } => {
                if let Err(at) = self.sectors.binary_search(&lbn) {
                    self.sectors.insert(at, lbn);
                    if self.sectors.len() > MAX_SECTORS {
                        self.sectors.remove(0);
                    }
                }
            }
            _ => {}
        }
    }

    /// Returns the part of a leg that must not be touched: from the first to the last bad sector
    /// that it would read.
    pub(crate) fn within(&self, leg: &Leg) -> Option<TaskRange> {
        if leg.kind == Kind::Write {
            return None;
        }
        let at = |lbn| self.sectors.partition_point(|&b| b < lbn);
        let (from, to) = (at(leg.range().lbn), at(leg.range().end()));
        let bad = &self.sectors[from..to];
        let (first, last) = (bad.first()?, bad.last()?);
        Some(TaskRange { lbn: *first, count: last - first + 1 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command(kind: Kind, lbn: u64, count: u32) -> Command {
        Command { id: 1, kind, lbn, count, fua: false }
    }

    #[test]
    fn a_sector_is_bad_until_something_that_covers_it_succeeds() {
        let mut bad = Bad::default();
        for lbn in [30, 10, 20, 20] {
            bad.note(&command(Kind::Read, 0, 40), Outcome::MediaError { lbn });
        }
        let read = |lbn, count| Leg { kind: Kind::Read, lbn, count, merged: false };
        assert_eq!(bad.within(&read(0, 40)), Some(TaskRange { lbn: 10, count: 21 }));
        assert_eq!(bad.within(&read(11, 19)), Some(TaskRange { lbn: 20, count: 1 }));
        assert_eq!(bad.within(&read(21, 9)), None);
        assert_eq!(bad.within(&Leg { kind: Kind::Write, ..read(0, 40) }), None, "writing puts it right");
        bad.note(&command(Kind::Write, 5, 16), Outcome::Ok);
        assert_eq!(bad.within(&read(0, 40)), Some(TaskRange { lbn: 30, count: 1 }));
    }

    #[test]
    fn no_more_are_remembered_than_there_is_room_for() {
        let mut bad = Bad::default();
        for lbn in 0..MAX_SECTORS as u64 + 10 {
            bad.note(&command(Kind::Read, lbn, 1), Outcome::MediaError { lbn });
        }
        assert_eq!(bad.sectors.len(), MAX_SECTORS);
        assert_eq!(bad.sectors[0], 10);
    }
}
