//! Where the head's time goes, request by request.

use headtime_disk::command::{Command, Completion, MediaTimes};
use headtime_disk::model::Model;
use headtime_disk::time::Dur;
use headtime_sim::observe::Observer;

/// Where the head's time went, from the drive's own knowledge.
///
/// Transfer is the time in which a request's sectors pass when they are read from front to back, track ends included;
/// the rest of the time on its tracks is rotational latency. On a drive that reads on arrival this differs from when
/// the first sector was read: a head that lands inside a request begins at once, but the wait for its front is a wait
/// like any other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HeadParts {
    /// Moving to the first track.
    pub seek: Dur,
    /// Rotational latency.
    pub rotate: Dur,
    /// Transfer.
    pub transfer: Dur,
}

impl HeadParts {
    /// The parts of one access; `None` for a range that is not on the drive.
    pub fn of(model: &Model, command: &Command, m: &MediaTimes) -> Option<HeadParts> {
        let place = model.place(command.lbn, command.count, command.kind)?;
        let on_tracks = m.end.since(m.seek_end);
        let transfer = Dur(place.transfer.0.min(on_tracks.0));
        Some(HeadParts { seek: m.seek_end.since(m.start), rotate: on_tracks - transfer, transfer })
    }

    /// Seek, rotation and transfer in percent of their sum.
    pub fn percent(&self) -> [f64; 3] {
        let parts = [self.seek, self.rotate, self.transfer].map(Dur::as_secs_f64);
        let sum: f64 = parts.iter().sum();
        parts.map(|p| 100.0 * p / sum)
    }
}

/// Adds up the parts while a run goes on.
#[derive(Clone, Debug)]
pub struct HeadWatch<'a> {
    model: &'a Model,
    parts: HeadParts,
}

impl<'a> HeadWatch<'a> {
    /// For a drive whose mechanics are these.
    pub fn new(model: &'a Model) -> HeadWatch<'a> {
        HeadWatch { model, parts: HeadParts::default() }
    }

    /// The sums so far.
    pub fn parts(&self) -> HeadParts {
        self.parts
    }
}

impl Observer for HeadWatch<'_> {
    fn completed(&mut self, command: &Command, completion: &Completion) {
        let Some(m) = &completion.media else { return };
        let Some(p) = HeadParts::of(self.model, command, m) else { return };
        self.parts.seek += p.seek;
        self.parts.rotate += p.rotate;
        self.parts.transfer += p.transfer;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use headtime_disk::command::Kind;
    use headtime_disk::profile;
    use headtime_disk::time::Time;

    #[test]
    fn a_turn_spent_inside_a_request_is_rotation_but_for_its_sectors() {
        let model = Model::new(&profile::builtin("atlas10k").unwrap()).unwrap();
        let command = Command { id: 0, kind: Kind::Read, lbn: 1000, count: 8, fua: false };
        let sectors = model.place(1000, 8, Kind::Read).unwrap().transfer;
        let at = |ms: u64| Time::ZERO + Dur::from_ms(ms);
        // The head lands inside the request: it reads at once, and is done a turn later.
        let m = MediaTimes { start: at(0), seek_end: at(2), transfer_start: at(2), end: at(8) };
        let p = HeadParts::of(&model, &command, &m).unwrap();
        assert_eq!((p.seek, p.transfer, p.rotate), (Dur::from_ms(2), sectors, Dur::from_ms(6) - sectors));
        assert!((p.percent().iter().sum::<f64>() - 100.0).abs() < 1e-9);
    }
}
