//! User-supplied bounds of figures that a profile does not know.

use super::decimal::Decimal;
use super::{Figure, Knowledge, Profile};
use crate::time::Dur;

/// An upper bound of one figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Bound {
    /// n: revolutions, including the one that any request may wait.
    Turns(u32),
    /// Read-ahead stops at once.
    AtOnce,
    /// A time.
    Time(Figure, Dur),
}

impl Bound {
    fn figure(self) -> Figure {
        match self {
            Bound::Turns(_) => Figure::SettleTurns,
            Bound::AtOnce => Figure::ReadAheadStop,
            Bound::Time(figure, _) => figure,
        }
    }
}

/// User-supplied bounds of figures that a profile does not know, each at most once:
/// `n=5,write-settle=2ms`.
///
/// A bound replaces the figure, so that a worst case can be computed from it, and is marked as a
/// bound. It may be larger than the profile's figure, never smaller: what was observed once can
/// recur. The exception is the limit of seek deviations: a measured limit is an estimate from their
/// spread, and a bound only has to cover that spread.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bounds(Vec<Bound>);

/// Why bounds are not accepted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected {expected}, found {found}")]
#[non_exhaustive]
pub struct BoundsError {
    /// What was expected.
    pub expected: String,
    /// What was found.
    pub found: String,
}

impl BoundsError {
    fn new(expected: impl Into<String>, found: impl Into<String>) -> BoundsError {
        BoundsError { expected: expected.into(), found: found.into() }
    }
}

/// Syntax of bounds.
pub const FORM: &str = "n=TURNS, recalibration=TIME, seek-max=TIME, overlap=TIME, read-ahead-stop=at-once, \
                        write-settle=TIME, write-overhead=TIME, or some of these with commas between";
/// Largest n: the one revolution that any request may wait, and the 100 more that a profile allows.
const MOST_TURNS: u32 = 101;
/// No figure of a working drive is longer.
const MAX_TIME: Dur = Dur::from_secs(10);

impl Bounds {
    /// Parses a list such as `n=5,write-settle=2ms`; times in s, ms or us.
    ///
    /// # Errors
    /// An unknown or repeated figure, or an invalid value.
    pub fn parse(text: &str) -> Result<Bounds, BoundsError> {
        let mut bounds = Vec::new();
        for part in text.split(',') {
            let (word, value) = part.split_once('=').ok_or_else(|| BoundsError::new(FORM, shown(part)))?;
            let figure = Figure::ALL.into_iter().find(|f| f.word() == word.trim());
            let figure = figure.ok_or_else(|| BoundsError::new(FORM, shown(part)))?;
            if bounds.iter().any(|b: &Bound| b.figure() == figure) {
                return Err(BoundsError::new("each figure once", format!("{} twice", figure.word())));
            }
            bounds.push(bound(figure, value.trim())?);
        }
        Ok(Bounds(bounds))
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Enters them into `profile` as bounds, for the reason `why`.
    ///
    /// # Errors
    /// A bound below the profile's figure, or one beside a table of write seeks, which is more
    /// precise than any bound.
    pub fn apply(&self, profile: &mut Profile, why: &str) -> Result<(), BoundsError> {
        for bound in &self.0 {
            match *bound {
                Bound::Turns(n) => {
                    let has = profile.noise.settle_retry_turns.saturating_add(1);
                    if n < has {
                        return Err(BoundsError::new(
                            format!("n of at least the {has} that the profile has"),
                            n.to_string(),
                        ));
                    }
                    profile.noise.settle_retry_turns = n - 1;
                }
                Bound::AtOnce => profile.electronics.cache.stop_in_sector = true,
                Bound::Time(figure, time) => limit(profile, figure, time)?,
            }
            profile.known.set(bound.figure(), Knowledge::Bounded(why.into()));
        }
        Ok(())
    }
}

/// Replaces a figure by a time.
fn limit(profile: &mut Profile, figure: Figure, time: Dur) -> Result<(), BoundsError> {
    let at_least = |has: Dur| match time < has {
        true => {
            let expected = format!("{} of at least the {has} that the profile has", figure.word());
            Err(BoundsError::new(expected, time.to_string()))
        }
        false => Ok(time),
    };
    match figure {
        // Not times; handled separately.
        Figure::SettleTurns | Figure::ReadAheadStop => {}
        Figure::Recalibration => profile.noise.recalibrate_takes = at_least(profile.noise.recalibrate_takes)?,
        // A measured limit is derived from the spread of seeks, not observed; only the spread was.
        Figure::SeekSpread => profile.noise.seek_max = at_least(profile.noise.seek_sd)?,
        // For a transfer of 40 KiB or more, ten times the profile's figure.
        Figure::Overlap => {
            let most = at_least(Dur(10 * profile.noise.overlap_jitter_per_4k.0))?;
            profile.noise.overlap_jitter_per_4k = Dur(most.0.div_ceil(10));
        }
        Figure::WriteSettle => {
            if profile.mechanics.write_seek.is_some() {
                let found = "write_seek_ms in the profile";
                return Err(BoundsError::new("write-settle for a profile without write seek times", found));
            }
            let has = Dur(u64::try_from(profile.mechanics.write_settle_ns).unwrap_or(0));
            profile.mechanics.write_settle_ns = at_least(has)?.0 as i64;
        }
        // What is known of reads is a lower bound for writes, so none of these is shortened.
        Figure::WriteOverheads => {
            let o = &mut profile.electronics.overheads;
            let q = &mut o.queued;
            let all = [&mut o.write_miss.after_read, &mut o.write_miss.after_write, &mut o.read_miss.after_write];
            let pairs = [&mut q.read_write, &mut q.write_read, &mut q.write_write];
            all.into_iter().chain(pairs).for_each(|t| *t = (*t).max(time));
        }
    }
    Ok(())
}

fn bound(figure: Figure, value: &str) -> Result<Bound, BoundsError> {
    if figure == Figure::SettleTurns {
        let turns = value.parse().ok().filter(|n| (1..=MOST_TURNS).contains(n));
        let expected = || BoundsError::new(format!("n of 1 to {MOST_TURNS} turns"), shown(value));
        return turns.map(Bound::Turns).ok_or_else(expected);
    }
    if figure == Figure::ReadAheadStop {
        let expected = || BoundsError::new("read-ahead-stop=at-once", shown(value));
        return (value == "at-once").then_some(Bound::AtOnce).ok_or_else(expected);
    }
    let expected = || {
        let expected = format!("{} as a time such as 2ms, from 0us to {} s", figure.word(), MAX_TIME.as_secs_f64());
        BoundsError::new(expected, shown(value))
    };
    time(value).map(|t| Bound::Time(figure, t)).ok_or_else(expected)
}

fn time(text: &str) -> Option<Dur> {
    let units = [("ms", 6), ("us", 3), ("s", 9)];
    let (number, places) =
        units.iter().find_map(|&(unit, places)| Some((text.strip_suffix(unit)?.trim_end(), places)))?;
    let ns = u64::try_from(Decimal::parse(number)?.scaled(places)?).ok()?;
    Some(Dur(ns)).filter(|t| *t <= MAX_TIME)
}

/// Returns the start of user input for a message, with control characters escaped.
fn shown(text: &str) -> String {
    const MAX_CHARACTERS: usize = 40;
    let out: String = text.chars().take(MAX_CHARACTERS).flat_map(char::escape_default).collect();
    format!("\"{out}\"{}", if text.chars().count() > MAX_CHARACTERS { "..." } else { "" })
}
