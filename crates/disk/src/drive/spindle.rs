//! The platter's true rotation: exact period, constant speed error, slow drift.

use crate::angle::Angle;
use crate::drive::noise::Noise;
use crate::rotation::Rotation;
use crate::time::{Dur, Time};

/// Interval of the speed's changes.
const STEP: Dur = Dur::from_secs(1);

/// The platter's angle as a function of time.
#[derive(Clone, Debug)]
pub(super) struct Spindle {
    nominal: Rotation,
    current: Rotation,
    error_ppb: i64,
    wander_ppb: i64,
    base_at: Time,
    base: Angle,
    wanders: bool,
}

impl Spindle {
    /// Creates a platter with angle zero at time zero.
    pub(super) fn new(nominal: Rotation, error_ppb: i64, wanders: bool) -> Spindle {
        let current = if error_ppb == 0 { nominal } else { nominal.scaled_period_ppb(error_ppb) };
        Spindle { nominal, current, error_ppb, wander_ppb: 0, base_at: Time::ZERO, base: Angle::ZERO, wanders }
    }

    /// Returns the current speed.
    #[inline]
    pub(super) fn rotation(&self) -> &Rotation {
        &self.current
    }

    /// Returns the angle under the head at `t`.
    #[inline]
    pub(super) fn angle_at(&self, t: Time) -> Angle {
        self.base + self.current.angle_after(t.since(self.base_at))
    }

    /// Updates the drifting speed to `now`, the current time: work is planned ahead of it, and no
    /// earlier angle is needed any more.
    #[inline]
    pub(super) fn wander_to(&mut self, now: Time, noise: &mut Noise) {
        if self.wanders {
            while self.base_at + STEP <= now {
                let at = self.base_at + STEP;
                self.base = self.angle_at(at);
                self.base_at = at;
                self.wander_ppb = noise.speed_step_ppb(self.wander_ppb);
                self.current = self.nominal.scaled_period_ppb(self.error_ppb + self.wander_ppb);
            }
        }
    }
}
