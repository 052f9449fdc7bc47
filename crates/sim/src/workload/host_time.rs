//! Host time: from a completion to the same client's next request.
//!
//! A client that submits one request after another is a process: the completion passes through the
//! kernel, the process is scheduled, and its next request is submitted. A scheduler that selects
//! the next command at the completion has not received that request yet. Without host time a
//! simulation would include it in the selection, which happens on no real machine.

use headtime_disk::Dur;

use super::WorkloadError;
use super::variates::Variates;

/// Maximum host time in us. Longer times are think time.
const MOST_US: u64 = 1_000_000;

/// Host time from a completion to the next request. Think time is added to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostTime {
    /// Constant.
    Fixed(Dur),
    /// Exponentially distributed with this mean.
    Exponential(Dur),
}

impl HostTime {
    /// The next request arrives at the instant of the completion.
    pub const NONE: HostTime = HostTime::Fixed(Dur::ZERO);

    /// Parses `300` or `exponential:300`, in microseconds. The error states what was expected.
    pub fn parse(text: &str) -> Result<HostTime, WorkloadError> {
        let (of, figure): (fn(Dur) -> HostTime, &str) = match text.strip_prefix("exponential:") {
            Some(mean) => (HostTime::Exponential, mean),
            None => (HostTime::Fixed, text),
        };
        match figure.parse::<u64>() {
            Ok(us) if us <= MOST_US => Ok(of(Dur::from_us(us))),
            _ => Err(WorkloadError::range(
                "host_us",
                format!("\"{}\"", text.escape_debug()),
                0,
                format!("{MOST_US}, or \"exponential:MEAN\" with such a mean"),
            )),
        }
    }

    /// Draws a host time.
    pub(super) fn draw(self, rng: &mut Variates) -> Dur {
        match self {
            HostTime::Fixed(d) | HostTime::Exponential(d @ Dur::ZERO) => d,
            HostTime::Exponential(d) => Dur(rng.exponential(d.0)),
        }
    }
}

impl Default for HostTime {
    /// 20 us: a completion interrupt, a wake-up and a system call on an otherwise idle machine.
    fn default() -> HostTime {
        HostTime::Fixed(Dur::from_us(20))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_time_is_a_number_or_exponential() {
        assert_eq!(HostTime::parse("300").unwrap(), HostTime::Fixed(Dur::from_us(300)));
        assert_eq!(HostTime::parse("exponential:300").unwrap(), HostTime::Exponential(Dur::from_us(300)));
        assert_eq!(HostTime::parse("0").unwrap(), HostTime::NONE);
        for wrong in ["", "-1", "0.5", "1000001", "exponential", "exponential:", "exponential:-3", "fixed:20", "x"] {
            let e = HostTime::parse(wrong).unwrap_err().to_string();
            assert!(e.starts_with("host_us: expected 0 to 1000000, or \"exponential:MEAN\""), "{wrong}: {e}");
        }
    }

    #[test]
    fn an_exponential_one_has_its_mean() {
        let mut rng = Variates::new(1, 0);
        let n = 50_000;
        let host = HostTime::Exponential(Dur::from_us(300));
        let mean = (0..n).map(|_| host.draw(&mut rng).0 as f64).sum::<f64>() / f64::from(n);
        assert!((mean / 300_000.0 - 1.0).abs() < 0.02, "{mean}");
        assert_eq!(HostTime::Exponential(Dur::ZERO).draw(&mut rng), Dur::ZERO);
    }
}
