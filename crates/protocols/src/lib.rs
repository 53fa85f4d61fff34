//! The registry of protocols: one folder and one line each.

use weigh_model::Protocol;
use weigh_model::protocol::Invalid;

#[cfg(feature = "library")]
pub mod adapter;
pub mod amqp;
pub mod amqp1;
mod broker_core;
mod chance;
pub mod coap;
pub mod fields;
pub mod grpc;
pub mod http1;
mod http1_core;
pub mod http2;
mod http2_core;
pub mod http3;
mod implementation;
pub mod kafka;
pub mod mqtt;
mod name_pattern;
pub mod nats;
pub mod pass_through;
mod push_core;
mod readings_core;
pub mod redis;
mod requests;
pub mod server_counts;
pub mod sse;
mod statuses;
pub mod tcp;
pub mod urls;
pub mod websocket;

pub use requests::basic_authorization;
pub use weigh_model::nearest::nearest;

/// Every protocol there is, in the order they are listed to a user.
pub static PROTOCOLS: &[&dyn Protocol] = &[
    &mqtt::Mqtt,
    &http1::Http1,
    &tcp::Tcp,
    &coap::Coap,
    &http2::Http2,
    &http3::Http3,
    &grpc::Grpc,
    &nats::Nats,
    &amqp::Amqp,
    &amqp1::Amqp1,
    &redis::Redis,
    &websocket::WebSocket,
    &sse::Sse,
    &kafka::Kafka,
];

/// The protocol of this name or alias, in any case.
///
/// # Errors
/// If there is none; the error proposes the nearest name.
pub fn find(name: &str) -> Result<&'static dyn Protocol, Invalid> {
    let wanted = name.to_ascii_lowercase();
    let known = |protocol: &&&'static dyn Protocol| names_of(**protocol).any(|own| own == wanted);
    PROTOCOLS.iter().find(known).copied().ok_or_else(|| unknown(name, &wanted))
}

/// The names of all protocols with their aliases, for an error: `mqtt, http1 (or http), tcp`.
pub fn listed() -> String {
    let words = PROTOCOLS.iter().map(|own| match own.aliases() {
        [] => own.name().to_owned(),
        aliases => format!("{} (or {})", own.name(), aliases.join(", ")),
    });
    words.collect::<Vec<String>>().join(", ")
}

fn names_of(protocol: &dyn Protocol) -> impl Iterator<Item = &'static str> {
    std::iter::once(protocol.name()).chain(protocol.aliases().iter().copied())
}

fn unknown(name: &str, wanted: &str) -> Invalid {
    let nearest = nearest(wanted, PROTOCOLS.iter().flat_map(|protocol| names_of(*protocol)));
    let fix = match nearest {
        Some(own) => format!("did you mean {own}? Expected one of: {}", listed()),
        None => format!("type one of {}", listed()),
    };
    Invalid::new("protocol", format!("unknown protocol {name:?}"), fix)
}
