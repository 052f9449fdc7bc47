//! Overhead times between two commands from the bandwidth under SATF with different values: Reuther
//! and Pohlack (2003), section 4.1.
//!
//! A value that is too small makes SATF choose sectors that have passed when the head arrives: each
//! costs a revolution, so the curve falls steeply. A value that is too large makes it skip
//! reachable sectors for the next best, and the curve falls slowly. In between it is flat over
//! about the variation of seeks, and there the value with the highest bandwidth is random. So two
//! straight lines are fitted to the whole curve, and their intersection is the result.

use headtime_disk::Dur;

use super::{PAIRS, Times};

/// Fewest points of a curve.
const LEAST_POINTS: usize = 6;

/// Candidates for the top between two points.
const STEPS: u32 = 10;

/// One run: the times of the scheduler's model, and the resulting bandwidth.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Trial {
    /// From 0: each round starts from the previous one's results.
    pub round: u32,
    /// The varied pair of [`PAIRS`].
    pub pair: usize,
    /// The values of all four.
    pub times: Times,
    /// Bandwidth in a unit of the caller's choice.
    pub rate: f64,
}

/// Chooses the next values, and computes the results.
#[derive(Clone, Debug)]
pub(crate) struct Sweep {
    start: Times,
    values: Vec<Dur>,
    rounds: u32,
    trials: Vec<Trial>,
    tops: [Option<Dur>; 4],
}

impl Sweep {
    /// Varies each of the four over these values, ascending, while the others keep their values in
    /// `start`; further rounds start from the results. Six values or more are needed for a result.
    pub(crate) fn new(start: Times, values: Vec<Dur>, rounds: u32) -> Sweep {
        Sweep { start, values, rounds, trials: Vec::new(), tops: [None; 4] }
    }

    /// Total number of runs.
    #[cfg(test)]
    pub(crate) fn runs(&self) -> usize {
        self.rounds as usize * PAIRS.len() * self.values.len()
    }

    /// The values of the next run; `None` if it is done.
    pub(crate) fn next(&self) -> Option<Times> {
        self.at().map(|(_, _, times)| times)
    }

    /// Round, pair and values of the next run.
    fn at(&self) -> Option<(u32, usize, Times)> {
        let each = self.values.len().max(1);
        let (pair, value) = (self.trials.len() / each % PAIRS.len(), self.trials.len() % each);
        let round = (self.trials.len() / each / PAIRS.len()) as u32;
        let mut times = self.start;
        times[pair] = *self.values.get(value).filter(|_| round < self.rounds)?;
        Some((round, pair, times))
    }

    /// Adds the bandwidth with the latest values of [`Sweep::next`]; ignored if there were none.
    pub(crate) fn moved(&mut self, rate: f64) {
        let Some((round, pair, times)) = self.at() else {
            return;
        };
        self.trials.push(Trial { round, pair, times, rate });
        if !self.trials.len().is_multiple_of(self.values.len() * PAIRS.len()) {
            return;
        }
        for pair in 0..PAIRS.len() {
            self.tops[pair] = top(&self.curve(round, pair));
            self.start[pair] = self.tops[pair].unwrap_or(self.start[pair]);
        }
    }

    /// All runs so far.
    pub(crate) fn trials(&self) -> &[Trial] {
        &self.trials
    }

    /// The results of the last complete round; `None` if the curve has no top.
    pub(crate) fn found(&self) -> [Option<Dur>; 4] {
        self.tops
    }

    /// The curve of one pair in one round.
    pub(crate) fn curve(&self, round: u32, pair: usize) -> Vec<(Dur, f64)> {
        let of = self.trials.iter().filter(|t| t.round == round && t.pair == pair);
        of.map(|t| (t.times[pair], t.rate)).collect()
    }
}

/// The intersection of a rising and a falling line, which together fit a curve best (least
/// squares). `None`: too few points, or no such lines.
pub(crate) fn top(curve: &[(Dur, f64)]) -> Option<Dur> {
    if curve.len() < LEAST_POINTS || !curve.iter().all(|p| p.1.is_finite()) {
        return None;
    }
    // At least two points on each side, including the one at the top.
    let inner = &curve[1..curve.len() - 1];
    let candidates = inner.windows(2).flat_map(|w| {
        let step = w[1].0.saturating_sub(w[0].0).0;
        (0..=STEPS).map(move |i| Dur(w[0].0.0 + step * u64::from(i) / u64::from(STEPS)))
    });
    let fits = candidates.filter_map(|at| Some((at, fit(curve, at)?)));
    fits.min_by(|a, b| a.1.total_cmp(&b.1)).map(|(at, _)| at)
}

/// The squared error of the best lines through a curve that intersect at `at`, the left one rising
/// and the right one falling.
fn fit(curve: &[(Dur, f64)], at: Dur) -> Option<f64> {
    // y = c + left min(x - at, 0) + right max(x - at, 0), x in microseconds.
    let row = |x: Dur| {
        let d = (x.0 as f64 - at.0 as f64) / 1e3;
        [1.0, d.min(0.0), d.max(0.0)]
    };
    let mut normal = [[0.0; 4]; 3];
    for &(x, y) in curve {
        let r = row(x);
        for (i, line) in normal.iter_mut().enumerate() {
            for (j, v) in r.iter().enumerate() {
                line[j] += r[i] * v;
            }
            line[3] += r[i] * y;
        }
    }
    let solution = solve(normal)?;
    let [_, left, right] = solution;
    if left <= 0.0 || right >= 0.0 {
        return None;
    }
    let error = |&(x, y): &(Dur, f64)| {
        let r = row(x);
        let fitted: f64 = r.iter().zip(&solution).map(|(a, b)| a * b).sum();
        (y - fitted) * (y - fitted)
    };
    Some(curve.iter().map(error).sum())
}

/// Solves three equations; `None` if they are singular.
fn solve(mut m: [[f64; 4]; 3]) -> Option<[f64; 3]> {
    for i in 0..3 {
        let pivot = (i..3).max_by(|a, b| m[*a][i].abs().total_cmp(&m[*b][i].abs()))?;
        m.swap(i, pivot);
        let row = m[i];
        if row[i].abs() < 1e-12 {
            return None;
        }
        for (j, other) in m.iter_mut().enumerate() {
            if j != i {
                let factor = other[i] / row[i];
                other.iter_mut().zip(row).for_each(|(a, b)| *a -= factor * b);
            }
        }
    }
    Some([0, 1, 2].map(|i| m[i][3] / m[i][i]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn us(n: u64) -> Dur {
        Dur::from_us(n)
    }

    /// Falls by 3 for each 10 us below `at` and by 1 above.
    fn roof(at: u64) -> impl Fn(Dur) -> f64 {
        move |x| {
            let d = x.0 as f64 / 1e3 - at as f64;
            1000.0 + 0.3 * d.min(0.0) - 0.1 * d.max(0.0)
        }
    }

    fn values() -> Vec<Dur> {
        (0..=20).map(|i| us(15 * i)).collect()
    }

    #[test]
    fn the_top_of_a_roof_is_found_between_its_points() {
        for at in [30, 62, 140, 211] {
            let curve: Vec<(Dur, f64)> = values().into_iter().map(|x| (x, roof(at)(x))).collect();
            let found = top(&curve).unwrap();
            assert!(found.0.abs_diff(us(at).0) <= us(2).0, "{at}: {found}");
        }
    }

    #[test]
    fn chance_about_a_flat_top_moves_it_little() {
        // Up and down by 3 in turn: the largest of the values is far from the top.
        let noisy = |(i, x): (usize, Dur)| (x, roof(120)(x).min(999.0) + if i % 5 == 2 { 3.0 } else { -0.6 });
        let curve: Vec<(Dur, f64)> = values().into_iter().enumerate().map(noisy).collect();
        let largest = curve.iter().max_by(|a, b| a.1.total_cmp(&b.1)).unwrap().0;
        let found = top(&curve).unwrap();
        assert!(largest.0.abs_diff(us(120).0) >= us(14).0, "{largest}");
        assert!(found.0.abs_diff(us(120).0) <= us(10).0, "{found}");
    }

    #[test]
    fn a_curve_without_a_top_has_none() {
        let rising: Vec<(Dur, f64)> = values().into_iter().map(|x| (x, x.0 as f64)).collect();
        assert_eq!(top(&rising), None);
        let falling: Vec<(Dur, f64)> = values().into_iter().map(|x| (x, -(x.0 as f64))).collect();
        assert_eq!(top(&falling), None);
        assert_eq!(top(&rising[..3]), None);
        let broken: Vec<(Dur, f64)> = values().into_iter().map(|x| (x, f64::NAN)).collect();
        assert_eq!(top(&broken), None);
        let same: Vec<(Dur, f64)> = (0..9).map(|i| (us(10), f64::from(i))).collect();
        assert_eq!(top(&same), None);
    }

    #[test]
    fn each_is_varied_alone_and_the_next_round_starts_from_what_was_found() {
        let truth = [30, 60, 90, 120];
        let mut sweep = Sweep::new([us(200); 4], values(), 2);
        let mut runs = 0;
        while let Some(times) = sweep.next() {
            let trial = (runs / 21, runs % 21);
            let others = if trial.0 < 4 { [us(200); 4] } else { sweep.found().map(|f| f.unwrap()) };
            for (i, t) in times.iter().enumerate() {
                let expected = if i == trial.0 % 4 { values()[trial.1] } else { others[i] };
                assert_eq!(*t, expected, "run {runs}, pair {i}");
            }
            let rate = times.iter().zip(truth).map(|(t, at)| roof(at)(*t)).sum();
            sweep.moved(rate);
            runs += 1;
        }
        assert_eq!((runs, runs), (sweep.runs(), sweep.trials().len()));
        for (found, at) in sweep.found().into_iter().zip(truth) {
            assert!(found.unwrap().0.abs_diff(us(at).0) <= us(2).0, "{found:?}");
        }
        sweep.moved(1.0);
        assert_eq!(sweep.trials().len(), runs);
    }

    #[test]
    fn without_values_there_is_nothing_to_run() {
        let mut sweep = Sweep::new([Dur::ZERO; 4], Vec::new(), 3);
        assert_eq!(sweep.next(), None);
        sweep.moved(1.0);
        assert_eq!(sweep.found(), [None; 4]);
    }
}
