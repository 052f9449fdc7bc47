//! Streams of exports: those of a configuration at the start, and those that come and go while the
//! server runs.
//!
//! A promise is made from what is known of the drive and from all others that were made. Working
//! that out takes milliseconds and more, so it is done on the thread of whoever asks ([`Live`]),
//! and the engine begins the stream only if its streams are still those that were reckoned with; if
//! not, it is worked out again.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use headtime_disk::profile::Figures;
use headtime_disk::time::{Dur, Time};
use headtime_sched::admit::das::admission::{Disk, Load, Nearest, Refusal};
use headtime_sched::admit::das::forecast::{BestEffort, Forecast, forecast};
use headtime_sched::admit::das::ledger::{AtWork, Ledger};
use headtime_sched::admit::das::rests::{self, NotKnown};
use headtime_sched::admit::das::stream::Stream;
use headtime_sched::admit::das::streams::{Changes, NotOpened, Standing};
use headtime_sched::admit::das::subset::Exhausted;
use headtime_sched::core::Core;
use tokio::sync::oneshot;

use crate::control::caches::Cached;
use crate::engine::inbox::{NotTold, Outbox};
use crate::engine::streams::{NotBegun, StreamCall};
use crate::engine::telling::Telling;
use crate::net::exports::{Exports, MOST_BYTES};

/// What an export with a write cache must be.
pub const WITHOUT_STREAM: &str = "an export without a stream (what its writes are promised is that the disk has them)";

/// How often a stream is worked out again because others ended meanwhile.
const TRIES: u32 = 20;
/// At how many instants a stream is tried to begin where another must be served as a mandatory one
/// from then on, and how far they are apart: at some of them less is waiting to be done.
const INSTANTS: u32 = 50;
const BETWEEN: Duration = Duration::from_millis(7);
/// How long between two looks whether streams that were closed have ended.
const LOOK: Duration = Duration::from_millis(100);

/// Begins the streams of `exports`, by their numbers, on a core to which nothing was told yet.
/// Gives the load that they are.
///
/// # Errors
/// The place of the first that cannot be had beside those before it, why, and what is nearest.
pub fn begin(core: &mut Core, exports: &Exports, wanted: &[(u32, Stream)]) -> Result<Load, (usize, NotOpened)> {
    let mut load = Load::default();
    for (at, &(owner, stream)) in wanted.iter().enumerate() {
        let opened = core.open_stream(owner, stream, Time::ZERO);
        // Nothing waits, so nothing comes of it; but whoever tells a core something asks it then.
        while core.poll().is_some() {}
        load = opened.map_err(|why| (at, why))?.load;
        exports.set_most_sectors(owner as usize, Some(stream.sectors));
    }
    Ok(load)
}

/// What promises rest on beside the figures themselves.
#[derive(Clone, Debug, Default)]
pub struct Grounds {
    /// Figures of the worst case that are unknown: no mandatory stream begins where there are any.
    pub unknown: Figures,
    /// Figures of it that are stated bounds, in words.
    pub bounds: Vec<String>,
    /// What becomes of streams without a reservation left.
    pub exhausted: Exhausted,
    /// The profile's times do not hold under the order in which requests go: no optional stream
    /// begins.
    pub other_order: bool,
}

/// Why a stream is not opened.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StreamError {
    /// It cannot be had, or the export has one.
    #[error(transparent)]
    NotOpened(#[from] NotOpened),
    /// Admission says no.
    #[error("{why}")]
    Refused {
        /// Why, with the names of exports.
        why: String,
        /// What would be nearest.
        nearest: Nearest,
    },
    /// No client could ask for so much at a time.
    #[error("size: expected at most {MOST_BYTES} bytes, found {found}")]
    Large {
        /// Bytes of its requests.
        found: u64,
    },
    /// It is mandatory, and its worst case rests on what is unknown.
    #[error(transparent)]
    NotKnown(#[from] NotKnown),
    /// Streams came and went faster than this one could be worked out.
    #[error("streams come and go too fast: expected them to stay as they are for as long as it takes to work one out")]
    Restless,
    /// The export has a write cache: its writes are acknowledged before the disk is asked for
    /// anything.
    #[error("write-cache: expected {WITHOUT_STREAM}, found one that has a write cache")]
    Cached,
    /// The export has a stream.
    #[error("it is a stream already: `stream close` ends that")]
    Exists,
    /// The export's stream was closed, and has requests under way.
    #[error("its last stream has not ended: requests of it are under way")]
    NotEnded,
    /// The export has no stream.
    #[error("the export has no stream")]
    NoStream,
    /// The engine has ended, or has no time.
    #[error("the server ends")]
    Ended,
}

impl From<NotTold> for StreamError {
    fn from(_: NotTold) -> StreamError {
        StreamError::Ended
    }
}

/// What a set of streams has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Promised {
    /// Each export and its reservation, `None` of one that is served as a mandatory one. The stream
    /// that was asked about comes last, and has an export only if it was opened.
    pub reservations: Vec<(Option<u32>, Option<Dur>)>,
    /// How much of the drive is taken.
    pub load: Load,
    /// What best effort has beside it.
    pub forecast: Forecast,
}

/// The streams of a server that runs. Its calls wait for answers, and some reckon for long: they
/// are not for tasks.
#[derive(Clone, Debug)]
pub struct Live {
    engine: Outbox<Telling>,
    disk: Arc<Disk>,
    exports: Exports,
    cached: Cached,
    grounds: Arc<Grounds>,
    /// The streams as they were when the last was opened, with what was worked out for them. Held
    /// to copy it, and while the engine begins or closes one, so that the export's limit is that of
    /// what came last.
    ledger: Arc<Mutex<Ledger>>,
    /// Held while a stream is opened, or what all have is found anew: two would only make each
    /// other's numbers void.
    turn: Arc<Mutex<()>>,
    /// A thread waits for streams that end.
    renewing: Arc<AtomicBool>,
}

impl Live {
    /// The streams of `exports` of the server behind `engine`, promised from `disk`.
    pub fn new(engine: Outbox<Telling>, disk: Arc<Disk>, exports: Exports) -> Live {
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

    /// The same where some exports have a write cache.
    #[must_use]
    pub fn beside_caches(self, cached: Cached) -> Live {
        Live { cached, ..self }
    }

    /// The same, where promises rest on `grounds`.
    pub fn on(self, grounds: Arc<Grounds>) -> Live {
        let ledger = Ledger::new(Disk::clone(&self.disk)).under(grounds.exhausted);
        Live { grounds, ledger: Arc::new(Mutex::new(ledger)), ..self }
    }

    /// Figures of the worst case that are stated bounds, in words.
    pub fn bounds(&self) -> &[String] {
        &self.grounds.bounds
    }

    /// What is known of the drive.
    pub fn disk(&self) -> &Disk {
        &self.disk
    }

    fn call<T>(&self, call: impl FnOnce(oneshot::Sender<T>) -> StreamCall) -> Result<T, StreamError> {
        let (reply, answer) = oneshot::channel();
        self.engine.tell(Telling::Stream(call(reply)))?;
        answer.blocking_recv().map_err(|_| StreamError::Ended)
    }

    /// The streams at work.
    ///
    /// # Errors
    /// The server ends.
    pub fn standings(&self) -> Result<Vec<Standing>, StreamError> {
        self.call(|reply| StreamCall::Standings { reply })
    }

    fn fits(&self, stream: &Stream) -> Result<(), StreamError> {
        rests::check(self.grounds.unknown, stream)?;
        if !stream.is_mandatory() && self.grounds.other_order {
            return Err(NotOpened::Order.into());
        }
        match u64::from(stream.sectors) * u64::from(self.exports.sector_bytes) {
            found if found > u64::from(MOST_BYTES) => Err(StreamError::Large { found }),
            _ => Ok(()),
        }
    }

    /// Whether one more stream could be had; without one, what those that there are have.
    ///
    /// # Errors
    /// Why not, and what is nearest.
    pub fn ask(&self, stream: Option<Stream>) -> Result<Promised, StreamError> {
        stream.as_ref().map_or(Ok(()), |s| self.fits(s))?;
        let standings = self.standings()?;
        let found = self.beside(&standings, stream, Changes::All);
        let ledger = found.map_err(|refusal| self.refused(owners(&standings), &refusal, false))?;
        Ok(self.promised(&ledger, &standings, None))
    }

    /// Whether all of `new`, streams and their exports, could be had beside those at work now, but
    /// for those of the exports `gone`.
    ///
    /// # Errors
    /// The place of the first that could not, and why.
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

    /// Those of `standings` and more, where `changes` may be served as mandatory ones from now on.
    fn beside(
        &self,
        standings: &[Standing],
        new: impl IntoIterator<Item = Stream>,
        changes: Changes,
    ) -> Result<Ledger, Refusal> {
        let mut ledger = self.ledger().clone();
        ledger.become_of(&at_work(standings))?;
        let free = |at: usize| standings.get(at).is_none_or(|there| changes.may(there.unfinished));
        new.into_iter().try_for_each(|stream| ledger.add_at_work(stream, free))?;
        Ok(ledger)
    }

    /// What the streams of a ledger have: those of `standings`, and perhaps one behind them.
    fn promised(&self, ledger: &Ledger, standings: &[Standing], last: Option<u32>) -> Promised {
        let (admitted, disk) = (ledger.admitted(), ledger.disk());
        let owners = standings.iter().map(|s| Some(s.owner)).chain([last]);
        let (beside, exhausted) = (BestEffort::usual(disk), self.grounds.exhausted);
        let forecast = forecast(disk, ledger.streams(), &admitted, exhausted, beside).unwrap_or_default();
        let reservations = owners.zip(admitted.reservations.iter().copied()).collect();
        Promised { reservations, load: admitted.load, forecast }
    }

    /// A refusal, with the names of the exports of all streams in their order; `later`: of a stream
    /// that can be had where others have less to do than now.
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

    /// Whether an export may be a stream at all.
    ///
    /// # Errors
    /// It has a write cache.
    pub fn may_stream(&self, export: u32) -> Result<(), StreamError> {
        match self.cached.has(export) {
            true => Err(StreamError::Cached),
            false => Ok(()),
        }
    }

    /// Makes an export a stream, if that can be had beside those that there are.
    ///
    /// # Errors
    /// Why not, and what is nearest.
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
                Err(NotBegun::NotOpened(NotOpened::Busy)) => changes = changes.fewer(),
                Err(NotBegun::NotOpened(why)) => {
                    // The others may have less than without it.
                    self.begin_to_renew();
                    return Err(why.into());
                }
            }
        }
        Err(StreamError::Restless)
    }

    /// A stream begins as the last of a ledger, beside others as they were. Where one of these is
    /// to be served as a mandatory one and has too much to do for that, it is tried again for a
    /// while.
    fn begin(
        &self,
        export: u32,
        stream: Stream,
        beside: &[AtWork],
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
                Err(NotBegun::NotOpened(NotOpened::Busy)) if left > 0 => {
                    drop(last);
                    std::thread::sleep(BETWEEN);
                }
                Err(why) => return Ok(Err(why)),
            }
        }
    }

    /// Makes a stream an export like others. What was asked of it before is done as it was
    /// promised.
    ///
    /// # Errors
    /// It is none.
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

    /// When the streams that are closed have ended, the others have what is found without them.
    /// That is waited for on a thread of its own, of which there is one at a time; without it they
    /// have it when the next stream is opened.
    fn begin_to_renew(&self) {
        if self.renewing.swap(true, Ordering::SeqCst) {
            return;
        }
        let live = self.clone();
        let renews = move || {
            loop {
                // A stream that is closed from here on is waited for by another thread, unless this
                // one looks again.
                live.renewing.store(false, Ordering::SeqCst);
                if live.renew() != Ok(false) || live.renewing.swap(true, Ordering::SeqCst) {
                    return;
                }
                std::thread::sleep(LOOK);
            }
        };
        if std::thread::Builder::new().name("headtime-renews".into()).spawn(renews).is_err() {
            self.renewing.store(false, Ordering::SeqCst);
        }
    }

    /// Whether no stream is ending any more; then the others have what was found without those that
    /// have.
    fn renew(&self) -> Result<bool, StreamError> {
        let _turn = self.turn();
        let mut ledger = self.ledger().clone();
        let standings = self.standings()?;
        if standings.iter().any(|s| s.closing) {
            return Ok(false);
        }
        let of = at_work(&standings);
        if ledger.become_of(&of).is_ok() {
            // Some may be served as mandatory ones, if what they have to do leaves time for that.
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

fn at_work(standings: &[Standing]) -> Vec<AtWork> {
    standings.iter().map(Standing::at_work).collect()
}

fn owners(standings: &[Standing]) -> impl Iterator<Item = u32> + '_ {
    standings.iter().map(|s| s.owner)
}
