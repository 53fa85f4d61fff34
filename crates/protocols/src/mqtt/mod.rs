//! MQTT 3.1.1 and 5: the client, the reference broker, and the codec that both share.

mod broker;
pub mod codec;
pub mod overload;
pub mod slots;
pub mod terms;
mod topic;

mod admission;
mod client;
mod hub;
mod message;
mod names;
mod passing;
mod plan;
mod server;
mod session;
mod settings;
mod subscriptions;
mod trie;

use std::sync::{Arc, Mutex};

use weigh_model::protocol::{
    Dial, Guarantee, Host, Invalid, Lifetime, PacketName, ProducerOf, Protocol, Setting,
};
use weigh_model::trial::Settings;
use weigh_model::{Pattern, Trial};

use broker::Broker;
use client::Client;
use codec::Qos;
use hub::Hub;
use plan::Plan;
use settings::BrokerRules;

/// The registry's entry.
#[derive(Clone, Copy, Debug)]
pub struct Mqtt;

impl Protocol for Mqtt {
    fn name(&self) -> &'static str {
        "mqtt"
    }

    fn scheme(&self) -> &'static str {
        "mqtt"
    }

    fn patterns(&self) -> &'static [Pattern] {
        &[
            Pattern::Deliver,
            Pattern::Publish,
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
        &[&[("qos", "0")], &[("qos", "1")], &[("qos", "2")]]
    }

    fn guarantee(&self, settings: &Settings) -> Guarantee {
        settings::guarantee(settings)
    }

    fn asks(&self, settings: &Settings) -> Vec<(&'static str, u64)> {
        let qos = settings.integer("qos");
        vec![("maximum_qos", qos), ("granted_qos", qos)]
    }

    fn packet_name(&self, from_client: bool, head: &[u8]) -> Option<PacketName> {
        names::name(from_client, head)
    }

    fn dial(&self, trial: &Trial) -> Result<Dial, Invalid> {
        if !self.patterns().contains(&trial.load.pattern) {
            return Err(Invalid::new(
                "load.pattern",
                format!("mqtt has no pattern {}", trial.load.pattern),
                "type deliver, publish, session, transfer or hold",
            ));
        }
        let plan = Arc::new(Plan::read(trial)?);
        let producer_of = plan
            .index_place()
            .map(|place| Box::new(move |topic: &[u8]| place.read(topic)) as ProducerOf);
        Ok(Dial {
            lifetime: match trial.load.pattern {
                Pattern::Session => Lifetime::PerMessage,
                _ => Lifetime::Kept,
            },
            confirms: plan.qos > Qos::AtMostOnce,
            is_answered: false,
            producer_of,
            make: Box::new(move |seat| Box::new(Client::new(Arc::clone(&plan), seat))),
        })
    }

    fn host(&self, settings: &Settings) -> Result<Host, Invalid> {
        let hub = Arc::new(Mutex::new(Hub::new(BrokerRules::read(settings)?)));
        Ok(Host { make: Box::new(move |shard| Box::new(Broker::new(Arc::clone(&hub), shard))) })
    }
}
