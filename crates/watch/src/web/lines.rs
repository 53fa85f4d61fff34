//! Lines of the journal as server-sent events (WHATWG HTML, section "Server-sent events"). A line
//! is sent as it is, with three exceptions: recorded times are left out, because they are large and
//! no live view uses them; the plan's thresholds come with their limits as numbers; and a trial
//! comes with its offered rate and whether each threshold holds.

use std::path::Path;

use serde::Deserialize;
use serde_json::{Value, json};
use weigh_model::condition::{Condition, Limit};
use weigh_model::event::{RunStarted, TrialFinished};
use weigh_model::units::parse_rate;

use crate::follow::{Follower, JournalLine};

/// Makes events of lines. What a line needs of the run's first line is kept.
#[derive(Debug, Default)]
pub struct Lines {
    /// What the ids of a study's events have before the offset: `RUN:`.
    prefix: String,
    thresholds: Vec<Condition>,
    /// The rate and the connections of the plan, which a trial's point may override.
    load: Option<(Option<Value>, u64)>,
}

/// The key that every line has.
#[derive(Deserialize)]
struct Named {
    event: String,
}

impl Lines {
    /// Lines behind `offset` of the journal in `folder`. The first line is read here if the stream
    /// begins behind it.
    pub fn behind(folder: &Path, offset: u64) -> Lines {
        let mut lines = Lines::default();
        if offset > 0
            && let Ok(mut follower) = Follower::open(folder, 0)
            && let Ok(read) = follower.read()
            && let Some(first) = read.first()
            && let Ok(mut first) = serde_json::from_slice::<Value>(&first.text)
        {
            lines.begin(&mut first);
        }
        lines
    }

    /// The lines of a run of a study.
    #[must_use]
    pub fn of_run(mut self, name: &str) -> Lines {
        self.prefix = format!("{name}:");
        self
    }

    /// Appends the event of a line to `sent`.
    pub fn add(&mut self, line: &JournalLine, sent: &mut Vec<u8>) {
        let id = format!("{}{}", self.prefix, line.end);
        let name = serde_json::from_slice::<Named>(&line.text).map(|named| named.event);
        let name = name.ok().filter(|name| is_plain(name));
        let Some(name) = name else {
            // Nothing in it can be trusted, so only its length is sent.
            let about = json!({ "bytes": line.text.len() }).to_string();
            return append(UNREADABLE, Some(&id), about.as_bytes(), sent);
        };
        let changed = match name.as_str() {
            "run_started" => self.changed(&line.text, Lines::begin),
            "trial_started" => self.changed(&line.text, Lines::offer),
            "trial_finished" => self.changed(&line.text, Lines::finish),
            // A line break within a line would end it: JSON allows one between its words.
            _ if line.text.contains(&b'\r') => self.changed(&line.text, |_, _| {}),
            _ => None,
        };
        append(&name, Some(&id), changed.as_deref().unwrap_or(&line.text), sent);
    }

    fn changed(&mut self, text: &[u8], change: fn(&mut Lines, &mut Value)) -> Option<Vec<u8>> {
        let mut line = serde_json::from_slice::<Value>(text).ok()?;
        change(self, &mut line);
        serde_json::to_vec(&line).ok()
    }

    fn begin(&mut self, line: &mut Value) {
        let Ok(started) = serde_json::from_value::<RunStarted>(line.clone()) else { return };
        let limits = started.plan.thresholds.iter().map(|own| {
            let limit = match own.limit {
                Limit::Value(limit) => json!(limit),
                Limit::Change(_) => Value::Null,
            };
            json!({
                "text": own.to_string(), "metric": own.metric, "limit": limit,
            })
        });
        line["limits"] = limits.collect();
        let rate = serde_json::to_value(&started.plan.load).ok();
        let rate = rate.and_then(|load| load.get("rate").cloned());
        self.load = Some((rate, started.plan.load.connections.into()));
        self.thresholds = started.plan.thresholds;
    }

    fn offer(&mut self, line: &mut Value) {
        let (rate, connections) = self.load.clone().unwrap_or_default();
        let point = &line["point"];
        if point.get("load.arrival").is_some_and(|arrival| arrival == "closed") {
            return;
        }
        let rate = point.get("load.rate").cloned().or(rate);
        let own = point.get("load.connections").and_then(Value::as_u64);
        let clients = u32::try_from(own.unwrap_or(connections)).unwrap_or(u32::MAX);
        let rate = rate.as_ref().and_then(Value::as_str).and_then(|text| parse_rate(text).ok());
        if let Some(rate) = rate {
            line["offered_per_s"] = json!(rate.total_per_second(clients));
        }
    }

    fn finish(&mut self, line: &mut Value) {
        if !self.thresholds.is_empty()
            && let Ok(finished) = serde_json::from_value::<TrialFinished>(line.clone())
        {
            let held = self.thresholds.iter();
            let held = held.map(|own| json!(own.holds(finished.figure(&own.metric)?)).into());
            line["held"] = held.map(|own: Option<Value>| own.unwrap_or(Value::Null)).collect();
        }
        if let Some(line) = line.as_object_mut() {
            line.remove("histograms");
        }
    }
}

/// Appends an event. `data` has no line breaks.
pub fn append(name: &str, id: Option<&str>, data: &[u8], sent: &mut Vec<u8>) {
    sent.extend_from_slice(format!("event: {name}\n").as_bytes());
    if let Some(id) = id {
        sent.extend_from_slice(format!("id: {id}\n").as_bytes());
    }
    sent.extend_from_slice(b"data: ");
    sent.extend_from_slice(data);
    sent.extend_from_slice(b"\n\n");
}

/// True for the name of an event of any version that cannot be taken for one of the stream's own or
/// of the browser's.
fn is_plain(name: &str) -> bool {
    let is_letter = |letter: char| letter.is_ascii_lowercase() || letter == '_';
    !name.is_empty() && name.chars().all(is_letter) && !RESERVED.contains(&name)
}

/// A line that is not an event.
const UNREADABLE: &str = "unreadable";

/// The run of a study that the events behind it are of.
pub const SHOWN: &str = "shown";

/// Names of events that the stream makes, and of those that a browser does.
const RESERVED: [&str; 9] =
    [UNREADABLE, SHOWN, "second", "resources", "ended", "lost", "open", "error", "message"];

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(lines: &mut Lines, text: &str) -> String {
        let mut sent = Vec::new();
        lines.add(&JournalLine { end: 7, text: text.as_bytes().to_vec() }, &mut sent);
        String::from_utf8(sent).unwrap()
    }

    fn data(sent: &str) -> Value {
        let line = sent.lines().find_map(|line| line.strip_prefix("data: ")).unwrap();
        serde_json::from_str(line).unwrap()
    }

    #[test]
    fn a_line_is_sent_as_it_is() {
        let line = r#"{"event":"interval","trial":"a","unheard_of":1.50}"#;
        let expected = format!("event: interval\nid: 7\ndata: {line}\n\n");
        assert_eq!(sent(&mut Lines::default(), line), expected);
        let broken = "{\"event\":\"interval\",\r\"a\":1}";
        assert_eq!(sent(&mut Lines::default(), broken).matches('\r').count(), 0);
    }

    /// Such a line could forge an event of the stream.
    #[test]
    fn a_line_that_is_not_an_event_is_sent_without_its_content() {
        for wrong in ["nonsense\rdata: x", "{}", r#"{"event":"lost"}"#, r#"{"event":"a\nid: 9"}"#] {
            let expected =
                format!("event: unreadable\nid: 7\ndata: {{\"bytes\":{}}}\n\n", wrong.len());
            assert_eq!(sent(&mut Lines::default(), wrong), expected);
        }
    }

    #[test]
    fn thresholds_and_rates_come_as_numbers_and_recorded_times_stay() {
        let stored = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../tests/stored/compare/2026-11-23T03-55-39-compare/journal.jsonl"
        );
        let text = std::fs::read_to_string(stored).unwrap();
        let mut first: Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
        first["plan"]["thresholds"] = json!(["p50 < 5ms", "p99 < 1us", "loss == 0"]);
        let mut lines = Lines::default();
        let started = data(&sent(&mut lines, &first.to_string()));
        assert_eq!(started["limits"][0]["limit"], json!(5e6));
        assert_eq!(started["limits"][2]["text"], "loss == 0");
        let of = |name: &str| text.lines().find(|line| line.contains(name)).unwrap();
        let begun = data(&sent(&mut lines, of("trial_started")));
        assert_eq!(begun["offered_per_s"], json!(400.0));
        let finished = data(&sent(&mut lines, of("trial_finished")));
        // 60 messages are too few for p99.
        assert_eq!(finished["held"], json!([true, null, true]));
        assert!(finished.get("histograms").is_none() && finished["metrics"].is_object());
    }
}
