//! Large requests in pieces, where a policy shares the disk.
//!
//! A client may ask for 32 MiB at once, which take a disk up to a second, and no policy can
//! interrupt a command. Beside such requests an export of another client would lose its share
//! whenever it is without a request for a moment. So a request of more than [`PIECE_BYTES`] is
//! submitted in pieces, as the kernel's block layer does (`BLK_DEF_MAX_SECTORS_CAP`). They arrive
//! together and continue each other, so they are dispatched without a gap while their export has
//! the turn. The client gets one answer, when the last piece is finished.
//!
//! Streams have requests of the sizes that they declared, which are never divided.
//!
//! A request of a reorganised export is in pieces, too, if its sectors are not in one place.

use bytes::BytesMut;
use headtime_disk::{Kind, Time};
use headtime_sched::TaskRange;

use super::messages::{Answer, Piece, Submission};
use crate::device::Fault;

/// Bytes of a piece: the largest command of the kernel's block layer.
pub(crate) const PIECE_BYTES: u64 = 1280 << 10;
/// Pieces in progress at most. A request that finds no room for its pieces is not divided.
pub(crate) const MAX_PIECES: usize = 1024;

/// Sectors of a piece.
fn piece_sectors(sector_bytes: u32) -> u32 {
    (PIECE_BYTES / u64::from(sector_bytes)).max(1) as u32
}

/// A divided request.
#[derive(Debug)]
struct Whole {
    submission: Submission,
    /// Pieces that are not finished.
    left: usize,
    /// A read's data.
    data: BytesMut,
    /// Why the first piece that failed did.
    fault: Option<Fault>,
    /// When the first piece was dispatched.
    dispatched: Option<Time>,
}

/// All divided requests.
#[derive(Debug, Default)]
pub(crate) struct Pieces {
    wholes: Vec<Option<Whole>>,
    free: Vec<u32>,
    /// Pieces in progress.
    count: usize,
}

impl Pieces {
    /// Returns the places of a request in pieces of a limited size. They stay as they are if there
    /// is no room for that number of pieces.
    pub(crate) fn limited(&self, places: Vec<TaskRange>, sector_bytes: u32) -> Vec<TaskRange> {
        let each = u64::from(piece_sectors(sector_bytes));
        let pieces: u64 = places.iter().map(|place| place.count.div_ceil(each)).sum();
        if pieces <= 1 || pieces > MAX_PIECES.saturating_sub(self.count) as u64 {
            return places;
        }
        let cut = |place: TaskRange| {
            (place.lbn..place.end())
                .step_by(each as usize)
                .map(move |lbn| TaskRange { lbn, count: each.min(place.end() - lbn) })
        };
        places.into_iter().flat_map(cut).collect()
    }

    /// Returns the pieces of a request, which are at these places, in order.
    pub(crate) fn divide(
        &mut self,
        submission: Submission,
        places: &[TaskRange],
        sector_bytes: u32,
    ) -> Vec<Submission> {
        let at = self.free.pop().unwrap_or_else(|| {
            self.wholes.push(None);
            (self.wholes.len() - 1) as u32
        });
        let mut offset = 0;
        let piece = |place: &TaskRange| {
            let (from, count) = (offset, place.count as u32);
            offset += count;
            let bytes = |sectors: u32| sectors as usize * sector_bytes as usize;
            let data = match submission.kind {
                Kind::Write => submission.data.slice(bytes(from)..bytes(from + count)),
                Kind::Read | Kind::Flush => submission.data.clone(),
            };
            Submission {
                kind: submission.kind,
                lbn: place.lbn,
                count,
                fua: submission.fua,
                owner: submission.owner,
                data,
                piece_of: Some(Piece { whole: at, offset: from }),
                ..Submission::flush()
            }
        };
        let all: Vec<Submission> = places.iter().map(piece).collect();
        assert_eq!(offset, submission.count, "the places are those of the request");
        self.count += all.len();
        let size = if submission.kind == Kind::Read { submission.bytes(sector_bytes) as usize } else { 0 };
        let data = BytesMut::zeroed(size);
        let left = all.len();
        self.wholes[at as usize] = Some(Whole { submission, left, data, fault: None, dispatched: None });
        all
    }

    /// Takes the answer to a request or to a piece of one, which was dispatched at an instant if it
    /// was. Returns the client's request, when its first part was dispatched, and the answer to it;
    /// `None` while other pieces of it are in progress.
    pub(crate) fn finished(
        &mut self,
        submission: Submission,
        dispatched: Option<Time>,
        answer: Answer,
    ) -> Option<(Submission, Option<Time>, Answer)> {
        let Some(Piece { whole: at, offset }) = submission.piece_of else {
            return Some((submission, dispatched, answer));
        };
        let whole = self.wholes[at as usize].as_mut().expect("a piece belongs to a request in progress");
        self.count -= 1;
        whole.left -= 1;
        whole.dispatched = whole.dispatched.into_iter().chain(dispatched).min();
        match answer {
            Ok(data) if submission.kind == Kind::Read => {
                let sector = whole.data.len() as u64 / u64::from(whole.submission.count.max(1));
                let from = sector * u64::from(offset);
                whole.data[from as usize..from as usize + data.len()].copy_from_slice(&data);
            }
            Ok(_) => {}
            Err(fault) => _ = whole.fault.get_or_insert(fault),
        }
        if whole.left > 0 {
            return None;
        }
        self.free.push(at);
        let Whole { submission, data, fault, dispatched, .. } =
            self.wholes[at as usize].take().expect("looked at above");
        Some((submission, dispatched, fault.map_or(Ok(data.freeze()), Err)))
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    /// A request of `count` sectors of 512 bytes; a write's sectors have their numbers.
    fn request(kind: Kind, lbn: u64, count: u32) -> Submission {
        let data = if kind == Kind::Write { contents(lbn, count) } else { Bytes::new() };
        Submission { kind, lbn, count, fua: kind == Kind::Write, owner: 3, data, ..Submission::flush() }
    }

    /// Divides a request that is in one place, as far as there is room.
    fn divide(all: &mut Pieces, submission: Submission) -> Vec<Submission> {
        let place = TaskRange { lbn: submission.lbn, count: u64::from(submission.count) };
        let places = all.limited(vec![place], 512);
        if places.len() > 1 { all.divide(submission, &places, 512) } else { Vec::new() }
    }

    fn contents(lbn: u64, count: u32) -> Bytes {
        (lbn..lbn + u64::from(count)).flat_map(|sector| [sector as u8; 512]).collect()
    }

    #[test]
    fn a_large_read_is_answered_once_with_all_its_data_in_any_order_of_its_pieces() {
        let mut all = Pieces::default();
        for order in [[0, 1, 2], [2, 0, 1]] {
            let mut pieces: Vec<Option<Submission>> =
                divide(&mut all, request(Kind::Read, 1_000, 6_000)).into_iter().map(Some).collect();
            let places: Vec<(u64, u32)> = pieces.iter().flatten().map(|p| (p.lbn, p.count)).collect();
            assert_eq!(places, [(1_000, 2_560), (3_560, 2_560), (6_120, 880)]);
            for (n, i) in order.into_iter().enumerate() {
                let piece = pieces[i].take().unwrap();
                let (data, at) = (contents(piece.lbn, piece.count), Some(Time(50 - n as u64)));
                let answered = all.finished(piece, at, Ok(data));
                assert_eq!(answered.is_some(), n == 2);
                let Some((whole, dispatched, answer)) = answered else { continue };
                assert_eq!((whole.lbn, whole.count, dispatched), (1_000, 6_000, Some(Time(48))));
                assert_eq!(answer.unwrap(), contents(1_000, 6_000));
            }
        }
        assert_eq!((all.count, all.wholes.len()), (0, 1));
    }

    #[test]
    fn a_large_write_has_its_data_in_pieces_and_fails_if_one_of_them_does() {
        let mut all = Pieces::default();
        let pieces = divide(&mut all, request(Kind::Write, 7, 5_121));
        assert_eq!(pieces.len(), 3);
        assert!(pieces.iter().all(|p| p.fua && p.owner == 3 && p.data == contents(p.lbn, p.count)));
        let answers: Vec<_> = pieces
            .into_iter()
            .zip([Ok(Bytes::new()), Err(Fault::NoSpace), Err(Fault::Io)])
            .map(|(piece, answer)| all.finished(piece, None, answer).map(|(_, _, answer)| answer))
            .collect();
        assert_eq!(answers, [None, None, Some(Err(Fault::NoSpace))]);
    }

    #[test]
    fn small_requests_flushes_and_what_finds_no_room_are_not_divided() {
        let mut all = Pieces::default();
        for one in [request(Kind::Read, 0, 2_560), request(Kind::Write, 9, 1), Submission::flush()] {
            assert!(divide(&mut all, one).is_empty());
        }
        // 26 pieces each.
        let mut large = || divide(&mut all, request(Kind::Read, 0, 65_536)).len();
        let pieces: usize = std::iter::from_fn(|| Some(large()).filter(|&n| n > 0)).sum();
        assert_eq!(pieces, 39 * 26);
    }

    #[test]
    fn a_request_whose_sectors_are_in_several_places_is_answered_in_its_own_order() {
        let mut all = Pieces::default();
        let places = [(5_000, 8), (1_008, 4), (4_000, 2_600)].map(|(lbn, count)| TaskRange { lbn, count });
        let places = all.limited(places.to_vec(), 512);
        let cut: Vec<(u64, u64)> = places.iter().map(|p| (p.lbn, p.count)).collect();
        assert_eq!(cut, [(5_000, 8), (1_008, 4), (4_000, 2_560), (6_560, 40)]);
        let mut pieces = all.divide(request(Kind::Read, 1_000, 2_612), &places, 512);
        pieces.reverse();
        let answers = pieces.into_iter().filter_map(|piece| {
            let data = contents(piece.lbn, piece.count);
            all.finished(piece, None, Ok(data))
        });
        let [(whole, _, answer)]: [_; 1] = answers.collect::<Vec<_>>().try_into().unwrap();
        assert_eq!((whole.lbn, whole.count), (1_000, 2_612));
        let expected = [contents(5_000, 8), contents(1_008, 4), contents(4_000, 2_600)].concat();
        assert_eq!(answer.unwrap(), expected);
    }
}
