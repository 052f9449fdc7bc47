//! The end of a storm, without further disturbances.

use super::{ALL_DONE, Run};

impl Run {
    /// Ends all disturbances: all wanted work must complete, and nothing may remain after all
    /// sessions are closed.
    pub(super) fn calm(&mut self) {
        self.willing = true;
        for stream in self.core.standings() {
            self.core.close_stream(stream.owner, self.now);
            self.drain();
        }
        for session in self.shadow.sessions() {
            let taken = self.core.taken(session, u64::MAX, self.now);
            let unlimited = self.core.set_rate(session, None, self.now);
            let open = self.core.set_window(session, u64::MAX, self.now);
            let told = [self.core.resume(session, self.now), open, unlimited, taken];
            if told.iter().any(Result::is_err) {
                self.shadow.tally.complain(format!("{session:?} could not be told: {told:?}"));
            }
            self.shadow.suspended(session, false);
            self.shadow.limited(session, false);
            self.shadow.window(session, u64::MAX);
            self.shadow.taken(session, u64::MAX);
            self.drain();
        }
        let until = self.now + ALL_DONE;
        while self.shadow.is_anything_wanted() || self.shadow.unfinished() > 0 {
            match self.next_event().filter(|t| *t <= until) {
                Some(next) => self.go_to(next),
                None => {
                    let left = self.shadow.left();
                    let requests = self.shadow.unfinished();
                    self.shadow.tally.complain(format!("at {} {left} and {requests} requests do not come", self.now));
                    break;
                }
            }
        }
        for session in self.shadow.sessions() {
            let closed = self.core.close(session, self.now);
            if closed.is_err() {
                self.shadow.tally.complain(format!("{session:?} could not be closed: {closed:?}"));
            }
            self.shadow.closed(session);
            self.drain();
        }
        while let Some(next) = self.next_event().filter(|t| *t <= until + ALL_DONE) {
            self.go_to(next);
        }
        let report = self.core.freeblock().unwrap_or_default();
        let tally = &mut self.shadow.tally;
        (tally.merged, tally.alone, tally.idle) = (report.merged, report.commands, report.idle);
        let promised = self.core.standings().len();
        tally.left_over = self.core.waiting() + self.core.outstanding() + report.sessions.len() + promised;
        tally.bytes.1 = report.bytes();
    }
}
