//! Observation of an external server: a process, a container, a control group, or an agent on the
//! target's host.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::endpoint::Endpoint;

/// Observation of a target.
///
/// # Examples
///
/// ```
/// use weigh_model::lookout::{Lookout, Vantage};
///
/// let lookout: Lookout = "port:1883".parse()?;
/// assert_eq!(lookout.at, Vantage::Port(1883));
/// # Ok::<(), String>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lookout {
    /// The target's URL as it is recorded; `None` if there is only one.
    pub target: Option<String>,
    /// Place of the observation.
    pub at: Vantage,
}

/// Place of an observation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Vantage {
    /// A process of this machine and all its descendants.
    Process(u32),
    /// The process of this machine that listens on this TCP port, and all its descendants.
    Port(u16),
    /// A container of this machine, by its name or id.
    Container(String),
    /// A control group of this machine: a folder, or its name below `/sys/fs/cgroup`.
    Group(String),
    /// Host of an agent (`weigh observe`).
    Agent(AgentAddress),
}

/// Address of an agent, and how both sides authenticate.
#[derive(Clone, PartialEq, Eq)]
pub struct AgentAddress {
    /// Name or address of its host.
    pub host: String,
    /// Its TCP port.
    pub port: u16,
    /// SHA-256 of its certificate; a connection with another certificate is refused.
    pub fingerprint: [u8; 32],
    /// The token that it requires; never printed, serialised or recorded.
    pub token: Option<String>,
}

impl AgentAddress {
    /// The address as it is typed: with the token.
    pub fn with_token(&self) -> String {
        let token = self.token.as_ref().map_or(String::new(), |token| format!("#{token}"));
        format!("{self}{token}")
    }
}

impl fmt::Debug for AgentAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AgentAddress({self}, token hidden)")
    }
}

/// Without the token.
impl fmt::Display for AgentAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (open, close) = if self.host.contains(':') { ("[", "]") } else { ("", "") };
        write!(f, "{SCHEME}{open}{}{close}:{}/", self.host, self.port)?;
        self.fingerprint.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// Without the token of an agent.
impl fmt::Display for Vantage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Vantage::Process(pid) => write!(f, "pid:{pid}"),
            Vantage::Port(port) => write!(f, "port:{port}"),
            Vantage::Container(name) => write!(f, "container:{name}"),
            Vantage::Group(path) => write!(f, "cgroup:{path}"),
            Vantage::Agent(address) => address.fmt(f),
        }
    }
}

/// Without the token of an agent.
impl fmt::Display for Lookout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(target) = &self.target {
            write!(f, "{target}=")?;
        }
        self.at.fmt(f)
    }
}

impl FromStr for Vantage {
    type Err = String;

    /// Reads `pid:N`, `port:N`, `container:NAME`, `cgroup:PATH` or
    /// `weigh-observe://HOST:PORT/FINGERPRINT[#TOKEN]`.
    fn from_str(text: &str) -> Result<Vantage, String> {
        if let Some(rest) = text.strip_prefix(SCHEME) {
            return agent(rest).map(Vantage::Agent);
        }
        let (what, value) = text.split_once(':').unwrap_or((text, ""));
        let number = |kind: &str| format!("{value:?} is not a {kind}: type {what}:1234");
        match what {
            "pid" => match value.parse() {
                Ok(pid) if pid > 0 => Ok(Vantage::Process(pid)),
                _ => Err(number("number of a process")),
            },
            "port" => match value.parse() {
                Ok(port) if port > 0 => Ok(Vantage::Port(port)),
                _ => Err(number("port")),
            },
            "container" if is_container(value) => Ok(Vantage::Container(value.to_owned())),
            "container" => Err(format!("{value:?} is not a container's name: type container:NAME")),
            "cgroup" if !value.is_empty() => Ok(Vantage::Group(value.to_owned())),
            _ => Err(format!(
                "cannot observe {:?}: type pid:N, port:N, container:NAME, cgroup:PATH or \
                 {SCHEME}HOST:PORT/FINGERPRINT#TOKEN",
                text.split('#').next().unwrap_or_default()
            )),
        }
    }
}

impl FromStr for Lookout {
    type Err = String;

    /// Reads what is observed, after `URL=` if there are several targets.
    fn from_str(text: &str) -> Result<Lookout, String> {
        if KINDS.iter().any(|kind| text.starts_with(kind)) {
            return Ok(Lookout { target: None, at: text.parse()? });
        }
        let place = KINDS.iter().filter_map(|kind| text.find(&format!("={kind}"))).min();
        let Some(place) = place else { return text.parse().map(|at| Lookout { target: None, at }) };
        let target = Endpoint::parse(&text[..place])?.to_string();
        Ok(Lookout { target: Some(target), at: text[place + 1..].parse()? })
    }
}

impl Serialize for Lookout {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Lookout {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Lookout, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

/// `HOST:PORT/FINGERPRINT[#TOKEN]`.
fn agent(rest: &str) -> Result<AgentAddress, String> {
    let (address, token) = match rest.split_once('#') {
        Some((address, token)) => (address, Some(token.to_owned()).filter(|own| !own.is_empty())),
        None => (rest, None),
    };
    let (authority, fingerprint) = address.split_once('/').unwrap_or((address, ""));
    // Host and port follow the rules of all URLs.
    let endpoint = Endpoint::parse(&format!("tcp://{authority}"))
        .and_then(|endpoint| endpoint.with_port(0))
        .map_err(|said| said.replace("tcp://", SCHEME))?;
    let fingerprint = fingerprint_of(fingerprint).ok_or_else(|| {
        format!(
            "{SCHEME}{authority} lacks the fingerprint of its certificate, 64 hexadecimal digits: \
             type the whole of what weigh observe printed there"
        )
    })?;
    Ok(AgentAddress { host: endpoint.host, port: endpoint.port, fingerprint, token })
}

fn fingerprint_of(text: &str) -> Option<[u8; 32]> {
    let mut bytes = [0; 32];
    if text.len() != 64 || !text.is_ascii() {
        return None;
    }
    for (place, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&text[2 * place..2 * place + 2], 16).ok()?;
    }
    Some(bytes)
}

/// Returns true for a name or an id that Docker and Podman accept.
fn is_container(name: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_.-".contains(c);
    name.starts_with(|c: char| c.is_ascii_alphanumeric()) && name.chars().all(is_plain)
}

/// Begin of the address of an agent.
pub const SCHEME: &str = "weigh-observe://";

/// Begins of all kinds.
const KINDS: [&str; 5] = ["pid:", "port:", "container:", "cgroup:", SCHEME];

#[cfg(test)]
mod tests {
    use super::*;

    const PIN: &str = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";

    #[test]
    fn what_is_watched_is_read_and_written() {
        for text in ["pid:7", "port:1883", "container:web_1", "cgroup:/docker/ab=c"] {
            let lookout: Lookout = text.parse().unwrap();
            assert_eq!((lookout.target.as_ref(), lookout.to_string().as_str()), (None, text));
        }
        let lookout: Lookout = "http://me:pw@h/a?b=c=pid:9".parse().unwrap();
        assert_eq!(lookout.target.as_deref(), Some("http://h/a?b=c"));
        assert_eq!(lookout.at, Vantage::Process(9));
        assert_eq!(lookout.to_string().parse(), Ok(lookout));
    }

    #[test]
    fn the_token_of_an_agent_is_never_written() {
        let text = format!("mqtt://h:1={SCHEME}[::1]:4/{PIN}#secret");
        let lookout: Lookout = text.parse().unwrap();
        let Vantage::Agent(address) = &lookout.at else { panic!("{lookout}") };
        assert_eq!((address.host.as_str(), address.port), ("::1", 4));
        assert_eq!((address.fingerprint[1], address.fingerprint[31]), (0x11, 0xff));
        assert_eq!(address.token.as_deref(), Some("secret"));
        assert!(address.with_token().ends_with("#secret"));
        for shown in
            [lookout.to_string(), format!("{lookout:?}"), serde_json::to_string(&lookout).unwrap()]
        {
            assert!(!shown.contains("secret") && shown.contains(PIN), "{shown}");
        }
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (text, told) in [
            ("pid:x", "number of a process"),
            ("pid:0", "number of a process"),
            ("port:99999", "not a port"),
            ("container:a/b", "not a container's name"),
            ("cgroup:", "type pid:N"),
            ("mosquitto", "type pid:N"),
            ("weigh-observe://h:1", "fingerprint"),
            ("weigh-observe://h:1/00#t", "fingerprint"),
            ("weigh-observe://h/00#t", "no port"),
            ("ftp://=pid:1", "no host"),
        ] {
            let said = text.parse::<Lookout>().unwrap_err();
            assert!(said.contains(told) && !said.contains("#t"), "{text}: {said}");
        }
    }
}
