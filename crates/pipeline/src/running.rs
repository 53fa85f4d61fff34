//! A running stage, on a thread of its own, until it is stopped.

use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::sync_channel;
use std::thread::JoinHandle;
use std::time::Duration;

use serde_json::Value;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::time::timeout;

use crate::failed::Failed;
use crate::hop_file::Urge;

/// A running stage.
pub struct Running {
    first_line: String,
    settings_line: String,
    counts: Counting,
    hops: Urge,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

type Counting = Box<dyn Fn() -> Value + Send + Sync>;

/// A stage that is ready.
pub(crate) struct Ready {
    /// Its address, as in its first line.
    pub(crate) first_line: String,
    /// Its settings, including defaults.
    pub(crate) settings_line: String,
    /// Its counts.
    pub(crate) counts: Counting,
    /// Makes it write its hops.
    pub(crate) hops: Urge,
    /// Its work, which ends after it was stopped.
    pub(crate) work: Pin<Box<dyn Future<Output = ()>>>,
}

/// Signals a stage to stop.
pub(crate) type Stop = oneshot::Receiver<()>;

impl Running {
    /// Starts a stage on a thread, and waits until it is ready.
    pub(crate) fn start<F>(
        prepare: impl FnOnce(Stop) -> F + Send + 'static,
    ) -> Result<Running, Failed>
    where
        F: Future<Output = Result<Ready, Failed>>,
    {
        let (stop, stopped) = oneshot::channel();
        let (tell, told) = sync_channel(1);
        let live = move || {
            let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
                Ok(runtime) => runtime,
                Err(error) => {
                    let _ = tell.send(Err(Failed::Found(format!("no runtime: {error}"))));
                    return;
                }
            };
            runtime.block_on(async {
                match prepare(stopped).await {
                    Ok(Ready { first_line, settings_line, counts, hops, work }) => {
                        let _ = tell.send(Ok((first_line, settings_line, counts, hops)));
                        work.await;
                    }
                    Err(failed) => {
                        let _ = tell.send(Err(failed));
                    }
                }
            });
            runtime.shutdown_timeout(GRACE);
        };
        let no_thread = |error| Failed::Found(format!("no thread for a stage: {error}"));
        let thread = std::thread::Builder::new().name("stage".to_owned()).spawn(live);
        let thread = Some(thread.map_err(no_thread)?);
        let gone = |_| Failed::Found("the stage ended while it started".to_owned());
        let (first_line, settings_line, counts, hops) = told.recv().map_err(gone)??;
        Ok(Running { first_line, settings_line, counts, hops, stop: Some(stop), thread })
    }

    /// Its first line on stdout: `listening on URL`, or `forwarding from URL to URL`.
    pub fn first_line(&self) -> &str {
        &self.first_line
    }

    /// Its settings, for its log.
    pub fn settings_line(&self) -> &str {
        &self.settings_line
    }

    /// True if its work has ended without being stopped.
    pub fn is_over(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Its counts so far.
    pub fn counts(&self) -> Value {
        (self.counts)()
    }

    /// Its counts, after the hops of everything counted are in their file.
    pub fn report(&self) -> Value {
        // In this order: hops are recorded before they are counted.
        let counts = self.counts();
        self.hops.write_out();
        counts
    }

    /// Stops it: it accepts nothing new, finishes its work, and returns its counts.
    pub fn finish(mut self) -> Value {
        self.end();
        self.counts()
    }

    fn end(&mut self) {
        if let Some(stop) = self.stop.take() {
            let _ = stop.send(());
        }
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.end();
    }
}

/// A count that tasks share.
#[derive(Debug, Default)]
pub(crate) struct Count(AtomicU64);

impl Count {
    pub(crate) fn add(&self, more: u64) {
        self.0.fetch_add(more, Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Serves until it is stopped, then finishes: accepted readings are passed on even if the client no
/// longer waits.
pub(crate) async fn serve<F: Future>(
    stop: Stop,
    work: impl Future<Output = ()> + Send + 'static,
    serving: impl FnOnce(Stop) -> F,
) {
    let mut working = tokio::spawn(work);
    let (tell, told) = oneshot::channel();
    let mut serving = Box::pin(serving(told));
    tokio::select! {
        _ = &mut serving => {}
        _ = stop => {
            let _ = tell.send(());
            if timeout(GRACE, &mut serving).await.is_err() {
                eprintln!("weigh serve: connections are still open and will be closed");
            }
        }
    }
    // It holds a sender of the queue, and the work ends when all senders are gone.
    drop(serving);
    if timeout(GRACE, &mut working).await.is_err() {
        working.abort();
        let _ = working.await;
    }
}

/// Time that a stage waits for others when it stops.
pub(crate) const GRACE: Duration = Duration::from_secs(3);

/// A listening socket.
pub(crate) async fn listen(at: SocketAddr) -> Result<TcpListener, Failed> {
    TcpListener::bind(at).await.map_err(|error| {
        let fix = "choose another address, or port 0 for a free one";
        Failed::Found(format!("cannot listen on {at}: {error}; {fix}"))
    })
}

/// The address of a socket.
pub(crate) fn local(listener: &TcpListener) -> Result<SocketAddr, Failed> {
    let nowhere = |error| Failed::Found(format!("a socket without an address: {error}"));
    listener.local_addr().map_err(nowhere)
}
