//! The settings of a simulation: keys of a scenario's file, and flags of the command line.

// Comments of settings are their help, in which brackets are optional parts.
#![allow(rustdoc::broken_intra_doc_links)]

use std::path::PathBuf;

use serde::Deserialize;

#[cfg(feature = "clap")]
use super::flags;
use super::{Bytes, Figure, Source, StreamTable, TaskTable};

/// Defines [`Scenario`] with these settings, each of which may be missing; `#[flag]` has what clap
/// needs besides the name. The order is that of the keys in error messages.
macro_rules! settings {
    ($(
        $(#[doc = $doc:literal])+
        $(#[serde($serde:meta)])?
        #[flag($($flag:tt)*)]
        $key:ident: $type:ty,
    )*) => {
        /// Settings of a simulation; `None` if not given.
        #[derive(Clone, Debug, Default, PartialEq, Deserialize)]
        #[serde(deny_unknown_fields, default)]
        #[cfg_attr(feature = "clap", derive(clap::Args), group(skip))]
        pub struct Scenario {
            $(
                $(#[doc = $doc])+
                $(#[serde($serde)])?
                #[cfg_attr(feature = "clap", arg(long, $($flag)*))]
                pub $key: Option<$type>,
            )*
            /// User-defined tasks.
            #[cfg_attr(feature = "clap", arg(skip))]
            pub task: Vec<TaskTable>,
            /// Streams besides the other workload.
            #[cfg_attr(feature = "clap", arg(skip))]
            pub stream: Vec<StreamTable>,
            /// Locations of the settings that are from a file; empty without one.
            #[serde(skip)]
            #[cfg_attr(feature = "clap", arg(skip))]
            pub source: Source,
        }

        impl Scenario {
            /// The keys of a scenario's file, `task` and `stream` included.
            pub const KEYS: &'static [&'static str] = &[$(stringify!($key),)* "task", "stream"];

            /// Returns the keys that are set.
            pub(super) fn given(&self) -> Vec<&'static str> {
                let all = [
                    $((stringify!($key), self.$key.is_some()),)*
                    ("task", !self.task.is_empty()),
                    ("stream", !self.stream.is_empty()),
                ];
                all.into_iter().filter(|(_, is_set)| *is_set).map(|(key, _)| key).collect()
            }

            /// Takes the settings that are missing from `other`.
            pub(super) fn or(self, other: Scenario) -> Scenario {
                Scenario {
                    $($key: self.$key.or(other.$key),)*
                    task: if self.task.is_empty() { other.task } else { self.task },
                    stream: if self.stream.is_empty() { other.stream } else { self.stream },
                    source: Source::default(),
                }
            }
        }
    };
}

settings! {
    /// A built-in drive, or a profile file (TOML or DiskSim .parv) [default: atlas10k]
    #[flag(value_name = "NAME|FILE", display_order = 0)]
    disk: String,

    /// oltp, closed:N, random-4k[:N], random-40k[:N], local-4k[:N], open:RATE, or the benchmark
    /// suite's loads of N readers and M writers, NrMw-seq and NrMw-rand, alone or with +bash,
    /// +xterm, +konsole, +video, +compile, +checkout, +merge; idle+bash is bash on an idle disk;
    /// das-table2[:N] and das-mixed[:N] are streams with N best-effort requests constantly pending
    /// [default: oltp]
    #[flag(value_name = "W", conflicts_with = "trace", display_order = 1)]
    workload: String,

    /// Replay a recorded trace
    #[flag(value_name = "FILE", display_order = 2)]
    trace: PathBuf,

    /// The trace's format
    #[flag(value_name = "T", help = flags::trace_formats(), display_order = 3)]
    trace_format: String,

    /// Only the trace's requests to this device
    #[flag(value_name = "N", value_parser = flags::device, allow_negative_numbers = true, display_order = 4)]
    device: u32,

    /// Where requests of a trace go whose volume is not as large as the drive: refuse (those beyond
    /// the drive are refused and counted), wrap (modulo the drive), spread:SIZE (a volume of SIZE
    /// over the whole drive) [default: refuse; thesios-csv: wrap]
    #[flag(value_name = "HOW", display_order = 4)]
    beyond: String,

    /// When recorded requests arrive: open (at their recorded times), closed (the recorded gap
    /// after the previous completion; in a recording, after the completion that its client waited
    /// for), auto (open if the trace has arrival times, else closed; a recording: closed) [default:
    /// auto]
    #[flag(value_name = "HOW", display_order = 5)]
    replay: String,

    /// Host time from a completion to the same client's next request: microseconds, or
    /// exponential:MEAN [default: 20]
    #[flag(value_name = "N", value_parser = flags::figure, allow_negative_numbers = true, display_order = 6)]
    host_us: Figure,

    /// Admission policy
    #[flag(value_name = "A", help = flags::policies(), display_order = 7)]
    admit: String,

    /// Dispatch order among eligible requests
    #[flag(value_name = "O", help = flags::orders(), display_order = 10)]
    order: String,

    /// Planner of background work in rotational gaps and idle time
    #[flag(value_name = "F", help = flags::fills(), display_order = 11)]
    fill: String,

    /// Where gaps are planned
    #[flag(value_name = "P", help = flags::placements(), display_order = 12)]
    placement: String,

    /// Background work: none, scan[:KIB] (the whole disk once), rescan[:KIB] (each block again as
    /// soon as it is read) [default: none]
    #[flag(value_name = "B", display_order = 13)]
    background: String,

    /// Safety margin of seek predictions when a gap is filled: microseconds, or adaptive [default:
    /// adaptive on the host, 0 in firmware]
    #[flag(value_name = "X", value_parser = flags::figure, allow_negative_numbers = true, display_order = 14)]
    conservatism_us: Figure,

    /// Stop when the whole disk is scanned
    #[flag(num_args = 0, default_missing_value = "true", display_order = 19)]
    until_scanned: bool,

    /// A write-back cache in front of the scheduler, with 1 MiB to 16 GiB of memory: dirty blocks
    /// are destaged in rotational gaps and idle time. The drive's own write cache is then off
    /// [default: none]
    #[serde(alias = "write-cache")]
    #[flag(value_name = "SIZE", value_parser = flags::cache, allow_negative_numbers = true, display_order = 15)]
    write_cache: Bytes,

    /// Random behaviour of the drive: profile (as its profile has it), off, measured (errors as
    /// measured on a real drive, docs/validation.md) [default: profile; off for a placement inside
    /// the drive]
    #[flag(value_name = "N", display_order = 16)]
    noise: String,

    /// Maximum number of commands at the drive [default: 2; with --order drive, its queue depth]
    #[flag(value_name = "N", value_parser = flags::depth, allow_negative_numbers = true, display_order = 16)]
    depth: u32,

    /// Stop after this many virtual seconds [default: 60 for workloads, the whole trace otherwise]
    #[flag(value_name = "S", value_parser = flags::seconds, allow_negative_numbers = true, display_order = 17)]
    seconds: f64,

    /// Stop after this many requests
    #[flag(value_name = "N", value_parser = flags::requests, allow_negative_numbers = true, display_order = 18)]
    requests: u64,

    /// Seed of the workload, of the drive's noise and of the lottery between background sessions
    /// [default: 1]
    #[flag(value_name = "N", value_parser = flags::seed, allow_negative_numbers = true, display_order = 20)]
    seed: u64,

    /// Handling of an optional stream's requests when its reservation is used up
    #[flag(value_name = "HOW", help = flags::exhausted(), display_order = 8)]
    exhausted: String,
}
