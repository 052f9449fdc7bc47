//! The text output of `headtime simulate` for streams.

use headtime_sim::result::SimResult;
use headtime_sim::result::streams::StreamResult;

use crate::screen::columns;

/// The results of each stream and their cost; empty without streams.
pub fn text(r: &SimResult) -> String {
    if r.streams.is_empty() {
        return String::new();
    }
    let head = ["stream", "asked", "in time", "+-", "periods", "whole", "reserved, ms", "late", "given up", "MB/s"];
    let mut rows = vec![head.map(String::from).to_vec()];
    rows.extend(r.streams.iter().map(|(name, s)| row(name, s)));
    let mut out = format!("\n{}", columns(&rows, &[1, 2, 3, 4, 5, 6, 7, 8, 9]));
    let Some(g) = &r.guarantees else {
        return out + "nothing was promised to them (--admit das)\n";
    };
    let share = |v: Option<f64>| v.map_or_else(|| "-".into(), |v| percent(v, 1));
    out += &format!(
        "promised: {} of the time at the worst of mandatory requests, {} expected in all; best effort had to wait in \
         {} of the decisions\n",
        share(g.worst_load),
        share(g.expected_load),
        share(g.streams_only)
    );
    if g.overdue > 0 {
        out += &format!(
            "warning: {} commands took longer than the worst case: promises rest on a wrong figure\n",
            g.overdue
        );
    }
    out
}

fn row(name: &str, s: &StreamResult) -> Vec<String> {
    let asked = if s.quality_asked >= 1.0 { "all".into() } else { percent(s.quality_asked, 2) };
    let share = |v: Option<f64>| v.map_or_else(|| "-".into(), |v| percent(v, 2));
    let reserved = s.reservation_ms.map_or_else(|| "-".into(), |ms| format!("{ms:.2}"));
    let counts = [s.late, s.dropped].map(|n| n.to_string());
    let [late, dropped] = counts;
    let periods = s.periods.to_string();
    let whole = s.whole_periods.to_string();
    let mb_s = format!("{:.3}", s.mb_s);
    [name.into(), asked, share(s.quality), share(s.quality_plus_minus), periods, whole, reserved, late, dropped, mb_s]
        .to_vec()
}

fn percent(share: f64, digits: usize) -> String {
    format!("{:.digits$}%", 100.0 * share)
}
