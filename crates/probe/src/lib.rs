//! Finds out what a server can do: small questions over connections of its own, one after another,
//! every wait with an end. It makes no load and times nothing.

pub mod abilities;
pub mod demands;
mod finding;
mod http;
#[cfg(feature = "library")]
mod http2;
#[cfg(feature = "library")]
mod http2_link;
mod mqtt;
mod reach;
mod search;
mod stranger;
mod table;

use weigh_model::endpoint::spoken_scheme;

pub use mqtt::Bounds;
pub use reach::{Reach, Trouble};
pub use table::{short, table};

use abilities::Ability;
use stranger::{Speaker, identify};

/// Why nothing can be found out.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unusable {
    /// There is nothing to ask in this protocol.
    #[error("{0}")]
    NoQuestions(String),
    /// Nobody takes connections.
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
    let scheme = spoken_scheme(&reach.endpoint.scheme);
    let asked = match scheme {
        "mqtt" => mqtt::probe(reach, bounds, tell),
        "http" => http::probe(reach, bounds, tell),
        #[cfg(feature = "library")]
        "h2c" => http2::probe(reach, bounds, tell),
        #[cfg(feature = "library")]
        "grpc" => http2::probe_grpc(reach, bounds, tell),
        other => {
            return Err(Unusable::NoQuestions(format!(
                "{}: {other} has no abilities to be found out; give a broker of MQTT, or a server \
                 of HTTP or gRPC",
                reach.endpoint
            )));
        }
    };
    asked.map_err(|trouble| told(reach, scheme, &trouble))
}

/// Where a server died while it was asked: since which question.
pub fn gone(found: &[Ability]) -> Option<&str> {
    let first = found.iter().find(|own| own.evidence.starts_with(finding::GONE))?;
    Some(&first.evidence)
}

/// What is wrong with a server that was not let be asked, and who answers instead.
fn told(reach: &Reach, scheme: &str, trouble: &Trouble) -> Unusable {
    let endpoint = &reach.endpoint;
    match trouble {
        Trouble::Unreachable(text) => Unusable::Unreachable(format!("{endpoint}: {text}")),
        Trouble::Refused(text) => {
            let mend = match endpoint.credentials {
                Some(_) => "check user and password",
                None => "give credentials: --user NAME, with the password in WEIGH_PASSWORD",
            };
            let text = format!("{endpoint}: the server refused us: {text}; {mend}");
            Unusable::Refused(text)
        }
        Trouble::OutOfTime => {
            Unusable::Unreachable(format!("{endpoint}: {trouble}; type a longer --within"))
        }
        other => {
            // Inside TLS only the outside could be looked at.
            if endpoint.is_secure() {
                let text = format!("{endpoint}: {other}; check scheme, port and certificates");
                return Unusable::Stranger(text);
            }
            let speaker = identify(reach);
            let is_asked = match speaker {
                Speaker::Mqtt => scheme == "mqtt",
                Speaker::Http => scheme == "http",
                Speaker::Http2 => matches!(scheme, "h2c" | "grpc"),
                _ => false,
            };
            let words = match is_asked {
                true => "check the path, and who may connect".to_owned(),
                false => speaker.words(&reach.authority()),
            };
            let scheme = endpoint.scheme.to_uppercase();
            Unusable::Stranger(format!("{endpoint}: no {scheme} came about ({other}): {words}"))
        }
    }
}
