//! Finds out what a server can do: small questions over connections of its own, one after another,
//! every wait with an end. It makes no load and times nothing.

pub mod abilities;
mod amqp;
mod amqp1;
mod coap;
mod coap_line;
pub mod demands;
mod exchange;
mod finding;
mod http;
#[cfg(feature = "library")]
mod http2;
#[cfg(feature = "library")]
mod http2_link;
#[cfg(feature = "quic")]
mod http3;
mod http_head;
mod kafka;
mod link;
mod mqtt;
mod nats;
mod question;
#[cfg(feature = "quic")]
mod quic_line;
#[cfg(feature = "quic")]
mod quic_wire;
mod reach;
mod redis;
mod search;
mod sse;
mod stranger;
mod table;
mod websocket;
mod wire;

use weigh_protocols::urls;

pub use mqtt::Bounds;
pub use question::Questions;
pub use reach::{Reach, Trouble};
pub use table::{short, table};

use abilities::Ability;
use stranger::{Speaker, identify};

/// Reason for which nothing can be found out.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unusable {
    /// There is nothing to ask in this protocol.
    #[error("{0}")]
    NoQuestions(String),
    /// No process takes connections.
    #[error("{0}")]
    Unreachable(String),
    /// The server does not let us in.
    #[error("{0}")]
    Refused(String),
    /// It speaks something else, or nothing.
    #[error("{0}")]
    Stranger(String),
}

/// Asks a server everything about the protocol of its URL. `tell` hears of every ability as soon as
/// it is known.
///
/// # Errors
/// If it is not a server of this protocol that lets us in.
pub fn probe(
    reach: &Reach,
    bounds: Bounds,
    tell: &mut dyn FnMut(&Ability),
) -> Result<Vec<Ability>, Unusable> {
    let known = urls::find(&reach.endpoint.scheme).map(|(protocol, _)| protocol);
    let asker = known.and_then(|protocol| asker_of(protocol.name()));
    let Some(asker) = asker else {
        let spoken = known.map_or(&*reach.endpoint.scheme, |protocol| protocol.scheme());
        return Err(Unusable::NoQuestions(format!(
            "{}: {spoken} has no abilities to be found out; give a broker of MQTT, AMQP or Kafka, \
             or a server of HTTP, gRPC, CoAP, NATS, Redis, WebSocket or server-sent events",
            reach.endpoint
        )));
    };
    if asker.speaker == Speaker::Coap && urls::is_secure(&reach.endpoint) {
        return Err(Unusable::NoQuestions(format!(
            "{}: a server inside DTLS cannot be probed; type a coap:// URL of the same server",
            reach.endpoint
        )));
    }
    if urls::is_quic(&reach.endpoint) && !cfg!(feature = "quic") {
        return Err(Unusable::NoQuestions(format!(
            "{}: this build has no QUIC; build it with --features quic",
            reach.endpoint
        )));
    }
    (asker.ask)(reach, bounds, tell).map_err(|trouble| told(reach, asker, &trouble))
}

/// Probe of a protocol: an entry for each whose servers can be asked.
struct Asker {
    /// The registry's name.
    protocol: &'static str,
    ask: Ask,
    /// Protocol that answers on a port of such a server.
    speaker: Speaker,
}

/// Asks one server everything, within bounds; each finding is reported as soon as it is known.
type Ask = fn(&Reach, Bounds, &mut dyn FnMut(&Ability)) -> Result<Vec<Ability>, Trouble>;

/// The list of them.
const ASKERS: &[Asker] = &[
    Asker { protocol: "mqtt", ask: mqtt::probe, speaker: Speaker::Mqtt },
    Asker { protocol: "http1", ask: http::probe, speaker: Speaker::Http },
    Asker { protocol: "coap", ask: coap::probe, speaker: Speaker::Coap },
    Asker { protocol: "amqp1", ask: amqp1::probe, speaker: Speaker::Amqp1 },
    Asker { protocol: "kafka", ask: kafka::probe, speaker: Speaker::Kafka },
    Asker { protocol: "amqp", ask: amqp::probe, speaker: Speaker::Amqp },
    Asker { protocol: "nats", ask: nats::probe, speaker: Speaker::Nats },
    Asker { protocol: "websocket", ask: websocket::probe, speaker: Speaker::Http },
    Asker { protocol: "sse", ask: sse::probe, speaker: Speaker::Http },
    Asker { protocol: "redis", ask: redis::probe, speaker: Speaker::Redis },
    #[cfg(feature = "library")]
    Asker { protocol: "http2", ask: http2::probe, speaker: Speaker::Http2 },
    #[cfg(feature = "library")]
    Asker { protocol: "grpc", ask: http2::probe_grpc, speaker: Speaker::Http2 },
    #[cfg(feature = "quic")]
    Asker { protocol: "http3", ask: http3::probe, speaker: Speaker::Http3 },
];

fn asker_of(protocol: &str) -> Option<&'static Asker> {
    ASKERS.iter().find(|asker| asker.protocol == protocol)
}

/// Returns the question since which a server has been dead, if it died while it was asked.
pub fn gone(found: &[Ability]) -> Option<&str> {
    let first = found.iter().find(|own| own.evidence.starts_with(finding::GONE))?;
    Some(&first.evidence)
}

/// Returns the problem with a server that could not be asked, and the protocol that answers
/// instead.
fn told(reach: &Reach, asker: &Asker, trouble: &Trouble) -> Unusable {
    let endpoint = &reach.endpoint;
    match trouble {
        Trouble::Unreachable(text) => Unusable::Unreachable(format!("{endpoint}: {text}")),
        Trouble::Refused(text) => {
            let fix = match endpoint.credentials {
                Some(_) => "check user and password",
                None => "give credentials: --user NAME, with the password in WEIGH_PASSWORD",
            };
            let text = format!("{endpoint}: the server refused us: {text}; {fix}");
            Unusable::Refused(text)
        }
        Trouble::OutOfTime => {
            Unusable::Unreachable(format!("{endpoint}: {trouble}; type a longer --within"))
        }
        other if asker.speaker.is_on_udp() || urls::is_quic(endpoint) => {
            let scheme = endpoint.scheme.to_uppercase();
            Unusable::Stranger(format!(
                "{endpoint}: no {scheme} came about ({other}): check protocol and port, and \
                 whether the server listens on UDP"
            ))
        }
        other => {
            // Inside TLS only the outside could be looked at.
            if urls::is_secure(endpoint) {
                let text = format!("{endpoint}: {other}; check scheme, port and certificates");
                return Unusable::Stranger(text);
            }
            let speaker = identify(reach);
            let words = match speaker == asker.speaker {
                true => "check the path, and who may connect".to_owned(),
                false => speaker.words(&reach.endpoint.authority()),
            };
            let scheme = endpoint.scheme.to_uppercase();
            Unusable::Stranger(format!("{endpoint}: no {scheme} came about ({other}): {words}"))
        }
    }
}
