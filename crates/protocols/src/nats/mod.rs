//! NATS, core and JetStream: the client, the reference server, and the codec that both share.

pub mod codec;

mod api;
mod client;
mod consumer;
mod errors;
mod jetstream;
mod log;
mod names;
mod packets;
mod plan;
mod router;
mod server;
mod settings;
mod stream;
mod trie;

use std::sync::Arc;

use weigh_model::protocol::{
    CountersBy, Dial, ErrorWords, Guarantee, Host, Invalid, Lifetime, PacketName, ProducerOf,
    Properties, Protocol, Scheme, Setting, Transport,
};
use weigh_model::trial::{Settings, Trial};
use weigh_model::{Durability, Pattern};

use client::Client;
use plan::Plan;
use server::{Hub, NatsServer};
use settings::{Confirm, Rules};

/// The protocol `nats`.
#[derive(Clone, Copy, Debug)]
pub struct Nats;

impl Protocol for Nats {
    fn name(&self) -> &'static str {
        "nats"
    }

    fn schemes(&self) -> &'static [Scheme] {
        const SCHEMES: &[Scheme] = &[Scheme::plain("nats", 4222), Scheme::secure("tls+nats", 4222)];
        SCHEMES
    }

    /// The server's INFO, and CONNECT with its PONG; PING and PONG have six bytes each.
    fn properties(&self) -> Properties {
        Properties {
            is_compared: true,
            is_only_by_name: true,
            is_brokered: true,
            greeting_round_trips: 2,
            ping_bytes: Some(codec::PING.len() as u64),
            counters: CountersBy::Page,
            upgrades_to_tls: true,
            ..Properties::default()
        }
    }

    fn error(&self, code: u16) -> ErrorWords {
        errors::words(code)
    }

    fn patterns(&self) -> &'static [Pattern] {
        &[
            Pattern::Deliver,
            Pattern::Publish,
            Pattern::Request,
            Pattern::Batch,
            Pattern::Session,
            Pattern::Poll,
            Pattern::Hold,
        ]
    }

    fn settings(&self) -> &'static [Setting] {
        settings::SETTINGS
    }

    fn lanes(&self) -> &'static [&'static [(&'static str, &'static str)]] {
        &[&[("confirm", "none")], &[("confirm", "jetstream")]]
    }

    fn guarantee(&self, settings: &Settings) -> Guarantee {
        settings::guarantee(settings)
    }

    fn durability_limit(&self, settings: &Settings) -> Option<Durability> {
        settings::durability_limit(settings)
    }

    fn packet_name(&self, from_client: bool, head: &[u8]) -> Option<PacketName> {
        packets::name(from_client, head)
    }

    fn dial(&self, trial: &Trial) -> Result<Dial, Invalid> {
        self.check_pattern(trial, "type deliver, publish, request, batch, session, poll or hold")?;
        let plan = Arc::new(Plan::read(trial)?);
        let producer_of = plan
            .client_token()
            .map(|token| Box::new(move |subject: &[u8]| producer_of(subject, token)) as ProducerOf);
        Ok(Dial {
            transport: Transport::Stream,
            lifetime: Lifetime::of(trial.load.pattern),
            confirms: plan.confirm != Confirm::Nothing || plan.is_answered_by_itself,
            is_answered: false,
            producer_of,
            make: Box::new(move |seat| Box::new(Client::new(Arc::clone(&plan), seat))),
        })
    }

    fn host(&self, settings: &Settings) -> Result<Host, Invalid> {
        let hub = Arc::new(Hub::new(Rules::read(settings)?));
        Ok(Host {
            transport: Transport::Stream,
            make: Box::new(move |shard| Box::new(NatsServer::new(Arc::clone(&hub), shard))),
        })
    }
}

/// The producer's index in this token of a subject.
fn producer_of(subject: &[u8], token: usize) -> Option<u32> {
    let text = subject.split(|byte| *byte == b'.').nth(token)?;
    codec::decimal(text).and_then(|index| u32::try_from(index).ok())
}
