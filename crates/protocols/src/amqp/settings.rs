//! The keys of the table `amqp` in a plan, and their checks.

use weigh_model::durability::Durability;
use weigh_model::protocol::{Guarantee, Invalid, Setting};
use weigh_model::tls;
use weigh_model::trial::Settings;
use weigh_model::units::Nanos;

use super::codec::SHORT_BYTES_MAX;
use crate::broker_core::{self, Login, login};

/// All keys.
const OWN: &[Setting] = &[
    Setting::flag(
        "confirms",
        "true",
        "Publisher confirms (confirm.select); false: nothing confirms a message.",
    ),
    Setting::choice(
        "delivery_mode",
        &["persistent", "transient"],
        "persistent",
        "Delivery mode of every message; a classic queue keeps transient messages in memory only.",
    ),
    Setting::choice(
        "queue_type",
        &["classic", "quorum"],
        "classic",
        "Queue type (x-queue-type); quorum queues store every message.",
    ),
    Setting::flag("durable", "true", "Declare durable queues and exchanges."),
    Setting::choice(
        "acks",
        &["manual", "auto"],
        "manual",
        "Consumers acknowledge deliveries; auto (no-ack): the server forgets what it has sent.",
    ),
    Setting::integer(
        "ack_every",
        (1, 65_535),
        "1",
        "Deliveries that one basic.ack acknowledges; above 1 with the flag multiple.",
    ),
    Setting::integer(
        "prefetch",
        (0, 65_535),
        "100",
        "Unacknowledged deliveries that a consumer takes (basic.qos); 0 means no limit.",
    ),
    Setting::flag(
        "mandatory",
        "true",
        "Confirmed messages that no queue takes are returned and counted as without subscriber.",
    ),
    Setting::text(
        "exchange",
        "",
        "Exchange; empty: the default exchange for one queue, else amq.direct or amq.topic.",
    ),
    Setting::choice("exchange_type", &["direct", "topic"], "direct", "Type of the exchange."),
    Setting::text(
        "routing_key",
        "",
        "Routing key: {client} or %i is the producer, %t the trial; empty: derived from the rest.",
    ),
    Setting::text(
        "queue",
        "weigh.%t",
        "Queue: %t is the trial; a consumer's own queue has a dot and its index after it.",
    ),
    Setting::flag(
        "declare",
        "true",
        "Declare queue, exchange and binding; false: they exist, and no queue is deleted.",
    ),
    Setting::duration(
        "queue_expires",
        "10m",
        "Time after which an unused queue is deleted (x-expires); 0s: never.",
    ),
    Setting::integer(
        "max_length",
        (0, 4_294_967_295),
        "0",
        "Messages that wait in a queue at most (x-max-length); 0 means no limit.",
    ),
    Setting::choice(
        "overflow",
        &["drop-head", "reject-publish"],
        "drop-head",
        "What a full queue does (x-overflow): drop its oldest message, or refuse the new one.",
    ),
    Setting::text("vhost", "/", "Virtual host, unless the target's URL has a path."),
    Setting::integer(
        "frame_max",
        (4096, 2_147_483_647),
        "131072",
        "Largest frame in bytes that clients ask for.",
    ),
    Setting::integer("channel_max", (1, 65_535), "2047", "Most channels that clients ask for."),
    Setting::duration(
        "heartbeat",
        "60s",
        "Heartbeat timeout that clients ask for; 0s switches it off.",
    ),
    Setting::text("content_type", "", "Content type of every message; empty: none."),
    Setting::text("broker_user", "", "Reference server: required user; empty accepts all clients."),
    Setting::text("broker_password", "", "Reference server: password of that user."),
    Setting::integer(
        "broker_memory",
        (1, 1 << 40),
        "1073741824",
        "Reference server: bytes of messages in memory at which it blocks publishers.",
    ),
    Setting::integer(
        "broker_message_bytes_max",
        (1, 1 << 32),
        "134217728",
        "Reference server: largest message.",
    ),
    Setting::integer(
        "broker_frame_max",
        (4096, 2_147_483_647),
        "131072",
        "Reference server: largest frame in bytes.",
    ),
    Setting::duration(
        "broker_heartbeat",
        "60s",
        "Reference server: heartbeat timeout it asks for.",
    ),
];

/// The keys of AMQP, and those of TLS.
pub(super) const SETTINGS: &[Setting] = &tls::with::<{ OWN.len() + tls::KEYS }>(OWN, "");

/// At least once needs both halves: confirms to the publisher, and acknowledgements of the
/// consumer. With `auto` the server forgets a message once it is in the socket.
pub(super) fn guarantee(settings: &Settings) -> Guarantee {
    match settings.flag("confirms") && settings.text("acks") != "auto" {
        true => Guarantee::AtLeastOnce,
        false => Guarantee::AtMostOnce,
    }
}

/// Messages of these settings are in the memory of the server alone, whatever it can do: transient
/// ones in classic queues, and all in queues that are not durable.
pub(super) fn durability_limit(settings: &Settings) -> Option<Durability> {
    let is_stored = match settings.text("queue_type") {
        "quorum" => true,
        _ => settings.flag("durable") && settings.text("delivery_mode") != "transient",
    };
    (!is_stored).then_some(Durability::Memory)
}

/// A duration in whole seconds, rounded up, as fields on the wire have it.
pub(super) fn seconds(settings: &Settings, key: &str) -> Result<u16, Invalid> {
    Ok(broker_core::seconds("amqp", settings, key, u16::MAX.into())? as u16)
}

/// Names on the wire have at most 255 bytes.
pub(super) fn check_short(place: &str, text: &str) -> Result<(), Invalid> {
    if text.len() > SHORT_BYTES_MAX {
        let problem = format!("it has {} bytes", text.len());
        return Err(Invalid::new(place, problem, "type at most 255 bytes"));
    }
    Ok(())
}

/// Settings of the reference server.
#[derive(Clone, Debug)]
pub(super) struct Rules {
    /// User and password that it demands.
    pub(super) login: Login,
    pub(super) vhost: String,
    pub(super) memory_bytes_max: u64,
    pub(super) message_bytes_max: u64,
    pub(super) frame_max: u32,
    pub(super) channel_max: u16,
    pub(super) heartbeat_s: u16,
}

impl Rules {
    pub(super) fn read(settings: &Settings) -> Result<Rules, Invalid> {
        let whole = |key, default| settings.integer_or(key, default);
        Ok(Rules {
            login: login("amqp", settings)?,
            vhost: match settings.text("vhost") {
                "" => "/".to_owned(),
                vhost => vhost.to_owned(),
            },
            memory_bytes_max: whole("broker_memory", 1 << 30),
            message_bytes_max: whole("broker_message_bytes_max", 1 << 27),
            frame_max: whole("broker_frame_max", 1 << 17) as u32,
            channel_max: CHANNEL_MAX,
            heartbeat_s: match settings.text("broker_heartbeat") {
                "" => 60,
                _ => seconds(settings, "broker_heartbeat")?,
            },
        })
    }
}

/// Time in milliseconds, as arguments of queues have it.
pub(super) fn milliseconds(time: Nanos) -> i64 {
    i64::try_from(time.0 / 1_000_000).unwrap_or(i64::MAX)
}

/// Channels of one connection that the reference server allows, as RabbitMQ does.
const CHANNEL_MAX: u16 = 2047;

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(given: &[(&str, &str)]) -> Settings {
        Settings::new("amqp", SETTINGS, given.iter().copied()).unwrap()
    }

    #[test]
    fn every_default_is_a_value_of_its_own_key() {
        let defaults = SETTINGS.iter().map(|setting| (setting.key, setting.default));
        let rules = Rules::read(&Settings::new("amqp", SETTINGS, defaults).unwrap()).unwrap();
        assert_eq!((rules.frame_max, rules.heartbeat_s), (131_072, 60));
        let empty = Rules::read(&Settings::default()).unwrap();
        assert_eq!(format!("{empty:?}"), format!("{rules:?}"), "the defaults stand without a plan");
    }

    #[test]
    fn at_least_once_needs_confirms_and_acknowledgements() {
        let of = |given: &[(&str, &str)]| guarantee(&settings(given));
        assert_eq!(of(&[]), Guarantee::AtLeastOnce);
        assert_eq!(of(&[("confirms", "false")]), Guarantee::AtMostOnce);
        assert_eq!(of(&[("acks", "auto")]), Guarantee::AtMostOnce);
    }

    #[test]
    fn only_what_is_stored_can_survive() {
        let of = |given: &[(&str, &str)]| durability_limit(&settings(given));
        assert_eq!(of(&[]), None);
        assert_eq!(of(&[("delivery_mode", "transient")]), Some(Durability::Memory));
        assert_eq!(of(&[("durable", "false")]), Some(Durability::Memory));
        assert_eq!(of(&[("delivery_mode", "transient"), ("queue_type", "quorum")]), None);
    }

    #[test]
    fn a_password_needs_a_user() {
        let error = Rules::read(&settings(&[("broker_password", "x")])).unwrap_err();
        assert!(error.fix.contains("amqp.broker_user"), "{error}");
    }
}
