//! A comparison of a profile's drive with a trace file, as `headtime validate` and the Python
//! package report it.

use std::path::{Path, PathBuf};

use headtime_disk::profile::Profile;
use headtime_disk::{Drive, DriveConfig, Model, ModelError};
use serde::Serialize;

use super::{Predictions, ValidateError, Validation, measured, predict, run};
use crate::result::PredictionResult;
use crate::traces::{self, GapSide, ReadOptions, TraceError, TraceFormat};

/// A drive's model, compared with what was measured on the drive.
#[derive(Clone, Debug)]
pub struct Comparison {
    /// Name of the profile.
    pub disk: String,
    /// Response times of the model and of the drive.
    pub validation: Validation,
    /// Head times as a scheduler in front of the drive would have predicted them.
    pub predictions: Predictions,
}

/// The figures of a comparison.
#[derive(Clone, Debug, Serialize)]
pub struct Figures<'a> {
    /// Name of the profile.
    pub disk: &'a str,
    /// Requests replayed.
    pub requests: usize,
    /// The demerit.
    pub rms_ms: f64,
    /// Mean response of the real drive.
    pub mean_ms_measured: f64,
    /// Mean response of the model.
    pub mean_ms_model: f64,
    /// How close the model comes to single requests.
    pub random_reads: RandomReads,
    /// How well a scheduler in front of the drive would have predicted head times.
    pub prediction: PredictionResult,
}

/// Shares of the random reads whose modelled response is close to the measured one; `None` without
/// any.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct RandomReads {
    /// Within 200 us.
    pub within_200us: Option<f64>,
    /// Within 500 us.
    pub within_500us: Option<f64>,
}

/// Why a drive cannot be compared with a trace.
#[derive(Debug, thiserror::Error)]
pub enum CompareError {
    /// The trace cannot be read.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// It cannot be replayed.
    #[error("{}{}: {source}", file.display(), source.line().map(|n| format!(":{n}")).unwrap_or_default())]
    Replay {
        /// The trace's file.
        file: PathBuf,
        /// What is wrong, and in which line.
        source: ValidateError,
    },
    /// The profile is invalid.
    #[error(transparent)]
    Model(#[from] ModelError),
}

impl Comparison {
    /// Replays a file in the format `disksim-validate` on a profile's drive, and predicts its head
    /// times. The drive is without noise, in the rig that recorded the trace; with `disksim_exact`
    /// it follows DiskSim 4.0 where that deviates from the meaning of its parameters.
    ///
    /// # Errors
    /// As [`CompareError`] says.
    pub fn new(profile: &Profile, trace: &Path, gap: GapSide, disksim_exact: bool) -> Result<Comparison, CompareError> {
        let at = |source| CompareError::Replay { file: trace.to_owned(), source };
        let options = ReadOptions { gap, ..ReadOptions::default() };
        let records = traces::open(trace, TraceFormat::DisksimValidate, options)?.read_all()?;
        let requests = measured(&records, profile.sector_bytes).map_err(at)?;
        let config =
            DriveConfig::default().with_seed(0).with_disksim_exact(disksim_exact).with_rig(true).with_noise(false);
        let validation = run(&mut Drive::new(profile, config)?, &requests).map_err(at)?;
        let predictions = predict(&Model::new(&profile.clone().in_rig())?, &requests).map_err(at)?;
        Ok(Comparison { disk: profile.name.clone(), validation, predictions })
    }

    /// Returns its figures.
    pub fn figures(&self) -> Figures<'_> {
        let v = &self.validation;
        let share = |of: f64| (v.random_reads > 0).then_some(of);
        Figures {
            disk: &self.disk,
            requests: v.requests,
            rms_ms: v.rms_ms,
            mean_ms_measured: v.mean_ms_measured,
            mean_ms_model: v.mean_ms_model,
            random_reads: RandomReads { within_200us: share(v.within_200us), within_500us: share(v.within_500us) },
            prediction: PredictionResult::of(&self.predictions.stats),
        }
    }
}
