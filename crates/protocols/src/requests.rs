//! The settings of a request of HTTP, whichever version it is spoken in (RFC 9110).

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
