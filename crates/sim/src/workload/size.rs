//! Distributions of request sizes, in whole sectors.

use super::variates::{Variates, neg_ln_fx};
use super::{Target, WorkloadError};

/// Maximum request size.
const LONGEST_BYTES: u64 = 64 << 20;
/// An exponential size is truncated at this number of means: one in 10^14 would be longer.
const MEANS_AT_MOST: u64 = 32;

/// A distribution of request sizes.
#[derive(Clone, Debug, PartialEq)]
pub enum SizeSpec {
    /// Constant.
    Fixed {
        /// Bytes.
        bytes: u64,
    },
    /// Whole steps whose number is geometrically distributed: an exponential distribution in steps,
    /// with exactly this mean. At least one step, at most 32 means.
    Exponential {
        /// Mean in bytes.
        mean_bytes: u64,
        /// Step in bytes.
        step_bytes: u64,
    },
    /// Uniform between two sizes, in steps.
    Uniform {
        /// Smallest, bytes.
        min_bytes: u64,
        /// Largest, bytes.
        max_bytes: u64,
        /// Step in bytes.
        step_bytes: u64,
    },
    /// One of several by weight: `(bytes, weight)`.
    Weighted(Vec<(u64, u32)>),
}

impl SizeSpec {
    /// Returns the bytes of the longest request, as far as that does not depend on the disk.
    pub fn longest_bytes(&self) -> u64 {
        match self {
            SizeSpec::Fixed { bytes } => *bytes,
            SizeSpec::Exponential { mean_bytes, .. } => mean_bytes.saturating_mul(MEANS_AT_MOST),
            SizeSpec::Uniform { max_bytes, .. } => *max_bytes,
            SizeSpec::Weighted(of) => of.iter().map(|(bytes, _)| *bytes).max().unwrap_or(0),
        }
    }
}

/// A distribution compiled for one disk, in its sectors.
#[derive(Clone, Debug)]
pub(super) enum Size {
    Fixed(u32),
    /// `step` times the ceiling of an exponential variate with mean `scale_fx` / 2^32, truncated at
    /// `most`.
    Geometric {
        step: u32,
        scale_fx: u64,
        most: u32,
    },
    Uniform {
        min: u32,
        step: u32,
        steps: u64,
    },
    /// Sizes with cumulative weights.
    Weighted {
        of: Vec<(u32, u64)>,
        total: u64,
    },
}

/// Keys of the settings that may make a request too large.
pub(super) const SIZE_KEYS: &[&str] = &["size", "sizes", "size_mean", "size_max", "like"];

impl Size {
    /// Compiles a distribution for a disk.
    pub(super) fn new(spec: &SizeSpec, target: &Target) -> Result<Size, WorkloadError> {
        let whole =
            |what: &str, bytes: u64, keys| sectors(what, bytes, target).map(|n| n as u32).map_err(|e| e.about(keys));
        Ok(match spec {
            SizeSpec::Fixed { bytes } => Size::Fixed(whole("request size", *bytes, SIZE_KEYS)?),
            SizeSpec::Exponential { mean_bytes, step_bytes } => {
                let step = whole("step of the request size", *step_bytes, &["size_step"])?;
                if mean_bytes < step_bytes || *mean_bytes > LONGEST_BYTES {
                    return Err(WorkloadError::range(
                        "mean request size in bytes",
                        mean_bytes,
                        step_bytes,
                        LONGEST_BYTES,
                    )
                    .about(&["size_mean", "size_step"]));
                }
                let most = (mean_bytes / u64::from(target.sector_bytes) * MEANS_AT_MOST)
                    .min(target.capacity)
                    .min(u64::from(u32::MAX / 2));
                // A whole number of steps within the limit.
                let most = (most / u64::from(step)).max(1) * u64::from(step);
                // Ceiling of c * E is geometric with mean 1 / (1 - exp(-1/c)); c = -1 / ln(1 -
                // step/mean) gives the required mean. 1 - step/mean as a fraction of 2^64:
                let stay = ((u128::from(mean_bytes - step_bytes) << 64) / u128::from(*mean_bytes)) as u64;
                let scale_fx = if stay == 0 { 0 } else { ((1u128 << 64) / u128::from(neg_ln_fx(stay))) as u64 };
                Size::Geometric { step, scale_fx, most: most as u32 }
            }
            SizeSpec::Uniform { min_bytes, max_bytes, step_bytes } => {
                let min = whole("smallest request size", *min_bytes, &["size_min"])?;
                let step = whole("step of the request size", *step_bytes, &["size_step"])?;
                let max = whole("largest request size", *max_bytes, &["size_max"])?;
                if max < min {
                    return Err(WorkloadError::range(
                        "largest request size in bytes",
                        max_bytes,
                        min_bytes,
                        LONGEST_BYTES,
                    )
                    .about(&["size_max"]));
                }
                Size::Uniform { min, step, steps: u64::from((max - min) / step) + 1 }
            }
            SizeSpec::Weighted(of) => {
                let mut total = 0u64;
                let mut compiled = Vec::with_capacity(of.len());
                for (bytes, weight) in of {
                    total += u64::from(*weight);
                    compiled.push((whole("request size", *bytes, SIZE_KEYS)?, total));
                }
                if total == 0 {
                    let none = WorkloadError::range("sum of the weights of request sizes", 0, 1, u32::MAX);
                    return Err(none.about(&["sizes"]));
                }
                Size::Weighted { of: compiled, total }
            }
        })
    }

    /// Draws a size.
    #[inline]
    pub(super) fn draw(&self, rng: &mut Variates) -> u32 {
        match self {
            Size::Fixed(n) => *n,
            Size::Geometric { step, scale_fx, most } => {
                // The ceiling of an exponential variate is geometric.
                let steps = (u128::from(rng.exponential_fx()) * u128::from(*scale_fx)) >> 32;
                let steps = (steps as u64).div_ceil(1 << 32).max(1);
                (u64::from(*step).saturating_mul(steps)).min(u64::from(*most)) as u32
            }
            Size::Uniform { min, step, steps } => min + step * rng.below(*steps) as u32,
            Size::Weighted { of, total } => {
                let at = rng.below(*total);
                of.iter().find(|(_, upto)| at < *upto).map_or(of[0].0, |(n, _)| *n)
            }
        }
    }

    /// Returns the largest possible size.
    pub(super) fn longest(&self) -> u32 {
        match self {
            Size::Fixed(n) => *n,
            Size::Geometric { most, .. } => *most,
            Size::Uniform { min, step, steps } => min + step * (*steps as u32 - 1),
            Size::Weighted { of, .. } => of.iter().map(|(n, _)| *n).max().unwrap_or(1),
        }
    }
}

/// Converts bytes to the target's sectors; they must be whole and at least one.
pub(super) fn sectors(what: &str, bytes: u64, target: &Target) -> Result<u64, WorkloadError> {
    let sector = u64::from(target.sector_bytes);
    if bytes == 0 || bytes > LONGEST_BYTES || !bytes.is_multiple_of(sector) {
        return Err(WorkloadError::range(
            format!("{what} in bytes (whole sectors of {sector})"),
            bytes,
            sector,
            LONGEST_BYTES,
        ));
    }
    Ok(bytes / sector)
}
