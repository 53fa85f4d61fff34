//! Counters that a server shows under a URL, over HTTP or as INFO of Redis: read until they stop
//! changing.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use weigh_testbed::counter::Counter;
use weigh_testbed::patience;

use crate::targets::info_counters;

/// Those of `counters` that have a URL, by name, once two readings in a row are equal; unavailable
/// ones are left out.
pub fn read_settled(counters: &[Counter]) -> BTreeMap<String, f64> {
    let urls: BTreeSet<&str> = counters.iter().filter_map(|own| own.url.as_deref()).collect();
    let mut last = BTreeMap::new();
    if urls.is_empty() {
        return last;
    }
    let agent = ureq::Agent::config_builder()
        .timeout_global(Some(ANSWER_WITHIN))
        // The server is local, so no proxy is used.
        .proxy(None)
        .build()
        .new_agent();
    let started = Instant::now();
    loop {
        let shown = urls.iter().filter_map(|url| Some((*url, look(&agent, url)?)));
        let shown: BTreeMap<&str, String> = shown.collect();
        let values: BTreeMap<String, f64> = counters
            .iter()
            .filter_map(|own| {
                let text = shown.get(own.url.as_deref()?)?;
                Some((own.name.clone(), own.value_in(text)?))
            })
            .collect();
        if values == last || started.elapsed() > GIVE_UP_AFTER || patience::is_over() {
            return values;
        }
        last = values;
        std::thread::sleep(LOOK_EVERY);
    }
}

/// Reads a URL once, without redirects. `None` if it does not answer in time, or over HTTP not with
/// 200.
pub fn look_once(url: &str) -> Option<String> {
    if let Some(authority) = info_counters::authority(url) {
        return info_counters::look(authority, LOOK_WITHIN);
    }
    let agent = ureq::Agent::config_builder()
        .timeout_global(Some(LOOK_WITHIN))
        .max_redirects(0)
        .proxy(None)
        .build()
        .new_agent();
    let mut answer = agent.get(url).call().ok().filter(|answer| answer.status() == 200)?;
    answer.body_mut().with_config().limit(PAGE_BYTES_MAX).read_to_string().ok()
}

fn look(agent: &ureq::Agent, url: &str) -> Option<String> {
    if let Some(authority) = info_counters::authority(url) {
        return info_counters::look(authority, ANSWER_WITHIN);
    }
    agent.get(url).call().ok()?.body_mut().read_to_string().ok()
}

/// A status page is short and comes at once.
const LOOK_WITHIN: Duration = Duration::from_secs(1);
const PAGE_BYTES_MAX: u64 = 64 * 1024;

const ANSWER_WITHIN: Duration = Duration::from_secs(5);

/// Longer than RabbitMQ and NATS take from an event to its counters, which both update together.
const LOOK_EVERY: Duration = Duration::from_millis(200);

const GIVE_UP_AFTER: Duration = Duration::from_secs(6);
