//! `headtime profiles measure` and `headtime admit`: the measured figures, and the admitted
//! streams.

use crate::common::{Scratch, headtime};

const FIVE: &str = "requests=5,period=500ms,quality=99%,size=64K";

#[test]
fn the_times_of_the_built_in_drives_are_what_the_command_measures() {
    let there = Scratch::new("measured");
    for name in ["ultrastar36z15", "barracuda36es2"] {
        let path = there.path(name);
        let said = headtime(&["profiles", "measure", name, "-o", &path]).ok();
        assert!(said.contains("99.9% within") && said.contains("100000"), "{said}");
        let written = std::fs::read_to_string(&path).unwrap();
        assert!(written.contains("headtime profiles measure --sizes 65536 --waiting 8 --requests 100000 --seed 1"));
        assert_eq!(headtime(&["profiles", "show", name]).ok(), written, "{name}");
    }
}

#[test]
fn a_profile_is_measured_for_the_sizes_asked_for_and_read_again() {
    let there = Scratch::new("sizes");
    let path = there.path("a.toml");
    let args = ["profiles", "measure", "atlas10k", "--requests", "500", "--waiting", "4", "--seed", "7"];
    let rows = headtime(&[&args[..], &["--sizes", "64k,4096,4k", "-o", &path, "--json"]].concat()).json();
    let rows = rows.as_array().unwrap();
    let mut sizes: Vec<u64> = rows.iter().map(|r| r["sectors"].as_u64().unwrap()).collect();
    sizes.dedup();
    assert_eq!(sizes, [8, 128]);
    // Reads, both and writes, chosen from one candidate and from more.
    let of = |size: u64, reads: f64| {
        let found = rows.iter().filter(|r| r["sectors"] == size && r["reads"] == reads);
        found.map(|r| r["candidates"].as_u64().unwrap()).collect::<Vec<_>>()
    };
    for (size, reads) in [(8, 1.0), (8, 0.5), (8, 0.0), (128, 1.0), (128, 0.5), (128, 0.0)] {
        let all = of(size, reads);
        assert!(all[0] == 1 && all[all.len() - 1] == 64 && all.is_sorted(), "{size} sectors, {reads}: {all:?}");
    }
    for row in rows {
        let ms = |key: &str| row[key].as_f64().unwrap();
        assert!(0.0 < ms("mean_ms") && ms("mean_ms") < ms("p999_ms") && ms("longest_ms") < ms("worst_ms"), "{row}");
    }
    assert_eq!(rows.iter().filter(|r| r["samples"] == 500).count(), 6);
    let text = std::fs::read_to_string(&path).unwrap();
    assert_eq!(text.matches("[[service_times]]").count(), rows.len());
    assert!(text.contains("waiting = 4\norder = \"sptf\"\noutstanding = 2\nsamples = 500\n"), "{text}");
    assert_eq!(headtime(&["profiles", "show", &path]).ok(), text);
    // A second measurement replaces the times.
    let again = there.path("b.toml");
    headtime(&["profiles", "measure", &path, "--requests", "500", "-o", &again]).ok();
    assert_eq!(std::fs::read_to_string(&again).unwrap().matches("[[service_times]]").count(), rows.len() / 2);
}

#[test]
fn what_cannot_be_measured_is_refused_and_nothing_is_written() {
    let there = Scratch::new("unmeasured");
    let path = there.path("p.toml");
    let said = |args: &[&str]| {
        let e = headtime(&[&["profiles", "measure"], args, &["-o", &path]].concat()).refused();
        assert!(there.names().iter().all(|n| n != "p.toml"), "{e}");
        e
    };
    assert!(
        said(&["atlas10k", "--sizes", "4q"]).contains("--sizes: expected bytes such as 4096 or 64k, from 1 to 64m")
    );
    assert!(said(&["atlas10k", "--sizes", "1000"]).contains("whole sectors of 512"));
    assert!(said(&["atlas10k", "--waiting", "0"]).contains("--waiting: expected a whole number from 1 to 100000"));
    assert!(said(&["atlas10k", "--waiting", "1"]).contains("expected at least the 2 commands at the drive, found 1"));
    assert!(
        said(&["atlas10k", "--requests", "0"]).contains("--requests: expected a whole number from 1 to 4294967295")
    );
    assert!(said(&["maxtor-6l080l0"]).contains("expected a drive that writes through"));
    let r = headtime(&["profiles", "measure", "atlas10k"]);
    assert!(r.status == Some(2) && r.err.contains("--output"), "{}", r.err);
}

#[test]
fn streams_that_fit_are_admitted_with_their_reservations() {
    let args = ["admit", "--disk", "ultrastar36z15", "--stream", FIVE];
    let must = "requests=3,period=500ms,quality=100%,size=64k,name=must";
    let r = headtime(&[&args[..], &["--stream", must, "--json"]].concat()).json();
    assert_eq!((r["admitted"].as_bool(), r["disk"].as_str()), (Some(true), Some("ultrastar36z15")));
    let (size, streams) = (&r["sizes"][0], &r["streams"]);
    let w = &size["worst"];
    let of = |v: &serde_json::Value, key: &str| v[key].as_f64().unwrap();
    let terms = of(w, "seek_ms")
        + of(w, "turns") * of(w, "turn_ms")
        + of(w, "sectors") * of(w, "sector_ms")
        + of(w, "overhead_ms")
        + of(w, "skews") * of(w, "skew_ms")
        + of(w, "stop_ms")
        + of(w, "detours_ms")
        + of(w, "recalibration_ms");
    assert!((terms - of(size, "worst_ms")).abs() < 1e-6 && (of(size, "worst_ms") - 30.94).abs() < 0.01, "{size}");
    assert_eq!((size["samples"].as_u64(), size["measured_now"].as_bool()), (Some(100_000), Some(false)));
    // The paper has 20.9 ms for the first of them (table 2), with one X for all requests; the last
    // of five have fewer candidates.
    assert!((20.9..30.0).contains(&of(&streams[0], "reservation_ms")), "{streams}");
    assert!(streams[1]["reservation_ms"].is_null() && streams[1]["mandatory"] == true && streams[1]["name"] == "must");
    let load = &r["load"];
    assert!((of(load, "mandatory_at_worst") - 3.0 * of(size, "worst_ms") / 500.0).abs() < 1e-5);
    assert!(
        of(load, "expected") + of(load, "best_effort") < 1.05 && of(load, "best_effort_per_second") > 150.0,
        "{load}"
    );
    let text = headtime(&args).ok();
    for said in ["w, the longest that one can take", "5 turns of 4.020 ms", "99.9% of them within", "Yes: mandatory"] {
        assert!(text.contains(said), "{said}: {text}");
    }
    // Without streams: the drive's figures.
    assert!(headtime(&["admit", "--disk", "ultrastar36z15"]).ok().contains("requests a second, if 8 always wait"));
}

#[test]
fn streams_that_do_not_fit_are_refused_with_what_would() {
    let ask = |more: &[&str]| headtime(&[&["admit", "--disk", "ultrastar36z15"], more].concat());
    let mandatory = |n: u32| format!("requests={n},period=500ms,quality=1,size=64k,name=m");
    let no = ask(&["--stream", &mandatory(17)]);
    assert_eq!((no.status, no.err.as_str()), (Some(1), ""), "{}", no.out);
    assert!(
        no.out.contains("No. Stream m: with it mandatory streams would take 105.2081% of the time at their worst"),
        "{}",
        no.out
    );
    assert!(no.out.contains("Possible for stream m: 16 requests in a period, or a quality of "), "{}", no.out);
    assert!(ask(&["--stream", &mandatory(16)]).ok().contains("Yes:"));
    let optional = |n: u32| format!("requests={n},period=500ms,quality=95%,size=64k,name=o");
    let no = ask(&["--stream", FIVE, "--stream", &optional(150), "--json"]);
    assert_eq!(no.status, Some(1));
    let r: serde_json::Value = serde_json::from_str(&no.out).unwrap();
    assert!(r["admitted"] == false && r["load"].is_null() && r["nearest"]["stream"] == "o", "{r}");
    let fewer = r["nearest"]["requests"].as_u64().unwrap() as u32;
    assert!(ask(&["--stream", FIVE, "--stream", &optional(fewer)]).ok().contains("Yes:"));
    assert_eq!(ask(&["--stream", FIVE, "--stream", &optional(fewer + 1)]).status, Some(1));
}

/// For speed, a small stream's requests are counted with the others' if there are many streams;
/// that alone must not reject it.
#[test]
fn of_many_streams_a_small_one_is_not_refused_where_a_larger_one_is_had() {
    let there = Scratch::new("many");
    let one = |n: u32| {
        format!("[[stream]]\nrequests = {n}\nperiod = \"10s\"\nquality = 0.95\nsize = \"64k\"\nkinds = \"reads\"\n")
    };
    for requests in [40, 70, 100] {
        let file = there.file("many.toml", &(one(172).repeat(16) + &one(requests)));
        assert!(
            headtime(&["admit", "--disk", "ultrastar36z15", "--streams", &file]).ok().contains("Yes: "),
            "{requests}"
        );
    }
}

#[test]
fn the_first_stream_that_is_too_much_is_named_and_streams_that_read_only_do_not_write() {
    let ask = |more: &[&str]| headtime(&[&["admit", "--disk", "ultrastar36z15"], more].concat());
    let [a, b, c] = [("A", 16, "100%"), ("B", 1, "100%"), ("C", 1, "50%")]
        .map(|(name, n, q)| format!("requests={n},period=500ms,quality={q},size=64k,name={name}"));
    let no = ask(&["--stream", &a, "--stream", &b, "--stream", &c]);
    assert_eq!(no.status, Some(1));
    assert!(no.out.contains("No. Stream B: ") && no.out.contains("Possible for stream B: "), "{}", no.out);
    let writes = format!("{c},kinds=writes");
    let e = ask(&["--reads-only", "--stream", &writes]).refused();
    assert!(e.contains("--reads-only: expected streams that read, found that C writes"), "{e}");
}

/// Each request of the stream may have to wait for others, of up to 1 MiB.
#[test]
fn what_may_be_in_a_streams_way_is_counted_at_its_worst() {
    let ask = |line: &str| headtime(&["admit", "--disk", "ultrastar36z15", "--stream", line, "--json"]);
    let row = |r: &serde_json::Value| r["streams"][0].clone();
    let one = "requests=1,period=500ms,quality=1,size=64k";
    let r = ask(&format!("{one},blocked-by=2")).json();
    let (w, older) = (r["sizes"][0]["worst_ms"].as_f64().unwrap(), row(&r)["blocking_ms"].as_f64().unwrap());
    assert!(row(&r)["blocked_by"] == 2 && older > 2.0 * w, "{r}");
    let load = r["load"]["mandatory_at_worst"].as_f64().unwrap();
    assert!((load - (w + older) / 500.0).abs() < 1e-5, "{load} of {w} and {older}");
    let most = (500.0 / (w + older)) as u32;
    let many = |n: u32| format!("requests={n},period=500ms,quality=1,size=64k,blocked-by=2");
    assert_eq!((ask(&many(most)).status, ask(&many(most + 1)).status), (Some(0), Some(1)));
    let text = headtime(&["admit", "--disk", "ultrastar36z15", "--stream", &many(1)]).ok();
    assert!(text.contains("mandatory: 1 times w, each behind 2 older of "), "{text}");
    for (line, said) in [
        ("requests=1,period=500ms,quality=1,size=64k,blocked-by=101", "expected at most 100, found 101"),
        ("requests=1,period=500ms,quality=1,size=64k,blocked-by=-1", "may have to wait for, found \"-1\""),
    ] {
        let e = ask(line).refused();
        assert!(e.contains(said), "{line}: {e}");
    }
}

#[test]
fn a_built_in_drive_without_service_times_is_measured_and_a_file_is_not() {
    let there = Scratch::new("admit");
    let small = "requests=5,period=500ms,quality=99%,size=8k";
    let r = headtime(&["admit", "--disk", "cheetah9lp", "--stream", small, "--json"]);
    assert!(r.err.contains("cheetah9lp has no service times for requests of 8192 bytes: measured on its"), "{}", r.err);
    let v = r.json();
    assert!(v["sizes"][0]["measured_now"] == true && v["sizes"][0]["sectors"] == 16, "{v}");
    let copy = there.file("copy.toml", &headtime(&["profiles", "show", "cheetah9lp"]).ok());
    let e = headtime(&["admit", "--disk", &copy, "--stream", small]).refused();
    assert!(e.contains("found none; `headtime profiles measure ") && e.contains("copy.toml"), "{e}");
    // Larger than anything in the file: rejected, without an alternative.
    let known = there.path("known.toml");
    headtime(&["profiles", "measure", &copy, "--sizes", "4k", "--requests", "500", "-o", &known]).ok();
    let no = headtime(&["admit", "--disk", &known, "--stream", small]);
    assert_eq!(no.status, Some(1), "{}", no.err);
    assert!(no.out.contains("No. Stream 1: expected requests of at most 8 sectors, found 16"), "{}", no.out);
    assert!(headtime(&["admit", "--disk", "maxtor-6l080l0"]).refused().contains("writes through"));
}

#[test]
fn streams_come_from_a_file_with_its_lines_in_what_is_said_of_it() {
    let there = Scratch::new("streams");
    let one = |quality: &str| {
        format!("[[stream]]\nname = \"a\"\nrequests = 5\nperiod = \"500ms\"\nquality = {quality}\nsize = \"64k\"\n")
    };
    let file = there.file("s.toml", &one("0.99"));
    let both = ["admit", "--disk", "ultrastar36z15", "--streams", &file, "--stream", FIVE, "--json"];
    let r = headtime(&both).json();
    assert_eq!((r["streams"][0]["name"].as_str(), r["streams"][1]["name"].as_str()), (Some("a"), Some("2")));
    assert_eq!(r["streams"][0]["quality"], r["streams"][1]["quality"]);
    let said = |file: &str| headtime(&["admit", "--disk", "ultrastar36z15", "--streams", file]).refused();
    let bad = there.file("bad.toml", &(one("0.99") + &one("\"much\"")));
    assert!(said(&bad).contains("bad.toml:11: quality: expected a share such as 99% or 0.99"), "{}", said(&bad));
    assert!(said(&there.path("none.toml")).contains("none.toml: "));
    let e = headtime(&["admit", "--disk", "ultrastar36z15", "--stream", "requests=5"]).refused();
    assert!(e.contains("--stream: stream 1: expected period (a time such as 500ms"), "{e}");
    let odd = "requests=5,period=500ms,quality=99%,size=1000";
    let e = headtime(&["admit", "--disk", "ultrastar36z15", "--stream", odd]).refused();
    assert!(e.contains("--stream: stream 1: size: expected whole sectors of 512 bytes, found 1000"), "{e}");
    let e = headtime(&["admit", "--disk", "ultrastar36z15", "--stream", FIVE, "--stream", "requests=5"]).refused();
    assert!(e.contains("--stream: stream 2: expected period (a time such as 500ms"), "{e}");
    let named = format!("{FIVE},name=2");
    let e = headtime(&["admit", "--disk", "ultrastar36z15", "--stream", &named, "--stream", FIVE]).refused();
    assert!(e.contains("--stream: stream 2: name: expected another for each stream, found \"2\" twice"), "{e}");
    assert!(headtime(&["admit", "--disk", "none", "--stream", FIVE]).refused().contains("no built-in drive"));
}

#[test]
fn a_scenario_whose_streams_do_not_fit_is_refused_with_their_names() {
    let stream = |name: &str, requests: u32| {
        format!("[[stream]]\nname = \"{name}\"\nrequests = {requests}\nperiod = \"500ms\"\nquality = 0.95\n")
    };
    let there = Scratch::new("names");
    let head = "disk = \"ultrastar36z15\"\nadmit = \"das\"\nseconds = 1\n";
    let file = there.file("s.toml", &format!("{head}{}{}", stream("film", 60), stream("music", 140)));
    let e = headtime(&["simulate", &file]).refused();
    assert!(e.contains("stream \"music\": it cannot be had beside those before it: stream \""), "{e}");
    assert!(e.contains("expected a quality of 95.00%") && !e.contains("stream 0") && !e.contains("stream 1"), "{e}");
}

/// `n` mandatory requests of 64 KiB in 500 ms.
fn mandatory(n: u32) -> String {
    format!("requests={n},period=500ms,quality=100%,size=64k,name=m")
}

/// Characterises a built-in drive, and returns the profile's path.
fn characterised(there: &Scratch, name: &str, more: &[&str]) -> String {
    let path = there.path(&format!("{name}.toml"));
    let drive = format!("disk:{name}");
    headtime(&[&["characterize", &drive, "-o", &path, "--force"], more].concat()).ok();
    path
}

/// Returns `admit`'s w for requests of 64 KiB, and how it is known.
fn worst_of(disk: &str) -> (f64, serde_json::Value) {
    let r = headtime(&[
        "admit",
        "--disk",
        disk,
        "--stream",
        "requests=1,period=1s,quality=50%,size=64k,kinds=reads",
        "--json",
    ])
    .json();
    (r["sizes"][0]["worst_ms"].as_f64().unwrap(), r)
}

#[test]
fn a_worst_case_that_rests_on_what_is_unknown_admits_no_mandatory_stream_but_with_stated_bounds() {
    let there = Scratch::new("unknown");
    let file = characterised(&there, "ultrastar36z15", &[]);
    let admit =
        |stream: &str, more: &[&str]| headtime(&[&["admit", "--disk", &file, "--stream", stream], more].concat());
    let no = admit(&mandatory(1), &[]);
    assert_eq!((no.status, no.err.as_str()), (Some(1), ""), "{}", no.out);
    for said in [
        "No. Stream m is mandatory, and its worst case rests on figures that the profile does not know: n, \
         the turns until the head",
        "(`headtime characterize DEVICE --thorough` finds that)",
        "the write settle time; the overheads of writes (`headtime characterize DEVICE --destructive` finds that)",
        "--assume n=TURNS,recalibration=TIME,write-settle=TIME,write-overhead=TIME",
    ] {
        assert!(no.out.contains(said), "{said}: {}", no.out);
    }
    assert!(!no.out.contains("Possible for"), "{}", no.out);
    let no: serde_json::Value = serde_json::from_str(&admit(&mandatory(1), &["--json"]).out).unwrap();
    assert_eq!(no["unknown"], serde_json::json!(["n", "recalibration", "write-settle", "write-overhead"]));
    assert!(no["admitted"] == false && no["nearest"].is_null() && no["why"].as_str().unwrap().contains("mandatory"));
    // An optional stream depends on X, which is known for reads only, without figures of writes.
    let optional = |kinds: &str| format!("{},kinds={kinds}", mandatory(20).replace("100%", "95%"));
    assert!(admit(&optional("reads"), &[]).ok().contains("Yes: "));
    for kinds in ["writes", "any"] {
        let no = admit(&optional(kinds), &[]);
        assert!(
            no.status == Some(1) && no.out.contains("`--destructive` finds those of writes"),
            "{kinds}: {}",
            no.out
        );
        // Stated bounds lengthen writes by these amounts.
        let reserved = |kinds: &str| {
            let r = admit(&optional(kinds), &["--assume", "write-settle=1ms,write-overhead=500us", "--json"]).json();
            r["streams"][0]["reservation_ms"].as_f64().expect("optional")
        };
        let longer = reserved(kinds) - reserved("reads");
        assert!((25.0..=31.0).contains(&longer), "{kinds}: 20 of 1.5 ms each, {longer}");
    }
    // With the true bounds and no writes, as many as on the true drive: 16. Without the bound of
    // read-ahead, w includes its revolution, and fewer fit.
    let truth = "n=5,recalibration=0ms,read-ahead-stop=at-once";
    let with = |bounds: &'static str| ["--assume", bounds, "--reads-only"];
    let yes = admit(&mandatory(16), &with(truth)).ok();
    assert!(
        yes.contains("Yes: ") && yes.contains("rests on stated bounds, which were not measured: n, the turns"),
        "{yes}"
    );
    assert_eq!(admit(&mandatory(17), &with(truth)).status, Some(1));
    let most = |more: &[&str]| {
        let r: serde_json::Value =
            serde_json::from_str(&admit(&mandatory(100), &[more, &["--json"]].concat()).out).unwrap();
        r["nearest"]["requests"].as_u64().unwrap()
    };
    assert!(most(&with("n=5,recalibration=0ms")) < 16);
    let all = "n=5,recalibration=0ms,read-ahead-stop=at-once,write-settle=0.1ms,write-overhead=70us";
    assert!((12..=16).contains(&most(&["--assume", all])));
    let bounded = admit(&mandatory(1), &["--assume", all, "--json"]).json();
    let n = &bounded["rests_on"][0];
    assert!(
        n["figure"] == "n" && n["value"] == "5" && n["known"] == "bounded" && n["how"] == "stated with --assume",
        "{n}"
    );
    // Reads do not need the figures of writes; n is always needed.
    assert!(admit(&mandatory(1), &["--reads-only"]).out.contains("--assume n=TURNS,recalibration=TIME it is made"));
    let e = headtime(&["admit", "--disk", "ultrastar36z15", "--assume", "n=4"]).refused();
    assert!(e.contains("--assume: expected n of at least the 5 that the profile has, found 4"), "{e}");
    let e = headtime(&["admit", "--disk", "ultrastar36z15", "--assume", "n=many"]).refused();
    assert!(e.contains("--assume") && e.contains("expected n of 1 to 101 turns, found \"many\""), "{e}");
}

/// A head that needs up to four more revolutions after 2% of moves, which is not searched for
/// without `--thorough`, shows in the reads that verify the profile.
#[test]
fn an_optional_stream_is_promised_no_more_than_the_reads_of_a_drive_say_that_was_characterised() {
    let there = Scratch::new("late-reads");
    let truth = std::fs::read_to_string(format!("{}/../disk/profiles/ultrastar36z15.toml", env!("CARGO_MANIFEST_DIR")));
    let often = "settle_retry_ppm = 20000\nsettle_retry_again_ppm = 700000\n";
    let truth = truth.unwrap().replace("settle_retry_ppm = 10\n", often);
    assert!(truth.contains(often));
    let truth = there.file("truth.toml", &truth);
    let found = there.path("found.toml");
    headtime(&["characterize", &format!("disk:{truth}"), "-o", &found]).ok();
    let stream = |percent: &str| format!("requests=1,period=20ms,quality={percent}%,size=64k,kinds=reads");
    let yes =
        |disk: &str, percent| headtime(&["admit", "--disk", disk, "--stream", &stream(percent)]).status == Some(0);
    assert!(yes(&found, "95") && !yes(&found, "99"));
    // On an Ultrastar none was late; unseen late reads may be two in a thousand.
    let usual = characterised(&there, "ultrastar36z15", &[]);
    assert!(yes(&usual, "99") && !yes(&usual, "99.9"));
    // As if none had been late, and as if none had been compared.
    let text = std::fs::read_to_string(&found).unwrap();
    let without = |key: &str, text: &str| text.lines().filter(|l| !l.starts_with(key)).collect::<Vec<_>>().join("\n");
    let none_late = without("late_reads", &text);
    assert!(yes(&there.file("none-late.toml", &none_late), "99"));
    assert!(yes(&there.file("none.toml", &without("verified_reads", &none_late)), "99.9"));
    let e = headtime(&["admit", "--disk", &there.file("bad.toml", &without("verified_reads", &text))]).refused();
    assert!(e.contains("bad.toml:") && e.contains("expected `verified_reads` beside it"), "{e}");
}

#[test]
fn simulations_and_servers_refuse_the_same_and_take_the_same_bounds() {
    let there = Scratch::new("unknown-served");
    let file = characterised(&there, "ultrastar36z15", &[]);
    let all = "n=5,recalibration=0ms,write-settle=0.1ms,write-overhead=70us";
    let scenario = "disk = \"ultrastar36z15.toml\"\n\
                    admit = \"das\"\nseconds = 2\n[[stream]]\nname = \"film\"\nrequests = 2\n\
                    period = \"500ms\"\nquality = \"100%\"\nsize = \"64k\"\n";
    let scenario = scenario.replace("ultrastar36z15.toml", &file);
    let path = there.file("s.toml", &scenario);
    let e = headtime(&["simulate", &path]).refused();
    assert!(
        e.contains("the stream film is mandatory, and its worst case rests on figures") && e.contains("--assume n="),
        "{e}"
    );
    let r = headtime(&["simulate", &path, "--assume", all]);
    assert!(
        r.err.contains("promises rest on a stated bound: n, the turns until the head has settled (5; "),
        "{}",
        r.err
    );
    r.ok();
    let optional = there.file("o.toml", &scenario.replace("100%", "95%"));
    headtime(&["simulate", &optional]).ok();
    let e = headtime(&["simulate", "--workload", "oltp", "--assume", all]).refused();
    assert!(e.contains("--assume: expected admit das beside it"), "{e}");

    let config = |scheduler: &str, quality: &str| {
        let text = format!(
            "[disk]\ndrive = \"{file}\"\nbacking = \"d\"\n[scheduler]\nadmit = \"das\"\n\
             {scheduler}[listen]\n[[export]]\nname = \"film\"\n\
             [export.stream]\nrequests = 2\nperiod = \"500ms\"\nquality = \"{quality}\"\nsize = \"64 KiB\"\n\
             kinds = \"reads\"\n"
        );
        there.file("serve.toml", &text)
    };
    let check = |path: String| headtime(&["serve", "--check", &path]);
    let e = check(config("", "100%")).refused();
    assert!(e.contains("the stream of export \"film\" is mandatory") && e.contains("scheduler.assume n=TURNS"), "{e}");
    let said = check(config("", "95%")).ok();
    assert!(
        said.contains("no stream can be mandatory: the profile does not know n, recalibration, write-settle"),
        "{said}"
    );
    let said = check(config(&format!("assume = \"{all}\"\n"), "100%")).ok();
    assert!(
        said.contains("w rests on a stated bound: the write settle time (0.10 ms; stated with scheduler.assume)"),
        "{said}"
    );
    let e = check(config("assume = \"n=0\"\n", "100%")).refused();
    assert!(e.contains("serve.toml: scheduler.assume: expected n of 1 to 101 turns, found"), "{e}");
}

#[test]
fn what_characterisation_believes_of_the_worst_case_is_known_or_said_to_be_unknown() {
    let there = Scratch::new("believed");
    for name in ["ultrastar36z15", "barracuda36es2", "atlas10k"] {
        let truth = there.path("true.toml");
        headtime(&["profiles", "measure", name, "--requests", "500", "-o", &truth]).ok();
        let (true_w, _) = worst_of(&truth);
        for more in [&[][..], &["--thorough"], &["--thorough", "--destructive"]] {
            let (w, r) = worst_of(&characterised(&there, name, more));
            let unknown: Vec<&str> = r["unknown"].as_array().unwrap().iter().map(|f| f.as_str().unwrap()).collect();
            println!(
                "{name} {more:?}: true w {true_w:.2} / believed w {w:.2} ms = {:.2}, unknown: {unknown:?}",
                true_w / w
            );
            let expected: &[&str] = match more {
                [] => &["n", "recalibration", "write-settle", "write-overhead"],
                [_] => &["write-settle", "write-overhead"],
                _ => &[],
            };
            assert_eq!(unknown, expected, "{name} {more:?}");
            // Unknown figures are the only reason for a w that is too small, apart from settling
            // failures too rare to be met: the revolutions beyond those seen.
            let turns = |v: &serde_json::Value, key: &str| v["sizes"][0]["worst"][key].as_f64().unwrap();
            let unseen = (turns(&worst_of(&truth).1, "turns") - turns(&r, "turns")).max(0.0) * turns(&r, "turn_ms");
            assert!(!unknown.is_empty() || w + unseen >= true_w, "{name}: {w} {unseen} {true_w}");
        }
    }
}
