//! The client's request, rendered once per trial: a connection only adds the length and the
//! body.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use weigh_model::Endpoint;
use weigh_model::protocol::Invalid;
use weigh_model::trial::{Settings, Trial};

use super::chunked::is_token;
use super::codec::put_decimal;

/// The request that all connections of a trial send.
pub(super) struct Template {
    method: Method,
    /// Everything up to `Content-Length: `, or up to the empty line where there is no body.
    head: Vec<u8>,
    expects: bool,
    /// Requests in flight on one connection.
    pub(super) pipeline: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Method {
    Post,
    Get,
    Head,
}

impl Template {
    /// Renders the request of `trial`.
    pub(super) fn new(trial: &Trial, is_kept: bool) -> Result<Template, Invalid> {
        let settings = &trial.settings;
        let endpoint = trial.endpoint.as_ref().ok_or_else(|| {
            Invalid::new("target", "its address is not known", "type http://HOST:PORT")
        })?;
        let (word, method) = match settings.text("method") {
            "GET" => ("GET", Method::Get),
            "HEAD" => ("HEAD", Method::Head),
            _ => ("POST", Method::Post),
        };
        let expects = settings.flag("expect");
        let pipeline = if is_kept { pipeline(trial) } else { 1 };
        contradictions(settings, method, expects, pipeline)?;
        let mut text = format!("{word} {} HTTP/1.1\r\n", path(endpoint, settings)?);
        add_field(&mut text, "Host", &host(endpoint));
        if !is_kept {
            add_field(&mut text, "Connection", "close");
        }
        if let Some(who) = &endpoint.credentials {
            let plain = format!("{}:{}", who.user, who.password);
            add_field(&mut text, "Authorization", &format!("Basic {}", STANDARD.encode(plain)));
        }
        let content_type = settings.text("content_type");
        if method == Method::Post && !content_type.is_empty() {
            check_value("http1.content_type", content_type)?;
            add_field(&mut text, "Content-Type", content_type);
        }
        for (name, value) in further_fields(settings, endpoint.credentials.is_some())? {
            add_field(&mut text, name, value);
        }
        if method == Method::Post {
            text.push_str("Content-Length: ");
        }
        Ok(Template { method, head: text.into_bytes(), expects, pipeline })
    }

    /// True if answers have no body, whatever their heads say.
    pub(super) fn is_head(&self) -> bool {
        self.method == Method::Head
    }

    /// Appends a request; false if its body is held back until the server asks for it. A request
    /// without content expects nothing (RFC 9110, section 10.1.1).
    pub(super) fn render(&self, body: &[u8], out: &mut Vec<u8>) -> bool {
        out.reserve(self.head.len() + body.len() + TAIL_BYTES_MAX);
        out.extend_from_slice(&self.head);
        if self.method != Method::Post {
            out.extend_from_slice(b"\r\n");
            return true;
        }
        put_decimal(out, body.len() as u64);
        if self.expects && !body.is_empty() {
            out.extend_from_slice(b"\r\nExpect: 100-continue\r\n\r\n");
            return false;
        }
        out.extend_from_slice(b"\r\n\r\n");
        out.extend_from_slice(body);
        true
    }

    /// True if some request may hold its body back.
    pub(super) fn expects(&self) -> bool {
        self.expects
    }
}

/// Requests in flight on one connection: the window of the load where it names one, so that
/// protocols under one load have the same, else the setting.
fn pipeline(trial: &Trial) -> u32 {
    let setting = trial.settings.integer("pipeline").max(1) as u32;
    trial.load.window.map_or(setting, |window| window.max(setting))
}

fn contradictions(
    settings: &Settings,
    method: Method,
    expects: bool,
    pipeline: u32,
) -> Result<(), Invalid> {
    if expects && method != Method::Post {
        return Err(Invalid::new(
            "http1.expect",
            format!("a {} has no body to hold back", settings.text("method")),
            "leave http1.expect at false or http1.method at POST",
        ));
    }
    if expects && pipeline > 1 {
        return Err(Invalid::new(
            "http1.pipeline",
            "a request that holds its body back cannot be followed by another",
            "leave http1.pipeline at 1 or http1.expect at false",
        ));
    }
    Ok(())
}

/// The path of the target's URL, else the setting's.
fn path<'a>(endpoint: &'a Endpoint, settings: &'a Settings) -> Result<&'a str, Invalid> {
    let (place, path) = match endpoint.path.as_str() {
        "" => ("http1.path", settings.text("path")),
        path => ("target", path),
    };
    let path = path.split('#').next().unwrap_or_default();
    if path.starts_with('/') && path.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Ok(path);
    }
    Err(Invalid::new(
        place,
        format!("{path:?} is no path"),
        "type one that starts with / and has its spaces and special characters as %20 and the like",
    ))
}

/// RFC 9112, section 3.2: as in the URL, without the scheme's own port.
fn host(endpoint: &Endpoint) -> String {
    let host = &endpoint.host;
    let host = if host.contains(':') { format!("[{host}]") } else { host.clone() };
    match endpoint.port {
        80 => host,
        port => format!("{host}:{port}"),
    }
}

fn further_fields(
    settings: &Settings,
    has_credentials: bool,
) -> Result<Vec<(&str, &str)>, Invalid> {
    let texts = settings.text("headers").split('|').filter(|text| !text.trim().is_empty());
    texts.map(|text| further_field(text, has_credentials)).collect()
}

fn further_field(text: &str, has_credentials: bool) -> Result<(&str, &str), Invalid> {
    let wrong = |problem: String, mend: &str| Err(Invalid::new("http1.headers", problem, mend));
    let Some((name, value)) = text.split_once(':') else {
        return wrong(format!("{text:?} is no field"), "type NAME: VALUE, several separated by |");
    };
    let (name, value) = (name.trim(), value.trim());
    if !is_token(name.as_bytes()) {
        return wrong(format!("{name:?} is no field name"), "type letters, digits and hyphens");
    }
    check_value("http1.headers", value)?;
    let lower = name.to_ascii_lowercase();
    match OWN_FIELDS.iter().find(|(own, _)| *own == lower) {
        Some((_, mend)) => wrong(format!("{name} is not free to choose"), mend),
        None if lower == "authorization" && has_credentials => {
            wrong("Authorization twice".to_owned(), "leave it or the credentials away")
        }
        None => Ok((name, value)),
    }
}

fn check_value(place: &str, value: &str) -> Result<(), Invalid> {
    if value.bytes().all(|byte| byte == b'\t' || !byte.is_ascii_control()) {
        return Ok(());
    }
    let problem = format!("{value:?} has a control character");
    Err(Invalid::new(place, problem, "leave out line ends and other control characters"))
}

fn add_field(text: &mut String, name: &str, value: &str) {
    text.push_str(name);
    text.push_str(": ");
    text.push_str(value);
    text.push_str("\r\n");
}

/// Fields that Weighbridge sets itself, and what to do instead.
const OWN_FIELDS: [(&str, &str); 6] = [
    ("host", "it is taken from the target's URL"),
    ("content-length", "it is taken from the body"),
    ("content-type", "set http1.content_type"),
    ("transfer-encoding", "bodies are sent with their length"),
    ("connection", "set http1.keep_alive"),
    ("expect", "set http1.expect"),
];

/// Bytes between the head and the body: digits of the length, `Expect`, line ends.
const TAIL_BYTES_MAX: usize = 48;
