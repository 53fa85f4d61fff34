//! A counter of a real server's own: where it is read and what it means.

use serde::Deserialize;
use serde_json::Value;

/// A counter that a server publishes on a topic, or shows under a URL.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Counter {
    /// Its name in results.
    pub name: String,
    /// The topic it is published on.
    #[serde(default)]
    pub topic: Option<String>,
    /// The URL that shows it, with `{places}` to fill in: `http://{address}:{port_monitor}/varz`.
    #[serde(default)]
    pub url: Option<String>,
    /// Its place in the JSON under the URL (RFC 6901): `/in_msgs`.
    #[serde(default)]
    pub json: Option<String>,
    /// What its line begins with in the text under the URL, before the value: a name, or as in
    /// the exposition format of Prometheus a name with `{labels}`. Several such lines are summed.
    #[serde(default)]
    pub line: Option<String>,
    /// Its lines in the answer to INFO of Redis, which the URL `redis://{address}:{port}` asks for:
    /// `total_commands_processed`, or with a place in the line `cmdstat_xadd.calls`. Several are
    /// summed; a command that was never called has no line, and counts as 0.
    #[serde(default)]
    pub info: Vec<String>,
    /// Paths under which a server given by URL may show it, on the port of the URL itself. They are
    /// not used for servers started by Weighbridge.
    #[serde(default)]
    pub paths: Vec<String>,
    /// The text of that page before the value.
    #[serde(default)]
    pub after: Option<String>,
    /// Index of the word after that text that is the value, from 0.
    #[serde(default)]
    pub word: usize,
    /// Whether it only grows or is a state.
    pub kind: CounterKind,
    /// What it counts, in words.
    pub meaning: String,
}

/// Whether a counter grows or is a state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CounterKind {
    /// Grows since the server started; its value for a trial is a difference.
    #[default]
    Total,
    /// State at one moment.
    Gauge,
}

impl Counter {
    /// Checks that it says in exactly one way where it is read.
    ///
    /// # Errors
    /// If it does not, with what to write.
    pub fn check(&self) -> Result<(), String> {
        let has_page = !self.paths.is_empty();
        let is_of_info = !self.info.is_empty();
        let asks_info = self.url.as_ref().is_some_and(|url| url.starts_with(INFO_SCHEME));
        if is_of_info || asks_info {
            let has_other = self.topic.is_some() || self.json.is_some() || self.line.is_some();
            return match is_of_info && asks_info && !has_other && !has_page {
                true => Ok(()),
                false => Err(format!(
                    "the counter {} needs `info` together with a `url` that begins with \
                     {INFO_SCHEME}",
                    self.name
                )),
            };
        }
        match (&self.topic, &self.url, &self.json, &self.line, &self.after) {
            (Some(_), None, None, None, None) if !has_page => Ok(()),
            (None, Some(_), Some(_), None, None) | (None, Some(_), None, Some(_), None)
                if !has_page =>
            {
                Ok(())
            }
            (None, None, None, None, Some(_)) if has_page => Ok(()),
            _ => Err(format!(
                "the counter {} needs a `topic`, or a `url` with either `json` or `line`, or \
                 `paths` with `after`",
                self.name
            )),
        }
    }

    /// Returns its value in a page; `None` if the page does not have it.
    pub fn value_in(&self, shown: &str) -> Option<f64> {
        if !self.info.is_empty() {
            return Some(self.info.iter().filter_map(|line| value_of_info(shown, line)).sum());
        }
        if let Some(pointer) = &self.json {
            let document: Value = serde_json::from_str(shown).ok()?;
            return document.pointer(pointer)?.as_f64();
        }
        if let Some(after) = &self.after {
            let rest = shown.split_once(after.as_str())?.1;
            return rest.split_ascii_whitespace().nth(self.word)?.parse().ok();
        }
        let begins = self.line.as_deref()?;
        let values = shown.lines().filter_map(|line| value_of(line, begins));
        values.fold(None, |sum, value| Some(sum.unwrap_or(0.0) + value))
    }
}

/// Value of a line of INFO, such as `total_commands_processed:7` or, with a place,
/// `cmdstat_xadd:calls=7,usec=9`.
fn value_of_info(shown: &str, name: &str) -> Option<f64> {
    let (line, place) = match name.split_once('.') {
        Some((line, place)) => (line, Some(place)),
        None => (name, None),
    };
    let values = shown.lines().find_map(|own| own.strip_prefix(line)?.strip_prefix(':'))?;
    let Some(place) = place else { return values.trim().parse().ok() };
    let mut places = values.trim().split(',').filter_map(|own| own.split_once('='));
    places.find(|(own, _)| *own == place)?.1.parse().ok()
}

/// Scheme of the URLs of counters in INFO.
const INFO_SCHEME: &str = "redis://";

/// Value of the line that begins with `name`: the word after the name and its labels.
fn value_of(line: &str, begins: &str) -> Option<f64> {
    let rest = line.strip_prefix(begins)?;
    // `received` is not `received_bytes`; labels may follow a name, and a time a value.
    let rest = match rest.strip_prefix('{') {
        Some(labels) => labels.split_once('}')?.1,
        None => rest,
    };
    if !rest.starts_with([' ', '\t']) {
        return None;
    }
    rest.split_ascii_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counter(json: Option<&str>, line: Option<&str>) -> Counter {
        Counter {
            name: "received".to_owned(),
            url: Some("http://{address}:{port}/".to_owned()),
            json: json.map(str::to_owned),
            line: line.map(str::to_owned),
            meaning: "messages taken in".to_owned(),
            ..Counter::default()
        }
    }

    #[test]
    fn values_are_found_in_json_and_in_lines() {
        let shown = r#"{ "in_msgs": 7, "deep": [{ "n": 2.5 }], "text": "7" }"#;
        assert_eq!(counter(Some("/in_msgs"), None).value_in(shown), Some(7.0));
        assert_eq!(counter(Some("/deep/0/n"), None).value_in(shown), Some(2.5));
        assert_eq!(counter(Some("/text"), None).value_in(shown), None);
        assert_eq!(counter(Some("/in_msgs"), None).value_in("<html>"), None);
        let shown =
            "# TYPE in counter\nin{q=\"0\"} 3\nin{q=\"1\"} 4 1700000000\nin_bytes 9\nin 1\n";
        assert_eq!(counter(None, Some("in")).value_in(shown), Some(8.0));
        assert_eq!(counter(None, Some("in{q=\"1\"}")).value_in(shown), Some(4.0));
        assert_eq!(counter(None, Some("out")).value_in(shown), None);
    }

    /// A page as nginx has it (module ngx_http_stub_status_module).
    #[test]
    fn values_are_found_after_a_text() {
        let shown = "Active connections: 3 \nserver accepts handled requests\n 16 15 31 \n";
        let own = |after: &str, word| Counter {
            paths: vec!["/stub_status".to_owned()],
            after: Some(after.to_owned()),
            word,
            ..Counter::default()
        };
        assert_eq!(own("server accepts handled requests", 2).value_in(shown), Some(31.0));
        assert_eq!(own("Active connections:", 0).value_in(shown), Some(3.0));
        assert_eq!(own("server accepts handled requests", 9).value_in(shown), None);
        assert_eq!(own("Waiting:", 0).value_in("<html>"), None);
        assert_eq!(own("Waiting:", 0).check(), Ok(()));
    }

    #[test]
    fn values_are_found_in_the_lines_of_info() {
        let shown = "# Stats\r\ntotal_commands_processed:12\r\n\r\n# Commandstats\r\n\
                     cmdstat_xadd:calls=7,usec=90,failed_calls=1\r\n\
                     cmdstat_xaddx:calls=100\r\ncmdstat_set:calls=2\r\n";
        let own = |info: &[&str]| Counter {
            info: info.iter().map(|line| (*line).to_owned()).collect(),
            url: Some("redis://{address}:{port}".to_owned()),
            ..Counter::default()
        };
        assert_eq!(own(&["total_commands_processed"]).value_in(shown), Some(12.0));
        let calls = own(&["cmdstat_xadd.calls", "cmdstat_set.calls", "cmdstat_publish.calls"]);
        assert_eq!(calls.value_in(shown), Some(9.0));
        assert_eq!(own(&["cmdstat_xadd.failed_calls"]).value_in(shown), Some(1.0));
        assert_eq!(calls.check(), Ok(()));
        let without_url = Counter { url: None, ..own(&["used_memory"]) };
        assert!(without_url.check().unwrap_err().contains("redis://"));
        let without_info = Counter { line: Some("in".to_owned()), ..own(&[]) };
        assert!(without_info.check().unwrap_err().contains("`info`"));
    }

    #[test]
    fn one_place_is_named() {
        assert_eq!(counter(Some("/a"), None).check(), Ok(()));
        for wrong in [counter(None, None), counter(Some("/a"), Some("a"))] {
            assert!(wrong.check().unwrap_err().contains("received needs a `topic`"));
        }
        let both = Counter { topic: Some("a".to_owned()), ..counter(Some("/a"), None) };
        assert!(both.check().is_err());
    }
}
