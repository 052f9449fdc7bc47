//! Streams of exports: those of the configuration, and those that are opened and closed at run
//! time.
//!
//! A guarantee depends on the drive's profile and on all other guarantees. The admission test takes
//! milliseconds or more, so it runs on the caller's thread ([`Live`]). The engine opens the stream
//! only if its streams are still those of the test; otherwise the test is repeated.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use headtime_disk::profile::Figures;
use headtime_disk::{Dur, Time};
use headtime_sched::Core;
use headtime_sched::streams::{
    BestEffort, Changes, Disk, Exhausted, Forecast, Ledger, Load, Nearest, OpenStreamError, Refusal, ServedStream,
    Stream, StreamStatus, UnknownFigures, check_figures, forecast,
};
use tokio::sync::oneshot;

use crate::control::caches::Cached;
use crate::engine::inbox::{Outbox, SendError};
use crate::engine::messages::EngineMessage;
use crate::engine::streams::{NotBegun, StreamCall};
use crate::net::exports::{Exports, MAX_BYTES};

/// The requirement on an export with a write cache.
pub const WITHOUT_STREAM: &str = "an export without a stream (what its writes are promised is that the disk has them)";

/// How often the admission test is repeated because the streams changed in the meantime.
const TRIES: u32 = 20;
/// How often the opening of a stream that makes another one mandatory is tried, and the interval:
/// at some instants fewer requests are pending.
const INSTANTS: u32 = 50;
const LOOK_INTERVAL: Duration = Duration::from_millis(7);
/// The interval between checks whether closed streams have ended.
const CLOSE_POLL_INTERVAL: Duration = Duration::from_millis(100);

/// Opens the streams of `exports`, by number, on a core without requests. Returns their load.
///
/// # Errors
/// The index of the first that is rejected beside those before it, why, and the nearest that would
/// be admitted.
pub fn begin(core: &mut Core, exports: &Exports, wanted: &[(u32, Stream)]) -> Result<Load, (usize, OpenStreamError)> {
    let mut load = Load::default();
    for (at, &(owner, stream)) in wanted.iter().enumerate() {
        let opened = core.open_stream(owner, stream, Time::ZERO);
        // There are no requests, so no action follows; but a core must be polled after each call.
        while core.poll().is_some() {}
        load = opened.map_err(|why| (at, why))?.load;
        exports.set_most_sectors(owner as usize, Some(stream.sectors));
    }
    Ok(load)
}

/// The basis of guarantees besides the figures themselves.
#[derive(Clone, Debug, Default)]
pub struct Grounds {
    /// Unknown figures of the worst case; mandatory streams are rejected while there are any.
    pub unknown: Figures,
    /// Figures of the worst case that are stated bounds, as text.
    pub bounds: Vec<String>,
    /// How streams are handled when their reservation is exhausted.
    pub exhausted: Exhausted,
    /// The profile's times do not hold under the dispatch order: optional streams are rejected.
    pub other_order: bool,
}

/// Why a stream is not opened.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StreamError {
    /// It cannot be opened, or the export has one.
    #[error(transparent)]
    NotOpened(#[from] OpenStreamError),
    /// The admission test rejects it.
    #[error("{why}")]
    Refused {
        /// Why, with the names of exports.
        why: String,
        /// The nearest that would be admitted.
        nearest: Nearest,
    },
    /// Its requests exceed the longest request of clients.
    #[error("size: expected at most {MAX_BYTES} bytes, found {found}")]
    Large {
        /// Bytes of its requests.
        found: u64,
    },
    /// It is mandatory, and its worst case depends on unknown figures.
    #[error(transparent)]
    NotKnown(#[from] UnknownFigures),
    /// The streams changed faster than the admission test completed.
    #[error("streams come and go too fast: expected them to stay as they are for as long as it takes to work one out")]
    Restless,
    /// The export has a write cache: its writes are acknowledged before any request reaches the
    /// disk.
    #[error("write-cache: expected {WITHOUT_STREAM}, found one that has a write cache")]
    Cached,
    /// The export has a stream.
    #[error("it is a stream already: `stream close` ends that")]
    Exists,
    /// The export's stream was closed, and has requests in flight.
    #[error("its last stream has not ended: requests of it are under way")]
    NotEnded,
    /// The export has no stream.
    #[error("the export has no stream")]
    NoStream,
    /// The engine has ended, or its queue is full.
    #[error("the server ends")]
    Ended,
}

impl From<SendError> for StreamError {
    fn from(_: SendError) -> StreamError {
        StreamError::Ended
    }
}

/// The guarantees of a set of streams.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Promised {
    /// Each export and its reservation, `None` for a mandatory stream. The new stream comes last;
    /// it has an export only if it was opened.
    pub reservations: Vec<(Option<u32>, Option<Dur>)>,
    /// The load on the drive.
    pub load: Load,
    /// The remaining capacity for best effort.
    pub forecast: Forecast,
}

/// The streams of a running server. Its calls block, and some compute for long, so they must not
/// run on async threads.
#[derive(Clone, Debug)]
pub struct Live {
    engine: Outbox<EngineMessage>,
    disk: Arc<Disk>,
    exports: Exports,
    cached: Cached,
    grounds: Arc<Grounds>,
    /// The streams when the last one was opened, and their reservations. Locked while it is copied
    /// and while the engine opens or closes a stream, so that the export's request limit matches
    /// the last change.
    ledger: Arc<Mutex<Ledger>>,
    /// Locked while a stream is opened or reservations are updated, since two such calls would only
    /// invalidate each other's results.
    turn: Arc<Mutex<()>>,
    /// Whether a thread waits for closed streams to end.
    renewing: Arc<AtomicBool>,
}

impl Live {
    /// Creates the streams of `exports` on the server behind `engine`, admitted for `disk`.
    pub fn new(engine: Outbox<EngineMessage>, disk: Arc<Disk>, exports: Exports) -> Live {
        let ledger = Arc::new(Mutex::new(Ledger::new(Disk::clone(&disk))));
        Live {
            engine,
            disk,
            exports,
            cached: Cached::default(),
            grounds: Arc::default(),
            ledger,
            turn: Arc::default(),
            renewing: Arc::default(),
        }
    }

    /// Sets the exports that have a write cache.
    #[must_use]
    pub fn beside_caches(self, cached: Cached) -> Live {
        Live { cached, ..self }
    }

    /// Sets the basis of guarantees.
    pub fn on(self, grounds: Arc<Grounds>) -> Live {
        let ledger = Ledger::new(Disk::clone(&self.disk)).under(grounds.exhausted);
        Live { grounds, ledger: Arc::new(Mutex::new(ledger)), ..self }
    }

    /// Returns the figures of the worst case that are stated bounds, as text.
    pub fn bounds(&self) -> &[String] {
        &self.grounds.bounds
    }

    /// Returns the drive's figures.
    pub fn disk(&self) -> &Disk {
        &self.disk
    }

    fn call<T>(&self, call: impl FnOnce(oneshot::Sender<T>) -> StreamCall) -> Result<T, StreamError> {
        let (reply, answer) = oneshot::channel();
        self.engine.send(EngineMessage::Stream(call(reply)))?;
        answer.blocking_recv().map_err(|_| StreamError::Ended)
    }

    /// Returns the streams at work.
    ///
    /// # Errors
    /// The server has ended.
    pub fn standings(&self) -> Result<Vec<StreamStatus>, StreamError> {
        self.call(|reply| StreamCall::Standings { reply })
    }

    fn fits(&self, stream: &Stream) -> Result<(), StreamError> {
        check_figures(self.grounds.unknown, stream)?;
        if !stream.is_mandatory() && self.grounds.other_order {
            return Err(OpenStreamError::Order.into());
        }
        match u64::from(stream.sectors) * u64::from(self.exports.sector_bytes) {
            found if found > u64::from(MAX_BYTES) => Err(StreamError::Large { found }),
            _ => Ok(()),
        }
    }

    /// Tests whether one more stream would be admitted; without one, returns the current
    /// guarantees.
    ///
    /// # Errors
    /// Why it is rejected, and the nearest that would be admitted.
    pub fn ask(&self, stream: Option<Stream>) -> Result<Promised, StreamError> {
        stream.as_ref().map_or(Ok(()), |s| self.fits(s))?;
        let standings = self.standings()?;
        let found = self.beside(&standings, stream, Changes::All);
        let ledger = found.map_err(|refusal| self.refused(owners(&standings), &refusal, false))?;
        Ok(self.promised(&ledger, &standings, None))
    }

    /// Tests whether all of `new`, exports with their streams, would be admitted beside those at
    /// work, except for those of the exports `gone`.
    ///
    /// # Errors
    /// The index of the first that is rejected, and why.
    pub fn ask_instead(&self, gone: &[u32], new: &[(u32, Stream)]) -> Result<(), (usize, StreamError)> {
        new.iter().enumerate().try_for_each(|(at, n)| self.fits(&n.1).map_err(|e| (at, e)))?;
        let mut standings = self.standings().map_err(|e| (0, e))?;
        standings.retain(|s| !s.closing && !gone.contains(&s.owner));
        let found = self.beside(&standings, new.iter().map(|n| n.1), Changes::Idle);
        let refused = |refusal: Refusal| {
            let at = refusal.stream.saturating_sub(standings.len());
            (at, self.refused(owners(&standings).chain(new.iter().map(|n| n.0)), &refusal, false))
        };
        found.map(drop).map_err(refused)
    }

    /// Admits `new` beside `standings`, where `changes` says which of these may become mandatory.
    fn beside(
        &self,
        standings: &[StreamStatus],
        new: impl IntoIterator<Item = Stream>,
        changes: Changes,
    ) -> Result<Ledger, Refusal> {
        let mut ledger = self.ledger().clone();
        ledger.become_of(&at_work(standings))?;
        let free = |at: usize| standings.get(at).is_none_or(|there| changes.may(there.unfinished));
        new.into_iter().try_for_each(|stream| ledger.add_at_work(stream, free))?;
        Ok(ledger)
    }

    /// Returns the guarantees of a ledger: those of `standings`, and optionally of one more stream.
    fn promised(&self, ledger: &Ledger, standings: &[StreamStatus], last: Option<u32>) -> Promised {
        let (admitted, disk) = (ledger.admitted(), ledger.disk());
        let owners = standings.iter().map(|s| Some(s.owner)).chain([last]);
        let (beside, exhausted) = (BestEffort::usual(disk), self.grounds.exhausted);
        let forecast = forecast(disk, ledger.streams(), &admitted, exhausted, beside).unwrap_or_default();
        let reservations = owners.zip(admitted.reservations.iter().copied()).collect();
        Promised { reservations, load: admitted.load, forecast }
    }

    /// Builds a rejection with the names of the exports of all streams, in order. `later`: the
    /// stream could be opened while others have fewer pending requests.
    fn refused(&self, owners: impl Iterator<Item = u32>, refusal: &Refusal, later: bool) -> StreamError {
        let owners: Vec<u32> = owners.collect();
        let name = |place: usize| {
            let export = owners.get(place).copied();
            let spec = export.and_then(|export| self.exports.specs.get(export as usize));
            spec.map_or_else(|| "the stream".into(), |spec| format!("stream \"{}\"", spec.name))
        };
        let refusal = if self.grounds.other_order { refusal.without_quality() } else { *refusal };
        let mut why = refusal.with_names(name);
        if later {
            why += "; it can be had at an instant at which the requests of other streams leave time for it";
        }
        StreamError::Refused { why, nearest: refusal.nearest }
    }

    fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn turn(&self) -> MutexGuard<'_, ()> {
        self.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Checks whether an export may be a stream.
    ///
    /// # Errors
    /// The export has a write cache.
    pub fn may_stream(&self, export: u32) -> Result<(), StreamError> {
        match self.cached.has(export) {
            true => Err(StreamError::Cached),
            false => Ok(()),
        }
    }

    /// Opens a stream on an export if it is admitted beside the others.
    ///
    /// # Errors
    /// Why it is rejected, and the nearest that would be admitted.
    pub fn open(&self, export: u32, stream: Stream) -> Result<Promised, StreamError> {
        self.may_stream(export)?;
        self.fits(&stream)?;
        let _turn = self.turn();
        let mut changes = Changes::All;
        for _ in 0..TRIES {
            let standings = self.standings()?;
            if let Some(there) = standings.iter().find(|s| s.owner == export) {
                return Err(if there.closing { StreamError::NotEnded } else { StreamError::Exists });
            }
            let found = self.beside(&standings, Some(stream), changes);
            let later = changes != Changes::All;
            let ledger = found.map_err(|refusal| self.refused(owners(&standings).chain([export]), &refusal, later))?;
            let said = self.promised(&ledger, &standings, Some(export));
            match self.begin(export, stream, &at_work(&standings), &ledger)? {
                Ok(()) => return Ok(said),
                Err(NotBegun::Changed) => changes = Changes::All,
                Err(NotBegun::NotOpened(OpenStreamError::Busy)) => changes = changes.fewer(),
                Err(NotBegun::NotOpened(why)) => {
                    // The others may have smaller reservations without it.
                    self.begin_to_renew();
                    return Err(why.into());
                }
            }
        }
        Err(StreamError::Restless)
    }

    /// Opens a stream, the last of a ledger, beside others as they were. If one of these must
    /// become mandatory and has too many pending requests, the call is repeated for a while.
    fn begin(
        &self,
        export: u32,
        stream: Stream,
        beside: &[ServedStream],
        ledger: &Ledger,
    ) -> Result<Result<(), NotBegun>, StreamError> {
        let mut left = INSTANTS;
        loop {
            left -= 1;
            let (beside, admitted) = (beside.to_vec(), ledger.admitted());
            let mut last = self.ledger();
            match self.call(|reply| StreamCall::Begin { owner: export, stream, beside, admitted, reply })? {
                Ok(_) => {
                    *last = ledger.clone();
                    self.exports.set_most_sectors(export as usize, Some(stream.sectors));
                    return Ok(Ok(()));
                }
                Err(NotBegun::NotOpened(OpenStreamError::Busy)) if left > 0 => {
                    drop(last);
                    std::thread::sleep(LOOK_INTERVAL);
                }
                Err(why) => return Ok(Err(why)),
            }
        }
    }

    /// Closes a stream: its export is best effort again. Earlier requests are served as guaranteed.
    ///
    /// # Errors
    /// The export has no stream.
    pub fn close(&self, export: u32) -> Result<(), StreamError> {
        let last = self.ledger();
        if !self.call(|reply| StreamCall::Close { owner: export, reply })? {
            return Err(StreamError::NoStream);
        }
        self.exports.set_most_sectors(export as usize, None);
        drop(last);
        self.begin_to_renew();
        Ok(())
    }

    /// Updates the reservations of the other streams once closed streams have ended. A separate
    /// thread, of which there is one at a time, waits for that. Without it the update happens when
    /// the next stream is opened.
    fn begin_to_renew(&self) {
        if self.renewing.swap(true, Ordering::SeqCst) {
            return;
        }
        let live = self.clone();
        let renews = move || {
            loop {
                // A stream that is closed after this is handled by another thread, unless this one
                // checks again.
                live.renewing.store(false, Ordering::SeqCst);
                if live.renew() != Ok(false) || live.renewing.swap(true, Ordering::SeqCst) {
                    return;
                }
                std::thread::sleep(CLOSE_POLL_INTERVAL);
            }
        };
        if std::thread::Builder::new().name("headtime-renews".into()).spawn(renews).is_err() {
            self.renewing.store(false, Ordering::SeqCst);
        }
    }

    /// Returns whether no stream is closing any more; then the reservations of the others have been
    /// updated.
    fn renew(&self) -> Result<bool, StreamError> {
        let _turn = self.turn();
        let mut ledger = self.ledger().clone();
        let standings = self.standings()?;
        if standings.iter().any(|s| s.closing) {
            return Ok(false);
        }
        let of = at_work(&standings);
        if ledger.become_of(&of).is_ok() {
            // Some may become mandatory, if their pending requests leave time for that.
            for changes in Changes::TRIED {
                let found = ledger.renewed(|at| changes.may(standings[at].unfinished));
                let (of, admitted) = (of.clone(), found.admitted());
                if self.call(|reply| StreamCall::Renew { of, admitted, reply })? {
                    *self.ledger() = found;
                    return Ok(true);
                }
            }
            return Ok(false);
        }
        Ok(true)
    }
}

fn at_work(standings: &[StreamStatus]) -> Vec<ServedStream> {
    standings.iter().map(StreamStatus::at_work).collect()
}

fn owners(standings: &[StreamStatus]) -> impl Iterator<Item = u32> + '_ {
    standings.iter().map(|s| s.owner)
}
