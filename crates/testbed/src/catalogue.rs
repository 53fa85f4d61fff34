//! Catalogue of all targets: the built-in ones, and those of a folder, which replace them.

use std::collections::BTreeMap;
use std::path::Path;

use crate::target::{Profile, Target, TargetError};

/// The files of `targets/`, one line each.
const BUILT_IN: [(&str, &str); 21] = [
    ("targets/aedes.toml", include_str!("../../../targets/aedes.toml")),
    ("targets/artemis.toml", include_str!("../../../targets/artemis.toml")),
    ("targets/artemis-amqp1.toml", include_str!("../../../targets/artemis-amqp1.toml")),
    ("targets/caddy.toml", include_str!("../../../targets/caddy.toml")),
    ("targets/ejabberd.toml", include_str!("../../../targets/ejabberd.toml")),
    ("targets/emqx.toml", include_str!("../../../targets/emqx.toml")),
    ("targets/hivemq.toml", include_str!("../../../targets/hivemq.toml")),
    ("targets/kafka-server.toml", include_str!("../../../targets/kafka-server.toml")),
    ("targets/libcoap.toml", include_str!("../../../targets/libcoap.toml")),
    ("targets/mochi.toml", include_str!("../../../targets/mochi.toml")),
    ("targets/moquette.toml", include_str!("../../../targets/moquette.toml")),
    ("targets/mosquitto.toml", include_str!("../../../targets/mosquitto.toml")),
    ("targets/nanomq.toml", include_str!("../../../targets/nanomq.toml")),
    ("targets/nats-mqtt.toml", include_str!("../../../targets/nats-mqtt.toml")),
    ("targets/nats-server.toml", include_str!("../../../targets/nats-server.toml")),
    ("targets/nginx.toml", include_str!("../../../targets/nginx.toml")),
    ("targets/rabbitmq-amqp.toml", include_str!("../../../targets/rabbitmq-amqp.toml")),
    ("targets/rabbitmq-amqp1.toml", include_str!("../../../targets/rabbitmq-amqp1.toml")),
    ("targets/rabbitmq.toml", include_str!("../../../targets/rabbitmq.toml")),
    ("targets/redis-server.toml", include_str!("../../../targets/redis-server.toml")),
    ("targets/rmqtt.toml", include_str!("../../../targets/rmqtt.toml")),
];

/// Results of `weigh probe`: the files that targets name as `abilities`.
const ABILITIES: [(&str, &str); 2] = [
    ("abilities/mosquitto.toml", include_str!("../../../targets/abilities/mosquitto.toml")),
    ("abilities/rmqtt.toml", include_str!("../../../targets/abilities/rmqtt.toml")),
];

/// Other folders that `--data` may hold.
const OTHERS: [&str; 3] = ["devices", "radios", "studies"];

/// All known targets, in the order of their names.
///
/// # Examples
///
/// ```
/// use weigh_testbed::catalogue::Catalogue;
///
/// let catalogue = Catalogue::load(None)?;
/// let choice = catalogue.choose("mosquitto@no-limits")?;
/// assert_eq!(choice.target.title, "Mosquitto");
/// # Ok::<(), weigh_testbed::target::TargetError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Catalogue {
    targets: Vec<Target>,
    /// Name and text of the file with what a target can do, by the target's name.
    abilities: BTreeMap<String, (String, String)>,
}

/// A target with one of its profiles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice<'a> {
    /// The target itself.
    pub target: &'a Target,
    /// The profile: how the target is configured.
    pub profile: &'a Profile,
}

impl Catalogue {
    /// Returns the built-in targets and those of `DATA/targets/*.toml`, which replace built-in ones
    /// of the same name.
    ///
    /// # Errors
    /// If a folder was given and cannot be read, or a file is not a valid target.
    pub fn load(data: Option<&Path>) -> Result<Catalogue, TargetError> {
        let mut catalogue = Catalogue { targets: Vec::new(), abilities: BTreeMap::new() };
        for (file, text) in BUILT_IN {
            catalogue.put(Target::parse(file, text)?, |name| {
                built_in(name).ok_or_else(|| "was not found".to_owned())
            })?;
        }
        // A folder may be for devices, radios and studies alone.
        let is_for_others = |data: &Path| OTHERS.iter().any(|folder| data.join(folder).is_dir());
        let has_targets = |data: &&Path| data.join("targets").exists() || !is_for_others(data);
        if let Some(data) = data.filter(has_targets) {
            for (file, text) in texts_in(&data.join("targets"))? {
                let folder = data.join("targets");
                catalogue.put(Target::parse(&file, &text)?, |name| {
                    let read = std::fs::read_to_string(folder.join(name));
                    // A copy of a built-in target names what is built in beside it.
                    read.or_else(|error| built_in(name).ok_or_else(|| error.to_string()))
                })?;
            }
        }
        catalogue.targets.sort_by(|left, right| left.name.cmp(&right.name));
        Ok(catalogue)
    }

    /// All targets, by name.
    pub fn targets(&self) -> &[Target] {
        &self.targets
    }

    /// Whether the word before an `@` names a target.
    pub fn knows(&self, word: &str) -> bool {
        self.named(split(word).0).is_some()
    }

    /// The target and profile of `NAME` or `NAME@PROFILE`.
    ///
    /// # Errors
    /// [`TargetError::Unknown`] with the known names.
    pub fn choose(&self, word: &str) -> Result<Choice<'_>, TargetError> {
        let (name, profile) = split(word);
        let target = self.named(name).ok_or_else(|| {
            let names: Vec<&str> = self.targets.iter().map(|t| t.name.as_str()).collect();
            let error = format!("unknown target {name:?}; type {}", names.join(" or "));
            TargetError::Unknown { error }
        })?;
        Ok(Choice { target, profile: target.profile(profile)? })
    }

    fn named(&self, name: &str) -> Option<&Target> {
        self.targets.iter().find(|target| target.name == name)
    }

    /// Returns the abilities of the target that `word` names, as the name of a file and its text.
    pub fn abilities(&self, word: &str) -> Option<(&str, &str)> {
        let (file, text) = self.abilities.get(split(word).0)?;
        Some((file, text))
    }

    /// Adds a target, with the text of the file that it names beside itself.
    fn put(
        &mut self,
        target: Target,
        read: impl FnOnce(&str) -> Result<String, String>,
    ) -> Result<(), TargetError> {
        self.abilities.remove(&target.name);
        if let Some(file) = target.abilities.clone() {
            let text = read(&file)
                .map_err(|error| TargetError::Unreadable { file: file.clone(), error })?;
            self.abilities.insert(target.name.clone(), (file, text));
        }
        self.targets.retain(|other| other.name != target.name);
        self.targets.push(target);
        Ok(())
    }
}

/// The text of a file of abilities that is built in.
fn built_in(name: &str) -> Option<String> {
    let found = ABILITIES.iter().find(|(known, _)| *known == name);
    found.map(|(_, text)| (*text).to_owned())
}

fn split(word: &str) -> (&str, Option<&str>) {
    match word.split_once('@') {
        Some((name, profile)) => (name, Some(profile)),
        None => (word, None),
    }
}

/// The texts of all `.toml` files of a folder, with their names, in order.
///
/// # Errors
/// If one of them, or the folder, cannot be read.
pub fn texts_in(folder: &Path) -> Result<Vec<(String, String)>, TargetError> {
    let unreadable = |path: &Path, error: std::io::Error| TargetError::Unreadable {
        file: path.display().to_string(),
        error: error.to_string(),
    };
    let entries = std::fs::read_dir(folder).map_err(|error| unreadable(folder, error))?;
    let mut paths = Vec::new();
    for entry in entries {
        let path = entry.map_err(|error| unreadable(folder, error))?.path();
        if path.extension().is_some_and(|extension| extension == "toml") {
            paths.push(path);
        }
    }
    paths.sort();
    let read = |path: &std::path::PathBuf| {
        let text = std::fs::read_to_string(path).map_err(|error| unreadable(path, error))?;
        Ok((path.display().to_string(), text))
    };
    paths.iter().map(read).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_built_in_can_be_chosen() {
        let catalogue = Catalogue::load(None).unwrap();
        assert_eq!(catalogue.targets().len(), BUILT_IN.len());
        let choice = catalogue.choose("mosquitto").unwrap();
        assert_eq!(choice.profile.name, "defaults");
        let choice = catalogue.choose("mosquitto@no-limits").unwrap();
        assert_eq!(choice.profile.values["max_queued_messages"], "0");
        assert!(catalogue.knows("nginx@anything") && !catalogue.knows("mqtt"));
    }

    #[test]
    fn the_unknown_is_told_who_there_is() {
        let catalogue = Catalogue::load(None).unwrap();
        let error = catalogue.choose("mosquito").unwrap_err().to_string();
        assert!(error.contains("mosquitto or nanomq"), "{error}");
        let error = catalogue.choose("mosquitto@fast").unwrap_err().to_string();
        assert!(error.contains("mosquitto@no-limits"), "{error}");
    }

    #[test]
    fn a_folder_replaces_and_adds() {
        let data = std::env::temp_dir().join(format!("weigh-catalogue-{}", std::process::id()));
        let folder = data.join("targets");
        std::fs::create_dir_all(&folder).unwrap();
        let nginx = include_str!("../../../targets/nginx.toml");
        let text = nginx.replace("name = \"no-limits\"", "name = \"mine\"");
        std::fs::write(folder.join("nginx.toml"), &text).unwrap();
        let added = text.replace("name = \"nginx\"", "name = \"angie\"");
        let added = added.replacen("[find]", "abilities = \"known/angie.toml\"\n[find]", 1);
        std::fs::write(folder.join("other.toml"), added).unwrap();
        let missing = Catalogue::load(Some(&data)).unwrap_err().to_string();
        std::fs::create_dir(folder.join("known")).unwrap();
        std::fs::write(folder.join("known/angie.toml"), "what it can do").unwrap();
        let loaded = Catalogue::load(Some(&data));
        std::fs::write(folder.join("broken.toml"), "name = 7").unwrap();
        let broken = Catalogue::load(Some(&data));
        std::fs::remove_dir_all(&data).unwrap();
        let catalogue = loaded.unwrap();
        assert_eq!(catalogue.targets().len(), BUILT_IN.len() + 1);
        assert_eq!(catalogue.choose("nginx").unwrap().profile.name, "mine");
        assert!(missing.contains("known/angie.toml cannot be read"), "{missing}");
        let known = catalogue.abilities("angie@mine");
        assert_eq!(known, Some(("known/angie.toml", "what it can do")));
        assert_eq!(catalogue.abilities("nginx"), None);
        assert!(broken.unwrap_err().to_string().contains("broken.toml"));
        assert!(Catalogue::load(Some(&data)).unwrap_err().to_string().contains("cannot be read"));
    }
}
