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
    assert_eq!((c.scheduler.fill.as_str(), c.scheduler.outstanding, c.listen.clients), ("headtime", 2, 64));
    let e = c.exports(10 << 21, 512).unwrap();
    assert_eq!((e[0].first, e[0].sectors, e[0].weight), (0, 1 << 21, 100));
    assert_eq!((e[1].first, e[1].sectors, e[1].weight), (1 << 21, 9 << 21, 300));
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
    // A value before it is not what a table is called.
    let e = read("user = \"x\"\n[disk]\ndrive = \"d\"\n[listen]\nnbd = []\n[export]\n").unwrap_err().to_string();
    assert!(e.ends_with("serve.toml:6: expected a sequence, found map"), "{e}");
}

#[test]
fn sockets_whose_names_nobody_can_use_are_refused() {
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
    assert!(wrong("[disk]", "[disk").contains("serve.toml:2:"));
    assert!(wrong("control.sock", "nbd.sock").contains("each address once"));
    let escape = wrong("name = \"a\"", "name = \"a\\u001b[31m\"");
    assert!(escape.contains("control characters") && !escape.contains('\u{1b}'), "{escape}");
    let halves = read(&GOOD.replace("1073741824", "1073741825")).unwrap();
    assert!(halves.exports(10 << 21, 512).unwrap_err().contains("whole sectors"));
}
