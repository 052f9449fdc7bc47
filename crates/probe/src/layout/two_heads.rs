//! Drives of two surfaces whose skews to the next head and to the next cylinder differ.
//!
//! Each of their cylinders is two tracks, too few for a row: the map has them as patterns of single
//! tracks. Joined, they are rows of two tracks like the cylinders of other drives.

use crate::map::Span;
use crate::runs::Run;
use crate::spindle::fraction;

/// Joins the tracks of each cylinder, if most of the map is such pairs. A zone begins with a
/// cylinder's first track.
pub(super) fn joined(spans: &[Span]) -> Vec<Span> {
    let tracks = |s: &Span| s.times * s.runs.iter().map(|r| r.tracks).sum::<u64>();
    let all: u64 = spans.iter().map(tracks).sum();
    let in_pairs: u64 = spans.iter().filter(|s| is_pair(s)).map(tracks).sum();
    if 2 * in_pairs < all {
        return spans.to_vec();
    }
    let mut joined = Vec::with_capacity(spans.len());
    // Whether the next track is a cylinder's second one.
    let (mut second, mut sectors) = (false, 0);
    for span in spans {
        if span.runs[0].sectors != sectors {
            (second, sectors) = (false, span.runs[0].sectors);
        }
        if is_pair(span) {
            join(span, second, &mut joined);
        } else {
            second ^= tracks(span) % 2 == 1;
            sectors = span.runs.last().map_or(sectors, |r| r.sectors);
            joined.push(span.clone());
        }
    }
    joined
}

/// Two single tracks with equally many sectors that repeat.
fn is_pair(span: &Span) -> bool {
    let [a, b] = span.runs[..] else { return false };
    span.times > 2 && (a.tracks, b.tracks) == (1, 1) && a.sectors == b.sectors
}

/// Joins the pairs of a span; `second`: its first track is a cylinder's second one.
fn join(span: &Span, second: bool, joined: &mut Vec<Span>) {
    let (a, b) = (span.runs[0], span.runs[1]);
    if !second {
        let run = Run { tracks: 2, skew: fraction(b.angle - a.angle), ..a };
        joined.push(Span { runs: vec![run], ..span.clone() });
        return;
    }
    joined.push(Span::once(a));
    let run = Run { tracks: 2, skew: fraction(a.angle + span.advance - b.angle), ..b };
    joined.push(Span { runs: vec![run], times: span.times - 1, ..span.clone() });
    let last = span.times - 1;
    let angle = fraction(b.angle + fraction(span.advance * last as f64));
    joined.push(Span::once(Run { first: b.first + last * span.sectors(), angle, ..b }));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_cylinders_from_the_zones_first_track_on() {
        let run = |first, angle| Run { first, tracks: 1, sectors: 100, skew: 0.0, angle, gap: 0.0 };
        let pattern = Span { runs: vec![run(100, 0.3), run(200, 0.4)], times: 5, advance: 0.3 };
        let front = Span::once(run(0, 0.2));
        let joined = joined(&[front.clone(), pattern.clone()]);
        let shape: Vec<(u64, u64, u64)> = joined.iter().map(|s| (s.runs[0].first, s.runs[0].tracks, s.times)).collect();
        assert_eq!(shape, [(0, 1, 1), (100, 1, 1), (200, 2, 4), (1_000, 1, 1)]);
        assert!((joined[2].runs[0].skew - 0.2).abs() < 1e-9, "{joined:?}");
        assert!((joined[3].runs[0].angle - 0.6).abs() < 1e-9, "{joined:?}");
        let even = super::joined(&[pattern]);
        assert_eq!((even.len(), even[0].runs[0].tracks, even[0].times), (1, 2, 5));
        assert!((even[0].runs[0].skew - 0.1).abs() < 1e-9, "{even:?}");
    }
}
