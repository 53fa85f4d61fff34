//! The comparison of `weigh compare` without arguments: the protocols of the main job publish at
//! one rate, with a connection per message where it can, and brokers deliver as well. Reasons:
//! `docs/decisions/0053-the-main-job.md`.

use weigh_model::Pattern;
use weigh_model::protocol::{Guarantee, Invalid};
use weigh_protocols as registry;
use weigh_testbed::catalogue::Catalogue;

use crate::case::lanes::{self, Against, Lane};

/// Returns the words of the main job in `pattern`: every protocol that has it and does not wait for
/// its name (`Properties::is_only_by_name`), against its reference server, and Mosquitto if it is
/// installed.
pub fn words(catalogue: &Catalogue, pattern: Pattern) -> Vec<String> {
    let able = || {
        let asked = registry::PROTOCOLS.iter().filter(|own| own.patterns().contains(&pattern));
        asked.filter(|own| !own.properties().is_only_by_name)
    };
    let has_broker = able().any(|own| own.properties().is_brokered);
    let broker = lanes::mosquitto(catalogue).filter(|_| has_broker);
    able().map(|own| own.name().to_owned()).chain(broker).collect()
}

/// Adds, after each lane whose protocol can do so, the same lane with a connection per message,
/// unless the user chose for it. Real servers are measured with kept connections only.
///
/// # Errors
/// Settings that exclude a connection per message.
pub fn with_connections_per_message(lanes: Vec<Lane>) -> Result<Vec<Lane>, Invalid> {
    let mut all = Vec::with_capacity(lanes.len());
    for lane in lanes {
        let setting = lane.protocol.properties().per_message;
        let is_free = |(key, _): &(&str, &str)| !lane.given.contains_key(*key);
        let is_reference = matches!(lane.against, Against::Reference);
        let renewed = setting.filter(|own| is_reference && is_free(own)).map(|(key, value)| {
            let mut given = lane.given.clone();
            given.insert(key.to_owned(), value.to_owned());
            Lane::new(lane.protocol, lane.against.clone(), given)
        });
        all.push(lane);
        all.extend(renewed.transpose()?);
    }
    Ok(all)
}

/// True if the main job also measures delivery on this lane: through a broker, at least once.
pub fn delivers(lane: &Lane) -> bool {
    lane.protocol.properties().is_brokered
        && lane.patterns().contains(&Pattern::Deliver)
        && lane.protocol.guarantee(&lane.settings) == Guarantee::AtLeastOnce
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::lanes::Given;
    use crate::watcher::Watcher;

    struct Silent;

    impl Watcher for Silent {
        fn say(&self, _: &str) {}

        fn note(&self, _: &str) {}
    }

    fn made(words: &[&str], sets: &[&str]) -> Vec<String> {
        let catalogue = Catalogue::load(None).unwrap();
        let sets: Vec<String> = sets.iter().map(|set| (*set).to_owned()).collect();
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        let given = Given::parse(&sets).unwrap_or_else(|stop| panic!("{stop}"));
        let lanes = lanes::lanes(&words, &catalogue, &given, &Silent);
        let lanes = lanes.unwrap_or_else(|stop| panic!("{stop}"));
        let all = with_connections_per_message(lanes).unwrap();
        let name = |lane: &Lane| {
            let given: Vec<String> =
                lane.given.iter().map(|(key, value)| format!("{key}={value}")).collect();
            let deliver = if delivers(lane) { " delivers" } else { "" };
            format!("{} {}{deliver}", lane.protocol.name(), given.join(" "))
        };
        all.iter().map(name).collect()
    }

    #[test]
    fn http_is_measured_with_and_without_kept_connections() {
        let expected = [
            "mqtt qos=0",
            "mqtt qos=1 delivers",
            "mqtt qos=2",
            "http1 ",
            "http1 keep_alive=false",
            "tcp ",
        ];
        assert_eq!(made(&["mqtt", "http", "tcp"], &[]), expected);
    }

    #[test]
    fn a_choice_of_the_user_stays() {
        for value in ["true", "false"] {
            let set = format!("http1.keep_alive={value}");
            assert_eq!(made(&["http"], &[&set]), [format!("http1 keep_alive={value}")]);
        }
    }

    #[test]
    fn every_protocol_that_does_not_wait_for_its_name_is_in_it() {
        let catalogue = Catalogue::load(None).unwrap();
        let words = words(&catalogue, Pattern::Publish);
        let first: Vec<&str> = words.iter().map(String::as_str).take(3).collect();
        assert_eq!(first, ["mqtt", "http1", "tcp"]);
        for own in registry::PROTOCOLS {
            let is_in = words.iter().any(|word| word == own.name());
            assert_eq!(is_in, !own.properties().is_only_by_name, "{}", own.name());
        }
    }

    #[test]
    fn a_protocol_without_the_pattern_is_left_out() {
        let catalogue = Catalogue::load(None).unwrap();
        let holding = words(&catalogue, Pattern::Hold);
        assert!(holding.contains(&"mqtt".to_owned()), "{holding:?}");
        assert!(!holding.contains(&"coap".to_owned()), "{holding:?}");
    }
}
