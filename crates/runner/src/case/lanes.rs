//! Resolves the words of a command line (protocols, real servers, URLs) to lanes with their
//! settings.

use std::collections::BTreeMap;
use std::net::IpAddr;

use serde_json::json;
use weigh_model::endpoint::Credentials;
use weigh_model::protocol::Invalid;
use weigh_model::trial::{Point, Settings};
use weigh_model::{Durability, Endpoint, Load, Pattern, Protocol, quic, tls, websocket};
use weigh_plan::Case;
use weigh_plan::case::{Stages, setting_value, word};
use weigh_plan::keys::{self, PIPELINE as PIPELINE_KEYS};
use weigh_plan::world::PIPELINE;
use weigh_protocols::{self as registry, urls};
use weigh_testbed::catalogue::Catalogue;
use weigh_testbed::target::Target;

use crate::case::pipeline::{self, Entry, Pipeline, SPOKEN};
use crate::case::server_settings::{
    BROKER_PASSWORD, OF_SERVERS, SERVER_PASSWORD, SERVER_TOKEN, is_secret,
};
use crate::case::url_layers;
use crate::exit::Stop;
use crate::watcher::Watcher;

/// The target of a lane.
///
/// # Examples
///
/// ```
/// use weigh_runner::case::secrets::{Secrets, against};
/// use weigh_testbed::catalogue::Catalogue;
/// # use weigh_runner::exit::Stop;
///
/// let catalogue = Catalogue::load(None).map_err(Stop::usage)?;
/// let target = against("mqtt://localhost:1883", &catalogue, &Secrets::default())?;
/// assert_eq!(target.name(), "mqtt://localhost:1883");
/// assert!(target.is_on_this_machine());
/// # Ok::<(), Stop>(())
/// ```
#[derive(Clone, Debug)]
pub enum Against {
    /// A built-in reference server.
    Reference,
    /// A real server that Weighbridge starts: `mosquitto`, `mosquitto@no-limits`.
    Managed(String),
    /// The stages of the pipeline, started by Weighbridge.
    Pipeline(Box<Pipeline>),
    /// A server given by URL, which another process started.
    Foreign(Endpoint),
}

impl Against {
    /// Name in results: `reference`, the name of the real server, or the URL.
    pub fn name(&self) -> String {
        match self {
            Against::Reference => "reference".to_owned(),
            Against::Managed(name) => name.clone(),
            Against::Pipeline(_) => PIPELINE.to_owned(),
            Against::Foreign(endpoint) => endpoint.to_string(),
        }
    }
}

impl Against {
    /// True if only loopback is between target and generator.
    pub fn is_on_this_machine(&self) -> bool {
        let Against::Foreign(endpoint) = self else { return true };
        let host = endpoint.host.trim_matches(['[', ']']);
        let is_loopback = |address: IpAddr| address.is_loopback();
        host == "localhost" || host.parse().is_ok_and(is_loopback)
    }

    /// Checks that the target supports this value of a key of the protocol, by its file.
    ///
    /// # Errors
    /// The key, and the values that the target supports.
    pub fn check_can(
        &self,
        catalogue: &Catalogue,
        protocol: &dyn Protocol,
        key: &str,
        value: &str,
    ) -> Result<(), Invalid> {
        let Against::Managed(word) = self else { return Ok(()) };
        let Ok(choice) = catalogue.choose(word) else { return Ok(()) };
        if key == quic::ON.key
            && value == "true"
            && !choice.target.names(choice.profile, protocol.name(), key, value)
        {
            let problem = format!("{word} is not started with QUIC");
            let fix = "leave it out, or type the mqtt-quic:// URL of a server that has it";
            return Err(Invalid::new(format!("{}.{key}", protocol.name()), problem, fix));
        }
        choice.target.can(choice.profile, protocol.name(), key, value).map_err(|can| {
            let key = format!("{}.{key}", protocol.name());
            let problem = format!("{} cannot do {value}", choice.target.title);
            Invalid::new(key, problem, format!("give {can}, or leave {word} out"))
        })
    }
}

/// Protocol, target and settings of a case, without its load.
///
/// # Examples
///
/// ```
/// use std::collections::BTreeMap;
/// use weigh_runner::case::lanes::{Against, Lane};
///
/// let given = BTreeMap::from([("qos".to_owned(), "1".to_owned())]);
/// let lane = Lane::new(weigh_protocols::find("mqtt")?, Against::Reference, given)?;
/// assert_eq!(lane.settings.integer("qos"), 1);
/// assert!(!lane.is_foreign());
/// # Ok::<(), weigh_model::protocol::Invalid>(())
/// ```
#[derive(Clone)]
pub struct Lane {
    /// The protocol.
    pub protocol: &'static dyn Protocol,
    /// The target.
    pub against: Against,
    /// Settings that differ from the defaults.
    pub given: BTreeMap<String, String>,
    /// All settings.
    pub settings: Settings,
    /// Durability that is set for a reference server or stated for a URL.
    pub durability: Option<Durability>,
}

/// Plan keys and values from `--set` and similar flags.
///
/// # Examples
///
/// ```
/// use weigh_runner::case::lanes::Given;
///
/// assert!(Given::parse(&["mqtt.version=5".to_owned()]).is_ok());
/// assert!(Given::parse(&["version=5".to_owned()]).is_err());
/// ```
#[derive(Clone, Debug, Default)]
pub struct Given {
    /// Keys of protocols.
    settings: Vec<(String, String)>,
    /// Keys of the pipeline.
    stages: Point,
}

impl Given {
    /// Parses `protocol.key=value`, `target.overload=...` and the keys of the pipeline.
    ///
    /// # Errors
    /// A text without `=`, an unknown key, or an invalid value of a pipeline's key.
    pub fn parse(sets: &[String]) -> Result<Given, Stop> {
        let mut given = Given::default();
        for text in sets {
            let (key, value) = text.split_once('=').ok_or_else(|| {
                Stop::usage(format!("--set {text}: type --set KEY=VALUE, such as mqtt.version=5"))
            })?;
            if PIPELINE_KEYS.contains(&key) {
                given.stages.insert(key.to_owned(), stage_value(key, value)?);
                continue;
            }
            let key = if key == "target.overload" { "mqtt.overload" } else { key };
            let (name, own) = key.split_once('.').ok_or_else(|| unknown_key(key))?;
            let protocol = registry::find(name).map_err(|_| unknown_key(key))?;
            if !protocol.has_setting(own) {
                let given = [(own, value)];
                Settings::new(protocol.name(), protocol.settings(), given).map_err(|wrong| {
                    Stop::usage(format!("--set {text}: {}\nhelp: {}", wrong.problem, wrong.fix))
                })?;
            }
            given.settings.push((key.to_owned(), value.to_owned()));
        }
        Ok(given)
    }

    /// Sets a key, unless it was given.
    pub fn put(&mut self, key: &str, value: &str) {
        if self.settings.iter().all(|(known, _)| known != key) {
            self.settings.push((key.to_owned(), value.to_owned()));
        }
    }

    /// Returns the first key of a protocol other than `protocol`.
    pub fn others(&self, protocol: &dyn Protocol) -> Option<&str> {
        let own = |key: &str| {
            let name = key.split_once('.').map_or("", |(name, _)| name);
            name == protocol.name() || protocol.aliases().contains(&name)
        };
        self.settings.iter().map(|(key, _)| key.as_str()).find(|key| !own(key))
    }

    /// Returns the first key that belongs to none of these lanes.
    pub fn unused<'l>(&self, lanes: impl Iterator<Item = &'l Lane>) -> Option<&str> {
        let lanes: Vec<&Lane> = lanes.collect();
        let protocols: Vec<&dyn Protocol> = lanes.iter().map(|lane| lane.protocol).collect();
        let is_heeded = |key: &String| {
            let entry = |lane: &&Lane| Entry::of(lane.protocol.name());
            let staged = lanes.iter().copied().filter(|lane| lane.stores());
            staged.filter_map(|lane| entry(&lane).ok()).any(|entry| entry.uses(key))
        };
        if let Some(key) = self.stages.keys().find(|key| !is_heeded(key)) {
            return Some(key);
        }
        let is_used = |key: &str| {
            let name = key.split_once('.').map_or("", |(name, _)| name);
            let is_own = |own: &&dyn Protocol| name == own.name() || own.aliases().contains(&name);
            protocols.iter().any(is_own)
        };
        self.settings.iter().map(|(key, _)| key.as_str()).find(|key| !is_used(key))
    }

    /// Returns the keys of `protocol`, without its name, and their values.
    pub fn of<'a>(&'a self, protocol: &dyn Protocol) -> Vec<(&'a str, &'a str)> {
        self.settings
            .iter()
            .filter_map(|(key, value)| {
                let (name, key) = key.split_once('.')?;
                let is_own = name == protocol.name() || protocol.aliases().contains(&name);
                is_own.then_some((key, value.as_str()))
            })
            .collect()
    }
}

fn unknown_key(key: &str) -> Stop {
    Stop::usage(format!(
        "--set {key}: there is no such key\nhelp: type a key that `weigh targets list --settings` \
         shows, which starts with {}; or one of the pipeline: {}",
        protocols().join(", "),
        PIPELINE_KEYS.join(", ")
    ))
}

/// Parses the value of a key of the pipeline as in a plan.
fn stage_value(key: &str, text: &str) -> Result<serde_json::Value, Stop> {
    let language = keys::Keys::new(registry::PROTOCOLS);
    let wrong = |said: String| Stop::usage(format!("--set {key}: {said}"));
    let known = language.get(key).ok_or_else(|| unknown_key(key))?;
    let read = known.kind.read_word(text);
    read.map(|value| word(&value)).map_err(|said| wrong(said.to_string()))
}

fn protocols() -> Vec<&'static str> {
    registry::PROTOCOLS.iter().map(|own| own.name()).collect()
}

/// Resolves words to lanes; without words, the default protocols.
///
/// # Errors
/// An unknown word, and settings that a lane does not accept.
pub fn lanes(
    words: &[String],
    catalogue: &Catalogue,
    given: &Given,
    watcher: &dyn Watcher,
) -> Result<Vec<Lane>, Stop> {
    let mut lanes = Vec::new();
    let words = if words.is_empty() { default_words(catalogue) } else { words.to_vec() };
    for word in &words {
        if let Some(entries) = entries(word)? {
            for (protocol, entry) in entries {
                lanes.push(staged(protocol, entry, catalogue, given)?);
            }
            continue;
        }
        let (protocol, against) = resolve(word, catalogue)?;
        let own: Vec<(&str, &str)> = given.of(protocol);
        let uses = uses(&against.name(), catalogue, protocol);
        let mut seen = false;
        for lane in protocol.lanes() {
            // Keys that were given leave out default lanes that contradict them.
            let contradicts = |(key, value): &(&str, &str)| {
                own.iter().any(|(asked, wanted)| asked == key && wanted != value)
            };
            if lane.iter().any(contradicts) {
                continue;
            }
            seen = true;
            // A lane that was asked for by name stays; the check of the target rejects it later.
            let was_asked = |key: &str| own.iter().any(|(asked, _)| *asked == key);
            let mut free = lane.iter().filter(|(key, _)| !was_asked(key));
            if let Some((key, value)) = free
                .find(|(key, value)| against.check_can(catalogue, protocol, key, value).is_err())
            {
                let key = format!("{}.{key}", protocol.name());
                watcher.say(&format!("{word} is left out: it does not support {key} = {value}"));
                continue;
            }
            let usual = [&uses[..], lane].concat();
            lanes.push(make(protocol, against.clone(), &usual, &own)?);
        }
        if !seen {
            lanes.push(make(protocol, against, &uses, &own)?);
        }
    }
    Ok(lanes)
}

/// Settings that a real server needs in place of the protocol's defaults, by its file.
pub fn uses<'c>(
    target: &str,
    catalogue: &'c Catalogue,
    protocol: &dyn Protocol,
) -> Vec<(&'static str, &'c str)> {
    let Ok(choice) = catalogue.choose(target) else { return Vec::new() };
    let known = |key: &str| {
        protocol.settings().iter().find(|known| known.key == key).map(|known| known.key)
    };
    let uses = choice.target.uses(choice.profile, protocol.name());
    uses.filter_map(|(key, value)| Some((known(key)?, value))).collect()
}

fn make(
    protocol: &'static dyn Protocol,
    against: Against,
    lane: &[(&str, &str)],
    own: &[(&str, &str)],
) -> Result<Lane, Stop> {
    let pairs = lane.iter().chain(own);
    let given = pairs.map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    Ok(Lane::new(protocol, against, given)?)
}

/// A protocol, and its entry into the pipeline.
type Entering = (&'static dyn Protocol, Entry);

/// Returns the entries that a word names: `pipeline` all, `pipeline@mqtt` one; `None` for other
/// words.
fn entries(word: &str) -> Result<Option<Vec<Entering>>, Stop> {
    let (name, entry) = match word.split_once('@') {
        Some((name, entry)) => (name, Some(entry)),
        None => (word, None),
    };
    if name != PIPELINE {
        return Ok(None);
    }
    pipeline::check_built(pipeline::IS_BUILT).map_err(|unbuilt| {
        Stop::usage(format!("{word}: {}\nhelp: {}", unbuilt.problem, unbuilt.fix))
    })?;
    let wanted: Vec<&str> = match entry {
        None => SPOKEN.iter().map(|(name, _)| *name).collect(),
        Some(entry) => vec![entry],
    };
    let entry = |name: &str| {
        let protocol = registry::find(name)?;
        Ok((protocol, Entry::of(protocol.name())?))
    };
    let found: Result<Vec<_>, Invalid> = wanted.into_iter().map(entry).collect();
    found.map(Some).map_err(|invalid| {
        let names: Vec<&str> = SPOKEN.iter().map(|(name, _)| *name).collect();
        let names = names.join(", pipeline@");
        Stop::usage(format!("{word}: {}; type pipeline@{names}", invalid.problem))
    })
}

/// Makes the lane that enters the pipeline there.
fn staged(
    protocol: &'static dyn Protocol,
    entry: Entry,
    catalogue: &Catalogue,
    given: &Given,
) -> Result<Lane, Stop> {
    // With several entries, a key of one need not apply to another.
    let mut keys = given.stages.clone();
    keys.retain(|key, _| entry.uses(key));
    let stages: Stages = serde_json::from_value(json!(keys))
        .map_err(|error| Stop::usage(format!("--set {}: {error}", PIPELINE_KEYS.join(", "))))?;
    let pipeline = Pipeline::of(protocol, &stages, catalogue).map_err(|invalid| {
        Stop::usage(format!("--set {}: {}\nhelp: {}", invalid.place, invalid.problem, invalid.fix))
    })?;
    let own = given.of(protocol);
    let is_asked = |key: &str| own.iter().any(|(asked, _)| *asked == key);
    let usual = entry.lane().iter().filter(|(key, _)| !is_asked(key)).copied();
    let usual: Vec<(&str, &str)> = usual.collect();
    make(protocol, Against::Pipeline(Box::new(pipeline)), &usual, &own)
}

/// Words that stand for none: the default protocols with their reference servers, and Mosquitto if
/// it is installed.
fn default_words(catalogue: &Catalogue) -> Vec<String> {
    let compared = registry::PROTOCOLS.iter().filter(|own| own.properties().is_compared);
    let words = compared.map(|own| own.name().to_owned());
    words.chain(mosquitto(catalogue)).collect()
}

/// Returns the word for Mosquitto, if it is installed.
pub fn mosquitto(catalogue: &Catalogue) -> Option<String> {
    let choice = catalogue.choose("mosquitto").ok()?;
    weigh_testbed::find::find(choice.target).map(|_| "mosquitto".to_owned())
}

/// Returns the reference brokers, and every installed target whose first protocol one of them
/// speaks; without protocols that are measured only by name.
pub fn brokers(catalogue: &Catalogue) -> Vec<String> {
    let is_meant = |own: &&&dyn Protocol| {
        let properties = own.properties();
        properties.is_brokered && !properties.is_only_by_name
    };
    let protocols = registry::PROTOCOLS.iter().filter(is_meant);
    let names: Vec<&str> = protocols.map(|own| own.name()).collect();
    let is_broker = |target: &&Target| {
        target.speaks.first().is_some_and(|speaks| names.contains(&&*speaks.protocol))
    };
    let targets = catalogue.targets().iter().filter(is_broker);
    let installed = targets.filter(|target| weigh_testbed::find::find(target).is_some());
    let installed = installed.map(|target| target.name.clone());
    names.iter().map(|name| (*name).to_owned()).chain(installed).collect()
}

fn resolve(word: &str, catalogue: &Catalogue) -> Result<(&'static dyn Protocol, Against), Stop> {
    if word.contains("://") {
        let (protocol, endpoint) = urls::read(word).map_err(Stop::usage)?;
        return Ok((protocol, Against::Foreign(endpoint)));
    }
    if catalogue.knows(word) {
        let choice = catalogue.choose(word).map_err(Stop::usage)?;
        let speaks = choice.target.speaks.first().map_or("", |speaks| &speaks.protocol);
        return Ok((registry::find(speaks)?, Against::Managed(word.to_owned())));
    }
    if let Some(said) = address_without_scheme(word) {
        return Err(Stop::usage(said));
    }
    let protocol = registry::find(word).map_err(|invalid| {
        let names: Vec<&str> =
            catalogue.targets().iter().map(|target| target.name.as_str()).collect();
        let of_protocols = protocols().into_iter();
        let meant = registry::nearest(word, of_protocols.chain(names.iter().copied()));
        let start = match meant {
            Some(name) => format!("did you mean {name}? Or a protocol: {}", registry::listed()),
            None => invalid.fix.clone(),
        };
        let names = names.join(", ");
        let fix = format!(
            "{start}; or a target: {names}, {PIPELINE}; or a URL: mqtt://HOST:PORT, \
             http://HOST:PORT/PATH"
        );
        Invalid { place: "protocol or target".to_owned(), fix, ..invalid }
    })?;
    Ok((protocol, Against::Reference))
}

/// Suggests URLs for a host without a scheme; `None` for a word that is not an address.
fn address_without_scheme(word: &str) -> Option<String> {
    if word.is_empty() {
        return Some(
            "the name of the protocol or target is empty: type mqtt, http or a URL".to_owned(),
        );
    }
    let host = word.split(['/', '?']).next().unwrap_or_default();
    let has_port = host.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
    let is_address = host.trim_matches(['[', ']']).parse::<IpAddr>().is_ok();
    if !has_port && !is_address && host != "localhost" {
        return None;
    }
    let port = if has_port { "" } else { ":PORT" };
    let (authority, path) = word.split_at(host.len());
    let urls = protocols().into_iter().filter_map(|name| {
        let protocol = registry::find(name).ok()?;
        let (scheme, has_path) = (protocol.scheme(), protocol.has_setting("path"));
        let (path, port) = if has_path { (path, "") } else { ("", port) };
        Some(format!("{scheme}://{authority}{port}{path}"))
    });
    let urls: Vec<String> = urls.collect();
    Some(format!("{word}: the protocol is missing: type one of {}", urls.join(", ")))
}

impl Lane {
    /// True if another process started its target.
    pub fn is_foreign(&self) -> bool {
        matches!(self.against, Against::Foreign(_))
    }

    /// Makes a lane from the settings that differ from the defaults.
    ///
    /// # Errors
    /// Settings that the protocol or the target does not accept.
    pub fn new(
        protocol: &'static dyn Protocol,
        against: Against,
        given: BTreeMap<String, String>,
    ) -> Result<Lane, Invalid> {
        let mut given = given;
        let url = match &against {
            Against::Foreign(endpoint) => Some(endpoint),
            _ => None,
        };
        url_layers::settle(protocol, url, &mut given)?;
        let usual = match &against {
            Against::Pipeline(_) => Entry::of(protocol.name())?.settings(),
            _ => &[],
        };
        let pairs = given.iter().map(|(key, value)| (key.as_str(), value.as_str()));
        let pairs = usual.iter().copied().chain(pairs);
        let settings = Settings::new(protocol.name(), protocol.settings(), pairs)?;
        if matches!(against, Against::Pipeline(_)) {
            for (key, is_on) in
                [("tls", tls::is_on(&settings)), (websocket::ON.key, websocket::is_on(&settings))]
            {
                let place = format!("{}.{key}", protocol.name());
                let fix = "leave it out for the pipeline";
                if is_on {
                    return Err(Invalid::new(place, "the stages do not use TLS", fix));
                }
            }
        }
        Ok(Lane { protocol, against, given, settings, durability: None })
    }

    /// Checks that the target supports all settings, by its file.
    ///
    /// # Errors
    /// The first key that it does not support, and the values that it does.
    pub fn check_can(&self, catalogue: &Catalogue) -> Result<(), Invalid> {
        self.protocol.settings().iter().map(|setting| setting.key).try_for_each(|key| {
            self.against.check_can(catalogue, self.protocol, key, self.settings.text(key))
        })
    }

    /// True if its target stores readings, and accepts nothing else.
    pub fn stores(&self) -> bool {
        matches!(self.against, Against::Pipeline(_))
    }

    /// Patterns that it supports; the first is the default.
    pub fn patterns(&self) -> &'static [Pattern] {
        match &self.against {
            Against::Pipeline(_) => {
                let entry = Entry::of(self.protocol.name());
                entry.map_or(self.protocol.patterns(), Entry::patterns)
            }
            _ => self.protocol.patterns(),
        }
    }

    /// Credentials for the target: those given with its URL, or those that the built-in server
    /// demands. A token is a user without a password.
    pub fn credentials(&self) -> Option<Credentials> {
        match &self.against {
            Against::Foreign(endpoint) => endpoint.credentials.clone(),
            Against::Managed(_) | Against::Pipeline(_) => None,
            Against::Reference => {
                let text = |key: &str| self.settings.text(key).to_owned();
                let (user, password) = (text("broker_user"), text(BROKER_PASSWORD));
                if !user.is_empty() {
                    return Some(Credentials { user, password });
                }
                let (user, password) = (text("server_user"), text(SERVER_PASSWORD));
                if !password.is_empty() {
                    return Some(Credentials { user, password });
                }
                let user = text(SERVER_TOKEN);
                (!user.is_empty()).then(|| Credentials { user, password: String::new() })
            }
        }
    }

    /// Returns the lane of an external server with these settings that listens at `endpoint`.
    pub fn found_at(&self, endpoint: &Endpoint) -> Lane {
        let endpoint = Endpoint { credentials: None, ..endpoint.clone() };
        let mut lane = Lane { against: Against::Foreign(endpoint), ..self.clone() };
        lane.given.retain(|key, _| !OF_SERVERS.contains(&key.as_str()));
        lane
    }

    /// Settings that differ from the defaults, without secrets.
    pub fn shown(&self) -> impl Iterator<Item = (&String, &String)> {
        self.given.iter().filter(|(key, value)| !is_secret(key, value))
    }

    /// Makes a case of a plan from the lane and `load`.
    pub fn with(&self, load: Load) -> Case {
        let known = self.protocol.settings();
        let setting = |key: &str| known.iter().find(|setting| setting.key == key);
        let settings = self.shown().filter_map(|(key, text)| {
            let whole = format!("{}.{key}", self.protocol.name());
            Some((whole, setting_value(setting(key)?, text)))
        });
        Case {
            words: settings.collect(),
            stages: match &self.against {
                Against::Pipeline(pipeline) => pipeline.given.clone(),
                _ => Stages::default(),
            },
            ..Case::new(self.protocol.name(), self.against.name(), load)
        }
    }
}
