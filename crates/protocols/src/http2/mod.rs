//! HTTP/2 (RFC 9113): requests as in HTTP/1.1, many at once as streams of one connection.

use weigh_model::load::Pattern;
use weigh_model::protocol::{
    Dial, ErrorWords, Guarantee, Host, Invalid, Protocol, Scheme, Setting, SettingKind,
};
use weigh_model::tls;
use weigh_model::trial::{Settings, Trial};

use crate::http2_core::{caller, head};
use crate::{fields, implementation, requests, statuses};
use codec::NAMING;

mod client;
mod codec;
#[cfg(feature = "library")]
mod hosted;
mod server;

/// The protocol `http2`.
pub struct Http2;

impl Protocol for Http2 {
    fn name(&self) -> &'static str {
        "http2"
    }

    fn aliases(&self) -> &'static [&'static str] {
        &["h2"]
    }

    /// With prior knowledge and without TLS, as curl and nghttp2 call it; inside TLS `h2`.
    fn schemes(&self) -> &'static [Scheme] {
        const SCHEMES: &[Scheme] = &[Scheme::plain("h2c", 80), Scheme::secure(NAMING.secure, 443)];
        SCHEMES
    }

    fn error(&self, code: u16) -> ErrorWords {
        statuses::stream_error(code).unwrap_or_else(|| statuses::error(code))
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

    /// GET and HEAD only ask, and DELETE brings nothing.
    fn carries(&self, settings: &Settings) -> bool {
        head::carries(settings)
    }

    fn library(&self, settings: &Settings) -> Option<&'static str> {
        #[cfg(feature = "library")]
        if implementation::is_hosted(settings) {
            return Some(hosted::LIBRARY);
        }
        let _ = settings;
        None
    }

    fn dial(&self, trial: &Trial) -> Result<Dial, Invalid> {
        #[cfg(feature = "library")]
        if implementation::is_hosted(&trial.settings) {
            return hosted::dial(trial);
        }
        implementation::check("http2", &trial.settings)?;
        Ok(caller::dial(client::Requests::new(trial)?, trial.load.pattern))
    }

    fn host(&self, settings: &Settings) -> Result<Host, Invalid> {
        #[cfg(feature = "library")]
        if implementation::is_hosted(settings) {
            return hosted::host(settings);
        }
        implementation::check("http2", settings)?;
        server::host(settings)
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
    implementation::IMPLEMENTATION,
];

/// The keys of HTTP/2, and those of TLS.
static SETTINGS: &[Setting] = &tls::with::<{ OWN.len() + tls::KEYS }>(OWN, "h2");
