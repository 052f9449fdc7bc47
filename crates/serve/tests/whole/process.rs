//! Processes: a server with its tasks, which are killed together.

use std::cell::{Cell, RefCell};

use tokio::sync::Notify;
use tokio::task::{AbortHandle, JoinHandle, yield_now};

/// The tasks of one process. Tasks that they spawn end when they find that the others have: none of
/// them reaches the disk without the engine.
#[derive(Default)]
pub struct Process(RefCell<Vec<AbortHandle>>);

impl Process {
    fn keep<T>(&self, task: JoinHandle<T>) -> JoinHandle<T> {
        let mut tasks = self.0.borrow_mut();
        tasks.retain(|t| !t.is_finished());
        tasks.push(task.abort_handle());
        task
    }

    /// Spawns a task.
    pub fn spawn<T: Send + 'static>(&self, task: impl Future<Output = T> + Send + 'static) -> JoinHandle<T> {
        self.keep(tokio::spawn(task))
    }

    /// Spawns a task that stays on its thread.
    pub fn spawn_local<T: 'static>(&self, task: impl Future<Output = T> + 'static) -> JoinHandle<T> {
        self.keep(tokio::task::spawn_local(task))
    }

    /// Kills all tasks.
    pub async fn kill(&self) {
        let tasks = std::mem::take(&mut *self.0.borrow_mut());
        tasks.iter().for_each(AbortHandle::abort);
        while tasks.iter().any(|t| !t.is_finished()) {
            yield_now().await;
        }
    }
}

/// A kill at the most critical moment: when a flush has been answered.
#[derive(Default)]
pub struct Doom {
    /// Flushes until then; 0 if it never comes, or has come.
    left: Cell<u64>,
    comes: Notify,
}

impl Doom {
    /// Creates a kill after this number of flushes; 0 for never.
    pub fn after(flushes: u64) -> Doom {
        Doom { left: Cell::new(flushes), ..Doom::default() }
    }

    /// Counts a flush that was answered without an error.
    pub fn flushed(&self) {
        let left = self.left.get();
        self.left.set(left.saturating_sub(1));
        if left == 1 {
            self.comes.notify_one();
        }
    }

    /// Waits until it comes.
    pub async fn comes(&self) {
        self.comes.notified().await;
    }
}
