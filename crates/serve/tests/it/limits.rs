//! docs/limits.md against the code.

use headtime_disk::Dur;
use headtime_nbd::Limits as ClientLimits;
use headtime_sched::{MAX_PICKUP, TaskLimits};
use headtime_serve::control::MAX_MESSAGE;
use headtime_serve::engine::inbox::MAX_OF_ONE;
use headtime_serve::internals::control::arriving::{MAX_CALL, MAX_LONGEST, MAX_TIME};
use headtime_serve::internals::control::incoming::{MAX_ANSWERED, MAX_CONNECTIONS, MAX_STREAMS};
use headtime_serve::internals::control::session::MAX_ANSWERS;
use headtime_serve::internals::engine::background::{MAX_BEYOND, MAX_EVENTS, MAX_STAGED, MAX_WINDOW, MAX_WINDOWS};
use headtime_serve::internals::engine::image::MAX_IMAGES;
use headtime_serve::internals::engine::paced::{MAX_CREDIT, MAX_RANGES, OTHER_WORK_RATIO};
use headtime_serve::internals::engine::staged::MAX_OF_ALL;
use headtime_serve::internals::loopback;
use headtime_serve::internals::net::connection::UNREAD_TIMEOUT;
use headtime_serve::internals::net::listener::{COME_AT_ONCE, COMES_EACH, MAX_NEGOTIATING};
use headtime_serve::net::address::UNACKNOWLEDGED_TIMEOUT;
use headtime_serve::net::budget::MAX_REQUESTS;
use headtime_serve::net::exports::{ExportSpec, Exports, MAX_BYTES, MAX_EXPORTS};
use headtime_serve::server::{MAX_CALLS, Service};

fn mib(bytes: u64) -> String {
    assert!(bytes.is_multiple_of(1 << 20));
    format!("{} MiB", bytes >> 20)
}

#[test]
fn each_limit_is_what_its_row_says() {
    let text = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/limits.md")).unwrap();
    let rows: Vec<[&str; 3]> = text
        .lines()
        .filter_map(|line| line.strip_prefix("| ")?.strip_suffix(" |"))
        .map(|row| row.splitn(3, " | ").collect::<Vec<_>>().try_into().expect("three cells"))
        .collect();
    let export =
        ExportSpec { name: "all".into(), description: String::new(), first: 0, sectors: 8, read_only: true, weight: 1 };
    let usual = Service::new(vec![], Exports::new(vec![export], 8, 512).unwrap(), std::sync::Arc::new(|_, _| {}));
    let (client, tasks) = (ClientLimits::default(), TaskLimits::default());
    let expected: &[(&str, String)] = &[
        ("clients of a socket (`listen.clients`)", format!("{} (1 to 1024)", usual.clients)),
        ("clients of a socket that negotiate", MAX_NEGOTIATING.to_string()),
        (
            "clients of a socket that come at once, and after these",
            format!("{COME_AT_ONCE}, {} a second", 1_000 / COMES_EACH.as_millis()),
        ),
        ("time to negotiate, TLS included", format!("{} s", usual.handshake.as_secs())),
        ("a client that fetches nothing of its answers", format!("{} s", UNREAD_TIMEOUT.as_secs())),
        ("a TCP client that is not heard of", format!("{} s", UNACKNOWLEDGED_TIMEOUT.as_secs())),
        ("options of a client", client.options.to_string()),
        ("bytes of an option", format!("{} KiB", client.option_bytes >> 10)),
        ("bytes of a request", mib(MAX_BYTES.into())),
        ("requests of a client under way", client.requests.to_string()),
        ("bytes of a client under way", mib(client.bytes)),
        ("requests of all clients under way", MAX_REQUESTS.to_string()),
        (
            "bytes of all clients under way: of a write from its first byte on, of an answer until it is fetched",
            mib(usual.bytes),
        ),
        ("connections", MAX_CONNECTIONS.to_string()),
        ("calls and sessions of a connection", MAX_STREAMS.to_string()),
        ("sessions", tasks.sessions.to_string()),
        ("bytes of a session's message", mib(MAX_MESSAGE as u64)),
        ("bytes of another call's message", format!("{} KiB", MAX_CALL >> 10)),
        (
            "answers of a connection's calls, sessions excepted, that are made or not yet fetched",
            MAX_ANSWERED.to_string(),
        ),
        ("time for a call's message, and for the first of a session", format!("{} s", MAX_TIME.as_secs())),
        ("bytes of the longest messages of all sessions", mib(MAX_LONGEST)),
        ("windows of all sessions", mib(MAX_WINDOWS)),
        ("pages for metrics, and for live views, that are made at a time", loopback::MAX_ANSWERED.to_string()),
        (
            "connections for metrics, and for live views; clients that come",
            format!("{}; as above", loopback::MAX_CONNECTIONS),
        ),
        ("calls that wait for the engine, of a session", MAX_OF_ONE.to_string()),
        ("calls that wait for the engine", MAX_CALLS.to_string()),
        ("ranges of a task", MAX_RANGES.to_string()),
        ("ranges of all tasks", tasks.ranges.to_string()),
        ("tasks", tasks.tasks.to_string()),
        ("memory of all sessions, tasks and regions", mib(tasks.bytes as u64)),
        ("point-in-time tasks", MAX_IMAGES.to_string()),
        ("sectors of a unit", MAX_PICKUP.to_string()),
        ("bytes on their way to a session, its window", mib(MAX_WINDOW)),
        ("bytes beyond that for a point-in-time task", mib(MAX_BEYOND)),
        ("write data of a session that is not written", mib(MAX_STAGED)),
        ("write data of all sessions", mib(MAX_OF_ALL)),
        ("events that wait for a session", MAX_EVENTS.to_string()),
        ("answers that wait for a session", MAX_ANSWERS.to_string()),
        ("exports", MAX_EXPORTS.to_string()),
    ];
    for (limit, value) in expected {
        let found: Vec<&str> = rows.iter().filter(|row| row[0] == *limit).map(|row| row[1]).collect();
        assert_eq!(found, [value], "{limit}");
    }
    assert_eq!(OTHER_WORK_RATIO, 9, "a tenth of the time");
    assert_eq!(MAX_CREDIT, Dur::from_ms(100));
    assert_eq!(rows.len(), expected.len() + 16, "a row is new here, or has gone");
}
