//! Streams: a fixed number of requests at the start of each period, beside a workload without
//! periods (Reuther and Pohlack 2003, section 3.1).
//!
//! Periods are aligned to the grid of [`headtime_sched::streams::Stream`], counted from the
//! start of the run, so a stream whose start time is within a period starts with the next one. All
//! requests of a period are due at its first instant. They are submitted regardless of earlier
//! requests: a video player does not wait for a late frame.
//!
//! The scheduler is notified before a stream's first request: [`Workload::call`] reports when a
//! stream begins, just before its first period, or ends. A scheduler without guarantees is not
//! notified and serves the same requests as best effort, for comparison.

use headtime_disk::{Dur, Time};
use headtime_sched::streams::{Kinds, Quality, Stream, StreamError};

use super::generator::{Pattern, PatternSpec};
use super::variates::Variates;
use super::{Ask, Refusals, Target, Workload, WorkloadError};

/// Application number of the first stream; the others follow. Other workloads have no such numbers.
pub const FIRST_STREAM: u32 = 1 << 30;
/// Maximum number of streams.
pub const MOST_STREAMS: usize = 1_000;
/// The class of all other requests, if they have no classes of their own.
pub const BEST_EFFORT: &str = "best-effort";

/// Returns the stream of an application number, counted from 0.
#[inline]
pub fn stream_of(owner: u32) -> Option<usize> {
    owner.checked_sub(FIRST_STREAM).map(|i| i as usize).filter(|i| *i < MOST_STREAMS)
}

/// A stream, independent of the disk.
#[derive(Clone, Debug, PartialEq)]
pub struct StreamSpec {
    /// Name in statistics.
    pub name: String,
    /// c: requests per period.
    pub requests: u32,
    /// t: the period.
    pub period: Dur,
    /// q: required share of them done in the period.
    pub quality: Quality,
    /// Maximum number of older requests that one of them may have to wait for.
    pub blocked_by: u32,
    /// Request pattern.
    pub pattern: PatternSpec,
    /// It starts with the first period that begins at or after this time.
    pub start: Time,
    /// Its last period is the last one that begins before this time; `None`: it is endless.
    pub stop: Option<Time>,
}

impl StreamSpec {
    /// Returns the kinds of its requests: reads, writes, or any.
    pub fn kinds(&self) -> Kinds {
        match self.pattern.reads {
            reads if reads.is_all() => Kinds::Reads,
            reads if reads.is_none() => Kinds::Writes,
            _ => Kinds::Any,
        }
    }

    /// Creates an endless stream of random reads of 64 KiB from the start: the one measured in the
    /// paper (section 4).
    pub fn new(name: impl Into<String>, requests: u32, period: Dur, quality: Quality) -> StreamSpec {
        let pattern = PatternSpec::random_reads(64 << 10);
        let (name, start, stop) = (name.into(), Time::ZERO, None);
        StreamSpec { name, requests, period, quality, blocked_by: 0, pattern, start, stop }
    }
}

/// Notification of a scheduler with guarantees about a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamCall {
    /// It begins. The scheduler's answer goes to [`Workload::opened`].
    Open {
        /// Its application number.
        owner: u32,
        /// Its class in statistics.
        class: u16,
        /// Its requirements.
        stream: Stream,
    },
    /// It has ended.
    Close {
        /// Its application number.
        owner: u32,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Not begun; the time at which to open it.
    Before(Time),
    /// The scheduler was asked to open it.
    Called,
    /// The current period's start, and the number of its requests submitted.
    Asking(Time, u32),
    /// Ended.
    Over,
}

#[derive(Clone, Debug)]
struct One {
    stream: Stream,
    pattern: Pattern,
    rng: Variates,
    position: Option<u64>,
    stop: Time,
    state: State,
}

impl One {
    /// Returns when its next request is due.
    fn due(&self) -> Option<Time> {
        match self.state {
            State::Asking(period, _) if period < self.stop => Some(period),
            _ => None,
        }
    }

    /// Returns when the scheduler is to be notified.
    fn call(&self) -> Option<Time> {
        match self.state {
            State::Before(start) => Some(start),
            // The first period without requests begins at the end of the last one.
            State::Asking(period, _) if period >= self.stop => Some(period),
            _ => None,
        }
    }
}

/// Streams, alone or beside another workload.
pub struct Streams {
    inner: Option<Box<dyn Workload>>,
    all: Vec<One>,
    /// The stream whose request is due next.
    soonest: Option<(Time, usize)>,
    calls: Option<(Time, usize)>,
    classes: Vec<String>,
}

impl Streams {
    /// Adds streams to `inner`, if any.
    ///
    /// # Errors
    /// No streams, too many, an invalid one or one whose requests do not fit the disk, two classes
    /// of one name.
    pub fn new(
        specs: &[StreamSpec],
        inner: Option<Box<dyn Workload>>,
        target: &Target,
        seed: u64,
    ) -> Result<Streams, WorkloadError> {
        if !(1..=MOST_STREAMS).contains(&specs.len()) {
            return Err(WorkloadError::range("streams", specs.len(), 1, MOST_STREAMS));
        }
        let mut classes = inner.as_ref().map_or_else(Vec::new, |inner| match inner.classes() {
            [] => vec![BEST_EFFORT.to_owned()],
            some => some.to_vec(),
        });
        if classes.len() + specs.len() > usize::from(u16::MAX) {
            return Err(WorkloadError::range("classes", classes.len() + specs.len(), 1, u16::MAX));
        }
        let mut all = Vec::with_capacity(specs.len());
        for (i, spec) in specs.iter().enumerate() {
            if classes.contains(&spec.name) {
                return Err(WorkloadError::Conflict(format!(
                    "name: expected another for each stream and task, found \"{}\" twice",
                    spec.name.escape_debug()
                )));
            }
            classes.push(spec.name.clone());
            // Random streams with their own numbers: those of tasks are smaller.
            let mut rng = Variates::new(seed, (1 << 50) + i as u64);
            let pattern = Pattern::new(&spec.pattern, target, &mut rng)?;
            let stream = Stream::new(spec.requests, spec.period, spec.quality, pattern.longest())?;
            let stream = stream.only(spec.kinds()).blocked_by(spec.blocked_by)?;
            let stop = spec.stop.unwrap_or(Time::NEVER);
            // Opened before its period begins; at that instant the scheduler might already have
            // used the time that it needs.
            let first = Time(spec.start.0.div_ceil(spec.period.0).saturating_mul(spec.period.0));
            let state = State::Before(Time(first.0.saturating_sub(1)));
            all.push(One { stream, pattern, rng, position: None, stop, state });
        }
        let mut streams = Streams { inner, all, soonest: None, calls: None, classes };
        streams.look();
        Ok(streams)
    }

    /// Returns the requirements of a stream, in the given order.
    pub fn stream(&self, i: usize) -> &Stream {
        &self.all[i].stream
    }

    fn look(&mut self) {
        let soonest = |of: fn(&One) -> Option<Time>| {
            let all = self.all.iter().enumerate();
            all.filter_map(|(i, one)| Some((of(one)?, i))).min()
        };
        (self.soonest, self.calls) = (soonest(One::due), soonest(One::call));
    }
}

impl Workload for Streams {
    fn next_due(&self) -> Option<Time> {
        let theirs = self.inner.as_ref().and_then(|inner| inner.next_due());
        self.soonest.map(|s| s.0).into_iter().chain(theirs).min()
    }

    fn take(&mut self) -> Result<Ask, WorkloadError> {
        let theirs = self.inner.as_ref().and_then(|inner| inner.next_due());
        // Of two requests due at once the stream's comes first, because its period begins.
        let Some((due, i)) = self.soonest.filter(|s| theirs.is_none_or(|t| s.0 <= t)) else {
            let inner = self.inner.as_mut().expect("a request was taken while none was due");
            let ask = inner.take()?;
            if stream_of(ask.owner).is_some() {
                return Err(WorkloadError::Conflict(format!(
                    "application {} is a stream; a request of the workload beside it has this number",
                    ask.owner
                )));
            }
            return Ok(ask);
        };
        let one = &mut self.all[i];
        let State::Asking(period, asked) = one.state else { unreachable!("it is due") };
        one.state = match asked + 1 == one.stream.requests {
            true => State::Asking(period + one.stream.period, 0),
            false => State::Asking(period, asked + 1),
        };
        let drawn = one.pattern.next(&mut one.rng, &mut one.position);
        self.look();
        let class = (self.classes.len() - self.all.len() + i) as u16;
        let owner = FIRST_STREAM + i as u32;
        Ok(Ask { due, kind: drawn.kind, lbn: drawn.lbn, count: drawn.count, fua: drawn.fua, sync: true, owner, class })
    }

    fn finished(&mut self, owner: u32, now: Time) {
        if stream_of(owner).is_none()
            && let Some(inner) = &mut self.inner
        {
            inner.finished(owner, now);
        }
    }

    fn completed(&mut self, ask: &Ask, now: Time) {
        if stream_of(ask.owner).is_none()
            && let Some(inner) = &mut self.inner
        {
            inner.completed(ask, now);
        }
    }

    fn endless(&self) -> bool {
        self.all.iter().any(|one| one.stop == Time::NEVER) || self.inner.as_ref().is_some_and(|inner| inner.endless())
    }

    fn classes(&self) -> &[String] {
        &self.classes
    }

    fn measures(&self) -> Vec<(&'static str, f64)> {
        self.inner.as_ref().map_or_else(Vec::new, |inner| inner.measures())
    }

    fn refusals(&self) -> Option<&Refusals> {
        self.inner.as_ref().and_then(|inner| inner.refusals())
    }

    fn next_call(&self) -> Option<Time> {
        self.calls.map(|c| c.0)
    }

    fn call(&mut self) -> Option<StreamCall> {
        let (_, i) = self.calls?;
        let owner = FIRST_STREAM + i as u32;
        let class = (self.classes.len() - self.all.len() + i) as u16;
        let one = &mut self.all[i];
        let call = match one.state {
            State::Before(_) => {
                one.state = State::Called;
                StreamCall::Open { owner, class, stream: one.stream }
            }
            _ => {
                one.state = State::Over;
                StreamCall::Close { owner }
            }
        };
        self.look();
        Some(call)
    }

    fn opened(&mut self, owner: u32, begins: Time) {
        let one = stream_of(owner).and_then(|i| self.all.get_mut(i));
        let one = one.filter(|one| one.state == State::Called).expect("a stream began that was not asked for");
        assert!(begins.0.is_multiple_of(one.stream.period.0), "{begins} begins no period of {:?}", one.stream);
        one.state = State::Asking(begins, 0);
        self.look();
    }
}

impl From<StreamError> for WorkloadError {
    fn from(e: StreamError) -> WorkloadError {
        let keys: &[&str] = match e {
            StreamError::Requests { .. } => &["requests"],
            StreamError::Period { .. } => &["period"],
            StreamError::Quality { .. } => &["quality"],
            StreamError::Blockers { .. } => &["blocked_by"],
            // It follows from the size, which is checked before.
            _ => &[],
        };
        WorkloadError::Conflict(e.to_string()).about(keys)
    }
}

#[cfg(test)]
mod tests {
    use super::super::variates::Share;
    use super::super::{PlaceSpec, Population, closed};
    use super::*;

    fn target() -> Target {
        Target { capacity: 1_000_000, sector_bytes: 512, geometry: None }
    }

    fn spec(name: &str, requests: u32, ms: u64) -> StreamSpec {
        StreamSpec::new(name, requests, Dur::from_ms(ms), Quality::MANDATORY)
    }

    fn ms(ms: u64) -> Time {
        Time(ms * 1_000_000)
    }

    /// Opens all streams due by `now`, each with its next period.
    fn open_all(s: &mut Streams, now: Time) {
        while s.next_call().is_some_and(|t| t <= now) {
            if let Some(StreamCall::Open { owner, stream, .. }) = s.call() {
                let start = stream.period_start(now);
                s.opened(owner, if start < now { start + stream.period } else { start });
            }
        }
    }

    #[test]
    fn a_period_begins_with_all_its_requests_whatever_became_of_those_before() {
        let mut s = Streams::new(&[spec("a", 3, 100), spec("b", 1, 200)], None, &target(), 1).unwrap();
        assert_eq!((s.next_due(), s.next_call(), s.classes().len()), (None, Some(Time::ZERO), 2));
        open_all(&mut s, Time::ZERO);
        let asks: Vec<Ask> = (0..11).map(|_| s.take().unwrap()).collect();
        let due: Vec<(u64, u32)> = asks.iter().map(|a| (a.due.0 / 1_000_000, a.owner - FIRST_STREAM)).collect();
        let first = [(0, 0), (0, 0), (0, 0), (0, 1)];
        let later = [(100, 0), (100, 0), (100, 0), (200, 0), (200, 0), (200, 0), (200, 1)];
        assert_eq!(due, [&first[..], &later].concat());
        assert!(asks.iter().all(|a| a.count == 128 && a.class == (a.owner - FIRST_STREAM) as u16));
        assert!(s.endless() && s.next_call().is_none());
    }

    #[test]
    fn a_stream_keeps_to_the_grid_and_to_its_start_and_stop() {
        let spec = StreamSpec { start: ms(130), stop: Some(ms(350)), ..spec("a", 2, 100) };
        let mut s = Streams::new(&[spec], None, &target(), 1).unwrap();
        assert!(!s.endless());
        let before = Time(199_999_999);
        assert_eq!((s.next_call(), s.next_due()), (Some(before), None));
        open_all(&mut s, before);
        // Periods that begin at 200 and at 300 ms; the last of them ends at 400.
        let due: Vec<u64> = (0..4).map(|_| s.take().unwrap().due.0 / 1_000_000).collect();
        assert_eq!((due, s.next_due(), s.next_call()), (vec![200, 200, 300, 300], None, Some(ms(400))));
        assert_eq!(s.call(), Some(StreamCall::Close { owner: FIRST_STREAM }));
        assert_eq!((s.next_due(), s.next_call()), (None, None));
    }

    #[test]
    fn a_stream_begins_at_its_start_time_and_not_before() {
        let mut s = Streams::new(&[spec("a", 1, 100)], None, &target(), 1).unwrap();
        let called = s.call();
        assert!(matches!(called, Some(StreamCall::Open { owner: FIRST_STREAM, class: 0, .. })), "{called:?}");
        assert_eq!((s.next_due(), s.next_call()), (None, None));
        s.opened(FIRST_STREAM, ms(500));
        assert_eq!(s.next_due(), Some(ms(500)));
    }

    #[test]
    fn what_is_beside_streams_goes_on_as_it_would_alone() {
        let alone = || Population::of(&closed(2), &target(), 5).unwrap();
        let mut s = Streams::new(&[spec("a", 1, 100)], Some(Box::new(alone())), &target(), 5).unwrap();
        assert_eq!(s.classes(), [BEST_EFFORT, "a"]);
        open_all(&mut s, Time::ZERO);
        let (mut alone, mut seen) = (alone(), 0);
        for _ in 0..50 {
            let ask = s.take().unwrap();
            s.finished(ask.owner, ask.due + Dur::from_ms(7));
            if stream_of(ask.owner).is_none() {
                let theirs = alone.take().unwrap();
                assert_eq!(ask, theirs);
                alone.finished(theirs.owner, theirs.due + Dur::from_ms(7));
                seen += 1;
            }
        }
        assert!((40..50).contains(&seen), "{seen}");
    }

    #[test]
    fn a_sequential_stream_reads_on_from_period_to_period() {
        let mut spec = spec("a", 2, 100);
        spec.pattern.place = PlaceSpec::Sequential;
        let mut s = Streams::new(&[spec], None, &target(), 1).unwrap();
        open_all(&mut s, Time::ZERO);
        let lbns: Vec<u64> = (0..6).map(|_| s.take().unwrap().lbn).collect();
        assert!(lbns.windows(2).all(|w| w[1] == w[0] + 128 || w[1] == 0), "{lbns:?}");
    }

    #[test]
    fn what_cannot_be_asked_for_is_refused() {
        let fault = |specs: &[StreamSpec], inner: Option<Box<dyn Workload>>| {
            Streams::new(specs, inner, &target(), 1).err().expect("it is refused").to_string()
        };
        assert_eq!(fault(&[], None), "streams: expected 1 to 1000, found 0");
        assert!(fault(&[spec("a", 0, 100)], None).contains("requests per period: expected 1 to 10000, found 0"));
        assert!(fault(&[spec("a", 1, 0)], None).contains("period: expected"));
        let twice = fault(&[spec("a", 1, 100), spec("a", 1, 100)], None);
        assert_eq!(twice, "name: expected another for each stream and task, found \"a\" twice");
        let inner = Population::of(&closed(1), &target(), 1).unwrap();
        assert!(fault(&[spec(BEST_EFFORT, 1, 100)], Some(Box::new(inner))).contains("twice"));
        assert_eq!((stream_of(FIRST_STREAM + 3), stream_of(7), stream_of(u32::MAX)), (Some(3), None, None));
    }

    #[test]
    fn a_stream_is_described_in_any_notation_of_its_share_of_reads() {
        let kinds = |reads: f64| {
            let mut spec = spec("film", 1, 500);
            spec.pattern.reads = Share::from_f64(reads).expect("a share");
            spec.kinds()
        };
        assert_eq!([1.0, 0.0, 0.5].map(kinds), [Kinds::Reads, Kinds::Writes, Kinds::Any]);
    }
}
