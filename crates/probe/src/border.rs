//! The border between sectors that are caught and sectors that are missed.
//!
//! The time until a drive can read at a target never shows in an answer, because the head waits for
//! the sector anyway. What shows is whether it came too late and waited for another revolution
//! (Reuther and Pohlack 2003, section 4.1, tune by that; Wong 2019 looks for the sector that is
//! just caught). A *shot* requests a sector that passes a chosen time, its *slack*, after the drive
//! could begin; the border is the slack at which shots turn from late to caught.
//!
//! Single seeks differ by tens of microseconds, so that near the border some shots of each slack
//! are late. The share of late shots, as a function of slack, falls from one to zero; the area
//! under it is the mean of the times that the drive needed, whatever their distribution. The result
//! is this mean, not the minimum, which falls with every further shot.

use crate::error::ProbeError;

/// The result of one shot.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shot {
    /// Time from the shot until the sector's first passing, ns: about the requested slack.
    pub slack: f64,
    /// Additional revolutions: 0 is caught, 1 missed.
    pub turns: i64,
}

/// A border.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Border {
    /// The mean time that the drive needs, ns.
    pub at: f64,
    /// Standard error of `at`, ns.
    pub error: f64,
    /// Standard deviation of single times, ns.
    pub spread: f64,
    /// Shots near the border that the result is based on.
    pub shots: u32,
    /// Useless shots: answered by a cache, unreadable, or at a time that no number of revolutions
    /// explains.
    pub useless: u32,
}

impl Border {
    /// Combines two measurements of the same border, weighted by the inverse squares of their
    /// errors.
    pub fn and(&self, other: &Border) -> Border {
        let weight = |b: &Border| 1.0 / (b.error * b.error).max(1.0);
        let (a, b) = (weight(self), weight(other));
        let mean = |x: f64, y: f64| (a * x + b * y) / (a + b);
        Border {
            at: mean(self.at, other.at),
            error: 1.0 / (a + b).sqrt(),
            spread: mean(self.spread, other.spread),
            shots: self.shots + other.shots,
            useless: self.useless + other.useless,
        }
    }
}

/// Shots for the first estimate of the border.
const FIRST_SHOTS: u32 = 24;
/// Usual number of shots for the final estimate: with seeks that differ by 20 us and a window of
/// 200 us, the standard error is 5 us.
pub const SHOTS: u32 = 96;
/// Initial half width of the window. Single seeks differ from their mean by no more: 60 us is the
/// allowance of Lumb et al. 2002 (section 4.2: tens of microseconds), plus the error of the first
/// estimate. The window is doubled for drives that vary more.
const INITIAL_HALF_WIDTH_NS: f64 = 100e3;
/// Bisection ends at this part of a revolution, well above the variation of seeks.
const BISECTION_TURNS: f64 = 1.0 / 32.0;
/// Most consecutive useless shots per useful shot wanted.
const USELESS_PER_USEFUL: u32 = 4;
/// All shots should agree at a window's ends; this share may not, because additional revolutions
/// occur anywhere.
const MAX_STRAY_SHARE: f64 = 0.2;

/// Finds the border of a drive with the given period (ns) from `shots` shots near it. `shoot` is
/// given the slack to aim at, ns; it returns `None` for a useless shot. `None`: there is no border,
/// or too few shots were useful.
///
/// # Errors
/// The errors of `shoot`.
pub fn find(
    turn: f64,
    shots: u32,
    mut shoot: impl FnMut(f64) -> Result<Option<Shot>, ProbeError>,
) -> Result<Option<Border>, ProbeError> {
    let mut useless = 0;
    let Some((low, high)) = bracket(turn, &mut shoot, &mut useless)? else { return Ok(None) };
    let first =
        Window { middle: (low + high) / 2.0, half: (high - low) / 2.0 + INITIAL_HALF_WIDTH_NS, shots: FIRST_SHOTS };
    let Some(rough) = look(turn, first, &mut shoot, &mut useless)? else { return Ok(None) };
    let half = INITIAL_HALF_WIDTH_NS.max(4.0 * rough.spread).min(turn * MAX_HALF_WIDTH_TURNS);
    let last = Window { middle: rough.at, half, shots };
    Ok(look(turn, last, &mut shoot, &mut useless)?.map(|b| Border { useless, ..b }))
}

/// The range of slacks that shots aim at.
#[derive(Clone, Copy, Debug)]
struct Window {
    middle: f64,
    half: f64,
    shots: u32,
}

/// Largest half width of a window, in revolutions: a window must be narrower than a revolution, or
/// a late shot would look like a caught one.
const MAX_HALF_WIDTH_TURNS: f64 = 0.45;

/// Bisects the revolution that contains the border.
fn bracket(
    turn: f64,
    shoot: &mut impl FnMut(f64) -> Result<Option<Shot>, ProbeError>,
    useless: &mut u32,
) -> Result<Option<(f64, f64)>, ProbeError> {
    let mut found: Option<(f64, f64)> = None;
    // Five bisections, and spare attempts for failed seeks.
    for _ in 0..USELESS_PER_USEFUL * 20 {
        let aim = found.map_or(0.0, |(low, high)| (low + high) / 2.0);
        let Some(shot) = shoot(aim)? else {
            *useless += 1;
            continue;
        };
        found = match (found, shot.turns) {
            (Some((low, _)), 0) => Some((low, shot.slack.max(low))),
            (Some((_, high)), 1) => Some((shot.slack.min(high), high)),
            // The first shot, or one that contradicts an earlier one by a revolution.
            _ => {
                let heard = shot.slack + shot.turns as f64 * turn;
                Some((heard - turn, heard))
            }
        };
        if let Some((low, high)) = found
            && high - low <= turn * BISECTION_TURNS
        {
            return Ok(found);
        }
    }
    Ok(None)
}

/// Aims at points all over a window, which is moved and widened until the border lies well within
/// it.
fn look(
    turn: f64,
    mut window: Window,
    shoot: &mut impl FnMut(f64) -> Result<Option<Shot>, ProbeError>,
    useless: &mut u32,
) -> Result<Option<Border>, ProbeError> {
    for _ in 0..4 {
        window.half = window.half.min(turn * MAX_HALF_WIDTH_TURNS);
        let mut seen: Vec<(f64, bool)> = Vec::with_capacity(window.shots as usize);
        let (low, high) = (window.middle - window.half, window.middle + window.half);
        for i in 0..window.shots * USELESS_PER_USEFUL {
            // The golden section spreads any number of shots evenly.
            let part = f64::from(i) * 0.618_033_988_749_894_9;
            let aim = low + (part - part.floor()) * (high - low);
            match shoot(aim)? {
                // Longer delays have other causes: recalibrations, or a head that did not settle.
                Some(Shot { slack, turns }) if slack >= low && slack <= high && (0..=1).contains(&turns) => {
                    seen.push((slack, turns == 1));
                }
                _ => *useless += 1,
            }
            if seen.len() == window.shots as usize {
                break;
            }
        }
        if seen.len() < window.shots as usize / 2 {
            return Ok(None);
        }
        let (border, lies_within) = fit(&mut seen, low, high);
        if lies_within {
            return Ok(Some(border));
        }
        window = Window { middle: border.at, half: 2.0 * window.half, ..window };
    }
    Ok(None)
}

/// Returns the mean and deviation of the times that separate late shots from caught ones, and
/// whether both ends of the window agree.
fn fit(seen: &mut [(f64, bool)], low: f64, high: f64) -> (Border, bool) {
    seen.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
    let (n, width) = (seen.len(), high - low);
    let (mut mean, mut square) = (0.0, 0.0);
    let mut from = low;
    for (i, &(slack, late)) in seen.iter().enumerate() {
        let to = seen.get(i + 1).map_or(high, |next| (slack + next.0) / 2.0);
        if late {
            mean += to - from;
            square += (to - low) * (to - low) - (from - low) * (from - low);
        }
        from = to;
    }
    let spread = (square - mean * mean).max(0.0).sqrt();
    // The spread is no sharper than the distance between shots. The area under p (1 - p) of a
    // normal distribution is its deviation over the square root of pi.
    let spread_or_step = spread.max(width / n as f64 / 2.0);
    let error = (0.564 * spread_or_step * width / n as f64).sqrt();
    let share = |part: &[(f64, bool)]| part.iter().filter(|s| s.1).count() as f64 / part.len().max(1) as f64;
    let quarter = n.div_ceil(4);
    let lies_within =
        share(&seen[..quarter]) >= 1.0 - MAX_STRAY_SHARE && share(&seen[n - quarter..]) <= MAX_STRAY_SHARE;
    (Border { at: low + mean, error, spread, shots: n as u32, useless: 0 }, lies_within)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TURN: f64 = 6e6;

    /// A drive that needs `need`, plus or minus up to 60 us along a saw-tooth.
    fn drive(need: f64, stray: u32) -> impl FnMut(f64) -> Result<Option<Shot>, ProbeError> {
        let mut n = 0u32;
        move |aim| {
            n += 1;
            let needs = need + f64::from(n * 37 % 121) * 1e3 - 60e3;
            let turns = ((needs - aim) / TURN).ceil();
            let more = if stray > 0 && n.is_multiple_of(stray) { 1 } else { 0 };
            Ok(Some(Shot { slack: aim, turns: turns as i64 + more }))
        }
    }

    #[test]
    fn the_mean_is_found_wherever_it_lies_and_however_many_turns_it_takes() {
        for need in [10e3, 700e3, 3.0e6, 5.99e6, 6.0e6, 13.7e6, 30.1e6] {
            let b = find(TURN, SHOTS, drive(need, 0)).unwrap().expect("there is one");
            assert!((b.at - need).abs() < 4.0 * b.error, "{need}: {b:?}");
            // 60 us to each side evenly: a deviation of 35.
            assert!((20e3..50e3).contains(&b.spread), "{b:?}");
            assert!(b.error < 12e3, "{b:?}");
        }
    }

    #[test]
    fn two_measurements_are_better_than_one() {
        let b = |at, error| Border { at, error, spread: 20.0, shots: 96, useless: 1 };
        let both = b(100.0, 10.0).and(&b(200.0, 10.0));
        assert!((both.at - 150.0).abs() < 1e-9 && (both.error - 50f64.sqrt()).abs() < 1e-9, "{both:?}");
        assert!((b(100.0, 10.0).and(&b(200.0, 100.0)).at - 101.0).abs() < 0.1);
        assert_eq!((both.shots, both.useless), (192, 2));
    }

    #[test]
    fn turns_that_are_lost_now_and_then_do_not_move_it() {
        let b = find(TURN, SHOTS, drive(2.5e6, 37)).unwrap().expect("there is one");
        assert!((b.at - 2.5e6).abs() < 25e3, "{b:?}");
    }

    #[test]
    fn where_there_is_no_border_none_is_found() {
        let mut n = 0u64;
        let nothing = find(TURN, SHOTS, |aim| {
            n = n.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            Ok(Some(Shot { slack: aim, turns: (n >> 40 & 1) as i64 }))
        });
        assert_eq!(nothing, Ok(None));
        assert_eq!(find(TURN, SHOTS, |_| Ok(None)), Ok(None));
    }
}
