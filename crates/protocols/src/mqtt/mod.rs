//! MQTT 3.1.1 and 5: the client, the reference broker, and the codec that both share.

mod broker;
pub mod codec;
pub mod overload;
pub mod slots;
pub mod terms;
mod topic;

mod admission;
mod broker_state;
mod client;
mod message;
mod names;
mod pass_through;
mod plan;
mod server;
mod session;
mod settings;
mod subscriptions;
mod trie;

use std::sync::Arc;

use weigh_model::protocol::{
    CountersBy, Dial, ErrorWords, Guarantee, Host, Invalid, Lifetime, PacketName, ProducerOf,
    Properties, Protocol, Scheme, Setting, Transport,
};
use weigh_model::trial::Settings;
use weigh_model::{Pattern, Trial};

use broker::Broker;
use broker_state::BrokerState;
use client::Client;
use codec::Qos;
use plan::Plan;
use settings::BrokerRules;

use crate::broker_core::Shared;

/// The registry's entry.
#[derive(Clone, Copy, Debug)]
pub struct Mqtt;

impl Protocol for Mqtt {
    fn name(&self) -> &'static str {
        "mqtt"
    }

    fn schemes(&self) -> &'static [Scheme] {
        const SCHEMES: &[Scheme] = &[
            Scheme::plain("mqtt", 1883),
            Scheme::secure("mqtts", 8883),
            Scheme::plain("ws", 80).in_websocket(),
            Scheme::secure("wss", 443).in_websocket(),
            Scheme::plain("mqtt-quic", 14_567).in_quic(),
        ];
        SCHEMES
    }

    /// PINGREQ and PINGRESP take two bytes each (MQTT 5.0, section 3.12); section 6 names the
    /// subprotocol.
    fn properties(&self) -> Properties {
        Properties {
            is_compared: true,
            per_message: None,
            is_brokered: true,
            greeting_round_trips: 1,
            ping_bytes: Some(2),
            websocket: "mqtt",
            counters: CountersBy::Topics,
            ..Properties::default()
        }
    }

    /// MQTT 5 has reasons of one byte, errors from 0x80 on (section 2.4).
    fn error(&self, code: u16) -> ErrorWords {
        ErrorWords { name: format!("reason {code:#04x}"), advice: ErrorWords::ADVICE }
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
        self.check_pattern(trial, "type deliver, publish, session, transfer or hold")?;
        let plan = Arc::new(Plan::read(trial)?);
        let producer_of = plan
            .index_place()
            .map(|place| Box::new(move |topic: &[u8]| place.read(topic)) as ProducerOf);
        Ok(Dial {
            transport: Transport::Stream,
            lifetime: Lifetime::of(trial.load.pattern),
            confirms: plan.qos > Qos::AtMostOnce,
            is_answered: false,
            producer_of,
            make: Box::new(move |seat| Box::new(Client::new(Arc::clone(&plan), seat))),
        })
    }

    fn host(&self, settings: &Settings) -> Result<Host, Invalid> {
        let hub = Shared::new(BrokerState::new(BrokerRules::read(settings)?));
        Ok(Host {
            transport: Transport::Stream,
            make: Box::new(move |shard| Box::new(Broker::new(hub.clone(), shard))),
        })
    }
}
