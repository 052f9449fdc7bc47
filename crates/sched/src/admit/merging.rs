//! Merged queues: processes that read one file together are served as one application, as by the
//! early queue merge of the kernel's BFQ (`bfq_setup_cooperator`).
//!
//! Some programs read a file with several processes or threads, each of which takes the next piece.
//! Each alone reads with gaps, all together in order. If each has turns of its own, the disk idles
//! for one whose next piece another has read, and passes over the pieces of the others.
//!
//! A request that begins exactly where the last request of another application ended, and not where
//! its own did, is a sign that they read together. Two successive requests that begin within 128
//! KiB of it are one, too. Then their queues are merged: the policy behind sees one application,
//! which has one share. The merged queue is served in the order of positions. If most requests of a
//! merged queue, of all its applications in the order of arrival, are far from the previous one,
//! its applications are separated, as by the kernel (`bfq_split_bfqq`).

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use headtime_disk::{Dur, Kind, Time};

use super::bfq::application::Pattern;
use super::{ASYNCHRONOUS, Admission, BACKGROUND, Class, Share, Sweep, Turn, set_membership};
use crate::request::Request;

/// Signs in a row, if they are near the end of another application's request and not at it. The
/// kernel merges after one.
const SIGNS: u32 = 2;
/// Farthest from the end of the other's last request, bytes: a read-ahead window.
const CLOSE: u64 = 128 << 10;
/// Time since the other's last request at most: as long as the kernel regards queues as new.
const RECENT: Dur = Dur::from_ms(100);
/// Applications in a merged queue at most.
const MAX_MEMBERS: usize = 16;

/// An application.
#[derive(Clone, Debug)]
struct Member {
    /// The application as which the policy sees it: itself, or the one it was merged with.
    leader: u32,
    pattern: Pattern,
    /// End of its last request, and its arrival.
    end: u64,
    at: Time,
    /// Requests in a row that were signs of another application, and that one.
    signs: u32,
    beside: u32,
    /// Its waiting requests, by first sector and identifier. Parts of one background task share an
    /// identifier.
    waiting: BTreeSet<(u64, u64)>,
    /// The same with their arrivals, oldest first.
    arrivals: VecDeque<((u64, u64), Time)>,
    /// Number of its waiting requests by the application under which the policy counts them. Those
    /// that arrived before a merger count as its own.
    counted_under: Vec<(u32, u32)>,
    outstanding: u32,
}

impl Member {
    /// Counts a waiting request under this application.
    fn count_as(&mut self, leader: u32) {
        match self.counted_under.iter_mut().find(|s| s.0 == leader) {
            Some(seen) => seen.1 += 1,
            None => self.counted_under.push((leader, 1)),
        }
    }

    /// Counts one less: under `turn` if there is one, and otherwise under the first. Returns under
    /// which application, and whether it was the last one there.
    fn uncount(&mut self, turn: Option<u32>) -> (u32, bool) {
        let at = turn.and_then(|turn| self.counted_under.iter().position(|s| s.0 == turn)).unwrap_or(0);
        let seen = self.counted_under.get_mut(at).expect("a request of it waits");
        seen.1 -= 1;
        let (leader, is_last) = (seen.0, seen.1 == 0);
        if is_last {
            self.counted_under.remove(at);
        }
        (leader, is_last)
    }
}

/// A merged queue.
#[derive(Clone, Copy, Debug)]
struct Merged {
    /// Number of its members.
    members: usize,
    /// The requests of all of them, in the order of arrival.
    pattern: Pattern,
}

/// A policy that sees merged queues as one application.
#[derive(Debug)]
pub struct Merging {
    policy: Box<dyn Admission>,
    close: u64,
    far: u64,
    members: BTreeMap<u32, Member>,
    /// Ends of the last requests.
    ends: BTreeSet<(u64, u32)>,
    /// Each merged queue, by its leader.
    merged: BTreeMap<u32, Merged>,
    /// Waiting requests by queue: the application under which the policy counts them, and theirs.
    queues: BTreeSet<(u32, u32)>,
    /// The application that has the turn, as the policy sees it.
    turn: Option<u32>,
    /// Requests in flight: application, identifier, and the application under which they count.
    at_drive: Vec<(u32, u64, u32)>,
    /// End of the request dispatched last.
    head: u64,
    shares: BTreeMap<u32, Share>,
    /// Applications with a latency target, which are not merged.
    targets: BTreeSet<u32>,
    sweep: Sweep,
}

impl Merging {
    /// Merges queues in front of `policy`. Requests are scattered beyond a distance of
    /// `random_beyond` bytes.
    pub fn new(policy: Box<dyn Admission>, random_beyond: u64, sector_bytes: u32) -> Merging {
        let sectors = |bytes: u64| (bytes / u64::from(sector_bytes)).max(1);
        Merging {
            policy,
            close: sectors(CLOSE),
            far: sectors(random_beyond),
            members: BTreeMap::new(),
            ends: BTreeSet::new(),
            merged: BTreeMap::new(),
            queues: BTreeSet::new(),
            turn: None,
            at_drive: Vec::new(),
            head: 0,
            shares: BTreeMap::new(),
            targets: BTreeSet::new(),
            sweep: Sweep::new(),
        }
    }

    fn share(&self, queue: u32) -> Share {
        self.shares.get(&queue).copied().unwrap_or_default()
    }

    /// Returns whether an application can be in a merged queue.
    fn can_merge(&self, queue: u32) -> bool {
        let is_foreground = queue != ASYNCHRONOUS && queue != BACKGROUND;
        is_foreground && self.share(queue).class == Class::BestEffort && !self.targets.contains(&queue)
    }

    /// Returns the application whose last request ended closest to this sector, if it can be merged
    /// with `queue`.
    fn neighbour(&self, queue: u32, lbn: u64, now: Time) -> Option<(u64, u32)> {
        let near = (lbn.saturating_sub(self.close), 0)..=(lbn.saturating_add(self.close), u32::MAX);
        let other = self.ends.range(near).filter(|e| e.1 != queue && self.can_merge(e.1));
        let other = other.filter(|e| {
            let m = &self.members[&e.1];
            now.saturating_since(m.at) <= RECENT && !m.pattern.is_scattered() && self.share(e.1) == self.share(queue)
        });
        other.map(|e| (e.0.abs_diff(lbn), e.1)).min()
    }

    /// Merges `queue` with `other`, unless they are merged already, or the merged queue is full.
    fn merge(&mut self, queue: u32, other: u32) {
        let leader = self.members[&other].leader;
        let mut merged =
            self.merged.get(&leader).copied().unwrap_or(Merged { members: 1, pattern: Pattern::default() });
        let m = self.members.get_mut(&queue).expect("its request arrived");
        // One that leads others stays with them.
        let leads = self.merged.contains_key(&queue);
        if m.leader == leader || m.leader != queue || leads || merged.members >= MAX_MEMBERS {
            return;
        }
        m.leader = leader;
        merged.members += 1;
        self.merged.insert(leader, merged);
    }

    /// Takes an application out of its merged queue. Its waiting requests stay in that.
    fn part(&mut self, queue: u32) {
        let Some(m) = self.members.get_mut(&queue) else { return };
        let leader = std::mem::replace(&mut m.leader, queue);
        m.signs = 0;
        if leader != queue
            && let Some(merged) = self.merged.get_mut(&leader)
        {
            merged.members -= 1;
            if merged.members == 1 {
                self.merged.remove(&leader);
            }
        }
    }

    /// Takes an application that has become unlike the others out of its merged queue, and all
    /// others out of that which it leads.
    fn separate(&mut self, queue: u32) {
        self.part(queue);
        if self.merged.contains_key(&queue) {
            let members: Vec<u32> = self.members.iter().filter(|(_, m)| m.leader == queue).map(|(q, _)| *q).collect();
            members.into_iter().filter(|member| *member != queue).for_each(|member| self.part(member));
        }
    }

    fn sweep(&mut self, now: Time) {
        if !self.sweep.is_due(self.members.len()) {
            return;
        }
        let is_busy = |m: &Member| m.outstanding > 0 || !m.waiting.is_empty();
        let gone = self.members.iter().filter(|(_, m)| !is_busy(m) && Sweep::has_gone(m.at, now));
        let gone: Vec<u32> = gone.map(|(queue, _)| *queue).filter(|queue| !self.merged.contains_key(queue)).collect();
        for queue in gone {
            self.part(queue);
            if let Some(m) = self.members.remove(&queue) {
                self.ends.remove(&(m.end, queue));
            }
        }
        self.sweep.done(self.members.len());
    }

    /// Returns the members that have requests waiting in a merged queue.
    fn waiting(&self, leader: u32) -> impl Iterator<Item = u32> {
        self.queues.range((leader, 0)..=(leader, u32::MAX)).map(|key| key.1)
    }

    /// Returns the member that is next in a merged queue: the one whose oldest request has waited
    /// for longer than `patience`; otherwise the one whose request is nearest behind the head, or
    /// the one with the first request.
    fn next(&self, leader: u32, patience: Dur, now: Time) -> u32 {
        let oldest = self.waiting(leader).map(|queue| (self.members[&queue].arrivals[0].1, queue)).min();
        if let Some((_, queue)) = oldest.filter(|(at, _)| now.saturating_since(*at) > patience) {
            return queue;
        }
        let ahead = |queue: u32| {
            let waiting = &self.members[&queue].waiting;
            let next = waiting.range((self.head, 0)..).next().or_else(|| waiting.first());
            next.map_or((true, u64::MAX), |w| (w.0 < self.head, w.0))
        };
        self.waiting(leader).min_by_key(|&queue| (ahead(queue), queue)).unwrap_or(leader)
    }

    /// Accounts a dispatch; returns as whose the policy sees the request.
    fn sends(&mut self, queue: u32, request: &Request, turn: Option<u32>) -> u32 {
        let m = self.members.get_mut(&queue).expect("whose request waits is known");
        let key = (request.lbn, request.id);
        m.waiting.remove(&key);
        let at = m.arrivals.iter().position(|a| a.0 == key).expect("whose request waits is known");
        m.arrivals.remove(at);
        m.outstanding += 1;
        let (leader, is_last) = m.uncount(turn);
        if is_last {
            self.queues.remove(&(leader, queue));
        }
        self.at_drive.push((queue, request.id, leader));
        if request.kind != Kind::Flush {
            self.head = request.lbn + u64::from(request.count);
        }
        leader
    }
}

impl Admission for Merging {
    fn arrived(&mut self, queue: u32, request: &Request, now: Time) {
        if !self.members.contains_key(&queue) {
            self.sweep(now);
        }
        let is_transfer = request.kind != Kind::Flush && self.can_merge(queue);
        let neighbour = is_transfer.then(|| self.neighbour(queue, request.lbn, now)).flatten();
        let (far, end) = (self.far, request.lbn + u64::from(request.count));
        let m = self.members.entry(queue).or_insert_with(|| Member {
            leader: queue,
            pattern: Pattern::default(),
            end: u64::MAX,
            at: now,
            signs: 0,
            beside: queue,
            waiting: BTreeSet::new(),
            arrivals: VecDeque::new(),
            counted_under: Vec::new(),
            outstanding: 0,
        });
        let mut merges = None;
        if is_transfer {
            m.pattern.add(request, far);
            let sign = neighbour.filter(|n| n.0 < m.end.abs_diff(request.lbn));
            m.signs = sign.map_or(0, |n| if n.0 == 0 { SIGNS } else { m.signs + 1 });
            m.beside = sign.map_or(queue, |n| n.1);
            merges = (m.signs >= SIGNS).then_some(m.beside);
            self.ends.remove(&(m.end, queue));
            self.ends.insert((end, queue));
            m.end = end;
        }
        m.at = now;
        m.waiting.insert((request.lbn, request.id));
        m.arrivals.push_back(((request.lbn, request.id), now));
        let leader = m.leader;
        if let Some(other) = merges {
            self.merge(queue, other);
        } else if let Some(merged) = self.merged.get_mut(&leader).filter(|_| is_transfer) {
            merged.pattern.add(request, far);
            if merged.pattern.is_scattered() {
                self.separate(leader);
            }
        }
        let m = self.members.get_mut(&queue).expect("added above");
        let leader = m.leader;
        m.count_as(leader);
        self.queues.insert((leader, queue));
        self.policy.arrived(leader, request, now);
    }

    fn turn(&mut self, now: Time) -> Turn {
        let turn = self.policy.turn(now);
        self.turn = None;
        let Turn::Queue(leader, patience) = turn else { return turn };
        self.turn = Some(leader);
        Turn::Queue(self.next(leader, patience, now), patience)
    }

    fn is_boosted(&self, now: Time) -> bool {
        self.policy.is_boosted(now)
    }

    fn together(&self, queues: &mut Vec<u32>) {
        let mut leaders = Vec::new();
        self.policy.together(&mut leaders);
        queues.extend(leaders.into_iter().flat_map(|leader| self.waiting(leader)));
    }

    fn sent(&mut self, queue: u32, request: &Request, now: Time) {
        let leader = self.sends(queue, request, self.turn);
        self.policy.sent(leader, request, now);
    }

    fn sent_out_of_turn(&mut self, queue: u32, request: &Request, now: Time) {
        let leader = self.sends(queue, request, None);
        self.policy.sent_out_of_turn(leader, request, now);
    }

    fn completed(&mut self, queue: u32, request: &Request, now: Time) {
        let at = self.at_drive.iter().position(|s| (s.0, s.1) == (queue, request.id)).expect("it was sent");
        let (_, _, leader) = self.at_drive.remove(at);
        self.members.get_mut(&queue).expect("whose request was sent is known").outstanding -= 1;
        self.policy.completed(leader, request, now);
    }

    fn charge_external(&mut self, time: Dur, now: Time) {
        self.policy.charge_external(time, now);
    }

    fn set_share(&mut self, queue: u32, share: Share) {
        if self.shares.insert(queue, share).unwrap_or_default() != share {
            self.separate(queue);
        }
        self.policy.set_share(queue, share);
    }

    fn set_latency_target(&mut self, queue: u32, target: Option<Dur>) {
        if set_membership(&mut self.targets, queue, target.is_some()) {
            self.separate(queue);
        }
        self.policy.set_latency_target(queue, target);
    }

    fn set_held_back(&mut self, queue: u32, is: bool, now: Time) {
        // In a merged queue the disk idles for the other members.
        let is_alone = self.members.get(&queue).is_none_or(|m| m.leader == queue) && !self.merged.contains_key(&queue);
        self.policy.set_held_back(queue, is && is_alone, now);
    }

    fn peak_rate(&self) -> Option<f64> {
        self.policy.peak_rate()
    }

    fn next_wakeup(&self) -> Option<Time> {
        self.policy.next_wakeup()
    }
}
