//! The clients of `examples/all-at-once.toml`: streams with requests in each period, applications
//! that start and then read a file, and a program that is started repeatedly.
//!
//! They are those of experiment X1, over NBD and in real time. A start is the `bash` of the
//! simulator's suite: a chain of 18 dependent reads, half of them pages and half of them read-ahead
//! (`crates/sim/src/workload/suite/startup.rs` gives the source).

use std::io::{self, Error};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use headtime_sched::streams::Stream;

use crate::client::{Client, EIO, Places};

/// Periods from a request until its group is due: a request belongs to the server's period in which
/// it arrives, or to the next.
pub const PERIODS_AHEAD: u32 = 2;
/// The time between two starts. Under BFQ+ an application that was idle for two seconds counts as
/// newly started.
const PAUSE: Duration = Duration::from_millis(2500);
/// Reads of a start.
const READS: u32 = 18;
/// Half of the reads of a start are within this distance of the previous one, bytes.
const NEAR_BYTES: u64 = 100_000_000;
/// The longest think time before the next read of a start; the mean is 1 ms.
const LONGEST_THOUGHT_US: u64 = 2000;
const PAGE: u64 = 4 << 10;
const READ_AHEAD: [u64; 4] = [16 << 10, 32 << 10, 64 << 10, 128 << 10];
/// Bytes per read of a file.
const FILE_READ: u32 = 128 << 10;

/// Results of a stream's requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Had {
    /// Requests sent.
    pub asked: u64,
    /// Requests answered when their group was due, or before.
    pub in_time: u64,
    /// Requests that the server cancelled with an error.
    pub given_up: u64,
}

impl Had {
    /// Returns the requests answered late or never.
    pub fn late(&self) -> u64 {
        self.asked - self.in_time - self.given_up
    }
}

/// Results of an application.
#[derive(Clone, Debug, Default)]
pub struct Progress {
    /// Duration of its start, before it reads its file.
    pub start: Duration,
    /// Bytes of its file read in each second of the run.
    pub seconds: Vec<u64>,
}

fn sleep_until(moment: Instant) {
    thread::sleep(moment.saturating_duration_since(Instant::now()));
}

/// Reads at random places as the stream declared: this number of groups, each at the beginning of a
/// period.
///
/// # Errors
/// The server has gone, or rejects requests for another reason than lateness.
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
            sleep_until(began + period * (groups + PERIODS_AHEAD));
        }
        client.hang_up();
        let had = heard.join().expect("it does not panic")?;
        asked.map(|()| had)
    })
}

/// Counts answers until all have arrived or the last group is due.
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
                let due = began + period * ((cookie / each) as u32 + PERIODS_AHEAD);
                had.in_time += u64::from(now <= due);
            }
            Ok((_, Err(EIO))) => had.given_up += 1,
            Ok((_, Err(e))) => {
                return Err(Error::other(format!("expected data, or {EIO} for what is given up, found error {e}")));
            }
            // The last group was due, and the connection is closed.
            Err(_) if now >= began + period * (groups + PERIODS_AHEAD) => break,
            Err(e) => return Err(e),
        }
    }
    Ok(had)
}

/// Simulates the start of a program on this export; returns its duration.
fn start(client: &mut Client, places: &mut Places) -> io::Result<Duration> {
    let (began, mut at) = (Instant::now(), 0u64);
    let pages = (client.bytes / PAGE).saturating_sub(READ_AHEAD[3] / PAGE).max(1);
    let near = (NEAR_BYTES / PAGE).min(pages);
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

/// Simulates a start, and then reads a file that fills its export sequentially and repeatedly.
///
/// # Errors
/// The server has gone, or rejects a request.
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

/// Starts a program, first at `from` and again after a pause; returns the durations.
///
/// # Errors
/// The server has gone, or rejects a request.
pub fn shell(path: &Path, name: &str, (from, until): (Instant, Instant), seed: u64) -> io::Result<Vec<Duration>> {
    let (mut client, mut places, mut starts) = (Client::open(path, name)?, Places(seed), Vec::new());
    sleep_until(from);
    while Instant::now() < until {
        starts.push(start(&mut client, &mut places)?);
        sleep_until((Instant::now() + PAUSE).min(until));
    }
    Ok(starts)
}
