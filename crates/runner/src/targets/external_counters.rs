//! Counters of external servers, if they offer any: `$SYS` of a broker, the status page of an HTTP
//! server, INFO of Redis. They count all clients of the server, so they are attributed to the trial
//! only while no other client used it.

use std::collections::BTreeMap;
use std::net::TcpStream;
use std::time::{Duration, Instant};
use weigh_model::numbers::exact;
use weigh_protocols::urls;

use weigh_engine::outcome::Outcome;
use weigh_model::counters::SysChoice;
use weigh_model::ledger::Cause;
use weigh_model::protocol::CountersBy;
use weigh_model::trial::{Point, Settings};
use weigh_model::{Endpoint, Ledger, Trial, quic};
use weigh_testbed::catalogue::Catalogue;
use weigh_testbed::counter::{Counter, CounterKind};
use weigh_testbed::target::Target;

use crate::case::lanes::Lane;
use crate::exit::{Exit, Stop};
use crate::targets::counter_watch::{Expected, Watch};
use crate::targets::counters;
use crate::targets::http_counters;
use crate::targets::info_counters;
use crate::targets::layers;
use crate::targets::tls::CertificateFiles;

/// Counters of all external servers of a run.
#[derive(Default)]
pub struct ExternalCounters {
    /// Absent if counters are not asked for: nothing is read and nothing is shown.
    choice: Option<SysChoice>,
    servers: BTreeMap<String, Server>,
}

/// Trials after which the counters of a real server are awaited.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Await {
    /// After every trial.
    #[default]
    Always,
    /// After trials that lost a larger share of their messages.
    LossAbove(f64),
}

impl Await {
    /// True if they are awaited after a trial with this ledger.
    pub fn is_met(self, ledger: &Ledger) -> bool {
        let lost = ledger.lost.unwrap_or(0) as f64;
        match self {
            Await::Always => true,
            Await::LossAbove(share) => lost / ledger.sent.max(1) as f64 > share,
        }
    }
}

/// An external server.
struct Server {
    offers: Offers,
    /// Its counters when they were last read.
    baseline: BTreeMap<String, f64>,
    /// Messages sent to it since.
    since: Since,
    /// Total time that its reports were awaited.
    waited: Duration,
    /// The load after whose trial they were last awaited.
    awaited: Option<Point>,
    /// True once the reason for their absence was printed.
    has_said: bool,
}

/// Place at which a server publishes its counters.
enum Offers {
    /// On these topics, like the server of this name.
    Topics(String, Vec<Counter>),
    /// On this page, like the server of this name.
    Page(String, String, Vec<Counter>),
    /// Nowhere, with the reason in words.
    Nothing(&'static str),
}

/// This run's messages since counters were read.
#[derive(Clone, Copy, Default)]
struct Since {
    sent: u64,
    got: u64,
    /// Lost without a known cause.
    unknown: u64,
}

/// Counters of a trial.
#[derive(Default)]
pub struct CountersRead {
    /// Counts over the trial.
    pub counters: BTreeMap<String, f64>,
    /// The source of the counters and the result, for the scene of the trial.
    pub words: String,
}

/// Context of a request for counters.
pub struct Asking<'a> {
    /// The measured lane.
    pub lane: &'a Lane,
    /// Its trial, whose endpoint is known.
    pub trial: &'a Trial,
    /// The certificates of the run.
    pub vault: &'a CertificateFiles,
    /// Shows the user why the run waits.
    pub say: &'a dyn Fn(&str),
}

impl ExternalCounters {
    /// Starts without any counters.
    pub fn new(choice: SysChoice) -> ExternalCounters {
        ExternalCounters { choice: Some(choice), servers: BTreeMap::new() }
    }

    /// Finds the counters that the server offers, once, before the first connection of its first
    /// trial.
    ///
    /// # Errors
    /// A server without counters although the plan demands them.
    pub fn before(&mut self, asking: &Asking<'_>, catalogue: &Catalogue) -> Result<(), Stop> {
        let Some(key) = key(asking) else { return Ok(()) };
        let asks = self.choice.is_some_and(|choice| choice != SysChoice::Off);
        if !asks || self.servers.contains_key(&key) {
            return Ok(());
        }
        let (offers, baseline) = match asking.lane.protocol.properties().counters {
            CountersBy::Topics => topics(asking, catalogue),
            CountersBy::Page => page(asking, catalogue),
            CountersBy::Info => info(asking, catalogue),
            CountersBy::Nothing => (Offers::Nothing("its protocol has none"), BTreeMap::new()),
        };
        let found = match &offers {
            Offers::Topics(like, _) => format!("$SYS counters, as {like} has them"),
            Offers::Page(like, url, _) => format!("{url}, as {like} has it"),
            Offers::Nothing(_) if self.choice == Some(SysChoice::On) => {
                return Err(Stop::new(
                    Exit::Target,
                    format!(
                        "--sys on: {key} offers no counters ($SYS of a broker, {}): leave --sys \
                         out, or let the server show them on the port of the URL",
                        PAGES.join(", ")
                    ),
                ));
            }
            // Said once messages are lost: only then would counters help.
            Offers::Nothing(_) => String::new(),
        };
        if !found.is_empty() {
            (asking.say)(&format!("counters of {key}: {found}; they count all of its clients"));
        }
        let (since, waited) = (Since::default(), Duration::ZERO);
        let server = Server { offers, baseline, since, waited, awaited: None, has_said: false };
        self.servers.insert(key, server);
        Ok(())
    }

    /// The server's counts over the trial, after the trial has settled.
    pub fn after(&mut self, asking: &Asking<'_>, outcome: &Outcome, awaits: Await) -> CountersRead {
        let said =
            |words: &str| CountersRead { words: words.to_owned(), ..CountersRead::default() };
        let Some(choice) = self.choice else { return CountersRead::default() };
        if choice == SysChoice::Off {
            return said("not asked (--sys off)");
        }
        let key = key(asking).unwrap_or_default();
        let Some(server) = self.servers.get_mut(&key) else { return said("not asked") };
        let is_always = choice == SysChoice::On;
        let now = Since::of(outcome);
        match &server.offers {
            Offers::Nothing(why) => {
                let has_lost = outcome.ledger.lost.is_some_and(|lost| lost > 0);
                if has_lost && !std::mem::replace(&mut server.has_said, true) {
                    let text = match *why == NONE {
                        true => format!("{key} offers no counters that could explain losses"),
                        false => format!("counters of {key}: {why}"),
                    };
                    (asking.say)(&text);
                }
                said(why)
            }
            Offers::Page(..) => server.look_at_page(now),
            Offers::Topics(..) if is_always || server.is_worth(asking, outcome, awaits) => {
                server.listen(asking, now)
            }
            Offers::Topics(like, _) => {
                let words = match outcome.ledger.lost {
                    Some(0) => "not awaited, nothing was lost",
                    _ => "not awaited in this trial",
                };
                let words = format!("$SYS as {like} has it: {words}");
                server.since = server.since + now;
                CountersRead { words, ..CountersRead::default() }
            }
        }
    }
}

impl Server {
    /// True if a report is worth the wait: messages were lost. A search waits once for each load,
    /// and for at most a part of its usual budget.
    fn is_worth(&self, asking: &Asking<'_>, outcome: &Outcome, awaits: Await) -> bool {
        let is_new = self.awaited.as_ref() != Some(&asking.trial.point);
        match awaits {
            Await::Always => outcome.ledger.lost.is_some_and(|lost| lost > 0),
            Await::LossAbove(_) => {
                awaits.is_met(&outcome.ledger) && is_new && self.waited < SEARCH_WAITS_MAX
            }
        }
    }

    /// Counters of topics, from a report that includes the whole trial or came after it.
    fn listen(&mut self, asking: &Asking<'_>, now: Since) -> CountersRead {
        let Offers::Topics(like, own) = &self.offers else { return CountersRead::default() };
        let all = self.since + now;
        let base = |name: &str| self.baseline.get(name).copied().unwrap_or(0.0);
        let expected = Expected {
            received: base("received") + all.sent as f64,
            forwarded: base("forwarded") + all.got as f64,
        };
        let topic = |own: &Counter| Some((own.topic.clone()?, own.name.clone()));
        let topics = own.iter().filter_map(topic).collect();
        let mut watch = Watch::new(topics, Some(expected), REPORTS);
        let awaited = format!("waiting for the next $SYS report of {}", asking.lane.against.name());
        let began = Instant::now();
        let heard = listen(asking, &mut watch, (GIVE_UP_AFTER, &|| (asking.say)(&awaited)));
        self.waited += began.elapsed();
        self.awaited = Some(asking.trial.point.clone());
        if heard.is_none() || !watch.has_reported() {
            let words = format!("$SYS as {like} has it: no report came in time");
            self.since = all;
            return CountersRead { words, ..CountersRead::default() };
        }
        let told = attributed(own, (&self.baseline, &watch.values), (self.since, now), "$SYS");
        let words = format!("{} (as {like} has it)", told.words);
        (self.baseline, self.since) = (watch.values, Since::default());
        CountersRead { words, ..told }
    }

    /// Counters of a page, which are up to date.
    fn look_at_page(&mut self, now: Since) -> CountersRead {
        let Offers::Page(like, url, own) = &self.offers else { return CountersRead::default() };
        let Some(values) = http_counters::look_once(url).map(|text| values_in(own, &text)) else {
            return CountersRead {
                words: format!("{url}: did not answer"),
                ..CountersRead::default()
            };
        };
        // Reading them is a request and a connection too.
        let mut baseline = self.baseline.clone();
        let counted: &[&str] = match info_counters::authority(url) {
            Some(_) => &["commands"],
            None => &["received", "accepted", "handled"],
        };
        for &name in counted {
            baseline.entry(name.to_owned()).and_modify(|value| *value += 1.0);
        }
        let told = attributed(own, (&baseline, &values), (self.since, now), url);
        let words = format!("{} (as {like} has it)", told.words);
        (self.baseline, self.since) = (values, Since::default());
        CountersRead { words, ..told }
    }
}

/// Attributes counters to the trial: their differences less those of earlier trials, unless other
/// clients used the server too.
fn attributed(
    own: &[Counter],
    (before, after): (&BTreeMap<String, f64>, &BTreeMap<String, f64>),
    (earlier, now): (Since, Since),
    of: &str,
) -> CountersRead {
    let difference = |name: &str| Some(after.get(name)? - before.get(name)?);
    let ours = (earlier.sent + now.sent) as f64;
    if let Some(received) = difference("received").filter(|received| *received > ours) {
        return CountersRead {
            words: format!(
                "{of} counts {} received messages, of which {} are of this run: other clients used \
                 the server, so nothing is attributed",
                exact(received),
                exact(ours)
            ),
            ..CountersRead::default()
        };
    }
    let mut counters = BTreeMap::new();
    for counter in own {
        let name = counter.name.as_str();
        let value = match (counter.kind, name) {
            (CounterKind::Gauge, _) => after.get(name).copied(),
            // Losses of earlier trials are subtracted as far as possible.
            (_, "dropped") => difference(name).map(|own| (own - earlier.unknown as f64).max(0.0)),
            (_, "received") => difference(name).map(|own| (own - earlier.sent as f64).max(0.0)),
            _ if earlier.sent > 0 => None,
            _ => difference(name),
        };
        counters.extend(value.map(|value| (counter.name.clone(), value)));
    }
    CountersRead { counters, words: format!("{of}, which counts all clients") }
}

impl Since {
    fn of(outcome: &Outcome) -> Since {
        let producers = outcome.shards.accounts.producers.iter();
        Since {
            sent: producers.map(|one| one.sent + one.warmup_sent).sum(),
            got: outcome.ledger.received,
            unknown: outcome.ledger.causes.get(&Cause::Unknown).copied().unwrap_or(0),
        }
    }
}

impl std::ops::Add for Since {
    type Output = Since;
    fn add(self, other: Since) -> Since {
        Since {
            sent: self.sent + other.sent,
            got: self.got + other.got,
            unknown: self.unknown + other.unknown,
        }
    }
}

/// Counters that a broker publishes in `$SYS`, by the topics of known servers.
fn topics(asking: &Asking<'_>, catalogue: &Catalogue) -> (Offers, BTreeMap<String, f64>) {
    if quic::is_on(asking.lane.protocol, &asking.lane.settings) {
        return (Offers::Nothing("not read over QUIC"), BTreeMap::new());
    }
    let known =
        || catalogue.targets().iter().filter(|target| speaks(target, asking.lane.protocol.name()));
    let counters = known().flat_map(|target| &target.counters);
    let all = counters.filter_map(|own| own.topic.clone().map(|topic| (topic.clone(), topic)));
    let mut watch = Watch::new(all.collect(), None, 1);
    if listen(asking, &mut watch, (LOOK_WITHIN, &|| {})).is_none() {
        let address = asking.trial.endpoint.as_ref().and_then(|endpoint| endpoint.address);
        let listens =
            address.is_some_and(|own| TcpStream::connect_timeout(&own, LOOK_WITHIN).is_ok());
        let why = if listens { DENIED } else { "the server does not accept connections" };
        return (Offers::Nothing(why), BTreeMap::new());
    }
    let shows = |own: &&Counter| own.topic.as_ref().is_some_and(|t| watch.values.contains_key(t));
    let count = |target: &&Target| target.counters.iter().filter(shows).count();
    match known().rev().max_by_key(count).filter(|target| count(target) > 0) {
        Some(target) => {
            let own: Vec<Counter> = target.counters.iter().filter(shows).cloned().collect();
            let value = |own: &Counter| watch.values.get(own.topic.as_ref()?).copied();
            let baseline = own.iter().filter_map(|own| Some((own.name.clone(), value(own)?)));
            (Offers::Topics(target.name.clone(), own.clone()), baseline.collect())
        }
        None => (Offers::Nothing(NONE), BTreeMap::new()),
    }
}

/// The status page of an HTTP server, only on the host and port of the URL.
fn page(asking: &Asking<'_>, catalogue: &Catalogue) -> (Offers, BTreeMap<String, f64>) {
    let nothing = |why| (Offers::Nothing(why), BTreeMap::new());
    let Some(endpoint) = &asking.trial.endpoint else { return nothing("not asked") };
    if urls::is_secure(endpoint) {
        return nothing("not read with TLS");
    }
    for target in
        catalogue.targets().iter().filter(|target| speaks(target, asking.lane.protocol.name()))
    {
        let own: Vec<Counter> =
            target.counters.iter().filter(|own| !own.paths.is_empty()).cloned().collect();
        let Some(first) = own.first() else { continue };
        for path in &first.paths {
            let at = Endpoint { path: path.clone(), credentials: None, ..endpoint.clone() };
            let url = at.to_string();
            let began = Instant::now();
            let Some(text) = http_counters::look_once(&url) else {
                // A server that does not answer one path does not answer the others.
                if began.elapsed() >= MUTE_AFTER {
                    return nothing("the server did not answer");
                }
                continue;
            };
            let values = values_in(&own, &text);
            if values.len() == own.len() {
                return (Offers::Page(target.name.clone(), url, own), values);
            }
        }
    }
    nothing(NONE)
}

/// The counters of INFO, on the address of the URL.
fn info(asking: &Asking<'_>, catalogue: &Catalogue) -> (Offers, BTreeMap<String, f64>) {
    let nothing = |why| (Offers::Nothing(why), BTreeMap::new());
    let Some(endpoint) = &asking.trial.endpoint else { return nothing("not asked") };
    let Some(address) = endpoint.address else { return nothing("not asked") };
    if urls::is_secure(endpoint) {
        return nothing("not read with TLS");
    }
    if endpoint.credentials.is_some() {
        return nothing("not read with a password");
    }
    let url = format!("redis://{address}");
    let Some(text) = http_counters::look_once(&url) else { return nothing(NONE) };
    let name = asking.lane.protocol.name();
    for target in catalogue.targets().iter().filter(|target| speaks(target, name)) {
        let is_of_info = |own: &&Counter| !own.info.is_empty();
        let own: Vec<Counter> = target.counters.iter().filter(is_of_info).cloned().collect();
        if !own.is_empty() {
            let values = values_in(&own, &text);
            return (Offers::Page(target.name.clone(), url, own), values);
        }
    }
    nothing(NONE)
}

fn speaks(target: &Target, protocol: &str) -> bool {
    target.speaks.iter().any(|own| own.protocol == protocol)
}

fn values_in(own: &[Counter], text: &str) -> BTreeMap<String, f64> {
    own.iter().filter_map(|own| Some((own.name.clone(), own.value_in(text)?))).collect()
}

/// Reads `$SYS` as a separate client with the lane's credentials and layers.
fn listen(asking: &Asking<'_>, watch: &mut Watch, within: (Duration, &dyn Fn())) -> Option<()> {
    let (lane, endpoint) = (asking.lane, asking.trial.endpoint.as_ref()?);
    let id = format!("weigh-counters-{}", std::process::id());
    let own = [("filter", "$SYS/broker/#"), ("qos", "0"), ("client_id", &*id)];
    let is_kept = |key: &str| key == "version" || key.contains("tls") || key.contains("websocket");
    let given = lane.given.iter().map(|(key, value)| (key.as_str(), value.as_str()));
    let given = given.filter(|(key, _)| is_kept(key)).chain(own);
    let name = lane.protocol.name();
    let settings = Settings::new(name, lane.protocol.settings(), given).ok()?;
    let trial = counters::reader(name, endpoint, &asking.trial.load, settings.clone());
    let lane = Lane { settings, ..lane.clone() };
    let dial = lane.protocol.dial(&trial).ok()?;
    let (dial, _) = layers::dial(&lane, dial, (endpoint, 0), asking.vault).ok()?;
    counters::hear(&dial, endpoint.address?, watch, within)
}

/// Identifies a server by its address and scheme.
fn key(asking: &Asking<'_>) -> Option<String> {
    let endpoint = asking.trial.endpoint.as_ref()?;
    let at = Endpoint { path: String::new(), credentials: None, ..endpoint.clone() };
    Some(at.to_string())
}

/// The words for a server that accepts connections, but does not let this client read counters.
const DENIED: &str = "the server did not let this client read them ($SYS)";

/// The words for a server without counters.
const NONE: &str = "the server offers none";

/// Paths where HTTP servers show them.
const PAGES: [&str; 3] = ["/stub_status", "/nginx_status", "/basic_status"];

/// Time limit for a broker to send its retained values.
const LOOK_WITHIN: Duration = Duration::from_millis(1_500);

/// A server that has not answered for this long is not asked again.
const MUTE_AFTER: Duration = Duration::from_millis(900);

/// Retained values, and the first report that started after the trial.
const REPORTS: u32 = 2;

/// Longer than Mosquitto's own interval of ten seconds, which it keeps in eleven.
const GIVE_UP_AFTER: Duration = Duration::from_secs(13);

/// Total time that a search waits for reports of one server.
const SEARCH_WAITS_MAX: Duration = Duration::from_secs(15);

#[cfg(test)]
mod tests {
    use super::*;

    fn counter(name: &str, kind: CounterKind) -> Counter {
        Counter { name: name.to_owned(), kind, ..Counter::default() }
    }

    fn values(received: f64, dropped: f64) -> BTreeMap<String, f64> {
        [("received", received), ("dropped", dropped), ("clients", 3.0)]
            .map(|(name, value)| (name.to_owned(), value))
            .into()
    }

    fn told(received: f64, dropped: f64, earlier: Since) -> CountersRead {
        let own = [
            counter("received", CounterKind::Total),
            counter("dropped", CounterKind::Total),
            counter("clients", CounterKind::Gauge),
        ];
        let now = Since { sent: 100, got: 60, unknown: 40 };
        let both = (&values(1_000.0, 7.0), &values(1_000.0 + received, 7.0 + dropped));
        attributed(&own, both, (earlier, now), "$SYS")
    }

    #[test]
    fn only_what_came_during_the_trial_is_the_trials() {
        let told = told(100.0, 40.0, Since::default());
        assert_eq!(told.counters["dropped"], 40.0);
        assert_eq!((told.counters["received"], told.counters["clients"]), (100.0, 3.0));
        assert!(told.words.contains("counts all clients"), "{}", told.words);
    }

    /// Losses of earlier trials, whose counters were not awaited, do not count for this one.
    #[test]
    fn drops_of_earlier_trials_are_taken_off() {
        let earlier = Since { sent: 200, got: 190, unknown: 10 };
        assert_eq!(told(300.0, 50.0, earlier).counters["dropped"], 40.0);
        assert_eq!(told(300.0, 5.0, earlier).counters["dropped"], 0.0);
    }

    #[test]
    fn what_others_did_there_is_not_attributed() {
        let told = told(101.0, 40.0, Since::default());
        assert!(told.counters.is_empty());
        assert!(told.words.contains("other clients used the server"), "{}", told.words);
    }
}
