//! Classification of the difference between a prediction and the observation.

use headtime_disk::{Access, Dur};

use crate::request::Surprise;

/// Maximum error that counts as none.
pub const CLOSE: Dur = Dur::from_us(150);
/// Maximum error from a varying overlap of bus and media; also the tolerance for recognising
/// revolutions.
pub const OVERLAP: Dur = Dur::from_ms(1);
/// A completion earlier by this than seek and transfer alone would allow came from the cache.
const IMPOSSIBLE: Dur = Dur::from_us(400);

/// Classifies the difference between a predicted access and the observed head time (Lumb 2002
/// section 5.2 and figure 7 show all classes). `media` is the time in which the request's sectors
/// pass under the head.
pub(crate) fn classify(access: &Access, media: Dur, observed: Dur, period: Dur) -> Surprise {
    let predicted = access.head_time();
    let error = observed.0.abs_diff(predicted.0);
    if error <= CLOSE.0 {
        return Surprise::None;
    }
    let off_whole_turns = {
        let rest = error % period.0;
        rest.min(period.0 - rest)
    };
    let whole_turns = error >= period.0 / 2 && off_whole_turns <= OVERLAP.0 / 2;
    if observed > predicted {
        if whole_turns {
            return Surprise::ExtraTurn;
        }
    } else {
        // A revolution can be saved only by a move that was faster than predicted, where the sector
        // was predicted to be just missed.
        let moved = access.seek > Dur::ZERO;
        if whole_turns && moved && access.latency + OVERLAP >= period {
            return Surprise::EarlyTurn;
        }
        // Without a move the prediction has no such uncertainty.
        if (!moved && error > OVERLAP.0) || observed + IMPOSSIBLE < access.seek + media {
            return Surprise::CacheHit;
        }
    }
    match error <= OVERLAP.0 {
        true => Surprise::Overlap,
        false => Surprise::Other,
    }
}

#[cfg(test)]
mod tests {
    use headtime_disk::Head;

    use super::*;

    const TURN: Dur = Dur(5_985_037);

    /// Classifies a predicted access, in us, against an observed head time.
    fn seen(seek: u64, latency: u64, observed: u64) -> Surprise {
        let media = Dur::from_us(140);
        let access =
            Access { seek: Dur::from_us(seek), latency: Dur::from_us(latency), transfer: media, end: Head::default() };
        classify(&access, media, Dur::from_us(observed), TURN)
    }

    #[test]
    fn small_errors_are_no_surprise() {
        assert_eq!(seen(3_000, 2_000, 5_140 + 150), Surprise::None);
        assert_eq!(seen(3_000, 2_000, 5_140 - 150), Surprise::None);
        assert_eq!(seen(0, 0, 0), Surprise::None);
    }

    #[test]
    fn whole_turns_late_are_turns_and_parts_of_one_are_not() {
        assert_eq!(seen(3_000, 50, 3_190 + 5_985), Surprise::ExtraTurn);
        assert_eq!(seen(3_000, 50, 3_190 + 5_985 - 300), Surprise::ExtraTurn);
        assert_eq!(seen(3_000, 50, 3_190 + 3 * 5_985), Surprise::ExtraTurn);
        assert_eq!(seen(3_000, 50, 3_190 + 1_500), Surprise::Other);
        assert_eq!(seen(3_000, 50, 3_190 + 4_500), Surprise::Other);
        assert_eq!(seen(3_000, 50, 3_190 + 800), Surprise::Overlap);
    }

    #[test]
    fn a_turn_is_saved_only_where_a_sector_was_thought_to_be_just_missed() {
        assert_eq!(seen(3_000, 5_900, 9_040 - 5_985), Surprise::EarlyTurn);
        // The same difference cannot be a revolution where the latency was short: only the cache is
        // that fast.
        assert_eq!(seen(3_000, 3_000, 6_140 - 5_985), Surprise::CacheHit);
        // Nor can it be one where the head did not move at all: the same sector was read again.
        assert_eq!(seen(0, 5_900, 6_040 - 5_985), Surprise::CacheHit);
        assert_eq!(seen(3_000, 5_900, 300), Surprise::CacheHit);
        assert_eq!(seen(3_000, 4_000, 5_640), Surprise::Other);
    }
}
