//! Closed-loop replay of a recording: each request follows the completion that its client waited
//! for, and the recorded pause.
//!
//! A request depends on the same client's last completed request at its submission, and is due the
//! recorded time after that completion. Requests that were in flight together are so again, because
//! each depends on its own completion and not on the previous request. A flush depends on all of
//! its client's requests that completed before it, because it was submitted after them. The replay
//! is as fast as the disk allows; the host's pauses are unchanged.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use headtime_disk::{Dur, Kind, Time};

use super::{Ask, Mode, Target, Workload, WorkloadError};
use crate::traces::Recording;

/// A recording as a workload.
#[derive(Clone, Debug)]
pub struct Playback {
    recording: Recording,
    /// Requests with a known due time, soonest first, ties in recorded order.
    ready: BinaryHeap<Reverse<(Time, u32)>>,
    /// By request: number of its dependencies that are not done.
    missing: Vec<u32>,
    /// Requests that depend on request `i`: `followers[first[i]..first[i + 1]]`.
    followers: Vec<u32>,
    first: Vec<u32>,
    under_way: Vec<(Ask, u32)>,
    classes: Vec<String>,
}

impl Playback {
    /// Replays `recording`, which must be of a disk of the target's size. `Mode::Open` submits at
    /// the recorded times regardless of the disk.
    pub fn new(recording: Recording, target: &Target, mode: Mode) -> Result<Playback, WorkloadError> {
        recording.fits(target.capacity, target.sector_bytes)?;
        let edges = match mode {
            Mode::Open => Vec::new(),
            Mode::Auto | Mode::Closed => dependences(&recording),
        };
        let requests = &recording.requests;
        let mut missing = vec![0; requests.len()];
        let mut first = vec![0; requests.len() + 1];
        for &(before, behind) in &edges {
            missing[behind as usize] += 1;
            first[before as usize + 1] += 1;
        }
        for i in 0..requests.len() {
            first[i + 1] += first[i];
        }
        let free = (0u32..).zip(requests).filter(|(i, _)| missing[*i as usize] == 0);
        let ready = free.map(|(i, r)| Reverse((r.submitted, i))).collect();
        let classes = match recording.clients.len() {
            0 | 1 => Vec::new(),
            _ => recording.clients.clone(),
        };
        let followers = edges.iter().map(|e| e.1).collect();
        Ok(Playback { recording, ready, missing, followers, first, under_way: Vec::new(), classes })
    }

    /// Returns the recording.
    pub fn recording(&self) -> &Recording {
        &self.recording
    }

    /// Returns the recorded time from a request's dependency to its submission.
    fn pause(&self, request: u32) -> Dur {
        let all = &self.recording.requests;
        let r = &all[request as usize];
        let waited = r.after.and_then(|after| all[after as usize].done);
        r.submitted.saturating_since(waited.unwrap_or(Time::ZERO))
    }

    fn done(&mut self, at: usize, now: Time) {
        let (_, request) = self.under_way.remove(at);
        for e in self.first[request as usize]..self.first[request as usize + 1] {
            let behind = self.followers[e as usize];
            self.missing[behind as usize] -= 1;
            if self.missing[behind as usize] == 0 {
                // Completions arrive in order of time, so this one is the last.
                self.ready.push(Reverse((now + self.pause(behind), behind)));
            }
        }
    }
}

/// Returns the dependencies between requests: the earlier one, the later one, sorted.
fn dependences(recording: &Recording) -> Vec<(u32, u32)> {
    let all = &recording.requests;
    let mut edges = Vec::with_capacity(all.len());
    // By client: requests that its next flush depends on, and the flush in flight with the number
    // of them that it covers.
    let mut since: Vec<Vec<u32>> = vec![Vec::new(); recording.clients.len()];
    let mut covered: Vec<Option<(u32, usize)>> = vec![None; recording.clients.len()];
    for (i, r) in (0u32..).zip(all) {
        let (client, done_by_now) =
            (r.client as usize, |j: u32| all[j as usize].done.is_some_and(|d| d <= r.submitted));
        if let Some((_, n)) = covered[client].take_if(|(flush, _)| done_by_now(*flush)) {
            since[client].drain(..n);
        }
        if r.kind == Kind::Flush {
            let before = since[client].iter().copied().filter(|&j| done_by_now(j) && Some(j) != r.after);
            edges.extend(before.map(|j| (j, i)));
            // Only those that are all done precede it permanently.
            let whole = since[client].iter().take_while(|&&j| done_by_now(j)).count();
            covered[client].get_or_insert((i, whole));
        }
        edges.extend(r.after.map(|j| (j, i)));
        since[client].push(i);
    }
    edges.sort_unstable();
    edges
}

impl Workload for Playback {
    fn next_due(&self) -> Option<Time> {
        self.ready.peek().map(|Reverse((due, _))| *due)
    }

    fn take(&mut self) -> Result<Ask, WorkloadError> {
        let Some(Reverse((due, i))) = self.ready.pop() else { panic!("a request was taken while none was due") };
        let r = self.recording.requests[i as usize];
        let class = if self.classes.is_empty() { 0 } else { r.client as u16 };
        let (kind, lbn, count, fua) = (r.kind, r.lbn, r.count, r.fua);
        let ask = Ask { due, kind, lbn, count, fua, sync: true, owner: r.client, class };
        self.under_way.push((ask, i));
        Ok(ask)
    }

    /// Without the request, the client's oldest is assumed.
    fn finished(&mut self, owner: u32, now: Time) {
        let oldest = self.under_way.iter().position(|(a, _)| a.owner == owner);
        self.done(oldest.expect("only what was taken is finished"), now);
    }

    fn completed(&mut self, ask: &Ask, now: Time) {
        // Two identical requests are interchangeable.
        let which = self.under_way.iter().position(|(a, _)| a == ask);
        self.done(which.expect("only what was taken is finished"), now);
    }

    fn endless(&self) -> bool {
        false
    }

    fn classes(&self) -> &[String] {
        &self.classes
    }

    fn measures(&self) -> Vec<(&'static str, f64)> {
        vec![("recorded_seconds", self.recording.length().as_secs_f64())]
    }
}
