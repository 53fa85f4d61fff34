//! Requests of HTTP, in any of its versions (RFC 9110): settings, credentials, and an
//! answer in TLS.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use weigh_model::Endpoint;
use weigh_model::Trial;
use weigh_model::protocol::{Setting, SettingKind};

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

/// Message for a server whose first bytes are a record of TLS: an alert, since the request was
/// none (RFC 8446, section 5.1). `None` where they are not.
pub(crate) fn answers_in_tls(head: &[u8]) -> Option<String> {
    let is_record = matches!(head, [0x14..=0x17, 3, 0..=4, ..]);
    is_record.then(|| "it answers in TLS: type the URL with TLS, or --tls on".to_owned())
}
