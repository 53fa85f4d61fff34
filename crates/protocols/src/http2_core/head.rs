//! The request that all clients of a trial send, in any version of HTTP with pseudo-headers; frames
//! and compression are each version's own.

use weigh_model::protocol::Invalid;
use weigh_model::tls;
use weigh_model::trial::{Settings, Trial};

use super::request::{RequestPath, RequestTemplate};
use crate::fields;
use crate::name_pattern::NamePattern;

/// Names of a version.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Naming {
    /// First part of its keys: `http2`.
    pub(crate) key: &'static str,
    /// Scheme of its URLs with TLS.
    pub(crate) secure: &'static str,
}

/// Reads the request of a trial, and checks it.
///
/// # Errors
/// What HTTP does not allow, and its key.
pub(crate) fn template(trial: &Trial, naming: &Naming) -> Result<RequestTemplate, Invalid> {
    let settings = &trial.settings;
    let endpoint = trial.endpoint.as_ref();
    let written = endpoint.map_or("", |endpoint| endpoint.path.as_str());
    let path = if written.is_empty() { settings.text("path") } else { written };
    let is_secure = tls::is_on(settings) || endpoint.is_some_and(|own| own.scheme == naming.secure);
    let method = match settings.text("method") {
        "" => "POST",
        method => method,
    };
    let scheme = if is_secure { "https" } else { "http" };
    let authority = endpoint.map_or("localhost".to_owned(), |endpoint| endpoint.authority());
    check_authority(&authority)?;
    let path = match NamePattern::of(path) {
        Some(pattern) => {
            NamePattern::check(&naming.place("path"), trial)?;
            let mut filled = Vec::new();
            pattern.fill(&[], &mut filled);
            naming.check_path(path, &filled)?;
            RequestPath::Filled(pattern)
        }
        None => {
            naming.check_path(path, path.as_bytes())?;
            RequestPath::Same(path.to_owned())
        }
    };
    let pseudo = [(":method", method), (":scheme", scheme), (":authority", &authority)];
    Ok(RequestTemplate {
        pseudo: pseudo.map(|(name, value)| (name.to_owned(), value.to_owned())).into(),
        path,
        fields: further(trial, naming)?,
        has_length: carries(settings),
    })
}

/// Fields that are not pseudo-headers, except the length.
fn further(trial: &Trial, naming: &Naming) -> Result<Vec<(String, String)>, Invalid> {
    let (settings, endpoint) = (&trial.settings, trial.endpoint.as_ref());
    let mut all = Vec::new();
    let content_type = settings.text("content_type");
    if carries(settings) && !content_type.is_empty() {
        if !content_type.bytes().all(|byte| matches!(byte, b'\t' | b' '..=b'~')) {
            let problem = format!("{content_type:?} is not allowed in a header field");
            let fix = "type visible ASCII characters";
            return Err(Invalid::new(naming.place("content_type"), problem, fix));
        }
        all.push(("content-type".to_owned(), content_type.trim().to_owned()));
    }
    if let Some(text) = endpoint.and_then(crate::requests::basic_authorization) {
        all.push(("authorization".to_owned(), text));
    }
    let is_known = endpoint.is_some_and(|endpoint| endpoint.credentials.is_some());
    for (name, value) in fields::read(settings, naming.key, &OWN_FIELDS, is_known)? {
        all.push((name.to_ascii_lowercase(), value));
    }
    Ok(all)
}

/// True if requests carry the message (RFC 9110, section 9.3).
pub(crate) fn carries(settings: &Settings) -> bool {
    matches!(settings.text("method"), "" | "POST" | "PUT" | "PATCH")
}

/// Fields that HTTP/2, HTTP/3 or Weighbridge sets itself (RFC 9113, section 8.2.2; RFC 9114,
/// section 4.2), and what to do instead.
pub(crate) const OWN_FIELDS: [(&str, &str); 9] = [
    ("host", "it is taken from the target's URL"),
    ("content-length", "it is taken from the body"),
    ("content-type", "set content_type"),
    ("transfer-encoding", "HTTP/2 does not use it"),
    ("connection", "HTTP/2 does not use it"),
    ("keep-alive", "HTTP/2 does not use it"),
    ("proxy-connection", "HTTP/2 does not use it"),
    ("upgrade", "HTTP/2 does not use it"),
    ("te", "remove it"),
];

/// Host and port as they stand in `:authority` (RFC 9113, section 8.3.1).
fn check_authority(authority: &str) -> Result<(), Invalid> {
    let is_of_it = |byte: u8| byte.is_ascii_graphic() && !b"/?#@\\\"<>^`{|}".contains(&byte);
    if authority.bytes().all(is_of_it) {
        return Ok(());
    }
    let problem = format!("{authority:?} is not an authority");
    Err(Invalid::new("target", problem, "type a host name or an address"))
}

impl Naming {
    fn place(&self, key: &str) -> String {
        format!("{}.{key}", self.key)
    }

    /// Checks a path (RFC 3986, section 3.3) as it is sent: `written` is what the user typed.
    fn check_path(&self, written: &str, path: &[u8]) -> Result<(), Invalid> {
        let fix = match path {
            [b'/', rest @ ..]
                if rest.iter().all(|byte| byte.is_ascii_graphic() && *byte != b'#') =>
            {
                return Ok(());
            }
            [b'/', ..] => "type visible characters; write a space as %20",
            _ => "type one that starts with /, and write a space as %20",
        };
        Err(Invalid::new(self.place("path"), format!("{written:?} is not a path"), fix))
    }

    /// The path alone, without a query, checked.
    ///
    /// # Errors
    /// If it is not a path.
    pub(crate) fn stored_at(&self, path: &str) -> Result<String, Invalid> {
        self.check_path(path, path.as_bytes())?;
        Ok(path.split('?').next().unwrap_or_default().to_owned())
    }
}
