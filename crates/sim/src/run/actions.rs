//! The scheduler's actions: commands to the drive, finished requests, and background work.

use headtime_disk::Outcome;
use headtime_sched::{Action, Finished, Scheduler};

use super::{Loop, RunError, Slot};
use crate::device::Device;
use crate::observe::Observer;
use crate::stats::Done;
use crate::workload::Workload;

/// One decision, and one search for freeblock work, of this number is timed.
pub(super) const TIMED_OF: u64 = 64;

impl<D: Device, S: Scheduler, W: Workload + ?Sized, O: Observer> Loop<'_, D, S, W, O> {
    /// Executes the scheduler's actions until it has no more.
    pub(super) fn drain(&mut self) -> Result<(), RunError> {
        loop {
            // Reading a clock costs as much as a decision, so only some are timed.
            let in_turn = self.stats.decisions.is_multiple_of(TIMED_OF);
            let searches = self.scheduler.searches();
            let action = match self.clock.filter(|_| in_turn || searches >= self.timed_search) {
                None => self.scheduler.poll(),
                Some(clock) => {
                    let from = clock();
                    let action = self.scheduler.poll();
                    if matches!(action, Some(Action::Issue(_))) {
                        let took = clock().saturating_sub(from);
                        let all = self.scheduler.searches();
                        if all > searches {
                            self.stats.search_ns = Some(self.stats.search_ns.unwrap_or(0) + took);
                            self.stats.timed_searches += 1;
                            self.timed_search = all + TIMED_OF;
                        }
                        if in_turn {
                            self.stats.decision_ns = self.stats.decision_ns.map(|ns| ns + took);
                            self.stats.timed_decisions += 1;
                        }
                    }
                    action
                }
            };
            match action {
                None => return Ok(()),
                Some(Action::Issue(command)) => {
                    self.stats.decisions += 1;
                    let free = self.scheduler.free_sectors(command.id);
                    self.at_drive.push((command, free));
                    self.observer.issued(&command, self.now);
                    if !self.stats.streams.is_empty()
                        && self.scheduler.request_of(command.id).is_some()
                        && let Some(sizes) = self.scheduler.core().and_then(|core| core.active_sizes())
                    {
                        self.observer.decided(sizes, self.now);
                    }
                    self.device.submit(command, self.now).map_err(RunError::Device)?;
                    self.book_hidden();
                }
                Some(Action::Finish(f)) => {
                    self.finish(&f);
                    self.enqueue_due()?;
                }
                Some(Action::Background(event)) => {
                    let core = self.scheduler.core().expect("only a core has background work");
                    self.background.event(&event, core, self.now)?;
                    self.observer.background(&event, self.now);
                }
                Some(Action::Expired(request)) => {
                    self.given_up(request);
                    self.enqueue_due()?;
                }
                Some(Action::Overdue(overdue)) => {
                    self.stats.overdue_commands += 1;
                    self.stats.overdue.get_or_insert(overdue);
                }
            }
        }
    }

    /// Records a finished request, and notifies the workload.
    fn finish(&mut self, f: &Finished) {
        let Slot { ask, sequence } = self.slots[f.request as usize];
        self.free.push(f.request as u32);
        if f.outcome == Outcome::Dead {
            self.dead = true;
        }
        // Two completions at one instant: the run may end after the first.
        if self.stats.requests >= self.most_requests {
            return;
        }
        let done = Done {
            sequence,
            owner: ask.owner,
            class: ask.class,
            kind: ask.kind,
            lbn: ask.lbn,
            count: ask.count,
            due: ask.due,
            submitted: f.submitted,
            dispatched: f.dispatched,
            done: f.done,
            outcome: f.outcome,
            prediction: f.prediction,
        };
        self.stats.record(&done);
        self.observer.finished(&done);
        self.workload.completed(&ask, self.now);
    }
}
