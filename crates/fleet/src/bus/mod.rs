//! The connection to the bus, NATS with JetStream, behind calls that block. The runtime that the
//! client needs is one thread.

mod connecting;
mod options;
mod store;

use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use async_nats::Client;
use async_nats::client::RequestErrorKind;
use async_nats::connection::State;
use async_nats::jetstream::Context;
use async_nats::jetstream::object_store::ObjectStore;
use bytes::Bytes;
use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;

use crate::error::FleetError;
pub use options::BusOptions;

/// A connection to the bus. It is made again whenever it is lost.
pub struct Bus {
    client: Client,
    jetstream: Context,
    bucket: String,
    store: ObjectStore,
    fleet: String,
    is_private: bool,
    runtime: Handle,
    end: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// Reason for which a request has no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Unanswered {
    /// There is no such agent on the bus now.
    Absent,
    /// It did not answer in time, or the bus is cut.
    Silent,
}

impl Bus {
    /// Connects, and checks that JetStream is there.
    ///
    /// # Errors
    /// [`FleetError::Bus`] if the server cannot be reached, refuses the credentials or has no
    /// JetStream; [`FleetError::Options`] for options that are wrong or contradict each other;
    /// [`FleetError::Store`] if the object store cannot be made.
    pub fn connect(options: &BusOptions) -> Result<Arc<Bus>, FleetError> {
        let fleet = options.fleet()?.to_owned();
        let no_thread = |error: &dyn std::fmt::Display| {
            FleetError::Bus(format!("no thread for the connection to the bus: {error}"))
        };
        let runtime = Builder::new_current_thread()
            .enable_all()
            .max_blocking_threads(2)
            .build()
            .map_err(|error| no_thread(&error))?;
        let handle = runtime.handle().clone();
        let (end, ended) = oneshot::channel::<()>();
        let thread = thread::Builder::new()
            .name("weigh-bus".to_owned())
            .spawn(move || {
                let _ = runtime.block_on(ended);
                runtime.shutdown_background();
            })
            .map_err(|error| no_thread(&error))?;
        let bucket = format!("weigh_{fleet}");
        let connected = handle.block_on(async {
            let connected = connecting::connect(options).await?;
            let store = store::open(&connected.jetstream, &bucket).await?;
            Ok((connected, store))
        });
        match connected {
            Ok((connecting::Connected { client, jetstream, is_private }, store)) => {
                Ok(Arc::new(Bus {
                    client,
                    jetstream,
                    bucket,
                    store,
                    fleet,
                    is_private,
                    runtime: handle,
                    end: Some(end),
                    thread: Some(thread),
                }))
            }
            Err(error) => {
                drop(end);
                let _ = thread.join();
                Err(error)
            }
        }
    }

    /// True if only its two ends can read what is sent: with TLS, or on a loopback address.
    pub fn is_private(&self) -> bool {
        self.is_private
    }

    /// True while there is a connection to the server. One that was lost is made again as soon as
    /// that is possible.
    pub fn is_connected(&self) -> bool {
        self.client.connection_state() == State::Connected
    }

    /// The fleet's name.
    pub fn fleet(&self) -> &str {
        &self.fleet
    }

    pub(crate) fn client(&self) -> &Client {
        &self.client
    }

    /// Runs a task on the thread of the bus until the bus is dropped.
    pub(crate) fn spawn<F>(&self, task: F) -> tokio::task::JoinHandle<F::Output>
    where
        F: Future<Output: Send> + Send + 'static,
    {
        self.runtime.spawn(task)
    }

    /// Waits for something that happens on the bus. Not from its own thread.
    pub(crate) fn wait<F: Future>(&self, future: F) -> F::Output {
        self.runtime.block_on(future)
    }

    /// Stores an object, and again until `patience` is over while the bus is cut.
    pub(crate) fn put(
        &self,
        name: &str,
        bytes: &[u8],
        patience: Duration,
    ) -> Result<(), FleetError> {
        self.retried(patience, async || store::put(&self.store, name, bytes).await)
    }

    /// Reads an object, and again until `patience` is over.
    pub(crate) fn get(&self, name: &str, patience: Duration) -> Result<Vec<u8>, FleetError> {
        self.retried(patience, async || store::get(&self.store, name).await)
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.wait(store::has(&self.store, name))
    }

    /// Names of the objects that begin with this text.
    pub(crate) fn names(&self, prefix: &str) -> Vec<String> {
        self.wait(store::names(&self.jetstream, &self.bucket, prefix))
    }

    /// Removes objects, if they are there. Those of a server that is gone are removed by it later.
    pub(crate) fn remove(&self, names: impl IntoIterator<Item = String>) {
        self.wait(async {
            for name in names {
                if !self.is_connected() {
                    return;
                }
                store::remove(&self.jetstream, &self.bucket, &self.store, &name).await;
            }
        });
    }

    fn retried<T>(
        &self,
        patience: Duration,
        attempt: impl AsyncFn() -> Result<T, FleetError>,
    ) -> Result<T, FleetError> {
        self.wait(async {
            let until = tokio::time::Instant::now() + patience;
            loop {
                match attempt().await {
                    // A store that is full remains so.
                    Err(FleetError::Store(text))
                        if !text.contains("is full") && tokio::time::Instant::now() < until =>
                    {
                        tokio::time::sleep(RETRY).await;
                    }
                    result => return result,
                }
            }
        })
    }
}

impl Drop for Bus {
    fn drop(&mut self) {
        let Some(thread) = self.thread.take() else { return };
        if thread.thread().id() != thread::current().id() {
            // What was published last is to leave the process.
            let _ = self.runtime.block_on(async {
                tokio::time::timeout(FLUSH_PATIENCE, self.client.flush()).await
            });
        }
        drop(self.end.take());
        if thread.thread().id() != thread::current().id() {
            // A panic there has been printed.
            let _ = thread.join();
        }
    }
}

/// Asks and waits for the answer.
pub(crate) async fn request(
    client: &Client,
    subject: String,
    payload: Bytes,
    patience: Duration,
) -> Result<Bytes, Unanswered> {
    let request = async_nats::Request::new().payload(payload).timeout(Some(patience));
    // The client's own limit begins when the request has left.
    let answer = tokio::time::timeout(patience, client.send_request(subject, request)).await;
    match answer {
        Ok(Ok(message)) => Ok(message.payload),
        Ok(Err(error)) if error.kind() == RequestErrorKind::NoResponders => Err(Unanswered::Absent),
        Ok(Err(_)) | Err(_) => Err(Unanswered::Silent),
    }
}

/// Publishes, unless the bus is cut: everything that is published so is published again.
pub(crate) async fn publish(client: &Client, subject: String, payload: Bytes) {
    if client.connection_state() == State::Connected {
        let _ = tokio::time::timeout(FLUSH_PATIENCE, client.publish(subject, payload)).await;
    }
}

/// A lock whose holder may have panicked: what is in it is still a value.
pub(crate) fn lock<T>(what: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    what.lock().unwrap_or_else(PoisonError::into_inner)
}

const RETRY: Duration = Duration::from_millis(200);
const FLUSH_PATIENCE: Duration = Duration::from_millis(500);
