//! The basis of guarantees on the drive: the worst case of a command, and measured service times.
//!
//! Both follow from the profile: w by equation 5 of Reuther and Pohlack 2003, X by the load of
//! `profiles measure` on a virtual drive of that profile. X was not measured on the drive itself,
//! and the profile says so. Without figures of writes, the virtual drive's writes are as quick as
//! reads, unlike any real drive's: then only X of reads is given.

use headtime_disk::Model;
use headtime_disk::profile::Figure;
use headtime_probe::{Finding, Found};
use headtime_sched::streams::{Traffic, WorstCase, unknown_figures};
use headtime_sim::service::{BYTES, Load, Measured, families};

/// Adds w and X to the findings, if the profile yields them.
pub fn add(found: &mut Found, seed: u64) {
    let sectors = (BYTES / u64::from(found.profile.sector_bytes)) as u32;
    let worst = Model::new(&found.profile)
        .map_err(|e| e.to_string())
        .and_then(|m| WorstCase::of(&found.profile, &m, sectors).map_err(|e| e.to_string()));
    let unknown = unknown_figures(&found.profile, Traffic::Any);
    let mut tell = |what: &'static str, value: String, how: &str, sure: &str| {
        found.findings.push(Finding { what, value, how: how.into(), sure: sure.into() });
    };
    match worst {
        Ok(worst) => {
            let unknown: Vec<String> = unknown.iter().map(|f| f.to_string()).collect();
            let least = if unknown.is_empty() { "" } else { "more than " };
            let value = format!("{least}{:.2} ms for 64 KiB, turns in it: {}", worst.total().as_ms_f64(), worst.turns);
            let sure = match unknown.is_empty() {
                true => "as sure as its terms".into(),
                false => format!("not known, and not in it: {}", unknown.join("; ")),
            };
            tell("worst case (w)", value, "equation 5 with what was found", &sure);
        }
        Err(e) => tell("worst case (w)", format!("not given: {e}"), "equation 5 with what was found", "-"),
    }
    let usual = Load::reads(BYTES, seed);
    // A drive without a queue takes one command at a time.
    let load = Load { outstanding: usual.outstanding.min(found.profile.electronics.queue.depth), ..usual };
    match families(&found.profile, &load) {
        Err(e) => tell("service times (X)", format!("not given: {e}"), "a virtual drive of this profile", "-"),
        Ok(measured) => {
            // The last entry of the reads is that of a load that is always backlogged.
            let usual = measured.iter().rfind(|m| m.times.load.reads_ppm == load.reads_ppm).unwrap_or(&measured[0]);
            let value =
                format!("mean {:.2} ms for 64 KiB, longest {:.2}", usual.mean.as_ms_f64(), usual.longest.as_ms_f64());
            let writes = !unknown.contains(Figure::WriteSettle) && !unknown.contains(Figure::WriteOverheads);
            let sure = if writes { "" } else { "of reads only; " };
            let late = found.profile.known.late.as_ref();
            let late = late.filter(|_| unknown.contains(Figure::SettleTurns)).map_or_else(String::new, |late| {
                let turns: u32 = late.by_turns.iter().sum();
                format!("; {turns} of {} reads were turns later, which streams are promised with", late.reads)
            });
            tell(
                "service times (X)",
                value,
                "a virtual drive of this profile",
                &format!("{sure}not timed on the drive{late}"),
            );
            let words = |m: Measured| {
                let mut times = m.times;
                times.load.words += "; of a virtual drive of this profile";
                times
            };
            let is_known = |m: &Measured| writes || m.times.load.reads_ppm == 1_000_000;
            found.profile.service_times = measured.into_iter().filter(is_known).map(words).collect();
            found.profile.sources.insert("service_times".into(), "predicted with this profile".into());
        }
    }
}
