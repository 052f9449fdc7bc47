//! docs/status.md is made from the registry and from `whole_runs.golden`, which has the result of
//! each claim's last whole run (`headtime reproduce ID`).
//!
//! `HEADTIME_BLESS=1` writes the page anew.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

use headtime_lab::registry;

/// The groups of experiments, and the papers.
const GROUPS: [(&str, &str); 6] = [
    ("F", "Freeblock scheduling (Lumb 2002)"),
    ("S", "The freeblock subsystem (Thereska 2003)"),
    ("B", "BFQ and BFQ+ (Valente 2014)"),
    ("D", "DAS (Reuther 2003)"),
    ("P", "Characterisation of drives (headtime's own)"),
    ("X", "All of it together (headtime's own)"),
];

const HEAD: &str = "\
# Status

Made from the experiments by `crates/lab/tests/it/status.rs`. `headtime reproduce ID` runs an experiment and prints its
figures beside the paper's; rules were fixed before the runs. A claim that does not hold has its reason there, as far as
it is known.

No real hard disk has been tested yet: all results are of virtual drives
([validation.md](validation.md) says how these compare with real ones).

";

const SOURCES: &str = "\
## Sources

Comments name these by author and year, with the section:

- Lumb 2002: C. R. Lumb, J. Schindler, G. R. Ganger, *Freeblock Scheduling Outside of Disk Firmware*, FAST 2002, and its
  technical report of 2001 (Lumb 2001): the scheduler outside the drive and its experiments.
- Thereska 2003: E. Thereska et al., *Design and Implementation of a Freeblock Subsystem*, CMU-PDL-03-107: tasks,
  sessions, search, idle time.
- Reuther 2003: L. Reuther, M. Pohlack, *Rotational-Position-Aware Real-Time Disk Scheduling Using a Dynamic Active
  Subset*, RTSS 2003: guarantees, SATF within the active subset, prediction of service times.
- Valente 2014: P. Valente, *New version of BFQ, benchmark suite and experimental results*, technical report, 2014: BFQ,
  BFQ+, and their experiments.
- The DiskSim 4.0 Reference Manual: what its parameter files mean.
";

/// A cell of a table.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").split_whitespace().collect::<Vec<_>>().join(" ")
}

fn page(results: &BTreeMap<&str, &str>) -> String {
    let experiments = registry::all();
    let claims = |group: &str| {
        let of = experiments.iter().filter(move |e| registry::group(e.spec.id) == group);
        of.flat_map(|e| e.spec.claims).collect::<Vec<_>>()
    };
    let mut page = HEAD.to_string();
    page += "| claims | hold | do not |\n|---|---|---|\n";
    for (group, name) in GROUPS {
        let all = claims(group);
        let fails: Vec<&str> = all.iter().map(|c| c.id).filter(|id| results[id] == "fails").collect();
        let (holds, of) = (all.len() - fails.len(), all.len());
        writeln!(page, "| {group}: {name} | {holds} of {of} | {} |", fails.join(", ")).unwrap();
    }
    for (group, name) in GROUPS {
        writeln!(page, "\n## {group}: {name}\n\n| id | claim | rule | result |\n|---|---|---|---|").unwrap();
        for c in claims(group) {
            let result = if results[c.id] == "holds" { "holds" } else { "**fails**" };
            writeln!(page, "| {} | {} | {} | {result} |", c.id, cell(c.claim), cell(c.rule)).unwrap();
        }
    }
    page + "\n" + SOURCES
}

#[test]
fn the_page_of_claims_says_what_whole_runs_found() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(here.join("tests/it/whole_runs.golden")).unwrap();
    let results: BTreeMap<&str, &str> = text.lines().map(|l| l.split_once(' ').expect("an id and a result")).collect();
    assert!(results.values().all(|r| ["holds", "fails"].contains(r)), "{results:?}");
    let mut known: Vec<&str> = registry::all().iter().flat_map(|e| e.spec.claims.iter().map(|c| c.id)).collect();
    known.sort_unstable();
    assert_eq!(results.keys().copied().collect::<Vec<_>>(), known, "each claim has one result");
    let (path, page) = (here.join("../../docs/status.md"), page(&results));
    if std::env::var_os("HEADTIME_BLESS").is_some() {
        std::fs::write(&path, &page).unwrap();
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(page, written, "docs/status.md is another page; if the change is meant, HEADTIME_BLESS=1");
}
