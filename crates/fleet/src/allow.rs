//! The targets that an agent may load. Without such a list, who can write to the bus could direct
//! the agents' load at any host.

use std::fmt;
use std::net::{IpAddr, ToSocketAddrs};
use std::str::FromStr;

use crate::order::Target;

/// A list of targets: `HOST:PORT`, `HOST:*`, `*:PORT`, and networks (`10.0.0.0/8`,
/// `10.0.0.0/8:1883`, `[fd00::/8]:1883`). An empty list allows nothing.
///
/// Names are resolved on the agent, whenever it is asked: an address counts, not what the
/// coordinator calls it.
///
/// # Examples
///
/// ```
/// use weigh_fleet::AllowList;
///
/// let list = AllowList::parse(&["broker.example:1883", "10.1.0.0/16:*"])?;
/// assert_eq!(list.to_string(), "broker.example:1883, 10.1.0.0/16:*");
/// assert!(AllowList::parse(&["*:*"]).is_err());
/// # Ok::<(), String>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AllowList(Vec<Entry>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Entry {
    who: Who,
    /// `None` for every port.
    port: Option<u16>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Who {
    Everyone,
    Network { first: IpAddr, prefix: u8 },
    Name(String),
}

impl AllowList {
    /// Reads entries as written after `--may-load`.
    ///
    /// # Errors
    /// The entry that is wrong, and what was expected.
    pub fn parse<S: AsRef<str>>(entries: &[S]) -> Result<AllowList, String> {
        entries.iter().map(|entry| entry.as_ref().parse()).collect::<Result<_, _>>().map(AllowList)
    }

    /// Checks a target. Names in the list are resolved, which may take as long as the system's
    /// resolver does.
    ///
    /// # Errors
    /// A sentence that names the target and the option that would allow it.
    pub fn check(&self, target: &Target) -> Result<(), String> {
        if self.allows(target, &resolve) {
            return Ok(());
        }
        let (host, port) = (&target.host, target.port);
        let address = match target.address.to_string() {
            address if address == format!("{host}:{port}") => String::new(),
            address => format!(" ({address})"),
        };
        Err(format!(
            "the agent may not load {host}:{port}{address}; help: start it with --may-load \
             {host}:{port}"
        ))
    }

    fn allows(&self, target: &Target, resolve: &dyn Fn(&str) -> Vec<IpAddr>) -> bool {
        let address = target.address.ip().to_canonical();
        let mut entries = self.0.iter();
        entries.any(|entry| {
            entry.port.is_none_or(|port| port == target.address.port())
                && match &entry.who {
                    Who::Everyone => true,
                    Who::Network { first, prefix } => is_within(address, *first, *prefix),
                    Who::Name(name) => {
                        resolve(name).into_iter().any(|known| known.to_canonical() == address)
                    }
                }
        })
    }
}

impl fmt::Display for AllowList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, Entry { who, port }) in self.0.iter().enumerate() {
            f.write_str(if index > 0 { ", " } else { "" })?;
            match who {
                Who::Everyone => f.write_str("*")?,
                Who::Name(name) => f.write_str(name)?,
                Who::Network { first: IpAddr::V4(first), prefix: 32 } => write!(f, "{first}")?,
                Who::Network { first: IpAddr::V4(first), prefix } => write!(f, "{first}/{prefix}")?,
                Who::Network { first, prefix: 128 } => write!(f, "[{first}]")?,
                Who::Network { first, prefix } => write!(f, "[{first}/{prefix}]")?,
            }
            match port {
                Some(port) => write!(f, ":{port}")?,
                None => f.write_str(":*")?,
            }
        }
        Ok(())
    }
}

impl FromStr for Entry {
    type Err = String;

    fn from_str(text: &str) -> Result<Entry, String> {
        let wrong = || {
            format!(
                "expected HOST:PORT, HOST:*, *:PORT or a network such as 10.0.0.0/8:1883 as a \
                 target that may be loaded, found {text:?}"
            )
        };
        let (host, port) = split(text).ok_or_else(wrong)?;
        let port = match port {
            "*" => None,
            // Digits only: a sign would be read too.
            digits if digits.bytes().all(|byte| byte.is_ascii_digit()) => {
                Some(digits.parse().ok().filter(|port| *port > 0).ok_or_else(wrong)?)
            }
            _ => return Err(wrong()),
        };
        let who = who(host).ok_or_else(wrong)?;
        if who == Who::Everyone && port.is_none() {
            return Err(format!("{text:?} would allow every target; help: name hosts or ports"));
        }
        Ok(Entry { who, port })
    }
}

/// Host and port of an entry; a network without a port has all of them.
fn split(text: &str) -> Option<(&str, &str)> {
    if let Some(rest) = text.strip_prefix('[') {
        let (host, after) = rest.split_once(']')?;
        return match after {
            "" if host.contains('/') => Some((host, "*")),
            _ => Some((host, after.strip_prefix(':')?)),
        };
    }
    match text.rsplit_once(':') {
        // The colons of an address of IPv6.
        Some((before, _)) if before.contains(':') => text.contains('/').then_some((text, "*")),
        Some(both) => Some(both),
        None => text.contains('/').then_some((text, "*")),
    }
}

fn who(host: &str) -> Option<Who> {
    if host == "*" {
        return Some(Who::Everyone);
    }
    if let Some((first, prefix)) = host.split_once('/') {
        let (first, prefix): (IpAddr, u8) = (first.parse().ok()?, prefix.parse().ok()?);
        return (prefix <= bits(first)).then_some(Who::Network { first, prefix });
    }
    if let Ok(first) = host.parse::<IpAddr>() {
        return Some(Who::Network { first, prefix: bits(first) });
    }
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
    let is_name = !host.is_empty() && host.bytes().all(is_name);
    is_name.then(|| Who::Name(host.to_ascii_lowercase()))
}

fn bits(address: IpAddr) -> u8 {
    if address.is_ipv4() { 32 } else { 128 }
}

fn is_within(address: IpAddr, first: IpAddr, prefix: u8) -> bool {
    let differing = match (address, first.to_canonical()) {
        (IpAddr::V4(address), IpAddr::V4(first)) => {
            u128::from(address.to_bits() ^ first.to_bits()) << 96
        }
        (IpAddr::V6(address), IpAddr::V6(first)) => address.to_bits() ^ first.to_bits(),
        _ => return false,
    };
    u32::from(prefix) <= differing.leading_zeros()
}

fn resolve(name: &str) -> Vec<IpAddr> {
    let found = (name, 0).to_socket_addrs();
    found.map(|found| found.map(|address| address.ip()).collect()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(host: &str, address: &str) -> Target {
        let address: std::net::SocketAddr = address.parse().unwrap();
        Target {
            scheme: "mqtt".to_owned(),
            host: host.to_owned(),
            port: address.port(),
            path: String::new(),
            address,
        }
    }

    fn allows(entry: &str, address: &str) -> bool {
        let list = AllowList::parse(&[entry]).unwrap();
        let known = |name: &str| match name {
            "broker.example" => vec!["10.0.0.9".parse().unwrap(), "fd00::9".parse().unwrap()],
            _ => Vec::new(),
        };
        list.allows(&target("whatever.example", address), &known)
    }

    #[test]
    fn entries_allow_what_they_name_and_nothing_else() {
        for (entry, allowed, refused) in [
            ("10.0.0.9:1883", "10.0.0.9:1883", "10.0.0.9:1884"),
            ("10.0.0.9:*", "10.0.0.9:5", "10.0.0.8:5"),
            ("*:1883", "8.8.8.8:1883", "8.8.8.8:1884"),
            ("10.0.0.0/8", "10.255.0.1:99", "11.0.0.1:99"),
            ("10.0.0.0/8:1883", "10.1.2.3:1883", "10.1.2.3:80"),
            ("10.0.0.0/31:1", "10.0.0.1:1", "10.0.0.2:1"),
            ("[fd00::/8]:1883", "[fd12::1]:1883", "[fe80::1]:1883"),
            ("fd00::/8", "[fd12::1]:80", "10.0.0.1:80"),
            ("[::1]:80", "[::1]:80", "[::2]:80"),
            ("127.0.0.1:80", "[::ffff:127.0.0.1]:80", "[::1]:80"),
            ("broker.example:1883", "10.0.0.9:1883", "10.0.0.8:1883"),
            ("BROKER.example:*", "[fd00::9]:7", "[fd00::8]:7"),
            ("other.example:1883", "0.0.0.0:1", "10.0.0.9:1883"),
        ] {
            assert!(allows(entry, allowed) || entry.starts_with("other"), "{entry} {allowed}");
            assert!(!allows(entry, refused), "{entry} {refused}");
        }
        assert!(allows("0.0.0.0/0:1883", "1.2.3.4:1883"));
    }

    /// What the coordinator calls an address does not count.
    #[test]
    fn a_name_of_the_coordinator_opens_nothing() {
        let list = AllowList::parse(&["localhost:1883"]).unwrap();
        assert_eq!(list.check(&target("localhost", "127.0.0.1:1883")), Ok(()));
        let refusal = list.check(&target("localhost", "10.0.0.9:1883")).unwrap_err();
        assert!(refusal.contains("localhost:1883 (10.0.0.9:1883)"), "{refusal}");
        assert!(refusal.contains("--may-load"), "{refusal}");
        let refusal = AllowList::default().check(&target("10.0.0.9", "10.0.0.9:80")).unwrap_err();
        assert!(refusal.contains("may not load 10.0.0.9:80;"), "{refusal}");
    }

    #[test]
    fn wrong_entries_are_named() {
        for wrong in [
            "",
            ":",
            "host",
            "host:",
            "host:0",
            "host:+1",
            "host:65536",
            "*",
            "a b:1",
            "10.0.0.0/33",
            "10.0.0.0/x:1",
            "::1",
            "[::1",
            "[::1]",
            "[::1]80",
            "::1:80",
            "mqtt://host:1883",
            "*.a:1",
        ] {
            let error = AllowList::parse(&["ok:1", wrong]).unwrap_err();
            assert!(error.contains(&format!("{wrong:?}")), "{error}");
        }
    }

    #[test]
    fn a_list_is_shown_as_it_can_be_written() {
        let written = ["a.b:1", "*:2", "10.0.0.1:*", "10.0.0.0/8:3", "[::1]:4", "[fd00::/8]:*"];
        let list = AllowList::parse(&written).unwrap();
        assert_eq!(list.to_string(), written.join(", "));
        assert_eq!(AllowList::parse(&list.to_string().split(", ").collect::<Vec<_>>()), Ok(list));
    }
}
