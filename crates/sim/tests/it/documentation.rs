//! The examples on the pages about scenarios and traces are valid, with the documented meaning.

use headtime_sched::streams::Exhausted;
use headtime_sched::{Algorithm, Placement};
use headtime_sim::scenario::filling::{BACKGROUNDS, FILLS};
use headtime_sim::scenario::{ADMITS, Scenario};
use headtime_sim::simulate::Scheduling;
use headtime_sim::streams;
use headtime_sim::traces::{ReadOptions, Reader, TraceFormat};
use headtime_sim::workload::{NAMES, Target};

const SCENARIOS: &str = include_str!("../../../../docs/scenarios.md");
const GUARANTEES: &str = include_str!("../../../../docs/guarantees.md");
const TRACES: &str = include_str!("../../../../docs/traces.md");

/// Returns the first code block of this kind on a page.
fn block(page: &str, kind: &str) -> String {
    let begin = format!("```{kind}");
    let lines = page.lines().skip_while(|l| *l != begin).skip(1).take_while(|l| *l != "```");
    lines.map(|l| format!("{l}\n")).collect()
}

#[test]
fn the_sample_of_each_format_is_one_request() {
    for (name, format) in TraceFormat::ALL {
        assert!(TRACES.contains(&format!("\n## {name}\n")), "{name}");
        let text = block(TRACES, name);
        let bytes = match format {
            // A page has its bytes in hexadecimal digits.
            TraceFormat::Vscsi => {
                text.split_ascii_whitespace().map(|byte| u8::from_str_radix(byte, 16).unwrap()).collect()
            }
            _ => text.clone().into_bytes(),
        };
        let reader = Reader::new(&bytes[..], name.into(), format, ReadOptions::default());
        assert_eq!(reader.read_all().unwrap().len(), 1, "{name}: {text}");
    }
}

#[test]
fn the_page_on_traces_gives_the_longest_trace() {
    let days = headtime_sim::traces::LONGEST_TRACE_DAYS;
    assert!(TRACES.contains(&format!("more than {days} days from the first")));
}

#[test]
fn the_example_of_a_scenario_runs_as_it_stands() {
    let s = Scenario::parse(&block(SCENARIOS, "toml"), "scenarios.md").unwrap();
    s.check().unwrap();
    let target = Target { capacity: 1_000_000, sector_bytes: 512, geometry: None };
    assert_eq!(s.workload(&target, 1).unwrap().classes(), ["clients", "log"]);
}

#[test]
fn the_example_of_streams_runs_as_it_stands() {
    let s = Scenario::parse(&block(SCENARIOS, "toml-streams"), "scenarios.md").unwrap();
    s.check().unwrap();
    let target = Target { capacity: 1_000_000, sector_bytes: 512, geometry: None };
    assert_eq!(s.workload(&target, 1).unwrap().classes(), ["best-effort", "film", "sound"]);
}

#[test]
fn every_key_and_every_name_is_on_the_page_and_no_other() {
    // The error for an unknown key lists the known ones.
    let known = |text: &str| -> Vec<String> {
        let e = Scenario::parse(text, "s").unwrap_err().to_string();
        let (_, list) = e.split_once("expected one of").unwrap();
        list.split('`').skip(1).step_by(2).map(str::to_owned).collect()
    };
    // The tables under "Background work" document the values of three keys.
    let (before, rest) = SCENARIOS.split_once("\n## Background work\n").unwrap();
    let after = &rest[rest.find("\n## ").unwrap()..];
    let on_page: Vec<&str> = before
        .lines()
        .chain(after.lines())
        .filter(|l| l.starts_with("| `"))
        .flat_map(|l| l.split('|').nth(1).unwrap().split('`').skip(1).step_by(2))
        .map(|k| k.trim_start_matches("[[").trim_end_matches("]]"))
        .collect();
    let mut expected = known("no_such_key = 1\n");
    expected.extend(known("[[task]]\nno_such_key = 1\n"));
    expected.extend(known("[[stream]]\nno_such_key = 1\n"));
    expected.extend(NAMES.map(str::to_owned));
    for key in &expected {
        assert!(on_page.contains(&key.as_str()), "{key} is not on the page");
    }
    for key in on_page {
        assert!(expected.iter().any(|k| k == key), "{key} is on the page only");
    }
    for name in names().iter().flat_map(|(_, names)| *names) {
        assert!(SCENARIOS.contains(&format!("`\"{name}\"`")), "{name}");
    }
}

/// The keys whose values have names, with these.
fn names() -> [(&'static str, &'static [&'static str]); 6] {
    [
        ("order", &Scheduling::NAMES),
        ("admit", &ADMITS),
        ("exhausted", &Exhausted::NAMES),
        ("fill", &FILLS),
        ("placement", &Placement::NAMES),
        ("background", &BACKGROUNDS),
    ]
}

#[test]
fn the_page_gives_a_keys_names_where_it_describes_the_key_and_no_others() {
    for (key, names) in names() {
        let row = SCENARIOS.lines().find(|l| l.starts_with(&format!("| `{key}` | "))).unwrap();
        let on_page: Vec<&str> = row.split('`').skip(1).step_by(2).filter_map(|w| w.strip_prefix('"')).collect();
        let on_page: Vec<&str> = on_page.iter().filter_map(|w| w.strip_suffix('"')).collect();
        assert!(names.iter().all(|name| on_page.contains(name)), "{key}: {on_page:?}");
        assert!(on_page.iter().all(|name| names.contains(name)), "{key}: {on_page:?}");
    }
    // The tables that say what each of them does.
    let described = |heading: &str| -> Vec<&str> {
        let rows = SCENARIOS.lines().skip_while(|l| *l != heading).skip(2).take_while(|l| l.starts_with('|'));
        rows.map(|l| l.split('`').nth(1).unwrap()).collect()
    };
    assert_eq!(described("| `fill` | the search for blocks |"), Algorithm::NAMES);
    let placements = described("| `placement` | what the scheduler knows, and which commands it may send |");
    assert_eq!(placements, Placement::NAMES);
}

#[test]
fn the_example_of_a_stream_is_read_as_it_stands() {
    let streams = streams::read("guarantees.md", &block(GUARANTEES, "toml")).unwrap();
    let [b] = streams.as_slice() else { panic!("{streams:?}") };
    assert_eq!((b.name.as_str(), b.requests, b.quality.ppm(), b.bytes), ("B frames", 45, 950_000, 65_536));
    assert!(streams::KEYS.iter().all(|key| GUARANTEES.contains(&format!("\n{key} = "))));
}
