//! The keys of the table `amqp1` in a plan, and their checks.

use weigh_model::durability::Durability;
use weigh_model::protocol::{Guarantee, Invalid, Setting};
use weigh_model::tls;
use weigh_model::trial::Settings;
use weigh_model::units::Nanos;

use crate::broker_core::{Login, login};

/// All keys.
const OWN: &[Setting] = &[
    Setting::choice(
        "transfers",
        &["unsettled", "settled"],
        "unsettled",
        "Transfers of producers: a disposition confirms unsettled ones, nothing settled ones.",
    ),
    Setting::flag(
        "durable",
        "true",
        "Messages ask to be stored (header durable), and so do subscriptions of a topic.",
    ),
    Setting::choice(
        "deliveries",
        &["unsettled", "settled"],
        "unsettled",
        "Deliveries to consumers: unsettled ones are accepted; settled: the server forgets them.",
    ),
    Setting::integer(
        "settle_every",
        (1, 65_535),
        "1",
        "Deliveries that one disposition of a consumer accepts.",
    ),
    Setting::integer(
        "credit",
        (1, 1_000_000),
        "100",
        "Link credit of a consumer: deliveries that the server may send before it gets new credit.",
    ),
    Setting::integer(
        "credit_every",
        (0, 1_000_000),
        "0",
        "Deliveries after which one flow renews the credit; 0 means half of the credit.",
    ),
    Setting::text("queue", "weigh.%t", "Address of the queue; %t is the trial."),
    Setting::text(
        "topic",
        "weigh.%t",
        "Address of the topic: %t is the trial; in pairs a dot and the index follow, or %i.",
    ),
    Setting::flag(
        "capabilities",
        "true",
        "Links ask for a node of type queue or topic by a capability, as JMS clients do.",
    ),
    Setting::text(
        "hostname",
        "",
        "Host name in open, which may choose a virtual host; empty: none.",
    ),
    Setting::choice(
        "sasl",
        &["auto", "plain", "anonymous", "none"],
        "auto",
        "SASL mechanism; auto: PLAIN with credentials, else ANONYMOUS; none: no SASL at all.",
    ),
    Setting::integer(
        "max_frame_size",
        (512, 2_147_483_647),
        "131072",
        "Largest frame in bytes that clients take.",
    ),
    Setting::duration(
        "idle_timeout",
        "60s",
        "Silence of the server after which clients give up; half of it is asked for; 0s: never.",
    ),
    Setting::text("broker_user", "", "Reference server: required user; empty accepts all clients."),
    Setting::text("broker_password", "", "Reference server: password of that user."),
    Setting::integer(
        "broker_credit",
        (1, 1_000_000),
        "1000",
        "Reference server: link credit that it gives to each producer.",
    ),
    Setting::integer(
        "broker_memory",
        (1, 1 << 40),
        "1073741824",
        "Reference server: bytes of messages in memory at which producers get no new credit.",
    ),
    Setting::integer(
        "broker_message_bytes_max",
        (1, 1 << 32),
        "134217728",
        "Reference server: largest message.",
    ),
    Setting::integer(
        "broker_max_frame_size",
        (512, 2_147_483_647),
        "131072",
        "Reference server: largest frame in bytes.",
    ),
    Setting::integer(
        "broker_queue_messages",
        (0, 4_294_967_295),
        "0",
        "Reference server: messages in a queue at which it rejects more; 0 means no limit.",
    ),
    Setting::duration(
        "broker_queue_expires",
        "10m",
        "Reference server: time after which a queue without links is deleted; 0s: never.",
    ),
    Setting::duration(
        "broker_idle_timeout",
        "60s",
        "Reference server: silence of a client after which it gives up; 0s: never.",
    ),
];

/// The keys of AMQP 1.0, and those of TLS.
pub(super) const SETTINGS: &[Setting] = &tls::with::<{ OWN.len() + tls::KEYS }>(OWN, "");

/// At least once needs both halves: a disposition for the producer, and one of the consumer. What
/// is sent settled is forgotten once it is in the socket.
pub(super) fn guarantee(settings: &Settings) -> Guarantee {
    match settings.text("transfers") != "settled" && settings.text("deliveries") != "settled" {
        true => Guarantee::AtLeastOnce,
        false => Guarantee::AtMostOnce,
    }
}

/// Messages that are not durable are in the memory of the server alone, whatever it can do.
pub(super) fn durability_limit(settings: &Settings) -> Option<Durability> {
    (!settings.flag("durable")).then_some(Durability::Memory)
}

/// Settings of the reference server.
#[derive(Clone, Debug)]
pub(super) struct Rules {
    /// User and password that it demands.
    pub(super) login: Login,
    /// Credit of each producer.
    pub(super) credit: u32,
    pub(super) memory_bytes_max: u64,
    pub(super) message_bytes_max: u64,
    pub(super) frame_max: u32,
    /// Messages in a queue; 0 means no limit.
    pub(super) queue_messages_max: u64,
    /// 0 is never.
    pub(super) queue_expires: Nanos,
    /// 0 is never.
    pub(super) idle: Nanos,
}

impl Rules {
    pub(super) fn read(settings: &Settings) -> Result<Rules, Invalid> {
        let whole = |key, default| settings.integer_or(key, default);
        Ok(Rules {
            login: login("amqp1", settings)?,
            credit: whole("broker_credit", 1000) as u32,
            memory_bytes_max: whole("broker_memory", 1 << 30),
            message_bytes_max: whole("broker_message_bytes_max", 1 << 27),
            frame_max: whole("broker_max_frame_size", 1 << 17) as u32,
            queue_messages_max: whole("broker_queue_messages", 0),
            queue_expires: settings.duration_or("broker_queue_expires", Nanos::from_secs(600)),
            idle: settings.duration_or("broker_idle_timeout", Nanos::from_secs(60)),
        })
    }
}

/// The value of `idle-time-out` for a timeout: half of it, as section 2.4.5 recommends; `None` for
/// none.
pub(super) fn announced_ms(timeout: Nanos) -> Option<u32> {
    let half_ms = timeout.0.div_ceil(2_000_000);
    (half_ms > 0).then(|| u32::try_from(half_ms).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(given: &[(&str, &str)]) -> Settings {
        Settings::new("amqp1", SETTINGS, given.iter().copied()).unwrap()
    }

    #[test]
    fn every_default_is_a_value_of_its_own_key() {
        let defaults = SETTINGS.iter().map(|setting| (setting.key, setting.default));
        let rules = Rules::read(&Settings::new("amqp1", SETTINGS, defaults).unwrap()).unwrap();
        assert_eq!((rules.frame_max, rules.credit), (131_072, 1000));
        let empty = Rules::read(&Settings::default()).unwrap();
        assert_eq!(format!("{empty:?}"), format!("{rules:?}"), "the defaults stand without a plan");
        assert_eq!((announced_ms(rules.idle), announced_ms(Nanos(0))), (Some(30_000), None));
    }

    #[test]
    fn at_least_once_needs_both_dispositions() {
        let of = |given: &[(&str, &str)]| guarantee(&settings(given));
        assert_eq!(of(&[]), Guarantee::AtLeastOnce);
        assert_eq!(of(&[("transfers", "settled")]), Guarantee::AtMostOnce);
        assert_eq!(of(&[("deliveries", "settled")]), Guarantee::AtMostOnce);
        assert_eq!(durability_limit(&settings(&[])), None);
        let volatile = durability_limit(&settings(&[("durable", "false")]));
        assert_eq!(volatile, Some(Durability::Memory));
    }

    #[test]
    fn a_password_needs_a_user() {
        let error = Rules::read(&settings(&[("broker_password", "x")])).unwrap_err();
        assert!(error.fix.contains("amqp1.broker_user"), "{error}");
    }
}
