//! Tests of scenarios and their error messages.

use super::*;
use crate::workload::variates::Share;
use crate::workload::{Arrivals, Gaps, PatternSpec, SizeSpec, Think, oltp};
use headtime_sched::{Algorithm, Conservatism, Order};

fn target() -> Target {
    Target { capacity: 1_000_000, sector_bytes: 512, geometry: None }
}

fn parse(text: &str) -> Result<Scenario, WorkloadError> {
    let s = Scenario::parse(text, "s.toml")?;
    s.check()?;
    Ok(s)
}

fn error(text: &str) -> String {
    parse(text).unwrap_err().to_string()
}

const MIX: &str = r#"
    disk = "atlas10k"
    order = "sptf-sw:60"
    seconds = 60
    seed = 7
    [[task]]
    name = "clients"
    tasks = 8
    think_ms = 20.0
    think = "exponential"
    reads = 0.7
    size_mean = "8k"
    [[task]]
    name = "log"
    rate = 50.0
    reads = 0.0
    size = "4KiB"
    place = "sequential"
    fua = true
    start_s = 1.5
"#;

#[test]
fn the_example_in_the_documentation_is_understood() {
    let text: String = include_str!("mod.rs")
        .lines()
        .skip_while(|l| *l != "//! ```toml")
        .skip(1)
        .take_while(|l| *l != "//! ```")
        .map(|l| format!("{}\n", l.trim_start_matches("//!")))
        .collect();
    let s = parse(&text).unwrap();
    assert_eq!(s.task.len(), 2);
    assert!(s.workload(&target(), 1).is_ok());
}

#[test]
fn tasks_say_what_they_do() {
    let s = parse(MIX).unwrap();
    assert_eq!(s.scheduling().unwrap(), Scheduling::Host(Order::SptfSw(60)));
    assert_eq!(s.limits().unwrap().until, Some(Time(60_000_000_000)));
    let clients = s.task[0].group().unwrap();
    assert_eq!(clients.arrivals, Arrivals::Closed { tasks: 8, think: Think::Exponential(Dur::from_ms(20)) });
    assert_eq!(clients.pattern.size, SizeSpec::Exponential { mean_bytes: 8192, step_bytes: 4096 });
    let log = s.task[1].group().unwrap();
    assert_eq!(log.arrivals, Arrivals::Open { mean_gap: Dur::from_ms(20), gaps: Gaps::Exponential });
    assert_eq!((log.pattern.reads, log.pattern.fua), (Share::from_f64(0.0).unwrap(), true));
    assert_eq!(log.start, Time(1_500_000_000));
    let mut w = s.workload(&target(), 7).unwrap();
    assert_eq!(w.classes(), ["clients", "log"]);
    assert!(w.take().is_ok());
}

#[test]
fn background_work_is_understood_in_any_order_of_keys_and_flags() {
    let file = "until_scanned = true\nbackground = \"scan:32\"\nconservatism_us = 300\nfill = \"angle-ep-frag\"\n";
    let s = parse(file).unwrap();
    let fill = s.fill(7).unwrap().unwrap();
    assert_eq!((fill.algorithm, fill.seed), (Algorithm::AngleEpFrag, 7));
    assert_eq!(fill.conservatism, Conservatism::Fixed(Dur::from_us(300)));
    assert!(s.limits().unwrap().until_scanned && s.background(&target()).unwrap().ends());
    // The file may leave FILL to a flag or to the default.
    let half = Scenario::parse("background = \"rescan\"\n", "s.toml").unwrap();
    assert_eq!(half.fill(1).unwrap().unwrap().algorithm, Algorithm::Headtime);
    let none = Scenario { fill: Some("none".into()), ..Scenario::default() }.over(half.clone());
    assert!(none.check().is_ok() && none.fill(1).unwrap().is_none());
    let flags = Scenario { fill: Some("headtime".into()), ..Scenario::default() };
    assert!(flags.clone().over(half).check().is_ok());
    // Another limit of the run replaces the file's.
    let s = Scenario { seconds: Some(5.0), ..flags }.over(s);
    assert!(!s.limits().unwrap().until_scanned && s.fill(1).unwrap().unwrap().algorithm == Algorithm::Headtime);
}

#[test]
fn a_task_can_be_like_a_named_workload() {
    let s = parse("[[task]]\nname = \"big\"\nlike = \"oltp\"\nsize = \"256k\"\n").unwrap();
    let g = s.task[0].group().unwrap();
    let like = oltp();
    assert_eq!(g.arrivals, like.arrivals);
    assert_eq!(g.pattern, PatternSpec { size: SizeSpec::Fixed { bytes: 262_144 }, ..like.pattern });
}

#[test]
fn flags_win_over_the_file() {
    let file = parse(MIX).unwrap();
    let flags = Scenario { order: Some("fcfs".into()), requests: Some(10), ..Scenario::default() };
    let s = flags.over(file.clone());
    assert_eq!((s.order.as_deref(), s.seconds, s.requests), (Some("fcfs"), None, Some(10)));
    assert_eq!((s.disk.as_deref(), s.task.len(), s.seed), (Some("atlas10k"), 2, Some(7)));
    let flags = Scenario { workload: Some("closed:3".into()), ..Scenario::default() };
    let s = flags.over(file);
    assert!(s.task.is_empty());
    assert!(s.check().is_ok());
}

#[test]
fn mistakes_name_place_expectation_and_what_is_known() {
    for (text, what) in [
        ("disk = \"a\"\nfoo = 1\n", "s.toml:2: unknown key `foo`, expected one of `disk`"),
        ("disk = \n", "s.toml:1: "),
        ("depth = \"two\"\n", "s.toml:1: expected a whole number from 0 to 4294967295, found \"two\""),
        ("order = \"elevator\"\n", "fcfs, clook, sstf, sptf, sptf-ahead, sptf-joint, sptf-sw:N, satfuf:MS"),
        ("order = \"sptf-sw:x\"\n", "expected 0 to 1000"),
        ("order = \"satfuf:-1\"\n", "expected 0 to"),
        ("admit = \"deadline\"\n", "known: none, cfq, bfq, bfq+"),
        ("fill = \"greedy\"\n", "s.toml:1: unknown fill \"greedy\"; known: none, bw-greedy"),
        ("placement = \"drive\"\n", "s.toml:1: unknown placement \"drive\"; known: host, firmware"),
        ("disk = \"a\"\nbackground = \"copy\"\n", "s.toml:2: unknown background \"copy\"; known: none, scan"),
        ("fill = \"headtime\"\nbackground = \"scan:0\"\n", "s.toml:2: KIB of background scan:KIB: expected 1 to"),
        ("fill = \"headtime\"\nconservatism_us = -1\n", "s.toml:2: conservatism_us: expected 0 to 100000, or"),
        ("fill = \"headtime\"\nconservatism_us = \"bold\"\n", "s.toml:2: conservatism_us: expected 0 to 100000, or"),
        ("seed = 1\nhost_us = 1000001\n", "s.toml:2: host_us: expected 0 to 1000000, or \"exponential:MEAN\""),
        ("host_us = \"exponential\"\n", "s.toml:1: host_us: expected 0 to 1000000"),
        ("host_us = -1\n", "s.toml:1: host_us: expected 0 to 1000000"),
        (
            "seed = 1\nhost_us = 5\ntrace = \"t\"\ntrace_format = \"mqsim\"\n",
            "s.toml:2: host_us was given, but a trace has its own pauses",
        ),
        (
            "workload = \"open:50\"\nhost_us = 5\n",
            "host_us was given, but requests of \"open:50\" do not wait for answers",
        ),
        ("fill = \"none\"\nbackground = \"scan\"\nuntil_scanned = true\n", "needs a fill that scans it"),
        ("conservatism_us = 300\n", "conservatism_us was given, but no fill"),
        ("placement = \"firmware\"\n", "a placement was given, but no fill"),
        ("noise = \"loud\"\n", "s.toml:1: unknown noise \"loud\"; known: profile, off, measured"),
        ("fill = \"headtime\"\norder = \"drive\"\n", "the drive, which fills no gaps"),
        (
            "seed = 1\nuntil_scanned = true\n",
            "s.toml:2: until_scanned: a run until the disk is scanned needs background",
        ),
        ("seed = 1.5\n", "s.toml:1: expected a whole number, 0 or more, found 1.5"),
        ("seed = 99999999999999999999\n", "s.toml:1: expected a whole number, 0 or more, found 99999999999999999999"),
        ("disk = 1979-05-27\n", "s.toml:1: expected text in quotes, found 1979-05-27"),
        ("seconds = [1,\n2]\n", "s.toml:1: expected a number, found [1,"),
        ("seed = 1\nconservatism_us = true\n", "s.toml:2: expected a whole number or a word in quotes, found true"),
        ("fill = \"headtime\"\nconservatism_us = 1.5\n", "s.toml:2: conservatism_us: expected 0 to 100000, or"),
        ("disk = \"a\n", "s.toml:1: expected text that ends with \" in its line, found disk = \"a"),
        ("disk = \"\u{1}\"\n", "without control characters, found disk = \"\\u{1}\""),
        ("disk = a\n", "s.toml:1: expected text in quotes, a number, true or false, found disk = a"),
        ("disk = \"a\\q\"\n", "s.toml:1: expected \\\\ for each \\ in text, or text in ', found disk = \"a\\q\""),
        ("disk = '''a\n", "s.toml:2: expected text that ends with ''', found nothing"),
        ("seed = 01\n", "s.toml:1: expected a number without leading zeros, found seed = 01"),
        ("disk = \"a\" \"b\"\n", "s.toml:1: expected one key = value in a line, found disk = \"a\" \"b\""),
        ("seed = 1\nseed = 2\n", "s.toml:2: expected each key once, found seed = 2"),
        ("seed = 1\nplacement = \"firmware\"\n", "s.toml:2: a placement was given, but no fill"),
        ("seed = 1\ndevice = 3\n", "s.toml:2: a device was given, but no trace"),
        ("[task]\nname = \"a\"\n", "s.toml:1: expected a list, written as [[task]] or [[stream]], found [task]"),
        ("[[task]]\nname = \"a\"\nwhat = 1\n", "s.toml:3: unknown key `what`, expected one of `name`"),
        (
            "[[task]]\nname = \"a\"\nsizes = [[\"4k\", 3, 4]]\n",
            "s.toml:3: expected a list of sizes with weights such as",
        ),
        ("[[task]]\nname = \"a\"\nsizes = [[\"4k\"]]\n", "found [\"4k\"]"),
        ("[[task]]\nname = \"a\"\nsizes = 5\n", "found 5"),
        ("fill = \"headtime\"\nbackground = \"rescan\"\nuntil_scanned = true\n", "background work that ends: scan"),
        ("seed = 1\ndepth = 0\n", "s.toml:2: depth: expected 1 to"),
        ("depth = -1\n", "expected a whole number from 0 to 4294967295"),
        ("seconds = \"long\"\n", "expected a number"),
        ("seconds = 1e300\n", "found 1e300"),
        ("requests = 1.5\n", "expected a whole number, 0 or more"),
        ("disk = 5\n", "expected text in quotes"),
        ("task = 5\n", "expected a list, written as [[task]] or [[stream]]"),
        ("[[task]]\nname = \"a\"\nfua = 1\n", "s.toml:3: expected true or false, found 1"),
        ("[[task]]\nname = \"a\"\n[[task]]\nname = \"a\"\n", "s.toml:4: task \"a\": two tasks have the name"),
        ("[[task]]\nname = \"read\"\n", "s.toml:2: task \"read\": name: expected another than"),
        ("[[task]]\nname = \"all\"\n", "read, write, flush or all"),
        ("[[task]]\nname = \"a\\u001b[2J\"\n", "without control characters, found \"a\\u{1b}[2J\""),
        ("[[task]]\nname = \"a\"\n\nreads = 7\n", "s.toml:4: reads of task \"a\""),
        ("[[task]]\nname = \"a\"\nrate = 0.0\n", "s.toml:3: task \"a\": rate: "),
        ("[[task]]\nname = \"a\"\nlike = \"b\"\n", "s.toml:3: task \"a\": like: unknown workload \"b\""),
        ("workload = \"tpcc\"\n", "closed:N"),
        ("seconds = 0.0\n", "more than 0"),
        ("seconds = nan\n", "more than 0"),
        ("requests = 0\n", "expected 1 to"),
        ("workload = \"oltp\"\ntrace = \"t\"\ntrace_format = \"mqsim\"\n", "not several"),
        ("trace = \"t\"\n", "disksim-validate, disksim-ascii, mqsim"),
        ("trace_format = \"mqsim\"\n", "no trace"),
        ("trace = \"t\"\ntrace_format = \"mqsim\"\nreplay = \"fast\"\n", "auto, open, closed"),
        ("[[task]]\ntasks = 3\n", "without a name"),
        ("[[task]]\nname = \"a\"\nrate = 5.0\ntasks = 3\n", "task \"a\": rate makes it open"),
        ("[[task]]\nname = \"a\"\nsize = \"4q\"\n", "4096 or \"4k\""),
        ("[[task]]\nname = \"a\"\nsize = -4\n", "4096 or \"4k\""),
        ("[[task]]\nname = \"a\"\nsize = 4096\nsize_mean = 4096\n", "give one of size"),
        ("[[task]]\nname = \"a\"\nreads = 1.5\n", "reads of task \"a\": expected 0 to 1, found 1.5"),
        (
            "[[task]]\nname = \"a\"\nplace = \"here\"\n",
            "uniform, sequential, shared-sequential, shared-backward, part, window, recent-group",
        ),
        ("[[task]]\nname = \"a\"\ncylinders = 5\n", "cylinders goes with place"),
        ("[[task]]\nname = \"a\"\nplace = \"window\"\n", "needs cylinders"),
        ("[[task]]\nname = \"a\"\nthink = \"long\"\n", "fixed, exponential"),
        ("[[task]]\nname = \"a\"\nsize_min = 512\n", "go together"),
    ] {
        let e = error(text);
        assert!(e.contains(what), "{text}: {e}");
    }
}

#[test]
fn faults_that_only_show_on_the_disk_name_line_and_task() {
    for (lines, what) in [
        ("size = 0\n", "s.toml:7: task \"b\": request size in bytes"),
        ("place = \"window\"\ncylinders = 5\n", "task \"b\": "),
        (
            "to = 0.2\nfrom = 0.5\nplace = \"part\"\n",
            "s.toml:7: task \"b\": to (a share of the disk): expected more than 0.5",
        ),
        (
            "place = \"part\"\nfrom = 0.5\nto = 0.5\n",
            "s.toml:9: task \"b\": to (a share of the disk): expected more than 0.5",
        ),
        ("place = \"part\"\nto = 1.5\n", "more than 0 (from) to 1, found 1.5"),
        (
            "place = \"part\"\nfrom = 1.0\n",
            "s.toml:8: task \"b\": from (a share of the disk): expected 0 to less than 1, found 1",
        ),
        ("place = \"part\"\nfrom = 0.5\nto = 0.500001\n", "expected room for a request of 8 sectors, found 1 sectors"),
        ("to = 1.0\nplace = \"part\"\nsizes = [[\"4k\", 0]]\n", "s.toml:9: task \"b\": sum of the weights"),
        ("size_min = 8192\nsize_max = 4096\n", "s.toml:8: task \"b\": largest request size in bytes: expected 8192 to"),
        ("size_step = 4096\nsize_mean = 0\n", "s.toml:8: task \"b\": mean request size"),
        ("tasks = 1\nalign = 1000\n", "s.toml:8: task \"b\": alignment in bytes"),
        ("tasks = 0\n", "s.toml:7: tasks of task \"b\": expected 1 to"),
    ] {
        let s = parse(&format!("seed = 1\n[[task]]\nname = \"a\"\n\n[[task]]\nname = \"b\"\n{lines}")).unwrap();
        let e = s.workload(&target(), 1).err().unwrap().to_string();
        assert!(e.starts_with("s.toml:") && e.contains(what), "{lines}: {e}");
    }
}

#[test]
fn a_missing_trace_is_named() {
    let s = parse("trace = \"no/such/file\"\ntrace_format = \"mqsim\"\n").unwrap();
    let e = s.workload(&target(), 1).err().unwrap().to_string();
    assert!(e.starts_with("s.toml:1: no/such/file: "), "{e}");
    let flags = Scenario { trace: s.trace.clone(), trace_format: s.trace_format.clone(), ..Scenario::default() };
    let e = flags.over(s).workload(&target(), 1).err().unwrap().to_string();
    assert!(e.starts_with("no/such/file: "), "{e}");
    let e = Scenario::load(Path::new("no/such.toml")).unwrap_err().to_string();
    assert!(e.starts_with("no/such.toml: "), "{e}");
}

#[test]
fn a_flag_that_replaces_a_setting_takes_its_line() {
    let file = || Scenario::parse("order = \"drive\"\ndisk = \"a\"\nseconds = 5\n", "s.toml").unwrap();
    let flags = Scenario { fill: Some("headtime".into()), ..Scenario::default() };
    let e = flags.clone().over(file()).check().unwrap_err().to_string();
    assert_eq!(e, "s.toml:1: order drive leaves the choice to the drive, which fills no gaps");
    let flags = Scenario { order: Some("drive".into()), disk: Some("b".into()), requests: Some(1), ..flags };
    let both = flags.over(file());
    assert_eq!(
        both.check().unwrap_err().to_string(),
        "order drive leaves the choice to the drive, which fills no gaps"
    );
    assert_eq!((both.fault_at("disk", "x"), both.fault_at("seconds", "x")), ("x".into(), "x".into()));
    assert_eq!(Scenario::default().over(file()).fault_at("disk", "x"), "s.toml:2: x");
}

const FILM: &str = r#"
    disk = "ultrastar36z15"
    admit = "das:bfq+"
    workload = "closed:20"
    [[stream]]
    name = "film"
    requests = 20
    period = "500ms"
    quality = 0.95
    [[stream]]
    name = "sound"
    requests = 1
    period = "250ms"
    size = "4k"
"#;

#[test]
fn streams_are_beside_any_other_workload_or_alone() {
    let s = parse(FILM).unwrap();
    assert_eq!(s.policy().unwrap().name(), "bfq+");
    assert_eq!(s.guarantees().unwrap(), Some(Exhausted::Skip));
    assert_eq!(s.workload(&target(), 1).unwrap().classes(), ["best-effort", "film", "sound"]);
    let alone = Scenario { workload: None, ..s.clone() };
    assert_eq!(alone.workload(&target(), 1).unwrap().classes(), ["film", "sound"]);
    // A flag that selects the workload keeps the streams, and those of a named workload come first.
    let flags = Scenario { workload: Some("das-table2:7".into()), admit: Some("das".into()), ..Scenario::default() };
    let both = flags.over(s);
    assert_eq!((both.policy().unwrap(), both.guarantees().unwrap()), (Policy::None, Some(Exhausted::Skip)));
    let classes = both.workload(&target(), 1).unwrap().classes().to_vec();
    assert_eq!(classes[..2], ["best-effort", "stream 1"]);
    assert_eq!(classes[6..], ["film", "sound"]);
}

#[test]
fn a_faulty_stream_is_named_with_its_line() {
    for (lines, expected) in [
        (
            "requests = 0\nperiod = \"50ms\"",
            "s.toml:3: stream \"a\": requests per period: expected 1 to 10000, found 0",
        ),
        ("requests = 3\nperiod = \"20s\"", "s.toml:4: expected in quotes a time such as 500ms"),
        ("requests = 3\nperiod = \"50ms\"\nquality = 1.5", "s.toml:5: expected a share such as 99% or 0.99"),
        ("requests = 3\nperiod = \"50ms\"\nmissing = 1", "s.toml:5: unknown key"),
        ("period = \"50ms\"", "s.toml:1: stream \"a\": expected requests = requests in a period, found none"),
        (
            "requests = 3\nperiod = \"50ms\"\n[[stream]]\nname = \"a\"\nrequests = 1\nperiod = \"50ms\"",
            "two have the name \"a\"",
        ),
        ("requests = 3\nperiod = \"50ms\"\n[[task]]\nname = \"a\"", "two have the name \"a\""),
    ] {
        let e = error(&format!("[[stream]]\nname = \"a\"\n{lines}"));
        assert!(e.contains(expected), "{lines}: {e}");
    }
    // Errors that depend on the disk: a request of 1 GiB, and an unaligned one.
    for size in ["\"1g\"", "700"] {
        let s = parse(&format!("[[stream]]\nname = \"a\"\nrequests = 1\nperiod = \"50ms\"\nsize = {size}")).unwrap();
        let e = s.workload(&target(), 1).err().unwrap().to_string();
        assert!(e.starts_with("s.toml:5: stream \"a\": request size in bytes"), "{e}");
    }
}

#[test]
fn guarantees_are_asked_for_by_name() {
    let of = |admit: &str| Scenario { admit: Some(admit.into()), ..Scenario::default() };
    assert_eq!(of("bfq+").guarantees().unwrap(), None);
    assert_eq!(of("das:cfq").policy().unwrap().name(), "cfq");
    for wrong in ["das:", "das:das", "dasbfq", "das+", "das:bfq+x"] {
        let e = of(wrong).check().unwrap_err().to_string();
        assert!(e.contains(wrong) && e.contains("known: none, cfq, bfq, bfq+, das, das:POLICY"), "{e}");
    }
    let used = Scenario { exhausted: Some("before-best-effort".into()), ..of("das") };
    assert_eq!(used.guarantees().unwrap(), Some(Exhausted::BeforeBestEffort));
    let without = Scenario { exhausted: Some("skip".into()), ..of("bfq") };
    assert_eq!(without.check().unwrap_err().to_string(), "exhausted was given, but not admit das");
    let unknown = Scenario { exhausted: Some("drop".into()), ..of("das") };
    assert!(unknown.check().unwrap_err().to_string().contains("known: skip, as-best-effort, before-best-effort"));
    assert!(Scenario { order: Some("drive".into()), ..of("das") }.check().is_err());
}

#[test]
fn a_write_cache_has_a_size_and_goes_with_no_streams() {
    let memory = |text: &str| Scenario::parse(text, "s.toml").unwrap().write_cache().unwrap().map(|l| l.memory);
    assert_eq!(memory("write_cache = \"64 MiB\"\n"), Some(64 << 20));
    assert_eq!(memory("write-cache = 2097152\n"), Some(2 << 20));
    assert_eq!(memory("seconds = 1\n"), None);
    let said = |text: &str| {
        let checked = Scenario::parse(text, "s.toml").and_then(|s| s.check());
        checked.unwrap_err().to_string()
    };
    for odd in ["1000", "\"17 GiB\""] {
        let e = said(&format!("seed = 1\nwrite_cache = {odd}\n"));
        assert!(e.starts_with("s.toml:2: ") && e.contains("1 MiB to 16 GiB"), "{e}");
    }
    assert!(said("seed = 1\nwrite-cache = 7\n").starts_with("s.toml:2: "));
    assert!(said("write_cache = \"lots\"\n").contains("expected a number of bytes"));
    assert!(said("write_cache = \"1m\"\nadmit = \"das\"\n").contains("admit das"));
    // A flag overrides the file.
    let flag = Scenario { write_cache: Some(Bytes(1 << 20)), ..Scenario::default() };
    let both = flag.over(Scenario::parse("write_cache = \"64 MiB\"\n", "s.toml").unwrap());
    assert_eq!(both.write_cache().unwrap().map(|l| l.memory), Some(1 << 20));
}
