//! The registry's protocols, two real servers that are never started, and a limit to run into.

use weigh_model::Protocol;
use weigh_model::protocol::Invalid;
use weigh_plan::Case;
use weigh_plan::world::{PIPELINE, REFERENCE, TargetWord, World};
use weigh_plan::{Problems, Resolved};

pub struct TestWorld;

impl World for TestWorld {
    fn protocols(&self) -> &'static [&'static dyn Protocol] {
        weigh_protocols::PROTOCOLS
    }

    fn target(&self, word: &str) -> Result<TargetWord, String> {
        let speaks = match word {
            REFERENCE => None,
            PIPELINE => Some("mqtt http1 grpc"),
            "mosquitto" | "mosquitto@no-limits" | "mqtt://127.0.0.1:1883" => Some("mqtt"),
            "hivemq" | "rabbitmq" | "artemis" | "ejabberd" | "nats-mqtt" | "mochi" | "moquette"
            | "aedes" | "rmqtt" => Some("mqtt"),
            "nginx" | "http://127.0.0.1:80" => Some("http1"),
            "libcoap" => Some("coap"),
            "nats-server@memory" => Some("nats"),
            "rabbitmq-amqp" => Some("amqp"),
            "rabbitmq-amqp1" => Some("amqp1"),
            "redis-server" => Some("redis"),
            "kafka-server" => Some("kafka"),
            _ => return Err(format!("{word:?} is no target: there are: mosquitto, nginx")),
        };
        let speaks = speaks.map(|names| names.split(' ').map(str::to_owned).collect());
        Ok(TargetWord { name: word.to_owned(), speaks })
    }

    fn target_names(&self) -> Vec<String> {
        ["reference", "mosquitto", "nginx"].map(str::to_owned).to_vec()
    }

    fn is_secret(&self, key: &str, _value: &str) -> bool {
        key.ends_with(".broker_password")
    }

    fn check(&self, case: &Case) -> Result<(), Invalid> {
        let size = case.load.size.map_or(0, |size| size.0);
        if size > 1 << 20 {
            let problem = format!("{size}B do not fit");
            return Err(Invalid::new("load.size", problem, "make bodies at most 1MiB"));
        }
        Ok(())
    }
}

/// Reads and resolves.
pub fn resolve(text: &str) -> Result<Resolved, Problems> {
    weigh_plan::read(text, &TestWorld)?.resolve("unnamed")
}

/// The same of a plan that nothing is wrong with.
pub fn resolved(text: &str) -> Resolved {
    resolve(text).unwrap_or_else(|problems| panic!("{}", problems.render("plan", text, false)))
}

/// The cases of a plan, a line each: its keys and values but for those that all tests share.
pub fn lines(text: &str) -> Vec<String> {
    let hidden = ["load.arrival", "load.pattern", "target=reference"];
    let line = |case: &weigh_model::trial::Point| {
        let pairs = case.iter().map(|(key, value)| {
            format!("{key}={}", value.as_str().map_or(value.to_string(), str::to_owned))
        });
        let told = pairs.filter(|pair| !hidden.iter().any(|word| pair.starts_with(word)));
        told.collect::<Vec<_>>().join(" ")
    };
    resolved(text).plan.cases.iter().map(line).collect()
}
