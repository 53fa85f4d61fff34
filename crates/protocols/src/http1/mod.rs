//! HTTP/1.1 (RFC 9112) over a kept connection or one per message.

use std::sync::Arc;

use weigh_model::load::Pattern;
use weigh_model::protocol::{
    CountersBy, Dial, ErrorWords, Guarantee, Host, Invalid, Lifetime, PacketName, Properties,
    Protocol, Scheme, Setting, SettingKind, Transport,
};
use weigh_model::tls;
use weigh_model::trial::{Settings, Trial};

use crate::http1_core::names;
use crate::{fields, requests, statuses};

pub use crate::http1_core::{answer, chunked};

mod client;
mod codec;
mod poll;
mod request;
mod server;
mod store;
mod waiting;

/// The protocol `http1`.
pub struct Http1;

impl Protocol for Http1 {
    fn name(&self) -> &'static str {
        "http1"
    }

    fn aliases(&self) -> &'static [&'static str] {
        &["http"]
    }

    fn schemes(&self) -> &'static [Scheme] {
        const SCHEMES: &[Scheme] = &[Scheme::plain("http", 80), Scheme::secure("https", 443)];
        SCHEMES
    }

    fn properties(&self) -> Properties {
        Properties {
            is_compared: true,
            per_message: Some(("keep_alive", "false")),
            counters: CountersBy::Page,
            ..Properties::default()
        }
    }

    fn renews(&self, settings: &Settings) -> bool {
        !settings.flag("keep_alive")
    }

    fn error(&self, code: u16) -> ErrorWords {
        statuses::error(code)
    }

    fn patterns(&self) -> &'static [Pattern] {
        &[
            Pattern::Request,
            Pattern::Publish,
            Pattern::Poll,
            Pattern::Batch,
            Pattern::Session,
            Pattern::Transfer,
            Pattern::Hold,
        ]
    }

    fn settings(&self) -> &'static [Setting] {
        SETTINGS
    }

    /// An answer confirms, and a client without one may send again.
    fn guarantee(&self, _settings: &Settings) -> Guarantee {
        Guarantee::AtLeastOnce
    }

    /// GET and HEAD only ask, and DELETE brings nothing.
    fn carries(&self, settings: &Settings) -> bool {
        matches!(settings.text("method"), "POST" | "PUT" | "PATCH")
    }

    fn packet_name(&self, from_client: bool, head: &[u8]) -> Option<PacketName> {
        names::name(from_client, head)
    }

    fn dial(&self, trial: &Trial) -> Result<Dial, Invalid> {
        let is_kept = trial.settings.flag("keep_alive") && trial.load.pattern != Pattern::Session;
        Ok(Dial {
            transport: Transport::Stream,
            lifetime: if is_kept { Lifetime::Kept } else { Lifetime::PerMessage },
            confirms: true,
            is_answered: false,
            producer_of: None,
            make: client::maker(trial, is_kept)?,
        })
    }

    fn host(&self, settings: &Settings) -> Result<Host, Invalid> {
        let rules = Arc::new(server::Rules::new(settings)?);
        Ok(Host {
            transport: Transport::Stream,
            make: Box::new(move |shard| Box::new(server::HttpServer::new(rules.clone(), shard))),
        })
    }
}

const OWN: &[Setting] = &[
    requests::METHOD,
    statuses::STATUS,
    requests::PATH,
    Setting {
        key: "poll_path",
        kind: SettingKind::Text,
        default: "/readings",
        doc: "Path for poll: producers POST there, consumers GET; in pairs /INDEX is added.",
    },
    Setting {
        key: "batch_path",
        kind: SettingKind::Text,
        default: "/messages/batch",
        doc: "Path for batch: each POST brings a JSON array of messages.",
    },
    Setting {
        key: "content_type",
        kind: SettingKind::Text,
        default: "application/json",
        doc: "Content-Type of every POST; empty for none.",
    },
    fields::HEADERS,
    fields::SECRET_HEADERS,
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
        key: "chunked",
        kind: SettingKind::Flag,
        default: "false",
        doc: "Whether a POST sends its body in chunks, without its length; a transfer uses many.",
    },
    Setting {
        key: "store",
        kind: SettingKind::Integer(0, 1_000_000),
        default: "1000",
        doc: "Newest bodies the reference server keeps for GET, of at most 64 KiB each.",
    },
    Setting {
        key: "readings",
        kind: SettingKind::Integer(1, 100_000_000),
        default: "100000",
        doc: "Newest readings the reference server keeps in each list for poll, in 256 MiB.",
    },
    Setting {
        key: "body_bytes_max",
        kind: SettingKind::Integer(1, 1 << 40),
        default: "1073741824",
        doc: "Largest body the reference server takes; beyond it answers 413.",
    },
];

/// The keys of HTTP/1.1, and those of TLS.
static SETTINGS: &[Setting] = &tls::with::<{ OWN.len() + tls::KEYS }>(OWN, "http/1.1");
