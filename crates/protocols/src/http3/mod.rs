//! HTTP/3 (RFC 9114): requests as in HTTP/2, each in a stream of a QUIC connection. Frames and
//! QPACK are here; QUIC is a layer of the engine.

use std::sync::Arc;

use weigh_model::load::Pattern;
use weigh_model::protocol::{
    Dial, ErrorWords, Guarantee, Host, Invalid, Properties, Protocol, Scheme, Setting, SettingKind,
    Transport,
};
use weigh_model::tls;
use weigh_model::trial::{Settings, Trial};

use crate::http2_core::head;
use crate::http2_core::intake::Rules;
use crate::{fields, requests, statuses};
use codec::NAMING;

pub mod asking;
mod client;
mod codec;
mod peer;
mod qpack;
mod request;
mod server;
mod static_table;

/// The protocol `http3`.
pub struct Http3;

impl Protocol for Http3 {
    fn name(&self) -> &'static str {
        "http3"
    }

    fn aliases(&self) -> &'static [&'static str] {
        &["h3"]
    }

    /// QUIC is never without TLS.
    fn schemes(&self) -> &'static [Scheme] {
        const SCHEMES: &[Scheme] = &[Scheme::plain(NAMING.secure, 443).in_quic()];
        SCHEMES
    }

    fn patterns(&self) -> &'static [Pattern] {
        &[Pattern::Request, Pattern::Publish, Pattern::Session, Pattern::Hold]
    }

    fn settings(&self) -> &'static [Setting] {
        SETTINGS
    }

    /// It is compared with lanes inside TLS, so the main job has it only by its name.
    fn properties(&self) -> Properties {
        Properties { is_only_by_name: true, ..Properties::default() }
    }

    fn error(&self, code: u16) -> ErrorWords {
        if code != client::OTHER_CODE && !client::STREAM_CODES.contains(&code) {
            return statuses::error(code);
        }
        let what = match code {
            client::OTHER_CODE => "another error".to_owned(),
            code => codec::code_name(code.into()),
        };
        ErrorWords { name: format!("a reset of the stream ({what})"), advice: ErrorWords::ADVICE }
    }

    /// An answer confirms, and a client that hears none may ask again.
    fn guarantee(&self, _settings: &Settings) -> Guarantee {
        Guarantee::AtLeastOnce
    }

    /// GET and HEAD only ask, and DELETE brings nothing.
    fn carries(&self, settings: &Settings) -> bool {
        head::carries(settings)
    }

    fn dial(&self, trial: &Trial) -> Result<Dial, Invalid> {
        Ok(client::dial(request::Requests::new(trial)?, trial.load.pattern))
    }

    fn host(&self, settings: &Settings) -> Result<Host, Invalid> {
        let rules = Arc::new(Rules::new(settings, &NAMING)?);
        Ok(Host {
            transport: Transport::Streams,
            make: Box::new(move |_shard| Box::new(server::Serving::new(Arc::clone(&rules)))),
        })
    }
}

const OWN: &[Setting] = &[
    requests::METHOD,
    statuses::STATUS,
    requests::PATH,
    Setting {
        key: "content_type",
        kind: SettingKind::Text,
        default: "application/json",
        doc: "Content-Type of every request; empty for none.",
    },
    fields::HEADERS,
    fields::SECRET_HEADERS,
    Setting {
        key: "streams",
        kind: SettingKind::Integer(1, 65_535),
        default: "100",
        doc: "Requests in flight on one connection, as far as the server allows.",
    },
    Setting {
        key: "body_bytes_max",
        kind: SettingKind::Integer(1, 1 << 40),
        default: "16777216",
        doc: "Largest body the reference server takes; beyond it answers 413.",
    },
];

/// The keys of HTTP/3, and those of QUIC.
static SETTINGS: &[Setting] = &tls::over_streams::<{ OWN.len() + tls::STREAM_KEYS }>(OWN, "h3");
