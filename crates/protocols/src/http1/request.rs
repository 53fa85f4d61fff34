//! The client's request, rendered once per trial: a connection adds only the length and the
//! body.

use weigh_model::protocol::Invalid;
use weigh_model::trial::{Settings, Trial};
use weigh_model::{Endpoint, Pattern};

use super::codec::put_decimal;
use crate::fields;
use crate::name_pattern::NamePattern;
use crate::statuses::Statuses;

/// The request that all connections of a trial send.
pub(super) struct Template {
    method: Method,
    /// The path, where it differs from message to message; else it stands in the line.
    places: Option<NamePattern>,
    /// The request line, up to the path where that differs.
    line: Vec<u8>,
    /// Everything behind it up to `Content-Length: `, or to the empty line where there is no body.
    head: Vec<u8>,
    /// Which answers confirm.
    statuses: Statuses,
    expects: bool,
    is_chunked: bool,
    /// Requests in flight on one connection.
    pub(super) pipeline: u32,
}

/// Content of a request that comes from its message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rendered {
    /// Head and body.
    Whole,
    /// The head of a method that has no body.
    WithoutBody,
    /// The head; the body is held back until the server asks for it.
    BodyHeld,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Method {
    /// With a body: POST, PUT, PATCH.
    Post,
    /// Without: GET, DELETE.
    Get,
    /// Without, and so is its answer.
    Head,
}

impl Template {
    /// Renders the request of `trial` to `path`.
    pub(super) fn new(trial: &Trial, path: &str, is_kept: bool) -> Result<Template, Invalid> {
        let settings = &trial.settings;
        let (word, method) = match settings.text("method") {
            word @ ("GET" | "DELETE") => (word, Method::Get),
            "HEAD" => ("HEAD", Method::Head),
            word @ ("PUT" | "PATCH") => (word, Method::Post),
            _ => ("POST", Method::Post),
        };
        let places = NamePattern::of(path);
        if places.is_some() {
            NamePattern::check("http1.path", trial)?;
        }
        let expects = settings.flag("expect");
        let is_chunked = settings.flag("chunked");
        let pipeline = if is_kept { pipeline(trial) } else { 1 };
        contradictions(settings, method, expects, pipeline)?;
        transfer_contradictions(trial, method)?;
        carrying_contradictions(trial, method)?;
        let (line, mut text) = match &places {
            Some(_) => (format!("{word} "), " HTTP/1.1\r\n".to_owned()),
            None => (format!("{word} {path} HTTP/1.1\r\n"), String::new()),
        };
        text += &fields(trial, is_kept, method == Method::Post)?;
        match method {
            Method::Post if is_chunked => text.push_str("Transfer-Encoding: chunked"),
            Method::Post => text.push_str("Content-Length: "),
            _ => {}
        }
        let statuses = Statuses::read(settings.text("status"), "http1.status")?;
        let (line, head) = (line.into_bytes(), text.into_bytes());
        Ok(Template { method, places, line, head, statuses, expects, is_chunked, pipeline })
    }

    /// True if an answer with this status confirms.
    pub(super) fn confirms(&self, status: u16) -> bool {
        self.statuses.hold(status)
    }

    /// Appends the request line and what follows it in every request.
    #[inline]
    fn put_head(&self, body: &[u8], out: &mut Vec<u8>) {
        out.extend_from_slice(&self.line);
        if let Some(places) = &self.places {
            places.fill(body, out);
        }
        out.extend_from_slice(&self.head);
    }

    /// True if answers have no body, whatever their heads say.
    pub(super) fn is_head(&self) -> bool {
        self.method == Method::Head
    }

    /// Appends a request. One without content expects nothing (RFC 9110, section 10.1.1).
    pub(super) fn render(&self, body: &[u8], out: &mut Vec<u8>) -> Rendered {
        out.reserve(self.line.len() + self.head.len() + body.len() + TAIL_BYTES_MAX);
        self.put_head(body, out);
        if self.method != Method::Post {
            out.extend_from_slice(b"\r\n");
            return Rendered::WithoutBody;
        }
        if self.is_chunked {
            out.extend_from_slice(b"\r\n\r\n");
            self.put_piece(body, 0, out);
            return Rendered::Whole;
        }
        put_decimal(out, body.len() as u64);
        if self.expects && !body.is_empty() {
            out.extend_from_slice(b"\r\nExpect: 100-continue\r\n\r\n");
            return Rendered::BodyHeld;
        }
        out.extend_from_slice(b"\r\n\r\n");
        out.extend_from_slice(body);
        Rendered::Whole
    }

    /// Appends the head of a request whose body has `bytes` bytes and follows in pieces.
    pub(super) fn render_head(&self, bytes: u64, out: &mut Vec<u8>) {
        self.put_head(&[], out);
        if !self.is_chunked {
            put_decimal(out, bytes);
        }
        out.extend_from_slice(b"\r\n\r\n");
    }

    /// Appends a piece of a body of which `rest` bytes follow (RFC 9112, section 7.1).
    pub(super) fn put_piece(&self, piece: &[u8], rest: u64, out: &mut Vec<u8>) {
        if !self.is_chunked {
            out.extend_from_slice(piece);
            return;
        }
        if !piece.is_empty() {
            out.extend_from_slice(format!("{:x}\r\n", piece.len()).as_bytes());
            out.extend_from_slice(piece);
            out.extend_from_slice(b"\r\n");
        }
        if rest == 0 {
            out.extend_from_slice(b"0\r\n\r\n");
        }
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

/// An object is sent by a POST with its length, and without waiting for 100 (Continue).
fn transfer_contradictions(trial: &Trial, method: Method) -> Result<(), Invalid> {
    let settings = &trial.settings;
    if settings.flag("chunked") && method != Method::Post {
        return Err(Invalid::new(
            "http1.chunked",
            format!("a {} has no body", settings.text("method")),
            "leave http1.chunked at false or http1.method at POST",
        ));
    }
    if settings.flag("chunked") && settings.flag("expect") {
        return Err(Invalid::new(
            "http1.chunked",
            "only a body with a length can wait for 100 (Continue)",
            "leave http1.chunked or http1.expect at false",
        ));
    }
    if trial.load.pattern != Pattern::Transfer {
        return Ok(());
    }
    if method != Method::Post {
        return Err(Invalid::new(
            "http1.method",
            format!("a {} has no body, and a transfer needs one", settings.text("method")),
            "leave http1.method at POST",
        ));
    }
    if settings.flag("expect") {
        return Err(Invalid::new(
            "http1.expect",
            "an object that is sent in pieces cannot wait for 100 (Continue)",
            "leave http1.expect at false, or type --pattern request",
        ));
    }
    Ok(())
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
            format!("a {} has no body that could wait for 100 (Continue)", settings.text("method")),
            "leave http1.expect at false or http1.method at POST",
        ));
    }
    if expects && pipeline > 1 {
        return Err(Invalid::new(
            "http1.pipeline",
            "a request that waits for 100 (Continue) cannot be followed by another",
            "leave http1.pipeline at 1 or http1.expect at false",
        ));
    }
    Ok(())
}

/// The other end of a trial.
fn endpoint(trial: &Trial) -> Result<&Endpoint, Invalid> {
    trial
        .endpoint
        .as_ref()
        .ok_or_else(|| Invalid::new("target", "its address is unknown", "type http://HOST:PORT"))
}

/// The header fields of every request of a trial but those of its body, with their line ends.
pub(super) fn fields(trial: &Trial, is_kept: bool, has_body: bool) -> Result<String, Invalid> {
    let (settings, endpoint) = (&trial.settings, endpoint(trial)?);
    let mut text = String::new();
    // RFC 9112, section 3.2: as in the URL, without the scheme's own port.
    add_field(&mut text, "Host", &endpoint.authority_omitting(80));
    if !is_kept {
        add_field(&mut text, "Connection", "close");
    }
    if let Some(value) = crate::requests::basic_authorization(endpoint) {
        add_field(&mut text, "Authorization", &value);
    }
    let content_type = settings.text("content_type");
    if has_body && !content_type.is_empty() {
        check_value("http1.content_type", content_type)?;
        add_field(&mut text, "Content-Type", content_type);
    }
    for (name, value) in
        fields::read(settings, "http1", &OWN_FIELDS, endpoint.credentials.is_some())?
    {
        add_field(&mut text, &name, &value);
    }
    Ok(text)
}

/// A poll and a batch carry messages, and a batch must not wait for leave to send them.
fn carrying_contradictions(trial: &Trial, method: Method) -> Result<(), Invalid> {
    let pattern = trial.load.pattern;
    if !matches!(pattern, Pattern::Poll | Pattern::Batch) {
        return Ok(());
    }
    if method != Method::Post {
        let problem = format!("the producers of {pattern} send messages, which needs POST");
        return Err(Invalid::new("http1.method", problem, "leave http1.method at POST"));
    }
    if pattern == Pattern::Batch && trial.settings.flag("expect") {
        return Err(Invalid::new(
            "http1.expect",
            "a batch cannot wait for 100 (Continue)",
            "leave http1.expect at false, or type --pattern publish",
        ));
    }
    let bytes = trial.load.size.map_or(0, |size| size.0) * u64::from(trial.load.batch_size());
    if pattern == Pattern::Batch && bytes > BATCH_BYTES_MAX {
        return Err(Invalid::new(
            "load.batch",
            format!("one POST would hold {bytes} bytes, and at most {BATCH_BYTES_MAX} fit"),
            "type fewer messages to a batch (--batch), or a smaller size",
        ));
    }
    Ok(())
}

/// The path of the target's URL, else that of the setting for the pattern.
pub(super) fn path(trial: &Trial) -> Result<&str, Invalid> {
    let (place, key) = match trial.load.pattern {
        Pattern::Poll => ("http1.poll_path", "poll_path"),
        Pattern::Batch => ("http1.batch_path", "batch_path"),
        _ => ("http1.path", "path"),
    };
    let (place, path) = match endpoint(trial)?.path.as_str() {
        "" => (place, trial.settings.text(key)),
        path => ("target", path),
    };
    let path = path.split('#').next().unwrap_or_default();
    if path.starts_with('/') && path.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Ok(path);
    }
    Err(Invalid::new(
        place,
        format!("{path:?} is not a path"),
        "type one that starts with /, and write a space as %20",
    ))
}

fn check_value(place: &str, value: &str) -> Result<(), Invalid> {
    if value.bytes().all(|byte| byte == b'\t' || !byte.is_ascii_control()) {
        return Ok(());
    }
    let problem = format!("{value:?} has a control character");
    Err(Invalid::new(place, problem, "remove line ends and other control characters"))
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
    ("transfer-encoding", "set http1.chunked"),
    ("connection", "set http1.keep_alive"),
    ("expect", "set http1.expect"),
];

/// Bytes of the bodies of one batch; what JSON adds to them has as much room again.
const BATCH_BYTES_MAX: u64 = 32 << 20;

/// Bytes between the head and the body: digits of the length, `Expect`, line ends.
const TAIL_BYTES_MAX: usize = 48;
