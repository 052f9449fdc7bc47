//! The figures that Valente (2014) states, by figure and table.
//!
//! Most bars of the report's figures 3 to 9 have no number, neither on them nor in the text. Here
//! is what is stated: numbers, and comparisons of two bars as a factor. What it says without a
//! number is in [`Figure::in_words`], and such bars have no published figure.

use crate::common::policy_run::{DRIVE_1, DRIVE_2, DRIVE_3, NOT_RAISED_NAME as NOT_RAISED, PUBLISHED_NAME};

/// A figure or table of the report.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Figure {
    /// Its number, as in "figure 3".
    pub place: &'static str,
    /// What it shows.
    pub title: &'static str,
    /// The axis of our chart, with the unit.
    pub axis: &'static str,
    /// Whether its values span several powers of ten.
    pub log: bool,
    /// Loads, from the top; in some figures programs, tools or drives.
    pub groups: &'static [&'static str],
    /// Policies, from the top, by the names of [`headtime_sched::Policy`], with a variant after a
    /// comma. NOOP is `none` with requests in the order of arrival.
    pub rows: &'static [&'static str],
    /// What is stated without a number.
    pub in_words: &'static str,
    /// The numbers that are stated.
    pub stated: &'static [Stated],
}

/// A figure that the report states for a bar.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Stated {
    /// Where in the report.
    pub section: &'static str,
    /// One of [`Figure::groups`], or [`EACH`].
    pub group: &'static str,
    /// One of [`Figure::rows`].
    pub row: &'static str,
    /// The figure.
    pub value: Value,
}

/// A value, in the unit of its figure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Value {
    /// The value itself.
    Is(f64),
    /// A limit, which the value is below.
    Below(f64),
    /// The least and the greatest value.
    Range(f64, f64),
    /// A multiple of another row's value in the same group.
    Times(f64, &'static str),
    /// At most this multiple of another row's value in the same group.
    AtMostTimes(f64, &'static str),
}

/// Each group of a figure.
pub(super) const EACH: &str = "each";
/// The group of starts on an idle disk.
pub(super) const IDLE: &str = "idle";

const LOADS: &[&str] = &["10r-seq", "10r-rand", "5r5w-seq", "5r5w-rand"];
const LOADS_AND_IDLE: &[&str] = &["10r-seq", "10r-rand", "5r5w-seq", "5r5w-rand", IDLE];
const COMPARED: &[&str] = &["bfq+", PUBLISHED_NAME, "bfq", "cfq"];
const STARTS: &[&str] = &["bfq+", PUBLISHED_NAME, NOT_RAISED, "bfq", "cfq", "none"];

const fn stated(section: &'static str, group: &'static str, row: &'static str, value: Value) -> Stated {
    Stated { section, group, row, value }
}

/// The drives.
pub(super) const TABLE_1: Figure = Figure {
    place: "table 1",
    title: "Peak rate of the three drives",
    axis: "MB/s",
    log: false,
    groups: &[DRIVE_1, DRIVE_2, DRIVE_3],
    rows: &["none"],
    in_words: "",
    stated: &[
        stated("7.1", DRIVE_1, "none", Value::Is(55.0)),
        stated("7.1", DRIVE_2, "none", Value::Is(61.0)),
        stated("7.1", DRIVE_3, "none", Value::Is(89.0)),
    ],
};

/// Throughput without NCQ.
pub(super) const FIGURE_3: Figure = Figure {
    place: "figure 3",
    title: "Throughput of greedy readers and writers, drive 3, no NCQ",
    axis: "MB/s",
    log: false,
    groups: LOADS,
    rows: COMPARED,
    in_words: "with 10r-seq, bfq+ and bfq are near the drive's peak rate; with 5r5w-seq, bfq+ is slightly above bfq; \
               with 10r-rand, bfq+ and cfq are comparable; with 5r5w-rand, bfq+ is below cfq; with both random loads, \
               bfq is above both",
    stated: &[
        stated("7.2.1", "10r-seq", "bfq+", Value::Times(1.24, "cfq")),
        stated("7.2.1", "10r-seq", "bfq", Value::Times(1.24, "cfq")),
        stated("7.2.1", "5r5w-seq", "bfq+", Value::Times(1.24, "cfq")),
        stated("7.2.1", "5r5w-seq", "bfq", Value::Times(1.24, "cfq")),
    ],
};

/// The same, ten random readers alone.
pub(super) const FIGURE_3_RANDOM: Figure = Figure {
    title: "Throughput of ten random readers, drive 3, no NCQ",
    groups: &["10r-rand"],
    in_words: "bfq+ and cfq are comparable, bfq is above both",
    stated: &[],
    ..FIGURE_3
};

/// The short benchmark: when full throughput is reached.
pub(super) const SHORT_RAMP: Figure = Figure {
    place: "section 7.2.1, short benchmark",
    title: "Full throughput after the start of ten readers",
    axis: "s",
    log: false,
    groups: &["10r-seq"],
    rows: &["bfq+", "bfq", "cfq"],
    in_words: "bfq has it at once, cfq is slightly slower than bfq+",
    stated: &[stated("7.2.1", "10r-seq", "bfq+", Value::Range(1.0, 2.0))],
};

/// The short benchmark: its mean throughput.
pub(super) const SHORT_RATE: Figure = Figure {
    place: "section 7.2.1, short benchmark",
    title: "Throughput in the first 15 seconds",
    axis: "MB/s",
    log: false,
    groups: &["10r-seq"],
    rows: &["bfq+", "bfq", "cfq"],
    in_words: "with which load is not stated; bfq has the throughput of figure 3",
    stated: &[stated("7.2.1", "10r-seq", "cfq", Value::Is(59.6))],
};

/// Throughput with NCQ.
pub(super) const FIGURE_4: Figure = Figure {
    place: "figure 4",
    title: "Throughput of greedy readers and writers, drive 2, NCQ",
    axis: "MB/s",
    log: false,
    groups: LOADS,
    rows: &["bfq+", "bfq", "cfq", "none"],
    in_words: "with loads in order, bfq+, bfq and cfq are similar, cfq moderately below; with random loads, cfq loses \
               more; none (the report's NOOP) is below bfq+ and cfq with 10r-seq, and better with 5r5w-seq",
    stated: &[stated("7.2.2", "5r5w-rand", "none", Value::Times(1.5, "bfq+"))],
};

/// Start-up of bash.
pub(super) const FIGURE_5A: Figure = Figure {
    place: "figure 5(a)",
    title: "Starting bash on a loaded disk",
    axis: "s",
    log: true,
    groups: LOADS_AND_IDLE,
    rows: STARTS,
    in_words: "bfq+ is close to the idle disk; bfq is slightly below cfq with readers only, and above it with writers",
    stated: &[
        stated("7.3.1", EACH, "cfq", Value::AtMostTimes(8.0, "bfq+")),
        stated("7.3.1", EACH, "bfq", Value::AtMostTimes(8.0, "bfq+")),
        stated("7.3.1", EACH, NOT_RAISED, Value::Below(0.55)),
    ],
};

/// Throughput while bash is started.
pub(super) const FIGURE_5B: Figure = Figure {
    place: "figure 5(b)",
    title: "Throughput while bash is started again and again",
    axis: "MB/s",
    log: false,
    groups: LOADS,
    rows: COMPARED,
    in_words: "with three of the four loads, among them 10r-seq, bfq+ is above cfq; bfq is always high",
    stated: &[],
};

/// Start-up of konsole.
pub(super) const FIGURE_6A: Figure = Figure {
    place: "figure 6(a)",
    title: "Starting konsole on a loaded disk",
    axis: "s",
    log: true,
    groups: LOADS_AND_IDLE,
    rows: STARTS,
    in_words: "with each load, bfq+ is close to the idle disk",
    stated: &[
        stated("7.3.1", EACH, "cfq", Value::AtMostTimes(9.0, "bfq+")),
        stated("7.3.1", EACH, "bfq", Value::AtMostTimes(9.0, "bfq+")),
        stated("7.3.1", "10r-seq", NOT_RAISED, Value::Is(20.0)),
        stated("7.3.1", "10r-rand", NOT_RAISED, Value::Is(20.0)),
    ],
};

/// Throughput while konsole is started.
pub(super) const FIGURE_6B: Figure = Figure {
    place: "figure 6(b)",
    title: "Throughput while konsole is started again and again",
    axis: "MB/s",
    log: false,
    groups: LOADS,
    rows: COMPARED,
    in_words: "with the three other loads, bfq+ is above cfq and bfq",
    stated: &[
        stated("7.3.1", "10r-seq", "bfq+", Value::Times(0.80, "cfq")),
        stated("7.3.1", "10r-seq", "bfq+", Value::Times(0.64, "bfq")),
    ],
};

/// Start-up with NCQ: the range over the four loads.
pub(super) const TABLE_2: Figure = Figure {
    place: "table 2",
    title: "Starting programs with NCQ: least and greatest of the four loads",
    axis: "s",
    log: true,
    groups: &["bash", "konsole"],
    rows: &["bfq+", "bfq", "cfq", "none"],
    in_words: "none is the report's NOOP; its shortest start of konsole is an outlier, with 5r5w-seq",
    stated: &[
        stated("7.3.2", "bash", "bfq+", Value::Range(0.27, 0.32)),
        stated("7.3.2", "bash", "bfq", Value::Range(0.51, 0.74)),
        stated("7.3.2", "bash", "cfq", Value::Range(1.05, 7.44)),
        stated("7.3.2", "bash", "none", Value::Range(6.19, 10.8)),
        stated("7.3.2", "konsole", "bfq+", Value::Range(10.7, 196.0)),
        stated("7.3.2", "konsole", "bfq", Value::Range(30.9, 188.0)),
        stated("7.3.2", "konsole", "cfq", Value::Range(14.7, 2940.0)),
        stated("7.3.2", "konsole", "none", Value::Range(1.55, 408.0)),
    ],
};

/// Dropped frames. The report has them as a rate over the same 20 seconds.
pub(super) const FIGURE_7: Figure = Figure {
    place: "figure 7",
    title: "Frames dropped while bash is started again and again",
    axis: "frames in 20 s",
    log: false,
    groups: LOADS,
    rows: &["bfq+", "bfq", "cfq"],
    in_words: "bfq is worst with the loads that write; bfq+ is no worse with them, against cfq, than with the others",
    stated: &[stated("7.4", EACH, "bfq+", Value::AtMostTimes(1.6, "cfq"))],
};

/// Compilation. The report has no loads that write here.
pub(super) const FIGURE_8: Figure = Figure {
    place: "figure 8(a)",
    title: "Progress of a compilation",
    axis: "source files in 50 s",
    log: false,
    groups: &["10r-seq", "10r-rand"],
    rows: &["bfq+", "bfq", "cfq"],
    in_words: "bfq+ and cfq are about the same, bfq is below both",
    stated: &[],
};

/// Checkout and merge, with the same loads.
pub(super) const FIGURE_9: Figure = Figure {
    place: "figure 9",
    title: "Progress of a checkout and of a merge",
    axis: "files in 50 s",
    log: false,
    groups: &["checkout, 10r-seq", "checkout, 10r-rand", "merge, 10r-seq", "merge, 10r-rand"],
    rows: &["bfq+", "bfq", "cfq"],
    in_words: "bfq+ and bfq are above cfq, bfq+ clearly above bfq",
    stated: &[],
};

#[cfg(test)]
mod tests {
    use super::*;
    use headtime_sched::Policy;

    const ALL: [&Figure; 14] = [
        &TABLE_1,
        &FIGURE_3,
        &FIGURE_3_RANDOM,
        &SHORT_RAMP,
        &SHORT_RATE,
        &FIGURE_4,
        &FIGURE_5A,
        &FIGURE_5B,
        &FIGURE_6A,
        &FIGURE_6B,
        &TABLE_2,
        &FIGURE_7,
        &FIGURE_8,
        &FIGURE_9,
    ];

    #[test]
    fn each_row_is_a_policy() {
        for f in ALL {
            for row in f.rows {
                let name = row.split(',').next().unwrap();
                assert!(Policy::named(name).is_some(), "{}: {row}", f.place);
            }
        }
    }

    #[test]
    fn each_statement_is_about_bars_of_its_figure() {
        for f in ALL {
            for s in f.stated {
                assert!(s.group == EACH || f.groups.contains(&s.group), "{}: {s:?}", f.place);
                assert!(f.rows.contains(&s.row), "{}: {s:?}", f.place);
                match s.value {
                    Value::Is(v) | Value::Below(v) => assert!(v > 0.0, "{s:?}"),
                    Value::Range(low, high) => assert!(0.0 < low && low < high, "{s:?}"),
                    Value::Times(v, of) | Value::AtMostTimes(v, of) => {
                        assert!(v > 0.0 && of != s.row && f.rows.contains(&of), "{}: {s:?}", f.place);
                    }
                }
            }
        }
    }

    #[test]
    fn nothing_is_stated_twice() {
        let of = |v: Value| match v {
            Value::Times(_, of) | Value::AtMostTimes(_, of) => of,
            _ => "",
        };
        for f in ALL {
            for (i, a) in f.stated.iter().enumerate() {
                for b in &f.stated[i + 1..] {
                    let same_group = a.group == b.group || a.group == EACH || b.group == EACH;
                    let same = same_group && a.row == b.row && of(a.value) == of(b.value);
                    assert!(!same, "{}: {a:?} and {b:?}", f.place);
                }
            }
            for list in [f.groups, f.rows] {
                assert!(list.iter().enumerate().all(|(i, n)| !list[..i].contains(n)), "{}: {list:?}", f.place);
            }
        }
    }
}
