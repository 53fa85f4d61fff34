//! The address of a target: a URL with its secrets kept separate.

use std::fmt;
use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

/// The address of a target and the credentials for it.
///
/// # Examples
///
/// ```
/// use weigh_model::Endpoint;
///
/// let endpoint = Endpoint::parse("mqtt://ann:secret@localhost:1883")?;
/// assert_eq!(endpoint.authority(), "localhost:1883");
/// assert_eq!(endpoint.to_string(), "mqtt://localhost:1883", "secrets are never printed");
/// # Ok::<(), String>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// One of a protocol's schemes ([`crate::protocol::Scheme`]), in lower case.
    pub scheme: String,
    /// Host as written: a name or an address.
    pub host: String,
    /// Port; 0 where none was written and the scheme has not been looked up.
    pub port: u16,
    /// Path of an HTTP or WebSocket target with its leading slash, else empty.
    pub path: String,
    /// Credentials for the target, if any.
    pub credentials: Option<Credentials>,
    /// Address of the host, filled in before a trial starts.
    pub address: Option<SocketAddr>,
}

/// A user name and its password. The password is never printed, serialised or recorded.
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    /// User name.
    pub user: String,
    /// Password.
    pub password: String,
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Credentials({}, password hidden)", self.user)
    }
}

impl Endpoint {
    /// An endpoint on an address that is already known.
    pub fn at(scheme: &str, address: SocketAddr) -> Endpoint {
        Endpoint {
            scheme: scheme.to_owned(),
            host: address.ip().to_string(),
            port: address.port(),
            path: String::new(),
            credentials: None,
            address: Some(address),
        }
    }

    /// Reads `scheme://[user[:password]@]host[:port][/path]`; the port is 0 if there is none. The
    /// registry of protocols knows the schemes and their ports.
    ///
    /// # Errors
    /// If it does not have this form.
    pub fn parse(url: &str) -> Result<Endpoint, String> {
        let (scheme, rest) = url
            .split_once("://")
            .ok_or_else(|| format!("{url:?} is not a URL: type mqtt://HOST:PORT"))?;
        // RFC 3986, section 3.1: schemes are case-insensitive.
        let scheme = &*scheme.to_ascii_lowercase();
        // Section 3.5: a fragment is for the client, and never sent.
        let rest = rest.split_once('#').map_or(rest, |(sent, _)| sent);
        // Section 3.2: the authority ends at the path or at the query.
        let (authority, path) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
        let slash = if path.starts_with('?') { "/" } else { "" };
        let (credentials, host_port) = match authority.rsplit_once('@') {
            Some((user, host_port)) => (Some(parse_credentials(user)), host_port),
            None => (None, authority),
        };
        let shown = || format!("{scheme}://{host_port}{path}");
        let (host, port) = split_port(host_port).map_err(|said| format!("{}: {said}", shown()))?;
        if host.is_empty() {
            return Err(format!("{scheme}:// has no host: type {scheme}://127.0.0.1:PORT"));
        }
        let port = port.unwrap_or(0);
        Ok(Endpoint {
            scheme: scheme.to_owned(),
            host: host.to_owned(),
            port,
            path: format!("{slash}{path}"),
            credentials,
            address: None,
        })
    }

    /// Returns the endpoint with a port: `usual` if it has none.
    ///
    /// # Errors
    /// If it has none and `usual` is 0.
    pub fn with_port(mut self, usual: u16) -> Result<Endpoint, String> {
        self.port = if self.port == 0 { usual } else { self.port };
        if self.port == 0 {
            let typed = Endpoint { path: String::new(), ..self };
            return Err(format!("{typed} has no port: type {typed}:PORT"));
        }
        Ok(self)
    }

    /// The host as a URL has it: an IPv6 address in brackets (RFC 3986, section 3.2.2).
    pub fn url_host(&self) -> String {
        if self.host.contains(':') { format!("[{}]", self.host) } else { self.host.clone() }
    }

    /// Host and port as requests name them (RFC 9110, section 7.2).
    pub fn authority(&self) -> String {
        format!("{}:{}", self.url_host(), self.port)
    }

    /// Host and port as requests name them, without the port if it is the `usual` one of the scheme
    /// (section 4.2.3).
    pub fn authority_omitting(&self, usual: u16) -> String {
        if self.port == usual { self.url_host() } else { self.authority() }
    }
}

fn parse_credentials(text: &str) -> Credentials {
    let (user, password) = text.split_once(':').unwrap_or((text, ""));
    Credentials { user: percent_decoded(user), password: percent_decoded(password) }
}

/// The text without escapes (RFC 3986, section 2.1); a percent sign that does not begin an escape
/// stays.
pub fn percent_decoded(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut plain = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let escape = (bytes[at] == b'%')
            .then(|| text.get(at + 1..at + 3))
            .flatten()
            .and_then(|hex| u8::from_str_radix(hex, 16).ok());
        plain.push(escape.unwrap_or(bytes[at]));
        at += if escape.is_some() { 3 } else { 1 };
    }
    String::from_utf8_lossy(&plain).into_owned()
}

fn split_port(text: &str) -> Result<(&str, Option<u16>), String> {
    let (host, port) = match text.strip_prefix('[') {
        Some(rest) => {
            let (host, after) = rest.split_once(']').ok_or_else(|| {
                format!("{text:?} lacks its closing bracket: type [ADDRESS]:PORT")
            })?;
            (host, after.strip_prefix(':'))
        }
        None => match text.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (text, None),
        },
    };
    let port = port
        .map(|port| port.parse().map_err(|_| format!("{port:?} is not a port: type 1 to 65535")))
        .transpose()?;
    Ok((host, port))
}

/// The URL without user and password.
impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}", self.scheme, self.url_host())?;
        if self.port != 0 {
            write!(f, ":{}", self.port)?;
        }
        f.write_str(&self.path)
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Endpoint({self})")
    }
}

impl Serialize for Endpoint {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Endpoint {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Endpoint, D::Error> {
        Endpoint::parse(&String::deserialize(deserializer)?).map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_taken_apart() {
        let endpoint = Endpoint::parse("mqtt://me:p%40ss@broker.local").unwrap();
        assert_eq!((endpoint.host.as_str(), endpoint.port), ("broker.local", 0));
        assert_eq!(
            endpoint.clone().with_port(1883).unwrap().to_string(),
            "mqtt://broker.local:1883"
        );
        let credentials = endpoint.credentials.clone().unwrap();
        assert_eq!((credentials.user.as_str(), credentials.password.as_str()), ("me", "p@ss"));
        let endpoint = Endpoint::parse("http://[::1]:8080/a/b").unwrap();
        assert_eq!((endpoint.host.as_str(), endpoint.path.as_str()), ("::1", "/a/b"));
        assert_eq!(endpoint.to_string(), "http://[::1]:8080/a/b");
        assert_eq!(endpoint.authority(), "[::1]:8080");
        assert_eq!(endpoint.authority_omitting(8080), "[::1]");
    }

    #[test]
    fn what_is_not_sent_is_no_part_of_the_path() {
        for (url, sent) in [
            ("http://h/#frag", "http://h/"),
            ("http://h#frag", "http://h"),
            ("http://h/a?b=1#c", "http://h/a?b=1"),
            ("http://h?b=1", "http://h/?b=1"),
            ("HTTP://h:8080/A", "http://h:8080/A"),
            ("MQTT://h", "mqtt://h"),
        ] {
            assert_eq!(Endpoint::parse(url).unwrap().to_string(), sent, "{url}");
        }
    }

    #[test]
    fn the_password_is_never_printed() {
        let endpoint = Endpoint::parse("mqtt://me:secret@h:1").unwrap();
        for text in
            [endpoint.to_string(), format!("{endpoint:?}"), format!("{:?}", endpoint.credentials)]
        {
            assert!(!text.contains("secret"), "{text}");
        }
    }

    #[test]
    fn what_is_missing_is_named() {
        assert!(Endpoint::parse("tcp://h").unwrap().with_port(0).unwrap_err().contains("no port"));
        assert!(Endpoint::parse("mqtt://:1").unwrap_err().contains("no host"));
        assert!(Endpoint::parse("mqtt://h:99999").unwrap_err().contains("not a port"));
    }
}
