//! The foreground's segments, and its cache hits as they would be without background work.

use headtime_disk::Geometry;

use super::{Found, Segments, State};

impl Segments {
    /// Marks the last use of a segment as background work, not the foreground's.
    pub(crate) fn used_in_background(&mut self) {
        let (i, before) = self.touched;
        if let Some(s) = self.segments.get_mut(i) {
            s.by_foreground = before;
        }
    }

    /// Returns whether the foreground has used a segment.
    pub(crate) fn is_foregrounds(&self, i: usize) -> bool {
        self.segments[i].by_foreground > 0
    }

    /// Marks a segment as used last, by the foreground or background work.
    pub(super) fn touch_for(&mut self, i: usize, foreground: bool) {
        self.touch(i);
        if !foreground {
            self.used_in_background();
        }
    }

    /// Returns how many segments the foreground has used since the one that its read of `lbn..end`
    /// would hit without background work, whether that one is still held or was evicted; `None`
    /// when it would miss.
    pub(crate) fn foreground_age(&mut self, geometry: &Geometry, lbn: u64, end: u64) -> Option<u32> {
        let used = match self.look_up(geometry, lbn, end) {
            Found::All(i) | Found::Front(i) if self.segments[i].by_foreground > 0 => self.segments[i].by_foreground,
            _ => {
                let at = self.lost.iter_mut().rposition(|s| {
                    s.end > lbn && s.first <= lbn && {
                        s.settle_first(geometry);
                        s.first <= lbn
                    }
                })?;
                // It is about to be read again, into another segment.
                self.lost.remove(at)?.by_foreground
            }
        };
        let newer = self.used_by_foreground_since(used);
        (newer < self.segments.len()).then_some(newer as u32)
    }

    /// Returns how many segments the foreground has used since `used`.
    fn used_by_foreground_since(&self, used: u64) -> usize {
        let held = self.segments.iter().filter(|s| s.state != State::Empty);
        held.chain(&self.lost).filter(|s| s.by_foreground > used).count()
    }

    /// Returns whether background work may take one more segment. A segment is reserved for the
    /// foreground until the foreground has used more than `oldest` others since; background work
    /// may hold all the rest. The drive evicts the least recently used segment, so the foreground's
    /// segments stay until they are older than that.
    pub(crate) fn has_room_for_background(&self, oldest: u32) -> bool {
        let gives_way = self.give_way();
        let in_background = |i: usize| self.segments[i].state != State::Empty && self.segments[i].by_foreground == 0;
        let held = (0..self.segments.len()).filter(|&i| i != gives_way && in_background(i)).count();
        held as u64 + 1 + u64::from(oldest) < self.segments.len() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::three;
    use super::*;

    #[test]
    fn what_the_foreground_would_hit_without_background_work_is_known_by_its_age() {
        let (mut s, g) = three();
        let background = |s: &mut Segments, lbn: u64| {
            s.read(lbn, lbn, lbn + 8);
            s.used_in_background();
        };
        s.read(0, 0, 8);
        s.read(100, 100, 108);
        (0..4).for_each(|n| background(&mut s, 200 + n * 100));
        assert_eq!(s.look_up(&g, 0, 8), Found::Nothing);
        assert_eq!((s.foreground_age(&g, 2, 4), s.foreground_age(&g, 300, 304)), (Some(1), None));
        // It was requested, and is in another segment from now on.
        assert_eq!(s.foreground_age(&g, 2, 4), None);
        s.read(0, 0, 8);
        assert_eq!((s.foreground_age(&g, 2, 4), s.foreground_age(&g, 100, 101)), (Some(0), Some(1)));
        // What background work finds in the foreground's segment stays the foreground's.
        let Found::All(i) = s.look_up(&g, 0, 8) else { panic!("it is held") };
        s.touch(i);
        s.used_in_background();
        assert_eq!(s.foreground_age(&g, 2, 4), Some(0));
    }

    #[test]
    fn four_places_in_turn_would_not_be_hit_in_three_segments_either() {
        let (mut s, g) = three();
        for n in 0..1_000 {
            let lbn = n % 4 * 100;
            assert_eq!(s.foreground_age(&g, lbn, lbn + 8), None);
            s.read(lbn, lbn, lbn + 8);
            assert!(s.lost.len() <= 3 && s.evicted.len() <= 3);
        }
    }

    #[test]
    fn background_work_has_the_segments_that_the_foreground_does_not_come_back_to() {
        for (oldest, most) in [(0, 2), (1, 1), (2, 0)] {
            let (mut s, g) = three();
            // The foreground reads new places; background work takes what it may.
            for n in 0..50 {
                s.read(n * 100, n * 100, n * 100 + 8);
                while s.has_room_for_background(oldest) {
                    let lbn = 6_000 + s.stamp * 10;
                    s.read(lbn, lbn, lbn + 8);
                    s.used_in_background();
                    assert!(s.stamp < 1_000, "no end");
                }
                let background = s.segments.iter().filter(|s| s.state != State::Empty && s.by_foreground == 0).count();
                assert!(background <= most, "{background} of {most}");
                for back in 0..=u64::from(oldest).min(n) {
                    let lbn = (n - back) * 100;
                    assert_ne!(s.look_up(&g, lbn, lbn + 8), Found::Nothing, "{back} before {n}, {oldest}");
                }
            }
            assert_eq!(most > 0, s.stamp > 50);
        }
    }
}
