//! CoAP (RFC 7252) over UDP, with Observe (RFC 7641) and block-wise requests (RFC 7959): the
//! client, the reference server, and the codec that both share; protected by OSCORE (RFC 8613).

pub mod codec;
pub mod oscore;

mod blocks;
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
mod poller;
mod repeats;
mod reply;
mod rules;
mod seen;
mod server;
mod settings;

use std::sync::Arc;

use weigh_model::load::Polling;
use weigh_model::mark::MARK_BYTES;
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
        const SCHEMES: &[Scheme] = &[Scheme::plain("coap", 5683), Scheme::secure("coaps", 5684)];
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
        if number == poller::UNANSWERED {
            return ErrorWords {
                name: "no answer within Tmax".to_owned(),
                advice: "a request or its answer was lost: compare with a longer --timeout",
            };
        }
        if number == client::OVERSIZED {
            return ErrorWords {
                name: "more blocks than an endpoint has message IDs".to_owned(),
                advice: "send a smaller file: at most 32 MiB in blocks of 1,024 bytes",
            };
        }
        let code = Code::new((number / 100) as u8, (number % 100) as u8);
        let words = code.name().map_or_else(String::new, |words| format!(" {words}"));
        let advice = match (code.class(), code.detail()) {
            (4, 0) => {
                "the server cannot read the request: with OSCORE compare the keys of the ends"
            }
            (4, 1) => {
                "the server requires credentials: type a coaps:// URL and a pre-shared key, or for \
                 OSCORE its IDs and a coap.oscore_sequence above all that it has seen"
            }
            (4, 3) => "the server requires credentials: type a coaps:// URL and a pre-shared key",
            (4, 2) => {
                "the server does not know an option: remove coap.content_format, the query or \
                 coap.oscore"
            }
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
        &[
            Pattern::Publish,
            Pattern::Request,
            Pattern::Deliver,
            Pattern::Poll,
            Pattern::Session,
            Pattern::Transfer,
        ]
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
        contradictions(trial)?;
        let load = &trial.load;
        let polling = load.polling();
        let is_in_pairs = load.delivers() && load.topology == Topology::Pairs;
        let lists = if is_in_pairs { load.connections } else { 1 };
        let keys = oscore::Keys::read(&trial.settings)?;
        let sessions = Arc::new(oscore::Sessions::new(keys, load)?);
        let plan =
            |list| plan::Plan::read(trial, is_in_pairs.then_some(list), &sessions).map(Arc::new);
        let plans = (0..lists).map(plan).collect::<Result<Vec<_>, _>>()?;
        let cursors = poller::Cursors::default();
        Ok(Dial {
            transport: Transport::Datagram,
            lifetime: Lifetime::of(load.pattern),
            confirms: plans[0].is_answered,
            is_answered: false,
            producer_of: None,
            make: Box::new(move |seat| {
                let plan = plans[seat.index as usize % plans.len()].clone();
                match seat.role {
                    Role::Producer => Box::new(client::CoapClient::new(plan, seat)),
                    Role::Consumer => match polling {
                        Some(Polling { limit, .. }) => {
                            Box::new(poller::CoapPoller::new(plan, cursors.clone(), limit, seat))
                        }
                        None => Box::new(observer::CoapObserver::new(plan, seat)),
                    },
                }
            }),
        })
    }

    fn host(&self, settings: &Settings) -> Result<Host, Invalid> {
        let rules = Arc::new(rules::Rules::read(settings)?);
        Ok(Host {
            transport: Transport::Datagram,
            make: Box::new(move |shard| Box::new(server::CoapServer::new(rules.clone(), shard))),
        })
    }
}

/// What CoAP, or this server of it, cannot do.
fn contradictions(trial: &Trial) -> Result<(), Invalid> {
    let load = &trial.load;
    let carries = Coap.carries(&trial.settings);
    if load.topology == Topology::Shared {
        return Err(Invalid::new(
            "load.topology",
            "observers of CoAP cannot share notifications",
            "type --topology fan-in, fan-out or pairs",
        ));
    }
    if load.delivers() && !carries {
        return Err(Invalid::new(
            "coap.method",
            "a GET brings nothing that could be delivered",
            "leave coap.method at POST",
        ));
    }
    let polling = load.polling();
    if polling.is_some_and(|polling| polling.wait.0 > 0) {
        return Err(Invalid::new(
            "load.poll.wait",
            "a server of CoAP notifies observers (RFC 7641), and holds no request",
            "leave it out, or type --pattern deliver",
        ));
    }
    let observes = load.delivers() && polling.is_none();
    let is_large = load.size.is_some_and(|size| size.0 > NOTIFICATION_BYTES_MAX);
    if observes && (is_large || load.pattern == Pattern::Transfer) {
        return Err(Invalid::new(
            "load.size",
            format!("a notification carries one block, at most {NOTIFICATION_BYTES_MAX} bytes"),
            "type a smaller -s, --pattern poll, or a transfer without subscribers (-y 0)",
        ));
    }
    let is_small = load.size.is_some_and(|size| size.0 < MARK_BYTES as u64);
    if polling.is_some() && load.connections > 1 && is_small {
        return Err(Invalid::new(
            "load.size",
            "bodies without room for a mark cannot be distinguished in one list of many \
             producers",
            format!("type at least {MARK_BYTES}B, or one producer (-c 1)"),
        ));
    }
    if load.pattern == Pattern::Transfer && !carries {
        return Err(Invalid::new(
            "coap.method",
            "a GET has no body, and a transfer needs one",
            "leave coap.method at POST",
        ));
    }
    Ok(())
}

/// The largest block (RFC 7959, section 2.2).
const NOTIFICATION_BYTES_MAX: u64 = 1_024;
