//! What stands in for the whole of `headtime_probe::characterize` until that is there: it finds the cache and the period, and
//! writes a profile that says so. Everything else in this command is written against these types.

use std::collections::BTreeMap;

use headtime_disk::profile::{self, Layout, Profile, Skew, SpareUnit, Sparing, ZoneSpec};
use headtime_probe::device::Device;
use headtime_probe::sampler::{ProbeError, Sampler, Surprises, Watch};
use headtime_probe::spindle::Spindle;

/// How to go about it.
#[derive(Clone, Debug)]
pub struct Options {
    /// What is asked for at random follows from it.
    pub seed: u64,
    /// Minutes of the device's time.
    pub budget_minutes: Option<u64>,
    /// Hours instead of minutes, for figures that few need.
    #[expect(dead_code, reason = "there is only one way to find the two")]
    pub thorough: bool,
    /// Writes are allowed, anywhere.
    #[expect(dead_code, reason = "neither of the two needs writes")]
    pub destructive: bool,
    /// An older profile of this drive.
    pub old: Option<Profile>,
}

/// One thing that was found.
#[derive(Clone, Debug)]
pub struct Finding {
    /// What it is.
    pub what: &'static str,
    /// What was found.
    pub value: String,
    /// How.
    pub how: String,
    /// How sure it is.
    pub sure: String,
}

/// Everything that was found.
#[derive(Clone, Debug)]
pub struct Found {
    /// The profile.
    pub profile: Profile,
    /// The same in words, with how sure it is.
    pub findings: Vec<Finding>,
    /// What was met on the way.
    pub surprises: Surprises,
}

/// Cache and period, and nothing else.
///
/// # Errors
/// As the probe's parts.
pub fn characterize(device: &mut dyn Device, watch: &mut dyn Watch, options: &Options) -> Result<Found, ProbeError> {
    let mut sampler = Sampler::new(device, watch, options.seed);
    if let Some(minutes) = options.budget_minutes {
        sampler.limit(minutes);
    }
    let mut findings = Vec::new();
    let mut tell = |sampler: &mut Sampler, f: Finding| {
        sampler.found(f.what, &f.value, &f.how, &f.sure);
        findings.push(f);
    };
    sampler.find_cache()?;
    let value = match sampler.forgets() {
        0 => "answers no read twice".to_string(),
        n => format!("answers within {} us, forgets a read behind {n} others", sampler.quick().0 / 1000),
    };
    let how = "sectors read again, behind 0, 1, 2, 4 ... others".to_string();
    tell(&mut sampler, Finding { what: "cache", value, how, sure: "to a factor of two".into() });
    let spindle = Spindle::find(&mut sampler)?;
    let value = format!("{:.6} ms", spindle.mean_period_ns() / 1e6);
    let how = "times between reads of one sector".to_string();
    tell(&mut sampler, Finding { what: "period", value, how, sure: "16 readings on one line".into() });
    let profile = outline(&sampler, &spindle, options.old.as_ref());
    let surprises = sampler.surprises().clone();
    Ok(Found { profile, findings, surprises })
}

/// A profile of which only size and speed are the drive's.
fn outline(sampler: &Sampler, spindle: &Spindle, old: Option<&Profile>) -> Profile {
    let base = || profile::builtin("hitachi-7k1000c").expect("built in");
    let mut p = old.cloned().unwrap_or_else(base);
    if old.is_none() {
        const SPT: u32 = 1_000;
        let cylinders = sampler.sectors().div_ceil(u64::from(SPT));
        let zone = ZoneSpec {
            first_cylinder: 0,
            last_cylinder: (cylinders - 1) as u32,
            surface: None,
            sectors_per_track: vec![SPT],
            offset: None,
            track_skew: Skew::ZERO,
            cylinder_skew: Skew::ZERO,
            reserved_sectors: 0,
            sparing: Sparing {
                unit: SpareUnit::Zone,
                spares: cylinders * u64::from(SPT) - sampler.sectors(),
                ..Sparing::NONE
            },
            slips: Vec::new(),
            defects: Vec::new(),
        };
        p.geometry.surfaces = 1;
        p.geometry.cylinders = cylinders as u32;
        p.geometry.layout =
            Layout::SeekFirst { group_tracks: cylinders as u32, tracks_alternate: false, surfaces_alternate: false };
        p.geometry.zones = vec![zone];
        p.sources = BTreeMap::new();
        for table in ["geometry", "electronics", "noise"] {
            p.sources.insert(table.into(), "not measured yet: placeholders".into());
        }
        // One second is the longest seek that is taken.
        p.mechanics.seek.retain(|s| s.0 < cylinders as u32);
        p.synthesised = Some("only the period and the number of sectors were measured".into());
    }
    p.sources.insert("mechanics".into(), "the period: reads of one sector; seeks not measured".into());
    p.sector_bytes = sampler.sector_bytes();
    p.stated_sectors = Some(sampler.sectors());
    // To a hundred-thousandth of a turn a minute, which is a billionth part; the ratio's figures must stay below 2^31.
    p.mechanics.rpm = ((6e15 / spindle.mean_period_ns()).round() as u64, 100_000);
    p
}
