//! The request that all clients of a trial send, in hyper's terms; frames and HPACK are the
//! library's.

use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_TYPE, HeaderName, HeaderValue};
use http::uri::{Authority, PathAndQuery, Scheme, Uri};
use http::{Method, Request, Version};
use http_body_util::Full;
use weigh_model::protocol::Invalid;
use weigh_model::tls;
use weigh_model::trial::Trial;

use crate::fields;
use crate::http2::codec::NAMING;
use crate::http2_core::head::{OWN_FIELDS, carries};
use crate::name_pattern::NamePattern;
use crate::statuses::Statuses;

/// A request without its body.
pub(super) struct Template {
    head: Request<()>,
    /// The path, where it differs from message to message.
    places: Option<NamePattern>,
    /// Whether the method carries the body.
    carries: bool,
    statuses: Statuses,
}

impl Template {
    /// The request of a trial, checked.
    pub(super) fn new(trial: &Trial) -> Result<Template, Invalid> {
        let settings = &trial.settings;
        let endpoint = trial.endpoint.as_ref();
        let written = endpoint.map_or("", |endpoint| endpoint.path.as_str());
        let path = if written.is_empty() { settings.text("path") } else { written };
        let is_secure =
            tls::is_on(settings) || endpoint.is_some_and(|own| own.scheme == NAMING.secure);
        let mut parts = http::uri::Parts::default();
        parts.scheme = Some(if is_secure { Scheme::HTTPS } else { Scheme::HTTP });
        parts.authority = Some(authority(trial)?);
        let places = NamePattern::of(path);
        let path_and_query = match &places {
            Some(places) => {
                NamePattern::check("http2.path", trial)?;
                filled(places, &[]).ok_or_else(|| unfit_path(path))?
            }
            None => path_of(path)?,
        };
        parts.path_and_query = Some(path_and_query);
        let uri = Uri::from_parts(parts).map_err(|error| wrong_path(path, &error))?;
        let mut head = Request::new(());
        let method = settings.text("method");
        *head.method_mut() = Method::from_bytes(method.as_bytes()).unwrap_or(Method::POST);
        *head.version_mut() = Version::HTTP_2;
        *head.uri_mut() = uri;
        let carries = carries(settings);
        let content_type = settings.text("content_type");
        if carries && !content_type.is_empty() {
            let value = HeaderValue::from_str(content_type).map_err(|_| {
                let problem = format!("{content_type:?} is not allowed in a header field");
                Invalid::new("http2.content_type", problem, "type visible ASCII characters")
            })?;
            head.headers_mut().insert(CONTENT_TYPE, value);
        }
        if let Some(text) = endpoint.and_then(crate::requests::basic_authorization) {
            let value = HeaderValue::try_from(text).map_err(|error| {
                Invalid::new("target", error.to_string(), "remove its password")
            })?;
            head.headers_mut().insert(AUTHORIZATION, value);
        }
        let is_known = endpoint.is_some_and(|endpoint| endpoint.credentials.is_some());
        for (name, value) in fields::read(settings, "http2", &OWN_FIELDS, is_known)? {
            let pair = HeaderName::try_from(name).ok().zip(HeaderValue::try_from(value).ok());
            let (name, value) = pair.ok_or_else(|| {
                let problem = "a field's value is not allowed in HTTP/2";
                Invalid::new("http2.headers", problem, "type visible ASCII characters")
            })?;
            head.headers_mut().append(name, value);
        }
        let statuses = Statuses::read(settings.text("status"), "http2.status")?;
        Ok(Template { head, places, carries, statuses })
    }

    /// The request with this body.
    pub(super) fn with(&self, body: &[u8]) -> Request<Full<Bytes>> {
        let mut head = self.head.clone();
        let path = self.places.as_ref().and_then(|places| filled(places, body));
        if let Some(path) = path {
            let mut parts = head.uri().clone().into_parts();
            parts.path_and_query = Some(path);
            // Scheme, authority and path were checked together when the template was made.
            if let Ok(uri) = Uri::from_parts(parts) {
                *head.uri_mut() = uri;
            }
        }
        let body = if self.carries { Bytes::copy_from_slice(body) } else { Bytes::new() };
        head.map(|()| Full::new(body))
    }

    /// True if an answer with this status confirms.
    pub(super) fn confirms(&self, status: u16) -> bool {
        self.statuses.hold(status)
    }
}

/// The path for the message with this body.
fn filled(places: &NamePattern, body: &[u8]) -> Option<PathAndQuery> {
    let mut path = Vec::new();
    places.fill(body, &mut path);
    if path.first() != Some(&b'/') {
        return None;
    }
    PathAndQuery::try_from(path).ok()
}

fn unfit_path(path: &str) -> Invalid {
    let fix = "type one that starts with /, and write a space as %20";
    Invalid::new("http2.path", format!("{path:?} is not a path"), fix)
}

/// Host and port as they stand in `:authority` (RFC 9113, section 8.3.1).
fn authority(trial: &Trial) -> Result<Authority, Invalid> {
    let Some(endpoint) = &trial.endpoint else { return Ok(Authority::from_static("localhost")) };
    let text = endpoint.authority();
    Authority::try_from(text.as_str()).map_err(|error| {
        let problem = format!("{text:?} is not an authority: {error}");
        Invalid::new("target", problem, "type a host name or an address")
    })
}

fn path_of(path: &str) -> Result<PathAndQuery, Invalid> {
    if !path.starts_with('/') {
        let problem = format!("{path:?} is not a path");
        return Err(Invalid::new("http2.path", problem, "type one that starts with /"));
    }
    PathAndQuery::try_from(path).map_err(|error| wrong_path(path, &error))
}

fn wrong_path(path: &str, error: &dyn std::error::Error) -> Invalid {
    let problem = format!("{path:?} is not a path: {error}");
    Invalid::new("http2.path", problem, "type visible characters; write a space as %20")
}

/// The path alone, checked.
pub(super) fn stored_at(path: &str) -> Result<String, Invalid> {
    path_of(path).map(|path| path.path().to_owned())
}
