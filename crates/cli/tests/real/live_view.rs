//! The live view of a busy server: its figures are those of `headtime top`, and a session is paused
//! with the token.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;

use serde_json::Value;

use super::nbd_client::Nbd;
use super::{Server, finish, headtime, scratch, serve};
use crate::support::{Process, wait_until};

const TOKEN: &str = "a-token-of-this-test";

fn ask(at: &str, head: &str, body: &str) -> (String, String) {
    let mut stream = TcpStream::connect(at).unwrap();
    let length = body.len();
    let fields = format!("Host: {at}\r\nAuthorization: Bearer {TOKEN}\r\nContent-Length: {length}\r\n");
    let text = format!("{head} HTTP/1.1\r\n{fields}\r\n{body}");
    stream.write_all(text.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.lines().next().unwrap().into(), body.into())
}

fn figures(at: &str) -> Value {
    serde_json::from_str(&ask(at, "GET /figures.json", "").1).unwrap()
}

#[test]
fn the_live_view_shows_what_top_shows_and_pauses_sessions() {
    let dir = scratch("live-view");
    let mut command = serve(dir.path());
    let config = dir.path().join("serve.toml");
    let text = fs::read_to_string(&config).unwrap();
    let keys = "metrics = \"127.0.0.1:0\"\nweb = \"127.0.0.1:0\"\nweb-token = \"token\"\n";
    fs::write(&config, text.replace("metrics = \"127.0.0.1:0\"\n", keys)).unwrap();
    let token = dir.path().join("token");
    fs::write(&token, TOKEN).unwrap();
    // A file that others may read keeps no secret.
    fs::set_permissions(&token, fs::Permissions::from_mode(0o644)).unwrap();
    let (status, _, err) = finish(headtime().arg("serve").arg("--check").arg(&config));
    assert!(status.code() == Some(2) && err.contains("token: expected a file that only its owner"), "{err}");
    fs::set_permissions(&token, fs::Permissions::from_mode(0o600)).unwrap();

    command.current_dir(dir.path());
    let server = Server::start(dir.path(), command);
    assert!(wait_until(|| server.said().contains("live view: ")));
    let said = server.said();
    let at = said.lines().find_map(|l| l.split_once("live view: http://")?.1.strip_suffix('/')).expect(&said);
    assert!(ask(at, "GET /", "").1.contains("<title>headtime: live view</title>"));

    let mut nbd = Nbd::open(&server.socket(), "data").unwrap();
    for n in 0..10 {
        nbd.write(0, n * 4096, &[1; 4096]).unwrap();
    }
    nbd.flush().unwrap();
    nbd.read(0, 8192).unwrap();
    // A session that lasts: it reads a megabyte a second at most.
    let mut scrub = headtime();
    scrub.current_dir(dir.path()).args(["scrub", "--at-most", "1", "--journal", "journal"]);
    let _scrub = Process(scrub.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
    let session = || figures(at)["counts"]["sessions"].as_array().unwrap().first().cloned();
    assert!(wait_until(|| session().is_some_and(|s| s["done_bytes"].as_u64() > Some(0))));
    let shown = figures(at);
    assert_eq!((&shown["disk"], &shown["changes"]), (&"A small drive for tests".into(), &true.into()));
    assert_eq!(shown["fills"], true);
    let exports = shown["counts"]["exports"].as_array().unwrap();
    let data = exports.iter().find(|e| e["name"] == "data").unwrap();
    assert_eq!((&data["reads"], &data["writes"], &data["bytes"]), (&1.into(), &10.into(), &49_152.into()), "{data}");
    let commands = shown["commands"].as_array().unwrap();
    assert!(commands.iter().any(|c| c["free"].as_u64() > Some(0) && c["place"]["cylinder"].is_u64()), "{shown}");

    // `top` measures between two moments, and the live view is asked between them and after.
    let top = || -> Value {
        let mut top = headtime();
        top.current_dir(dir.path()).args(["top", "--once", "--json", "--interval-ms", "200"]);
        serde_json::from_str(&finish(&mut top).1).unwrap()
    };
    let (before, shown, after) = (top(), figures(at), top());
    let of = |view: &Value| view["sessions"][0]["done_bytes"].as_u64().unwrap();
    let counted = session().unwrap();
    let done = shown["counts"]["sessions"][0]["done_bytes"].as_u64().unwrap();
    assert!(of(&before) <= done && done <= of(&after), "{before} {shown} {after}");
    let listed = &before["sessions"][0];
    assert_eq!((&counted["name"], &counted["priority"]), (&listed["name"], &listed["priority"]));

    let id = counted["session"].as_u64().unwrap();
    let change = |what: &str| ask(at, "POST /sessions", &format!("{{\"session\": {id}, {what}}}"));
    assert_eq!(change("\"suspended\": true").0, "HTTP/1.1 200 OK");
    assert_eq!(session().unwrap()["suspended"], true, "the change is shown at once");
    assert_eq!(top()["sessions"][0]["suspended"], true);
    assert_eq!(change("\"suspended\": false").0, "HTTP/1.1 200 OK");
    assert_eq!(change("\"priority\": 77").0, "HTTP/1.1 200 OK");
    assert_eq!((&session().unwrap()["suspended"], &top()["sessions"][0]["priority"]), (&false.into(), &77.into()));
    let (status, why) = change("\"priority\": 0");
    assert!(status.contains(" 409 ") && why.contains("priority"), "{status} {why}");
    let (status, why) = ask(at, "POST /sessions", "{\"session\": 4000, \"suspended\": true}");
    assert!(status.contains(" 409 "), "{status} {why}");
    server.stop();
}
