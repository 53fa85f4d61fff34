//! Server-sent events (WHATWG HTML, section 9.2) over HTTP/1.1: producers POST messages, and each
//! subscriber has one GET whose answer does not end.

pub mod codec;

mod client;
mod plan;
mod server;
mod settings;

use std::sync::Arc;

use weigh_model::Pattern;
use weigh_model::protocol::{
    Dial, ErrorWords, Guarantee, Host, Invalid, Lifetime, PacketName, ProducerOf, Properties,
    Protocol, Role, Scheme, Setting, Transport,
};
use weigh_model::trial::{Settings, Trial};

use crate::http1_core::caller::HttpConnection;
use crate::http1_core::names;
use crate::push_core::{self, hub::Hub};
use crate::statuses;
use client::Subscriber;
use plan::Plan;
use server::{Rules, SseServer};

/// The protocol `sse`.
pub struct Sse;

impl Protocol for Sse {
    fn name(&self) -> &'static str {
        "sse"
    }

    fn schemes(&self) -> &'static [Scheme] {
        const SCHEMES: &[Scheme] = &[Scheme::plain("sse", 80), Scheme::secure("tls+sse", 443)];
        SCHEMES
    }

    /// A subscriber's request and the head of its answer come before the first message.
    fn properties(&self) -> Properties {
        Properties {
            is_only_by_name: true,
            is_brokered: true,
            greeting_round_trips: 1,
            ..Properties::default()
        }
    }

    fn error(&self, code: u16) -> ErrorWords {
        statuses::error(code)
    }

    fn patterns(&self) -> &'static [Pattern] {
        &[Pattern::Deliver, Pattern::Publish, Pattern::Hold]
    }

    fn settings(&self) -> &'static [Setting] {
        settings::SETTINGS
    }

    /// An answer confirms a POST, and a client without one may send again.
    fn guarantee(&self, _settings: &Settings) -> Guarantee {
        Guarantee::AtLeastOnce
    }

    fn packet_name(&self, from_client: bool, head: &[u8]) -> Option<PacketName> {
        let found = names::name(from_client, head)?;
        let is_stream = |four: &[u8]| four.eq_ignore_ascii_case(codec::KIND.as_bytes());
        let subscribes = from_client && head.windows(codec::KIND.len()).any(is_stream);
        Some(PacketName { subscribes, ..found })
    }

    fn dial(&self, trial: &Trial) -> Result<Dial, Invalid> {
        let pattern = trial.load.pattern;
        self.check_pattern(trial, "type deliver, publish or hold; request is a pattern of http")?;
        let plan = Arc::new(Plan::read(trial)?);
        let producer_of: ProducerOf = Box::new(push_core::trial::producer_of);
        Ok(Dial {
            transport: Transport::Stream,
            lifetime: Lifetime::Kept,
            confirms: true,
            is_answered: false,
            producer_of: plan.is_in_pairs().then_some(producer_of),
            make: Box::new(move |seat| match (seat.role, pattern) {
                // What is held open is a subscriber's answer.
                (Role::Consumer, _) | (_, Pattern::Hold) => {
                    Box::new(Subscriber::new(Arc::clone(&plan), seat.index))
                }
                (Role::Producer, _) => Box::new(HttpConnection::new(plan.template(seat.index))),
            }),
        })
    }

    fn host(&self, settings: &Settings) -> Result<Host, Invalid> {
        let rules = Arc::new(Rules::read(settings)?);
        let hub = Arc::new(Hub::new(rules.history()));
        Ok(Host {
            transport: Transport::Stream,
            make: Box::new(move |shard| {
                Box::new(SseServer::new(Arc::clone(&rules), Arc::clone(&hub), shard))
            }),
        })
    }
}
