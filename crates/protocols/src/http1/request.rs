//! The client's request by the settings of a trial.

use weigh_model::protocol::Invalid;
use weigh_model::trial::{Settings, Trial};
use weigh_model::{Endpoint, Pattern};

use crate::http1_core::template::{Method, Template, add_field};
use crate::name_pattern::NamePattern;
use crate::readings_core as readings;
use crate::statuses::Statuses;
use crate::{fields, requests};

/// Renders the request of `trial` to `path`.
pub(super) fn template(trial: &Trial, path: &str, is_kept: bool) -> Result<Template, Invalid> {
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
    Ok(Template {
        method,
        places,
        line: line.into_bytes(),
        head: text.into_bytes(),
        statuses: Statuses::read(settings.text("status"), "http1.status")?,
        expects,
        is_chunked,
        pipeline,
        put_batch: Some(readings::put_batch),
    })
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
    if let Some(value) = requests::basic_authorization(endpoint) {
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
    requests::check_path(place, path)?;
    Ok(path)
}

fn check_value(place: &str, value: &str) -> Result<(), Invalid> {
    if value.bytes().all(|byte| byte == b'\t' || !byte.is_ascii_control()) {
        return Ok(());
    }
    let problem = format!("{value:?} has a control character");
    Err(Invalid::new(place, problem, "remove line ends and other control characters"))
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
