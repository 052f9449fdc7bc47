//! Signs of shingled recording, if the drive may be written to.
//!
//! On shingled tracks a sector cannot be rewritten alone: its neighbours would be lost. A drive
//! that hides this (drive-managed) writes elsewhere, as a log, and moves the data home after a long
//! idle time (Aghayev and Desnoyers, Skylight, 2015, section 2). So a rewritten sector is at
//! another angle than before. On any other drive it stays in place.

use headtime_disk::{Dur, Kind, Outcome};

use crate::device::Ask;
use crate::error::ProbeError;
use crate::habits::Seen;
use crate::sampler::Sampler;
use crate::spindle::Spindle;
use crate::tracks::Tracer;

/// Number of sectors written. A moved sector is at its old angle by chance with a probability of
/// some per cent.
const SECTORS: usize = 16;
/// Time after which a cache's late writes have reached the media, but no cleaning has begun.
const WRITTEN_BACK: Dur = Dur::from_ms(300);

/// Overwrites some sectors of `region` (first and end LBN), and returns how many moved.
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
    // Angles come from the media: a sector still in the cache is read again after eviction.
    for (lbn, angle) in written {
        let off = tracer.off(lbn, angle)?;
        seen.observe(off.abs() > tracer.same());
    }
    Ok(seen)
}
