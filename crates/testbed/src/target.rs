//! A real server as data: how it is found, configured, started, made ready, counted and stopped.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use rustix::process::Signal;
use serde::Deserialize;
use weigh_model::{Durability, Nanos};

use crate::counter::Counter;
use crate::package::File;
use crate::package::Package;
use crate::template;

/// The names that every configuration and argument may use, besides those of its profiles.
/// `package` is the folder that `weigh targets install` filled, empty where there is none. `tls` is
/// the folder of the certificates, `tls_key` the server's key; `tls_listen`, `tls_lines` and
/// `websocket_lines` are empty without TLS and WebSocket.
pub const PLACEHOLDERS: [&str; 10] = [
    "address",
    "port",
    "dir",
    "user",
    "package",
    "tls",
    "tls_key",
    "tls_listen",
    "tls_lines",
    "websocket_lines",
];

/// One file of `targets/`.
///
/// # Examples
///
/// ```
/// use weigh_testbed::catalogue::Catalogue;
///
/// let catalogue = Catalogue::load(None)?;
/// let is_mqtt = |target: &&weigh_testbed::target::Target| target.speaks[0].protocol == "mqtt";
/// assert!(catalogue.targets().iter().filter(is_mqtt).count() > 1);
/// # Ok::<(), weigh_testbed::target::TargetError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Target {
    /// Its name in options and plans.
    pub name: String,
    /// Its official name.
    pub title: String,
    /// What it is, in one line.
    pub about: String,
    /// The protocols it speaks, all on `{port}`; the first is the default.
    pub speaks: Vec<Speaks>,
    /// User and password of clients; absent if the server needs none.
    #[serde(default)]
    pub client: Option<Client>,
    /// How it is found.
    pub find: Find,
    /// How it is installed; absent if only the user can install it.
    #[serde(default)]
    pub package: Option<Package>,
    /// Files to write into its own folder before it starts.
    #[serde(default, rename = "file")]
    pub files: Vec<File>,
    /// Commands that run to their end before it starts, in this order.
    #[serde(default, rename = "prepare")]
    pub preparations: Vec<Prepare>,
    /// How it is started.
    pub start: Start,
    /// When it is ready.
    pub ready: Ready,
    /// How it is stopped.
    pub stop: Stop,
    /// Its settings for TLS; absent if it cannot use TLS or its file has no settings.
    #[serde(default)]
    pub tls: Option<Tls>,
    /// Its settings for WebSocket; absent if it cannot, or its file has no settings.
    #[serde(default)]
    pub websocket: Option<WebSocket>,
    /// The file of `weigh probe -o` next to this one that says what it can do; absent if
    /// it was not probed.
    #[serde(default)]
    pub abilities: Option<String>,
    /// What a confirmation means, unless a profile says otherwise; absent if it is unknown.
    #[serde(default)]
    pub durability: Option<KnownDurability>,
    /// Its counters, if it has any.
    #[serde(default, rename = "counter")]
    pub counters: Vec<Counter>,
    /// Its profiles; the first is the default.
    #[serde(rename = "profile")]
    pub profiles: Vec<Profile>,
}

/// A protocol and the scheme of its URL.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Speaks {
    /// The protocol by its name in the registry: `http1`.
    pub protocol: String,
    /// The scheme of its URLs: `http`.
    pub scheme: String,
    /// Keys of the protocol and all the values of each that it can do; of a key that is not named
    /// it can do every value.
    #[serde(default)]
    pub can: BTreeMap<String, Vec<String>>,
    /// Values of keys of the protocol that it needs, in place of the protocol's defaults.
    #[serde(default, rename = "use")]
    pub uses: BTreeMap<String, String>,
}

/// User and password of clients.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Client {
    /// The user name.
    pub user: String,
    /// The password. It need not be secret: the server is local and ends with the run.
    #[serde(default)]
    pub password: String,
}

/// How a server is found on this machine.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Find {
    /// Names to search for, or absolute paths; the first one found is used.
    pub binaries: Vec<String>,
    /// Folders to search after those of `PATH`.
    #[serde(default)]
    pub folders: Vec<PathBuf>,
    /// Files that must exist too, if the program is not the server's alone.
    #[serde(rename = "beside", default)]
    pub companions: Vec<PathBuf>,
    /// How it reports its version; left out where a package says it.
    #[serde(default)]
    pub version: Option<Version>,
    /// What to type to get it.
    pub install: String,
}

/// How a server reports its version: on stdout or stderr, in the first word after a text.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Version {
    /// The program that reports it; the server's own program if left out.
    #[serde(default)]
    pub program: Option<String>,
    /// Arguments that make it report its version.
    pub arguments: Vec<String>,
    /// Text before the version.
    pub after: String,
}

/// How a server is started.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Start {
    /// Arguments with `{placeholders}`.
    #[serde(default)]
    pub arguments: Vec<String>,
    /// Environment variables added to those of this process, with `{placeholders}`.
    #[serde(default)]
    pub environment: BTreeMap<String, String>,
    /// Names of more ports that it needs: `monitor` fills `{port_monitor}`.
    #[serde(default)]
    pub ports: Vec<String>,
}

/// A command that runs to its end before a server starts, in its folder and environment.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Prepare {
    /// The program and its arguments, with `{placeholders}`.
    pub run: Vec<String>,
    /// Time limit of the command.
    pub within: Nanos,
}

/// When a server is ready: its port takes connections, and its log has a certain line.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ready {
    /// Text that one line of its log must contain, if an open port is not enough.
    pub log_line: Option<String>,
    /// Time limit until it is ready.
    pub within: Nanos,
    /// True if its port takes datagrams and no connections.
    #[serde(default)]
    pub datagrams: bool,
}

/// How a server is stopped.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stop {
    /// The signal that stops it.
    pub signal: StopSignal,
    /// Time after which it is killed.
    pub grace: Nanos,
}

/// Settings of a server for WebSocket.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WebSocket {
    /// Value of `{websocket_lines}`.
    pub lines: String,
}

/// Settings of a server for TLS. The folder `{tls}` holds `ca.pem` and `server.pem`; the key is
/// `{tls_key}`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tls {
    /// Value of `{tls_listen}`.
    #[serde(default)]
    pub listen: String,
    /// Value of `{tls_lines}`.
    pub lines: String,
    /// Lines added where clients must show certificates.
    pub mutual: String,
}

/// A signal that stops a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum StopSignal {
    /// SIGTERM.
    Term,
    /// SIGINT.
    Int,
    /// SIGQUIT.
    Quit,
}

impl StopSignal {
    /// The signal itself.
    pub fn signal(self) -> Signal {
        match self {
            StopSignal::Term => Signal::TERM,
            StopSignal::Int => Signal::INT,
            StopSignal::Quit => Signal::QUIT,
        }
    }
}

/// What a confirmation of a server means, and how that is known.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KnownDurability {
    /// What it means.
    pub value: Durability,
    /// The reason: which setting, what the documentation says.
    pub evidence: String,
}

/// One configuration of a server.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// Its name after the `@`.
    pub name: String,
    /// What it is, in one line.
    pub about: String,
    /// What a confirmation means in this profile, if it differs from the target's.
    #[serde(default)]
    pub durability: Option<KnownDurability>,
    /// How the target speaks protocols in this profile, where that differs.
    #[serde(default)]
    pub speaks: Vec<Speaks>,
    /// Values of `{placeholders}` in files and arguments.
    #[serde(default)]
    pub values: BTreeMap<String, String>,
    /// Files that replace those of the target with the same names, or are added.
    #[serde(default, rename = "file")]
    pub files: Vec<File>,
}

/// A file of `targets/` that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TargetError {
    /// The text cannot be parsed as a target.
    #[error("{file}: {error}\nhelp: correct the file")]
    Syntax {
        /// The file.
        file: String,
        /// The parser's message, with line, column and the line itself.
        error: String,
    },
    /// The text is well-formed and contradicts itself.
    #[error("{file}: {error}")]
    Meaning {
        /// The file.
        file: String,
        /// What is wrong, and the fix.
        error: String,
    },
    /// The file or its folder cannot be read.
    #[error("{file} cannot be read: {error}; check its permissions")]
    Unreadable {
        /// The file.
        file: String,
        /// The system's error.
        error: String,
    },
    /// Unknown target or profile.
    #[error("{error}")]
    Unknown {
        /// The unknown name, and the known ones.
        error: String,
    },
}

impl Target {
    /// Reads a target; `file` is named in errors.
    ///
    /// # Errors
    /// [`TargetError::Syntax`] and [`TargetError::Meaning`].
    pub fn parse(file: &str, text: &str) -> Result<Target, TargetError> {
        let target: Target = toml::from_str(text).map_err(|error| TargetError::Syntax {
            file: file.to_owned(),
            error: error.to_string().trim_end().to_owned(),
        })?;
        target.check().map_err(|error| TargetError::Meaning { file: file.to_owned(), error })?;
        Ok(target)
    }

    /// Returns the profile of this name, or the first one for `None`.
    ///
    /// # Errors
    /// [`TargetError::Unknown`] with the known names.
    pub fn profile(&self, name: Option<&str>) -> Result<&Profile, TargetError> {
        let found = match name {
            Some(name) => self.profiles.iter().find(|profile| profile.name == name),
            None => self.profiles.first(),
        };
        found.ok_or_else(|| {
            let names: Vec<String> =
                self.profiles.iter().map(|p| format!("{}@{}", self.name, p.name)).collect();
            let error = format!(
                "{} has no profile {:?}; type {}",
                self.name,
                name.unwrap_or_default(),
                names.join(" or ")
            );
            TargetError::Unknown { error }
        })
    }

    /// Returns what a confirmation means in this profile; `None` if it is unknown.
    pub fn durability(&self, profile: &Profile) -> Option<KnownDurability> {
        profile.durability.clone().or_else(|| self.durability.clone())
    }

    /// Returns the scheme of this protocol, or the first scheme for `None`.
    pub fn scheme(&self, protocol: Option<&str>) -> Option<&str> {
        let mut speaks = self.speaks.iter();
        let found = match protocol {
            Some(protocol) => speaks.find(|speaks| speaks.protocol == protocol),
            None => speaks.next(),
        };
        found.map(|speaks| speaks.scheme.as_str())
    }

    /// How it speaks a protocol in this profile.
    fn spoken<'t>(&'t self, profile: &'t Profile, protocol: &str) -> Option<&'t Speaks> {
        let mut all = profile.speaks.iter().chain(&self.speaks);
        all.find(|speaks| speaks.protocol == protocol)
    }

    /// Checks that it can do this value of a key of a protocol in this profile.
    ///
    /// # Errors
    /// The values that it can do.
    pub fn can(
        &self,
        profile: &Profile,
        protocol: &str,
        key: &str,
        value: &str,
    ) -> Result<(), String> {
        match self.spoken(profile, protocol).and_then(|speaks| speaks.can.get(key)) {
            Some(values) if !values.iter().any(|known| known == value) => Err(values.join(" or ")),
            _ => Ok(()),
        }
    }

    /// True if its file names this value among those that it can do.
    pub fn names(&self, profile: &Profile, protocol: &str, key: &str, value: &str) -> bool {
        let values = self.spoken(profile, protocol).and_then(|speaks| speaks.can.get(key));
        values.is_some_and(|values| values.iter().any(|known| known == value))
    }

    /// Settings of a protocol that it needs in this profile, in place of the defaults.
    pub fn uses<'t>(
        &'t self,
        profile: &'t Profile,
        protocol: &str,
    ) -> impl Iterator<Item = (&'t str, &'t str)> {
        let uses = self.spoken(profile, protocol).into_iter().flat_map(|speaks| &speaks.uses);
        uses.map(|(key, value)| (key.as_str(), value.as_str()))
    }

    /// The files of a profile, which replace those of the target with the same names.
    pub fn files_of<'a>(&'a self, profile: &'a Profile) -> Vec<&'a File> {
        let replaced: BTreeSet<&str> = profile.files.iter().map(|f| f.name.as_str()).collect();
        let kept = self.files.iter().filter(|file| !replaced.contains(file.name.as_str()));
        kept.chain(&profile.files).collect()
    }

    fn check(&self) -> Result<(), String> {
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        for name in [&self.name].into_iter().chain(self.profiles.iter().map(|p| &p.name)) {
            if name.is_empty() || !name.chars().all(plain) {
                return Err(format!("invalid name {name:?}: use letters, digits, - _ . only"));
            }
        }
        if self.speaks.is_empty() {
            return Err("`speaks` is empty: name a protocol and its scheme".to_owned());
        }
        if self.find.binaries.is_empty() {
            return Err("`find.binaries` is empty: name the program".to_owned());
        }
        if self.profiles.is_empty() {
            return Err("no [[profile]]: add one, e.g. `defaults`".to_owned());
        }
        unique("profile", self.profiles.iter().map(|profile| &profile.name))?;
        unique("counter", self.counters.iter().map(|counter| &counter.name))?;
        unique("port", self.start.ports.iter())?;
        let lower = |c: char| c.is_ascii_lowercase() || c == '_';
        if let Some(name) = self.start.ports.iter().find(|n| n.is_empty() || !n.chars().all(lower))
        {
            return Err(format!("invalid port name {name:?}: use lower-case letters and _ only"));
        }
        if self.find.version.is_none() && self.package.as_ref().is_none_or(Package::is_of_system) {
            return Err("`find.version` is missing: write how it reports its version".to_owned());
        }
        self.package.as_ref().map_or(Ok(()), Package::check)?;
        let known = self.profiles.iter().filter_map(|profile| profile.durability.as_ref());
        for known in known.chain(&self.durability) {
            if known.evidence.trim().is_empty() {
                return Err("`durability.evidence` is empty: write how it is known".to_owned());
            }
        }
        self.preparations.iter().try_for_each(|prepare| match prepare.run.is_empty() {
            true => Err("[[prepare]] has an empty `run`: name a program".to_owned()),
            false => Ok(()),
        })?;
        self.counters.iter().try_for_each(Counter::check)?;
        self.profiles.iter().try_for_each(|profile| self.check_profile(profile))
    }

    fn check_profile(&self, profile: &Profile) -> Result<(), String> {
        let files = self.files_of(profile);
        unique("file", files.iter().map(|file| &file.name))?;
        if let Some(file) = files.iter().find(|f| f.name.is_empty() || f.name.contains('/')) {
            return Err(format!("invalid file name {:?}: use a name without a path", file.name));
        }
        if let Some(name) = profile.values.keys().find(|n| PLACEHOLDERS.contains(&n.as_str())) {
            return Err(format!(
                "profile {} sets {name}, which has a fixed value: remove it",
                profile.name
            ));
        }
        let mut texts: Vec<&str> = files.iter().map(|file| file.text.as_str()).collect();
        texts.extend(self.start.arguments.iter().map(String::as_str));
        texts.extend(self.start.environment.values().map(String::as_str));
        texts.extend(self.preparations.iter().flat_map(|own| &own.run).map(String::as_str));
        texts.extend(self.counters.iter().filter_map(|own| own.url.as_deref()));
        let used: BTreeSet<&str> = texts.into_iter().flat_map(template::names).collect();
        let is_port = |name: &str| {
            let port = name.strip_prefix(PORT_PREFIX);
            port.is_some_and(|port| self.start.ports.iter().any(|own| own == port))
        };
        let known = |name: &str| {
            PLACEHOLDERS.contains(&name) || is_port(name) || profile.values.contains_key(name)
        };
        if let Some(name) = used.iter().find(|name| !known(name)) {
            return Err(format!("profile {} has no value for {{{name}}}: add one", profile.name));
        }
        match profile.values.keys().find(|name| !used.contains(name.as_str())) {
            Some(name) => Err(format!(
                "profile {} sets {name}, which no file and no argument uses: remove it",
                profile.name
            )),
            None => Ok(()),
        }
    }
}

/// Prefix of the placeholders of further ports.
pub const PORT_PREFIX: &str = "port_";

fn unique<'a>(what: &str, names: impl Iterator<Item = &'a String>) -> Result<(), String> {
    let mut seen = BTreeSet::new();
    for name in names {
        if !seen.insert(name) {
            return Err(format!("duplicate {what} {name:?}: remove one"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: &str = r#"
name = "small"
title = "Small"
about = "a test"
speaks = [{ protocol = "tcp", scheme = "tcp" }]
[find]
binaries = ["small"]
version = { arguments = ["-v"], after = "small " }
install = "apt-get install small"
[[file]]
name = "a.conf"
text = "listen {port} {size}"
[start]
arguments = ["{dir}/a.conf"]
[ready]
within = "1s"
[stop]
signal = "TERM"
grace = "1s"
[[profile]]
name = "defaults"
about = "as it comes"
values = { size = "1" }
[[profile]]
name = "other"
about = "another file"
[[profile.file]]
name = "a.conf"
text = "listen {port}"
"#;

    fn refused(from: &str, to: &str) -> String {
        assert!(SMALL.contains(from), "{from}");
        Target::parse("small.toml", &SMALL.replacen(from, to, 1)).unwrap_err().to_string()
    }

    #[test]
    fn a_target_is_read() {
        let target = Target::parse("small.toml", SMALL).unwrap();
        assert_eq!(target.profile(None).unwrap().name, "defaults");
        assert_eq!(
            target.files_of(target.profile(Some("other")).unwrap())[0].text,
            "listen {port}"
        );
        assert_eq!(target.scheme(None), Some("tcp"));
        assert_eq!(target.scheme(Some("mqtt")), None);
        assert_eq!(target.ready.within.to_string(), Nanos::from_secs(1).to_string());
    }

    #[test]
    fn what_is_not_listed_is_not_named() {
        let listed = SMALL.replacen("\"tcp\" }", "\"tcp\", can = { quic = [\"true\"] } }", 1);
        for (text, is_listed) in [(SMALL, false), (&*listed, true)] {
            let target = Target::parse("small.toml", text).unwrap();
            assert_eq!(target.names(&target.profiles[0], "tcp", "quic", "true"), is_listed);
        }
    }

    #[test]
    fn errors_name_file_and_line() {
        let error = refused("install =", "instal =");
        assert!(error.contains("small.toml") && error.contains("line 9"), "{error}");
        assert!(error.contains("instal"), "{error}");
        let error = refused("grace = \"1s\"", "grace = \"1\"");
        assert!(error.contains("line 19"), "{error}");
    }

    #[test]
    fn contradictions_are_refused() {
        for (from, to, expected) in [
            ("{size}", "{width}", "no value for {width}"),
            ("size = \"1\"", "size = \"1\", more = \"2\"", "sets more"),
            ("size = \"1\"", "port = \"1\"", "sets port, which has a fixed value"),
            ("name = \"a.conf\"", "name = \"../a.conf\"", "invalid file name"),
            ("name = \"other\"", "name = \"defaults\"", "duplicate"),
            ("binaries = [\"small\"]", "binaries = []", "find.binaries"),
            ("name = \"small\"", "name = \"a b\"", "letters"),
        ] {
            let error = refused(from, to);
            assert!(error.contains(expected), "{error}");
        }
    }

    #[test]
    fn a_missing_profile_names_the_others() {
        let target = Target::parse("small.toml", SMALL).unwrap();
        let error = target.profile(Some("x")).unwrap_err().to_string();
        assert!(error.contains("small@defaults or small@other"), "{error}");
    }
}
