//! What an order outside the core needs ([`crate::Custom`]).

use headtime_disk::{Access, Kind};

use super::Core;
use crate::request::Request;

impl Core {
    /// Returns whether a request that is submitted now would be dispatched at once, and it is time
    /// to choose one.
    pub(crate) fn wants_one(&mut self) -> bool {
        self.pool.waiting() == 0 && self.next_request.is_none() && self.dispatch.has_room() && self.is_time_to_choose()
    }

    /// Returns the predicted access of a request, if it were dispatched next; `None` for a flush,
    /// and for a range that is not on the drive.
    pub(crate) fn predicted_access(&mut self, request: &Request) -> Option<Access> {
        if request.kind == Kind::Flush {
            return None;
        }
        let place = self.model.place(request.lbn, request.count, request.kind)?;
        let (read, write) = self.heads_to_choose_from();
        let head = if request.kind == Kind::Read { read } else { write };
        Some(self.model.access(&head, &place, request.kind))
    }
}
