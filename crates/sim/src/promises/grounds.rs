//! The basis of a drive's worst case: which figures were measured, which are stated bounds, and
//! which are unknown.

use headtime_disk::Dur;
use headtime_disk::profile::{Bounds, BoundsError, Figure, Figures, Knowledge, Profile};
use headtime_sched::streams::{Traffic, list_figures, needed_figures, unknown_figures};
use serde::Serialize;

/// Bounds stated by a command or a configuration.
#[derive(Clone, Copy, Debug)]
pub struct Stated<'a> {
    /// The bounds.
    pub bounds: Option<&'a Bounds>,
    /// The option or configuration key that states them.
    pub with: &'static str,
}

impl<'a> Stated<'a> {
    /// The bounds of `--assume`, if given.
    pub fn on_command_line(bounds: Option<&'a Bounds>) -> Stated<'a> {
        Stated { bounds, with: "--assume" }
    }

    /// Returns `profile` with these bounds in place of unknown figures.
    ///
    /// # Errors
    /// A bound is below what the profile knows.
    pub fn applied(&self, profile: &Profile) -> Result<Profile, BoundsError> {
        let mut believed = profile.clone();
        if let Some(bounds) = self.bounds {
            bounds.apply(&mut believed, &format!("stated with {}", self.with))?;
        }
        Ok(believed)
    }
}

/// How each figure of the worst case is known.
#[derive(Clone, Debug)]
pub struct Grounds {
    /// The unknown figures.
    pub unknown: Figures,
    /// Each figure, its value, and how it is known.
    pub rests_on: Vec<RestsOn>,
    with: &'static str,
}

/// One figure of the worst case.
#[derive(Clone, Debug, Serialize)]
pub struct RestsOn {
    /// Its name in a list of bounds.
    pub figure: &'static str,
    /// Its description.
    #[serde(skip)]
    pub name: String,
    /// Its value with its unit; none if it is unknown.
    pub value: Option<String>,
    /// "measured", "bounded", "stated" or "unknown".
    pub known: &'static str,
    /// How it was measured, or why it is bounded.
    pub how: Option<String>,
}

impl Grounds {
    /// Collects the figures of `profile`, with bounds already applied, that matter for `traffic`.
    pub fn of(profile: &Profile, traffic: Traffic, stated: Stated<'_>) -> Grounds {
        let rests_on = needed_figures(traffic).iter().map(|figure| {
            let known = profile.known.of(figure);
            RestsOn {
                figure: figure.word(),
                name: figure.to_string(),
                value: (*known != Knowledge::Unknown).then(|| value(profile, figure)),
                known: known.word(),
                how: match figure {
                    Figure::ReadAheadStop if *known == Knowledge::Unknown => {
                        Some("w has the turn that it takes at most".into())
                    }
                    _ => known.how().map(String::from),
                },
            }
        });
        Grounds { unknown: unknown_figures(profile, traffic), rests_on: rests_on.collect(), with: stated.with }
    }

    /// Returns why the mandatory stream called `name` has no guarantee; `None` if the figures
    /// suffice.
    pub fn refusal(&self, name: &str) -> Option<String> {
        let bound = |f: Figure| match f {
            Figure::SettleTurns => format!("{}=TURNS", f.word()),
            _ => format!("{}=TIME", f.word()),
        };
        let bounds: Vec<String> = self.unknown.iter().map(bound).collect();
        (!self.unknown.is_empty()).then(|| {
            format!(
                "{name} is mandatory, and its worst case rests on figures that the profile does not know: {}. \
                 With {} {} it is made from \
                 stated bounds instead",
                list_figures(self.unknown),
                self.with,
                bounds.join(",")
            )
        })
    }

    /// The stated bounds, each with its value and reason.
    pub fn bounds(&self) -> Vec<String> {
        let bounded = self.rests_on.iter().filter(|r| r.known == "bounded");
        let words = bounded.map(|r| {
            let (value, how) = (r.value.as_deref().unwrap_or_default(), r.how.as_deref().unwrap_or_default());
            format!("{} ({value}; {how})", r.name)
        });
        words.collect()
    }

    /// The names of the bounded figures.
    pub fn bounded_names(&self) -> Vec<&str> {
        self.rests_on.iter().filter(|r| r.known == "bounded").map(|r| r.name.as_str()).collect()
    }

    /// The names of the unknown figures.
    pub fn unknown_words(&self) -> Vec<&'static str> {
        self.unknown.iter().map(Figure::word).collect()
    }
}

/// Formats a figure's value.
fn value(profile: &Profile, figure: Figure) -> String {
    let ms = |t: Dur| format!("{:.2} ms", t.as_ms_f64());
    let o = &profile.electronics.overheads;
    match figure {
        Figure::SettleTurns => format!("{}", profile.noise.settle_retry_turns.saturating_add(1)),
        Figure::Recalibration => ms(profile.noise.recalibrate_takes),
        Figure::SeekSpread => ms(profile.noise.seek_max),
        Figure::Overlap => ms(Dur(10 * profile.noise.overlap_jitter_per_4k.0)),
        Figure::ReadAheadStop => if profile.electronics.cache.stop_in_sector { "yes" } else { "no" }.into(),
        Figure::WriteSettle if profile.mechanics.write_seek.is_some() => "in a table".into(),
        Figure::WriteSettle => format!("{:.2} ms", profile.mechanics.write_settle_ns as f64 / 1e6),
        Figure::WriteOverheads => {
            let (miss, q) = (&o.write_miss, &o.queued);
            let all = [miss.after_read, miss.after_write, q.read_write, q.write_read, q.write_write];
            ms(all.into_iter().max().unwrap_or_default())
        }
    }
}
