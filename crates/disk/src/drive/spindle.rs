//! The platter's true rotation: exact period, constant speed error, slow drift.

use crate::angle::Angle;
use crate::drive::noise::Noise;
use crate::rotation::Rotation;
use crate::time::{Dur, Time};

/// Interval of the speed's changes.
const STEP: Dur = Dur::from_secs(1);
/// The most changes that are drawn for an idle time: more than 11 days. Of a longer one, the speed
/// stays as it is until the last ones.
const MOST_STEPS: u64 = 1_000_000;

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
        if self.wanders && self.base_at + STEP <= now {
            let steps = now.since(self.base_at).0 / STEP.0;
            if steps > MOST_STEPS {
                let at = self.base_at + Dur((steps - MOST_STEPS) * STEP.0);
                self.base = self.angle_at(at);
                self.base_at = at;
            }
            for _ in 0..steps.min(MOST_STEPS) {
                let at = self.base_at + STEP;
                self.base = self.angle_at(at);
                self.base_at = at;
                self.wander_ppb = noise.speed_step_ppb(self.wander_ppb);
                self.current = self.nominal.scaled_period_ppb(self.error_ppb + self.wander_ppb);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::NoiseSpec;

    fn after(times: impl IntoIterator<Item = Time>) -> (Angle, Time, i64) {
        let spec = NoiseSpec { speed_drift_ppb: 20_000, ..NoiseSpec::default() };
        let (mut noise, mut spindle) =
            (Noise::new(spec, 3), Spindle::new(Rotation::from_rpm(10_000, 1).unwrap(), 50, true));
        times.into_iter().for_each(|at| spindle.wander_to(at, &mut noise));
        (spindle.base, spindle.base_at, spindle.wander_ppb)
    }

    #[test]
    fn a_long_idle_time_costs_no_more_than_days_do() {
        let second = |n: u64| Time(n * STEP.0 + 7);
        assert_eq!(after((0..3000).map(second)), after([second(2999)]), "a short one has all its steps");
        for long in [10_000_000_000_000_000, 1 << 63, u64::MAX] {
            let (_, at, _) = after([Time(long)]);
            assert_eq!(at.0, long / STEP.0 * STEP.0);
            assert_eq!(after([Time(long), Time(long)]), after([Time(long)]));
        }
    }
}
