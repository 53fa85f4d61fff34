//! Serves a run that is watched to browsers and to Prometheus. Each connection reads the files by
//! itself, from where it wants, so that a late browser, a reconnect and a replay are one code path.
//!
//! ```text
//!   access ──► routes ──┬──► assets     the page, its script and style, the chart library
//!                       ├──► events     server-sent events ◄── lines ◄── journal.jsonl
//!                       ├──► report     report.html, made from the journal so far
//!                       └──► metrics    OpenMetrics
//! ```

mod access;
mod assets;
mod events;
mod lines;
mod report;
mod routes;
mod shared;
mod start;

use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::select;
use tokio::net::TcpListener;
use tokio::runtime;
use tokio::signal::unix::{SignalKind, signal};
use weigh_report::journal::is_being_written;

use crate::courtesy;
use crate::subject::Subject;
use access::Access;
use shared::Shared;

/// What is served, and where.
#[derive(Clone, Copy, Debug, Default)]
pub struct Serving {
    /// Address of the page.
    pub page: Option<SocketAddr>,
    /// Address of the metrics alone; the address of the page has them too.
    pub metrics: Option<SocketAddr>,
    /// End this long after the end of the run; `None` for never.
    pub ends_after_run: Option<Duration>,
}

/// Reason for which a run cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// Another process has the port.
    #[error(
        "{address}: another process uses this port\nhelp: type {option} {}:0 for a free port",
        host(address)
    )]
    Taken {
        /// The address.
        address: SocketAddr,
        /// The option that named it.
        option: &'static str,
    },
    /// The address cannot be used for another reason.
    #[error("{address}: {error}\nhelp: type {option} 127.0.0.1:0 for a free port of this machine")]
    Refused {
        /// The address.
        address: SocketAddr,
        /// The option that named it.
        option: &'static str,
        /// Error of the kernel.
        error: io::Error,
    },
    /// The kernel gave no random numbers for a token.
    #[error("no random numbers for a token: {0}")]
    NoToken(getrandom::Error),
    /// The server could not start, or it ended.
    #[error("the server could not start: {0}")]
    Server(#[from] io::Error),
}

/// Serves the run in `folder`, or the runs of the study there one after another, until SIGINT or
/// SIGTERM. Calls `said` with a sentence that contains the URL of each address, the page first,
/// once it accepts connections. A URL that is not of loopback contains the token.
///
/// # Errors
/// If an address cannot be used: nothing is served then.
pub fn serve(folder: &Path, serving: Serving, said: &dyn Fn(&str)) -> Result<(), ServeError> {
    // Without it the server is as other processes are, and works.
    let _ = courtesy::give_way();
    let runtime = runtime::Builder::new_current_thread().enable_all().build()?;
    let result = runtime.block_on(serve_until_end(folder, serving, said));
    // A report that is being made is of no use any more.
    runtime.shutdown_background();
    result
}

async fn serve_until_end(
    folder: &Path,
    serving: Serving,
    said: &dyn Fn(&str),
) -> Result<(), ServeError> {
    let mut interrupted = signal(SignalKind::interrupt())?;
    let mut terminated = signal(SignalKind::terminate())?;
    let metrics = serving.metrics.filter(|address| Some(*address) != serving.page);
    let page = bind(serving.page, "--web").await?;
    let metrics = bind(metrics, "--metrics").await?;
    let shared = Arc::new(Shared::new(Subject::at(folder)));
    let token = access::new_token().map_err(ServeError::NoToken)?;
    if let Some(listener) = page {
        let access = Access::new(listener.local_addr()?, &token);
        said(&format!("the page of the run is at {}", access.url("/")));
        tokio::spawn(axum::serve(listener, routes::page(shared.clone(), access)).into_future());
    }
    if let Some(listener) = metrics {
        let access = Access::new(listener.local_addr()?, &token);
        said(&format!("metrics for Prometheus are at {}", access.url("/metrics")));
        tokio::spawn(axum::serve(listener, routes::metrics(shared, access)).into_future());
    }
    let signals = select(Box::pin(interrupted.recv()), Box::pin(terminated.recv()));
    select(signals, Box::pin(end_of_run(folder, serving.ends_after_run))).await;
    Ok(())
}

/// Waits until no process has recorded the run for `after`; forever without it.
async fn end_of_run(folder: &Path, after: Option<Duration>) {
    let Some(after) = after else { return std::future::pending().await };
    let mut recorded = Instant::now();
    while recorded.elapsed() < after {
        tokio::time::sleep(Duration::from_secs(1)).await;
        if is_being_written(folder) {
            recorded = Instant::now();
        }
    }
}

async fn bind(
    address: Option<SocketAddr>,
    option: &'static str,
) -> Result<Option<TcpListener>, ServeError> {
    let Some(address) = address else { return Ok(None) };
    match TcpListener::bind(address).await {
        Ok(listener) => Ok(Some(listener)),
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
            Err(ServeError::Taken { address, option })
        }
        Err(error) => Err(ServeError::Refused { address, option, error }),
    }
}

/// The address without its port, as it is typed.
fn host(address: &SocketAddr) -> String {
    match address {
        SocketAddr::V4(address) => address.ip().to_string(),
        SocketAddr::V6(address) => format!("[{}]", address.ip()),
    }
}
