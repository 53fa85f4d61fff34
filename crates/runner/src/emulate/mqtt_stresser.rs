//! Emulates the output of mqtt-stresser: for each client its messages over the time that it
//! published in, and over the time from then until its last message was back; of all clients the
//! fastest, the slowest and the median (github.com/inovex/mqtt-stresser, `Worker.Run` in worker.go,
//! `buildSummary` in report.go, commits 032a2fd and 6fd0ab6). Messages that arrived while a client
//! published are in its count and not in its time.
//!
//! The tool also waits up to 5 ms for the publisher's disconnect, and hands arrivals from one
//! routine to another. Those times are not emulated.

use std::collections::BTreeMap;

use weigh_model::{Arrival, Load, Nanos};

use crate::emulate::comparison::{Comparison, Left, NOTHING, Row, number};
use crate::emulate::trial_facts::Client;

/// Its output for all clients.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Printed {
    /// Messages of clients that got at least one back; others are not counted.
    pub published: u64,
    /// Messages that came back.
    pub received: u64,
    /// Clients that got all their messages back.
    pub completed: u64,
    /// Messages per second by client, ascending.
    pub publish_per_s: Vec<f64>,
    /// Messages that came back per second, from the end of publishing, by client, ascending.
    pub receive_per_s: Vec<f64>,
}

impl Printed {
    /// Computes it from the clients' messages, each with this pause after every message; the pause
    /// after the last one counts into the time of publishing.
    pub fn of(clients: &[Client], pause: Nanos) -> Printed {
        let mut printed = Printed::default();
        for client in clients.iter().filter(|client| client.received > 0) {
            printed.published += client.published;
            printed.received += client.received;
            printed.completed += u64::from(client.received >= client.published);
            let until = client.published_until.map(|last| last + pause);
            let publishing = span(client.first_sent, until);
            let receiving = span(until, client.last_arrived);
            let rate = |count: u64, time: Nanos| count as f64 / time.as_secs_f64();
            printed.publish_per_s.extend(publishing.map(|time| rate(client.published, time)));
            printed.receive_per_s.extend(receiving.map(|time| rate(client.received, time)));
        }
        printed.publish_per_s.sort_by(f64::total_cmp);
        printed.receive_per_s.sort_by(f64::total_cmp);
        printed
    }

    pub(crate) fn figures(&self) -> BTreeMap<&'static str, f64> {
        let is_known = self.published > 0;
        let ratio = self.received as f64 / self.published as f64;
        let all = [
            ("mqtt_stresser_receive_ratio", is_known.then_some(ratio)),
            ("mqtt_stresser_publish_per_s", median(&self.publish_per_s)),
            ("mqtt_stresser_receive_per_s", median(&self.receive_per_s)),
            ("mqtt_stresser_publish_slowest_per_s", self.publish_per_s.first().copied()),
            ("mqtt_stresser_publish_fastest_per_s", self.publish_per_s.last().copied()),
            ("mqtt_stresser_receive_slowest_per_s", self.receive_per_s.first().copied()),
            ("mqtt_stresser_receive_fastest_per_s", self.receive_per_s.last().copied()),
            ("mqtt_stresser_completed_clients", is_known.then_some(self.completed as f64)),
        ];
        all.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
    }
}

/// Compares its lines with the exact figures.
pub fn compare(left: &Left<'_>) -> Comparison {
    let ledger = &left.finished.ledger;
    let clients = left.load.connections;
    let shown = |name: &str| left.metric(name).map_or_else(|| NOTHING.to_owned(), number);
    let per_client = |name: &str| {
        let each = left.metric(name).map(|all| all / f64::from(clients.max(1)));
        each.map_or_else(|| NOTHING.to_owned(), number)
    };
    let counted = |count: u64, of: u64| {
        let percent = 100.0 * count as f64 / of.max(1) as f64;
        format!("{} ({percent:.0}%)", number(count as f64))
    };
    let arrived = ledger.delivered.map_or(0, |delivered| delivered + ledger.late);
    let told = |count: Option<u64>, of: Option<u64>| {
        let both = count.zip(of);
        both.map_or_else(|| NOTHING.to_owned(), |(count, of)| counted(count, of))
    };
    // Its published count covers only clients that got something back; this keeps the ratio of its
    // two lines.
    let ratio = left.metric("mqtt_stresser_receive_ratio").filter(|ratio| *ratio > 0.0);
    let published = ratio.map(|ratio| (arrived as f64 / ratio).round() as u64);
    let received = published.map(|_| arrived);
    let completed = left.metric("mqtt_stresser_completed_clients").map(|count| count as u64);
    let exact = [counted(ledger.sent, ledger.scheduled), counted(arrived, ledger.sent)];
    let [exact_sent, exact_arrived] = exact;
    let mut rows = vec![
        Row::new("Concurrent Clients", clients.to_string(), clients.to_string()),
        Row::new("Published Messages", told(published, Some(ledger.scheduled)), exact_sent),
        Row::new("Received Messages", told(received, published), exact_arrived),
        Row::new("Completed", told(completed, Some(clients.into())), NOTHING.to_owned()),
    ];
    let exact = [
        ("Publishing", "publish", per_client("throughput_in_per_s")),
        ("Receiving", "receive", per_client("throughput_out_per_s")),
    ];
    for (title, verb, exact) in exact {
        for which in ["fastest", "slowest"] {
            let name = format!("mqtt_stresser_{verb}_{which}_per_s");
            let title = format!("{title}, {which} msg/sec");
            rows.push(Row::new(title, shown(&name), NOTHING.to_owned()));
        }
        let name = format!("mqtt_stresser_{verb}_per_s");
        rows.push(Row::new(format!("{title}, median msg/sec"), shown(&name), exact));
    }
    rows.push(Row::new(
        "delivered of all clients, msg/sec",
        NOTHING.to_owned(),
        shown("throughput_out_per_s"),
    ));
    Comparison { tool: "mqtt-stresser", rows, why: why(left) }
}

/// Explains why its figures differ.
fn why(left: &Left<'_>) -> String {
    let clients = f64::from(left.load.connections);
    let metric = |name: &str| left.metric(name).unwrap_or(0.0);
    let (median, exact) = (metric("mqtt_stresser_receive_per_s"), metric("throughput_out_per_s"));
    let ledger = &left.finished.ledger;
    let lost = ledger.lost.unwrap_or(0);
    let lost = match lost {
        0 => String::new(),
        lost => format!(
            " {} of {} messages were lost, and clients that got nothing back are not in its count.",
            number(lost as f64),
            number(ledger.sent as f64)
        ),
    };
    format!(
        "mqtt-stresser divides all messages that came back by the time from the end of \
         publishing, even if they came before: {}/s for the median client, {}/s if {} such \
         clients are added up; {}/s were delivered from the first message sent to the last \
         arrival.{lost}",
        number(median),
        number(median * clients),
        number(clients),
        number(exact),
    )
}

/// Pause of a client of this load after each message.
pub(crate) fn pause(load: &Load) -> Nanos {
    match (&load.arrival, load.rate) {
        (Arrival::Constant | Arrival::Periodic, Some(rate)) => {
            let of_each = rate.total_per_second(load.connections) / f64::from(load.connections);
            Nanos::from_secs_f64(1.0 / of_each)
        }
        (arrival, _) if arrival.is_closed() => load.think,
        _ => Nanos(0),
    }
}

/// Median of ascending values.
pub fn median(ascending: &[f64]) -> Option<f64> {
    let last = ascending.len().checked_sub(1)?;
    Some((ascending[last / 2] + ascending[ascending.len() / 2]) / 2.0)
}

/// Time from one moment to a later one.
fn span(from: Option<Nanos>, to: Option<Nanos>) -> Option<Nanos> {
    let (from, to) = from.zip(to)?;
    (to > from).then(|| to - from)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::emulate::comparison::tests::finished;
    use crate::emulate::trial_facts::tests::load;
    use serde_json::json;
    use weigh_model::event::TrialFinished;
    use weigh_stats::histogram::Histogram;

    /// Two clients of 100 messages, of which one got 30 back and one nothing: 100 published, of
    /// which 30 % came, where 200 were sent, of which 15 % came.
    #[test]
    fn its_lines_count_the_clients_that_got_something_and_ours_all() {
        let load = load(&json!({ "connections": 2, "subscribers": 2, "messages": 200 }));
        let clients = [client(100, 30, [0, 10, 20]), client(100, 0, [0, 10, 0])];
        let printed = Printed::of(&clients, Nanos(0));
        let mut trial = finished(json!(printed.figures()), &Histogram::new());
        (trial.ledger.scheduled, trial.ledger.sent) = (200, 200);
        (trial.ledger.delivered, trial.ledger.lost) = (Some(30), Some(170));
        let rows = |trial: &TrialFinished| {
            compare(&Left { load: &load, finished: trial, intervals: &[] }).rows
        };
        let row = |rows: &[Row], name: &str| {
            let row = rows.iter().find(|row| row.name == name).unwrap();
            (row.tool.clone(), row.exact.clone())
        };
        let told = rows(&trial);
        let both = |tool: &str, exact: &str| (tool.to_owned(), exact.to_owned());
        assert_eq!(row(&told, "Published Messages"), both("100 (50%)", "200 (100%)"));
        assert_eq!(row(&told, "Received Messages"), both("30 (30%)", "30 (15%)"));
        assert_eq!(row(&told, "Completed"), both("0 (0%)", "-"));
        // Without any arrival it prints no results.
        trial.metrics.clear();
        trial.ledger.delivered = Some(0);
        let told = rows(&trial);
        assert_eq!(row(&told, "Published Messages"), both("-", "200 (100%)"));
        assert_eq!(row(&told, "Received Messages"), both("-", "0 (0%)"));
    }

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
        let figures = Printed::of(&clients, Nanos(0)).figures();
        assert_eq!(figures["mqtt_stresser_publish_per_s"], 7_500.0);
        assert_eq!(figures["mqtt_stresser_receive_per_s"], 60_000.0);
        assert_eq!(figures["mqtt_stresser_receive_ratio"], 1.0);
    }

    #[test]
    fn losses_are_of_those_that_got_something() {
        let clients = [client(100, 30, [0, 10, 20]), client(100, 0, [0, 10, 0])];
        let printed = Printed::of(&clients, Nanos(0));
        assert_eq!((printed.published, printed.received, printed.completed), (100, 30, 0));
        assert_eq!(printed.figures()["mqtt_stresser_receive_ratio"], 0.3);
        assert_eq!(Printed::of(&[], Nanos(0)).figures(), BTreeMap::new());
    }

    /// Ten messages with 100 ms after each take a second, the pause after the last one included;
    /// what is back by then has no time.
    #[test]
    fn the_pause_after_the_last_message_is_publishing_too() {
        let changes = json!({ "arrival": "constant", "rate": "10/s/client" });
        let each = pause(&load(&changes));
        assert_eq!(each, Nanos::from_millis(100));
        let figures = Printed::of(&[client(10, 10, [0, 900, 901])], each).figures();
        assert_eq!(figures["mqtt_stresser_publish_per_s"], 10.0);
        assert!(!figures.contains_key("mqtt_stresser_receive_per_s"));
        assert_eq!(pause(&load(&json!({ "think": "5ms" }))), Nanos::from_millis(5));
        assert_eq!(pause(&load(&json!({ "arrival": "burst" }))), Nanos(0));
    }

    #[test]
    fn a_median_is_of_the_middle() {
        assert_eq!(median(&[1.0, 2.0, 9.0]), Some(2.0));
        assert_eq!(median(&[1.0, 2.0, 4.0, 9.0]), Some(3.0));
        assert_eq!(median(&[]), None);
    }
}
