//! What a search is shown of what tasks want.

use headtime_disk::command::Kind;

use crate::tasks::manager::TaskManager;
use crate::tasks::wanted::Wanted;
use crate::tasks::{Wants, Who};

/// What tasks want, or only what of it is to be read: when applications have answered "not now"
/// often enough, what is left of a gap is for reads.
#[derive(Debug)]
pub struct Offered<'a> {
    /// The tasks.
    pub tasks: &'a TaskManager,
    /// No writes.
    pub reads_only: bool,
}

impl Offered<'_> {
    #[inline]
    fn hides(&self, kind: Kind) -> bool {
        self.reads_only && kind != Kind::Read
    }
}

impl Wants for Offered<'_> {
    #[inline]
    fn wanted(&self, who: Who, kind: Kind, out: &mut Wanted) {
        match self.hides(kind) {
            true => out.clear(),
            false => self.tasks.wanted(who, kind, out),
        }
    }

    #[inline]
    fn any(&self, who: Who, kind: Kind) -> bool {
        !self.hides(kind) && self.tasks.any(who, kind)
    }
}
