//! The page that compares the paper's figures and ours.

use std::fmt::Write;

use super::{chart_file, charts, ours, short, tables};
use crate::experiment::runner::{ClaimResult, ExperimentResult, Options};

const STYLE: &str = "\
:root{color-scheme:light dark;--line:#d1d9e0;--dim:#59636e;--bad:#b42318;--good:#1a7f37;--bg:#fff;--fg:#1f2328}\
@media (prefers-color-scheme:dark){:root{--line:#30363d;--dim:#9198a1;--bad:#ff7b72;--good:#3fb950;\
--bg:#0d1117;--fg:#e6edf3}}\
body{font:15px/1.5 system-ui,sans-serif;max-width:70rem;margin:2rem auto;padding:0 1rem;\
background:var(--bg);color:var(--fg)}\
table{border-collapse:collapse;width:100%;margin:1rem 0}th,td{border-bottom:1px solid var(--line);padding:.4rem .6rem;\
text-align:left;vertical-align:top}\
th{color:var(--dim);font-weight:600}\
.bad{color:var(--bad);font-weight:600}.good{color:var(--good)}.dim{color:var(--dim)}\
img{max-width:100%;height:auto;border:1px solid var(--line);margin:.5rem 0}a{color:inherit}";

/// The whole page.
pub(super) fn page(results: &[ExperimentResult], options: &Options) -> String {
    let claims: Vec<(&ExperimentResult, &ClaimResult)> =
        results.iter().flat_map(|e| e.claims.iter().map(move |c| (e, c))).collect();
    let held = claims.iter().filter(|(_, c)| c.holds).count();
    let seeds: Vec<String> = options.seeds.iter().map(u64::to_string).collect();
    let mut p = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width\">\n\
         <title>headtime: claims and figures</title>\n<style>{STYLE}</style></head><body>\n\
         <h1>headtime: what the papers found, and what we find</h1>\n\
         <p>{held} of {} claims hold, each for every one of the seeds {}{}. Our figure is the mean over the seeds, \
         with the range in brackets. Rules were fixed beforehand and are never loosened.</p>\n",
        claims.len(),
        seeds.join(", "),
        if options.quick { ", in shortened runs" } else { "" },
    );
    p.push_str(
        "<table><thead><tr><th>claim</th><th>what</th><th>paper</th><th>ours</th><th>rule</th>\
         <th>holds</th></tr></thead><tbody>\n",
    );
    let failed = claims.iter().filter(|(_, c)| !c.holds);
    for (e, c) in failed.chain(claims.iter().filter(|(_, c)| c.holds)) {
        row(&mut p, e, c, &seeds);
    }
    p.push_str("</tbody></table>\n");
    for e in results {
        section(&mut p, e, options);
    }
    p.push_str("</body></html>\n");
    p
}

fn row(p: &mut String, e: &ExperimentResult, c: &ClaimResult, seeds: &[String]) {
    let (class, word) = if c.holds { ("good", "yes") } else { ("bad", "no") };
    let _ = write!(p, "<tr><td><a href=\"#{}\">{}</a></td><td>{}", e.spec.id, c.claim.id, escape(c.claim.claim));
    if !c.note.is_empty() {
        let _ = write!(p, "<br><span class=\"dim\">{}</span>", escape(&c.note));
    }
    if !c.holds || c.claim.checks.len() > 1 {
        for (i, check) in c.claim.checks.iter().enumerate() {
            let passes = c.figures.iter().all(|f| check.test.passes(f[i]));
            let by_seed: Vec<String> =
                c.figures.iter().zip(seeds).map(|(f, seed)| format!("{} (seed {seed})", short(f[i]))).collect();
            let _ = write!(
                p,
                "<br><span class=\"{}\">{}: {} {}</span>",
                if passes { "dim" } else { "bad" },
                escape(check.what),
                by_seed.join(", "),
                escape(check.unit)
            );
        }
    }
    let _ = writeln!(
        p,
        "</td><td>{}</td><td>{}</td><td>{}</td><td class=\"{class}\">{word}</td></tr>",
        escape(c.claim.paper),
        escape(&ours(c)),
        escape(c.claim.rule)
    );
}

fn section(p: &mut String, e: &ExperimentResult, options: &Options) {
    let s = e.spec;
    let _ = writeln!(
        p,
        "<h2 id=\"{0}\">{0}: {1}</h2>\n<p>{2}.<br>Drive: {3}. Workload: {4}. Took {5:.1} s.</p>",
        s.id,
        escape(s.title),
        escape(s.source),
        escape(s.drive),
        escape(s.workload),
        e.seconds
    );
    for (n, chart) in charts(e).enumerate() {
        let _ = writeln!(p, "<p><img src=\"{}\" alt=\"{}\"></p>", chart_file(s.id, n), escape(chart.title()));
    }
    if let Some(seed) = options.seeds.first()
        && charts(e).next().is_some()
    {
        let _ = writeln!(p, "<p class=\"dim\">The pictures show seed {seed}.</p>");
    }
    let mut links = vec![format!("<a href=\"{0}.json\">{0}.json</a>", s.id)];
    for (name, _) in tables(e, options) {
        links.push(format!("<a href=\"{0}.{name}.csv\">{0}.{name}.csv</a>", s.id));
    }
    let _ = writeln!(p, "<p>Figures: {}</p>", links.join(", "));
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
