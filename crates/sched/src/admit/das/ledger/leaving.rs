//! Removal of streams from a ledger.

use super::super::stream::Stream;
use super::super::verdict::{Nearest, Refusal, RefusalReason};
use super::{Group, Ledger, ServedStream};

impl Ledger {
    /// Updates the ledger to these open streams. Those that stay keep their reservations, which
    /// still suffice; they are recomputed only if periods had no room for all commands that may be
    /// in flight when they begin.
    ///
    /// # Errors
    /// The added streams are infeasible, which is possible only for streams that were admitted by
    /// another ledger in another order, because of rounding. The ledger then has only those that
    /// stayed.
    pub fn become_of(&mut self, streams: &[ServedStream]) -> Result<(), Refusal> {
        let kept: Vec<usize> = {
            let mut known = self.at_work().zip(&self.group);
            streams.iter().map_while(|at_work| known.find(|(k, _)| k == at_work)).map(|(_, &group)| group).collect()
        };
        if kept.len() < self.streams.len() {
            let asked: Vec<Stream> = streams[..kept.len()].iter().map(|at_work| at_work.stream).collect();
            self.keep(&asked, &kept);
        }
        if kept.len() == streams.len() {
            return Ok(());
        }
        let refusal = |why| Refusal { stream: kept.len(), why, nearest: Nearest::default() };
        let mut more = self.clone();
        let come = &streams[kept.len()..];
        come.iter().try_for_each(|&new| more.push(new)).map_err(refusal)?;
        more.settle().map_err(refusal)?;
        *self = more;
        Ok(())
    }

    /// Returns the same streams with recomputed reservations, each served as optional or as
    /// mandatory, whichever leaves best effort more; the i-th becomes mandatory only if `free(i)`.
    #[must_use]
    pub fn renewed(&self, free: impl Fn(usize) -> bool) -> Ledger {
        self.anew().unwrap_or_else(|_| self.clone()).improved(free)
    }

    /// Keeps only `streams`; `groups[i]` is the group of `streams[i]`.
    fn keep(&mut self, streams: &[Stream], groups: &[usize]) {
        self.served = groups.iter().map(|&group| self.groups[group].stream).collect();
        self.version += 1;
        self.lean = false;
        let mut now_at: Vec<Option<usize>> = vec![None; self.groups.len()];
        let mut left: Vec<Group> = Vec::new();
        for (first, &was) in groups.iter().enumerate() {
            match now_at[was] {
                Some(at) => left[at].count += 1,
                None => {
                    now_at[was] = Some(left.len());
                    let changed_at = self.version;
                    left.push(Group { count: 1, first, changed_at, sum: None, ..self.groups[was].clone() });
                }
            }
        }
        self.group = groups.iter().map(|&was| now_at[was].expect("each was seen just now")).collect();
        (self.streams, self.groups) = (streams.to_vec(), left);
        self.worst_ppm = self.demand().map_or(self.worst_ppm, |demand| demand.needed_ppm());
        // Without the removed streams there may be room for crossing commands, which makes best
        // effort faster.
        if self.crossing < self.disk.outstanding()
            && let Ok(anew) = self.anew()
        {
            *self = anew;
        }
    }

    /// Returns the streams, and how each is served.
    pub(super) fn at_work(&self) -> impl Iterator<Item = ServedStream> + '_ {
        let each = self.streams.iter().zip(&self.served);
        each.map(|(&stream, served)| ServedStream { stream, as_mandatory: served.is_mandatory() })
    }

    /// Returns the same streams, served alike, with recomputed reservations.
    fn anew(&self) -> Result<Ledger, RefusalReason> {
        self.served_so(&self.at_work().collect::<Vec<_>>())
    }
}

#[cfg(test)]
mod tests {
    use headtime_disk::Dur;
    use headtime_testkit::profiles::{between, rng};

    use super::super::super::disk::{Disk, Service};
    use super::super::super::distribution::Distribution;
    use super::super::super::stream::Quality;
    use super::*;

    /// Requests of 2, 4 or 6 ms with equal probability, and a worst case of 31.
    fn drive() -> Disk {
        let times = Distribution::from_samples(&[2, 4, 6].map(Dur::from_ms), Dur::from_us(100), Dur::from_ms(31));
        Disk::new(vec![Service::new(128, Dur::from_ms(31), times.expect("samples"))], 2).expect("a drive")
    }

    fn optional(requests: u32, ms: u64, ppm: u32) -> Stream {
        Stream::new(requests, Dur::from_ms(ms), Quality::from_ppm(ppm).expect("a quality"), 128).expect("a stream")
    }

    #[test]
    fn without_the_stream_that_took_all_room_for_what_crosses_there_is_that_room_again() {
        let (small, mut ledger) = (optional(1, 500, 900_000), Ledger::new(drive()));
        ledger.add(small).expect("an idle drive");
        // The largest number that fits in that short period.
        let most = (1..30).rev().find(|&n| ledger.clone().add(optional(n, 40, 500_000)).is_ok()).expect("one");
        ledger.add(optional(most, 40, 500_000)).expect("it was found to fit");
        assert!(ledger.admitted().crossing < 2, "{:?}", ledger.admitted());
        ledger.become_of(&[small.into()]).expect("fewer than there were");
        let mut fresh = Ledger::new(drive());
        fresh.add(small).expect("an idle drive");
        assert_eq!(ledger.admitted(), fresh.admitted());
    }

    /// Of two with equal parameters one may be served as optional, and the other as mandatory.
    #[test]
    fn a_stream_that_stays_is_served_as_it_was() {
        let asks = optional(1, 500, 900_000);
        let [optional, mandatory] = [false, true].map(|as_mandatory| ServedStream { stream: asks, as_mandatory });
        for (gone, stays) in [(optional, mandatory), (mandatory, optional)] {
            let mut ledger = Ledger::new(drive());
            ledger.become_of(&[gone, stays]).expect("an idle drive");
            ledger.become_of(&[stays]).expect("fewer than there were");
            assert_eq!(ledger.admitted().reservations[0].is_none(), stays.as_mandatory);
        }
    }

    #[test]
    fn a_set_that_cannot_be_had_leaves_those_that_stayed() {
        let (small, mut ledger) = (optional(60, 500, 900_000), Ledger::new(drive()));
        ledger.add(small).expect("an idle drive");
        let before = ledger.admitted();
        for _ in 0..2 {
            assert!(ledger.become_of(&[small, optional(90, 500, 900_000)].map(ServedStream::from)).is_err());
            assert_eq!((ledger.streams(), ledger.admitted()), (&[small][..], before.clone()));
        }
    }

    /// Streams are added and removed. Those that stay keep their reservations, and a requested
    /// stream is admitted whenever it is feasible beside recomputed reservations.
    #[test]
    fn streams_that_leave_make_room_for_others() {
        let (mut refused, mut had, mut smaller) = (0, 0, 0);
        for seed in 0..4 {
            let rng = &mut rng(seed);
            let samples: Vec<Dur> = (0..400).map(|_| Dur::from_us(between(rng, 2_000, 9_000))).collect();
            let times = Distribution::from_samples(&samples, Dur::from_us(100), Dur::from_ms(30)).expect("samples");
            let disk = Disk::new(vec![Service::new(128, Dur::from_ms(30), times)], 2).expect("a drive");
            let mut ledger = Ledger::new(disk);
            for _ in 0..24 {
                let mut streams = ledger.streams().to_vec();
                if streams.len() > 3 && between(rng, 0, 1) == 0 {
                    let before = ledger.admitted();
                    let gone = between(rng, 0, streams.len() as u64 - 1) as usize;
                    let mut served: Vec<ServedStream> = ledger.at_work().collect();
                    streams.remove(gone);
                    served.remove(gone);
                    ledger.become_of(&served).expect("fewer than there were");
                    let mut reservations = before.reservations;
                    reservations.remove(gone);
                    assert_eq!((ledger.streams(), ledger.admitted().reservations), (&streams[..], reservations));
                    let load = ledger.anew().expect("fewer than there were").admitted().load;
                    assert_eq!(ledger.admitted().load, load);
                }
                let ppm = [1_000_000, 950_000, 500_000][between(rng, 0, 2) as usize];
                let quality = Quality::from_ppm(ppm).expect("a quality");
                let period = Dur::from_ms([500, 500, 1_000][between(rng, 0, 2) as usize]);
                let stream = Stream::new(between(rng, 1, 20) as u32, period, quality, 128).expect("a stream");
                let anew = ledger.anew().and_then(|mut anew| anew.extend(&[stream]).map(|()| anew.admitted()));
                let before = ledger.admitted();
                match ledger.add(stream) {
                    Ok(()) => had += 1,
                    Err(refusal) => {
                        assert!(anew.is_err(), "seed {seed}: {refusal}");
                        assert_eq!(ledger.admitted(), before);
                        refused += 1;
                    }
                }
                smaller += u64::from(anew.is_ok_and(|anew| anew != ledger.admitted()));
            }
        }
        assert!(had > 8 && refused > 4 && smaller > 2, "{had}, {refused}, {smaller}");
    }
}
