//! The basis of a drive's worst case: which figures were measured, which are stated bounds, and
//! which are unknown.

use headtime_disk::Dur;
use headtime_disk::profile::{Bounds, Figure, Figures, Knowledge, Profile};
use headtime_sched::Order;
use headtime_sched::streams::{Exhausted, Traffic, list_figures, needed_figures, unknown_figures};
use headtime_serve::streams::Grounds as Served;
use serde::Serialize;

use crate::failure::Failure;
use crate::screen::columns;

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
    pub fn applied(&self, profile: &Profile) -> Result<Profile, Failure> {
        let mut believed = profile.clone();
        let Some(bounds) = self.bounds else { return Ok(believed) };
        let applied = bounds.apply(&mut believed, &format!("stated with {}", self.with));
        applied.map_err(|e| Failure::input(format!("{}: {e}", self.with)))?;
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
    figure: &'static str,
    /// Its description.
    #[serde(skip)]
    name: String,
    /// Its value with its unit; none if it is unknown.
    value: Option<String>,
    /// "measured", "bounded", "stated" or "unknown".
    known: &'static str,
    /// How it was measured, or why it is bounded.
    how: Option<String>,
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

    /// Converts to the form that a running server uses.
    pub fn served(&self, exhausted: Exhausted, order: Order) -> Served {
        Served { unknown: self.unknown, bounds: self.bounds(), exhausted, other_order: !order.is_by_position() }
    }

    /// The names of the unknown figures.
    pub fn unknown_words(&self) -> Vec<&'static str> {
        self.unknown.iter().map(Figure::word).collect()
    }

    /// A table as text.
    pub fn to_text(&self) -> String {
        let rows: Vec<Vec<String>> = self.rests_on.iter().map(RestsOn::cells).collect();
        let mut text = format!("\nWhat w rests on\n{}", columns(&rows, &[1]));
        if !self.unknown.is_empty() {
            text += "  w is too small by what is unknown: no mandatory stream is admitted\n";
        }
        text
    }
}

impl RestsOn {
    fn cells(&self) -> Vec<String> {
        let how = self.how.as_deref().map_or_else(|| self.known.into(), |how| format!("{}: {how}", self.known));
        vec![format!("  {}", self.name), self.value.clone().unwrap_or_else(|| "-".into()), how]
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
