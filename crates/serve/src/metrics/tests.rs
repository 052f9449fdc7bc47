//! Metrics over a socket, with valid and invalid requests.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use headtime_sched::Firmware;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::device::Device;
use crate::device::null::Null;
use crate::loopback::{MAX_CONNECTIONS, REQUEST_TIMEOUT};
use crate::net::address::Listening;
use crate::net::exports::{ExportSpec, Exports};
use crate::server::{Server, Service};

fn exports(sectors: u64) -> Exports {
    let (name, description) = ("data".into(), String::new());
    let spec = ExportSpec { name, description, first: 0, sectors, read_only: false, weight: 100 };
    Exports::new(vec![spec], sectors, 512).unwrap()
}

fn server() -> (Server, SocketAddr) {
    let device = Null::new(1000, 512, 1);
    let exports = exports(device.sectors());
    let mut service = Service::new(Vec::new(), exports, Arc::new(|_, _| {}));
    service.metrics = Some((Ipv4Addr::LOCALHOST, 0).into());
    let server = Server::start(Firmware::new(1, 16), device, service).unwrap();
    let port = server.metrics_port().unwrap();
    (server, (Ipv4Addr::LOCALHOST, port).into())
}

/// Returns the server's answer to these bytes.
fn ask(at: SocketAddr, bytes: &[u8]) -> String {
    let mut stream = TcpStream::connect(at).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    // The server may answer before everything was sent.
    let _ = stream.write_all(bytes);
    let mut text = Vec::new();
    let _ = stream.read_to_end(&mut text);
    String::from_utf8(text).unwrap()
}

#[test]
fn a_plain_get_finds_the_figures() {
    let (server, at) = server();
    let page = ask(at, b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n");
    let (head, body) = page.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
    assert!(head.contains("Content-Type: text/plain; version=0.0.4"), "{head}");
    assert!(head.contains(&format!("Content-Length: {}", body.len())), "{head}");
    assert!(body.contains("headtime_uptime_seconds "), "{body}");
    let head = ask(at, b"HEAD /metrics HTTP/1.1\r\n\r\n");
    assert!(head.starts_with("HTTP/1.1 200 OK") && head.ends_with("\r\n\r\n"), "{head}");
    server.stop().unwrap();
}

#[test]
fn other_requests_are_answered_with_what_was_expected() {
    let (server, at) = server();
    for (asked, status) in [
        (&b"POST /metrics HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello"[..], "405"),
        (b"GET / HTTP/1.1\r\n\r\n", "404"),
        (b"GET /metrics\r\n\r\n", "400"),
        (b"GET /metrics HTTP/2\r\n\r\n", "505"),
        (b"\x16\x03\x01\xff\xff\n\n", "400"),
        (b"\n\n", "400"),
    ] {
        let answer = ask(at, asked);
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{answer}");
        assert!(answer.contains("expected") || answer.contains("/metrics"), "{answer}");
    }
    server.stop().unwrap();
}

#[test]
fn a_request_without_an_end_is_cut_off_and_others_are_served_at_the_same_time() {
    let (server, at) = server();
    let endless = [&b"GET /metrics HTTP/1.1\r\nX: "[..], &vec![b'x'; 1 << 20]].concat();
    assert!(ask(at, &endless).starts_with("HTTP/1.1 431 "));
    // More clients connect silently than there are places; the oldest are disconnected.
    let silent: Vec<TcpStream> = (0..3 * MAX_CONNECTIONS).map(|_| TcpStream::connect(at).unwrap()).collect();
    let begun = Instant::now();
    assert!(ask(at, b"GET /metrics HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 200 "));
    assert!(begun.elapsed() < REQUEST_TIMEOUT / 2, "{:?}", begun.elapsed());
    let heard = silent.into_iter().map(|mut s| {
        let mut text = String::new();
        s.read_to_string(&mut text).unwrap();
        text
    });
    let heard: Vec<String> = heard.collect();
    let (gone, late) = heard.split_at(2 * MAX_CONNECTIONS + 1);
    assert!(gone.iter().all(String::is_empty), "{gone:?}");
    assert!(late.iter().all(|text| text.starts_with("HTTP/1.1 408 ")), "{late:?}");
    server.stop().unwrap();
}

#[tokio::test]
async fn a_client_whose_page_is_not_made_yet_is_disconnected_for_another_too() {
    // No engine takes messages from the queue, so that no page is ever made.
    let (engine, _told) = crate::engine::inbox::inbox(16, 4096).unwrap();
    let exports = exports(1000);
    let source =
        super::Source { exports, engine, names: Arc::default(), cached: crate::control::caches::Cached::default() };
    let listening = Listening::Tcp(tokio::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap());
    let at = SocketAddr::from((Ipv4Addr::LOCALHOST, listening.port().unwrap()));
    let (_end, ends) = tokio::sync::watch::channel(false);
    tokio::spawn(crate::loopback::serve(source, listening, ends));
    let mut clients = Vec::new();
    for _ in 0..2 * MAX_CONNECTIONS {
        let mut stream = tokio::net::TcpStream::connect(at).await.unwrap();
        stream.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").await.unwrap();
        clients.push(stream);
    }
    for mut gone in clients.drain(..MAX_CONNECTIONS) {
        let read = tokio::time::timeout(Duration::from_secs(5), gone.read(&mut [0])).await;
        // With input unread, the connection is reset.
        assert!(matches!(read.expect("it is disconnected"), Ok(0) | Err(_)));
    }
    let other = tokio::time::timeout(Duration::from_millis(50), clients[0].read(&mut [0])).await;
    assert!(other.is_err(), "the later ones are connected");
}
