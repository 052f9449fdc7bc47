//! Characterised virtual drives: the basis of P1 to P9.
//!
//! The drive has all the noise of its profile, and a spindle that is off by [`OFF_PPM`] and
//! wanders; the probe has only its answers ([`headtime_probe::device::Device`]). Each drive is
//! characterised once per seed, however many experiments use it.

use std::sync::{Arc, Mutex, PoisonError};

use headtime_disk::compare::{self, Comparison};
use headtime_disk::profile::{self, Profile};
use headtime_disk::{DriveConfig, Dur, Model};
use headtime_probe::device::Device;
use headtime_probe::virtual_drive::VirtualDrive;
use headtime_probe::watch::Unwatched;
use headtime_probe::{Options, THOROUGH_REQUESTS, characterize};

use crate::experiment::{Run, RunError, Spec, failed};
use headtime_sim::scaled_drives::narrowed;

/// Error of the spindle's period relative to the profile, parts per million: more than the 10 ppm
/// to which it must be found (P1), and no round figure.
pub(crate) const OFF_PPM: u64 = 41;
/// Drift of the period, parts per billion, as on the built-in drives that have a figure (Atlas 10K,
/// Cheetah 18LP).
const WANDERS_PPB: u32 = 1_000;
/// Time from a completion to the host's next command.
const HOST: Dur = Dur::from_us(20);
/// Separates the probe's random numbers from the drive's.
const PROBE: u64 = 0x50_72_6f_62;

/// A drive, and how it is characterised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Subject {
    /// Name of a built-in drive.
    pub drive: &'static str,
    /// Reduction of its cylinders ([`narrowed`]); 1: unchanged.
    pub narrowed: u32,
    /// The allowed commands.
    pub by: By,
}

/// The allowed commands of the probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum By {
    /// Reads only.
    Reads,
    /// Also writes, to a tenth of the sectors in the middle.
    Writes,
    /// The same, with the search for rare events, without a time limit.
    Hours,
}

impl Subject {
    /// A built-in drive that is only read.
    pub(crate) fn read(drive: &'static str) -> Subject {
        Subject { drive, narrowed: 1, by: By::Reads }
    }
}

/// A characterised drive.
#[derive(Debug)]
pub(crate) struct CharacterisedDrive {
    /// Name of the built-in drive.
    pub drive: &'static str,
    /// The truth, with the errors of its spindle.
    pub truth: Profile,
    /// The result, or the reason for none.
    pub found: Result<Found, String>,
    /// Minutes of the drive's own time.
    pub minutes: f64,
}

/// The result of a characterisation.
#[derive(Debug)]
pub(crate) struct Found {
    /// The profile.
    pub profile: Profile,
    /// The profile and the truth as models.
    pub models: Models,
    /// Comparison with the truth, limited to what the probe can observe.
    pub compared: Comparison,
    /// The probe's own count of reads predicted within 50 us, as it reports it.
    pub said: String,
}

/// Two profiles as models.
#[derive(Debug)]
pub(crate) struct Models {
    /// The drive at its true speed.
    pub truth: Model,
    /// The characterised drive.
    pub found: Model,
}

/// A built-in drive with the spindle's errors.
pub(crate) fn truth(spec: &Spec, which: Subject) -> Result<Profile, RunError> {
    let full = profile::builtin(which.drive).map_err(|e| failed(spec, e))?;
    let mut truth =
        if which.narrowed > 1 { narrowed(&full, which.narrowed).map_err(|e| failed(spec, e))? } else { full };
    truth.noise.speed_error_ppb = 1_000 * OFF_PPM as i64;
    truth.noise.speed_drift_ppb = WANDERS_PPB;
    Ok(truth)
}

/// The same with the speed error in the speed itself: the result of a perfect characterisation.
fn as_it_turns(truth: &Profile) -> Profile {
    let mut p = truth.clone();
    let (turns, minutes) = p.mechanics.rpm;
    p.mechanics.rpm = (turns * 1_000_000, minutes * (1_000_000 + OFF_PPM));
    p.noise.speed_error_ppb = 0;
    p
}

/// Characterises a drive, unless that was done before.
pub(crate) fn of(spec: &Spec, seed: u64, which: Subject) -> Result<Arc<CharacterisedDrive>, RunError> {
    let slot = kept(which, seed);
    // A concurrent caller waits for the running characterisation.
    let mut slot = slot.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = &*slot {
        return Ok(known.clone());
    }
    let known = Arc::new(characterise(spec, seed, which)?);
    *slot = Some(known.clone());
    Ok(known)
}

/// All of these, as steps of a run.
pub(crate) fn all(
    spec: &Spec,
    run: &Run,
    drives: &[&'static str],
    by: By,
) -> Result<Vec<Arc<CharacterisedDrive>>, RunError> {
    let each = drives.iter().map(|&drive| {
        let known = of(spec, run.seed, Subject { by, ..Subject::read(drive) })?;
        run.progress.advance(1);
        Ok(known)
    });
    each.collect()
}

fn characterise(spec: &Spec, seed: u64, which: Subject) -> Result<CharacterisedDrive, RunError> {
    let truth = truth(spec, which)?;
    let config = DriveConfig::default().with_seed(seed);
    let mut device = VirtualDrive::new(&truth, config, HOST).map_err(|e| failed(spec, e))?;
    let sectors = device.sectors();
    let writable = (which.by != By::Reads).then_some((sectors / 20 * 9, sectors / 20 * 11));
    let settling = if which.by == By::Hours { THOROUGH_REQUESTS } else { 0 };
    let options = Options { seed: seed ^ PROBE, writable, settling, ..Options::default() };
    let outcome = characterize(&mut device, &mut Unwatched, &options);
    let minutes = Dur(device.now().0).as_secs_f64() / 60.0;
    let found = match outcome {
        Err(e) => Err(e.to_string()),
        Ok(f) => held_against(&as_it_turns(&truth), f, which.by, seed),
    };
    Ok(CharacterisedDrive { drive: which.drive, truth, found, minutes })
}

fn held_against(truth: &Profile, found: headtime_probe::Found, by: By, seed: u64) -> Result<Found, String> {
    let profile = found.profile;
    // A write-back drive reveals nothing about its writes.
    let reads_only = by == By::Reads || truth.electronics.cache.write_back;
    let options = compare::Options { seed, reads_only, ..compare::Options::default() };
    let compared = compare::compare(truth, &profile, &options).map_err(|e| e.to_string())?;
    let model = |p: &Profile| Model::new(p).map_err(|e| e.to_string());
    let models = Models { truth: model(truth)?, found: model(&profile)? };
    let said = found.findings.iter().find(|f| f.what == "verified").map_or(String::new(), |f| f.value.clone());
    Ok(Found { profile, models, compared, said })
}

type Slot = Arc<Mutex<Option<Arc<CharacterisedDrive>>>>;

/// The cache entry of a drive.
fn kept(which: Subject, seed: u64) -> Slot {
    static KEPT: Mutex<Vec<(Subject, u64, Slot)>> = Mutex::new(Vec::new());
    let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, _, slot)) = kept.iter().find(|(w, n, _)| *w == which && *n == seed) {
        return slot.clone();
    }
    let slot = Slot::default();
    kept.push((which, seed, slot.clone()));
    slot
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::runner::tests::FAKE;

    #[test]
    fn the_truth_turns_as_much_slower_as_its_noise_says() {
        let truth = truth(FAKE.spec, Subject::read("atlas10k")).unwrap();
        let period = |p: &Profile| Model::new(p).unwrap().mechanics.rotation;
        let slower = period(&truth).scaled_period_ppb(truth.noise.speed_error_ppb).period();
        assert_eq!(period(&as_it_turns(&truth)).period(), slower);
        assert_ne!(period(&truth).period(), slower);
    }

    #[test]
    fn a_drive_is_characterised_once_for_a_seed_and_alike_whenever_it_is() {
        let which = Subject { narrowed: 200, ..Subject::read("cheetah36es") };
        let first = of(FAKE.spec, 1, which).unwrap();
        assert!(Arc::ptr_eq(&first, &of(FAKE.spec, 1, which).unwrap()));
        let again = characterise(FAKE.spec, 1, which).unwrap();
        assert_eq!(first.minutes, again.minutes);
        assert_ne!(first.minutes, of(FAKE.spec, 2, which).unwrap().minutes);
    }
}
