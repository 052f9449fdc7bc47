//! The rules of BFQ and BFQ+: every constant and every switch in one place (Valente 2014, seed 003,
//! sections 3 and 4).

use headtime_disk::time::Dur;

/// What BFQ goes by. Sizes are bytes.
#[derive(Clone, Debug, PartialEq)]
pub struct Rules {
    /// An application is served for so long at most (`T_max`, section 3.3).
    pub slice: Dur,
    /// The disk waits so long for the next request of one that will probably ask again (section
    /// 3.4: in the order of seek and rotational latency; 8 ms is `bfq_slice_idle` of the kernel).
    /// Zero: it never waits (section 5.3).
    pub idle: Dur,
    /// And so long for one whose requests are scattered (section 3.4: very low; 2 ms is
    /// `BFQ_MIN_TT` of the kernel).
    pub idle_random: Dur,
    /// Requests are scattered when their mean distance is beyond this (section 4: 8192 sectors of
    /// 512 bytes).
    pub random_beyond: u64,
    /// The largest budget while the disk's rate is not known yet (16,384 sectors, as the kernel has
    /// it).
    pub first_budget: u64,
    /// An idle class's application gets a turn when it has had none for so long
    /// (`BFQ_CL_IDLE_TIMEOUT` of the kernel).
    pub idle_class_turn: Dur,
    /// H-low-latency (section 4.1).
    pub low_latency: Option<LowLatency>,
    /// H-peak-rate (section 4.2): a low-pass filter, where the original keeps the highest rate that
    /// it has seen.
    pub peak_rate: bool,
    /// H-throughput (section 4.3): budgets begin at half the largest and grow by factors.
    pub throughput: bool,
    /// H-fairness (section 4.4): who was slow for a reason is not charged a whole budget.
    pub fairness: bool,
    /// H-write-throt (section 4.5): a sector written by the asynchronous queue counts so many
    /// times. The paper charges every write; here those that somebody waits for count once, because
    /// none of them is hidden in a cache, and an application's share would be a tenth of its
    /// weight's. 1: no throttling.
    pub write_charge: u64,
    /// Scattered applications of equal weight, none of them raised, are served together
    /// ([`super::together`]). This is not in the paper: it idles for them, too (section 3.4).
    pub together: bool,
    /// Where these have parts of the disk of their own: for so long each is served before all
    /// others have been (40 ms, `cfq_slice_async` of the kernel's CFQ: the shortest of its slices).
    pub visit: Dur,
}

/// The constants of H-low-latency (section 4.1).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LowLatency {
    /// An application's weight is raised so many times (`C_rais`).
    pub factor: u32,
    /// It falls back to its own while the application is served so many bytes (`B_rais`).
    pub bytes: u64,
    /// And at the latest after so long (`T_rais`).
    pub longest: Dur,
    /// An application that was idle for so long is raised again (`T_idle`).
    pub idle: Dur,
    /// While its weight is raised, its slice is longer by the same factor. This is not in the
    /// paper, but in the kernel's BFQ (`bfq_set_budget_timeout`). Who reads here and there runs out
    /// of time, not of budget, and shares time with the others: a weight that is ten times as large
    /// is then ten slices to everybody else's one, with another's slice between any two whenever
    /// that has begun in the ideal system; this is one slice that is ten times as long.
    pub longer_slices: bool,
    /// Who is raised does not wait for the end of another's slice who is not. The paper's active
    /// application is not preempted (section 3); the kernel's is. Of a start with thoughts that are
    /// longer than the disk waits, each would cost what is left of a reader's slice.
    pub preempts: bool,
    /// The disk waits so long for the next request of one whose weight is raised, wherever its
    /// requests lie. The paper does not wait longer for those than for others; the kernel does
    /// (`bfq_arm_slice_timer`: 20 ms at least). A start thinks longer now and then, and each such
    /// thought would cost it a seek there and back, and a request of somebody else's between.
    pub wait: Dur,
}

impl Default for LowLatency {
    fn default() -> LowLatency {
        LowLatency {
            factor: 10,
            bytes: 24_000_000,
            longest: Dur::from_secs(6),
            idle: Dur::from_secs(2),
            longer_slices: true,
            preempts: true,
            wait: Dur::from_ms(20),
        }
    }
}

impl Rules {
    /// BFQ without the heuristics (section 3).
    pub fn original() -> Rules {
        Rules {
            slice: Dur::from_ms(125),
            idle: Dur::from_ms(8),
            idle_random: Dur::from_ms(2),
            random_beyond: 8192 * 512,
            first_budget: 16_384 * 512,
            idle_class_turn: Dur::from_ms(200),
            low_latency: None,
            peak_rate: false,
            throughput: false,
            fairness: false,
            write_charge: 1,
            together: false,
            visit: Dur::from_ms(40),
        }
    }

    /// BFQ+ with what the paper says and nothing of the kernel's.
    pub fn published() -> Rules {
        let low_latency =
            LowLatency { longer_slices: false, preempts: false, wait: Dur::ZERO, ..LowLatency::default() };
        Rules { low_latency: Some(low_latency), together: false, ..Rules::plus() }
    }

    /// BFQ+ (section 4): all five heuristics, and what the kernel's does beyond them.
    pub fn plus() -> Rules {
        Rules {
            low_latency: Some(LowLatency::default()),
            peak_rate: true,
            throughput: true,
            fairness: true,
            write_charge: 10,
            together: true,
            ..Rules::original()
        }
    }
}
