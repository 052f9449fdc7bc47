//! Guarantees in words: shares of a drive's time, and what a worst case rests on.

use std::fmt;

use headtime_disk::profile::Profile;
use headtime_sched::streams::{Admitted, BestEffort, Disk, Exhausted, Forecast, Stream, USUAL_WAITING, forecast};
use headtime_sim::promises::{Grounds, RestsOn};

use serde::Serialize;

use crate::screen::{self, columns};
use crate::words::ppm;

/// Shares of a drive's time taken by a set of streams, and the forecast of best effort.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Shares {
    /// Worst-case share of mandatory requests.
    mandatory_at_worst: f64,
    /// Expected share of all streams.
    expected: f64,
    /// Share of best effort under constant backlog; the rest is idle. None: no forecast is
    /// possible.
    best_effort: Option<f64>,
    best_effort_per_second: Option<f64>,
    /// The backlog assumed for it, requests.
    best_effort_waiting: u32,
    /// The first two shares in parts per million, and the forecast of best effort.
    #[serde(skip)]
    ppm: [u64; 2],
    #[serde(skip)]
    forecast: Option<Forecast>,
}

impl Shares {
    /// Builds the shares from the worst-case and the expected load, in parts per million, and the
    /// forecast of best effort.
    pub fn of(worst: u64, expected: u64, forecast: Option<Forecast>) -> Shares {
        let share = |ppm: u64| ppm as f64 / 1e6;
        Shares {
            mandatory_at_worst: share(worst),
            expected: share(expected),
            best_effort: forecast.map(|f| share(f.best_effort_ppm)),
            best_effort_per_second: forecast.map(|f| f.per_1000_s as f64 / 1e3),
            best_effort_waiting: USUAL_WAITING,
            ppm: [worst, expected],
            forecast,
        }
    }

    /// Shares of an admitted set of streams.
    pub fn admitted(disk: &Disk, streams: &[Stream], admitted: &Admitted, exhausted: Exhausted) -> Shares {
        let forecast = forecast(disk, streams, admitted, exhausted, BestEffort::usual(disk));
        Shares::of(admitted.load.worst_ppm, admitted.load.expected_ppm, forecast)
    }
}

impl fmt::Display for Shares {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [worst, expected] = self.ppm.map(ppm);
        write!(f, "mandatory requests take {worst} of the time at their worst; ")?;
        write!(f, "what is expected of all streams takes {expected}")?;
        let Some(forecast) = self.forecast else { return Ok(()) };
        let (share, rate) = (ppm(forecast.best_effort_ppm), forecast.per_1000_s as f64 / 1e3);
        write!(f, ". Best effort has {share} of it, {rate:.1} requests a second, if {USUAL_WAITING} always wait")
    }
}

/// Notes the request sizes, in sectors, whose service times were measured on the virtual drive.
pub fn note_measured(profile: &Profile, sizes: &[u32]) {
    for sectors in sizes {
        let bytes = u64::from(*sectors) * u64::from(profile.sector_bytes);
        screen::note(&format!(
            "the profile of {} has no service times for requests of {bytes} bytes: measured on its virtual drive",
            profile.name
        ));
    }
}

/// Formats the figures of a worst case as a table.
pub fn grounds_text(grounds: &Grounds) -> String {
    let cells = |r: &RestsOn| {
        let how = r.how.as_deref().map_or_else(|| r.known.into(), |how| format!("{}: {how}", r.known));
        vec![format!("  {}", r.name), r.value.clone().unwrap_or_else(|| "-".into()), how]
    };
    let rows: Vec<Vec<String>> = grounds.rests_on.iter().map(cells).collect();
    let mut text = format!("\nWhat w rests on\n{}", columns(&rows, &[1]));
    if !grounds.unknown.is_empty() {
        text += "  w is too small by what is unknown: no mandatory stream is admitted\n";
    }
    text
}
