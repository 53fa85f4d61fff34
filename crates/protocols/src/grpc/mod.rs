//! gRPC over HTTP/2: the service of `proto/store.proto` or any other, one call for every message.

use std::sync::Arc;

use weigh_model::load::Pattern;
use weigh_model::protocol::{
    Dial, ErrorWords, Guarantee, Host, Invalid, Protocol, Scheme, Setting, SettingKind, Transport,
};
use weigh_model::tls;
use weigh_model::trial::{Settings, Trial};

use crate::http2_core::caller;
use crate::http2_core::serving::Serving;
use crate::{fields, implementation, statuses};

mod client;
pub mod codec;
#[cfg(feature = "library")]
mod hosted;
pub mod messages;
pub mod method;
#[cfg(feature = "library")]
mod prost_messages;
pub mod reflection;
mod server;
mod status;
pub mod template;

pub use codec::{COUNT, SERVICE};

/// The protocol `grpc`.
pub struct Grpc;

impl Protocol for Grpc {
    fn name(&self) -> &'static str {
        "grpc"
    }

    fn schemes(&self) -> &'static [Scheme] {
        const SCHEMES: &[Scheme] = &[Scheme::plain("grpc", 0), Scheme::secure(client::SECURE, 0)];
        SCHEMES
    }

    /// Statuses go up to 16; others are those of HTTP, by which a proxy answers.
    fn error(&self, code: u16) -> ErrorWords {
        let own = status::words(code).or_else(|| statuses::stream_error(code));
        own.unwrap_or_else(|| statuses::error(code))
    }

    fn patterns(&self) -> &'static [Pattern] {
        &[Pattern::Request, Pattern::Publish, Pattern::Session, Pattern::Batch, Pattern::Hold]
    }

    fn settings(&self) -> &'static [Setting] {
        SETTINGS
    }

    /// Messages of other services need not carry the body.
    fn carries(&self, settings: &Settings) -> bool {
        let compiled = method::CompiledMethod::of(settings).ok().flatten();
        compiled.is_none_or(|own| own.message.bodies() > 0)
    }

    /// A status confirms, and a client that hears none may call again.
    fn guarantee(&self, _settings: &Settings) -> Guarantee {
        Guarantee::AtLeastOnce
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
        implementation::check("grpc", &trial.settings)?;
        Ok(caller::dial(client::Calls::new(trial)?, trial.load.pattern))
    }

    fn host(&self, settings: &Settings) -> Result<Host, Invalid> {
        #[cfg(feature = "library")]
        if implementation::is_hosted(settings) {
            return Ok(hosted::host(settings));
        }
        implementation::check("grpc", settings)?;
        let rules = Arc::new(server::Rules::new(settings));
        Ok(Host {
            transport: Transport::Stream,
            make: Box::new(move |_shard| {
                Box::new(Serving::new(server::Store::new(Arc::clone(&rules))))
            }),
        })
    }
}

const OWN: &[Setting] = &[
    method::PROTO,
    method::IMPORT_PATHS,
    method::METHOD,
    method::MESSAGE,
    method::STREAMING,
    method::DEADLINE,
    fields::HEADERS,
    fields::SECRET_HEADERS,
    Setting {
        key: "streams",
        kind: SettingKind::Integer(1, 65_535),
        default: "100",
        doc: "Calls in flight on one channel, as far as the server allows.",
    },
    Setting {
        key: "store",
        kind: SettingKind::Integer(0, 1_000_000),
        default: "1000",
        doc: "Newest readings the reference server keeps for Read, of at most 64 KiB each.",
    },
    Setting {
        key: "message_bytes_max",
        kind: SettingKind::Integer(1, 1 << 30),
        default: "4194304",
        doc: "Largest message the reference server takes; 4 MiB is what gRPC libraries take.",
    },
    implementation::IMPLEMENTATION,
];

/// The keys of gRPC, and those of TLS.
static SETTINGS: &[Setting] = &tls::with::<{ OWN.len() + tls::KEYS }>(OWN, "h2");
