//! The futures of one connection, polled explicitly: until all of them wait for bytes, and not
//! again before bytes arrive. There is no runtime, no timer and no thread.

use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};

use futures_util::stream::{FuturesUnordered, StreamExt};

use crate::adapter::stream::lock;

/// A future of a connection.
pub type Soon<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// Takes tasks of a connection; it can be copied and handed to a library.
#[derive(Clone, Default)]
pub struct Tasks {
    begun: Arc<Mutex<Vec<Soon<()>>>>,
}

/// The tasks of a connection.
pub(crate) struct Pool {
    tasks: Tasks,
    running: FuturesUnordered<Soon<()>>,
    woken: Arc<Woken>,
    waker: Waker,
}

/// Notes that a task can continue.
#[derive(Default)]
struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Tasks {
    /// Adds a task; it is polled for the first time in the next turn of its connection.
    pub fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        lock(&self.begun).push(Box::pin(task));
    }

    fn take(&self, into: &FuturesUnordered<Soon<()>>) {
        lock(&self.begun).drain(..).for_each(|task| into.push(task));
    }

    fn is_empty(&self) -> bool {
        lock(&self.begun).is_empty()
    }
}

impl Pool {
    pub(crate) fn new() -> Pool {
        let woken: Arc<Woken> = Arc::default();
        let waker = Waker::from(Arc::clone(&woken));
        Pool { tasks: Tasks::default(), running: FuturesUnordered::new(), woken, waker }
    }

    /// Handle that adds tasks.
    pub(crate) fn tasks(&self) -> &Tasks {
        &self.tasks
    }

    /// Polls tasks that can continue, until none can.
    pub(crate) fn run(&mut self) {
        let mut context = Context::from_waker(&self.waker);
        loop {
            self.tasks.take(&self.running);
            self.woken.0.store(false, Ordering::Relaxed);
            if let Poll::Ready(Some(())) = self.running.poll_next_unpin(&mut context) {
                continue;
            }
            // Many futures in a row make the set ask for a pause, which is a wake too.
            if self.tasks.is_empty() && !self.woken.0.load(Ordering::Relaxed) {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::adapter::stream;

    /// A task that begins others, and others that wait for bytes, all come as far as they can.
    #[test]
    fn a_turn_ends_when_everything_waits() {
        let mut pool = Pool::new();
        let (mut stream, transport) = stream::pair();
        let heard: Arc<Mutex<Vec<u8>>> = Arc::default();
        let (tasks, ears) = (pool.tasks().clone(), Arc::clone(&heard));
        pool.tasks().spawn(async move {
            for number in 0..200 {
                let ears = Arc::clone(&ears);
                tasks.spawn(async move { lock(&ears).push(number) });
            }
            let mut bytes = Vec::new();
            std::future::poll_fn(|context| {
                stream.poll_take(context, 10, |come| bytes.extend_from_slice(come))
            })
            .await;
            lock(&ears).append(&mut bytes);
        });
        pool.run();
        assert_eq!(lock(&heard).len(), 200);
        pool.run();
        transport.feed(b"abc");
        pool.run();
        assert_eq!(lock(&heard)[200..], *b"abc");
    }
}
