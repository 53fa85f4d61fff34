//! What lies between the protocol of a lane and TCP: WebSocket, TLS, or one inside the other; and
//! the account of them, with that of sealed bodies.

use std::sync::Arc;

use weigh_engine::layer::websocket::{ClientChoice, Tally, wrap_dial, wrap_host};
use weigh_model::Endpoint;
use weigh_model::event::TrialFinished;
use weigh_model::protocol::{Dial, Host};
use weigh_model::trial::Settings;
use weigh_model::websocket;
use weigh_seal::BodySealer;

use crate::case::lanes::Lane;
use crate::exit::Stop;
use crate::sealed_bodies;
use crate::targets::handshakes::Handshakes;
use crate::targets::secured::{self, Vault};

/// What the layers of a trial are counted in.
#[derive(Default)]
pub struct Counted {
    tls: secured::Counted,
    websocket: Option<Arc<Tally>>,
    sealer: Option<Arc<BodySealer>>,
}

/// The same clients inside what the lane asks for.
///
/// # Errors
/// Those of certificates.
pub fn dial(
    lane: &Lane,
    dial: Dial,
    (endpoint, seed): (&Endpoint, u64),
    vault: &Vault,
) -> Result<(Dial, Counted), Stop> {
    let (dial, websocket) = match websocket::is_on(&lane.settings) {
        true => {
            let tally = Arc::default();
            let choice = choice(&lane.settings, lane.protocol.name(), endpoint, seed);
            (wrap_dial(dial, &choice, &tally), Some(tally))
        }
        false => (dial, None),
    };
    let (dial, tls) = secured::dial(lane, dial, endpoint, vault)?;
    Ok((dial, Counted { tls, websocket, sealer: None }))
}

/// Clients of a server that we have started ourselves, whose URL says its layers; `None` where its
/// certificates are not known.
pub fn dial_to_ours(
    dial: Dial,
    protocol: &str,
    settings: &Settings,
    endpoint: &Endpoint,
    vault: &Vault,
) -> Option<Dial> {
    let dial = match endpoint.is_websocket() {
        true => wrap_dial(dial, &choice(settings, protocol, endpoint, 0), &Arc::default()),
        false => dial,
    };
    match endpoint.is_secure() {
        true => secured::dial_to_made(dial, settings, vault),
        false => Some(dial),
    }
}

/// The reference server inside what these settings ask for.
///
/// # Errors
/// Those of certificates.
pub fn host(
    host: Host,
    protocol: &str,
    settings: &Settings,
    folder: Option<&std::path::Path>,
) -> Result<Host, Stop> {
    let host = match websocket::is_on(settings) {
        true => wrap_host(host, protocol, &Arc::default()),
        false => host,
    };
    secured::host(host, settings, folder)
}

impl Counted {
    /// The handshakes of TLS, where there was any.
    pub fn handshakes(&self) -> Option<Handshakes> {
        secured::handshakes(&self.tls)
    }

    /// The same with who sealed the bodies, where they were.
    pub fn sealed_by(self, sealer: Option<Arc<BodySealer>>) -> Counted {
        Counted { sealer, ..self }
    }

    /// Puts what the layers cost into the record of a trial.
    pub fn tell(&self, finished: &mut TrialFinished) {
        secured::tell(&self.tls, finished);
        if let Some(sealer) = &self.sealer {
            sealed_bodies::tell(sealer, finished);
        }
        let Some(tally) = &self.websocket else { return };
        let figures = tally.figures();
        let mut add = |name: &str, value: f64| {
            finished.metrics.insert(format!("websocket_{name}"), value);
        };
        add("upgrades", figures.upgrades as f64);
        if figures.upgrades > 0 {
            let each = |bytes: u64| bytes as f64 / figures.upgrades as f64;
            add("upgrade_sent_bytes", each(figures.upgrade_sent_bytes));
            add("upgrade_received_bytes", each(figures.upgrade_received_bytes));
        }
        add("frame_bytes", (figures.frame_sent_bytes + figures.frame_received_bytes) as f64);
    }
}

/// The subprotocol is called as the protocol is (MQTT 5.0, section 6: `mqtt`).
fn choice(settings: &Settings, subprotocol: &str, endpoint: &Endpoint, seed: u64) -> ClientChoice {
    let Endpoint { host, port, .. } = endpoint;
    let host = if host.contains(':') { format!("[{host}]") } else { host.clone() };
    let is_usual = *port == if endpoint.is_secure() { 443 } else { 80 };
    ClientChoice {
        host: if is_usual { host } else { format!("{host}:{port}") },
        path: settings.text(websocket::PATH.key).to_owned(),
        subprotocol: subprotocol.to_owned(),
        seed,
    }
}
