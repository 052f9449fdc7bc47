//! Seek time by distance: a table of points with linear interpolation.
//!
//! For pruning, a scheduler uses [`SeekCurve::floor`], the minimum seek time at this or any longer
//! distance, which is monotone, as tables of real drives are not.

use crate::time::Dur;

/// Number of equal buckets for looking up distances.
const BUCKETS: usize = 2048;

/// Number of shortest distances with a bucket each; curves bend most there, and most lookups are
/// there.
const NEAR_CYLINDERS: u32 = 2048;

/// Seek time as a function of distance in cylinders, for one kind of access. Distance 0 takes no
/// time. Tables measured on real drives are not monotone and are kept as they are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeekCurve {
    /// Segment starts, ascending; the first is distance 0.
    segments: Vec<Segment>,
    /// For each bucket, the segment of its first distance.
    index: Vec<u16>,
    shift: u32,
    /// The segment of each of the shortest distances.
    near: Vec<u16>,
    /// The longest distance that is looked up.
    end: u32,
}

/// ns per cylinder times 2^16 from one knot to the next.
fn slope(a: (u32, u32), b: (u32, u32)) -> i64 {
    ((i64::from(b.1) - i64::from(a.1)) << 16) / i64::from(b.0 - a.0)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Segment {
    from: u32,
    base_ns: u32,
    /// ns per cylinder times 2^16.
    slope_fx: i64,
    /// The minimum at or beyond each distance of this segment is min(line, `floor_after_ns`).
    floor_after_ns: u32,
}

/// Why a table is not a valid seek curve.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum SeekError {
    /// No points.
    #[error("a seek table needs at least one point")]
    Empty,
    /// Distances must ascend from 1 or more.
    #[error("seek table point {index}: distance {found} does not follow {after}")]
    Order {
        /// Index of the point, from 0.
        index: usize,
        /// Its distance.
        found: u32,
        /// The previous distance.
        after: u32,
    },
    /// Too many points.
    #[error("a seek table of {found} points; at most {max} are taken")]
    TooMany {
        /// Points given.
        found: usize,
        /// Maximum number of points.
        max: usize,
    },
    /// A time outside the possible range.
    #[error("seek table point {index}: {ms} ms is not between 0 and 1000 ms")]
    Range {
        /// Index of the point, from 0.
        index: usize,
        /// Its time, in ms.
        ms: f64,
    },
    /// The line through the last two points reaches a time outside the possible range.
    #[error(
        "a seek over {distance} cylinders would take {ms:.3} ms by the table's last two points; at most 1000 ms are \
         taken"
    )]
    TooLong {
        /// The longest distance.
        distance: u32,
        /// The time there, in ms.
        ms: f64,
    },
}

/// Extrapolates to `distance`, at or beyond the last point, on the line through the last two points
/// (through distance 0 if there is only one), in ns. Negative where the table falls steeply; zero
/// for a table without points.
pub(crate) fn extrapolated_ns(points: &[(u32, Dur)], distance: u32) -> i128 {
    let (before, last) = match points {
        [] => return 0,
        [one] => ((0, Dur::ZERO), *one),
        [.., before, last] => (*before, *last),
    };
    let (rise, run) = (i128::from(last.1.0) - i128::from(before.1.0), i128::from(last.0) - i128::from(before.0));
    i128::from(last.1.0) + (i128::from(distance) - i128::from(last.0)) * rise / run.max(1)
}

/// Maximum seek time: one second.
pub(crate) const LONGEST_SEEK: Dur = Dur(1_000_000_000);

impl SeekCurve {
    /// Creates a curve from `(distance in cylinders, time)` points, with distances ascending from 1
    /// or more. Linear from (0, 0) to the first point; beyond the last point, the line through the
    /// last two, never below zero. `max_distance` is the longest distance that is looked up; the
    /// time there is at most one second.
    ///
    /// # Errors
    /// No points, too many, distances that do not ascend, a time of more than a second.
    pub fn from_points(points: &[(u32, Dur)], max_distance: u32) -> Result<SeekCurve, SeekError> {
        const MAX: usize = 60_000;
        if points.is_empty() {
            return Err(SeekError::Empty);
        }
        if points.len() > MAX {
            return Err(SeekError::TooMany { found: points.len(), max: MAX });
        }
        let mut prev = 0u32;
        for (index, &(d, t)) in points.iter().enumerate() {
            if d <= prev {
                return Err(SeekError::Order { index, found: d, after: prev });
            }
            if t > LONGEST_SEEK {
                return Err(SeekError::Range { index, ms: t.as_ms_f64() });
            }
            prev = d;
        }
        let at_end = extrapolated_ns(points, max_distance.max(prev));
        if at_end > i128::from(LONGEST_SEEK.0) {
            return Err(SeekError::TooLong { distance: max_distance, ms: at_end as f64 / 1e6 });
        }
        let mut knots = vec![(0u32, 0u32)];
        knots.extend(points.iter().map(|&(d, t)| (d, t.0 as u32)));
        let tail_slope = slope(knots[knots.len() - 2], knots[knots.len() - 1]);
        let end = max_distance.max(prev);
        Ok(SeekCurve::through(&knots, tail_slope, end))
    }

    /// Creates the curve through these knots, the first at distance 0, with a separate slope after
    /// the last.
    fn through(knots: &[(u32, u32)], tail_slope: i64, end: u32) -> SeekCurve {
        let mut segments: Vec<Segment> = knots
            .windows(2)
            .map(|w| Segment { from: w[0].0, base_ns: w[0].1, slope_fx: slope(w[0], w[1]), floor_after_ns: 0 })
            .collect();
        let last = knots[knots.len() - 1];
        segments.push(Segment { from: last.0, base_ns: last.1, slope_fx: tail_slope, floor_after_ns: 0 });
        let mut floor = segments[segments.len() - 1].at(end);
        for seg in segments.iter_mut().rev() {
            seg.floor_after_ns = floor;
            floor = floor.min(seg.base_ns);
        }
        let shift = (32 - end.leading_zeros()).saturating_sub(BUCKETS.trailing_zeros());
        let buckets = ((end >> shift) + 1) as usize;
        let index = segments_of(&segments, (0..buckets as u32).map(|b| b << shift));
        let near = segments_of(&segments, 0..NEAR_CYLINDERS.min(end.saturating_add(1)));
        SeekCurve { segments, index, shift, near, end }
    }

    /// Returns the curve corrected by measured deviations: every time is increased by `scale_ppm`
    /// parts per million, and by the offset in ns for its distance. `offsets` are `(distance in
    /// cylinders, ns)` with distances ascending from 1 or more, interpolated linearly; before the
    /// first and after the last, the nearest one applies. Times are clamped to zero and
    /// one second (after the last point, only the line's end is clamped). Thereska 2003
    /// section 4.8: what is added to predicted seeks should closely track the true ones.
    ///
    /// It takes a pass over the points and the indexes, some microseconds for a usual table, so
    /// that it can be repeated every few dozen requests. The floor is recomputed.
    pub fn corrected(&self, scale_ppm: i64, offsets: &[(u32, i64)]) -> SeekCurve {
        debug_assert!(offsets.windows(2).all(|w| w[0].0 < w[1].0), "offsets must ascend");
        let longest = LONGEST_SEEK.0 as i64;
        let scale_ppm = scale_ppm.clamp(-500_000, 500_000);
        let scaled = |ns: i64| ns + ns * scale_ppm / 1_000_000;
        // The new curve bends where the old one did, at each offset, and at distance 1, because
        // distance 0 takes no time whatever the first offset is.
        let mut bends: Vec<u32> = Vec::with_capacity(self.segments.len() + offsets.len() + 1);
        let (mut own, mut others) = (self.segments.iter().map(|s| s.from).peekable(), offsets.iter().peekable());
        bends.extend([0, 1]);
        while let Some(next) = [own.peek().copied(), others.peek().map(|o| o.0)].into_iter().flatten().min() {
            own.next_if_eq(&next);
            others.next_if(|o| o.0 == next);
            if next > 1 && next <= self.end {
                bends.push(next);
            }
        }
        let (mut segment, mut nearest) = (0, 0);
        let knots: Vec<(u32, u32)> = bends
            .into_iter()
            .map(|d| {
                while segment + 1 < self.segments.len() && self.segments[segment + 1].from <= d {
                    segment += 1;
                }
                while nearest < offsets.len() && offsets[nearest].0 <= d {
                    nearest += 1;
                }
                let offset = match (nearest.checked_sub(1).map(|i| offsets[i]), offsets.get(nearest)) {
                    (Some(a), Some(b)) => {
                        let part = (i128::from(b.1) - i128::from(a.1)) * i128::from(d - a.0) / i128::from(b.0 - a.0);
                        (i128::from(a.1) + part) as i64
                    }
                    (Some(a), None) => a.1,
                    (None, Some(b)) => b.1,
                    (None, None) => 0,
                };
                let ns = scaled(i64::from(self.segments[segment].at(d))).saturating_add(offset);
                (d, if d == 0 { 0 } else { ns.clamp(0, longest) as u32 })
            })
            .collect();
        let tail = self.segments[self.segments.len() - 1].slope_fx;
        SeekCurve::through(&knots, scaled(tail), self.end)
    }

    #[inline]
    fn segment(&self, distance: u32) -> &Segment {
        if let Some(&i) = self.near.get(distance as usize) {
            return &self.segments[usize::from(i)];
        }
        let bucket = ((distance >> self.shift) as usize).min(self.index.len() - 1);
        let mut i = self.index[bucket] as usize;
        while i + 1 < self.segments.len() && self.segments[i + 1].from <= distance {
            i += 1;
        }
        &self.segments[i]
    }

    /// Returns the seek time over `distance` cylinders; zero for zero.
    #[inline]
    pub fn time(&self, distance: u32) -> Dur {
        if distance == 0 {
            return Dur::ZERO;
        }
        Dur(self.segment(distance).at(distance) as u64)
    }

    /// Returns the minimum seek time at this or any longer distance: a monotone lower bound, for
    /// pruning.
    #[inline]
    pub fn floor(&self, distance: u32) -> Dur {
        if distance == 0 {
            return Dur::ZERO;
        }
        let s = self.segment(distance);
        Dur(s.at(distance).min(s.floor_after_ns) as u64)
    }

    /// Returns the size of the curve in bytes.
    pub fn memory_bytes(&self) -> usize {
        self.segments.len() * size_of::<Segment>() + (self.index.len() + self.near.len()) * 2
    }
}

/// Returns the segment of each of these ascending distances.
fn segments_of(segments: &[Segment], distances: impl Iterator<Item = u32>) -> Vec<u16> {
    let mut at = 0;
    let segment = |distance| {
        while at + 1 < segments.len() && segments[at + 1].from <= distance {
            at += 1;
        }
        at as u16
    };
    distances.map(segment).collect()
}

impl Segment {
    #[inline]
    fn at(&self, distance: u32) -> u32 {
        // Beyond the curve's maximum distance, a steep line could leave the range; it is clamped.
        let rise = ((distance - self.from) as i64).saturating_mul(self.slope_fx) >> 16;
        (self.base_ns as i64 + rise).clamp(0, u32::MAX as i64) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(x: f64) -> Dur {
        Dur::from_ms_f64(x)
    }

    #[test]
    fn points_are_met_and_lines_lie_between() {
        let c = SeekCurve::from_points(&[(1, ms(1.0)), (3, ms(2.0)), (100, ms(5.0))], 1000).unwrap();
        assert_eq!(c.time(0), Dur::ZERO);
        assert_eq!(c.time(1), ms(1.0));
        assert_eq!(c.time(2), ms(1.5));
        assert_eq!(c.time(3), ms(2.0));
        assert_eq!(c.time(100), ms(5.0));
        assert!(c.time(1000) > ms(30.0));
    }

    #[test]
    fn the_floor_is_monotone_and_never_above_the_curve() {
        let pts = [(1, ms(1.2)), (2, ms(1.1)), (3, ms(1.1)), (4, ms(1.4)), (5, ms(0.9)), (50, ms(4.0)), (60, ms(3.0))];
        let c = SeekCurve::from_points(&pts, 80).unwrap();
        let mut prev = Dur::ZERO;
        for d in 0..=80 {
            assert!(c.floor(d) >= prev, "{d}");
            assert!(c.floor(d) <= c.time(d), "{d}");
            prev = c.floor(d);
            let exact = (d..=80).map(|x| c.time(x)).min().unwrap();
            if d > 0 {
                assert_eq!(c.floor(d), exact, "{d}");
            }
        }
    }

    #[test]
    fn every_distance_is_found_in_its_segment() {
        let bends = [1, 9, 2_046, 2_047, 2_048, 2_049, 2_050, 5_000, 5_001, 30_000, 39_999];
        let point = |(i, &d): (usize, &u32)| (d, ms(1.0 + 0.7 * (i % 3) as f64 + f64::from(d) / 4e3));
        let points: Vec<(u32, Dur)> = bends.iter().enumerate().map(point).collect();
        let curve = SeekCurve::from_points(&points, 40_000).unwrap();
        for curve in [curve.corrected(10_000, &[(2_048, 50_000), (20_000, -50_000)]), curve] {
            let last = curve.segments.len() - 1;
            for d in 1..=45_000 {
                let slow = curve.segments.iter().rev().find(|s| s.from <= d).unwrap_or(&curve.segments[last]);
                assert_eq!(curve.time(d).0, u64::from(slow.at(d)), "{d}");
                assert_eq!(curve.floor(d).0, u64::from(slow.at(d).min(slow.floor_after_ns)), "{d}");
            }
        }
    }

    #[test]
    fn a_curve_that_leads_beyond_a_second_is_refused() {
        let e = SeekCurve::from_points(&[(1, ms(5.0))], 10_041).unwrap_err();
        assert_eq!(e, SeekError::TooLong { distance: 10_041, ms: 50_205.0 });
        let e = SeekCurve::from_points(&[(1, ms(0.0)), (2, ms(1000.0))], u32::MAX).unwrap_err();
        assert!(matches!(e, SeekError::TooLong { .. }), "{e}");
        assert!(SeekCurve::from_points(&[(1, ms(5.0))], 200).is_ok());
    }

    #[test]
    fn a_distance_that_was_not_foreseen_never_wraps() {
        for points in [[(1, ms(1.0)), (2, ms(500.0))], [(1, ms(1000.0)), (2, ms(1.0))]] {
            let c = SeekCurve::from_points(&points, 2).unwrap();
            let mut before = c.time(2);
            for d in [3, 10, 1000, 1_000_000, u32::MAX] {
                let t = c.time(d);
                assert!(if points[0].1 < points[1].1 { t >= before } else { t <= before }, "{d}: {t}");
                assert!(c.floor(d) <= t, "{d}");
                before = t;
            }
        }
    }

    #[test]
    fn a_table_out_of_order_is_refused_with_its_place() {
        let e = SeekCurve::from_points(&[(2, ms(1.0)), (2, ms(1.1))], 10).unwrap_err();
        assert_eq!(e, SeekError::Order { index: 1, found: 2, after: 2 });
    }

    #[test]
    fn a_corrected_curve_is_longer_by_its_scale_and_its_offsets() {
        let pts = [(1, ms(1.2)), (2, ms(1.1)), (3, ms(1.1)), (4, ms(1.4)), (5, ms(0.9)), (50, ms(4.0)), (60, ms(3.0))];
        let c = SeekCurve::from_points(&pts, 80).unwrap();
        let offsets = [(2u32, 40_000i64), (10, -200_000), (55, 100_000)];
        let new = c.corrected(50_000, &offsets);
        let offset = |d: u32| match d {
            0..=2 => 40_000.0,
            3..=9 => 40_000.0 - 240_000.0 * f64::from(d - 2) / 8.0,
            10..=54 => -200_000.0 + 300_000.0 * f64::from(d - 10) / 45.0,
            _ => 100_000.0,
        };
        assert_eq!(new.time(0), Dur::ZERO);
        for d in 1..=80 {
            let expected = (c.time(d).0 as f64 * 1.05 + offset(d)).max(0.0);
            assert!((new.time(d).0 as f64 - expected).abs() < 10.0, "{d}: {} for {expected}", new.time(d).0);
        }
    }

    #[test]
    fn the_floor_of_a_corrected_curve_is_exact() {
        let pts = [(3, ms(1.2)), (5, ms(0.9)), (50, ms(4.0)), (60, ms(3.0))];
        let c = SeekCurve::from_points(&pts, 80).unwrap();
        for (scale, offsets) in
            [(50_000, vec![(1, -900_000), (6, 5)]), (-100_000, vec![(40, 3_000_000), (44, -5_000_000)]), (0, vec![])]
        {
            let new = c.corrected(scale, &offsets);
            for d in 1..=80 {
                let exact = (d..=80).map(|x| new.time(x)).min().unwrap();
                assert!(new.floor(d) <= exact && exact <= new.floor(d) + Dur(2), "{d}: {exact} {}", new.floor(d));
            }
        }
    }

    #[test]
    fn what_is_not_corrected_stays_and_can_be_corrected_again() {
        let pts = [(2, ms(1.0)), (7, ms(2.0)), (100, ms(5.0))];
        let c = SeekCurve::from_points(&pts, 5_000).unwrap();
        let same = c.corrected(0, &[]);
        assert!((0..=5_000).all(|d| same.time(d).0.abs_diff(c.time(d).0) <= 1));
        // After the last point the line continues.
        let longer = c.corrected(100_000, &[]);
        assert!((1..=5_000).all(|d| longer.time(d).0.abs_diff(c.time(d).0 * 11 / 10) <= 10));
        // Nothing goes below zero or beyond a second.
        let least = c.corrected(0, &[(1, i64::MIN / 2)]);
        assert!((0..=100).all(|d| least.time(d) == Dur::ZERO));
        let most = c.corrected(0, &[(1, i64::MAX / 2)]);
        assert_eq!(most.time(50), LONGEST_SEEK);
    }
}
