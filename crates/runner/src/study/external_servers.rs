//! External servers of a study: `emqx=mqtt://broker:1883` replaces the server that a plan would
//! start here.

use std::collections::BTreeMap;

use weigh_model::Emulation;
use weigh_model::Endpoint;
use weigh_model::plan::Plan;
use weigh_testbed::catalogue::Catalogue;

use crate::case::secrets::Secrets;
use crate::exit::Stop;

/// External servers, by the name of the target that plans use.
#[derive(Clone, Debug, Default)]
pub struct ExternalServers(BTreeMap<String, Endpoint>);

impl ExternalServers {
    /// Parses the words of `--server`: `NAME=URL`.
    ///
    /// # Errors
    /// A word of another form; an unknown target.
    pub fn of(words: &[String], catalogue: &Catalogue) -> Result<ExternalServers, Stop> {
        let mut servers = BTreeMap::new();
        for word in words {
            let wrong = |said: &str| Stop::usage(format!("--server {word}: {said}"));
            let (name, url) = word.split_once('=').ok_or_else(|| {
                wrong("the URL is missing: type NAME=URL, such as emqx=mqtt://broker:1883")
            })?;
            catalogue.choose(name).map_err(|error| wrong(&error.to_string()))?;
            let endpoint = weigh_protocols::urls::endpoint(url).map_err(|said| wrong(&said))?;
            servers.insert(name.to_owned(), endpoint);
        }
        Ok(ExternalServers(servers))
    }

    /// True if the target of this name is external.
    pub fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// Replaces the names of targets by URLs, and adds their credentials to `secrets`, because a
    /// plan may not hold them. The cores of external targets are unknown, so htop is left out if no
    /// other target is left.
    pub fn put_into(&self, plan: &mut Plan, secrets: &mut Secrets) {
        for case in &mut plan.cases {
            let Some(name) = case.get(TARGET).and_then(|value| value.as_str()) else { continue };
            let Some(endpoint) = self.0.get(name) else { continue };
            let url = endpoint.to_string();
            if let Some(credentials) = &endpoint.credentials {
                secrets.by_url.insert(url.clone(), credentials.clone());
            }
            case.insert(TARGET.to_owned(), url.into());
        }
        let is_elsewhere = |case: &weigh_model::trial::Point| {
            case.get(TARGET)
                .and_then(|value| value.as_str())
                .is_some_and(|name| name.contains("://"))
        };
        if !plan.cases.is_empty() && plan.cases.iter().all(is_elsewhere) {
            plan.observe.emulate.retain(|own| *own != Emulation::Htop);
        }
    }
}

const TARGET: &str = "target";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_elsewhere_is_named_by_its_target_and_its_url() {
        let catalogue = Catalogue::load(None).unwrap();
        let of = |word: &str| ExternalServers::of(&[word.to_owned()], &catalogue);
        let known = of("emqx=mqtt://u:p@127.0.0.1:1884").unwrap();
        assert!(known.has("emqx") && !known.has("hivemq"));
        for (word, said) in [
            ("emqx", "type NAME=URL"),
            ("emqxx=mqtt://h:1", "emqxx"),
            ("emqx=127.0.0.1", "not a URL"),
        ] {
            let error = of(word).unwrap_err().to_string();
            assert!(error.contains(said), "{error}");
        }
    }

    #[test]
    fn the_url_takes_the_place_of_the_name_and_no_plan_holds_a_password() {
        let catalogue = Catalogue::load(None).unwrap();
        let world = crate::case::known::Known::new(&catalogue, &crate::watcher::Silent);
        let text = "protocol = \"mqtt\"\nvary.target = [\"emqx\"]\nload.messages = 10\n\
                    load.warmup = \"0s\"\n\
                    observe.emulate = [\"htop\", \"mqtt-stresser\"]\n\
                    load.pattern = \"deliver\"\nload.topology = \"pairs\"\n\
                    load.connections = 1\nload.subscribers = 1\n";
        let mut plan = weigh_plan::read(text, &world).unwrap().resolve("p").unwrap().plan;
        let words = ["emqx=mqtt://u:p-secret@127.0.0.1:1884".to_owned()];
        let mut secrets = Secrets::default();
        ExternalServers::of(&words, &catalogue).unwrap().put_into(&mut plan, &mut secrets);
        let shown = toml::to_string(&plan).unwrap();
        assert!(shown.contains("mqtt://127.0.0.1:1884") && !shown.contains("secret"), "{shown}");
        assert!(!shown.contains("htop") && shown.contains("mqtt-stresser"), "{shown}");
        assert_eq!(secrets.by_url["mqtt://127.0.0.1:1884"].user, "u");
    }
}
