//! What there is to weigh, as the language of plans asks for it: the registry's protocols, the
//! catalogue's targets, and servers behind URLs.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use weigh_model::body::BodySource;
use weigh_model::endpoint::Credentials;
use weigh_model::protocol::Invalid;
use weigh_model::trial::Point;
use weigh_model::{Endpoint, Protocol, Trial};
use weigh_plan::matrix::{Decided, setting_text};
use weigh_plan::world::{REFERENCE, TargetWord, World};
use weigh_protocols as registry;
use weigh_stage::catalogue::Catalogue;

use crate::planning::lanes::{Against, BROKER_PASSWORD, Lane};
use crate::planning::material::{Shelf, composer};
use crate::run::trial_run;

/// Everything known here.
pub struct Known<'c> {
    catalogue: &'c Catalogue,
    /// What was found in URLs, by the URL without it.
    credentials: RefCell<BTreeMap<String, Credentials>>,
    shelf: RefCell<Shelf>,
    /// Bodies that were looked at; what was wrong with one is told once.
    bodies: RefCell<BTreeSet<String>>,
}

impl<'c> Known<'c> {
    /// The registry's protocols and the targets of this catalogue.
    pub fn new(catalogue: &'c Catalogue) -> Known<'c> {
        let (credentials, shelf) = (RefCell::default(), RefCell::default());
        Known { catalogue, credentials, shelf, bodies: RefCell::default() }
    }

    /// Who we are to the servers whose URLs said so, by their URLs without it.
    pub fn into_credentials(self) -> BTreeMap<String, Credentials> {
        self.credentials.into_inner()
    }

    fn url(&self, url: &str) -> Result<TargetWord, String> {
        let mut endpoint = Endpoint::parse(url)?;
        let protocol = registry::find_by_scheme(&endpoint.scheme)
            .ok_or_else(|| format!("{url:?} has a scheme of no protocol: type mqtt://HOST:PORT"))?;
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
        if !self.catalogue.knows(word) {
            if let Ok(protocol) = registry::find(word) {
                let name = protocol.name();
                return Err(format!("{word:?} is a protocol: type protocol = {name:?}"));
            }
            let names = self.target_names();
            let near = registry::nearest(word, names.iter().map(String::as_str));
            let near = near.map_or(String::new(), |near| format!("did you mean {near}? "));
            let all = names.join(", ");
            return Err(format!("{word:?} is no target: {near}There are: {all}, or a URL"));
        }
        let choice = self.catalogue.choose(word).map_err(|error| error.to_string())?;
        let speaks = choice.target.speaks.iter().map(|speaks| speaks.protocol.clone()).collect();
        Ok(TargetWord { name: word.to_owned(), speaks: Some(speaks) })
    }

    fn target_names(&self) -> Vec<String> {
        let managed = self.catalogue.targets().iter().map(|target| target.name.clone());
        std::iter::once(REFERENCE.to_owned()).chain(managed).collect()
    }

    fn is_secret(&self, key: &str) -> bool {
        key.rsplit('.').next() == Some(BROKER_PASSWORD)
    }

    fn check(&self, case: &Decided) -> Result<(), Invalid> {
        let protocol = registry::find(&case.protocol)?;
        let against = match case.target.as_str() {
            REFERENCE => Against::Reference,
            url if url.contains("://") => {
                let endpoint = Endpoint::parse(url);
                Against::Foreign(endpoint.map_err(|said| Invalid::new("target", said, ""))?)
            }
            managed => Against::Managed(managed.to_owned()),
        };
        let given = case.settings.iter();
        let given = given.filter_map(|(key, value)| Some((key.clone(), setting_text(value)?)));
        let lane = Lane::new(protocol, against, given.collect())?;
        let trial = Trial {
            id: String::new(),
            point: Point::new(),
            repetition: 0,
            seed: 0,
            protocol: case.protocol.clone(),
            target: case.target.clone(),
            endpoint: None,
            load: case.load.clone(),
            settings: lane.settings.clone(),
        };
        trial_run::check_protocol(&lane, &trial)?;
        self.check_body(&trial)
    }
}

impl Known<'_> {
    /// Whether the bodies of the trial can be made. A plan has many cases and few bodies.
    fn check_body(&self, trial: &Trial) -> Result<(), Invalid> {
        let load = &trial.load;
        let material = self.shelf.borrow_mut().fetch(load)?;
        let (mut widest, mut body) = ((0, None), load.body.to_string());
        if matches!(load.body, BodySource::Template(_)) {
            widest = (load.connections, load.messages);
        }
        body.push_str(&format!(" {:?} {widest:?}", load.size));
        if !self.bodies.borrow_mut().insert(body) {
            return Ok(());
        }
        composer(trial, &material, 0).map(|_| ()).map_err(|said| {
            let said = said.to_string();
            let (problem, mend) = said.rsplit_once(": type -s ").unwrap_or((&said, ""));
            let mend = if mend.is_empty() { String::new() } else { format!("give {mend}") };
            Invalid::new("load.size", problem, mend)
        })
    }
}
