//! The clients of `examples/all-at-once.toml`: streams that ask in each period, applications that
//! start and then read a file, and a program that is started again and again.
//!
//! They are those of experiment X1, over NBD and in real time. A start is the `bash` of the
//! simulator's suite: a chain of 18 reads, each waited for, half of them pages and half of them
//! read-ahead (`crates/sim/src/workload/suite/startup.rs` says where that is from).

use std::io::{self, Error};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use headtime_sched::admit::das::stream::Stream;

use crate::client::{Client, EIO, Places};

/// A group of a stream is due so many periods after it was asked for: a request belongs to the
/// server's period in which it comes, or to the next.
pub const AHEAD: u32 = 2;
/// Between the end of a start and the next. Under BFQ+ an application that was idle for two seconds
/// counts as one that has just begun.
const PAUSE: Duration = Duration::from_millis(2500);
/// Reads of a start.
const READS: u32 = 18;
/// Half of the reads of a start are this near to the one before, bytes.
const NEAR: u64 = 100_000_000;
/// Thought before the next read of a start lasts 1 ms in the mean.
const LONGEST_THOUGHT_US: u64 = 2000;
const PAGE: u64 = 4 << 10;
const READ_AHEAD: [u64; 4] = [16 << 10, 32 << 10, 64 << 10, 128 << 10];
/// Bytes of each read of a file.
const FILE_READ: u32 = 128 << 10;

/// What a stream's client had of its requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Had {
    /// It asked for so many.
    pub asked: u64,
    /// They came when their group was due, or before.
    pub in_time: u64,
    /// The server gave them up, and said so.
    pub given_up: u64,
}

impl Had {
    /// They came late, or not at all.
    pub fn late(&self) -> u64 {
        self.asked - self.in_time - self.given_up
    }
}

/// What an application had.
#[derive(Clone, Debug, Default)]
pub struct Progress {
    /// Its start, before it read its file.
    pub start: Duration,
    /// Bytes of its file in each second since all began.
    pub seconds: Vec<u64>,
}

fn sleep_until(moment: Instant) {
    thread::sleep(moment.saturating_duration_since(Instant::now()));
}

/// Reads at random places as the stream declared it, so many groups, each at the beginning of a
/// period.
///
/// # Errors
/// The server has gone, or refuses requests that it did not give up.
pub fn stream(path: &Path, name: &str, stream: &Stream, bytes: u32, groups: u32, seed: u64) -> io::Result<Had> {
    let mut client = Client::open(path, name)?;
    let hearing = client.split()?;
    let (each, period) = (u64::from(stream.requests), Duration::from_nanos(stream.period.0));
    let blocks = (client.bytes / u64::from(bytes)).max(1);
    let (mut places, began) = (Places(seed), Instant::now());
    thread::scope(|scope| {
        let heard = scope.spawn(move || hear(hearing, bytes, (began, period), (each, groups)));
        let asked = (0..groups).try_for_each(|group| {
            sleep_until(began + period * group);
            let mut cookies = (0..each).map(|k| u64::from(group) * each + k);
            cookies.try_for_each(|cookie| client.ask(cookie, places.below(blocks) * u64::from(bytes), bytes))
        });
        if asked.is_ok() {
            sleep_until(began + period * (groups + AHEAD));
        }
        client.hang_up();
        let had = heard.join().expect("it does not panic")?;
        asked.map(|()| had)
    })
}

/// Counts what comes, until all has come or the last group is due.
fn hear(
    mut from: Client,
    bytes: u32,
    (began, period): (Instant, Duration),
    (each, groups): (u64, u32),
) -> io::Result<Had> {
    let asked = each * u64::from(groups);
    let mut had = Had { asked, ..Had::default() };
    for _ in 0..asked {
        let answer = from.answer(bytes);
        let now = Instant::now();
        match answer {
            Ok((cookie, Ok(_))) => {
                let due = began + period * ((cookie / each) as u32 + AHEAD);
                had.in_time += u64::from(now <= due);
            }
            Ok((_, Err(EIO))) => had.given_up += 1,
            Ok((_, Err(e))) => {
                return Err(Error::other(format!("expected data, or {EIO} for what is given up, found error {e}")));
            }
            // The last group was due, and nobody listens any more.
            Err(_) if now >= began + period * (groups + AHEAD) => break,
            Err(e) => return Err(e),
        }
    }
    Ok(had)
}

/// Starts a program whose files lie on this export: how long that takes.
fn start(client: &mut Client, places: &mut Places) -> io::Result<Duration> {
    let (began, mut at) = (Instant::now(), 0u64);
    let pages = (client.bytes / PAGE).saturating_sub(READ_AHEAD[3] / PAGE).max(1);
    let near = (NEAR / PAGE).min(pages);
    for read in 0..READS {
        let bytes = match places.below(8) {
            0..4 => PAGE,
            w => READ_AHEAD[w as usize - 4],
        };
        at = match places.below(2) {
            0 if read > 0 => at.saturating_sub(near / 2).min(pages - near) + places.below(near),
            _ => places.below(pages),
        };
        if read > 0 {
            thread::sleep(Duration::from_micros(places.below(LONGEST_THOUGHT_US + 1)));
        }
        client.read(at * PAGE, bytes as u32)?;
    }
    Ok(began.elapsed())
}

/// Starts, and then reads a file that fills its export in order, again from the beginning when it
/// is through.
///
/// # Errors
/// The server has gone, or refuses.
pub fn application(path: &Path, name: &str, (began, until): (Instant, Instant), seed: u64) -> io::Result<Progress> {
    let mut client = Client::open(path, name)?;
    let mut progress = Progress { start: start(&mut client, &mut Places(seed))?, seconds: Vec::new() };
    let pieces = (client.bytes / u64::from(FILE_READ)).max(1);
    for piece in (0..pieces).cycle() {
        if Instant::now() >= until {
            break;
        }
        client.read(piece * u64::from(FILE_READ), FILE_READ)?;
        let second = began.elapsed().as_secs() as usize;
        if progress.seconds.len() <= second {
            progress.seconds.resize(second + 1, 0);
        }
        progress.seconds[second] += u64::from(FILE_READ);
    }
    Ok(progress)
}

/// Starts a program, first at `from` and again a while after each start: how long each took.
///
/// # Errors
/// The server has gone, or refuses.
pub fn shell(path: &Path, name: &str, (from, until): (Instant, Instant), seed: u64) -> io::Result<Vec<Duration>> {
    let (mut client, mut places, mut starts) = (Client::open(path, name)?, Places(seed), Vec::new());
    sleep_until(from);
    while Instant::now() < until {
        starts.push(start(&mut client, &mut places)?);
        sleep_until((Instant::now() + PAUSE).min(until));
    }
    Ok(starts)
}
