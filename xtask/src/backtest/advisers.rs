//! The advisers that must be beaten, each in a few lines, and the control that must fail.

use weigh_stats::random::Random;

use super::outcome::Situation;
use super::tree::Tree;

/// An adviser: its name, and the options that it would name in a situation.
pub(crate) type Adviser<'t> = (&'static str, Box<dyn Fn(&Situation) -> Vec<String> + 't>);

/// The advice itself, then those that must be beaten.
pub(crate) fn advisers(tree: &Tree) -> Vec<Adviser<'_>> {
    vec![
        named("weigh advise", |own| own.advised.clone()),
        named("always MQTT QoS 1", |own| first(own, &["mqtt qos 1, kept"])),
        named("fewest bytes", fewest_bytes),
        named("order by Naik", |own| by_rank(own, naik)),
        named("EMQX's rule", |own| first(own, &EMQX)),
        named("decision tree", |own| first(own, &[own.tree_option(tree).as_str()])),
    ]
}

fn named<'t>(name: &'static str, pick: impl Fn(&Situation) -> Vec<String> + 't) -> Adviser<'t> {
    (name, Box::new(pick))
}

/// N. Naik (2017), "Choice of effective messaging protocols for IoT systems": message size and
/// overhead, power and resources, bandwidth and latency all grow from CoAP to MQTT to AMQP to HTTP;
/// a higher QoS of MQTT costs more. Nothing is said about keeping connections.
pub(crate) fn naik(option: &str) -> f64 {
    let protocol = ["coap", "mqtt", "amqp", "http"];
    let place = protocol.iter().position(|own| option.starts_with(own));
    let qos = ["qos 0", "qos 1", "qos 2"].iter().position(|own| option.contains(own));
    place.unwrap_or(protocol.len()) as f64 + qos.unwrap_or(0) as f64 / 10.0
}

/// Probability that the first option costs less than the second, by the rank of the literature:
/// certain where the ranks differ.
pub(crate) fn by_literature(first: &str, second: &str) -> f64 {
    match naik(first).total_cmp(&naik(second)) {
        std::cmp::Ordering::Less => 1.0,
        std::cmp::Ordering::Equal => 0.5,
        std::cmp::Ordering::Greater => 0.0,
    }
}

/// EMQX's sizing rule: 30 % more for QoS 1, 60 % more for QoS 2, so the least QoS; connections are
/// kept.
const EMQX: [&str; 3] = ["mqtt qos 0, kept", "mqtt qos 1, kept", "mqtt qos 2, kept"];

/// The first option of this order that was measured.
fn first(own: &Situation, order: &[&str]) -> Vec<String> {
    let named = |start: &&str| own.measured.keys().find(|name| name.starts_with(*start)).cloned();
    order.iter().find_map(named).into_iter().collect()
}

/// The option of the lowest rank; of equal ones that with kept connections.
fn by_rank(own: &Situation, rank: fn(&str) -> f64) -> Vec<String> {
    let place = |name: &String| (rank(name), name.contains(", one each"));
    let least = own.measured.keys().min_by(|a, b| {
        let (a, b) = (place(a), place(b));
        a.0.total_cmp(&b.0).then(a.1.cmp(&b.1))
    });
    least.cloned().into_iter().collect()
}

fn fewest_bytes(own: &Situation) -> Vec<String> {
    let known = own.bytes.iter().filter(|(name, _)| own.measured.contains_key(*name));
    let least = known.min_by(|a, b| a.1.total_cmp(b.1));
    least.map(|(name, _)| name.clone()).into_iter().collect()
}

/// The same predictions with the labels of the options permuted at random in every situation: what
/// was measured of one option is taken for another's.
pub(crate) fn shuffled(all: &[Situation], seed: u64) -> Vec<Situation> {
    let mut random = Random::new(seed);
    let of = |own: &Situation| {
        let names: Vec<String> = own.measured.keys().cloned().collect();
        let mut others = names.clone();
        // R. A. Fisher and F. Yates, as R. Durstenfeld (1964) has it.
        for at in (1..others.len()).rev() {
            others.swap(at, random.index(at + 1));
        }
        let pairs = names.iter().zip(&others);
        let measured =
            pairs.map(|(name, other)| (name.clone(), own.measured[other].clone())).collect();
        Situation { measured, ..own.clone() }
    };
    all.iter().map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own(names: &[&str]) -> Situation {
        let mut own = Situation::default();
        for (at, name) in names.iter().enumerate() {
            own.measured.insert((*name).to_owned(), vec![at as f64 + 1.0; 3]);
            own.bytes.insert((*name).to_owned(), 100.0 - at as f64);
        }
        own
    }

    #[test]
    fn simple_advisers_name_what_they_say() {
        let names = ["http1, kept", "mqtt qos 1, kept", "mqtt qos 1, one each", "mqtt qos 2, kept"];
        let tree = Tree::Leaf("http1, kept".to_owned());
        let found: Vec<(&str, Vec<String>)> = advisers(&tree)
            .into_iter()
            .map(|(name, adviser)| (name, adviser(&own(&names))))
            .collect();
        let of = |name: &str| {
            let (_, picked) = found.iter().find(|own| own.0 == name).expect("an adviser");
            picked.first().map(String::as_str)
        };
        assert_eq!(of("always MQTT QoS 1"), Some("mqtt qos 1, kept"));
        assert_eq!(of("order by Naik"), Some("mqtt qos 1, kept"));
        assert_eq!(of("EMQX's rule"), Some("mqtt qos 1, kept"));
        assert_eq!(of("fewest bytes"), Some("mqtt qos 2, kept"));
        assert_eq!(of("decision tree"), Some("http1, kept"));
    }

    #[test]
    fn literature_ranks_protocols_and_qos() {
        assert_eq!(by_literature("mqtt qos 1, kept", "http1, one each"), 1.0);
        assert_eq!(by_literature("mqtt qos 2, kept", "mqtt qos 1, kept"), 0.0);
        assert_eq!(by_literature("http1, kept", "http1, one each"), 0.5);
        assert_eq!(by_literature("coap type con", "mqtt qos 0, kept"), 1.0);
    }

    #[test]
    fn a_shuffle_keeps_the_values_and_moves_them() {
        let all = vec![own(&["a", "b", "c", "d", "e", "f"]); 10];
        let found = shuffled(&all, 1);
        let is_moved = |(was, now): (&Situation, &Situation)| was.measured != now.measured;
        assert!(all.iter().zip(&found).filter(|own| is_moved(*own)).count() >= 9);
        for own in &found {
            let mut values: Vec<f64> = own.measured.values().map(|own| own[0]).collect();
            values.sort_unstable_by(f64::total_cmp);
            assert_eq!(values, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
        }
        assert_eq!(found, shuffled(&all, 1), "the seed decides");
    }
}
