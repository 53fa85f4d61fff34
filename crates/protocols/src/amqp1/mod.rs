//! AMQP 1.0: the client, the reference server, and the codec that both share. It is another
//! protocol than AMQP 0-9-1, and no later version of it.

pub mod codec;

mod client;
mod errors;
mod hub;
mod names;
mod nodes;
mod peer;
mod plan;
mod queue;
mod refusal;
mod server;
mod settings;
mod window;

use std::sync::Arc;

use weigh_model::durability::Durability;
use weigh_model::protocol::{
    Dial, ErrorWords, Guarantee, Host, Invalid, PacketName, Properties, Protocol, Scheme, Setting,
    Transport,
};
use weigh_model::trial::Settings;
use weigh_model::{Pattern, Trial};

use client::Client;
use hub::Hub;
use plan::Plan;
use server::Broker;
use settings::Rules;

use crate::broker_core::Shared;

/// The registry's entry.
#[derive(Clone, Copy, Debug)]
pub struct Amqp1;

impl Protocol for Amqp1 {
    fn name(&self) -> &'static str {
        "amqp1"
    }

    fn aliases(&self) -> &'static [&'static str] {
        &["amqp10"]
    }

    fn schemes(&self) -> &'static [Scheme] {
        const SCHEMES: &[Scheme] = &[Scheme::plain("amqp1", 5672), Scheme::secure("amqp1s", 5671)];
        SCHEMES
    }

    /// Round trips: the header of SASL, the mechanism, and everything from the header of AMQP to
    /// the link. An empty frame has 8 bytes and no answer, but both sides send them.
    fn properties(&self) -> Properties {
        Properties {
            is_only_by_name: true,
            is_brokered: true,
            greeting_round_trips: 3,
            ping_bytes: Some(codec::EMPTY_FRAME_BYTES as u64),
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
            Pattern::Poll,
            Pattern::Batch,
            Pattern::Session,
            Pattern::Hold,
        ]
    }

    fn settings(&self) -> &'static [Setting] {
        settings::SETTINGS
    }

    fn lanes(&self) -> &'static [&'static [(&'static str, &'static str)]] {
        &[
            &[("transfers", "unsettled"), ("durable", "true")],
            &[("transfers", "unsettled"), ("durable", "false")],
            &[("transfers", "settled"), ("durable", "false")],
        ]
    }

    fn guarantee(&self, settings: &Settings) -> Guarantee {
        settings::guarantee(settings)
    }

    fn durability_limit(&self, settings: &Settings) -> Option<Durability> {
        settings::durability_limit(settings)
    }

    fn asks(&self, settings: &Settings) -> Vec<(&'static str, u64)> {
        vec![("max_frame_size", settings.integer("max_frame_size"))]
    }

    fn packet_name(&self, from_client: bool, head: &[u8]) -> Option<PacketName> {
        names::name(from_client, head)
    }

    fn dial(&self, trial: &Trial) -> Result<Dial, Invalid> {
        self.check_pattern(trial, "type deliver, publish, poll, batch, session or hold")?;
        let plan = Arc::new(Plan::read(trial)?);
        Ok(Dial {
            transport: Transport::Stream,
            lifetime: plan.lifetime,
            confirms: !plan.is_settled,
            is_answered: true,
            producer_of: plan.nodes.producer_of(),
            make: Box::new(move |seat| Box::new(Client::new(Arc::clone(&plan), seat))),
        })
    }

    fn host(&self, settings: &Settings) -> Result<Host, Invalid> {
        let hub = Shared::new(Hub::new(Rules::read(settings)?));
        Ok(Host {
            transport: Transport::Stream,
            make: Box::new(move |shard| Box::new(Broker::new(hub.clone(), shard))),
        })
    }
}
