//! CoAP (RFC 7252) over UDP, with Observe (RFC 7641) and block-wise requests (RFC 7959): the
//! client, the reference server, and the codec that both share.

pub mod codec;

mod client;
mod hearing;
mod hub;
mod ids;
mod incoming;
mod intake;
mod names;
mod observer;
mod observers;
mod parameters;
mod path;
mod plan;
mod repeats;
mod reply;
mod seen;
mod server;
mod settings;

use std::sync::Arc;

use weigh_model::protocol::{
    Dial, ErrorWords, Guarantee, Host, Invalid, Lifetime, PacketName, Properties, Protocol, Role,
    Scheme, Setting, Transport,
};
use weigh_model::trial::{Settings, Trial};
use weigh_model::{Pattern, Topology};

use codec::Code;

/// The protocol `coap`.
pub struct Coap;

impl Protocol for Coap {
    fn name(&self) -> &'static str {
        "coap"
    }

    fn schemes(&self) -> &'static [Scheme] {
        const SCHEMES: &[Scheme] = &[Scheme::plain("coap", 5683)];
        SCHEMES
    }

    /// Every server answers an empty confirmable message with a reset (section 4.3).
    fn properties(&self) -> Properties {
        Properties { greeting_datagram: b"\x40\x00\x77\x67", ..Properties::default() }
    }

    /// Codes as numbers of three digits, and one for a reset.
    fn error(&self, number: u16) -> ErrorWords {
        if number == client::RESET {
            return ErrorWords {
                name: "a reset (RST)".to_owned(),
                advice: "the server rejects the message: check that it is a CoAP server",
            };
        }
        let code = Code::new((number / 100) as u8, (number % 100) as u8);
        let words = code.name().map_or_else(String::new, |words| format!(" {words}"));
        let advice = match (code.class(), code.detail()) {
            (4, 1 | 3) => "the server requires credentials, which CoAP without DTLS cannot carry",
            (4, 2) => "the server does not know an option: remove coap.content_format or the query",
            (4, 4) => "there is nothing at this path: type coap://HOST/PATH",
            (4, 5) => "the resource does not support this method: type --set coap.method=PUT",
            (4, 13) => "the body is too large for the server: type a smaller -s",
            (4, 15) => "the server does not support this format: type --set coap.content_format=0",
            (4, 29) | (5, 3) => "the server refuses load: lower -R or -c, or raise its limit",
            _ => ErrorWords::ADVICE,
        };
        ErrorWords { name: format!("{code}{words}"), advice }
    }

    fn patterns(&self) -> &'static [Pattern] {
        &[Pattern::Publish, Pattern::Request, Pattern::Deliver, Pattern::Session]
    }

    fn settings(&self) -> &'static [Setting] {
        settings::SETTINGS
    }

    fn lanes(&self) -> &'static [&'static [(&'static str, &'static str)]] {
        &[&[("type", "non")], &[("type", "con")]]
    }

    /// A confirmable message is repeated until it is acknowledged; another one is sent once.
    fn guarantee(&self, settings: &Settings) -> Guarantee {
        match settings.text("type") {
            "non" => Guarantee::AtMostOnce,
            _ => Guarantee::AtLeastOnce,
        }
    }

    fn carries(&self, settings: &Settings) -> bool {
        settings.text("method") != "GET"
    }

    fn packet_name(&self, from_client: bool, head: &[u8]) -> Option<PacketName> {
        names::name(from_client, head)
    }

    fn dial(&self, trial: &Trial) -> Result<Dial, Invalid> {
        let load = &trial.load;
        if load.topology == Topology::Shared {
            return Err(Invalid::new(
                "load.topology",
                "observers of CoAP cannot share notifications",
                "type --topology fan-in, fan-out or pairs",
            ));
        }
        if load.delivers() && !self.carries(&trial.settings) {
            return Err(Invalid::new(
                "coap.method",
                "a GET brings nothing that could be delivered",
                "leave coap.method at POST",
            ));
        }
        let is_in_pairs = load.delivers() && load.topology == Topology::Pairs;
        let lists = if is_in_pairs { load.connections } else { 1 };
        let plan = |list| plan::Plan::read(trial, is_in_pairs.then_some(list)).map(Arc::new);
        let plans = (0..lists).map(plan).collect::<Result<Vec<_>, _>>()?;
        Ok(Dial {
            transport: Transport::Datagram,
            lifetime: match load.pattern {
                Pattern::Session => Lifetime::PerMessage,
                _ => Lifetime::Kept,
            },
            confirms: plans[0].is_answered,
            is_answered: false,
            producer_of: None,
            make: Box::new(move |seat| {
                let plan = plans[seat.index as usize % plans.len()].clone();
                match seat.role {
                    Role::Producer => Box::new(client::CoapClient::new(plan, seat)),
                    Role::Consumer => Box::new(observer::CoapObserver::new(plan, seat)),
                }
            }),
        })
    }

    fn host(&self, settings: &Settings) -> Result<Host, Invalid> {
        let rules = Arc::new(server::Rules::read(settings)?);
        Ok(Host {
            transport: Transport::Datagram,
            make: Box::new(move |shard| Box::new(server::CoapServer::new(rules.clone(), shard))),
        })
    }
}
