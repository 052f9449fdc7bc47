//! DAS: streams with guarantees, after Reuther and Pohlack, "Rotational-Position-Aware Real-Time Disk Scheduling Using a Dynamic
//! Active Subset" (2003). docs/guarantees.md tells it in one piece.
//!
//! * [`stream`]: what a stream asks for
//! * [`worst`]: the longest that a request can take, from a drive's profile; [`distribution`]: how long requests do take
//! * [`admission`]: whether a set of streams can be had, [`reserve`]: with how much time for each

pub mod admission;
pub mod distribution;
pub mod reserve;
pub mod stream;
pub mod worst;
