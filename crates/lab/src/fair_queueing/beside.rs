//! Charts of measured figures beside those that the report states ([`super::paper`]).
//!
//! Where the report compares two bars, its bar is that multiple of the other bar as measured here.

use headtime_plot::{Axis, Chart, Extent, Pair, PairChart, PairGroup, bar_figure};
use headtime_sim::workload::suite::files::Load;

use super::paper::{EACH, Figure, Stated, Value};
use crate::common::policy_run::PUBLISHED_NAME;
use crate::experiment::Cell;

/// What was measured for one bar.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Measured {
    /// One of [`Figure::groups`]; a value of any other group is not drawn.
    pub group: String,
    /// One of [`Figure::rows`]; a value of any other row is not drawn.
    pub row: String,
    /// The least value where there are several.
    pub least: Option<f64>,
    /// The value, or the greatest.
    pub value: f64,
}

impl Measured {
    /// One value.
    pub(super) fn new(group: &str, row: &str, value: f64) -> Measured {
        Measured { group: group.into(), row: row.into(), least: None, value }
    }

    /// The least and the greatest of several values.
    pub(super) fn range(group: &str, row: &str, values: &[f64]) -> Measured {
        let of = |f: fn(f64, f64) -> f64, from| values.iter().copied().fold(from, f);
        let (least, value) = (of(f64::min, f64::INFINITY), of(f64::max, f64::NEG_INFINITY));
        Measured { group: group.into(), row: row.into(), least: Some(least), value }
    }
}

/// The means in rows of a table with the columns [`crate::common::policy_run::STATISTICS`].
pub(super) fn means(rows: &[Vec<Cell>]) -> Vec<Measured> {
    let of = |row: &Vec<Cell>| match &row[..] {
        [Cell::Text(load), Cell::Text(policy), _, Cell::Number(mean), ..] => Some(Measured::new(load, policy, *mean)),
        _ => None,
    };
    rows.iter().filter_map(of).collect()
}

/// Values by policy and by load, in the order of [`Load::ALL`].
pub(super) fn by_policy(names: &[&str], values: &[Vec<f64>]) -> Vec<Measured> {
    let of = |(name, values)| {
        let loads = Load::ALL.iter().zip::<&Vec<f64>>(values);
        loads.map(move |(load, v)| Measured::new(load.name(), name, *v))
    };
    names.iter().copied().zip(values).flat_map(of).collect()
}

/// Draws each bar of the figure that was measured, with what the report states for it; `about` says
/// how it was measured.
pub(super) fn chart(figure: &Figure, about: &str, measured: &[Measured]) -> Chart {
    let of = |group: &str, row: &str| measured.iter().find(|m| m.group == group && m.row == row);
    let mut groups = Vec::new();
    for group in figure.groups {
        let mut pairs = Vec::new();
        for (row, m) in figure.rows.iter().filter_map(|row| Some((row, of(group, row)?))) {
            // BFQ+ as the report measured it has the report's figures of BFQ+.
            let stated_row = if *row == PUBLISHED_NAME { "bfq+" } else { row };
            let all = figure.stated.iter().filter(|s| s.row == stated_row && (s.group == EACH || s.group == *group));
            // In a multiple the other value is one that was measured, with the same load.
            let all = all.filter_map(|s| Some((s, other(s).map_or(Some(f64::NAN), |o| Some(of(group, o)?.value))?)));
            let all: Vec<(&Stated, f64)> = all.collect();
            pairs.push(Pair {
                name: if *row == PUBLISHED_NAME { "bfq+, as reported" } else { row }.into(),
                measured: Extent { from: m.least, to: m.value, label: measured_label(m, &all) },
                published: all.iter().map(|(s, base)| published(s.value, *base)).collect(),
            });
        }
        if !pairs.is_empty() {
            groups.push(PairGroup { name: (*group).into(), pairs });
        }
    }
    let numbers = groups.iter().flat_map(|g| &g.pairs).any(|p| !p.published.is_empty());
    Chart::Pairs(PairChart {
        title: format!("{} ({})", figure.title, figure.place),
        subtitle: subtitle(figure, about, numbers),
        axis: if figure.log { Axis::log(figure.axis) } else { Axis::from_zero(figure.axis) },
        names: ["headtime".into(), format!("the report, {}", figure.place)],
        groups,
    })
}

fn subtitle(figure: &Figure, about: &str, numbers: bool) -> String {
    let factors = figure.stated.iter().any(|s| other(s).is_some());
    let stated = match (numbers, factors) {
        (false, _) => "The report states no number for these bars.",
        (true, true) => {
            "Below a bar is what the report states for it; a multiple is of the other bar as measured here."
        }
        (true, false) => "Below a bar is what the report states for it.",
    };
    let words = match figure.in_words {
        "" => String::new(),
        words => format!("Without a number: {words}."),
    };
    [about, stated, &words].into_iter().filter(|s| !s.is_empty()).collect::<Vec<_>>().join(" ")
}

/// The row that the stated value is a multiple of.
fn other(s: &Stated) -> Option<&'static str> {
    match s.value {
        Value::Times(_, of) | Value::AtMostTimes(_, of) => Some(of),
        Value::Is(_) | Value::Below(_) | Value::Range(..) => None,
    }
}

/// The value, and it as the multiples that are stated.
fn measured_label(m: &Measured, stated: &[(&Stated, f64)]) -> String {
    if !m.value.is_finite() {
        return "did not end".into();
    }
    let text = match m.least {
        Some(least) => format!("{} to {}", bar_figure(least), bar_figure(m.value)),
        None => bar_figure(m.value),
    };
    let times = |(s, base): &(&Stated, f64)| {
        let of = other(s)?;
        (base.is_finite() && *base > 0.0).then(|| format!("{} × {of}", bar_figure(m.value / base)))
    };
    let times: Vec<String> = stated.iter().filter_map(times).collect();
    if times.is_empty() { text } else { format!("{text} ({})", times.join(", ")) }
}

/// The report's bar; `base` is the value that it is a multiple of, if it is one.
fn published(value: Value, base: f64) -> Extent {
    let (from, to, label) = match value {
        Value::Is(v) => (None, v, bar_figure(v)),
        // A limit is a mark at its place and no bar: nothing was measured there.
        Value::Below(v) => (Some(v), v, format!("below {}", bar_figure(v))),
        Value::Range(low, high) => (Some(low), high, format!("{} to {}", bar_figure(low), bar_figure(high))),
        Value::Times(v, of) => (None, v * base, format!("{} × {of}", bar_figure(v))),
        Value::AtMostTimes(v, of) => (Some(v * base), v * base, format!("at most {} × {of}", bar_figure(v))),
    };
    Extent { from, to, label }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::common::policy_run::{NOT_RAISED_NAME, Runs};
    use crate::fair_queueing::paper;

    /// Group, row, value and label of each measured bar, and the bars below it.
    pub(in crate::fair_queueing) fn bars(chart: &Chart) -> Vec<(String, String, f64, String, Vec<Extent>)> {
        let Chart::Pairs(c) = chart else { panic!("{chart:?}") };
        let of = |g: &PairGroup, p: &Pair| {
            let m = p.measured.clone();
            (g.name.clone(), p.name.clone(), m.to, m.label, p.published.clone())
        };
        c.groups.iter().flat_map(|g| g.pairs.iter().map(move |p| of(g, p))).collect()
    }

    fn known() -> Vec<Vec<Cell>> {
        let of = |load: Load, policy: &str, mean: f64| {
            Runs { values: vec![mean - 1.0, mean + 1.0] }.row(&[load.name(), policy])
        };
        let rows = |policy, means: [f64; 4]| Load::ALL.into_iter().zip(means).map(move |(l, m)| of(l, policy, m));
        rows("bfq+", [84.0, 3.0, 90.0, 4.0])
            .chain(rows("bfq", [60.0, 5.0, 50.0, 6.0]))
            .chain(rows("cfq", [70.0, 7.0, 75.0, 8.0]))
            .collect()
    }

    #[test]
    fn bars_are_the_means_of_the_table_by_load_and_policy() {
        let got = bars(&chart(&paper::FIGURE_3, "", &means(&known())));
        let got: Vec<(&str, &str, f64)> = got.iter().map(|b| (b.0.as_str(), b.1.as_str(), b.2)).collect();
        let want = [
            ("10r-seq", [84.0, 60.0, 70.0]),
            ("10r-rand", [3.0, 5.0, 7.0]),
            ("5r5w-seq", [90.0, 50.0, 75.0]),
            ("5r5w-rand", [4.0, 6.0, 8.0]),
        ];
        let want =
            want.into_iter().flat_map(|(load, v)| ["bfq+", "bfq", "cfq"].into_iter().zip(v).map(move |x| (load, x)));
        assert_eq!(got, want.map(|(load, (policy, v))| (load, policy, v)).collect::<Vec<_>>());
    }

    #[test]
    fn a_stated_multiple_is_of_the_bar_that_was_measured() {
        let got = bars(&chart(&paper::FIGURE_3, "", &means(&known())));
        let stated = |load: &str, policy: &str| {
            let bar = got.iter().find(|b| b.0 == load && b.1 == policy).unwrap();
            (bar.3.clone(), bar.4.clone())
        };
        let times = |v: f64| vec![Extent { from: None, to: v, label: "1.24 × cfq".into() }];
        assert_eq!(stated("10r-seq", "bfq+"), ("84 (1.2 × cfq)".into(), times(1.24 * 70.0)));
        assert_eq!(stated("5r5w-seq", "bfq"), ("50 (0.67 × cfq)".into(), times(1.24 * 75.0)));
        assert_eq!(stated("10r-rand", "bfq+"), ("3".into(), vec![]), "nothing is stated");
        assert_eq!(stated("10r-seq", "cfq"), ("70".into(), vec![]));
    }

    #[test]
    fn a_multiple_of_what_was_not_measured_is_left_out() {
        let got = bars(&chart(&paper::FIGURE_3, "", &[Measured::new("10r-seq", "bfq+", 84.0)]));
        assert_eq!(got, [("10r-seq".into(), "bfq+".into(), 84.0, "84".into(), vec![])]);
    }

    #[test]
    fn a_multiple_of_nothing_has_a_limit_and_no_ratio() {
        let m = [Measured::new("10r-seq", "bfq+", 3.0), Measured::new("10r-seq", "cfq", 0.0)];
        let got = bars(&chart(&paper::FIGURE_7, "", &m));
        assert_eq!((got[0].3.as_str(), got[0].4[0].label.as_str()), ("3", "at most 1.6 × cfq"));
    }

    #[test]
    fn bfq_plus_as_the_report_measured_it_has_the_reports_figures() {
        let m = [
            Measured::new("10r-seq", "bfq+", 40.0),
            Measured::new("10r-seq", PUBLISHED_NAME, 48.0),
            Measured::new("10r-seq", "bfq", 75.0),
            Measured::new("10r-seq", "cfq", 60.0),
        ];
        let got = bars(&chart(&paper::FIGURE_6B, "", &m));
        assert_eq!(got[1].1, "bfq+, as reported");
        assert_eq!(got[1].3, "48 (0.8 × cfq, 0.64 × bfq)");
        assert_eq!(got[1].4.iter().map(|e| e.to).collect::<Vec<_>>(), [48.0, 48.0]);
    }

    #[test]
    fn values_ranges_and_limits_are_drawn_as_stated() {
        let m = [Measured::range("bash", "cfq", &[3.0, 0.5, 2.0]), Measured::new("konsole", "cfq", f64::INFINITY)];
        let got = bars(&chart(&paper::TABLE_2, "", &m));
        assert_eq!((got[0].2, got[0].3.as_str()), (3.0, "0.5 to 3"));
        assert_eq!(got[0].4, [Extent { from: Some(1.05), to: 7.44, label: "1.05 to 7.44".into() }]);
        assert_eq!(got[1].3, "did not end");
        let off = [Measured::new("5r5w-seq", NOT_RAISED_NAME, 0.4)];
        let got = bars(&chart(&paper::FIGURE_5A, "", &off));
        assert_eq!(got[0].4, [Extent { from: Some(0.55), to: 0.55, label: "below 0.55".into() }]);
    }

    #[test]
    fn the_heading_says_where_it_is_from_and_what_has_no_number() {
        let Chart::Pairs(c) = chart(&paper::FIGURE_8, "Mean of ten runs.", &[]) else { panic!("pairs") };
        assert_eq!(c.title, "Progress of a compilation (figure 8(a))");
        assert_eq!(
            c.subtitle,
            "Mean of ten runs. The report states no number for these bars. Without a number: bfq+ and cfq are about \
             the same, bfq is below both."
        );
    }
}
