//! AMQP 0-9-1: the client, the reference server, and the codec that both share.

pub mod codec;

mod client;
mod exchange;
mod hub;
mod names;
mod peer;
mod plan;
mod queue;
mod refusal;
mod routing;
mod server;
mod settings;

use std::sync::Arc;

use weigh_model::durability::Durability;
use weigh_model::protocol::{
    Dial, ErrorWords, Guarantee, Host, Invalid, PacketName, Properties, Protocol, Scheme, Setting,
    Transport,
};
use weigh_model::trial::Settings;
use weigh_model::{Pattern, Trial};

use client::{Client, NACKED};
use hub::Hub;
use plan::Plan;
pub use plan::{client_properties, vhost_of};
use server::Broker;
use settings::Rules;

use crate::broker_core::Shared;

/// The registry's entry.
#[derive(Clone, Copy, Debug)]
pub struct Amqp;

impl Protocol for Amqp {
    fn name(&self) -> &'static str {
        "amqp"
    }

    fn aliases(&self) -> &'static [&'static str] {
        &["amqp091"]
    }

    fn schemes(&self) -> &'static [Scheme] {
        const SCHEMES: &[Scheme] = &[Scheme::plain("amqp", 5672), Scheme::secure("amqps", 5671)];
        SCHEMES
    }

    /// Round trips of a confirmed producer: the protocol header, the credentials, the virtual host,
    /// the channel and `confirm.select`. A heartbeat has 8 bytes and no answer, but both sides send
    /// them.
    fn properties(&self) -> Properties {
        Properties {
            is_only_by_name: true,
            is_brokered: true,
            greeting_round_trips: 5,
            ping_bytes: Some(8),
            ..Properties::default()
        }
    }

    fn error(&self, code: u16) -> ErrorWords {
        match code {
            NACKED => ErrorWords {
                name: "basic.nack".to_owned(),
                advice: "the server did not take the message: its queue is full \
                         (x-overflow = reject-publish), or it failed",
            },
            code => ErrorWords { name: format!("reply code {code}"), advice: ErrorWords::ADVICE },
        }
    }

    fn patterns(&self) -> &'static [Pattern] {
        &[
            Pattern::Deliver,
            Pattern::Publish,
            Pattern::Poll,
            Pattern::Batch,
            Pattern::Session,
            Pattern::Transfer,
            Pattern::Hold,
        ]
    }

    fn settings(&self) -> &'static [Setting] {
        settings::SETTINGS
    }

    fn lanes(&self) -> &'static [&'static [(&'static str, &'static str)]] {
        &[
            &[("confirms", "true"), ("delivery_mode", "persistent")],
            &[("confirms", "true"), ("delivery_mode", "transient")],
            &[("confirms", "false"), ("delivery_mode", "transient")],
        ]
    }

    fn guarantee(&self, settings: &Settings) -> Guarantee {
        settings::guarantee(settings)
    }

    fn durability_limit(&self, settings: &Settings) -> Option<Durability> {
        settings::durability_limit(settings)
    }

    fn asks(&self, settings: &Settings) -> Vec<(&'static str, u64)> {
        vec![("frame_max", settings.integer("frame_max"))]
    }

    fn packet_name(&self, from_client: bool, head: &[u8]) -> Option<PacketName> {
        names::name(from_client, head)
    }

    fn dial(&self, trial: &Trial) -> Result<Dial, Invalid> {
        self.check_pattern(trial, "type deliver, publish, poll, batch, session, transfer or hold")?;
        let plan = Arc::new(Plan::read(trial)?);
        Ok(Dial {
            transport: Transport::Stream,
            lifetime: plan.lifetime,
            confirms: plan.confirms,
            is_answered: true,
            producer_of: plan.routing.producer_of(),
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
