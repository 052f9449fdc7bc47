//! A sink that finishes units later than it takes them, as a copy's: the bound of the data in its
//! hands, also through restarts of the server, and the order of what is made durable.

use std::collections::{BTreeSet, VecDeque};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use headtime_disk::Fault;
use headtime_sched::TaskRange;
use headtime_serve::apps::error::AppError;
use headtime_serve::apps::job::{End, Job, Sink, Stage, State, Status};
use headtime_serve::apps::progress::{Notes, Progress};
use headtime_serve::apps::runner;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::watch;

use crate::applying::{SECTOR, TEST_TIMEOUT, UNIT, World};

/// The window of a sink, bytes.
const WINDOW: u64 = 1 << 20;

/// The units in the hands of the sink.
struct Hand {
    told: UnboundedSender<(u64, Stage)>,
    units: VecDeque<(u64, u64)>,
    bytes: u64,
    /// The most bytes at any time.
    most: u64,
    /// Whether units are finished as soon as they are taken.
    open: bool,
}

impl Hand {
    /// Finishes the oldest units until no more than this number of bytes is left.
    fn release(&mut self, bytes: u64) {
        while self.bytes > bytes {
            let (index, freed) = self.units.pop_front().unwrap();
            self.bytes -= freed;
            let _ = self.told.send((index, Stage::Written));
            let _ = self.told.send((index, Stage::Durable));
        }
    }
}

/// A sink that finishes units when the test says so.
struct Holding {
    hand: Arc<Mutex<Hand>>,
    stages: UnboundedReceiver<(u64, Stage)>,
    window: u64,
}

impl Holding {
    fn new(window: u64) -> Holding {
        let (told, stages) = unbounded_channel();
        let hand = Hand { told, units: VecDeque::new(), bytes: 0, most: 0, open: false };
        Holding { hand: Arc::new(Mutex::new(hand)), stages, window }
    }
}

impl Sink for Holding {
    fn unit(&mut self, index: u64, range: TaskRange, _: &[u8], _: &mut Notes) -> Result<(), AppError> {
        let mut hand = self.hand.lock().unwrap();
        hand.units.push_back((index, range.count * SECTOR));
        hand.bytes += range.count * SECTOR;
        hand.most = hand.most.max(hand.bytes);
        if hand.open {
            hand.release(0);
        }
        Ok(())
    }

    fn damaged(&mut self, index: u64, range: TaskRange, data: &[u8], _: &[TaskRange]) -> Result<(), AppError> {
        self.unit(index, range, data, &mut Notes::default())
    }

    fn stages(&mut self) -> Option<&mut UnboundedReceiver<(u64, Stage)>> {
        Some(&mut self.stages)
    }

    fn window(&self) -> u64 {
        self.window
    }
}

/// Waits for this number of statuses of the kind, each a tick after the one before.
async fn ticks(seen: &mut watch::Receiver<Option<Status>>, number: usize, what: impl Fn(&Status) -> bool) -> Status {
    let mut last = None;
    for _ in 0..number {
        last = *seen.wait_for(|s| s.is_some_and(|s| what(&s))).await.expect("it has not ended");
        seen.mark_unchanged();
        seen.changed().await.expect("it has not ended");
    }
    last.unwrap()
}

#[test]
fn the_window_holds_through_restarts_of_the_server_and_a_full_one_is_shown() {
    let w = World::new(4, vec![]);
    assert!(w.sectors * SECTOR > 3 * WINDOW, "it is larger than what the faults would bring");
    let (job, mut progress, mut sink) = (w.job(), w.progress(), Holding::new(WINDOW));
    let (hand, stop, handle) = (Arc::clone(&sink.hand), w.stop.clone(), w.runtime.handle().clone());
    let (tell, mut seen) = watch::channel(None);
    // Eight ticks are two seconds, in which the server delivers far more than a window.
    let full = |s: &Status| s.state == State::AwaitsDestination;
    let (mut w, end) = std::thread::scope(|scope| {
        let running = scope.spawn(|| {
            let mut see = |s: &Status| _ = tell.send(Some(*s));
            let run = runner::run(&job, &mut progress, &mut sink, &mut see, stop);
            handle.block_on(async { tokio::time::timeout(TEST_TIMEOUT, run).await.expect("it comes to an end") })
        });
        let mut w = w;
        let mut wait = |number, what: &dyn Fn(&Status) -> bool| {
            let ticks = ticks(&mut seen, number, what);
            handle.block_on(async { tokio::time::timeout(TEST_TIMEOUT, ticks).await.expect("it is seen") })
        };
        let first = wait(8, &full).session;
        let bytes = hand.lock().unwrap().bytes;
        assert!(first.is_some() && bytes > WINDOW / 4 * 3, "{first:?} {bytes}");

        // The new session begins only when most of what the sink has is written.
        w.stop();
        w.start();
        let second = wait(8, &full).session;
        let most = hand.lock().unwrap().most;
        assert!(most <= WINDOW && second.is_none(), "{most} of {WINDOW} bytes, session {second:?}");
        // And its window is smaller by what is not.
        hand.lock().unwrap().release(WINDOW / 4);
        wait(8, &|s| full(s) && s.session.is_some());
        hand.lock().unwrap().open = true;
        hand.lock().unwrap().release(0);
        (w, running.join().unwrap())
    });
    assert_eq!(end.unwrap(), End::Complete);
    let most = hand.lock().unwrap().most;
    assert!((WINDOW / 4 * 3..=WINDOW).contains(&most), "{most} of {WINDOW} bytes");
    // Over six seconds of waiting.
    let waited = progress.notes.counts["waited_milliseconds"];
    assert!((4_000..=progress.notes.milliseconds).contains(&waited), "{waited} of {}", progress.notes.milliseconds);
    w.stop();
}

/// Every unit has an unreadable sector, and is read sector by sector: readable ones, which have
/// always counted, would take up the window.
#[test]
fn units_with_unreadable_sectors_count_in_the_window() {
    let unit = u64::from(UNIT);
    let bad = |n| Fault::Unreadable { lbn: n * unit + 1, count: 1 };
    let w = World::new(1, (0..126).map(bad).collect());
    assert_eq!(w.sectors.div_ceil(unit), 126);
    let window = 16 * unit * SECTOR;
    let (job, mut progress, mut sink) = (w.job(), w.progress(), Holding::new(window));
    let hand = Arc::clone(&sink.hand);
    let (tell, mut seen) = watch::channel(None);
    let (end, stop) = watch::channel(false);
    let mut see = |s: &Status| _ = tell.send(Some(*s));
    let run = runner::run(&job, &mut progress, &mut sink, &mut see, stop);
    // Four seconds, in which as many again would come.
    let ended = w.runtime.block_on(async {
        let full = async {
            let last = ticks(&mut seen, 16, |s| s.state == State::AwaitsDestination).await;
            let _ = end.send(true);
            last
        };
        tokio::time::timeout(TEST_TIMEOUT, async { tokio::join!(run, full) }).await.expect("it is full")
    });
    let most = hand.lock().unwrap().most;
    assert!(matches!(ended.0, Ok(End::Stopped)) && ended.1.unreadable > 8, "{ended:?}");
    // The sectors of the last units came one by one.
    assert!((window / 4 * 3..=window / 4 * 5).contains(&most), "{most} of {window} bytes");
}

/// A sink that finishes units at once, and checks at each save that the journal has only units
/// whose data it made durable in an earlier one.
struct InOrder {
    told: UnboundedSender<(u64, Stage)>,
    stages: UnboundedReceiver<(u64, Stage)>,
    taken: BTreeSet<u64>,
    durable: BTreeSet<u64>,
    journal: PathBuf,
    empty: Progress,
    /// The largest number of units that the journal had while there were others.
    in_the_middle: u64,
}

impl InOrder {
    fn check(&mut self) {
        let mut written = self.empty.clone();
        if written.resume(&self.journal).unwrap() {
            let of = |i: u64| written.is_done(i) && !self.durable.contains(&i);
            assert_eq!((0..written.units().len()).find(|&i| of(i)), None, "the journal has a unit too early");
            if !written.is_complete() {
                self.in_the_middle = written.done();
            }
        }
    }
}

impl Sink for InOrder {
    fn unit(&mut self, index: u64, _: TaskRange, _: &[u8], _: &mut Notes) -> Result<(), AppError> {
        self.taken.insert(index);
        let _ = self.told.send((index, Stage::Written));
        let _ = self.told.send((index, Stage::Durable));
        Ok(())
    }

    fn damaged(&mut self, _: u64, _: TaskRange, _: &[u8], bad: &[TaskRange]) -> Result<(), AppError> {
        panic!("nothing is unreadable here: {bad:?}");
    }

    fn stages(&mut self) -> Option<&mut UnboundedReceiver<(u64, Stage)>> {
        Some(&mut self.stages)
    }

    fn save(&mut self) -> Result<(), AppError> {
        self.check();
        self.durable = self.taken.clone();
        Ok(())
    }
}

#[test]
fn a_unit_is_in_the_journal_only_after_its_sink_was_saved() {
    let w = World::new(2, vec![]);
    // Some seconds, so that the journal is written several times.
    let max_mb_s = Some(w.sectors as f64 * SECTOR as f64 / 5e6);
    let job = Job { save_every: Duration::ZERO, max_mb_s, ..w.job() };
    let (mut progress, (told, stages)) = (w.progress(), unbounded_channel());
    let (taken, durable) = (BTreeSet::new(), BTreeSet::new());
    let (journal, empty) = (w.path("journal"), w.progress());
    let mut sink = InOrder { told, stages, taken, durable, journal, empty, in_the_middle: 0 };
    assert_eq!(w.run(&job, &mut progress, &mut sink).unwrap(), End::Complete);
    sink.check();
    assert!(sink.in_the_middle > 0, "the journal was written in the middle");
}
