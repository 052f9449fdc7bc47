//! The live view over sockets, with requests of its own page, of others, and of none.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use headtime_disk::profile::builtin;
use headtime_disk::{Kind, Model, Time};
use headtime_sched::Firmware;

use super::*;
use crate::device::Device;
use crate::device::null::Null;
use crate::engine::snapshot::RecentCommand;
use crate::loopback::{MAX_CONNECTIONS, REQUEST_TIMEOUT};
use crate::net::exports::{ExportSpec, Exports};
use crate::server::{Server, Service};

const TOKEN: &str = "0123456789abcdef";

fn server(token: Option<&str>) -> (Server, SocketAddr) {
    let device = Null::new(1000, 512, 1);
    let (name, description, sectors) = ("data".into(), String::new(), device.sectors());
    let spec = ExportSpec { name, description, first: 0, sectors, read_only: false, weight: 100 };
    let exports = Exports::new(vec![spec], sectors, 512).unwrap();
    let mut service = Service::new(Vec::new(), exports, Arc::new(|_, _| {}));
    let model = Model::new(&builtin("atlas10k").unwrap()).unwrap();
    let token = token.map(|text| {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        Token::read(file.path()).unwrap()
    });
    service.web = Some(WebAt {
        address: (Ipv4Addr::LOCALHOST, 0).into(),
        token,
        disk: "a <b>drive</b>".into(),
        fills: true,
        geometry: Arc::new(model.geometry.clone()),
        revolution: model.mechanics.rotation.period(),
    });
    let server = Server::start(Firmware::new(1, 16), device, service).unwrap();
    let port = server.web_port().unwrap();
    (server, (Ipv4Addr::LOCALHOST, port).into())
}

/// Returns the server's answer to these bytes.
fn ask(at: SocketAddr, text: &str) -> String {
    let mut stream = TcpStream::connect(at).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    // The server may answer before everything was sent.
    let _ = stream.write_all(text.as_bytes());
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8(answer).unwrap()
}

fn get(at: SocketAddr, path: &str) -> String {
    ask(at, &format!("GET {path} HTTP/1.1\r\nHost: {at}\r\n\r\n"))
}

/// A change with these header fields, each with its line end.
fn post(at: SocketAddr, fields: &str, body: &str) -> String {
    let length = body.len();
    ask(at, &format!("POST /sessions HTTP/1.1\r\nHost: {at}\r\n{fields}Content-Length: {length}\r\n\r\n{body}"))
}

fn has_status(answer: &str, status: &str) {
    assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "expected {status}: {answer}");
    // A browser gets the same header with each answer.
    let head = answer.split("\r\n\r\n").next().unwrap();
    for field in ["Content-Security-Policy: default-src 'none'; script-src 'self';", "X-Content-Type-Options: nosniff"]
    {
        assert!(head.contains(field), "{head}");
    }
    assert!(!head.contains("Access-Control"), "{head}");
}

#[test]
fn the_page_and_its_parts_are_served_and_name_no_other_server() {
    let (server, at) = server(None);
    for (path, kind) in [("/", "text/html"), ("/live.css", "text/css"), ("/live.js", "text/javascript")] {
        let answer = get(at, path);
        has_status(&answer, "200");
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        assert!(head.contains(&format!("Content-Type: {kind}; charset=utf-8")), "{head}");
        assert!(!body.contains("://") && !body.contains("innerHTML"), "{path}");
        let head_only = ask(at, &format!("HEAD {path} HTTP/1.1\r\nHost: localhost\r\n\r\n"));
        assert_eq!(head_only, format!("{head}\r\n\r\n"));
    }
    // With this policy a style or a script in the page itself would not be carried out.
    let page = get(at, "/");
    assert!(!page.contains("style=") && !page.contains("onclick=") && page.contains("<script src=\"live.js\""));
    has_status(&get(at, "/favicon.ico"), "404");
    has_status(&ask(at, &format!("DELETE / HTTP/1.1\r\nHost: {at}\r\n\r\n")), "405");
    has_status(&ask(at, &format!("OPTIONS /sessions HTTP/1.1\r\nHost: {at}\r\n\r\n")), "405");
    server.stop().unwrap();
}

#[test]
fn figures_are_json_and_fresh() {
    let (server, at) = server(None);
    let figures = || -> serde_json::Value {
        let answer = get(at, "/figures.json");
        has_status(&answer, "200");
        assert!(answer.contains("Content-Type: application/json\r\n"), "{answer}");
        serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap()
    };
    let first = figures();
    assert_eq!((&first["disk"], &first["changes"]), (&"a <b>drive</b>".into(), &false.into()));
    assert_eq!((&first["counts"]["commands"], &first["commands"]), (&0.into(), &serde_json::json!([])));
    assert!(first["cylinders"].as_u64() > Some(5_000) && first["revolution_ms"].as_f64() > Some(5.9), "{first}");
    // The engine is not asked each time, and is asked after a while.
    let begun = Instant::now();
    let mut later = figures();
    if begun.elapsed() < FRESH / 4 {
        assert_eq!(later["counts"]["at_ns"], first["counts"]["at_ns"]);
    }
    while later["counts"]["at_ns"] == first["counts"]["at_ns"] {
        assert!(begun.elapsed() < Duration::from_secs(20));
        later = figures();
    }
    server.stop().unwrap();
}

#[test]
fn commands_are_shown_where_they_were_on_the_platter() {
    let model = Model::new(&builtin("atlas10k").unwrap()).unwrap();
    let (kind, sent, done) = (Kind::Write, Time(2_000_000), Time(7_500_000));
    let write = RecentCommand { kind, lbn: 1_000_000, count: 8, free: 3, sent, done, failed: false };
    let shown = serde_json::to_value(figures::command(&write, &model.geometry)).unwrap();
    let place = model.geometry.locate(1_000_000).unwrap();
    assert_eq!((&shown["kind"], &shown["lbn"], &shown["free"]), (&"write".into(), &1_000_000.into(), &3.into()));
    assert_eq!((shown["sent_ms"].as_f64(), shown["took_ms"].as_f64()), (Some(2.0), Some(5.5)));
    assert_eq!(shown["place"]["cylinder"], place.cylinder);
    assert_eq!(shown["place"]["turn"].as_f64(), Some(place.angle.turns()));
    // A flush is nowhere, and a sector beyond the model's end is not drawn.
    let flush = RecentCommand { kind: Kind::Flush, lbn: 0, count: 0, ..write };
    assert!(serde_json::to_value(figures::command(&flush, &model.geometry)).unwrap()["place"].is_null());
    let beyond = RecentCommand { lbn: u64::MAX, ..write };
    assert!(serde_json::to_value(figures::command(&beyond, &model.geometry)).unwrap()["place"].is_null());
}

#[test]
fn pages_of_other_sites_can_neither_read_nor_change() {
    let (server, at) = server(Some(TOKEN));
    for host in ["example.org", "example.org:80", "127.0.0.1.example.org", "192.0.2.1", ""] {
        for path in ["/", "/figures.json", "/live.js"] {
            let answer = ask(at, &format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n"));
            has_status(&answer, "403");
            assert!(answer.ends_with(NOT_HERE), "{answer}");
        }
    }
    // One that names this machine beside another, and none.
    has_status(&ask(at, "GET / HTTP/1.1\r\nHost: localhost\r\nHost: example.org\r\n\r\n"), "403");
    has_status(&ask(at, "GET / HTTP/1.1\r\n\r\n"), "403");
    for host in ["localhost", "127.0.0.1", "[::1]:80"] {
        has_status(&ask(at, &format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n")), "200");
    }
    let fields = format!("Authorization: Bearer {TOKEN}\r\n");
    for origin in ["http://example.org", "https://localhost", "null", "http://localhost.example.org"] {
        has_status(&post(at, &format!("{fields}Origin: {origin}\r\n"), "{}"), "403");
    }
    server.stop().unwrap();
}

#[test]
fn changes_need_the_token_and_a_session() {
    let (server, at) = server(Some(TOKEN));
    let pause = r#"{"session": 7, "suspended": true}"#;
    for given in [
        "",
        "Authorization: Bearer\r\n",
        "Authorization: Bearer 0123456789abcdeF\r\n",
        "Authorization: Basic 0123456789abcdef\r\n",
        "Authorization: 0123456789abcdef\r\n",
        "Authorization: Bearer 0123456789abcdef\r\nAuthorization: Bearer 0123456789abcdef\r\n",
    ] {
        has_status(&post(at, given, pause), "401");
    }
    let given = format!("Authorization: Bearer {TOKEN}\r\nOrigin: http://{at}\r\n");
    for odd in [
        "",
        "{}",
        "[]",
        r#"{"session": 7}"#,
        r#"{"session": -1, "suspended": true}"#,
        r#"{"session": 7, "suspended": 1}"#,
        r#"{"session": 7, "suspended": true, "priority": 3}"#,
        r#"{"session": 7, "close": true}"#,
        "\u{0}\u{1}",
    ] {
        let answer = post(at, &given, odd);
        has_status(&answer, "400");
        assert!(answer.contains("expected {\"session\": N}"), "{answer}");
    }
    // This server has no background work.
    has_status(&post(at, &given, pause), "409");
    has_status(&post(at, &given, r#"{"session": 7, "priority": 5}"#), "409");
    let head = format!("POST /sessions HTTP/1.1\r\nHost: {at}\r\n{given}");
    has_status(&ask(at, &format!("{head}\r\n")), "411");
    has_status(&ask(at, &format!("{head}Content-Length: x\r\n\r\n")), "411");
    has_status(&ask(at, &format!("{head}Content-Length: 257\r\n\r\n{}", "x".repeat(257))), "413");
    has_status(&ask(at, &format!("{head}Content-Length: 18446744073709551615\r\n\r\n")), "413");
    has_status(&get(at, "/sessions"), "405");
    server.stop().unwrap();
}

#[test]
fn without_a_token_nothing_can_be_changed() {
    let (server, at) = server(None);
    for given in ["", "Authorization: Bearer \r\n", "Authorization: Bearer 0123456789abcdef\r\n"] {
        let answer = post(at, given, r#"{"session": 7, "suspended": true}"#);
        has_status(&answer, "403");
        assert!(answer.contains("listen.web-token"), "{answer}");
    }
    server.stop().unwrap();
}

#[test]
fn browsers_that_ask_for_nothing_or_fetch_nothing_hold_up_no_other() {
    let (server, at) = server(None);
    // More than there are places; the oldest are disconnected.
    let connect = |_| TcpStream::connect(at).unwrap();
    let silent: Vec<TcpStream> = (0..MAX_CONNECTIONS).map(connect).collect();
    let mut deaf: Vec<TcpStream> = (0..MAX_CONNECTIONS).map(connect).collect();
    let asked = format!("GET /live.js HTTP/1.1\r\nHost: {at}\r\n\r\n");
    deaf.iter_mut().for_each(|s| _ = s.write_all(asked.as_bytes()));
    let begun = Instant::now();
    has_status(&get(at, "/figures.json"), "200");
    // Had it waited for one of them, it had waited for as long as that one may take.
    assert!(begun.elapsed() < REQUEST_TIMEOUT, "{:?}", begun.elapsed());
    drop((silent, deaf));
    server.stop().unwrap();
}
