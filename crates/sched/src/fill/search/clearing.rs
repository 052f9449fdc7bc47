//! What a search knows of the wanted sectors left on tracks, which only some policies compare.

use headtime_disk::Kind;

use super::Search;
use crate::fill::candidate::Candidate;
use crate::fill::regions::remaining;
use crate::fill::scene::Scene;
use crate::fill::track::TrackMap;
use crate::tasks::Wants;

impl Search {
    /// Returns the wanted sectors of a track, if they are remembered, or if they may be too many to
    /// be cleared: then it pays to count them once.
    #[inline]
    pub(super) fn on_track<W: Wants>(&mut self, scene: &Scene<'_, W>, track: (u32, u16)) -> Option<u32> {
        let look = &scene.look;
        // The request itself brings some of its own track.
        if !self.remembers || track == look.gap.destination() {
            return None;
        }
        let geometry = &look.model.geometry;
        let known = self.left.on(geometry, track);
        if known.is_none() && self.best.is_some_and(|b| b.of_winner) {
            let map = TrackMap::at(geometry, track)?;
            return Some(self.count(scene, &map, true));
        }
        known
    }

    /// Counts the wanted sectors of a track, and remembers them.
    fn count<W: Wants>(&mut self, scene: &Scene<'_, W>, map: &TrackMap, of_winner: bool) -> u32 {
        let (geometry, widest) = (&scene.look.model.geometry, scene.regions.widest_unit());
        let who = scene.who(of_winner);
        let mut wanted = 0;
        for (i, kind) in [Kind::Read, Kind::Write].into_iter().enumerate() {
            if self.kinds[usize::from(!of_winner)][i] {
                self.scratch.queries += 1;
                wanted += remaining(map, geometry, scene.look.wants, (who, kind), widest, &mut self.scratch.wanted);
            }
        }
        if self.remembers && of_winner {
            self.left.set(geometry, map.place(), wanted);
        }
        wanted
    }

    /// Returns the wanted sectors left on a candidate's track after the request has been served
    /// too.
    pub(super) fn left<W: Wants>(&mut self, scene: &Scene<'_, W>, c: &Candidate, of_winner: bool) -> u32 {
        let geometry = &scene.look.model.geometry;
        let known = if self.remembers && of_winner { self.left.on(geometry, c.track) } else { None };
        let wanted = match (known, TrackMap::at(geometry, c.track)) {
            (Some(known), _) => known,
            (None, Some(map)) => self.count(scene, &map, of_winner),
            (None, None) => return 0,
        };
        wanted.saturating_sub(c.here + self.brought_by_request(scene, c, of_winner))
    }

    /// Returns the wanted sectors of a candidate's track that the request itself brings.
    fn brought_by_request<W: Wants>(&mut self, scene: &Scene<'_, W>, c: &Candidate, of_winner: bool) -> u32 {
        let look = &scene.look;
        let dest = &look.gap.dest;
        if c.track != look.gap.destination() || look.gap.dest_kind != Kind::Read {
            return 0;
        }
        let Some(track) = look.model.geometry.track_of(dest.lbn) else { return 0 };
        let end = (dest.lbn + u64::from(dest.count)).min(track.first_lbn + u64::from(track.lbns));
        self.scratch.queries += 1;
        self.scratch.wanted.reset(dest.lbn, (end - dest.lbn) as u32);
        look.wants.wanted(scene.who(of_winner), Kind::Read, &mut self.scratch.wanted);
        self.scratch.wanted.count(dest.lbn, end)
    }
}
