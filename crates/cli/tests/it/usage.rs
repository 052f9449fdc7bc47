//! Bad usage, bad input, and what the help says.

use crate::common::{Scratch, headtime};

#[test]
fn without_a_command_the_usage_is_shown_and_the_status_is_2() {
    let r = headtime(&[]);
    assert_eq!(r.status, Some(2));
    assert!(r.err.contains("Usage:") && r.err.contains("simulate"), "{}", r.err);
}

#[test]
fn unknown_commands_and_flags_are_bad_usage() {
    for args in [&["fly"][..], &["simulate", "--fast"], &["validate"]] {
        let r = headtime(args);
        assert_eq!((r.status, r.out.as_str()), (Some(2), ""), "{args:?}");
        assert!(r.err.contains("--help"), "{}", r.err);
    }
}

#[test]
fn help_and_version_are_no_errors() {
    assert!(headtime(&["--help"]).ok().contains("Exit status"));
    assert!(headtime(&["--version"]).ok().starts_with("headtime "));
    assert!(headtime(&["help", "simulate"]).ok().contains("--order"));
}

#[test]
fn unknown_names_list_the_known_ones() {
    let simulate = |flag: &str, value: &str| headtime(&["simulate", flag, value]).refused();
    assert!(simulate("--disk", "atlas11k").contains("atlas10k"));
    assert!(simulate("--workload", "tpcc").contains("closed:N"));
    assert!(simulate("--order", "elevator").contains("sptf-sw:N"));
    assert!(simulate("--admit", "deadline").contains("known: none, cfq, bfq, bfq+"));
    assert!(simulate("--fill", "greedy").contains("known: none, bw-greedy, bw-ep-greedy, angle-ep-greedy"));
    assert!(simulate("--placement", "drive").contains("known: host, firmware, firmware-no-track"));
    assert!(simulate("--background", "copy").contains("known: none, scan, scan:KIB, rescan, rescan:KIB"));
    let format = headtime(&["simulate", "--trace", "x", "--trace-format", "pcap"]).refused();
    assert!(format.contains("mqsim") && format.contains("blkparse"), "{format}");
    assert!(headtime(&["reproduce", "F99"]).refused().contains("F1a"));
    assert!(headtime(&["profiles", "show", "nothing"]).refused().contains("cheetah9lp"));
}

#[test]
fn figures_out_of_range_say_the_range() {
    let said = |args: &[&str]| headtime(&[&["simulate"], args].concat()).refused();
    assert!(said(&["--workload", "closed:0"]).contains("1 to"));
    assert!(said(&["--order", "sptf-sw:100000"]).contains("0 to"));
    assert!(said(&["--depth", "100000"]).contains("1 to"));
    assert!(said(&["--depth", "0"]).contains("1 to"));
    assert!(said(&["--seconds", "0"]).contains("more than 0"));
    assert!(said(&["--seconds=-1"]).contains("more than 0"));
    assert!(said(&["--seconds", "nan"]).contains("more than 0"));
    assert!(said(&["--requests", "0"]).contains("1 to"));
    let filled = |more: &[&str]| said(&[&["--fill", "headtime"], more].concat());
    for odd in ["-1", "0.3", "100001", "bold", ""] {
        assert!(filled(&["--conservatism-us", odd]).contains("expected 0 to 100000, or \"adaptive\""), "{odd}");
    }
    for odd in ["-1", "0.3", "1000001", "exponential", ""] {
        assert!(said(&["--host-us", odd]).contains("expected 0 to 1000000, or \"exponential:MEAN\""), "{odd}");
    }
    for odd in ["1", "17 GiB", "-1", "x", ""] {
        let e = said(&["--write-cache", odd]);
        assert!(e.contains("expected bytes, or a number and KiB, MiB or GiB, from 1 MiB to 16 GiB"), "{e}");
    }
    for odd in ["scan:0", "scan:x", "scan:", "rescan:1025", "scan:-4"] {
        assert!(filled(&["--background", odd]).contains("expected 1 to 1024"), "{odd}");
    }
}

#[test]
fn settings_of_background_work_that_do_not_go_together_are_refused() {
    let said = |args: &[&str]| headtime(&[&["simulate", "--seconds", "1"], args].concat()).refused();
    let none = ["--fill", "none", "--background", "scan", "--until-scanned"];
    assert!(said(&none).contains("needs a fill that scans it"));
    assert!(said(&["--conservatism-us", "300"]).contains("conservatism_us was given, but no fill"));
    assert!(said(&["--placement", "firmware"]).contains("a placement was given, but no fill"));
    assert!(said(&["--fill", "headtime", "--order", "drive"]).contains("the drive, which fills no gaps"));
    let ends = "needs background work that ends: scan";
    assert!(said(&["--until-scanned"]).contains(ends));
    assert!(said(&["--fill", "headtime", "--until-scanned"]).contains(ends));
    assert!(said(&["--fill", "headtime", "--background", "rescan", "--until-scanned"]).contains(ends));
}

#[test]
fn odd_figures_say_flag_and_range_in_one_line() {
    let long = format!("1{}", "0".repeat(300));
    for flag in ["--depth", "--seconds", "--requests", "--seed", "--device"] {
        for odd in ["-1", "-1.5", "abc", "99999999999999999999", "-1e300", "", &long] {
            let e = headtime(&["simulate", flag, odd]).refused();
            assert!(e.starts_with(&format!("headtime: {flag}: expected ")), "{e}");
            assert!(e.contains(" to ") && e.contains("found \"") && e.len() < 160, "{e}");
        }
    }
    for args in [["demo", "--seed", "-1"], ["reproduce", "--seed", "x"], ["simulate", "--seconds", "1e300"]] {
        assert!(headtime(&args).refused().contains("expected "), "{args:?}");
    }
    for workload in ["open:1e300", "open:1e-300", &format!("closed:{long}")] {
        let e = headtime(&["simulate", "--workload", workload]).refused();
        assert!(e.contains(" to ") && e.len() < 160, "{e}");
    }
}

#[test]
fn figures_of_background_work_say_flag_and_range_in_one_line() {
    let priority = "expected a whole number from 1 to 1000000";
    let unit = "expected a whole number from 1 to 8192";
    let any = "expected a whole number from 0 to 4294967295";
    for (args, flag, expected) in [
        (&["scrub", "--priority"][..], "--priority", priority),
        (&["backup", "image", "--priority"], "--priority", priority),
        (&["task", "read", "--range", "0+1", "--priority"], "--priority", priority),
        (&["task", "write", "--range", "0+1", "--input", "x", "--priority"], "--priority", priority),
        (&["destage", "x", "--nbd", "unix:s", "--priority"], "--priority", priority),
        (&["task", "priority", "1"], "<N>", priority),
        (&["scrub", "--unit"], "--unit", unit),
        (&["backup", "image", "--unit"], "--unit", unit),
        (&["task", "read", "--range", "0+1", "--unit"], "--unit", unit),
        (&["task", "write", "--range", "0+1", "--input", "x", "--unit"], "--unit", unit),
        (&["backup", "image", "--retry"], "--retry", any),
        (&["task", "pause"], "<SESSION>", any),
    ] {
        for odd in ["4294967296", "1.5", "many", ""] {
            let e = headtime(&[args, &[odd]].concat()).refused();
            assert_eq!(e, format!("headtime: {flag}: {expected}, found \"{odd}\"\n"));
        }
    }
}

#[test]
fn sockets_whose_names_no_client_can_use_are_refused() {
    let long = format!("unix:{}", "s".repeat(120));
    let place = "expected unix:PATH or tcp:HOST:PORT";
    for (address, expected) in [
        (long.as_str(), "expected a socket's path of 1 to 107 bytes"),
        ("unix:", place),
        ("tcp:host", place),
        ("", place),
    ] {
        for args in [["disk", "atlas10k", "--backing", "none/d", "--nbd"].as_slice(), &["destage", "x", "--nbd"]] {
            let e = headtime(&[args, &[address]].concat()).refused();
            assert!(e.starts_with(&format!("headtime: --nbd: {expected}, found \"")), "{e}");
            assert_eq!(e.matches("found").count(), 1, "{e}");
        }
    }
    let there = Scratch::new("sockets");
    let config = |control: &str| {
        let listen = format!("[listen]\ncontrol = \"{control}\"\n[[export]]\nname = \"\"\n");
        there.file("serve.toml", &format!("[disk]\ndrive = \"atlas10k\"\nbacking = \"d\"\n{listen}"))
    };
    for control in ["", &"s".repeat(120)] {
        let e = headtime(&["serve", "--check", &config(control)]).refused();
        assert!(e.contains("serve.toml: listen.control: expected a socket's path of 1 to 107 bytes, found "), "{e}");
    }
    let said = headtime(&["serve", "--check", &config("c")]).ok();
    assert!(said.contains("Atlas") && !said.contains("write cache"), "{said}");
    let exports = "[[export]]\nname = \"a\"\nsize = \"1 GiB\"\n\
        [[export]]\nname = \"b\"\nstart = \"1 GiB\"\nwrite-cache = \"64 MiB\"\n";
    let disk = "[disk]\ndrive = \"atlas10k\"\nbacking = \"d\"\n[listen]\ncontrol = \"c\"\n";
    let cached = there.file("cached.toml", &format!("{disk}{exports}"));
    let said = headtime(&["serve", "--check", &cached]).ok();
    let lines: Vec<&str> = said.lines().filter(|l| l.contains("write cache of 64.00 MiB")).collect();
    assert!(matches!(lines[..], [line] if line.trim_start().starts_with("b ")), "{said}");
    let with = |more: &str| {
        let path = config("c");
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, text + more).unwrap();
        headtime(&["serve", "--check", &path]).refused()
    };
    let e = with("[scheduler]\nconservatism-us = \"lots\"\n");
    assert!(e.contains("scheduler.conservatism-us") && !e.contains("conservatism_us"), "{e}");
}

#[test]
fn an_unknown_user_is_found_by_a_check() {
    let there = Scratch::new("user");
    let text =
        "user = \"no-such-user\"\n[disk]\ndrive = \"atlas10k\"\nbacking = \"d\"\n[listen]\n[[export]]\nname = \"\"\n";
    let e = headtime(&["serve", "--check", &there.file("serve.toml", text)]).refused();
    assert!(e.contains("no-such-user"), "{e}");
}

#[test]
fn missing_files_are_named() {
    let there = Scratch::new("missing");
    let none = there.path("none.parv");
    assert!(headtime(&["simulate", "--disk", &none]).refused().contains(&none));
    assert!(headtime(&["profiles", "show", &none]).refused().contains(&none));
    let scenario = there.path("none.toml");
    assert!(headtime(&["simulate", &scenario]).refused().contains(&scenario));
    let trace = there.path("none.trace");
    let e = headtime(&["validate", "--disk", "atlas10k", "--trace", &trace]).refused();
    assert!(e.contains(&trace), "{e}");
}

#[test]
fn a_damaged_trace_gives_file_line_and_what_was_expected() {
    let there = Scratch::new("damaged");
    let trace = there.file("cut.trace", "R Miss 100 8 5000 100\nR Miss 20");
    let e = headtime(&["validate", "--disk", "atlas10k", "--trace", &trace]).refused();
    assert!(e.contains(&format!("{trace}:2")) && e.contains("expected"), "{e}");
    let args = ["simulate", "--trace", &trace, "--trace-format", "mqsim"];
    let e = headtime(&args).refused();
    assert!(e.contains(&format!("{trace}:1")) && e.contains("expected"), "{e}");
    let empty = there.file("empty.trace", "");
    let e = headtime(&["validate", "--disk", "atlas10k", "--trace", &empty]).refused();
    assert!(e.contains(&empty) && e.contains("expected"), "{e}");
}

#[test]
fn files_that_are_no_profile_are_refused_with_file_and_line() {
    let there = Scratch::new("profile");
    let toml = there.file("bad.toml", "name = \"x\"\nspeed = [");
    let e = headtime(&["profiles", "show", &toml]).refused();
    assert!(e.contains("bad.toml:2"), "{e}");
    std::fs::write(there.0.join("image.toml"), [0xff, 0xfe, 0x00]).unwrap();
    assert!(headtime(&["profiles", "show", &there.path("image.toml")]).refused().contains("expected text in UTF-8"));
    assert!(headtime(&["profiles", "show", &there.path(".")]).refused().contains("directory"));
}

#[test]
fn a_damaged_scenario_gives_file_and_line() {
    let there = Scratch::new("scenario");
    let path = there.file("s.toml", "disk = \"atlas10k\"\nsped = 3\n");
    let e = headtime(&["simulate", &path]).refused();
    assert!(e.contains("s.toml:2: "), "{e}");
}

/// Whatever is found out late, too: with the disk, or with flags.
#[test]
fn faults_of_a_scenario_that_show_late_give_file_and_line() {
    let there = Scratch::new("late");
    for (lines, flags, said) in [
        ("conservatism_us = true", &[][..], "expected a whole number or a word in quotes, found true"),
        ("disk = \"atlas11k\"", &[], "no built-in drive and no file is called 'atlas11k'"),
        ("depth = 500", &[], "depth: expected 1 to 32 (what atlas10k takes), found 500"),
        ("depth = 5\nbackground = \"scan\"", &[], "depth: background work is fitted"),
        ("order = \"drive\"", &["--fill", "headtime"], "order drive leaves the choice"),
        ("trace = \"none\"\ntrace_format = \"mqsim\"", &[], "none: No such file"),
    ] {
        let path = there.file("s.toml", &format!("seed = 1\n{lines}\n"));
        let e = headtime(&[&["simulate", &path], flags].concat()).refused();
        assert!(e.starts_with(&format!("headtime: {path}:2: ")) && e.contains(said), "{lines}: {e}");
    }
    // What a flag replaces is not the file's fault.
    let path = there.file("s.toml", "depth = 5\n");
    let e = headtime(&["simulate", &path, "--depth", "500"]).refused();
    assert!(e.starts_with("headtime: depth: expected"), "{e}");
}

#[test]
fn a_scenarios_profile_lies_beside_it() {
    let there = Scratch::new("beside");
    std::fs::create_dir(there.0.join("folder")).unwrap();
    let profile = headtime(&["profiles", "show", "atlas3"]).ok();
    for (name, disk) in [("folder/d.toml", "d.toml"), ("folder/plain", "plain"), ("folder/atlas10k", "atlas3")] {
        there.file(name, &profile);
        let path = there.file("folder/s.toml", &format!("disk = \"{disk}\"\nrequests = 10\n"));
        assert_eq!(headtime(&["simulate", &path, "--json"]).json()["disk"], "atlas3", "{name}");
    }
    // A server's configuration means the same.
    let serve = |drive: &str| {
        let text = format!("[disk]\ndrive = \"{drive}\"\nbacking = \"d\"\n[listen]\n[[export]]\nname = \"\"\n");
        headtime(&["serve", "--check", &there.file("folder/serve.toml", &text)])
    };
    for (drive, title) in [("d.toml", "Atlas III"), ("plain", "Atlas III"), ("atlas10k", "Atlas 10K")] {
        let said = serve(drive).ok();
        assert!(said.lines().next().is_some_and(|l| l.contains(title)), "{drive}: {said}");
    }
    assert!(serve("none.toml").refused().contains("folder/none.toml: cannot be read"));
    // A built-in drive's name is that, whatever lies beside the file.
    let path = there.file("folder/s.toml", "disk = \"atlas10k\"\nrequests = 10\n");
    assert_eq!(headtime(&["simulate", &path, "--json"]).json()["disk"], "atlas10k");
    let path = there.file("folder/s.toml", "disk = \"none.toml\"\n");
    assert!(headtime(&["simulate", &path]).refused().contains("folder/none.toml: cannot be read"));
}

#[test]
fn a_fill_without_background_work_is_said_to_do_nothing() {
    let warned = |args: &[&str]| {
        let r = headtime(&[&["simulate", "--requests", "10"], args].concat());
        assert_eq!(r.status, Some(0), "{}", r.err);
        r.err
    };
    let said = "headtime: warning: fill headtime was given, but no background: there is nothing to read in the gaps\n";
    assert_eq!(warned(&["--fill", "headtime"]), said);
    assert_eq!(warned(&["--fill", "headtime", "--json"]), said);
    for quiet in [&["--fill", "none"][..], &["--fill", "headtime", "--background", "none"], &["--background", "scan"]] {
        assert_eq!(warned(quiet), "", "{quiet:?}");
    }
}

/// The names in the help's list of commands.
fn commands_of(words: &[&str]) -> Vec<String> {
    let help = headtime(&[words, &["--help"]].concat()).ok();
    let list = help.lines().skip_while(|l| *l != "Commands:").skip(1).take_while(|l| !l.is_empty());
    let names = list.filter(|l| l.starts_with("  ") && !l.starts_with("   ")).map(first_word);
    names.filter(|name| *name != "help").map(String::from).collect()
}

/// A command's row: its usage, what it does, and its flags, from its help.
fn row_of(name: &str) -> String {
    let words: Vec<&str> = name.split(' ').collect();
    let help = headtime(&[&words[..], &["--help"]].concat()).ok();
    let about = help.lines().take_while(|l| !l.is_empty()).collect::<Vec<_>>().join(" ");
    let usage = help.lines().find_map(|l| l.strip_prefix("Usage: ")).expect("each help has a usage");
    let flags: Vec<String> = help
        .lines()
        .map(str::trim_start)
        .filter(|l| l.starts_with('-'))
        .map(|l| first_word(l).trim_end_matches(','))
        .filter(|f| !["-h", "--help"].contains(f))
        .map(|f| format!("`{f}`"))
        .collect();
    let usage = usage.replace(" [OPTIONS]", "").replace('|', "\\|");
    format!("| `{usage}` | {about} | {} |\n", flags.join(", "))
}

const HEAD: &str = "\
# Commands

Made from `--help` by `crates/cli/tests/it/usage.rs`; `headtime COMMAND --help` says more.

A drive is a built-in name (`headtime profiles`), a TOML profile ([profile-format.md](profile-format.md)) or a DiskSim
`.parv` file with the files it names. Exit status: 0 success, 1 a check failed, 2 bad usage or bad input, 130 stopped by
a signal (Ctrl-C).

| command | what it does | flags |
|---|---|---|
";

/// docs/commands.md is made from the help. A change that is meant is taken over by running this
/// test with `HEADTIME_BLESS=1`.
#[test]
fn the_page_of_commands_is_what_the_help_says() {
    let commands = commands_of(&[]);
    assert!(commands.len() >= 14 && commands_of(&["task"]).len() >= 7, "{commands:?}");
    let mut page = HEAD.to_string();
    for command in &commands {
        let below = commands_of(&[command]);
        // One whose parts may be left out stands for itself, too.
        let own = (below.is_empty() || command == "profiles").then(|| command.clone());
        for name in own.into_iter().chain(below.iter().map(|b| format!("{command} {b}"))) {
            page += &row_of(&name);
        }
    }
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/commands.md");
    if std::env::var_os("HEADTIME_BLESS").is_some() {
        std::fs::write(path, &page).unwrap();
    }
    let written = std::fs::read_to_string(path).unwrap_or_default();
    assert_eq!(page, written, "docs/commands.md is another page; if the change is meant, HEADTIME_BLESS=1");
}

fn first_word(text: &str) -> &str {
    text.split_whitespace().next().unwrap_or("")
}
