//! What mqtt-stresser prints: for each client its messages over the time that it published in, and
//! over the time that was left from then until the last of them was back; of all clients the
//! fastest, the slowest and the median (github.com/inovex/mqtt-stresser, `Worker.Run` in worker.go,
//! `buildSummary` in report.go, commits 032a2fd and 6fd0ab6). What arrived while a client published
//! is in its count and not in its time.
//!
//! The tool has times of its own besides: to wait up to 5 ms for the publisher's goodbye, and to
//! hand what has arrived from one routine to the other. Those are not emulated.

use std::collections::BTreeMap;

use weigh_model::Nanos;

use crate::told::Client;

/// What it prints of all its clients.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Printed {
    /// Messages that clients published which got something back; of others it knows nothing.
    pub published: u64,
    /// Messages that came back.
    pub received: u64,
    /// Clients that got all of theirs back.
    pub completed: u64,
    /// By client, messages per second, ascending.
    pub publish_per_s: Vec<f64>,
    /// The same of what came back, from the end of publishing.
    pub receive_per_s: Vec<f64>,
}

impl Printed {
    /// From what the clients did.
    pub fn of(clients: &[Client]) -> Printed {
        let mut printed = Printed::default();
        for client in clients.iter().filter(|client| client.received > 0) {
            printed.published += client.published;
            printed.received += client.received;
            printed.completed += u64::from(client.received >= client.published);
            let publishing = span(client.first_sent, client.published_until);
            let receiving = span(client.published_until, client.last_arrived);
            let rate = |count: u64, time: Nanos| count as f64 / time.as_secs_f64();
            printed.publish_per_s.extend(publishing.map(|time| rate(client.published, time)));
            printed.receive_per_s.extend(receiving.map(|time| rate(client.received, time)));
        }
        printed.publish_per_s.sort_by(f64::total_cmp);
        printed.receive_per_s.sort_by(f64::total_cmp);
        printed
    }

    pub(crate) fn figures(&self) -> BTreeMap<&'static str, f64> {
        let ratio = self.received as f64 / self.published as f64;
        let all = [
            ("mqtt_stresser_receive_ratio", (self.published > 0).then_some(ratio)),
            ("mqtt_stresser_publish_per_s", median(&self.publish_per_s)),
            ("mqtt_stresser_receive_per_s", median(&self.receive_per_s)),
        ];
        all.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
    }
}

/// The middle of ascending values, or the mean of the two in the middle.
pub fn median(ascending: &[f64]) -> Option<f64> {
    let last = ascending.len().checked_sub(1)?;
    Some((ascending[last / 2] + ascending[ascending.len() / 2]) / 2.0)
}

/// From one moment to a later one.
fn span(from: Option<Nanos>, to: Option<Nanos>) -> Option<Nanos> {
    let (from, to) = from.zip(to)?;
    (to > from).then(|| to - from)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(published: u64, received: u64, ms: [u64; 3]) -> Client {
        let [first, until, arrived] = ms.map(|ms| Some(Nanos::from_millis(ms)));
        Client {
            published,
            first_sent: first,
            published_until: until,
            received,
            last_arrived: arrived,
        }
    }

    /// 1,000 messages published in 100 ms, the last one back 10 ms later: 10,000/s out, and
    /// 100,000/s in, though all of it took 110 ms.
    #[test]
    fn receiving_is_timed_from_the_end_of_publishing() {
        let clients = [client(1_000, 1_000, [50, 150, 160]), client(1_000, 1_000, [50, 250, 300])];
        let figures = Printed::of(&clients).figures();
        assert_eq!(figures["mqtt_stresser_publish_per_s"], 7_500.0);
        assert_eq!(figures["mqtt_stresser_receive_per_s"], 60_000.0);
        assert_eq!(figures["mqtt_stresser_receive_ratio"], 1.0);
    }

    #[test]
    fn losses_are_of_those_that_got_something() {
        let clients = [client(100, 30, [0, 10, 20]), client(100, 0, [0, 10, 0])];
        let printed = Printed::of(&clients);
        assert_eq!((printed.published, printed.received, printed.completed), (100, 30, 0));
        assert_eq!(printed.figures()["mqtt_stresser_receive_ratio"], 0.3);
        assert_eq!(Printed::of(&[]).figures(), BTreeMap::new());
    }

    #[test]
    fn a_median_is_of_the_middle() {
        assert_eq!(median(&[1.0, 2.0, 9.0]), Some(2.0));
        assert_eq!(median(&[1.0, 2.0, 4.0, 9.0]), Some(3.0));
        assert_eq!(median(&[]), None);
    }
}
