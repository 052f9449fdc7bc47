//! Optional streams that are served as mandatory ones.
//!
//! A stream that requests a quality below 100% reaches it if all of its requests are served. A
//! mandatory stream needs time for its worst case, but none kept free at the start of its periods:
//! its requests are eligible whatever is in flight. So where there is no room for that, the stream
//! may be feasible as mandatory although it is not as optional, and may leave more for best effort.
//! Both ways are tried if the stream is infeasible as optional, and always beside a few streams;
//! beside many that would take too long. It is served as mandatory if that leaves best effort more
//! ([`super::super::forecast`]).
//!
//! The choice is repeated when a stream is added, and after streams have ended
//! ([`Ledger::renewed`]).

use std::cmp::Reverse;
use std::collections::BTreeSet;

use super::super::forecast::{BestEffort, GLANCE, Length, WHOLE, over};
use super::super::stream::{Quality, Stream};
use super::super::verdict::RefusalReason;
use super::Ledger;

/// Up to this number of streams, each is served in the better way beside the others
/// ([`Ledger::improved`]).
pub(in super::super) const TRIED_BESIDE: usize = 8;
/// With fewer streams than this, one more is tried as mandatory although it is feasible as
/// optional; the others are served as before.
pub(in super::super) const TRIED_ALONE: usize = 32;
/// With fewer streams than this, one more that is infeasible is tried beside them in all
/// [ways](Ledger::ways); with more, beside all of them as optional.
const TRIED_OTHERWISE: usize = 16;
/// Another way is chosen only if it leaves best effort at least this much of what the present one
/// leaves, in thousandths. The random error of the forecast is of this order.
const MORE: u64 = 1_003;
/// Up to this number of optional streams all ways are tried.
const ALL_WAYS: usize = 5;
/// Of more ways than this, those that leave most in a short forecast ([`GLANCE`]) are compared.
const LOOKED_AT: usize = 4;
/// Maximum number of passes over the ways.
const PASSES: usize = 2;
/// Below this load, in parts per million of the time, and with room for crossing commands, the
/// choice gains little.
const LITTLE_PPM: u64 = 50_000;

/// An open stream, and how it is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ServedStream {
    /// Its parameters.
    pub stream: Stream,
    /// Whether it is served as a mandatory one.
    pub as_mandatory: bool,
}

impl From<Stream> for ServedStream {
    /// Returns the stream served at its requested quality.
    fn from(stream: Stream) -> ServedStream {
        ServedStream { stream, as_mandatory: stream.is_mandatory() }
    }
}

impl ServedStream {
    /// Returns the stream with the quality at which it is served.
    pub(super) fn served(self) -> Stream {
        let quality = if self.as_mandatory { Quality::MANDATORY } else { self.stream.quality };
        Stream { quality, ..self.stream }
    }
}

impl Ledger {
    /// Returns these streams and one more, served as optional or as mandatory.
    pub(super) fn with_or_as_mandatory(&self, stream: Stream) -> Result<Ledger, RefusalReason> {
        let as_asked = self.with(stream.into());
        let few = self.streams.len() < TRIED_BESIDE;
        // For a few streams the ways are compared later ([`Ledger::improved`]), unless the load is
        // low. Of more, one costs best effort little if its periods have room for commands in
        // flight.
        let compared = |asked: &Ledger| match few {
            true => asked.asks_little(),
            false => self.streams.len() < TRIED_ALONE && asked.crossing < asked.disk.outstanding(),
        };
        if as_asked.as_ref().is_ok_and(|asked| !compared(asked)) {
            return as_asked;
        }
        let Some(other) = self.with_as_mandatory(stream) else { return as_asked };
        let lengths: &[Length] = if few { &[WHOLE] } else { &[GLANCE, WHOLE] };
        let less = |asked: &Ledger, length| asked.leaves(length) * MORE < other.leaves(length) * 1_000;
        match as_asked {
            Ok(asked) if !lengths.iter().all(|&length| less(&asked, length)) => Ok(asked),
            _ => Ok(other),
        }
    }

    /// Returns whether one more stream is feasible beside these.
    pub(super) fn has_room_for(&self, stream: Stream) -> bool {
        self.with(stream.into()).is_ok() || self.with_as_mandatory(stream).is_some()
    }

    /// Returns these streams and one more optional one, served as mandatory, if w is known.
    fn with_as_mandatory(&self, stream: Stream) -> Option<Ledger> {
        let may = !stream.is_mandatory() && self.disk.worst_is_known;
        may.then(|| self.with(ServedStream { stream, as_mandatory: true }).ok()).flatten()
    }

    /// Returns the same streams served in other ways, with recomputed reservations; only the
    /// feasible ways. The i-th becomes mandatory only if `free(i)`.
    pub(super) fn served_otherwise(&self, free: impl Fn(usize) -> bool) -> Vec<Ledger> {
        let mut ways = match self.streams.len() < TRIED_OTHERWISE && self.disk.worst_is_known {
            true => self.ways(&self.changeable(free)),
            false => vec![self.streams.iter().map(|&stream| stream.into()).collect()],
        };
        ways.retain(|way| !self.lean || !self.at_work().eq(way.iter().copied()));
        ways.iter().filter_map(|way| self.served_so(way).ok()).collect()
    }

    /// Returns whether the load is so low that each of a few streams is tried as mandatory when it
    /// is added, and not again.
    pub(in super::super) fn asks_little(&self) -> bool {
        let room = self.crossing == self.disk.outstanding();
        room && self.admitted().load.expected_ppm < LITTLE_PPM
    }

    /// Returns the streams that may be served in another way than now.
    fn changeable(&self, free: impl Fn(usize) -> bool) -> Vec<usize> {
        let open = |(at, one): (usize, ServedStream)| (one.as_mandatory || free(at)).then_some((at, one.stream));
        let open = self.at_work().enumerate().filter_map(open);
        open.filter(|(_, stream)| !stream.is_mandatory()).map(|(at, _)| at).collect()
    }

    /// Returns the ways in which the streams may be served. Up to [`ALL_WAYS`] in `open`: all.
    /// More: all optional; all mandatory; one mandatory and the others optional; and as now except
    /// for one.
    fn ways(&self, open: &[usize]) -> Vec<Vec<ServedStream>> {
        let now: Vec<ServedStream> = self.at_work().collect();
        let with = |as_mandatory: &dyn Fn(usize) -> bool| {
            let mut way = now.clone();
            open.iter().enumerate().for_each(|(bit, &at)| way[at].as_mandatory = as_mandatory(bit));
            way
        };
        if open.len() <= ALL_WAYS {
            return (0..1 << open.len()).map(|bits: usize| with(&|bit| bits >> bit & 1 == 1)).collect();
        }
        let one = |bit: usize| [with(&|b| b == bit), with(&|b| (b == bit) != now[open[b]].as_mandatory)];
        let all = [with(&|_| false), with(&|_| true)];
        all.into_iter().chain((0..open.len()).flat_map(one)).collect()
    }

    /// Returns a few streams, each optional or mandatory, in the [way](Self::ways) that leaves best
    /// effort most; if not all ways were tried, this is repeated from there. The i-th becomes
    /// mandatory only if `free(i)`.
    pub(super) fn improved(self, free: impl Fn(usize) -> bool) -> Ledger {
        let few = self.streams.len() <= TRIED_BESIDE && self.disk.worst_is_known;
        if !few || self.asks_little() {
            return self;
        }
        // For streams with equal parameters it does not matter which is served how.
        let sorted = |mut way: Vec<ServedStream>| {
            way.sort_unstable();
            way
        };
        let (mut best, mut leaves) = (self, None);
        let mut tried = BTreeSet::from([sorted(best.at_work().collect())]);
        for _ in 0..PASSES {
            let open = best.changeable(&free);
            let mut others: Vec<Ledger> = Vec::new();
            for way in best.ways(&open) {
                if tried.insert(sorted(way.clone())) {
                    others.extend(best.served_so(&way));
                }
            }
            if others.len() > LOOKED_AT {
                others.sort_by_cached_key(|other| Reverse(other.leaves(GLANCE)));
                others.truncate(LOOKED_AT);
            }
            let mut changed = false;
            for other in others {
                let (now, found) = (*leaves.get_or_insert_with(|| best.leaves(WHOLE)), other.leaves(WHOLE));
                if found * 1_000 > now * MORE {
                    (best, leaves, changed) = (other, Some(found), true);
                }
            }
            if !changed || open.len() <= ALL_WAYS {
                break;
            }
        }
        best
    }

    /// Returns the same streams, served in this way, with recomputed reservations.
    pub(super) fn served_so(&self, at_work: &[ServedStream]) -> Result<Ledger, RefusalReason> {
        let mut ledger = Ledger::new(self.disk.clone()).under(self.exhausted);
        ledger.made = self.all_made();
        at_work.iter().try_for_each(|&at_work| ledger.push(at_work))?;
        ledger.settle()?;
        ledger.made.clear();
        Ok(ledger)
    }

    /// Returns the number of best-effort requests in 1,000 seconds beside these streams; zero if
    /// their service times are not known.
    fn leaves(&self, length: Length) -> u64 {
        let beside = BestEffort::usual(&self.disk);
        let found = over(length, &self.disk, &self.streams, &self.admitted(), self.exhausted, beside);
        found.map_or(0, |found| found.per_1000_s)
    }
}

#[cfg(test)]
mod tests {
    use headtime_disk::profile::builtin;
    use headtime_disk::{Dur, Model};

    use super::super::super::admission::admit;
    use super::super::super::disk::{Disk, Service};
    use super::super::super::distribution::Distribution;
    use super::super::super::forecast::forecast;
    use super::super::super::stream::Kinds;
    use super::super::super::subset::Exhausted;
    use super::super::super::verdict::Admitted;
    use super::*;

    /// Requests of these times, in ms, with equal probability.
    fn drive(times: [u64; 3]) -> Disk {
        let worst = Dur::from_ms(times[2].max(20));
        let times = Distribution::from_samples(&times.map(Dur::from_ms), Dur::from_us(100), worst);
        Disk::new(vec![Service::new(128, worst, times.expect("samples"))], 2).expect("a drive")
    }

    fn stream(requests: u32, ms: u64, ppm: u32) -> Stream {
        let quality = Quality::from_ppm(ppm).expect("a quality");
        Stream::new(requests, Dur::from_ms(ms), quality, 128).expect("a stream")
    }

    fn served_as_mandatory(admitted: &Admitted) -> Vec<bool> {
        admitted.reservations.iter().map(Option::is_none).collect()
    }

    /// Beside a mandatory stream, an optional one takes much of what a mandatory one would leave
    /// for best effort.
    #[test]
    fn a_stream_is_served_as_a_mandatory_one_where_that_leaves_best_effort_more() {
        let (mut disk, all) = (drive([5, 6, 20]), [stream(2, 100, 1_000_000), stream(1, 60, 500_000)]);
        let leaves = |served: &[Stream]| {
            let mut ledger = Ledger::new(drive([5, 6, 20]));
            ledger.extend(served).map(|()| ledger.leaves(WHOLE)).expect("an idle drive")
        };
        assert!(leaves(&all) * 6 < leaves(&[all[0], stream(1, 60, 1_000_000)]) * 5);
        let found = admit(&disk, &all).expect("an idle drive");
        assert_eq!(served_as_mandatory(&found), [true, true]);
        // If w is not known it is served as optional.
        disk.worst_is_known = false;
        let found = admit(&disk, &all).expect("an idle drive");
        assert_eq!(served_as_mandatory(&found), [true, false]);
    }

    #[test]
    fn a_stream_that_is_not_had_as_it_asks_may_be_had_as_a_mandatory_one() {
        let (disk, all) = (drive([5, 6, 20]), [stream(4, 200, 1_000_000), stream(1, 60, 900_000)]);
        assert!(Ledger::new(disk.clone()).extend(&all).is_err());
        assert_eq!(served_as_mandatory(&admit(&disk, &all).expect("70% at the worst")), [true, true]);
    }

    /// The first is served as optional as long as it is alone; how both are served does not depend
    /// on which is first.
    #[test]
    fn what_comes_later_changes_how_a_stream_is_served() {
        let (asks, hard) = (stream(1, 60, 900_000), stream(4, 200, 1_000_000));
        let mut ledger = Ledger::new(drive([5, 6, 20]));
        ledger.add(asks).expect("an idle drive");
        assert_eq!(served_as_mandatory(&ledger.admitted()), [false]);
        // If the first may not change at this instant there is no room.
        let refusal = ledger.add_at_work(hard, |_| false).expect_err("no room");
        assert!(refusal.nearest.requests.is_some_and(|n| n < 4), "{refusal}");
        ledger.add(hard).expect("70% at the worst");
        assert_eq!(served_as_mandatory(&ledger.admitted()), [true, true]);
        // If it is only better.
        let mut ledger = Ledger::new(drive([5, 6, 20]));
        ledger.add(stream(1, 60, 500_000)).expect("an idle drive");
        ledger.add(stream(2, 100, 1_000_000)).expect("an idle drive");
        assert_eq!(served_as_mandatory(&ledger.admitted()), [true, true]);
    }

    /// The first two are best served as mandatory, also with the third; with all four the first two
    /// must be served as optional and the others as mandatory.
    #[test]
    fn several_streams_are_served_otherwise_at_once_where_one_more_can_be_had_only_so() {
        let profile = builtin("barracuda36es2").expect("a built-in drive");
        let disk = Disk::of(&profile, &Model::new(&profile).expect("a drive that works"), 2).expect("its times");
        let all = [(2, 200, 950_000), (1, 200, 800_000), (2, 100, 990_000), (3, 500, 800_000)];
        let all = all.map(|(requests, ms, ppm)| stream(requests, ms, ppm).only(Kinds::Reads));
        let served = |n: usize| served_as_mandatory(&admit(&disk, &all[..n]).expect("room"));
        assert_eq!(served(3), [true, true, false]);
        assert_eq!(served(4), [false, false, true, true]);
    }

    /// Only the ninth is tried in both ways.
    #[test]
    fn one_of_many_streams_costs_best_effort_no_more_than_a_mandatory_one() {
        let profile = builtin("ultrastar36z15").expect("a built-in drive");
        let disk = Disk::of(&profile, &Model::new(&profile).expect("a drive that works"), 2).expect("its times");
        let reads = |ms: u64, ppm: u32| stream(1, ms, ppm).only(Kinds::Reads);
        let leaves = |ppm: u32| {
            let all: Vec<Stream> = (0..8).map(|_| reads(150, 500_000)).chain([reads(70, ppm)]).collect();
            let admitted = admit(&disk, &all).expect("room");
            let found = forecast(&disk, &all, &admitted, Exhausted::default(), BestEffort::usual(&disk));
            found.expect("its times are known").per_1000_s
        };
        let (optional, mandatory) = (leaves(700_000), leaves(1_000_000));
        assert!(optional * 100 >= mandatory * 99, "{optional} and {mandatory}");
    }

    #[test]
    fn it_is_served_as_it_asks_when_there_is_no_room_else() {
        let (asks, hard) = (stream(3, 100, 500_000), stream(1, 100, 1_000_000));
        let ledger = Ledger::new(drive([2, 4, 31]));
        let mut ledger = ledger.with_as_mandatory(asks).expect("93 of 100 ms");
        assert_eq!(served_as_mandatory(&ledger.admitted()), [true]);
        ledger.add(hard).expect("31 of 100 ms");
        assert_eq!((served_as_mandatory(&ledger.admitted()), ledger.streams()), (vec![false, true], &[asks, hard][..]));
    }
}
