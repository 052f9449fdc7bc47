//! A client's requests: their shares of the budget, their way to the engine, and its answers.

use headtime_disk::{Dur, Kind};
use headtime_nbd::{Answer as Reply, Errno, Op, Request};

use super::super::budget::Share;
use super::super::exports::ExportSpec;
use super::{Client, Room};
use crate::device::Fault;
use crate::engine::messages::{Answer, EngineMessage, Submission};

impl Client<'_> {
    /// Takes a share of the budget for a request of `length` bytes, or returns the wait for it.
    pub(super) fn take_share(&self, length: u64) -> Result<Share, Room> {
        let (budget, owner, id) = (&self.shared.budget, self.owner(), self.id);
        budget.try_share(owner, id, length).ok_or_else(|| {
            let budget = budget.clone();
            Box::pin(async move { budget.share(owner, id, length).await }) as Room
        })
    }

    /// Submits a request to the engine, or to the write cache of its export.
    pub(super) fn submit(&mut self, request: Request, share: Share) {
        let Some(owner) = self.export else {
            self.protocol.reply(request.token, Reply::Failed(Errno::Inval));
            return;
        };
        let spec: &ExportSpec = &self.shared.exports.specs[owner as usize];
        let kind = match request.op {
            Op::Read => Kind::Read,
            Op::Write => Kind::Write,
            Op::Flush => Kind::Flush,
            // Neither operation is offered.
            Op::Trim | Op::WriteZeroes => {
                self.protocol.reply(request.token, Reply::Failed(Errno::NotSup));
                return;
            }
        };
        let sector = u64::from(self.shared.exports.sector_bytes);
        let (lbn, count) = match kind {
            Kind::Flush => (0, 0),
            // The state machine has checked for whole sectors of the export and the length.
            Kind::Read | Kind::Write => (spec.first + request.offset / sector, (request.length / sector) as u32),
        };
        let submission = Submission {
            kind,
            lbn,
            count,
            fua: request.fua,
            owner,
            data: request.data,
            reply: Some((self.reply.clone(), request.token)),
            share: Some(share),
            preserves: false,
            limited: Dur::ZERO,
            piece_of: None,
        };
        let to = self.shared.caches.get(&owner).unwrap_or(&self.shared.engine);
        if to.send(EngineMessage::Submit(submission)).is_err() {
            self.protocol.reply(request.token, Reply::Failed(Errno::Shutdown));
        }
    }

    /// Replies to a request as the engine answered it.
    pub(super) fn answer(&mut self, token: u64, answer: Answer) {
        let reply = match answer {
            Ok(data) if data.is_empty() => Reply::Done,
            Ok(data) => Reply::Data(data),
            Err(Fault::Io) => Reply::Failed(Errno::Io),
            Err(late @ Fault::Late) => Reply::FailedSaying(Errno::Io, late.words()),
            Err(large @ Fault::TooLarge) => Reply::FailedSaying(Errno::Inval, large.words()),
            Err(Fault::NoSpace) => Reply::Failed(Errno::NoSpc),
            Err(Fault::Gone) => Reply::Failed(Errno::Shutdown),
        };
        self.protocol.reply(token, reply);
    }
}
