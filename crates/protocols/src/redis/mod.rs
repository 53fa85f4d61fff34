//! Redis over RESP 2 and 3: publish and subscribe, streams with consumer groups, and SET; the
//! client, the reference server, and the codec that both share.

pub mod codec;

mod client;
mod consumer;
mod errors;
mod hearing;
mod names;
mod plan;
mod server;
mod settings;
mod subscriber;

use std::sync::Arc;

use weigh_model::protocol::{
    CountersBy, Dial, ErrorWords, Guarantee, Host, Invalid, Lifetime, PacketName, ProducerOf,
    Properties, Protocol, Role, Scheme, Setting, Transport,
};
use weigh_model::trial::{Settings, Trial};
use weigh_model::{Pattern, Topology};

use plan::{Command, Plan};

use crate::broker_core::Shared;

/// The protocol `redis`.
pub struct Redis;

/// Asks a server for all its counters (`INFO all`).
pub const INFO_REQUEST: &[u8] = b"*2\r\n$4\r\nINFO\r\n$3\r\nall\r\n";

/// Reads the answer to [`INFO_REQUEST`]: its text; `None` if it is incomplete.
///
/// # Errors
/// If it is not one: bytes that are not RESP, or a refusal.
pub fn read_info(answer: &[u8]) -> Result<Option<String>, codec::Flaw> {
    match codec::read_reply(answer, INFO_BYTES_MAX)? {
        None => Ok(None),
        Some((reply, _)) => match reply.head {
            codec::Token::Bulk(text) => Ok(Some(String::from_utf8_lossy(text).into_owned())),
            _ => Err(codec::Flaw::BulkLength),
        },
    }
}

/// Largest answer to INFO that is read.
const INFO_BYTES_MAX: usize = 1 << 20;

impl Protocol for Redis {
    fn name(&self) -> &'static str {
        "redis"
    }

    fn schemes(&self) -> &'static [Scheme] {
        const SCHEMES: &[Scheme] = &[Scheme::plain("redis", 6379), Scheme::secure("rediss", 6379)];
        SCHEMES
    }

    /// With RESP 2, without credentials and in database 0 nothing precedes the first message.
    fn properties(&self) -> Properties {
        Properties {
            is_only_by_name: true,
            is_brokered: true,
            counters: CountersBy::Info,
            ..Properties::default()
        }
    }

    /// Codes of this crate: errors of Redis are words.
    fn error(&self, code: u16) -> ErrorWords {
        errors::words(code)
    }

    fn patterns(&self) -> &'static [Pattern] {
        &[
            Pattern::Deliver,
            Pattern::Publish,
            Pattern::Request,
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
        &[&[("command", "publish")], &[("command", "xadd")]]
    }

    /// PUBLISH keeps nothing: who does not listen misses the message, whatever the answer says.
    /// The answers to XADD and SET confirm that the server has it, and a client without one may
    /// send again.
    fn guarantee(&self, settings: &Settings) -> Guarantee {
        match plan::command(settings) {
            Command::Publish => Guarantee::AtMostOnce,
            Command::Xadd | Command::Set => Guarantee::AtLeastOnce,
        }
    }

    fn packet_name(&self, from_client: bool, head: &[u8]) -> Option<PacketName> {
        names::name(from_client, head)
    }

    fn dial(&self, trial: &Trial) -> Result<Dial, Invalid> {
        self.check_pattern(trial, "type deliver, publish, request, poll, batch, session or hold")?;
        let plan = Arc::new(Plan::read(trial)?);
        let is_in_pairs = trial.load.delivers() && trial.load.topology == Topology::Pairs;
        let producer_of: ProducerOf = Box::new(producer_of);
        Ok(Dial {
            transport: Transport::Stream,
            lifetime: Lifetime::of(trial.load.pattern),
            confirms: true,
            is_answered: false,
            producer_of: is_in_pairs.then_some(producer_of),
            make: Box::new(move |seat| match (seat.role, plan.command) {
                (Role::Producer, _) => Box::new(client::RedisClient::new(plan.clone(), seat.index)),
                (Role::Consumer, Command::Publish) => {
                    Box::new(subscriber::Subscriber::new(plan.clone(), seat.index))
                }
                (Role::Consumer, _) => {
                    Box::new(consumer::StreamConsumer::new(plan.clone(), seat.index))
                }
            }),
        })
    }

    fn host(&self, settings: &Settings) -> Result<Host, Invalid> {
        let shared = Shared::new(server::World::new(server::Rules::read(settings)?));
        Ok(Host {
            transport: Transport::Stream,
            make: Box::new(move |shard| Box::new(server::RedisServer::new(shared.clone(), shard))),
        })
    }
}

/// The producer of a key in pairs: what follows its last colon.
fn producer_of(key: &[u8]) -> Option<u32> {
    let index = key.rsplit(|byte| *byte == b':').next()?;
    std::str::from_utf8(index).ok()?.parse().ok()
}
