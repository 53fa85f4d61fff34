//! WebSocket (RFC 6455) as a layer around any protocol: both ends get it by having their [`Dial`]
//! or [`Host`] wrapped. What the protocol sends at once is one binary frame.

mod session;
mod tally;

#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use weigh_model::protocol::{Dial, Host};
use weigh_stats::random::Random;

use super::{client, server};
pub use session::ClientChoice;
use session::{Session, Side};
pub use tally::{Figures, Tally};
pub use weigh_websocket::{Header, Opcode, close, frame, upgrade};

/// Puts these clients inside WebSocket.
pub fn wrap_dial(dial: Dial, choice: &ClientChoice, tally: &Arc<Tally>) -> Dial {
    let (choice, tally) = (Arc::new(choice.clone()), Arc::clone(tally));
    let connections = AtomicU64::new(0);
    let begin = move |now| {
        let number = connections.fetch_add(1, Ordering::Relaxed);
        let random = Random::stream(choice.seed, number);
        let side = Side::client(&choice, random);
        Ok(Session::new(side, now, Arc::clone(&tally)))
    };
    client::layered(dial, Arc::new(begin))
}

/// Puts this server inside WebSocket. It accepts every path, and only this subprotocol.
pub fn wrap_host(host: Host, subprotocol: &str, tally: &Arc<Tally>) -> Host {
    let (subprotocol, tally) = (subprotocol.to_owned(), Arc::clone(tally));
    let begin = move |now| Ok(Session::new(Side::server(&subprotocol), now, Arc::clone(&tally)));
    server::layered(host, Arc::new(begin))
}
