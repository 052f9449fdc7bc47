//! The constants and switches of BFQ and BFQ+ (Valente 2014, seed 003, sections 3 and 4).

use headtime_disk::Dur;

/// The parameters of BFQ. Sizes are in bytes.
#[derive(Clone, Debug, PartialEq)]
pub struct BfqRules {
    /// Maximum service time of an application per turn (`T_max`, section 3.3).
    pub slice: Dur,
    /// How long the disk idles for the next request of an application that will probably issue one
    /// (section 3.4: in the order of seek and rotational latency; 8 ms is `bfq_slice_idle` of the
    /// kernel). Zero: it never idles (section 5.3).
    pub idle: Dur,
    /// The same for an application with scattered requests (section 3.4: very low; 2 ms is
    /// `BFQ_MIN_TT` of the kernel).
    pub idle_random: Dur,
    /// Mean distance beyond which requests count as scattered (section 4: 8192 sectors of 512
    /// bytes).
    pub random_beyond: u64,
    /// The largest budget until the disk's rate is known (16,384 sectors, as in the kernel).
    pub first_budget: u64,
    /// Time without service after which an application of the idle class gets a turn
    /// (`BFQ_CL_IDLE_TIMEOUT` of the kernel).
    pub idle_class_turn: Dur,
    /// H-low-latency (section 4.1).
    pub low_latency: Option<LowLatency>,
    /// H-peak-rate (section 4.2): a low-pass filter; the original estimator keeps the highest rate
    /// seen.
    pub peak_rate: bool,
    /// H-throughput (section 4.3): budgets start at half the largest and grow by factors.
    pub throughput: bool,
    /// H-fairness (section 4.4): an application that was slow for a reason is not charged a whole
    /// budget.
    pub fairness: bool,
    /// H-fairness does not charge a whole budget for little service in the first slice that times
    /// out since the application began, either. The paper's text (section 4.4) says so of every
    /// slice, and the code that it measured of none (`bfq_bfqq_expire`).
    pub excepts_first_timeout: bool,
    /// H-write-throt (section 4.5): the factor by which a sector written by the asynchronous queue
    /// is charged. The paper charges every write; here synchronous writes are charged once, because
    /// no cache hides them, and the application's share would be a tenth of what its weight gives.
    /// 1: no throttling.
    pub write_charge: u64,
    /// Serves scattered applications of equal weight, none of them raised, together
    /// (`together`). Not in the paper, which idles for them, too (section 3.4).
    pub together: bool,
    /// With disjoint regions of the disk: service time of each such application per round (40 ms,
    /// `cfq_slice_async` of the kernel's CFQ, its shortest slice).
    pub visit: Dur,
    /// The disk idles for an application whose slice ends while it prepares its next request,
    /// whatever is left of its budget; otherwise it would be absent at the next selection, and the
    /// others would be served first whatever its weight is. The code that the paper measured does
    /// so only if less than a third is left (`bfq_may_expire_for_budg_timeout`).
    pub idles_past_slice: bool,
    /// Limits of the asynchronous queue. `None`: its turns are as any other's.
    pub asynchronous: Option<AsynchronousLimits>,
    /// A turn of the asynchronous queue is charged its whole budget, however little it was. Not in
    /// the paper's text, but in BFQ before the heuristics (`bfq_bfqq_expire` of BFQ for Linux
    /// 2.6.28); H-write-throt replaced it.
    pub charges_whole_asynchronous_turns: bool,
    /// Requests of the active application at the drive while others wait, and while none does (4
    /// and 16: `bfq_quantum` of the kernel, and four times it). They matter to a drive with a
    /// command queue. An application of the idle class has one, and four.
    pub at_drive: (u32, u32),
    /// The drive has a command queue and an order of its own. Then the disk does not idle for an
    /// application with scattered requests, unless its weight is raised (section 4.1), or it was
    /// served less than 1/8 of the largest budget in this turn. The paper says that both schedulers
    /// never idle with such a drive (section 5.3); its start-up times (table 2) are those of the
    /// kernel's code, which is this rule for BFQ and BFQ+ (`bfq_rq_enqueued` and
    /// `bfq_update_idle_window`, also in the kernel's BFQ-v0, which has none of the heuristics).
    pub ncq: bool,
    /// Soft real-time applications. Not in the paper, but in the kernel. `None`: they are as any
    /// other.
    pub soft_real_time: Option<SoftRealTime>,
    /// Bursts of new applications. Not in the paper, but in the kernel. `None`: each new one is
    /// raised.
    pub bursts: Option<Bursts>,
    /// Merges the queues of processes that read one file together (`merging`). Not in the paper,
    /// but in the kernel (early queue merge).
    pub merging: bool,
}

/// Soft real-time applications: such as a player, which reads a little, waits until it is played,
/// and reads again. Their weight is raised for each of these reads, although they are not new.
/// Without H-low-latency it is not. The rate and the duration are the kernel's
/// (`bfq_wr_max_softrt_rate`, `bfq_wr_rt_max_time`). The kernel raises by 100 times the factor of a
/// new application (`BFQ_SOFTRT_WEIGHT_FACTOR`); here it is 10 times the paper's `C_rais`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SoftRealTime {
    /// The largest rate, in bytes per second, averaged from the start of one batch of requests to
    /// the start of the next: 7,000 sectors of 512 bytes.
    pub bytes_per_second: u64,
    /// Factor by which the weight is raised.
    pub factor: u32,
    /// Maximum duration of raising.
    pub longest: Dur,
}

impl Default for SoftRealTime {
    fn default() -> SoftRealTime {
        SoftRealTime { bytes_per_second: 7_000 * 512, factor: 100, longest: Dur::from_ms(300) }
    }
}

/// Bursts: when many applications begin within a short time, such as the services of a machine that
/// boots or the parts of one job, none of them is what a user waits for, and all of them together
/// are done sooner without raised weights. The constants are the kernel's
/// (`bfq_large_burst_thresh`, `bfq_burst_interval`). The kernel counts new queues only; here one
/// that begins again after [`LowLatency::idle`] counts, too, since an export stays the same
/// whatever its client starts. They have no effect without H-low-latency.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bursts {
    /// Number of applications that make a burst large: then no weight of them is raised.
    pub applications: usize,
    /// Longest time from one beginning to the next in a burst.
    pub interval: Dur,
}

impl Default for Bursts {
    fn default() -> Bursts {
        Bursts { applications: 8, interval: Dur::from_ms(180) }
    }
}

/// Limits of the asynchronous queue, so that the page cache's writes do not fill the drive's queue
/// and cache in front of the reads that programs wait for. Not in the paper, but in the code that
/// it measured (`bfq_max_budget_async_rq`, `bfq_timeout_async` and `sync_flight` of BFQ for Linux
/// 2.6.36). None of its requests is dispatched while a synchronous one is at the drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AsynchronousLimits {
    /// Requests in a turn while other applications wait.
    pub requests: u32,
    /// Maximum service time of a turn.
    pub slice: Dur,
}

impl Default for AsynchronousLimits {
    fn default() -> AsynchronousLimits {
        AsynchronousLimits { requests: 4, slice: Dur::from_ms(40) }
    }
}

/// The constants of H-low-latency (section 4.1).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LowLatency {
    /// Factor by which a weight is raised (`C_rais`).
    pub factor: u32,
    /// Bytes of service with a raised weight (`B_rais`). The paper has 24 MB, found with the
    /// programs of 2010; the kernel now has 120,000 sectors of 512 bytes (`max_service_from_wr`).
    pub bytes: u64,
    /// The weight falls linearly while these bytes are served (paper); otherwise it stays until
    /// they are (kernel).
    pub falls: bool,
    /// Maximum duration of raising (`T_rais`).
    pub longest: Dur,
    /// Idle time after which an application is raised again (`T_idle`).
    pub idle: Dur,
    /// While its weight is raised, its slice is longer by the same factor. Not in the paper, but in
    /// the code that it measured (`bfq_set_budget_timeout`). An application with scattered reads
    /// runs out of time, not of budget, and shares time with the others. A weight ten times as
    /// large then means ten slices to one of each other application, with another's slice between
    /// any two whenever that one is eligible; this makes it one slice ten times as long.
    pub longer_slices: bool,
    /// A raised application preempts the slice of one that is not raised, when it arrives or as
    /// soon as it is not ahead of its share any more. The paper's active application is not
    /// preempted (section 3), nor that of its code; those of later kernels are, when it arrives
    /// (`bfq_bfqq_update_budg_for_activation`). Otherwise each think time of a starting program
    /// that is longer than the disk idles, and each budget that it used up, would cost it the rest
    /// of a reader's slice.
    pub preempts: bool,
    /// How long the disk idles for the next request of a raised application, whatever its pattern.
    /// The paper does not idle longer for raised applications; the kernel does
    /// (`bfq_arm_slice_timer`: 20 ms at least). A starting program occasionally has a longer think
    /// time, and each would cost it two seeks and another application's request in between.
    pub wait: Dur,
}

impl Default for LowLatency {
    fn default() -> LowLatency {
        LowLatency {
            factor: 10,
            bytes: 120_000 * 512,
            falls: false,
            longest: Dur::from_secs(6),
            idle: Dur::from_secs(2),
            longer_slices: true,
            preempts: true,
            wait: Dur::from_ms(20),
        }
    }
}

impl LowLatency {
    /// Returns the constants of the paper and of the code that it measured.
    pub fn published() -> LowLatency {
        LowLatency { bytes: 24_000_000, falls: true, preempts: false, wait: Dur::ZERO, ..LowLatency::default() }
    }
}

impl BfqRules {
    /// Returns BFQ without the heuristics (section 3).
    pub fn original() -> BfqRules {
        BfqRules {
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
            excepts_first_timeout: false,
            write_charge: 1,
            together: false,
            visit: Dur::from_ms(40),
            idles_past_slice: false,
            asynchronous: Some(AsynchronousLimits::default()),
            charges_whole_asynchronous_turns: true,
            at_drive: (4, 16),
            ncq: false,
            soft_real_time: None,
            bursts: None,
            merging: false,
        }
    }

    /// Returns BFQ+ as the paper measured it: its rules, and those of the code that it measured.
    /// What later kernels added is off.
    pub fn published() -> BfqRules {
        BfqRules {
            low_latency: Some(LowLatency::published()),
            excepts_first_timeout: false,
            together: false,
            idles_past_slice: false,
            ..BfqRules::plus()
        }
    }

    /// Returns BFQ+ (section 4): all five heuristics, and the kernel's additions.
    pub fn plus() -> BfqRules {
        BfqRules {
            low_latency: Some(LowLatency::default()),
            peak_rate: true,
            throughput: true,
            fairness: true,
            excepts_first_timeout: true,
            write_charge: 10,
            charges_whole_asynchronous_turns: false,
            together: true,
            idles_past_slice: true,
            ..BfqRules::original()
        }
    }
}
