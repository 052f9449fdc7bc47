//! Predictions of a real drive's head times: the scheduling core is driven with a measured trace.
//!
//! Each request is submitted, and completes, at the instants of the trace. So the core is in the
//! position of a host in front of the real drive: it knows its profile and when requests completed,
//! and nothing else. Its errors are those that scheduling outside that drive would have had (Lumb,
//! Schindler and Ganger 2002, section 5.2), whereas [`super::run`] compares response times of a
//! model that no completion corrects.

use headtime_disk::{Model, Outcome, Time};
use headtime_sched::{Action, Config, Core, Order, Prediction, PredictionStats, Request};

use super::{Measured, ValidateError};
use crate::traces::Gap;

/// One prediction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Predicted {
    /// The request with the real drive's response.
    pub measured: Measured,
    /// Cylinder and surface of the last sector of the request before it.
    pub from: (u32, u16),
    /// Cylinder and surface of its first sector.
    pub to: (u32, u16),
    /// Predicted and observed head time.
    pub prediction: Prediction,
}

/// The predictions for a trace.
#[derive(Clone, Debug, Default)]
pub struct Predictions {
    /// Statistics of all of them.
    pub stats: PredictionStats,
    /// Each, in the order of the trace.
    pub each: Vec<Predicted>,
}

/// Predicts the head times of `trace` on the drive of a model, which is that of the profile in the
/// rig that recorded the trace ([`headtime_disk::profile::Profile::in_rig`]).
///
/// # Errors
/// [`ValidateError::OutOfRange`]: a request exceeds the drive's capacity.
pub fn predict(model: &Model, trace: &[Measured]) -> Result<Predictions, ValidateError> {
    let capacity = model.geometry.capacity();
    let mut core = Core::new(Config::new(Order::Fcfs).with_outstanding(1), model.clone());
    let mut predictions = Predictions::default();
    let (mut at, mut from) = (Time::ZERO, (0, 0));
    for (id, m) in (0..).zip(trace) {
        if let (Gap::Before(gap), 1..) = (m.gap, id) {
            at += gap;
        }
        let request = Request { id, kind: m.kind, lbn: m.lbn, count: m.count, fua: false, sync: true, owner: 0 };
        core.submit(request, at).map_err(|_| ValidateError::OutOfRange {
            line: m.line,
            lbn: m.lbn,
            count: m.count,
            capacity,
        })?;
        drain(&mut core);
        at += m.response;
        core.complete(id, Outcome::Ok, at);
        let track = |lbn| model.geometry.track_of(lbn).map_or((0, 0), |t| (t.cylinder, t.surface));
        let (to, end) = (track(m.lbn), track(m.lbn + u64::from(m.count) - 1));
        if let Some(prediction) = drain(&mut core) {
            predictions.stats.add(&prediction);
            predictions.each.push(Predicted { measured: *m, from, to, prediction });
        }
        from = end;
        if let Gap::After(gap) = m.gap {
            at += gap;
        }
    }
    Ok(predictions)
}

/// Carries out the core's actions; returns the prediction of the request that finished.
fn drain(core: &mut Core) -> Option<Prediction> {
    let mut prediction = None;
    while let Some(action) = core.poll() {
        if let Action::Finish(finished) = action {
            prediction = finished.prediction;
        }
    }
    prediction
}
