//! What dies together: a server, and what goes on around it.

use std::cell::RefCell;

use tokio::task::{AbortHandle, JoinHandle, yield_now};

/// Tasks of one process. Those that they spawn themselves end when they find that the others have: none of them reaches
/// the disk without the engine.
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
