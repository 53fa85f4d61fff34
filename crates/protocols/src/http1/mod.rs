//! HTTP/1.1 (RFC 9112) over a kept connection or one per message.

use std::sync::Arc;

use weigh_model::load::Pattern;
use weigh_model::protocol::{
    Dial, Guarantee, Host, Invalid, Lifetime, Protocol, Setting, SettingKind,
};
use weigh_model::trial::{Settings, Trial};

mod answer;
mod chunked;
mod client;
mod codec;
mod intake;
mod request;
mod server;
mod store;

/// The protocol `http1`.
pub struct Http1;

impl Protocol for Http1 {
    fn name(&self) -> &'static str {
        "http1"
    }

    fn aliases(&self) -> &'static [&'static str] {
        &["http"]
    }

    fn scheme(&self) -> &'static str {
        "http"
    }

    fn patterns(&self) -> &'static [Pattern] {
        &[Pattern::Request, Pattern::Publish, Pattern::Session, Pattern::Hold]
    }

    fn settings(&self) -> &'static [Setting] {
        SETTINGS
    }

    /// An answer confirms, and a client that hears none may ask again.
    fn guarantee(&self, _settings: &Settings) -> Guarantee {
        Guarantee::AtLeastOnce
    }

    /// GET and HEAD only ask.
    fn carries(&self, settings: &Settings) -> bool {
        settings.text("method") == "POST"
    }

    fn dial(&self, trial: &Trial) -> Result<Dial, Invalid> {
        let is_kept = trial.settings.flag("keep_alive") && trial.load.pattern != Pattern::Session;
        let template = Arc::new(request::Template::new(trial, is_kept)?);
        Ok(Dial {
            lifetime: if is_kept { Lifetime::Kept } else { Lifetime::PerMessage },
            confirms: true,
            producer_of: None,
            make: Box::new(move |_seat| Box::new(client::HttpWire::new(template.clone()))),
        })
    }

    fn host(&self, settings: &Settings) -> Result<Host, Invalid> {
        let rules = Arc::new(server::Rules::new(settings)?);
        Ok(Host { make: Box::new(move |_shard| Box::new(server::HttpServer::new(rules.clone()))) })
    }
}

static SETTINGS: &[Setting] = &[
    Setting {
        key: "method",
        kind: SettingKind::Choice(&["POST", "GET", "HEAD"]),
        default: "POST",
        doc: "Method of every request; GET and HEAD carry no body.",
    },
    Setting {
        key: "path",
        kind: SettingKind::Text,
        default: "/messages",
        doc: "Path of every request, unless the target's URL has one; the server stores there.",
    },
    Setting {
        key: "content_type",
        kind: SettingKind::Text,
        default: "application/json",
        doc: "Content-Type of every POST; empty for none.",
    },
    Setting {
        key: "headers",
        kind: SettingKind::Text,
        default: "",
        doc: "Further header fields, separated by |: \"X-Site: 7|Accept: */*\".",
    },
    Setting {
        key: "keep_alive",
        kind: SettingKind::Flag,
        default: "true",
        doc: "Whether a connection serves many requests or one.",
    },
    Setting {
        key: "pipeline",
        kind: SettingKind::Integer(1, 65_535),
        default: "1",
        doc: "Requests in flight on one connection.",
    },
    Setting {
        key: "expect",
        kind: SettingKind::Flag,
        default: "false",
        doc: "Whether a POST waits for 100 (Continue) before it sends its body.",
    },
    Setting {
        key: "store",
        kind: SettingKind::Integer(0, 1_000_000),
        default: "1000",
        doc: "Newest bodies the reference server keeps for GET.",
    },
    Setting {
        key: "body_bytes_max",
        kind: SettingKind::Integer(1, 1 << 30),
        default: "16777216",
        doc: "Largest body the reference server takes; beyond it answers 413.",
    },
];
