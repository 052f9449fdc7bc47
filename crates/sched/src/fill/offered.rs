//! The wanted sectors that a search sees.

use headtime_disk::Kind;

use crate::tasks::manager::TaskManager;
use crate::tasks::wanted::Wanted;
use crate::tasks::{Wants, Who};

/// Wanted sectors of all tasks, or only those to be read: after enough requests for write data were
/// answered "not now", the rest of a gap is for reads.
#[derive(Debug)]
pub(crate) struct Offered<'a> {
    /// The tasks.
    pub tasks: &'a TaskManager,
    /// Excludes writes.
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
