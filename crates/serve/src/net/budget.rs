//! What clients may have under way. Who finds it used up waits, and with him what his client sends: so whatever clients do,
//! memory is bounded, and the engine's queues are never full.
//!
//! Half of it is common, and half is divided among the owners of requests, which are the exports and, after them, the control
//! interface: a part of his own for each. An owner takes of his own part, and of the common one when that is used up. So one
//! whose clients ask without end has at most the common half and his part, and each of the others always finds his own: for requests that
//! fit into it. A longer one than his part of the bytes waits for room in the common half, in the order in which they came.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Bytes of one unit of the second budget: semaphores count in 32 bits.
const UNIT: u64 = 4096;

/// Requests and bytes, for each owner and for all.
#[derive(Clone, Debug)]
pub struct Budget {
    own: Arc<[Part]>,
    common: Part,
}

/// A request's part of the budget: given back when it is dropped.
#[derive(Debug)]
pub struct Share {
    _request: OwnedSemaphorePermit,
    _bytes: OwnedSemaphorePermit,
}

#[derive(Clone, Debug)]
struct Part {
    requests: Arc<Semaphore>,
    bytes: Arc<Semaphore>,
    most_units: u32,
}

impl Part {
    fn new(requests: usize, units: u32) -> Part {
        Part {
            requests: Arc::new(Semaphore::new(requests)),
            bytes: Arc::new(Semaphore::new(units as usize)),
            most_units: units,
        }
    }

    async fn share(&self, units: u32) -> Share {
        // The semaphores are never closed.
        let request = Arc::clone(&self.requests).acquire_owned().await.expect("open");
        let bytes = Arc::clone(&self.bytes).acquire_many_owned(units).await.expect("open");
        Share { _request: request, _bytes: bytes }
    }

    fn try_share(&self, units: u32) -> Option<Share> {
        let request = Arc::clone(&self.requests).try_acquire_owned().ok()?;
        let bytes = Arc::clone(&self.bytes).try_acquire_many_owned(units).ok()?;
        Some(Share { _request: request, _bytes: bytes })
    }
}

impl Budget {
    /// So many requests and bytes for so many owners.
    pub fn new(requests: usize, bytes: u64, owners: usize) -> Budget {
        let units = (bytes / UNIT).clamp(1, 1 << 28) as u32;
        let (own, own_units) = (requests / 2 / owners.max(1), units / 2 / owners.max(1) as u32);
        let common = Part::new(requests - own * owners, units - own_units * owners as u32);
        Budget { own: (0..owners).map(|_| Part::new(own, own_units)).collect(), common }
    }

    /// An owner's own part, if a request of so many units fits in there at all, and how many the common one gives it: one that is
    /// larger than that gets all of it.
    fn parts(&self, owner: u32, bytes: u64) -> (Option<(&Part, u32)>, u32) {
        let units = bytes.div_ceil(UNIT);
        let own = &self.own[owner as usize];
        let fits = units <= u64::from(own.most_units);
        (fits.then_some((own, units as u32)), units.min(u64::from(self.common.most_units)) as u32)
    }

    /// Room for an owner's request of so many bytes, as soon as there is some. Panics when there is no such owner.
    pub async fn share(&self, owner: u32, bytes: u64) -> Share {
        match self.parts(owner, bytes) {
            (None, common) => self.common.share(common).await,
            (Some((own, units)), common) => tokio::select! {
                biased;
                share = own.share(units) => share,
                share = self.common.share(common) => share,
            },
        }
    }

    /// The same, at once or not at all.
    pub fn try_share(&self, owner: u32, bytes: u64) -> Option<Share> {
        let (own, common) = self.parts(owner, bytes);
        own.and_then(|(own, units)| own.try_share(units)).or_else(|| self.common.try_share(common))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_share_is_there_again_when_it_was_given_back() {
        let b = Budget::new(4, 4 * UNIT, 1);
        let mut all: Vec<Share> = (0..4).map(|_| b.try_share(0, UNIT).unwrap()).collect();
        assert!(b.try_share(0, 0).is_none(), "four requests");
        all.truncate(3);
        assert!(b.try_share(0, UNIT + 1).is_none(), "four units");
        all.clear();
        // Larger than all there is: it waits for all that is common, and gets it.
        let all = b.share(0, 1 << 40).await;
        assert!(b.try_share(0, 2 * UNIT + 1).is_none());
        drop(all);
        assert!(b.try_share(0, 2 * UNIT).is_some());
    }

    #[tokio::test]
    async fn who_asks_without_end_leaves_the_others_their_parts() {
        let b = Budget::new(80, 80 * UNIT, 4);
        let mut greedy = Vec::new();
        while let Some(share) = b.try_share(0, UNIT) {
            greedy.push(share);
        }
        assert_eq!(greedy.len(), 50, "the common half and a quarter of the other");
        for owner in 1..4 {
            let own: Vec<Share> = (0..10).map(|_| b.try_share(owner, UNIT).unwrap()).collect();
            assert!(b.try_share(owner, UNIT).is_none());
            // It gets the first that is given back, whether it was his own or common.
            drop(own);
            assert!(b.try_share(owner, UNIT).is_some());
        }
        let own: Vec<Share> = (0..10).map(|_| b.try_share(1, UNIT).unwrap()).collect();
        let waits = tokio::spawn({
            let b = b.clone();
            async move { b.share(1, UNIT).await }
        });
        drop(greedy);
        waits.await.unwrap();
        drop(own);
        // Whoever does not fit in his own part takes of the common one.
        assert!(b.try_share(3, 40 * UNIT).is_some());
    }
}
