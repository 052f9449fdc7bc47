//! Cost of a request in the state machine: parsing, passing on, answering, and taking the reply.
//!
//! Run with `cargo bench -p headtime-nbd`; under `cargo test` every benchmark runs once.

use bytes::Bytes;
use divan::counter::ItemsCount;
use divan::{Bencher, black_box};
use headtime_nbd::{Answer, BlockSizes, Connection, Event, Export, Limits, Op, Tls};
use std::sync::Arc;

const LENGTH: u32 = 4096;
/// Requests that a client sends in one batch.
const BATCH: u64 = 32;

fn main() {
    divan::main();
}

/// A connection with an export open.
fn open(structured: bool) -> Connection {
    let export = Export {
        name: "a".into(),
        description: String::new(),
        size: 1 << 40,
        read_only: false,
        rotational: true,
        trim: true,
        write_zeroes: true,
        multi_conn: true,
        blocks: BlockSizes::new(512, 4096, 32 << 20).expect("sizes in order"),
    };
    let mut connection = Connection::new(Arc::from([export]), Tls::Off, Limits::default());
    let structured_reply: &[u8] = if structured { b"IHAVEOPT\0\0\0\x08\0\0\0\0" } else { b"" };
    let go = b"IHAVEOPT\0\0\0\x07\0\0\0\x07\0\0\0\x01a\0\0";
    let spoken = [&[0, 0, 0, 3], structured_reply, go].concat();
    assert_eq!(connection.receive(&spoken), spoken.len());
    assert!(matches!(connection.poll(), Some(Event::Opened { .. })));
    while connection.output().is_some() {}
    connection
}

/// A batch of requests of one command, as read from a socket.
fn requests(command: u16, payload: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for cookie in 0..BATCH {
        bytes.extend(0x2560_9513u32.to_be_bytes());
        bytes.extend(0u16.to_be_bytes());
        bytes.extend(command.to_be_bytes());
        bytes.extend(cookie.to_be_bytes());
        bytes.extend((cookie * u64::from(LENGTH)).to_be_bytes());
        bytes.extend(LENGTH.to_be_bytes());
        bytes.extend(payload);
    }
    bytes
}

/// Runs a batch through the state machine; returns the number of output bytes.
fn pass(connection: &mut Connection, bytes: &[u8], data: &Bytes) -> usize {
    assert_eq!(connection.receive(black_box(bytes)), bytes.len());
    while let Some(event) = connection.poll() {
        let request = match event {
            Event::Request(request) => request,
            Event::Payload { .. } => continue,
            event => panic!("a request expected, found {event:?}"),
        };
        let answer = if request.op == Op::Read { Answer::Data(data.clone()) } else { Answer::Done };
        black_box(&request.data);
        connection.reply(request.token, answer);
    }
    let mut sent = 0;
    while let Some(chunk) = connection.output() {
        sent += black_box(chunk).len();
    }
    sent
}

fn measure(bencher: Bencher, structured: bool, command: u16, payload: &[u8], reply: usize) {
    let bytes = requests(command, payload);
    let data = Bytes::from(vec![7; LENGTH as usize]);
    let mut connection = open(structured);
    bencher.counter(ItemsCount::new(BATCH)).bench_local(|| {
        assert_eq!(pass(&mut connection, &bytes, &data), reply * BATCH as usize);
    });
}

#[divan::bench]
fn read_4k_simple(bencher: Bencher) {
    measure(bencher, false, 0, b"", 16 + LENGTH as usize);
}

#[divan::bench]
fn read_4k_structured(bencher: Bencher) {
    measure(bencher, true, 0, b"", 28 + LENGTH as usize);
}

#[divan::bench]
fn write_4k_simple(bencher: Bencher) {
    measure(bencher, false, 1, &[7; LENGTH as usize], 16);
}

#[divan::bench]
fn write_4k_structured(bencher: Bencher) {
    measure(bencher, true, 1, &[7; LENGTH as usize], 20);
}
