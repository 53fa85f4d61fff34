//! Protocols, targets and URLs as the language of plans looks them up: the registry, the catalogue
//! and external servers.

use std::cell::RefCell;
use std::collections::BTreeMap;

use weigh_model::body::{BodySource, PLACEHOLDERS};
use weigh_model::endpoint::Credentials;
use weigh_model::protocol::Invalid;
use weigh_model::trial::Point;
use weigh_model::units::Bytes;
use weigh_model::{Durability, Guarantee, Load, Pattern, Protocol, Trial};
use weigh_plan::Case;
use weigh_plan::case::BackgroundChoice;
use weigh_plan::load::BODY_BYTES_MAX;
use weigh_plan::patience::Patience;
use weigh_plan::world::{PIPELINE, REFERENCE, TargetWord, World};
use weigh_protocols::{self as registry, urls};
use weigh_testbed::catalogue::Catalogue;

use crate::case::abilities::{KnownAbilities, durability_of};
use crate::case::background::BackgroundCase;
use crate::case::build::Build;
use crate::case::check::check_protocol;
use crate::case::fetched;
use crate::case::lane;
use crate::case::lanes::{self, Lane};
use crate::case::material::{Shelf, composer};
use crate::case::paths::path_of;
use crate::case::patience;
use crate::case::pipeline::{Entry, SPOKEN, is_pipeline};
use crate::case::secrets::Secrets;
use crate::case::server_settings;
use crate::case::share::TargetShare;
use crate::watcher::Watcher;

/// Every name that a plan can use.
///
/// # Examples
///
/// ```
/// use weigh_plan::world::World;
/// use weigh_runner::case::known::Known;
/// use weigh_runner::watcher::Silent;
/// use weigh_testbed::catalogue::Catalogue;
///
/// let catalogue = Catalogue::load(None)?;
/// let known = Known::new(&catalogue, &Silent);
/// assert!(known.target("mosquitto").is_ok());
/// assert!(known.target("mosquito").unwrap_err().contains("did you mean mosquitto?"));
/// # Ok::<(), weigh_testbed::target::TargetError>(())
/// ```
pub struct Known<'c> {
    catalogue: &'c Catalogue,
    /// Credentials found in URLs, by the URL without them.
    credentials: RefCell<BTreeMap<String, Credentials>>,
    shelf: RefCell<Shelf>,
    /// Bodies that were checked, and their sizes in bytes; an error of a body is reported once.
    bodies: RefCell<BTreeMap<String, u64>>,
    abilities: KnownAbilities,
    /// URLs that are fetched with GET, for their notices.
    fetched: RefCell<fetched::Notices>,
    build: Build,
    watcher: &'c dyn Watcher,
}

impl<'c> Known<'c> {
    /// Knows the registry's protocols and the targets of `catalogue`; `watcher` receives notices.
    pub fn new(catalogue: &'c Catalogue, watcher: &'c dyn Watcher) -> Known<'c> {
        let (credentials, shelf) = (RefCell::default(), RefCell::default());
        let (bodies, abilities) = (RefCell::default(), KnownAbilities::default());
        let (fetched, build) = (RefCell::default(), Build::OWN);
        Known { catalogue, credentials, shelf, bodies, abilities, fetched, build, watcher }
    }

    /// Accepts plans that need parts which this build does not have, to show them.
    pub fn of_full_build(self) -> Known<'c> {
        Known { build: Build::FULL, ..self }
    }

    /// Returns the credentials found in URLs, by the URL without them.
    pub fn into_credentials(self) -> BTreeMap<String, Credentials> {
        self.credentials.into_inner()
    }

    fn url(&self, url: &str) -> Result<TargetWord, String> {
        let (protocol, mut endpoint) = urls::read(url)?;
        let name = endpoint.to_string();
        let credentials = endpoint.credentials.take().map(|own| (name.clone(), own));
        self.credentials.borrow_mut().extend(credentials);
        Ok(TargetWord { name, speaks: Some(vec![protocol.name().to_owned()]) })
    }
}

impl World for Known<'_> {
    fn protocols(&self) -> &'static [&'static dyn Protocol] {
        registry::PROTOCOLS
    }

    fn target(&self, word: &str) -> Result<TargetWord, String> {
        if word == REFERENCE {
            return Ok(TargetWord { name: word.to_owned(), speaks: None });
        }
        if word.contains("://") {
            return self.url(word);
        }
        if is_pipeline(word) {
            let speaks = SPOKEN.iter().map(|(name, _)| (*name).to_owned()).collect();
            return Ok(TargetWord { name: word.to_owned(), speaks: Some(speaks) });
        }
        if let Some((PIPELINE, entry)) = word.split_once('@') {
            let problem = format!("{word:?} only works on the command line");
            return Err(format!("{problem}: type target = \"pipeline\", protocol = {entry:?}"));
        }
        if !self.catalogue.knows(word) {
            if let Ok(protocol) = registry::find(word) {
                let name = protocol.name();
                return Err(format!(
                    "{word:?} is a protocol, not a target: type protocol = {name:?}"
                ));
            }
            let names = self.target_names();
            let near = registry::nearest(word, names.iter().map(String::as_str));
            let near = near.map_or(String::new(), |near| format!("did you mean {near}? "));
            let all = names.join(", ");
            return Err(format!(
                "{word:?} is not a known target: {near}There are: {all}, or a URL"
            ));
        }
        let choice = self.catalogue.choose(word).map_err(|error| error.to_string())?;
        let speaks = choice.target.speaks.iter().map(|speaks| speaks.protocol.clone()).collect();
        Ok(TargetWord { name: word.to_owned(), speaks: Some(speaks) })
    }

    fn target_names(&self) -> Vec<String> {
        let managed = self.catalogue.targets().iter().map(|target| target.name.clone());
        let own = [REFERENCE, PIPELINE].map(str::to_owned).into_iter();
        own.chain(managed).collect()
    }

    fn patterns(&self, protocol: &dyn Protocol, target: &str) -> Vec<Pattern> {
        match Entry::of(protocol.name()) {
            Ok(entry) if is_pipeline(target) => entry.patterns().to_vec(),
            _ => protocol.patterns().to_vec(),
        }
    }

    fn is_used_by_entry(&self, protocol: &dyn Protocol, key: &str) -> bool {
        Entry::of(protocol.name()).is_ok_and(|entry| entry.uses(key))
    }

    fn usual(
        &self,
        protocol: &dyn Protocol,
        target: &str,
        load: &Load,
        given: &[&str],
    ) -> Vec<(&'static str, serde_json::Value)> {
        let uses = lanes::uses(target, self.catalogue, protocol);
        if !uses.is_empty() {
            return uses.into_iter().map(|(key, value)| (key, value.into())).collect();
        }
        let own = format!("{}.{}", protocol.name(), fetched::METHOD);
        let says = |key: &&str| *key == own || *key == "load.size" || key.starts_with("load.body");
        let usual = fetched::settings(protocol, target, load.pattern);
        if usual.is_empty() || given.iter().any(says) {
            return Vec::new();
        }
        self.fetched.borrow_mut().say(target, self.watcher);
        usual.into_iter().map(|(key, value)| (key, value.into())).collect()
    }

    fn durability(&self, case: &Case) -> Option<Durability> {
        let probed = || case.abilities.as_deref().and_then(durability_of);
        case.durability.or_else(|| if case.target.contains("://") { probed() } else { None })
    }

    fn is_secret(&self, key: &str, value: &str) -> bool {
        let own = key.split_once('.').map_or(key, |(_, own)| own);
        registry::find(key.split('.').next().unwrap_or_default()).is_ok()
            && server_settings::is_secret(own, value)
    }

    fn patience(&self, case: &Case) -> Option<Patience> {
        let path = path_of(&case.words).ok()??;
        let lane = lane(case, self.catalogue, &Secrets::default()).ok()?;
        let body = self.check_body(&trial(case, &lane), lane.stores()).ok()?;
        Some(patience::of(&lane, &case.load, &path, body))
    }

    fn check(&self, case: &Case) -> Result<(), Invalid> {
        self.build.check_target(&case.target)?;
        let lane = lane(case, self.catalogue, &Secrets::default())?;
        lane.check_can(self.catalogue)?;
        let trial = trial(case, &lane);
        check_stall(&lane, &case.load)?;
        path_of(&case.words)?;
        TargetShare::of(&case.share)?;
        if let BackgroundChoice::On(asked) = &case.background {
            let secrets = Secrets::default();
            let has_hosts = path_of(&case.words)?.is_some();
            BackgroundCase::of(asked, (&lane, has_hosts), self.catalogue, &secrets)?;
        }
        check_protocol(&lane, &trial)?;
        let body_bytes = self.check_body(&trial, lane.stores())?;
        // The size of a body from a file is known only now, and may be too large for the protocol.
        let mut sized = trial;
        sized.load.size.get_or_insert(Bytes(body_bytes));
        let fits = check_protocol(&lane, &sized).map(|_| ());
        let can = || self.abilities.check(self.catalogue, case, &sized);
        fits.and_then(|()| can()).map_err(|invalid| {
            match (sized.load.body.path(), invalid.place.as_str()) {
                (Some(_), "load.size") => Invalid { place: "load.body".to_owned(), ..invalid },
                _ => invalid,
            }
        })
    }
}

/// A closed loop without confirmations waits for deliveries: with stalled subscribers it would
/// never send again.
fn check_stall(lane: &Lane, load: &Load) -> Result<(), Invalid> {
    let waits =
        !load.arrival.is_open() && lane.protocol.guarantee(&lane.settings) == Guarantee::AtMostOnce;
    if load.stall.is_none() || !waits {
        return Ok(());
    }
    let problem =
        "without confirmations a closed loop waits for deliveries, and the subscribers are stalled";
    Err(Invalid::new("load.stall", problem, "add a rate, or a guarantee such as mqtt.qos = 1"))
}

/// Makes the trial of a case, for checks.
fn trial(case: &Case, lane: &Lane) -> Trial {
    Trial {
        id: String::new(),
        point: Point::new(),
        repetition: 0,
        seed: 0,
        protocol: case.protocol.clone(),
        target: case.target.clone(),
        endpoint: None,
        load: case.load.clone(),
        settings: lane.settings.clone(),
    }
}

impl Known<'_> {
    /// Checks that the bodies of the trial can be made; returns the largest, bytes. A plan has many
    /// cases and few bodies, so an error of a body is reported once.
    fn check_body(&self, trial: &Trial, is_stored: bool) -> Result<u64, Invalid> {
        let load = &trial.load;
        let is_read = is_stored && Entry::of(&trial.protocol)? != Entry::Store;
        if is_read && load.body == BodySource::Filler {
            let problem = "the pipeline stores readings, and filler is not a reading";
            let fix = "type --body readings (load.body = \"readings\"): a size then pads them";
            return Err(Invalid::new("load.body", problem, fix));
        }
        check_template(&load.body)?;
        check_whole(load)?;
        let material = self.shelf.borrow_mut().fetch(load, is_stored)?;
        let (mut widest, mut body) = ((0, None), load.body.to_string());
        if matches!(load.body.content(), BodySource::Template(_)) {
            widest = (load.connections, load.messages);
        }
        body.push_str(&format!(" {} {:?} {widest:?} {is_stored}", load.pattern, load.size));
        if let Some(bytes) = self.bodies.borrow().get(&body) {
            return Ok(*bytes);
        }
        let made = composer(trial, &material, 0);
        let bytes = made.as_ref().map_or(0, |(composer, _)| composer.bytes_max() as u64);
        self.bodies.borrow_mut().insert(body, bytes);
        made.map(|_| bytes).map_err(|said| {
            let said = said.to_string();
            let (problem, fix) = said.split_once("\nhelp: ").unwrap_or((&said, ""));
            if let Some(size) = fix.strip_prefix("type -s ") {
                return Invalid::new("load.size", problem, format!("give {size}"));
            }
            let fix = if fix.is_empty() { "name a file with one body a line" } else { fix };
            Invalid::new("load.body", format!("{}: {problem}", load.body), fix)
        })
    }
}

/// An unknown name in braces would be sent as it is.
fn check_template(body: &BodySource) -> Result<(), Invalid> {
    let Some(word) = body.unknown_placeholder() else { return Ok(()) };
    let near = registry::nearest(word, PLACEHOLDERS.into_iter());
    let near = near.map_or(String::new(), |near| format!("did you mean {{{near}}}? "));
    let all = PLACEHOLDERS.map(|own| format!("{{{own}}}")).join(", ");
    let fix = format!("{near}type {all}, or text: in front of literal text");
    Err(Invalid::new("load.body", format!("{{{word}}} is not a placeholder of templates"), fix))
}

/// A body that is not streamed is in memory as a whole, once per message in flight.
fn check_whole(load: &Load) -> Result<(), Invalid> {
    let is_whole = load.pattern != Pattern::Transfer;
    if !is_whole || load.size.is_none_or(|size| size.0 <= BODY_BYTES_MAX) {
        return Ok(());
    }
    let problem = "a body that is sent whole has at most 256 MiB";
    Err(Invalid::new("load.size", problem, "type a smaller size, or --pattern transfer"))
}
