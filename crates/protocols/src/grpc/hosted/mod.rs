//! gRPC by the library tonic over hyper at both ends: the second implementation, to compare with.

use std::sync::Arc;

use weigh_model::protocol::{Dial, Host, Invalid, Transport};
use weigh_model::trial::{Settings, Trial};

use crate::adapter::client::Library;
use crate::adapter::http2;
use crate::adapter::server::LibraryServer;

mod client;
mod server;

/// The libraries, with their versions.
pub(super) const LIBRARY: &str = "tonic 0.14, hyper 1.12";

/// Clients by the library.
///
/// # Errors
/// A trial that cannot be done.
pub(super) fn dial(trial: &Trial) -> Result<Dial, Invalid> {
    let plan = Arc::new(client::Plan::new(trial)?);
    let library = Library {
        recognise: http2::recognise,
        connect: Box::new(move |stream, tasks| {
            Box::pin(client::connect(stream, tasks, Arc::clone(&plan)))
        }),
    };
    Ok(library.dial(trial.load.pattern))
}

/// The reference server by the library.
pub(super) fn host(settings: &Settings) -> Host {
    let rules = Arc::new(server::Rules::new(settings));
    Host {
        transport: Transport::Stream,
        make: Box::new(move |_shard| {
            Box::new(LibraryServer::new(server::StoreService::new(Arc::clone(&rules))))
        }),
    }
}
