//! The keys of the table `mqtt` in a plan, and their checks.

use weigh_model::protocol::{Guarantee, Invalid, Setting, SettingKind};
use weigh_model::trial::Settings;
use weigh_model::{quic, tls, websocket};

use super::codec::{Qos, Version};
use super::overload::Overload;
use crate::broker_core::{self, Login, login};

/// All keys. Version 3.1.1 is the default because several real brokers (aedes, amqtt, Moquette,
/// NATS, RabbitMQ before 3.13) refuse 5, and none refuses 3.1.1.
const OWN: &[Setting] = &[
    Setting::integer("qos", (0, 2), "0", "Quality of service of publishing and of subscribing."),
    Setting {
        key: "version",
        kind: SettingKind::Choice(&["3.1.1", "5"]),
        default: "3.1.1",
        doc: "Version of MQTT that clients speak; the reference broker speaks both.",
    },
    Setting::text(
        "topic",
        "weigh/%t/%i",
        "Topic: {client} or %i is the producer, {seq} or %s the message, %c the client id, %u the \
         user, %t the trial.",
    ),
    Setting::text(
        "filter",
        "",
        "Topic filter of consumers; empty derives it from topic and topology.",
    ),
    Setting::text(
        "share",
        "",
        "Group of the shared subscription of the topology shared; empty: weigh.",
    ),
    Setting::duration("keep_alive", "60s", "Longest silence before a ping; 0s switches it off."),
    Setting::flag("clean", "true", "Start without the session of an earlier connection."),
    Setting::duration(
        "session_expiry",
        "0s",
        "How long a session outlives its connection (MQTT 5).",
    ),
    Setting::integer(
        "receive_maximum",
        (1, 65_535),
        "65535",
        "Most unacknowledged messages that clients accept (MQTT 5).",
    ),
    Setting::flag(
        "topic_alias",
        "false",
        "Use topic aliases where the other side allows (MQTT 5).",
    ),
    Setting::integer(
        "maximum_packet_size",
        (0, 4_294_967_295),
        "0",
        "Largest packet in bytes that clients accept; 0 means no limit (MQTT 5).",
    ),
    Setting::duration("message_expiry", "0s", "Age at which a broker discards a message (MQTT 5)."),
    Setting::flag("retain", "false", "Publish with the retain flag."),
    Setting::text("will_topic", "", "Topic of the last will; empty means no will."),
    Setting::text("will_body", "gone", "Body of the last will."),
    Setting::text("user_property", "", "name=value, added to every message (MQTT 5)."),
    Setting::text(
        "client_id",
        "weigh-%t-%r%i",
        "Client identifier: %i is the index, %r the role (p or c), %t the trial.",
    ),
    Setting::text(
        "overload",
        "unlimited",
        "Reference broker: unlimited, drop-newest:N, drop-oldest:N or disconnect:N.",
    ),
    Setting::integer("broker_maximum_qos", (0, 2), "2", "Reference broker: highest QoS it grants."),
    Setting::integer(
        "broker_receive_maximum",
        (1, 65_535),
        "65535",
        "Reference broker: most unacknowledged QoS 2 messages it accepts per client.",
    ),
    Setting::integer(
        "broker_topic_alias_maximum",
        (0, 65_535),
        "16",
        "Reference broker: topic aliases it accepts per client.",
    ),
    Setting::duration(
        "broker_keep_alive",
        "0s",
        "Reference broker: keep-alive it imposes (MQTT 5).",
    ),
    Setting::text("broker_user", "", "Reference broker: required user; empty accepts all clients."),
    Setting::text("broker_password", "", "Reference broker: password of that user."),
    websocket::ON,
    websocket::PATH,
    quic::ON,
    quic::CONGESTION,
    quic::DATAGRAM_BYTES,
    quic::SEGMENTATION,
];

/// The keys of MQTT, and those of TLS.
pub(super) const SETTINGS: &[Setting] = &tls::with::<{ OWN.len() + tls::KEYS }>(OWN, "mqtt");

/// Keys of clients that 3.1.1 has no field for.
pub(super) const ONLY_IN_5: &[&str] = &[
    "session_expiry",
    "receive_maximum",
    "topic_alias",
    "maximum_packet_size",
    "message_expiry",
    "user_property",
];

/// The guarantee of the QoS in `settings` (MQTT 5.0, section 4.3).
pub(super) fn guarantee(settings: &Settings) -> Guarantee {
    match qos(settings) {
        Qos::AtMostOnce => Guarantee::AtMostOnce,
        Qos::AtLeastOnce => Guarantee::AtLeastOnce,
        Qos::ExactlyOnce => Guarantee::ExactlyOnce,
    }
}

pub(super) fn qos(settings: &Settings) -> Qos {
    Qos::from_bits(settings.integer("qos") as u8).unwrap_or(Qos::ExactlyOnce)
}

pub(super) fn version(settings: &Settings) -> Version {
    if settings.text("version") == "5" { Version::V5 } else { Version::V311 }
}

/// A duration in whole seconds, rounded up, as fields on the wire have it.
pub(super) fn seconds(settings: &Settings, key: &str, max: u32) -> Result<u32, Invalid> {
    broker_core::seconds("mqtt", settings, key, max)
}

/// Settings of the reference broker.
#[derive(Clone, Debug)]
pub(super) struct BrokerRules {
    pub(super) overload: Overload,
    pub(super) maximum_qos: Qos,
    pub(super) receive_maximum: u16,
    pub(super) topic_alias_maximum: u16,
    /// Imposed on MQTT 5 clients; 0 keeps the client's own.
    pub(super) keep_alive_s: u16,
    /// User and password that it demands.
    pub(super) login: Login,
}

impl BrokerRules {
    pub(super) fn read(settings: &Settings) -> Result<BrokerRules, Invalid> {
        let overload = match settings.text("overload") {
            "" => Overload::Unlimited,
            text => text.parse().map_err(|error: String| {
                let (problem, fix) = error.split_once(": ").unwrap_or((&error, ""));
                Invalid::new("mqtt.overload", problem, fix)
            })?,
        };
        let whole = |key, default| settings.integer_or(key, default);
        Ok(BrokerRules {
            overload,
            maximum_qos: Qos::from_bits(whole("broker_maximum_qos", 2) as u8)
                .unwrap_or(Qos::ExactlyOnce),
            receive_maximum: whole("broker_receive_maximum", 65_535) as u16,
            topic_alias_maximum: whole("broker_topic_alias_maximum", 16) as u16,
            keep_alive_s: seconds(settings, "broker_keep_alive", 65_535)? as u16,
            login: login("mqtt", settings)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_default_is_a_value_of_its_own_key() {
        let defaults = SETTINGS.iter().map(|setting| (setting.key, setting.default));
        let settings = Settings::new("mqtt", SETTINGS, defaults).unwrap();
        let rules = BrokerRules::read(&settings).unwrap();
        assert_eq!((rules.overload, rules.receive_maximum), (Overload::Unlimited, 65_535));
        for key in ONLY_IN_5 {
            assert!(
                SETTINGS.iter().any(|setting| setting.key == *key && setting.doc.contains('5'))
            );
        }
        let empty = BrokerRules::read(&Settings::default()).unwrap();
        assert_eq!(format!("{empty:?}"), format!("{rules:?}"), "the defaults stand without a plan");
    }

    #[test]
    fn a_password_needs_a_user() {
        let given = [("broker_password", "x")];
        let settings = Settings::new("mqtt", SETTINGS, given).unwrap();
        let error = BrokerRules::read(&settings).unwrap_err();
        assert!(error.fix.contains("mqtt.broker_user"), "{error}");
    }
}
