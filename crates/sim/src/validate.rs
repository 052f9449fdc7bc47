//! Validation of a model: replays a measured trace and compares the distributions of response
//! times.
//!
//! The trace is replayed closed: request 1 at time 0, each later request after the model's
//! completion of the previous one plus the trace's gap. The demerit is the root mean square
//! horizontal distance between the two distributions (Ruemmler and Wilkes 1994), computed over the
//! histogram of DiskSim 4.0, so that figures can be compared with DiskSim's to the fourth digit.

mod comparison;
mod predictions;

pub use comparison::{CompareError, Comparison, Figures, RandomReads};
pub use predictions::{Predicted, Predictions, predict};

use headtime_disk::{Command, Drive, Dur, Kind, Time};

use crate::traces::{Gap, Record};

/// A request of a validation trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Measured {
    /// Read or write.
    pub kind: Kind,
    /// First sector of the drive.
    pub lbn: u64,
    /// Number of sectors of the drive.
    pub count: u32,
    /// The real drive's response time.
    pub response: Dur,
    /// Its pause.
    pub gap: Gap,
    /// Its line in the trace.
    pub line: u64,
}

/// A replayed request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Replayed {
    /// The request with the real drive's response.
    pub measured: Measured,
    /// When it was submitted to the model.
    pub issued: Time,
    /// The model's response time.
    pub modelled: Dur,
    /// Whether it is a read that does not begin within 2,000 sectors of the previous request's end.
    pub random_read: bool,
}

/// Result of a validation.
#[derive(Clone, Debug, PartialEq)]
pub struct Validation {
    /// Requests replayed.
    pub requests: usize,
    /// The demerit in ms.
    pub rms_ms: f64,
    /// Mean response of the real drive in ms.
    pub mean_ms_measured: f64,
    /// Mean response of the model in ms.
    pub mean_ms_model: f64,
    /// Random reads in the trace.
    pub random_reads: usize,
    /// Share of the random reads whose modelled response is within 200 us of the measured one.
    pub within_200us: f64,
    /// Share of the random reads whose modelled response is within 500 us of the measured one.
    pub within_500us: f64,
    /// All requests.
    pub replayed: Vec<Replayed>,
}

/// Why a trace cannot be replayed. Messages do not contain the line, which is in
/// [`ValidateError::line`] for callers that know the file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ValidateError {
    /// The trace is empty.
    #[error("the trace holds no requests")]
    Empty,
    /// A line lacks the fields needed for validation.
    #[error("expected a measured response time and a gap, as the format disksim-validate has them")]
    NotMeasured {
        /// The line.
        line: u64,
    },
    /// A request is not aligned to a drive's larger sectors.
    #[error("sectors {lbn} to {lbn}+{count} of 512 bytes are not whole sectors of {sector_bytes} bytes")]
    Unaligned {
        /// The line.
        line: u64,
        /// First sector of 512 bytes.
        lbn: u64,
        /// Number of 512-byte sectors.
        count: u32,
        /// Bytes per sector.
        sector_bytes: u32,
    },
    /// A request exceeds the drive's capacity.
    #[error("sectors {lbn} to {lbn}+{count} are not on a drive of {capacity} sectors")]
    OutOfRange {
        /// The line.
        line: u64,
        /// First sector.
        lbn: u64,
        /// Number of sectors.
        count: u32,
        /// The drive's usable sectors.
        capacity: u64,
    },
}

impl ValidateError {
    /// Returns the trace's line that caused the error.
    pub fn line(&self) -> Option<u64> {
        match self {
            ValidateError::Empty => None,
            ValidateError::NotMeasured { line }
            | ValidateError::Unaligned { line, .. }
            | ValidateError::OutOfRange { line, .. } => Some(*line),
        }
    }
}

/// Extracts the fields needed for validation, for a drive with sectors of `sector_bytes`.
pub fn measured(records: &[Record], sector_bytes: u32) -> Result<Vec<Measured>, ValidateError> {
    let blocks = (sector_bytes / 512).max(1);
    let one = |r: &Record| {
        let (Some(response), Some(gap)) = (r.response, r.gap) else {
            return Err(ValidateError::NotMeasured { line: r.line });
        };
        if !r.lbn.is_multiple_of(blocks as u64) || !r.count.is_multiple_of(blocks) {
            return Err(ValidateError::Unaligned { line: r.line, lbn: r.lbn, count: r.count, sector_bytes });
        }
        let (lbn, count) = (r.lbn / blocks as u64, r.count / blocks);
        Ok(Measured { kind: r.kind, lbn, count, response, gap, line: r.line })
    };
    records.iter().map(one).collect()
}

/// Replays `trace` on `drive`.
pub fn run(drive: &mut Drive, trace: &[Measured]) -> Result<Validation, ValidateError> {
    if trace.is_empty() {
        return Err(ValidateError::Empty);
    }
    let mut replayed = Vec::with_capacity(trace.len());
    let mut at = Time::ZERO;
    let mut last_end = 0u64;
    for (i, m) in trace.iter().enumerate() {
        if let Gap::Before(gap) = m.gap
            && i > 0
        {
            at += gap;
        }
        while drive.advance(at).is_some() {}
        let command = Command { id: i as u64, kind: m.kind, lbn: m.lbn, count: m.count, fua: false };
        drive.submit(command, at).map_err(|_| ValidateError::OutOfRange {
            line: m.line,
            lbn: m.lbn,
            count: m.count,
            capacity: drive.capacity(),
        })?;
        let done = loop {
            let next = drive.next_event().expect("an outstanding command has an event");
            if let Some(c) = drive.advance(next) {
                break c.at;
            }
        };
        let random_read = m.kind.is_read() && m.lbn.abs_diff(last_end) >= 2000;
        last_end = m.lbn + m.count as u64;
        replayed.push(Replayed { measured: *m, issued: at, modelled: done.since(at), random_read });
        at = done;
        if let Gap::After(gap) = m.gap {
            at += gap;
        }
    }
    // DiskSim subtracts instants in double milliseconds, so response times of whole microseconds
    // fall on either side of a bucket's edge. Doing the same gives the same fourth digit of the
    // demerit.
    let ms = |t: Time| t.0 as f64 / 1e6;
    let modelled: Vec<f64> = replayed.iter().map(|r| ms(r.issued + r.modelled) - ms(r.issued)).collect();
    let measured: Vec<f64> = replayed.iter().map(|r| r.measured.response.as_ms_f64()).collect();
    let random: Vec<&Replayed> = replayed.iter().filter(|r| r.random_read).collect();
    let within = |limit: Dur| {
        let n = random.iter().filter(|r| r.modelled.0.abs_diff(r.measured.response.0) <= limit.0).count();
        if random.is_empty() { 0.0 } else { n as f64 / random.len() as f64 }
    };
    Ok(Validation {
        requests: replayed.len(),
        rms_ms: demerit_ms(&modelled, &measured),
        mean_ms_measured: mean_ms(&measured),
        mean_ms_model: mean_ms(&modelled),
        random_reads: random.len(),
        within_200us: within(Dur::from_us(200)),
        within_500us: within(Dur::from_us(500)),
        replayed,
    })
}

fn mean_ms(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Number of buckets of DiskSim's response-time histogram.
const EDGES: usize = 1750;

/// Returns the demerit between two sets of response times in ms, in ms: the root of the mean of
/// (Qa(p) - Qb(p))^2 over p = 0.0001, 0.0002, ... 1, where Q is the inverse of the cumulative
/// histogram, interpolated linearly between its rows.
///
/// Bucket edges in us: E(0) = 0, E(k+1) = E(k) + 1 + floor(E(k) / 100).
pub fn demerit_ms(a: &[f64], b: &[f64]) -> f64 {
    let (qa, qb) = (cumulative(a), cumulative(b));
    let (mut ia, mut ib) = (0, 0);
    let mut sum = 0.0;
    for step in 1..=10_000u32 {
        let p = f64::from(step) / 10_000.0;
        let d = quantile(&qa, p, &mut ia) - quantile(&qb, p, &mut ib);
        sum += d * d;
    }
    (sum / 10_000.0).sqrt()
}

/// Returns the rows (edge in ms, cumulative share to six decimals as DiskSim prints it), up to the
/// first share of 1.
fn cumulative(values: &[f64]) -> Vec<(f64, f64)> {
    let mut edges = Vec::with_capacity(EDGES);
    let mut e = 0u64;
    for _ in 0..EDGES {
        edges.push(e);
        e += 1 + e / 100;
    }
    let mut counts = vec![0u64; EDGES];
    for v in values {
        let us = (v * 1000.0) as u64;
        let row = edges.partition_point(|&e| e <= us).min(EDGES - 1);
        counts[row] += 1;
    }
    let mut rows = Vec::new();
    let mut sum = 0;
    for (edge, n) in edges.iter().zip(&counts) {
        sum += n;
        let share = (sum as f64 / values.len() as f64 * 1e6).round() / 1e6;
        rows.push((*edge as f64 / 1000.0, share));
        if share >= 1.0 {
            break;
        }
    }
    rows
}

/// Returns Q(p): interpolated between the first row with a cumulative share of at least p and the
/// row before it. `from` is where the search for the last, smaller p ended.
fn quantile(rows: &[(f64, f64)], p: f64, from: &mut usize) -> f64 {
    while *from + 1 < rows.len() && rows[*from].1 < p {
        *from += 1;
    }
    let (x1, c1) = rows[*from];
    if *from == 0 || c1 <= p {
        return x1;
    }
    let (x0, c0) = rows[*from - 1];
    x0 + (x1 - x0) * (p - c0) / (c1 - c0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_distributions_have_no_demerit_whatever_the_order() {
        let a: Vec<f64> = (1..500).map(|i| f64::from(i * 37 % 20_000) / 1000.0).collect();
        let mut b = a.clone();
        b.reverse();
        assert_eq!(demerit_ms(&a, &b), 0.0);
    }

    #[test]
    fn a_shift_by_a_millisecond_is_a_demerit_of_one() {
        let a: Vec<f64> = (0..2000).map(|i| 5.0 + f64::from(i) / 1000.0).collect();
        let b: Vec<f64> = a.iter().map(|d| d + 1.0).collect();
        let d = demerit_ms(&a, &b);
        assert!((d - 1.0).abs() < 0.02, "{d}");
    }

    #[test]
    fn buckets_are_one_microsecond_wide_up_to_a_hundred_and_one_percent_beyond() {
        let rows = cumulative(&[0.0, 0.099, 0.1]);
        assert_eq!(rows[1], (0.001, 0.333333));
        assert_eq!(rows[100], (0.1, 0.666667));
        assert_eq!(rows[101], (0.102, 1.0));
    }
}
