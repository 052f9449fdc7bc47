//! The constants of CFQ.

use headtime_disk::Dur;

/// The rules, with the kernel's names.
#[derive(Clone, Debug, PartialEq)]
pub struct CfqRules {
    /// Slice of a synchronous queue.
    pub slice_sync: Dur,
    /// A slice of the asynchronous queue.
    pub slice_async: Dur,
    /// How long the disk idles for the next request. Zero: it never idles.
    pub slice_idle: Dur,
    /// Whether slices are scaled to the target latency.
    pub low_latency: bool,
    /// Target duration of a round.
    pub target_latency: Dur,
    /// Requests of a queue at the drive (`quantum`): half as many to begin with while others wait,
    /// and any number while none does.
    pub quantum: u32,
    /// Requests in a slice of the asynchronous queue while others wait (`cfq_prio_to_maxrq` at the
    /// usual priority: eight times `slice_async_rq`, which is 2).
    pub slice_async_requests: u32,
    /// Time from arrival to completion above which a synchronous request counts as delayed
    /// (`fifo_expire_sync`). For a synchronous slice after one, the asynchronous queue has one
    /// request at the drive, and one more for each further such slice.
    pub fifo_expire_sync: Dur,
    /// Time without other service after which the idle class is served (`CFQ_IDLE_GRACE`).
    pub idle_grace: Dur,
}

impl Default for CfqRules {
    fn default() -> CfqRules {
        CfqRules {
            slice_sync: Dur::from_ms(100),
            slice_async: Dur::from_ms(40),
            slice_idle: Dur::from_ms(8),
            low_latency: true,
            target_latency: Dur::from_ms(300),
            quantum: 8,
            slice_async_requests: 16,
            fifo_expire_sync: Dur::from_ms(125),
            idle_grace: Dur::from_ms(100),
        }
    }
}
