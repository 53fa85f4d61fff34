//! Servers of a study that run elsewhere: `emqx=mqtt://broker:1883` takes the place of the server
//! that a plan would start here.

use std::collections::BTreeMap;

use weigh_model::Emulation;
use weigh_model::Endpoint;
use weigh_model::plan::Plan;
use weigh_testbed::catalogue::Catalogue;

use crate::case::secrets::Secrets;
use crate::exit::Stop;

/// Servers that run elsewhere, by the name of the target that plans use.
#[derive(Clone, Debug, Default)]
pub struct Elsewhere(BTreeMap<String, Endpoint>);

impl Elsewhere {
    /// From the words after `--server`: `NAME=URL`.
    ///
    /// # Errors
    /// If one of them is not of that form, or there is no target of this name.
    pub fn of(words: &[String], catalogue: &Catalogue) -> Result<Elsewhere, Stop> {
        let mut servers = BTreeMap::new();
        for word in words {
            let wrong = |said: &str| Stop::usage(format!("--server {word}: {said}"));
            let (name, url) = word
                .split_once('=')
                .ok_or_else(|| wrong("expected NAME=URL, such as emqx=mqtt://broker:1883"))?;
            catalogue.choose(name).map_err(|error| wrong(&error.to_string()))?;
            let endpoint = weigh_protocols::urls::endpoint(url).map_err(|said| wrong(&said))?;
            servers.insert(name.to_owned(), endpoint);
        }
        Ok(Elsewhere(servers))
    }

    /// Whether the target of this name runs elsewhere.
    pub fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// Puts the URLs in the place of the targets' names, and their credentials into `secrets`: no
    /// plan may hold them. What htop would show of the cores of such a target is not known, so it
    /// is not asked for where no other target is left.
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
        let of = |word: &str| Elsewhere::of(&[word.to_owned()], &catalogue);
        let known = of("emqx=mqtt://u:p@127.0.0.1:1884").unwrap();
        assert!(known.has("emqx") && !known.has("hivemq"));
        for (word, said) in [
            ("emqx", "expected NAME=URL"),
            ("emqxx=mqtt://h:1", "emqxx"),
            ("emqx=127.0.0.1", "no URL"),
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
        Elsewhere::of(&words, &catalogue).unwrap().put_into(&mut plan, &mut secrets);
        let shown = toml::to_string(&plan).unwrap();
        assert!(shown.contains("mqtt://127.0.0.1:1884") && !shown.contains("secret"), "{shown}");
        assert!(!shown.contains("htop") && shown.contains("mqtt-stresser"), "{shown}");
        assert_eq!(secrets.by_url["mqtt://127.0.0.1:1884"].user, "u");
    }
}
