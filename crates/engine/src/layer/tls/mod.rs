//! TLS 1.2 and 1.3 as a layer: whatever protocol is spoken inside, both ends get it by having
//! their [`weigh_model::protocol::Dial`] or [`weigh_model::protocol::Host`] wrapped.
//!
//! One message that is sent alone makes one record, as one write of a library would. Inside rustls
//! 0.23 every record costs an allocation in each direction; apart from that nothing is allocated
//! per message here (docs/decisions, page on TLS).

mod certificates;
mod choice;
mod lenient;
mod reasons;
mod session;
mod tally;
mod upgrade;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use rustls::client::UnbufferedClientConnection;
use rustls::server::UnbufferedServerConnection;
use weigh_model::protocol::{Dial, Host};

use super::session::Begin;
use super::{client, server};
use session::Session;
use upgrade::{ClientUpgrade, ServerUpgrade};

pub use certificates::{Certificates, MadeFor};
pub use choice::{ClientChoice, Identity, ServerChoice, TlsError, Versions};
pub use tally::{Figures, Tally};

#[cfg(any(feature = "dtls", feature = "quic"))]
pub(in crate::layer) use {
    reasons::{of_client as fault_of_client, of_server as fault_of_server},
    tally::Finished,
};

/// Puts these clients inside TLS. All of them share the state that resumes sessions.
///
/// # Errors
/// See [`ClientChoice::check`].
pub fn secure_dial(
    dial: Dial,
    choice: &ClientChoice,
    tally: &Arc<Tally>,
) -> Result<Dial, TlsError> {
    Ok(client::layered(dial, begin_client(choice, tally)?))
}

/// Puts these clients inside TLS that begins behind the first line of the server
/// ([`weigh_model::protocol::Properties::upgrades_to_tls`]).
///
/// # Errors
/// Those of [`secure_dial`].
pub fn upgrade_dial(
    dial: Dial,
    choice: &ClientChoice,
    tally: &Arc<Tally>,
) -> Result<Dial, TlsError> {
    let begin = begin_client(choice, tally)?;
    let begin = move |_| Ok(ClientUpgrade::new(Arc::clone(&begin)));
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
    Ok(server::layered(host, begin_server(choice, tally)?))
}

/// Puts this server inside TLS that begins behind its first line.
///
/// # Errors
/// Those of [`secure_host`].
pub fn upgrade_host(
    host: Host,
    choice: &ServerChoice,
    tally: &Arc<Tally>,
) -> Result<Host, TlsError> {
    let begin = begin_server(choice, tally)?;
    let begin = move |now| Ok(ServerUpgrade::new(begin(now)?));
    Ok(server::layered(host, Arc::new(begin)))
}

fn begin_client(
    choice: &ClientChoice,
    tally: &Arc<Tally>,
) -> Result<Begin<Session<UnbufferedClientConnection>>, TlsError> {
    let (config, name) = choice.config(tally)?;
    let tally = Arc::clone(tally);
    Ok(Arc::new(move |now| {
        let made = UnbufferedClientConnection::new(Arc::clone(&config), name.clone());
        let connection = made.map_err(|error| reasons::of_client(&error))?;
        Ok(Session::new(connection, now, Arc::clone(&tally)))
    }))
}

fn begin_server(
    choice: &ServerChoice,
    tally: &Arc<Tally>,
) -> Result<Begin<Session<UnbufferedServerConnection>>, TlsError> {
    let (config, tally) = (choice.config()?, Arc::clone(tally));
    Ok(Arc::new(move |now| {
        let made = UnbufferedServerConnection::new(Arc::clone(&config));
        let connection = made.map_err(|error| reasons::of_server(&error))?;
        Ok(Session::new(connection, now, Arc::clone(&tally)))
    }))
}
