//! The search that the papers' algorithms share: which cells are examined, in what order, and what
//! is kept (Thereska 2003 sections 4.4 to 4.6).
//!
//! A [`Policy`] is an algorithm: whether it also starts from the edges of the disk, and how it
//! compares candidates. The search itself is the same, and can be interrupted anywhere:
//! [`Search::step`] continues for a given cost, [`Search::best`] returns the best plan so far. The
//! quick pass is a step; refinement is more steps.
//!
//! # Order
//!
//! 1. the destination's command begun earlier (a merged leg);
//! 2. the destination's cell, the source's, and those next to the source's;
//! 3. from source and destination outwards, alternating: up, down, up, down;
//! 4. if the policy asks for it ("EP", extra pass): for every two parts of the cost spent so far,
//!    one on cells from the outermost and innermost cylinders, alternating. Thereska 2003 splits
//!    the quanta of the quick pass two to one; interleaved, the split is the same wherever the
//!    search is stopped.
//!
//! Cells without a wanted region are not entered, nor are those where the head could not stay long
//! enough for one unit, or for a better plan than the best so far: searches end sooner, and find
//! the same. In a cell only tracks are examined over whose wanted regions the head can be.
//! "Outermost" is the outermost cylinder on which there is time for a unit: beyond it the extra
//! pass could find nothing.
//!
//! # The lottery
//!
//! The winner's candidates take precedence over all others (section 4.5). Candidates of other
//! sessions are sought in the destination's cell and within one cell of the source only, and only
//! until the winner has one.
//!
//! # Cost
//!
//! One for each cell entered, each track examined and each query of the task layer.

mod clearing;

use headtime_disk::{Kind, Model};

use super::candidate::{Candidate, Look, Scratch};
use super::cells::Tracks;
use super::gap::{Plan, Window};
use super::left::Left;
use super::scene::Scene;
use super::track::TrackMap;
use super::walk::{Next, Walk};
use crate::tasks::{Wants, Who};

/// Quality of a candidate, compared lexicographically.
pub(crate) type Score = [u64; 3];

/// One of the papers' algorithms.
#[derive(Debug)]
pub struct Policy {
    /// Its name, as in Thereska 2003.
    pub name: &'static str,
    /// A third of the search starts from the innermost and outermost cylinders.
    pub edges: bool,
    /// Its score depends on the wanted sectors left on the track.
    pub needs_left: bool,
    /// Angles are compared, not sectors.
    pub by_angle: bool,
    /// Returns the score of this number of wanted sectors and this angle (in 2^-32 revolutions),
    /// with this number of wanted sectors left on the track (0 when not needed).
    pub score: fn(sectors: u32, turn: u64, left: u32) -> Score,
    /// Returns an upper bound of the score for at most this number of sectors and this angle, with
    /// at least this number of wanted sectors left on the track.
    pub most: fn(sectors: u32, turn: u64, left: u32) -> Score,
}

/// A search for one gap, at any stage.
#[derive(Clone, Debug)]
pub struct Search {
    policy: &'static Policy,
    best: Option<Best>,
    merged: bool,
    /// The cells examined so far.
    walk: Walk,
    at: Option<At>,
    /// Read, write: whether the winner wants any; whether any session does.
    kinds: [[bool; 2]; 2],
    scratch: Scratch,
    looked: u64,
    left: Left,
    /// Whether counts of tracks are remembered.
    remembers: bool,
    windows: [Option<Cached>; 2],
    /// From this distance on a head switch takes no longer than the seek itself.
    apart: u32,
}

#[derive(Clone, Copy, Debug)]
struct Best {
    candidate: Candidate,
    score: Score,
    of_winner: bool,
}

/// The cell being searched.
#[derive(Clone, Copy, Debug)]
struct At {
    tracks: Tracks,
    winner: u64,
    others: u64,
    group: usize,
    /// The most that can pass there: sectors, and their angle.
    most: (u32, u64),
}

/// The last window computed for a kind. Surfaces of one cylinder share it, except the source's and
/// the destination's where the head switch determines the time.
#[derive(Clone, Copy, Debug)]
struct Cached {
    cylinder: u32,
    same: (bool, bool),
    window: Option<(Window, u64)>,
}

impl Search {
    /// Starts a search.
    pub fn begin<W: Wants>(policy: &'static Policy, scene: &Scene<'_, W>) -> Search {
        let any = |who| [Kind::Read, Kind::Write].map(|kind| scene.look.wants.any(who, kind));
        let none = scene.winner == Who::Anyone;
        let kinds = [any(scene.winner), if none { [false; 2] } else { any(Who::Anyone) }];
        Search {
            policy,
            best: None,
            merged: false,
            walk: Walk::begin(scene),
            at: None,
            kinds,
            scratch: Scratch::default(),
            looked: 0,
            left: Left::default(),
            remembers: false,
            windows: [None; 2],
            apart: surfaces_apart(scene.look.model),
        }
    }

    /// Returns the same search with what earlier ones have learned of tracks.
    pub(super) fn remembering<W>(mut self, mut left: Left, scene: &Scene<'_, W>) -> Search {
        if self.policy.needs_left {
            left.of(scene.winner);
            self.remembers = self.kinds == [[true, false]; 2] && !scene.regions.is_shared();
        }
        Search { left, ..self }
    }

    /// Returns the counts of tracks.
    pub(super) fn counts(&self) -> &Left {
        &self.left
    }

    /// Returns the counts of tracks, to be changed.
    pub(super) fn counts_mut(&mut self) -> &mut Left {
        &mut self.left
    }

    /// Returns the same search, restricted to what the destination's own command can bring.
    pub fn merged_only(self) -> Search {
        Search { walk: self.walk.ended(), ..self }
    }

    /// Returns the best plan so far. It fits into the gap for which the search was begun.
    #[inline]
    pub fn best(&self) -> Option<Plan> {
        self.best.map(|b| b.candidate.plan)
    }

    /// Returns the best candidate so far, and whether it is the winner's.
    pub fn best_candidate(&self) -> Option<(Candidate, bool)> {
        self.best.map(|b| (b.candidate, b.of_winner))
    }

    /// Returns the cost so far.
    #[inline]
    pub fn cost(&self) -> u64 {
        self.looked + self.scratch.queries
    }

    /// Returns the cost spent around source and destination, and from the edges. Merging belongs to
    /// neither.
    pub fn spent(&self) -> (u64, u64) {
        self.walk.spent()
    }

    /// Returns whether nothing is left to examine.
    #[inline]
    pub fn exhausted(&self) -> bool {
        self.at.is_none() && self.merged && self.walk.is_over()
    }

    /// Continues until at least `budget` has been spent, possibly slightly more, or nothing is
    /// left. Returns the cost spent.
    pub fn step<W: Wants>(&mut self, scene: &Scene<'_, W>, budget: u64) -> u64 {
        let begin = self.cost();
        let look = Look { by_angle: self.policy.by_angle, ..scene.look };
        while self.cost() - begin < budget {
            let before = self.cost();
            if !self.merged {
                self.merged = true;
                self.look_merged(scene, &look);
                continue;
            }
            match &mut self.at {
                Some(at) => {
                    let at = *at;
                    let mut tracks = at.tracks;
                    match tracks.next() {
                        Some(track) => {
                            let passes = self.look_at(scene, &look, track, &at);
                            if !passes && self.is_apart(&look, track.0) {
                                // The result for one surface holds for the whole cylinder.
                                tracks.leave_cylinder(track.0);
                            }
                            self.at = Some(At { tracks, ..at });
                        }
                        None => self.at = None,
                    }
                    self.walk.spend(at.group, self.cost() - before);
                }
                None => {
                    if !self.enter_next(scene) {
                        break;
                    }
                }
            }
        }
        self.cost() - begin
    }

    /// Enters the next cell; false when there is none.
    fn enter_next<W: Wants>(&mut self, scene: &Scene<'_, W>) -> bool {
        let [winner, anyone] = self.kinds.map(|kinds| kinds != [false; 2]);
        let next = self.walk.next(scene, self.policy.edges, winner, anyone);
        self.looked += u64::from(next.is_some());
        let at = |Next { cell, winner, others, group }| {
            let (tracks, most) = (scene.regions.cells().tracks(cell), self.walk.most(scene, cell));
            At { tracks, winner, others, group, most }
        };
        self.at = next.map(at);
        self.at.is_some()
    }

    /// Returns whether a candidate of the winner, or of another session, with at most this number
    /// of sectors and this angle could be kept. `on_track`: the wanted sectors of its track, where
    /// known.
    #[inline]
    fn worth(
        policy: &Policy,
        best: &Option<Best>,
        of_winner: bool,
        (sectors, turn): (u32, u64),
        on_track: Option<u32>,
    ) -> bool {
        // Without a count nothing may be left.
        let left = on_track.map_or(0, |on_track| on_track.saturating_sub(sectors));
        match best {
            Some(b) if b.of_winner == of_winner => (policy.most)(sectors, turn, left) > b.score,
            Some(b) => of_winner && !b.of_winner,
            None => true,
        }
    }

    /// Returns whether anything is to be sought, for the winner or for others.
    #[inline]
    fn sought(&self, of_winner: bool, kind: usize) -> bool {
        self.kinds[usize::from(!of_winner)][kind] && (of_winner || self.best.is_none_or(|b| !b.of_winner))
    }

    /// Returns whether head switches play no part in moves to and from a cylinder.
    #[inline]
    fn is_apart<W: Wants>(&self, look: &Look<'_, W>, cylinder: u32) -> bool {
        let apart = |to: (u32, u16)| cylinder.abs_diff(to.0) >= self.apart;
        apart(look.gap.source()) && apart(look.gap.destination())
    }

    /// Examines one track. Returns whether anything sought passes there in time, as far as regions
    /// tell.
    #[inline]
    fn look_at<W: Wants>(&mut self, scene: &Scene<'_, W>, look: &Look<'_, W>, track: (u32, u16), at: &At) -> bool {
        if !look.allowed(track) {
            return true;
        }
        let on_track = self.on_track(scene, track);
        if self.best.is_some_and(|b| b.of_winner) && !Search::worth(self.policy, &self.best, true, at.most, on_track) {
            return true;
        }
        let mut passes = false;
        let mut map: Option<TrackMap> = None;
        for (i, kind) in [Kind::Read, Kind::Write].into_iter().enumerate() {
            let sought = [self.sought(true, i) && at.winner != 0, self.sought(false, i) && at.others != 0];
            if sought == [false; 2] {
                continue;
            }
            let Some((window, arc)) = self.window(scene, look, track, i, kind) else { continue };
            for (of_winner, bits) in [(true, at.winner), (false, at.others)] {
                if bits & arc == 0 || !sought[usize::from(!of_winner)] || !self.sought(of_winner, i) {
                    continue;
                }
                passes = true;
                let map = match map {
                    Some(map) => map,
                    None => {
                        self.looked += 1;
                        let Some(found) = TrackMap::at(&look.model.geometry, track) else { return passes };
                        *map.insert(found)
                    }
                };
                let who = scene.who(of_winner);
                let (policy, best) = (self.policy, self.best);
                let worth = |sectors, turn| Search::worth(policy, &best, of_winner, (sectors, turn), on_track);
                let found = look.on_track(&map, &window, (who, kind), &mut self.scratch, worth);
                let again = |scratch: &mut Scratch| look.carefully(&map, &window, (who, kind), scratch, worth);
                self.offer(scene, look, found, of_winner, again);
            }
        }
        passes
    }

    /// Returns the window on a track and the regions that pass in it.
    #[inline]
    fn window<W: Wants>(
        &mut self,
        scene: &Scene<'_, W>,
        look: &Look<'_, W>,
        track: (u32, u16),
        i: usize,
        kind: Kind,
    ) -> Option<(Window, u64)> {
        let tells = |to: (u32, u16)| track.1 == to.1 && track.0.abs_diff(to.0) < self.apart;
        let same = (tells(look.gap.source()), tells(look.gap.destination()));
        if let Some(c) = self.windows[i].filter(|c| c.cylinder == track.0 && c.same == same) {
            return c.window;
        }
        let rotation = &look.model.mechanics.rotation;
        let window = look.window(track, kind).map(|w| (w, scene.regions.in_window(rotation, &w)));
        self.windows[i] = Some(Cached { cylinder: track.0, same, window });
        window
    }

    /// Examines the destination's own command, begun earlier.
    fn look_merged<W: Wants>(&mut self, scene: &Scene<'_, W>, look: &Look<'_, W>) {
        self.looked += 1;
        let kind = usize::from(look.gap.dest_kind == Kind::Write);
        for of_winner in [true, false] {
            if !self.sought(of_winner, kind) {
                continue;
            }
            let who = scene.who(of_winner);
            let (policy, best) = (self.policy, self.best);
            let worth = |sectors, turn| Search::worth(policy, &best, of_winner, (sectors, turn), None);
            let found = look.merged(who, &mut self.scratch, false, worth);
            let again = |scratch: &mut Scratch| look.merged(who, scratch, true, worth).filter(|c| look.holds(c));
            self.offer(scene, look, found, of_winner, again);
        }
    }

    /// Keeps a candidate if it beats the best and fits. If it does not fit, `again` examines the
    /// track carefully.
    #[inline]
    fn offer<W: Wants>(
        &mut self,
        scene: &Scene<'_, W>,
        look: &Look<'_, W>,
        found: Option<Candidate>,
        of_winner: bool,
        again: impl FnOnce(&mut Scratch) -> Option<Candidate>,
    ) {
        let Some(candidate) = found else { return };
        let Some(score) = self.beats(scene, &candidate, of_winner) else { return };
        if look.holds(&candidate) {
            self.keep(scene, Best { candidate, score, of_winner });
        } else if let Some(candidate) = again(&mut self.scratch)
            && let Some(score) = self.beats(scene, &candidate, of_winner)
        {
            self.keep(scene, Best { candidate, score, of_winner });
        }
    }

    /// Keeps the best candidate so far. Cells in which the head cannot stay long enough for a
    /// better one are passed over from now on.
    fn keep<W>(&mut self, scene: &Scene<'_, W>, best: Best) {
        self.best = Some(best);
        if best.of_winner {
            let most = self.policy.most;
            self.walk.pass_over(scene, |(sectors, turn)| most(sectors, turn, 0) > best.score);
        }
    }

    /// Returns the score, if it beats the best.
    #[inline]
    fn beats<W: Wants>(&mut self, scene: &Scene<'_, W>, c: &Candidate, of_winner: bool) -> Option<Score> {
        if !Search::worth(self.policy, &self.best, of_winner, (c.plan.sectors, c.turn), None) {
            return None;
        }
        let left = if self.policy.needs_left { self.left(scene, c, of_winner) } else { 0 };
        let score = (self.policy.score)(c.plan.sectors, c.turn, left);
        let better = self.best.is_none_or(|b| if b.of_winner == of_winner { score > b.score } else { of_winner });
        better.then_some(score)
    }
}

/// Returns the distance from which on moves of any kind take at least as long as a head switch.
fn surfaces_apart(model: &Model) -> u32 {
    // Beyond that it is assumed to matter everywhere, which costs only search time.
    const FURTHEST: u32 = 64;
    let mechanics = &model.mechanics;
    (1..FURTHEST).find(|&d| mechanics.reposition_floor(d) >= mechanics.head_switch).unwrap_or(u32::MAX)
}
