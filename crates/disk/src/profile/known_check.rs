//! Contradictions between what a profile knows of a figure and the figure.

use super::fault::{ProfileError, Reason};
use super::known::Figure;
use super::places::Places;
use super::spec::Profile;

/// Checks that no figure stated to be unknown has a value.
pub(super) fn check(p: &Profile, places: &Places) -> Result<(), ProfileError> {
    for figure in p.known.unknown().iter() {
        let (noise, mechanics) = (&p.noise, &p.mechanics);
        let given = match figure {
            Figure::SettleTurns if noise.settle_retry_turns > 0 => {
                format!("settle_retry_turns = {}", noise.settle_retry_turns)
            }
            Figure::Recalibration if noise.recalibrate_takes.0 > 0 => {
                format!("recalibrate_takes_ms = {}", noise.recalibrate_takes.as_ms_f64())
            }
            Figure::SeekSpread if noise.seek_max.0 > 0 => format!("seek_max_us = {}", noise.seek_max.0 as f64 / 1e3),
            Figure::Overlap if noise.overlap_jitter_per_4k.0 > 0 => {
                format!("overlap_jitter_per_4k_us = {}", noise.overlap_jitter_per_4k.0 as f64 / 1e3)
            }
            Figure::WriteSettle if mechanics.write_seek.is_some() => "write_seek_ms".into(),
            Figure::WriteSettle if mechanics.write_settle_ns != 0 => {
                format!("write_settle_ms = {}", mechanics.write_settle_ns as f64 / 1e6)
            }
            // Unknown write figures are derived from reads, so their presence means nothing.
            _ => continue,
        };
        let reason = Reason::Expected {
            expected: format!("no figure beside `{} = \"unknown\"` in [known]", figure.key()),
            found: given,
        };
        return Err(ProfileError { at: places.key(&format!("known.{}", figure.key())).clone(), reason });
    }
    Ok(())
}
