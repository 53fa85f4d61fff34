//! HTTP/2 by the library hyper at both ends: the second implementation, to compare with.

use std::sync::Arc;

use weigh_model::protocol::{Dial, Host, Invalid, Transport};
use weigh_model::trial::{Settings, Trial};

use crate::adapter::client::Library;
use crate::adapter::http2;
use crate::adapter::server::LibraryServer;
use crate::requests;

mod client;
mod request;
mod server;

/// The library, with its version.
pub(super) const LIBRARY: &str = "hyper 1.12";

/// Clients by the library.
///
/// # Errors
/// A trial that cannot be done.
pub(super) fn dial(trial: &Trial) -> Result<Dial, Invalid> {
    let template = Arc::new(request::Template::new(trial)?);
    let streams = requests::streams(trial);
    let library = Library {
        recognise: http2::recognise,
        connect: Box::new(move |stream, tasks| {
            Box::pin(client::connect(stream, tasks, Arc::clone(&template), streams))
        }),
    };
    Ok(library.dial(trial.load.pattern))
}

/// The reference server by the library.
///
/// # Errors
/// A value that it does not accept.
pub(super) fn host(settings: &Settings) -> Result<Host, Invalid> {
    let rules = Arc::new(server::Rules::new(settings)?);
    Ok(Host {
        transport: Transport::Stream,
        make: Box::new(move |_shard| {
            Box::new(LibraryServer::new(server::Http2Service::new(Arc::clone(&rules))))
        }),
    })
}
