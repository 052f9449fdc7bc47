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
            idle_grace: Dur::from_ms(100),
        }
    }
}
