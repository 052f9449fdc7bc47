//! What dies together: a server, and what goes on around it.

use std::cell::{Cell, RefCell};

use tokio::sync::Notify;
use tokio::task::{AbortHandle, JoinHandle, yield_now};

/// Tasks of one process. Those that they spawn themselves end when they find that the others have:
/// none of them reaches the disk without the engine.
#[derive(Default)]
pub struct Process(RefCell<Vec<AbortHandle>>);

impl Process {
    fn keep<T>(&self, task: JoinHandle<T>) -> JoinHandle<T> {
        let mut tasks = self.0.borrow_mut();
        tasks.retain(|t| !t.is_finished());
        tasks.push(task.abort_handle());
        task
    }

    /// A task of it.
    pub fn spawn<T: Send + 'static>(&self, task: impl Future<Output = T> + Send + 'static) -> JoinHandle<T> {
        self.keep(tokio::spawn(task))
    }

    /// The same for one that stays on its thread.
    pub fn spawn_local<T: 'static>(&self, task: impl Future<Output = T> + 'static) -> JoinHandle<T> {
        self.keep(tokio::task::spawn_local(task))
    }

    /// It dies, whatever it does.
    pub async fn kill(&self) {
        let tasks = std::mem::take(&mut *self.0.borrow_mut());
        tasks.iter().for_each(AbortHandle::abort);
        while tasks.iter().any(|t| !t.is_finished()) {
            yield_now().await;
        }
    }
}

/// A death at the moment at which most was just promised: when a flush has been answered.
#[derive(Default)]
pub struct Doom {
    /// Flushes until then; 0: it does not come, or has come.
    left: Cell<u64>,
    comes: Notify,
}

impl Doom {
    /// After so many flushes; 0: it never comes.
    pub fn after(flushes: u64) -> Doom {
        Doom { left: Cell::new(flushes), ..Doom::default() }
    }

    /// One was answered without an error.
    pub fn flushed(&self) {
        let left = self.left.get();
        self.left.set(left.saturating_sub(1));
        if left == 1 {
            self.comes.notify_one();
        }
    }

    /// Until it comes.
    pub async fn comes(&self) {
        self.comes.notified().await;
    }
}
