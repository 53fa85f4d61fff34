//! Layers between the protocol of a lane and TCP (WebSocket, TLS, or both), and their costs, with
//! those of sealed bodies.

use std::sync::Arc;
use weigh_protocols::urls;

use weigh_engine::layer::websocket::{ClientChoice, Tally, wrap_dial, wrap_host};
use weigh_model::Endpoint;
use weigh_model::event::TrialFinished;
use weigh_model::protocol::{Dial, Host, Properties};
use weigh_model::trial::Settings;
use weigh_model::websocket;
use weigh_seal::BodySealer;

use crate::case::lanes::Lane;
use crate::exit::Stop;
use crate::sealed_bodies;
use crate::targets::handshakes::Handshakes;
use crate::targets::tls::{self, CertificateFiles};

/// Counts of the layers of a trial.
#[derive(Default)]
pub struct Counted {
    tls: tls::Counted,
    websocket: Option<Arc<Tally>>,
    sealer: Option<Arc<BodySealer>>,
}

/// Adds the lane's layers to a client.
///
/// # Errors
/// Errors of certificates.
pub fn dial(
    lane: &Lane,
    dial: Dial,
    (endpoint, seed): (&Endpoint, u64),
    vault: &CertificateFiles,
) -> Result<(Dial, Counted), Stop> {
    let (dial, websocket) = match websocket::is_on(&lane.settings) {
        true => {
            let tally = Arc::default();
            let choice =
                choice(&lane.settings, lane.protocol.properties().websocket, endpoint, seed);
            (wrap_dial(dial, &choice, &tally), Some(tally))
        }
        false => (dial, None),
    };
    let (dial, tls) = tls::dial(lane, dial, endpoint, vault)?;
    Ok((dial, Counted { tls, websocket, sealer: None }))
}

/// Clients of a server that Weighbridge started, whose URL names its layers; `None` if its
/// certificates are unknown.
pub fn dial_to_ours(
    dial: Dial,
    subprotocol: &str,
    settings: &Settings,
    endpoint: &Endpoint,
    vault: &CertificateFiles,
) -> Option<Dial> {
    let dial = match urls::is_websocket(endpoint) {
        true => wrap_dial(dial, &choice(settings, subprotocol, endpoint, 0), &Arc::default()),
        false => dial,
    };
    match urls::is_secure(endpoint) {
        true => tls::dial_to_made(dial, settings, vault),
        false => Some(dial),
    }
}

/// Adds the layers of these settings to the reference server.
///
/// # Errors
/// Errors of certificates.
pub fn host(
    host: Host,
    properties: &Properties,
    settings: &Settings,
    folder: Option<&std::path::Path>,
) -> Result<Host, Stop> {
    let host = match websocket::is_on(settings) {
        true => wrap_host(host, properties.websocket, &Arc::default()),
        false => host,
    };
    tls::host(host, properties.upgrades_to_tls, settings, folder)
}

impl Counted {
    /// The handshakes of TLS, if there were any.
    pub fn handshakes(&self) -> Option<Handshakes> {
        tls::handshakes(&self.tls)
    }

    /// Adds the sealer of the bodies, if they were sealed.
    pub fn sealed_by(self, sealer: Option<Arc<BodySealer>>) -> Counted {
        Counted { sealer, ..self }
    }

    /// Adds the costs of the layers to the record of a trial.
    pub fn tell(&self, finished: &mut TrialFinished) {
        tls::tell(&self.tls, finished);
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

/// The values of a client's upgrade request.
fn choice(settings: &Settings, subprotocol: &str, endpoint: &Endpoint, seed: u64) -> ClientChoice {
    let usual = if urls::is_secure(endpoint) { 443 } else { 80 };
    ClientChoice {
        host: endpoint.authority_omitting(usual),
        path: settings.text(websocket::PATH.key).to_owned(),
        subprotocol: subprotocol.to_owned(),
        seed,
    }
}
