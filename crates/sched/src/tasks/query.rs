//! Queries of searches: the wanted sectors of a range, hundreds of times per decision.

use headtime_disk::Kind;

use super::manager::TaskManager;
use super::table::{WRITE, side};
use super::wanted::Wanted;
use super::{Wants, Who};

impl TaskManager {
    /// Marks what `who` wants in `out`'s range; `now` leaves out sessions that may receive nothing
    /// now.
    #[inline]
    fn mark(&self, who: Who, wanted: usize, now: bool, out: &mut Wanted) {
        let (lo, hi) = (out.from(), out.end());
        let only = match who {
            Who::Anyone => None,
            Who::Session(id) => match self.sessions.find(id) {
                Some(at) => Some(at),
                None => return,
            },
        };
        self.index.visit(&self.extents, lo, hi, |_, e| {
            if usize::from(e.side) != wanted || only.is_some_and(|at| at != e.session) {
                return;
            }
            if now && !self.sessions.may(e.session, wanted) {
                return;
            }
            let (a, b) = e.within(lo, hi);
            e.bits.each(a, b, |from, to| out.set(e.at(from), e.at(to)));
        });
    }
}

impl Wants for TaskManager {
    fn wanted(&self, who: Who, kind: Kind, out: &mut Wanted) {
        let Some(wanted) = side(kind) else { return };
        if self.sessions.left(wanted) == 0 {
            return;
        }
        self.mark(who, wanted, true, out);
        if wanted == WRITE {
            self.marks.hide_writes(out);
        }
    }

    fn pending(&self, who: Who, kind: Kind, out: &mut Wanted) {
        if let Some(wanted) = side(kind) {
            self.mark(who, wanted, false, out);
        }
    }

    #[inline]
    fn any(&self, who: Who, kind: Kind) -> bool {
        let Some(wanted) = side(kind) else { return false };
        match who {
            Who::Anyone => self.sessions.left(wanted) > 0,
            Who::Session(id) => self
                .sessions
                .find(id)
                .is_some_and(|at| self.sessions.may(at, wanted) && self.sessions.get(at).left[wanted] > 0),
        }
    }
}
