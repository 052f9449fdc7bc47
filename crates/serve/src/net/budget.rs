//! What all clients together may have under way. Who finds it used up waits, and with him what his client sends: so
//! whatever clients do, memory is bounded, and the engine's queues are never full.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Bytes of one unit of the second budget: semaphores count in 32 bits.
const UNIT: u64 = 4096;

/// Requests and bytes.
#[derive(Clone, Debug)]
pub struct Budget {
    requests: Arc<Semaphore>,
    bytes: Arc<Semaphore>,
    most_units: u32,
}

/// A request's part of the budget: given back when it is dropped.
#[derive(Debug)]
pub struct Share {
    _request: OwnedSemaphorePermit,
    _bytes: OwnedSemaphorePermit,
}

impl Budget {
    /// So many requests, so many bytes.
    pub fn new(requests: usize, bytes: u64) -> Budget {
        let most_units = (bytes / UNIT).clamp(1, 1 << 28) as u32;
        Budget {
            requests: Arc::new(Semaphore::new(requests)),
            bytes: Arc::new(Semaphore::new(most_units as usize)),
            most_units,
        }
    }

    /// Room for a request of so many bytes, as soon as there is some. One that is larger than the whole budget gets all of it.
    pub async fn share(&self, bytes: u64) -> Share {
        let units = (bytes.div_ceil(UNIT)).min(u64::from(self.most_units)) as u32;
        // The semaphores are never closed.
        let request = Arc::clone(&self.requests).acquire_owned().await.expect("open");
        let bytes = Arc::clone(&self.bytes).acquire_many_owned(units).await.expect("open");
        Share { _request: request, _bytes: bytes }
    }

    /// The same, at once or not at all.
    pub fn try_share(&self, bytes: u64) -> Option<Share> {
        let units = (bytes.div_ceil(UNIT)).min(u64::from(self.most_units)) as u32;
        let request = Arc::clone(&self.requests).try_acquire_owned().ok()?;
        let bytes = Arc::clone(&self.bytes).try_acquire_many_owned(units).ok()?;
        Some(Share { _request: request, _bytes: bytes })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_share_is_there_again_when_it_was_given_back() {
        let b = Budget::new(2, 8192);
        let one = b.try_share(4096).unwrap();
        let two = b.try_share(1).unwrap();
        assert!(b.try_share(0).is_none(), "two requests");
        drop(two);
        assert!(b.try_share(4097).is_none(), "8192 bytes");
        drop(one);
        // Larger than all there is: it waits for all, and gets it.
        let all = b.share(1 << 40).await;
        assert!(b.try_share(1).is_none());
        drop(all);
        assert!(b.try_share(8192).is_some());
    }
}
