//! TLS 1.2 and 1.3 as a layer: whatever protocol is spoken inside, both ends get it by having
//! their [`weigh_model::protocol::Dial`] or [`weigh_model::protocol::Host`] wrapped.
//!
//! One message that is sent alone makes one record, as one write of a library would. Inside rustls
//! 0.23 every record costs an allocation in each direction; apart from that nothing is allocated
//! per message here (docs/decisions, page on TLS).

mod certificates;
mod choice;
mod named;
mod reasons;
mod session;
mod tally;
mod unchecked;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use rustls::client::UnbufferedClientConnection;
use rustls::server::UnbufferedServerConnection;
use weigh_model::protocol::{Dial, Host};

use super::{client, server};
use session::Session;

pub use certificates::{Certificates, MadeFor};
pub use choice::{ClientChoice, Identity, ServerChoice, TlsError, Versions};
pub use tally::{Figures, Tally};

/// Puts these clients inside TLS. All of them share the state that resumes sessions.
///
/// # Errors
/// See [`ClientChoice::check`].
pub fn secure_dial(
    dial: Dial,
    choice: &ClientChoice,
    tally: &Arc<Tally>,
) -> Result<Dial, TlsError> {
    let (config, name) = choice.config(tally)?;
    let tally = Arc::clone(tally);
    let begin = move |now| {
        let made = UnbufferedClientConnection::new(Arc::clone(&config), name.clone());
        let connection = made.map_err(|error| reasons::of_client(&error))?;
        Ok(Session::new(connection, now, Arc::clone(&tally)))
    };
    Ok(client::layered(dial, Arc::new(begin)))
}

/// Puts this server inside TLS. Its shards share certificates and the keys of tickets.
///
/// # Errors
/// Files that cannot be read, are not certificates or keys, or do not belong together.
pub fn secure_host(
    host: Host,
    choice: &ServerChoice,
    tally: &Arc<Tally>,
) -> Result<Host, TlsError> {
    let (config, tally) = (choice.config()?, Arc::clone(tally));
    let begin = move |now| {
        let made = UnbufferedServerConnection::new(Arc::clone(&config));
        let connection = made.map_err(|error| reasons::of_server(&error))?;
        Ok(Session::new(connection, now, Arc::clone(&tally)))
    };
    Ok(server::layered(host, Arc::new(begin)))
}
