//! From the words of a command line to the points of a matrix: a protocol, a real server, or a
//! URL, each with its settings.

use std::collections::BTreeMap;

use weigh_model::endpoint::Credentials;
use weigh_model::protocol::Invalid;
use weigh_model::trial::Settings;
use weigh_model::{Endpoint, Load, Protocol};
use weigh_plan::matrix::{self, Decided};
use weigh_protocols as registry;
use weigh_stage::catalogue::Catalogue;

use crate::exit::Stop;

/// What a lane is weighed against.
#[derive(Clone, Debug)]
pub enum Against {
    /// The reference server that Weighbridge carries.
    Reference,
    /// A real server that we start: `mosquitto`, `mosquitto@no-limits`.
    Managed(String),
    /// A server that somebody else runs.
    Foreign(Endpoint),
}

impl Against {
    /// The word of the point: `reference`, the managed name, or the URL.
    pub fn name(&self) -> String {
        match self {
            Against::Reference => "reference".to_owned(),
            Against::Managed(name) => name.clone(),
            Against::Foreign(endpoint) => endpoint.to_string(),
        }
    }
}

/// One point of the matrix before its load is decided.
#[derive(Clone)]
pub struct Lane {
    /// The protocol.
    pub protocol: &'static dyn Protocol,
    /// What it is weighed against.
    pub against: Against,
    /// The settings in which it differs from the defaults.
    pub given: BTreeMap<String, String>,
    /// The complete settings.
    pub settings: Settings,
}

/// `--set` and its friends: plan keys and their values.
#[derive(Clone, Debug, Default)]
pub struct Given(pub Vec<(String, String)>);

impl Given {
    /// Takes `protocol.key=value` and `target.overload=...`.
    pub fn parse(sets: &[String]) -> Result<Given, Stop> {
        let mut given = Vec::new();
        for text in sets {
            let (key, value) = text.split_once('=').ok_or_else(|| {
                Stop::usage(format!("--set {text}: type --set KEY=VALUE, such as mqtt.version=5"))
            })?;
            let key = if key == "target.overload" { "mqtt.overload" } else { key };
            let protocol = key.split_once('.').map(|(protocol, _)| protocol);
            match protocol {
                Some(name) => registry::find(name).map(|_| ()).map_err(|_| unknown_key(key))?,
                None => return Err(unknown_key(key)),
            }
            given.push((key.to_owned(), value.to_owned()));
        }
        Ok(Given(given))
    }

    /// The first key that is not of `protocol`.
    pub fn others(&self, protocol: &dyn Protocol) -> Option<&str> {
        let own = |key: &str| {
            let name = key.split_once('.').map_or("", |(name, _)| name);
            name == protocol.name() || protocol.aliases().contains(&name)
        };
        self.0.iter().map(|(key, _)| key.as_str()).find(|key| !own(key))
    }

    /// The keys of `protocol`, without its name, and their values.
    pub fn of<'a>(&'a self, protocol: &dyn Protocol) -> Vec<(&'a str, &'a str)> {
        self.0
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
        "--set {key}: there is no such key; those of a protocol start with {}, and \
         `weigh targets list --settings` shows them",
        protocols().join(", ")
    ))
}

fn protocols() -> Vec<&'static str> {
    registry::PROTOCOLS.iter().map(|own| own.name()).collect()
}

/// The lanes of these words; without words those of the main job.
pub fn lanes(words: &[String], catalogue: &Catalogue, given: &Given) -> Result<Vec<Lane>, Stop> {
    let mut lanes = Vec::new();
    let words = if words.is_empty() { default_words(catalogue) } else { words.to_vec() };
    for word in &words {
        let (protocol, against) = resolve(word, catalogue)?;
        let own: Vec<(&str, &str)> = given.of(protocol);
        let mut seen = false;
        for lane in protocol.lanes() {
            // What was asked for narrows the lanes to those that agree with it.
            let contradicts = |(key, value): &(&str, &str)| {
                own.iter().any(|(asked, wanted)| asked == key && wanted != value)
            };
            if lane.iter().any(contradicts) {
                continue;
            }
            seen = true;
            lanes.push(make(protocol, against.clone(), lane, &own)?);
        }
        if !seen {
            lanes.push(make(protocol, against, &[], &own)?);
        }
    }
    Ok(lanes)
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

/// The main job: every protocol against its reference server, and Mosquitto where it is
/// installed.
fn default_words(catalogue: &Catalogue) -> Vec<String> {
    let mut words: Vec<String> = ["mqtt", "http1", "tcp"].into_iter().map(str::to_owned).collect();
    let is_installed = catalogue
        .choose("mosquitto")
        .is_ok_and(|choice| weigh_stage::find::find(choice.target).is_some());
    if is_installed {
        words.push("mosquitto".to_owned());
    }
    words
}

fn resolve(word: &str, catalogue: &Catalogue) -> Result<(&'static dyn Protocol, Against), Stop> {
    if word.contains("://") {
        let endpoint = Endpoint::parse(word).map_err(Stop::usage)?;
        let protocol = registry::find_by_scheme(&endpoint.scheme)
            .ok_or_else(|| Stop::usage(format!("{word}: no protocol has this scheme")))?;
        return Ok((protocol, Against::Foreign(endpoint)));
    }
    if catalogue.knows(word) {
        let choice = catalogue.choose(word).map_err(Stop::usage)?;
        let speaks = choice.target.speaks.first().map_or("", |speaks| &speaks.protocol);
        return Ok((registry::find(speaks)?, Against::Managed(word.to_owned())));
    }
    let protocol = registry::find(word).map_err(|invalid| {
        let names: Vec<&str> =
            catalogue.targets().iter().map(|target| target.name.as_str()).collect();
        let meant = registry::nearest(word, names.iter().copied());
        let start = match meant {
            Some(name) => format!("did you mean {name}? Or a protocol: {}", protocols().join(", ")),
            None => invalid.mend.clone(),
        };
        let mend =
            format!("{start}; or a target: {}; or a URL: mqtt://HOST:PORT", names.join(", "));
        Invalid { place: "protocol or target".to_owned(), mend, ..invalid }
    })?;
    Ok((protocol, Against::Reference))
}

impl Lane {
    /// True if somebody else runs its target.
    pub fn is_foreign(&self) -> bool {
        matches!(self.against, Against::Foreign(_))
    }

    /// A lane whose settings differ from the defaults by `given`.
    pub fn new(
        protocol: &'static dyn Protocol,
        against: Against,
        given: BTreeMap<String, String>,
    ) -> Result<Lane, Invalid> {
        let pairs = given.iter().map(|(key, value)| (key.as_str(), value.as_str()));
        let settings = Settings::new(protocol.name(), protocol.settings(), pairs)?;
        Ok(Lane { protocol, against, given, settings })
    }

    /// Who we are to the target: what was given with its URL, or what our own broker was told to
    /// ask for.
    pub fn credentials(&self) -> Option<Credentials> {
        match &self.against {
            Against::Foreign(endpoint) => endpoint.credentials.clone(),
            Against::Managed(_) => None,
            Against::Reference => {
                let text = |key: &str| self.settings.text(key).to_owned();
                let (user, password) = (text("broker_user"), text(BROKER_PASSWORD));
                (!user.is_empty()).then_some(Credentials { user, password })
            }
        }
    }

    /// The settings in which it differs from the defaults and which everybody may see.
    pub fn shown(&self) -> impl Iterator<Item = (&String, &String)> {
        self.given.iter().filter(|(key, _)| *key != BROKER_PASSWORD)
    }

    /// The lane under `load` as a case of a plan.
    pub fn with(&self, load: Load) -> Decided {
        let known = self.protocol.settings();
        let setting = |key: &str| known.iter().find(|setting| setting.key == key);
        let settings = self.shown().filter_map(|(key, text)| {
            Some((key.clone(), matrix::setting_value(setting(key)?, text)))
        });
        Decided {
            protocol: self.protocol.name().to_owned(),
            target: self.against.name(),
            settings: settings.collect(),
            load,
        }
    }
}

/// The one setting that is never recorded or shown.
pub const BROKER_PASSWORD: &str = "broker_password";
