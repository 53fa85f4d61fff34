//! WebSocket (RFC 6455) by itself: each message of the load is a message of WebSocket. Producers
//! send them to one path, subscribers get them on another.

mod client;
mod codec;
mod names;
mod plan;
mod routes;
mod server;
mod settings;

use std::sync::Arc;

use weigh_model::Pattern;
use weigh_model::protocol::{
    Dial, Guarantee, Host, Invalid, Lifetime, PacketName, ProducerOf, Properties, Protocol, Scheme,
    Setting, Transport,
};
use weigh_model::trial::{Settings, Trial};

use crate::push_core::{self, hub::Hub};
use plan::Plan;
use server::{Rules, WebSocketServer};
use settings::Confirm;

/// The protocol `websocket`.
pub struct WebSocket;

impl Protocol for WebSocket {
    fn name(&self) -> &'static str {
        "websocket"
    }

    /// URLs `ws://` are MQTT inside WebSocket.
    fn schemes(&self) -> &'static [Scheme] {
        const SCHEMES: &[Scheme] =
            &[Scheme::plain("websocket", 80), Scheme::secure("tls+websocket", 443)];
        SCHEMES
    }

    /// A ping has two bytes and four of the mask; its pong has no mask and is taken to be as long.
    fn properties(&self) -> Properties {
        Properties {
            is_only_by_name: true,
            is_brokered: true,
            greeting_round_trips: 1,
            ping_bytes: Some(6),
            ..Properties::default()
        }
    }

    fn patterns(&self) -> &'static [Pattern] {
        &[Pattern::Deliver, Pattern::Publish, Pattern::Request, Pattern::Session, Pattern::Hold]
    }

    fn settings(&self) -> &'static [Setting] {
        settings::SETTINGS
    }

    fn lanes(&self) -> &'static [&'static [(&'static str, &'static str)]] {
        &[&[("confirm", "reply")], &[("confirm", "none")]]
    }

    /// An answer comes from the application, which has the message; a pong comes from its library.
    fn guarantee(&self, settings: &Settings) -> Guarantee {
        match settings::confirm(settings) {
            Confirm::Reply | Confirm::Echo => Guarantee::AtLeastOnce,
            Confirm::Nothing | Confirm::Pong => Guarantee::AtMostOnce,
        }
    }

    fn packet_name(&self, from_client: bool, head: &[u8]) -> Option<PacketName> {
        names::name(from_client, head)
    }

    fn dial(&self, trial: &Trial) -> Result<Dial, Invalid> {
        self.check_pattern(trial, "type deliver, publish, request, session or hold")?;
        let plan = Arc::new(Plan::read(trial)?);
        let producer_of: ProducerOf = Box::new(push_core::trial::producer_of);
        Ok(Dial {
            transport: Transport::Stream,
            lifetime: Lifetime::of(trial.load.pattern),
            confirms: plan.confirm != Confirm::Nothing,
            // A close frame is answered by one (RFC 6455, section 5.5.1).
            is_answered: true,
            producer_of: plan.is_in_pairs().then_some(producer_of),
            make: Box::new(move |seat| Box::new(client::Client::new(Arc::clone(&plan), seat))),
        })
    }

    fn host(&self, settings: &Settings) -> Result<Host, Invalid> {
        let (rules, hub) = (Arc::new(Rules::read(settings)?), Arc::new(Hub::new(0)));
        Ok(Host {
            transport: Transport::Stream,
            make: Box::new(move |shard| {
                Box::new(WebSocketServer::new(Arc::clone(&rules), Arc::clone(&hub), shard))
            }),
        })
    }
}
