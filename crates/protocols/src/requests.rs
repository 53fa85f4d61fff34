//! Requests of HTTP, in any of its versions (RFC 9110): settings, credentials, and an
//! answer in TLS.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use weigh_model::Endpoint;
use weigh_model::Trial;
use weigh_model::connection::Fault;
use weigh_model::protocol::{Invalid, Setting, SettingKind};
use weigh_model::trial::Settings;

use crate::fields;

/// The key of the method.
pub(crate) const METHOD: Setting = Setting {
    key: "method",
    kind: SettingKind::Choice(&["POST", "GET", "HEAD", "PUT", "PATCH", "DELETE"]),
    default: "POST",
    doc: "Method of every request; GET, HEAD and DELETE carry no body.",
};

/// The key of the path.
pub(crate) const PATH: Setting = Setting {
    key: "path",
    kind: SettingKind::Text,
    default: "/messages",
    doc: "Path of every request, unless the target's URL has one; the server stores there. \
          {client} and {seq} stand for producer and message.",
};

/// Requests in flight on a connection of HTTP/2: the window of the load where it names one, so that
/// protocols under one load have the same, else the setting `streams`.
pub(crate) fn streams(trial: &Trial) -> u32 {
    let setting = trial.settings.integer("streams").max(1) as u32;
    trial.load.window.map_or(setting, |window| window.max(setting))
}

/// Credentials for a target in HTTP's form (RFC 7617); `None` without credentials.
pub fn basic_authorization(endpoint: &Endpoint) -> Option<String> {
    let who = endpoint.credentials.as_ref()?;
    let plain = format!("{}:{}", who.user, who.password);
    Some(format!("Basic {}", STANDARD.encode(plain)))
}

/// The credentials and the fields that a user adds, with their line ends. `taken` is as in
/// [`fields::read`].
pub(crate) fn added_fields(
    settings: &Settings,
    endpoint: &Endpoint,
    protocol: &str,
    taken: &[(&str, &str)],
) -> Result<String, Invalid> {
    let mut text = String::new();
    if let Some(value) = basic_authorization(endpoint) {
        text += &format!("Authorization: {value}\r\n");
    }
    for (name, value) in fields::read(settings, protocol, taken, endpoint.credentials.is_some())? {
        text += &format!("{name}: {value}\r\n");
    }
    Ok(text)
}

/// Checks a path that stands in a request line; `place` is named in errors.
pub(crate) fn check_path(place: &str, path: &str) -> Result<(), Invalid> {
    if path.starts_with('/') && path.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Ok(());
    }
    Err(Invalid::new(
        place,
        format!("{path:?} is not a path"),
        "type one that starts with /, and write a space as %20",
    ))
}

/// Puts the index of a pair behind a path, before its query.
pub(crate) fn path_in_pairs(path: &str, index: u32) -> String {
    match path.split_once('?') {
        Some((path, query)) => format!("{path}/{index}?{query}"),
        None => format!("{path}/{index}"),
    }
}

/// The fault of a server that starts with these bytes, which are of another protocol.
pub(crate) fn starts_otherwise(input: &[u8]) -> Fault {
    let shown = input[..input.len().min(24)].escape_ascii();
    let text = || format!("it starts with \"{shown}\"");
    Fault::OtherProtocol(answers_in_tls(input).unwrap_or_else(text))
}

/// Message for a server whose first bytes are a record of TLS: an alert, since the request was
/// none (RFC 8446, section 5.1). `None` where they are not.
pub(crate) fn answers_in_tls(head: &[u8]) -> Option<String> {
    let is_record = matches!(head, [0x14..=0x17, 3, 0..=4, ..]);
    is_record.then(|| "it answers in TLS: type the URL with TLS, or --tls on".to_owned())
}
