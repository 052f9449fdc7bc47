//! A study's results as one page, without anything outside it.

use std::fmt::Write;

use headtime_plot::{Axis, Chart, Series, Style, XyChart};

use super::estimate::Estimate;
use super::run::{Outcome, Point};

const STYLE: &str = "\
:root{color-scheme:light dark}\
body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}\
table{border-collapse:collapse;margin:1rem 0;width:100%}\
td,th{border-bottom:1px solid #8888;padding:.3rem .6rem;text-align:right;vertical-align:top}\
td:first-child,th:first-child{text-align:left}\
.dim{opacity:.7}svg{max-width:100%;height:auto}";

/// Returns the page.
pub fn page(o: &Outcome) -> String {
    let mut p = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width\">\n<title>{0}</title>\n<style>{STYLE}</style></head>\
         <body>\n<h1>{0}</h1>\n<p>{1}</p>\n",
        escape(&o.title),
        escape(&o.about)
    );
    let _ = writeln!(
        p,
        "<p class=\"dim\">{} drives of the profile {}. Rates are of simulations of one drive with one cylinder of \
         many; intervals are those of 95%, of what is drawn at random, and not of the assumptions.</p>",
        o.drives,
        escape(&o.disk)
    );
    scans(&mut p, o);
    p.push_str(&distribution(o).to_svg());
    clients(&mut p, o);
    for chart in curves(o) {
        p.push_str(&chart.to_svg());
    }
    durability(&mut p, o);
    p.push_str("</body></html>\n");
    p
}

fn scans(p: &mut String, o: &Outcome) {
    let targets = o.policies.values().next().into_iter().flat_map(|f| f.missed.targets());
    p.push_str(
        "<h2>How long a scan of the whole drive takes</h2>\n<table><tr><th>policy</th><th>median, days</th>\
                <th>95% of drives</th><th>99%</th><th>slowest</th>",
    );
    for days in targets {
        let _ = write!(p, "<th>longer than {days} days</th>");
    }
    p.push_str("</tr>\n");
    for (name, f) in &o.policies {
        let _ = write!(p, "<tr><td>{}</td>", escape(name));
        for days in &f.scan_days[1..] {
            let _ = write!(p, "<td>{}</td>", figure(*days));
        }
        for missed in f.missed.shares() {
            let _ = write!(p, "<td>{}</td>", percent(missed));
        }
        p.push_str("</tr>\n");
    }
    p.push_str("</table>\n");
    for warning in o.warnings() {
        let _ = writeln!(p, "<p><strong>Note.</strong> {}.</p>", escape(&warning));
    }
}

fn clients(p: &mut String, o: &Outcome) {
    p.push_str(
        "<h2>What clients notice</h2>\n<table><tr><th>policy</th><th>mean, ms</th><th>99th percentile, ms</th>\
                <th>without a scan: mean, ms</th><th>99th percentile, ms</th></tr>\n",
    );
    for (name, f) in &o.policies {
        let cells = [f.mean_ms, f.p99_ms, f.alone[0], f.alone[1]].map(|ms| format!("<td>{ms:.1}</td>"));
        let _ = writeln!(p, "<tr><td>{}</td>{}</tr>", escape(name), cells.concat());
    }
    p.push_str(
        "</table>\n<p class=\"dim\">Means over requests; the percentile is that of an hour, as a mean over \
                requests.</p>\n",
    );
}

fn durability(p: &mut String, o: &Outcome) {
    if o.policies.values().all(|f| f.groups.is_empty()) {
        return;
    }
    p.push_str("<h2>Durability</h2>\n");
    if let Some(rate) = &o.failures_per_year {
        let years: Vec<String> = o.failed.iter().map(u64::to_string).collect();
        let _ = writeln!(
            p,
            "<p>{} of the drives fail in a year; of a new fleet, with failed drives replaced, {} in the first {} \
             years.</p>",
            percent(rate),
            years.join(", "),
            years.len()
        );
    }
    p.push_str(
        "<table><tr><th>group</th><th>scan policy</th><th>rebuild, hours</th><th>unreadable sector not \
                found</th><th>mean time to data loss, years</th><th>losses by such sectors</th></tr>\n",
    );
    for (policy, f) in &o.policies {
        for (name, g) in &f.groups {
            let years = &g.durability.mttdl_years;
            let _ = writeln!(
                p,
                "<tr><td>{}</td><td>{}</td><td>{}</td><td>{:.3}%</td><td>{} ({} to {})</td><td>{:.0}%</td></tr>",
                escape(name),
                escape(policy),
                figure(g.rebuild_hours),
                100.0 * g.latent,
                figure(years.value),
                figure(years.low),
                figure(years.high),
                100.0 * g.durability.by_latent
            );
        }
    }
    p.push_str(
        "</table>\n<h3>If a figure were half of what it is, or twice</h3>\n<table><tr><th>group</th>\
                <th>scan policy</th><th>figure</th><th>half: years</th><th>twice: years</th></tr>\n",
    );
    for (policy, f) in &o.policies {
        for (name, g) in &f.groups {
            for (what, [half, twice]) in &g.sensitivity {
                let _ = writeln!(
                    p,
                    "<tr><td>{}</td><td>{}</td><td>{what}</td><td>{}</td><td>{}</td></tr>",
                    escape(name),
                    escape(policy),
                    figure(*half),
                    figure(*twice)
                );
            }
        }
    }
    p.push_str("</table>\n");
}

fn distribution(o: &Outcome) -> Chart {
    let series = o.policies.iter().map(|(name, f)| Series {
        name: name.clone(),
        style: Style::Step,
        points: f.distribution.clone(),
    });
    Chart::Xy(XyChart {
        title: "Time of a scan over the fleet".into(),
        subtitle: "The share of drives that have been read whole after this number of days.".into(),
        x: Axis::log("days"),
        y: Axis::range("share of drives", 0.0, 1.0),
        series: series.collect(),
    })
}

fn curves(o: &Outcome) -> [Chart; 2] {
    let chart = |title: &str, subtitle: &str, y: Axis, of: &dyn Fn(&Point) -> f64| {
        let series = o.table.iter().map(|(name, points)| Series {
            name: name.clone(),
            style: Style::Marked,
            points: points.iter().map(|p| (p.load, of(p))).filter(|(_, v)| v.is_finite() && *v > 0.0).collect(),
        });
        Chart::Xy(XyChart {
            title: title.into(),
            subtitle: subtitle.into(),
            x: Axis::from_zero("clients' requests per second"),
            y,
            series: series.filter(|s| !s.points.is_empty()).collect(),
        })
    };
    [
        chart(
            "A scan of one drive, by load",
            "Days; a line ends where the drive no longer serves its clients, or the scan does not end.",
            Axis::log("days"),
            &|p| p.rates.scan_hours / 24.0,
        ),
        chart("Clients of one drive, by load", "99th percentile of response times.", Axis::log("ms"), &|p| {
            p.rates.p99_ms
        }),
    ]
}

/// Formats a figure with three digits, in words if it has none.
pub fn figure(v: f64) -> String {
    match v {
        v if v.is_infinite() => "never".into(),
        v if v.is_nan() => "-".into(),
        v if v.abs() >= 1e5 => format!("{v:.2e}"),
        v if v.abs() >= 100.0 => format!("{v:.0}"),
        v if v.abs() >= 10.0 => format!("{v:.1}"),
        v => format!("{v:.2}"),
    }
}

fn percent(e: &Estimate) -> String {
    format!("{:.2}% ({:.2} to {:.2})", 100.0 * e.value, 100.0 * e.low, 100.0 * e.high)
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
