//! Durability against the published figures of mlec-sim, the simulator of the University of
//! Chicago's UCARE group (<https://github.com/ucare-uchicago/mlec-sim>).
//!
//! It simulates events without bias: drives fail with exponential times whose rate is that of an
//! annual failure rate (`-ln(1 - AFR)` per 365.25 days), a pool of drives loses data when more have
//! failed than its parity covers, and the answer is the share of years in which one of the pools
//! did, in *nines* (the negative decimal logarithm). A drive has 20 of its terabytes of 1024 * 1024
//! MB, and is rebuilt at 100 MB/s.

use headtime_study::fleet::durability::{Group, Rebuild, YEAR_HOURS};

/// Hours to rebuild a drive of the simulator.
const REBUILD_HOURS: f64 = 20.0 * 1024.0 * 1024.0 / 100.0 / 3600.0;

/// A figure and its standard deviation.
#[derive(Clone, Copy, Debug)]
struct Nines(f64, f64);

impl Nines {
    /// Nines of a year of some groups, as headtime estimates it.
    fn of(groups: f64, drives: u32, survives: u32, afr: f64, rebuild_hours: f64, cycles: u64) -> Nines {
        let failure_per_hour = -(-afr).ln_1p() / YEAR_HOURS;
        let rebuild = Rebuild::Fixed(rebuild_hours);
        let group = Group { drives, survives, failure_per_hour, rebuild, latent: 0.0 };
        let years = group.durability(cycles, 1).mttdl_years;
        let nines = |years: f64| -(-(-groups / years).exp_m1()).log10();
        // The interval is that of 95%.
        Nines(nines(years.value), (nines(years.high) - nines(years.low)) / (2.0 * 1.96))
    }

    /// Their difference in its standard deviations.
    fn from(self, other: Nines) -> f64 {
        (self.0 - other.0) / self.1.hypot(other.1)
    }
}

/// README.md (first in commit 2453ff6, March 2023), stage 1 of the example of 100 drives in pools
/// of 10 at an AFR of 5%, the default: two drives of a pool had failed at once in 39,522 of
/// 2,560,000 years. The later stages share a pool's bandwidth among rebuilds, which a [`Group`]
/// does not.
#[test]
fn two_failures_in_a_pool_are_as_frequent_as_published() {
    let (seen, all) = (39_522.0f64, 2_560_000.0);
    let theirs = Nines(-(seen / all).log10(), 1.0 / (10f64.ln() * seen.sqrt()));
    let ours = Nines::of(10.0, 10, 1, 0.05, REBUILD_HOURS, 200_000);
    assert!(ours.1 < 0.003, "an estimate that says something: {ours:?}");
    let off = ours.from(theirs);
    assert!(off.abs() < 1.96, "{ours:?}, published {theirs:?}: {off} standard deviations");
}

/// `gnuplots/durability/exp/8-2-50/sim-raid-8-2-method1.txt` (commit dca32d8, August 2022): 50
/// drives in pools of 8 + 2, by AFR in percent. Method 1 is that of commit 790facb ("simulator
/// which doesn't consider rate change when there are multiple failures"): as in a [`Group`], each
/// rebuild takes the same time, whatever else fails.
const DOUBLE_PARITY: [(f64, Nines); 10] = [
    (2.0, Nines(6.135, 0.093)),
    (3.0, Nines(5.62, 0.089)),
    (4.0, Nines(5.201, 0.055)),
    (5.0, Nines(4.991, 0.043)),
    (6.0, Nines(4.745, 0.032)),
    (7.0, Nines(4.463, 0.023)),
    (8.0, Nines(4.362, 0.021)),
    (9.0, Nines(4.157, 0.016)),
    (10.0, Nines(4.029, 0.014)),
    (11.0, Nines(3.888, 0.012)),
];

#[test]
fn double_parity_is_as_durable_as_published() {
    let off = |rebuild_hours: f64| -> f64 {
        let each = DOUBLE_PARITY.map(|(percent, theirs)| {
            let ours = Nines::of(5.0, 10, 2, percent / 100.0, rebuild_hours, 50_000);
            println!("AFR {percent}%: {ours:.3?}, published {theirs:.3?}, {:.2} off", ours.from(theirs));
            ours.from(theirs)
        });
        each.iter().map(|off| off * off).sum()
    };
    // Chi squared with ten degrees of freedom exceeds this once in a hundred times.
    const MOST: f64 = 23.2;
    let chi_squared = off(REBUILD_HOURS);
    assert!(chi_squared < MOST, "{chi_squared}");
    // The comparison would notice a rebuild that takes 5% less or 10% more.
    assert!(off(0.95 * REBUILD_HOURS) > MOST && off(1.1 * REBUILD_HOURS) > MOST);
}
