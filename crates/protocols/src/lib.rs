//! The registry of protocols: one folder and one line each.

use base64::{Engine, engine::general_purpose::STANDARD};
#[cfg(feature = "library")]
use weigh_model::Trial;
use weigh_model::protocol::Invalid;
use weigh_model::{Endpoint, Protocol};

pub mod census;
pub mod fields;
#[cfg(feature = "library")]
pub mod grpc;
pub mod http1;
#[cfg(feature = "library")]
pub mod http2;
pub mod mqtt;
pub mod passage;
mod places;
mod requests;
mod statuses;
pub mod tcp;
pub mod urls;

/// Every protocol there is, in the order they are listed to a user.
pub static PROTOCOLS: &[&dyn Protocol] = &[
    &mqtt::Mqtt,
    &http1::Http1,
    &tcp::Tcp,
    #[cfg(feature = "library")]
    &http2::Http2,
    #[cfg(feature = "library")]
    &grpc::Grpc,
];

/// The protocol of this name or alias, in any case.
///
/// # Errors
/// If there is none; the error proposes the nearest name.
pub fn find(name: &str) -> Result<&'static dyn Protocol, Invalid> {
    let wanted = name.to_ascii_lowercase();
    let known = |protocol: &&&'static dyn Protocol| names_of(**protocol).any(|own| own == wanted);
    PROTOCOLS.iter().find(known).copied().ok_or_else(|| unknown(name, &wanted))
}

fn names_of(protocol: &dyn Protocol) -> impl Iterator<Item = &'static str> {
    std::iter::once(protocol.name()).chain(protocol.aliases().iter().copied())
}

fn unknown(name: &str, wanted: &str) -> Invalid {
    let nearest = nearest(wanted, PROTOCOLS.iter().flat_map(|protocol| names_of(*protocol)));
    let all: Vec<&str> = PROTOCOLS.iter().map(|protocol| protocol.name()).collect();
    let mend = match nearest {
        Some(own) => format!("did you mean {own}? There are: {}", all.join(", ")),
        None => format!("type one of {}", all.join(", ")),
    };
    Invalid::new("protocol", format!("{name:?} is not known"), mend)
}

/// Requests in flight on a connection of HTTP/2: the window of the load where it names one, so that
/// protocols under one load have the same, else the setting `streams`.
#[cfg(feature = "library")]
fn streams(trial: &Trial) -> u32 {
    let setting = trial.settings.integer("streams").max(1) as u32;
    trial.load.window.map_or(setting, |window| window.max(setting))
}

/// Who we are to a target, as HTTP says it (RFC 7617); `None` where we are nobody.
pub fn basic_authorization(endpoint: &Endpoint) -> Option<String> {
    let who = endpoint.credentials.as_ref()?;
    let plain = format!("{}:{}", who.user, who.password);
    Some(format!("Basic {}", STANDARD.encode(plain)))
}

/// What to say of a server whose first bytes are a record of TLS: an alert, since what we said was
/// none (RFC 8446, section 5.1). `None` where they are not.
fn answers_in_tls(head: &[u8]) -> Option<String> {
    let is_record = matches!(head, [0x14..=0x17, 3, 0..=4, ..]);
    is_record.then(|| "it answers in TLS: type the URL with TLS, or --tls on".to_owned())
}

/// The one of `names` that `wanted` may be a misspelling of.
pub fn nearest<'n>(wanted: &str, names: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    let (distance, name) = names.map(|name| (strsim::osa_distance(name, wanted), name)).min()?;
    // Of a short word two edits make any other.
    let most = (wanted.chars().count() / 2).saturating_sub(1).clamp(1, TYPO_EDITS_MAX);
    (distance <= most && distance < wanted.chars().count()).then_some(name)
}

/// Edits within which a name counts as a slip of the fingers; swapped neighbours are one edit.
const TYPO_EDITS_MAX: usize = 2;
