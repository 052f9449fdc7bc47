//! Signs of shingled recording, where the drive may be written to.
//!
//! On a drive with shingled tracks a sector cannot be written alone: its neighbours would be lost.
//! A drive that hides this (drive-managed) puts what is written somewhere else, as a log, and moves
//! it home when it is idle for long (Aghayev and Desnoyers, Skylight, 2015, section 2). So a sector
//! that was written is found at another angle than before. On any other drive it stays where it is.

use headtime_disk::command::{Kind, Outcome};
use headtime_disk::time::Dur;

use crate::device::Ask;
use crate::habits::Seen;
use crate::sampler::{ProbeError, Sampler};
use crate::spindle::Spindle;
use crate::tracks::Tracer;

/// Sectors that are written. That one of another place lies at its old angle has a chance of some
/// per cent.
const SECTORS: usize = 16;
/// Whatever is written back late from a cache has reached the media by then, and nobody has begun
/// to move it home.
const WRITTEN_BACK: Dur = Dur::from_ms(300);

/// Of some sectors of `region`, LBNs from and to, of which nothing is left, those that lie
/// elsewhere once they were written.
///
/// # Errors
/// As [`Sampler::run`].
pub fn moved(sampler: &mut Sampler, spindle: &mut Spindle, region: (u64, u64)) -> Result<Seen, ProbeError> {
    sampler.stage("shingles");
    let mut seen = Seen::default();
    let end = region.1.min(sampler.sectors());
    let Some(room) = end.checked_sub(region.0).filter(|r| *r > 0) else { return Ok(seen) };
    let mut tracer = Tracer { sampler, spindle };
    let mut written = Vec::with_capacity(SECTORS);
    for _ in 0..SECTORS {
        let lbn = region.0 + tracer.sampler.below(room);
        let angle = tracer.steady(lbn)?;
        let answer = tracer.sampler.run(&[Ask { kind: Kind::Write, ..Ask::read(lbn, 1) }], 1)?[0];
        if answer.outcome == Outcome::Ok {
            written.push((lbn, angle));
        }
    }
    let not_before = tracer.sampler.now() + WRITTEN_BACK;
    let elsewhere = tracer.sampler.below(tracer.sectors());
    tracer.sampler.run(&[Ask { not_before, ..Ask::read(elsewhere, 1) }], 1)?;
    // An angle is the media's: what a cache still holds is asked for until that answers.
    for (lbn, angle) in written {
        let off = tracer.off(lbn, angle)?;
        seen.tell(off.abs() > tracer.same());
    }
    Ok(seen)
}
