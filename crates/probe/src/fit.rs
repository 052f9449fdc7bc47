//! Least squares with three unknowns.
//!
//! Minimises the sum of (y - a x0 - b x1 - c x2)^2: the normal equations are X'X v = X'y, solved by
//! elimination with the inverse of X'X carried along, whose diagonal times the variance of y gives
//! the variances of v.

/// The best fit.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Fit {
    /// The unknowns; 0 for one that the points do not determine.
    pub values: [f64; 3],
    /// Their standard errors.
    pub errors: [f64; 3],
}

/// A pivot below this part of its original value is rounding noise: two unknowns are
/// indistinguishable.
const MIN_PIVOT_SHARE: f64 = 1e-9;

/// Fits points: coefficients of the unknowns, and the observed value.
pub(crate) fn fit(points: &[([f64; 3], f64)]) -> Fit {
    let mut m = [[0.0; 4]; 3];
    for (x, y) in points {
        for (row, a) in m.iter_mut().zip(x) {
            for (sum, b) in row.iter_mut().zip([x[0], x[1], x[2], *y]) {
                *sum += a * b;
            }
        }
    }
    let scale = [m[0][0], m[1][1], m[2][2]];
    let mut inverse = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]];
    let mut known = [false; 3];
    for i in 0..3 {
        if m[i][i] <= MIN_PIVOT_SHARE * scale[i] {
            continue;
        }
        known[i] = true;
        for j in (0..3).filter(|&j| j != i) {
            let factor = m[j][i] / m[i][i];
            let (pivot, carried) = (m[i], inverse[i]);
            m[j].iter_mut().zip(pivot).for_each(|(a, b)| *a -= factor * b);
            inverse[j].iter_mut().zip(carried).for_each(|(a, b)| *a -= factor * b);
        }
    }
    let values = [0, 1, 2].map(|i| if known[i] { m[i][3] / m[i][i] } else { 0.0 });
    let off = |(x, y): &([f64; 3], f64)| y - x.iter().zip(values).map(|(x, v)| x * v).sum::<f64>();
    let unknowns = known.iter().filter(|k| **k).count();
    let freedom = points.len().saturating_sub(unknowns).max(1) as f64;
    let variance = points.iter().map(|p| off(p) * off(p)).sum::<f64>() / freedom;
    let errors = [0, 1, 2].map(|i| if known[i] { (variance * inverse[i][i] / m[i][i]).max(0.0).sqrt() } else { 0.0 });
    Fit { values, errors }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_unknowns_are_found_among_noise_and_their_errors_are_what_is_left() {
        let (mut right, mut state) = (0, 1u64);
        for _ in 0..200 {
            let mut next = || {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                (state >> 11) as f64 / (1u64 << 53) as f64
            };
            let points: Vec<([f64; 3], f64)> = (0..60)
                .map(|_| {
                    let (a, b) = (100.0 * next(), 7.0 * next());
                    ([1.0, a, b], 3.0 + 0.5 * a - 2.0 * b + next() + next() + next() - 1.5)
                })
                .collect();
            let f = fit(&points);
            let off = |i: usize, v: f64| (f.values[i] - v).abs() / f.errors[i];
            right += u32::from(off(0, 3.0) < 2.0) + u32::from(off(1, 0.5) < 2.0) + u32::from(off(2, -2.0) < 2.0);
        }
        // 95% lie within two errors.
        assert!((550..=590).contains(&right), "{right} of 600");
    }

    #[test]
    fn an_unknown_that_points_do_not_tell_from_another_stays_0() {
        let points: Vec<([f64; 3], f64)> = (0..20).map(|i| ([1.0, f64::from(i), 0.0], f64::from(2 * i))).collect();
        let f = fit(&points);
        assert!((f.values[1] - 2.0).abs() < 1e-9 && f.values[2] == 0.0, "{f:?}");
        let both: Vec<([f64; 3], f64)> =
            (0..20).map(|i| ([1.0, f64::from(i), f64::from(3 * i)], f64::from(2 * i))).collect();
        let f = fit(&both);
        assert!((f.values[1] - 2.0).abs() < 1e-6 && f.values[2] == 0.0, "{f:?}");
    }
}
