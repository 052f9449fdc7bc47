//! Runs and drives that experiments of several groups share.
//!
//! | module | what |
//! |---|---|
//! | [`characterised_drive`] | characterised virtual drives, once per seed |
//! | [`figure9`] | loss and free bandwidth over conservatism (Lumb 2002, figure 9) |
//! | [`guarantee_check`] | whether streams kept their guarantees |
//! | [`host_memory`] | the files that a host holds in memory |
//! | [`hot_files`] | a file system's load on a reorganised export |
//! | [`load_run`] | a load on a built-in drive |
//! | [`policy_run`] | the benchmark suite under an ADMIT policy |
//! | [`predictions`] | random requests, and the errors of predicted head times |
//! | [`reorganiser`] | the application that moves its units |
//! | [`scan_bound`] | a lower bound of a scan's duration |
//! | [`scan_run`] | background work under an endless foreground |
//! | [`scans`] | scans of a whole disk under `oltp`, once per seed |
//! | [`stream_run`] | streams with guarantees and best effort |

pub(crate) mod characterised_drive;
pub(crate) mod figure9;
pub(crate) mod guarantee_check;
pub(crate) mod host_memory;
pub(crate) mod hot_files;
pub(crate) mod load_run;
pub(crate) mod policy_run;
pub(crate) mod predictions;
pub(crate) mod reorganiser;
pub(crate) mod scan_bound;
pub(crate) mod scan_run;
pub(crate) mod scans;
pub(crate) mod stream_run;
