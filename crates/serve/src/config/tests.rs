use headtime_disk::Dur;
use headtime_sched::Algorithm;
use headtime_sched::streams::{Exhausted, Kinds, Quality, Stream};

use super::*;

const GOOD: &str = r#"
    [disk]
    drive = "atlas10k"
    backing = "disk.img"
    [listen]
    nbd = ["unix:nbd.sock", "tcp:127.0.0.1:10809"]
    control = "control.sock"
    [[export]]
    name = "a"
    size = "1 GiB"
    [[export]]
    name = "b"
    start = 1073741824
    weight = 300
    "#;

fn read(text: &str) -> Result<Config, ConfigError> {
    Config::read(text, Path::new("/etc/headtime/serve.toml"))
}

#[test]
fn what_is_left_out_is_as_usual_and_paths_lie_beside_the_file() {
    let c = read(GOOD).unwrap();
    assert_eq!(c.disk.backing.as_deref(), Some(Path::new("/etc/headtime/disk.img")));
    assert_eq!(c.addresses()[0].to_string(), "unix:/etc/headtime/nbd.sock");
    assert_eq!((c.scheduler.fill, c.scheduler.outstanding, c.listen.clients), (Some(Algorithm::Headtime), 2, 64));
    let e = c.exports(10 << 21, 512).unwrap();
    assert_eq!((e[0].first, e[0].sectors, e[0].weight), (0, 1 << 21, 100));
    assert_eq!((e[1].first, e[1].sectors, e[1].weight), (1 << 21, 9 << 21, 300));
}

#[test]
fn a_drive_that_orders_commands_itself_is_one_with_a_command_queue_to_the_policy() {
    let ncq = |outstanding: u32| {
        let keys = format!("[scheduler]\noutstanding = {outstanding}\n[listen]");
        match read(&GOOD.replace("[listen]", &keys)).unwrap().policy() {
            Policy::Bfq(rules) => rules.ncq,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!([2, 3, 32].map(ncq), [false, true, true]);
}

#[test]
fn a_value_of_the_wrong_kind_is_said_with_its_line_and_key() {
    let whole = "expected a whole number from 0 to 4294967295, found integer";
    let size = "expected bytes, or in quotes a number and KiB, MiB, GiB, TiB, KB, MB, GB or TB, found";
    for (from, to, said) in [
        ("size = \"1 GiB\"", "size = -5", format!("10: size: {size} integer `-5`")),
        ("size = \"1 GiB\"", "size = 1.5", format!("10: size: {size} floating point `1.5`")),
        ("start = 1073741824", "start = true", format!("13: start: {size} boolean `true`")),
        ("weight = 300", "weight = -1", format!("14: weight: {whole} `-1`")),
        ("weight = 300", "weight = 4294967296", format!("14: weight: {whole} `4294967296`")),
        (
            "[listen]",
            "seed = -2\n[listen]",
            format!("5: seed: expected a whole number from 0 to {}, found integer `-2`", i64::MAX),
        ),
        (
            "[listen]",
            "[scheduler]\nconservatism-us = 300\n[listen]",
            "6: conservatism-us: expected microseconds or adaptive, in quotes, found integer `300`".into(),
        ),
        ("\"unix:nbd.sock\"", "\n3", "7: nbd: expected a string, found integer `3`".into()),
        ("name = \"a\"", "name = 5", "9: name: expected a string, found integer `5`".into()),
    ] {
        let text = GOOD.replacen(from, to, 1);
        assert_ne!(text, GOOD, "{from}");
        let e = read(&text).unwrap_err().to_string();
        assert_eq!(e, format!("/etc/headtime/serve.toml:{said}"), "{to}");
    }
    let e = read(&format!("scheduler = 5\n{GOOD}")).unwrap_err().to_string();
    assert!(e.ends_with("serve.toml:1: scheduler: expected struct Scheduler, found integer `5`"), "{e}");
    // A value before it is not taken for the name of a table.
    let e = read("user = \"x\"\n[disk]\ndrive = \"d\"\n[listen]\nnbd = []\n[export]\n").unwrap_err().to_string();
    assert!(e.ends_with("serve.toml:6: expected a sequence, found map"), "{e}");
}

#[test]
fn sockets_whose_names_no_client_can_use_are_refused() {
    let long = "s".repeat(120);
    for (from, to, said) in [
        (
            "unix:nbd.sock",
            format!("unix:{long}"),
            "listen.nbd: expected a socket's path of 1 to 107 bytes, found 134 bytes",
        ),
        ("control.sock", long.clone(), "listen.control: expected a socket's path of 1 to 107 bytes, found 134 bytes"),
        ("control.sock", String::new(), "listen.control: expected a socket's path of 1 to 107 bytes, found nothing"),
        ("unix:nbd.sock", "unix:".into(), "listen.nbd: expected unix:PATH or tcp:HOST:PORT, found \"unix:\""),
        ("control.sock", "a\\u0000b".into(), "found a zero byte"),
    ] {
        let e = read(&GOOD.replace(from, &to)).unwrap_err().to_string();
        assert!(e.starts_with("/etc/headtime/serve.toml: listen.") && e.contains(said), "{e}");
    }
    let just = "s".repeat(107 - "/etc/headtime/".len());
    assert!(read(&GOOD.replace("control.sock", &just)).is_ok());
}

#[test]
fn what_is_wrong_is_said_with_its_place() {
    let wrong = |from: &str, to: &str| read(&GOOD.replace(from, to)).unwrap_err().to_string();
    assert!(
        wrong("backing", "baking").contains("serve.toml:4: unknown field `baking`"),
        "{}",
        wrong("backing", "baking")
    );
    assert!(wrong("backing = \"disk.img\"", "").contains("expected backing or device, found neither"));
    assert!(wrong("1 GiB", "1 gig").contains("export 1 (\"a\"), size: expected bytes"));
    assert!(wrong("weight = 300", "weight = 0").contains("expected 1 to 1000, found 0"));
    assert!(wrong("unix:nbd.sock", "nbd.sock").contains("expected unix:PATH"));
    assert!(wrong("control =", "metrics = \"0.0.0.0:1\"\ncontrol =").contains("loopback"));
    for open in ["0.0.0.0:1", "192.0.2.7:80", "[::]:1", "localhost:1", "127.0.0.1", ":1"] {
        let e = wrong("control =", &format!("web = \"{open}\"\ncontrol ="));
        assert!(e.contains("listen.web: expected HOST:PORT with a loopback address"), "{e}");
        assert!(e.contains("docs/security.md") && e.ends_with(&format!("found \"{open}\"")), "{e}");
    }
    let e = wrong("control =", "web-token = \"token\"\ncontrol =");
    assert!(e.ends_with("listen.web-token: expected listen.web beside it, found none"), "{e}");
    assert!(wrong("[disk]", "[disk").contains("serve.toml:2:"));
    assert!(wrong("control.sock", "nbd.sock").contains("each address once"));
    let escape = wrong("name = \"a\"", "name = \"a\\u001b[31m\"");
    assert!(escape.contains("control characters") && !escape.contains('\u{1b}'), "{escape}");
    let halves = read(&GOOD.replace("1073741824", "1073741825")).unwrap();
    assert!(halves.exports(10 << 21, 512).unwrap_err().contains("whole sectors"));
}

const STREAM: &str = r#"
    [scheduler]
    admit = "das"
    best-effort = "bfq"
    exhausted = "skip"
    [disk]
    drive = "ultrastar36z15"
    backing = "disk.img"
    [listen]
    nbd = ["unix:nbd.sock"]
    [[export]]
    name = "film"
    size = "1 GiB"
    [export.stream]
    requests = 5
    period = "500ms"
    quality = "99.5%"
    size = "64 KiB"
    [[export]]
    name = "rest"
    start = "1 GiB"
    "#;

#[test]
fn an_export_may_be_a_stream() {
    let c = read(STREAM).unwrap();
    assert_eq!((c.scheduler.has_guarantees, c.policy().name(), c.scheduler.exhausted), (true, "bfq", Exhausted::Skip));
    let quality = Quality::from_ppm(995_000).unwrap();
    assert_eq!(c.streams(512).unwrap(), [(0, Stream::new(5, Dur::from_ms(500), quality, 128).unwrap())]);
    for (written, ppm) in [("1", 1_000_000), ("\"100%\"", 1_000_000), ("0.999", 999_000), ("\"0.5\"", 500_000)] {
        let c = read(&STREAM.replace("\"99.5%\"", written)).unwrap();
        assert_eq!(c.streams(512).unwrap()[0].1.quality.ppm(), ppm, "{written}");
    }
    for (written, ns) in [("\"0.5 s\"", 500_000_000), ("\"1500us\"", 1_500_000)] {
        let c = read(&STREAM.replace("\"500ms\"", written)).unwrap();
        assert_eq!(c.streams(512).unwrap()[0].1.period, Dur(ns), "{written}");
    }
    for kinds in Kinds::ALL {
        let text = STREAM.replace("size = \"64 KiB\"", &format!("size = \"64 KiB\"\nkinds = \"{}\"", kinds.name()));
        assert_eq!(read(&text).unwrap().streams(512).unwrap()[0].1.kinds, kinds);
    }
    let text = STREAM.replace("\"99.5%\"", "1").replace("size = \"64 KiB\"", "size = \"64 KiB\"\nblocked-by = 3");
    assert_eq!(read(&text).unwrap().streams(512).unwrap()[0].1.blocked_by, 3);
    // Exports that are not streams are scheduled by shares, as without streams, and nothing needs
    // to be named for that.
    let usual = read(&STREAM.replace("best-effort = \"bfq\"", "").replace("exhausted = \"skip\"", "")).unwrap();
    assert_eq!((usual.policy().name(), usual.scheduler.exhausted), ("bfq+", Exhausted::AsBestEffort));
    assert!(!read(GOOD).unwrap().scheduler.has_guarantees);
}

#[test]
fn a_stream_that_cannot_be_is_said_with_its_place() {
    let file = "/etc/headtime/serve.toml";
    for (from, to, said) in [
        ("= 5\n", "= 0\n", ":15: requests: expected requests in each period, 1 to 10000, found integer `0`"),
        ("= 5\n", "= \"5\"\n", ":15: requests: expected requests in each period, 1 to 10000, found string \"5\""),
        (
            "500ms",
            "500",
            ":16: period: expected in quotes a time such as 500ms, from 1 ms to 10 s, found string \"500\"",
        ),
        (
            "500ms",
            "11s",
            ":16: period: expected in quotes a time such as 500ms, from 1 ms to 10 s, found string \"11s\"",
        ),
        (
            "\"99.5%\"",
            "1.5",
            ":17: quality: expected a share such as 99% or 0.99, more than 0 and at most all, in whole parts per \
             million; a percentage in quotes, found floating point `1.5`",
        ),
        (
            "\"99.5%\"",
            "0",
            ":17: quality: expected a share such as 99% or 0.99, more than 0 and at most all, in whole parts per \
             million; a percentage in quotes, found integer `0`",
        ),
        ("quality", "qualty", ":17: unknown field `qualty`"),
        (
            "size = \"64 KiB\"",
            "size = \"64 KiB\"\nkinds = \"both\"",
            ":19: kinds: expected any, reads, writes, found string \"both\"",
        ),
        (
            "size = \"64 KiB\"",
            "size = \"64 KiB\"\nblocked-by = 101",
            ":19: blocked-by: expected older requests that one may have to wait for, 0 to 100, found integer `101`",
        ),
        ("    period = \"500ms\"\n", "", ":14: missing field `period`"),
        ("64 KiB", "64 xb", ": export 1 (\"film\"), stream.size: expected bytes, or in quotes a number and KiB"),
        (
            "admit = \"das\"",
            "admit = \"bfq+:merge\"",
            ": scheduler.admit: expected after bfq+: some of soft-rt, bursts, merging, with commas, each once, found \
             bfq+:merge",
        ),
        ("admit = \"das\"", "admit = \"edf\"", ": scheduler.admit: expected none, cfq, bfq, bfq+, das, found edf"),
        ("\"bfq\"", "\"das\"", ": scheduler.best-effort: expected none, cfq, bfq, bfq+, found das"),
        (
            "\"skip\"",
            "\"drop\"",
            ": scheduler.exhausted: expected skip, as-best-effort, before-best-effort, found drop",
        ),
    ] {
        let text = STREAM.replacen(from, to, 1);
        assert_ne!(text, STREAM, "{from}");
        let e = read(&text).unwrap_err().to_string();
        assert!(e.starts_with(&format!("{file}{said}")), "{to}: {e}");
    }
    let off = |text: &str| read(text).unwrap_err().to_string();
    let bfq = STREAM.replace("\"das\"", "\"bfq\"");
    let said = ": scheduler.best-effort: expected scheduler.admit = \"das\" beside it, or none, found bfq";
    assert_eq!(off(&bfq), format!("{file}{said}"));
    let bfq = bfq.replace("best-effort = \"bfq\"", "").replace("exhausted = \"skip\"", "");
    let said = ": export 1 (\"film\"), stream: expected scheduler.admit = \"das\" beside it, found bfq";
    assert_eq!(off(&bfq), format!("{file}{said}"));
    let odd = read(&STREAM.replace("\"64 KiB\"", "1000")).unwrap().streams(512).unwrap_err();
    let said = "size: expected whole sectors of 512 bytes, 33554432 bytes at most, found 1000 bytes";
    assert_eq!(odd, format!("export \"film\", stream: {said}"));
}

#[test]
fn an_export_may_have_a_write_cache_that_is_neither_too_small_nor_too_large() {
    let cached = |size: &str| GOOD.replacen("name = \"a\"", &format!("name = \"a\"\n    write-cache = {size}"), 1);
    assert_eq!(read(&cached("\"64 MiB\"")).unwrap().write_caches(), [(0, Limits { memory: 64 << 20 })]);
    assert_eq!(read(&cached("1048576")).unwrap().write_caches(), [(0, Limits { memory: 1 << 20 })]);
    assert!(read(GOOD).unwrap().write_caches().is_empty());
    let line = 1 + cached("7").lines().position(|l| l.contains("write-cache")).unwrap();
    let place = format!("/etc/headtime/serve.toml:{line}: export 1 (\"a\"), write-cache: expected ");
    for (size, found) in [("1023", "1023 bytes"), ("\"17 GiB\"", "18253611008 bytes"), ("\"64 mb x\"", "\"64 mb x\"")] {
        let e = read(&cached(size)).unwrap_err().to_string();
        assert_eq!(e, format!("{place}1 MiB to 16 GiB, found {found}"));
    }
    let e = read(&cached("\"1 MiB\"\n    read-only = true")).unwrap_err().to_string();
    assert_eq!(e, format!("{place}an export that can be written, found read-only = true"));
    let streaming = STREAM.replacen("size = \"1 GiB\"", "size = \"1 GiB\"\n    write-cache = \"1 MiB\"", 1);
    let e = read(&streaming).unwrap_err().to_string();
    assert!(e.contains(":14: export 1 (\"film\"), write-cache: expected an export without a stream"), "{e}");
    // An export that is not a stream may have a write cache.
    let beside = format!("{STREAM}    write-cache = \"1 MiB\"\n");
    assert_eq!(read(&beside).unwrap().write_caches().len(), 1);
    assert_eq!(read(GOOD).unwrap().differs_beside_weights(&read(&cached("1048576")).unwrap()), ["[[export]]"]);
}

#[test]
fn streams_are_no_reason_for_a_new_start() {
    let (before, other) = (read(STREAM).unwrap(), read(&STREAM.replace("= 5\n", "= 6\n")).unwrap());
    assert_eq!(before.differs_beside_weights(&other), [""; 0]);
    let other = read(&STREAM.replace("skip", "as-best-effort")).unwrap();
    assert_eq!(before.differs_beside_weights(&other), ["[scheduler]"]);
}

#[test]
fn the_configurations_that_come_with_it_are_read() {
    let serve = read(include_str!("../../../../examples/serve.toml")).unwrap();
    assert!(!serve.scheduler.has_guarantees && serve.streams(512).unwrap().is_empty());
    let film = read(include_str!("../../../../examples/streams.toml")).unwrap();
    let streams = film.streams(512).unwrap();
    assert_eq!(
        streams.iter().map(|s| (s.0, s.1.requests, s.1.quality.ppm())).collect::<Vec<_>>(),
        [(0, 4, 1_000_000), (1, 6, 950_000), (2, 8, 600_000)]
    );
    assert_eq!((film.policy().name(), film.scheduler.exhausted), ("bfq+", Exhausted::Skip));
}
