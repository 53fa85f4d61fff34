//! Kafka: produce with and without acknowledgements, and consume by assigned partitions or in a
//! group; the client, the reference server, and the codec that both share.

pub mod codec;

mod client;
mod errors;
mod group_plan;
mod names;
mod plan;
mod server;
mod settings;

use std::sync::Arc;

use weigh_model::protocol::{
    Dial, ErrorWords, Guarantee, Host, Invalid, Lifetime, PacketName, ProducerOf, Properties,
    Protocol, Scheme, Setting, Transport,
};
use weigh_model::trial::{Settings, Trial};
use weigh_model::{Pattern, Topology};

use client::Client;
use plan::Plan;
use settings::Acks;

use crate::broker_core::Shared;

/// The protocol `kafka`.
#[derive(Clone, Copy, Debug)]
pub struct Kafka;

impl Protocol for Kafka {
    fn name(&self) -> &'static str {
        "kafka"
    }

    fn schemes(&self) -> &'static [Scheme] {
        const SCHEMES: &[Scheme] =
            &[Scheme::plain("kafka", 9092), Scheme::secure("tls+kafka", 9093)];
        SCHEMES
    }

    /// ApiVersions and Metadata precede the first message; an idempotent producer also asks for its
    /// number.
    fn properties(&self) -> Properties {
        Properties {
            is_compared: true,
            is_only_by_name: true,
            is_brokered: true,
            greeting_round_trips: 2,
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
            Pattern::Hold,
        ]
    }

    fn settings(&self) -> &'static [Setting] {
        settings::SETTINGS
    }

    fn lanes(&self) -> &'static [&'static [(&'static str, &'static str)]] {
        &[&[("acks", "0")], &[("acks", "all")]]
    }

    fn guarantee(&self, settings: &Settings) -> Guarantee {
        settings::guarantee(settings)
    }

    fn packet_name(&self, from_client: bool, head: &[u8]) -> Option<PacketName> {
        names::name(from_client, head)
    }

    fn dial(&self, trial: &Trial) -> Result<Dial, Invalid> {
        self.check_pattern(trial, "type deliver, publish, request, batch, session or hold")?;
        let plan = Arc::new(Plan::read(trial)?);
        let is_in_pairs = trial.load.delivers() && trial.load.topology == Topology::Pairs;
        let producer_of: ProducerOf = Box::new(producer_of);
        Ok(Dial {
            transport: Transport::Stream,
            lifetime: Lifetime::of(trial.load.pattern),
            confirms: plan.acks != Acks::Nothing,
            // A commit and the end of a membership wait behind a fetch.
            is_answered: plan.group.is_some(),
            producer_of: is_in_pairs.then_some(producer_of),
            make: Box::new(move |seat| Box::new(Client::new(plan.clone(), seat))),
        })
    }

    fn host(&self, settings: &Settings) -> Result<Host, Invalid> {
        let shared = Shared::new(server::World::new(server::Rules::read(settings)?));
        Ok(Host {
            transport: Transport::Stream,
            make: Box::new(move |shard| Box::new(server::KafkaServer::new(shared.clone(), shard))),
        })
    }
}

/// The producer of a topic in pairs: its partition, behind the slash.
fn producer_of(topic: &[u8]) -> Option<u32> {
    let index = topic.rsplit(|byte| *byte == b'/').next()?;
    std::str::from_utf8(index).ok()?.parse().ok()
}
