//! DTLS of a lane whose protocol uses datagrams: certificates as for TLS, or a pre-shared key.

use std::sync::Arc;

use weigh_engine::layer::dtls::{
    self, ClientProof, PresharedKey, ServerProof, secure_dial, secure_host,
};
use weigh_engine::layer::tls::{ClientChoice, ServerChoice, Tally, TlsError};
use weigh_model::protocol::{Dial, Host, Invalid, Protocol};
use weigh_model::tls;
use weigh_model::trial::Settings;

use crate::exit::Stop;

/// True if this program has DTLS.
pub const IS_BUILT: bool = true;

/// True if the protocol has the keys of DTLS.
pub fn is_over_datagrams(protocol: &'static dyn Protocol) -> bool {
    protocol.has_setting(tls::PSK)
}

/// The error of a program without DTLS.
pub fn refused(place: String) -> Invalid {
    Invalid::new(place, "this program was built without DTLS", "build it with --features dtls")
}

/// Checks the settings of a lane with a pre-shared key, which no plan has.
///
/// # Errors
/// The setting that contradicts the others.
pub fn check_psk(protocol: &str, settings: &Settings) -> Result<(), Invalid> {
    let place = |key: &str| format!("{protocol}.{key}");
    let given = |key: &str| !settings.text(key).is_empty();
    let files = tls::FILES.into_iter().find(|key| given(key));
    let mutual = settings.flag("tls_mutual").then_some("tls_mutual");
    if let Some(key) = files.or(mutual) {
        let problem = "with a pre-shared key there are no certificates";
        return Err(Invalid::new(place(key), problem, "leave it out, or leave tls_psk out"));
    }
    if settings.text("tls") == "1.3" {
        let problem = "DTLS 1.3 with a pre-shared key is not supported";
        return Err(Invalid::new(place("tls"), problem, "type --tls 1.2"));
    }
    Ok(())
}

/// Checks identity and key, which are known once the secrets are.
///
/// # Errors
/// One without the other, and a key that is not one.
pub fn check_key(protocol: &str, settings: &Settings) -> Result<(), Invalid> {
    let place = |key: &str| format!("{protocol}.{key}");
    let given = |key: &str| !settings.text(key).is_empty();
    if given(tls::PSK) != given(tls::PSK_IDENTITY) {
        let key = if given(tls::PSK) { tls::PSK_IDENTITY } else { tls::PSK };
        let fix =
            format!("type --set {protocol}.tls_psk_identity=NAME --set {protocol}.tls_psk=KEY");
        return Err(Invalid::new(place(key), "identity and key belong together", fix));
    }
    psk(settings).map(|_| ()).ok_or_else(|| {
        let problem = "hex: is followed by pairs of hexadecimal digits";
        Invalid::new(place(tls::PSK), problem, "type such as hex:00ff, or the key as text")
    })
}

/// Checks a client that uses certificates.
///
/// # Errors
/// Files that cannot be read, or cannot be used.
pub fn check(choice: ClientChoice) -> Result<(), TlsError> {
    dtls::check(&ClientProof::Certificate(choice))
}

/// Puts a client inside DTLS.
///
/// # Errors
/// Files that cannot be read, or cannot be used.
pub fn dial(
    dial: Dial,
    settings: &Settings,
    choice: ClientChoice,
    tally: &Arc<Tally>,
) -> Result<Dial, Stop> {
    let proof = match psk(settings) {
        _ if !tls::has_psk(settings) => ClientProof::Certificate(choice),
        Some(known) => ClientProof::Preshared(known),
        None => return Err(Stop::usage(NO_KEY)),
    };
    secure_dial(dial, &proof, tally).map_err(Stop::usage)
}

/// Puts a server with a certificate inside DTLS.
///
/// # Errors
/// Files that cannot be read, or cannot be used.
pub fn host(host: Host, choice: ServerChoice) -> Result<Host, Stop> {
    secure_host(host, &ServerProof::Certificate(choice), &Arc::default()).map_err(Stop::usage)
}

/// Puts a server with a pre-shared key inside DTLS.
///
/// # Errors
/// A key that is not one.
pub fn host_with_psk(host: Host, settings: &Settings) -> Result<Host, Stop> {
    check_psk("serve", settings)?;
    check_key("serve", settings)?;
    let known = psk(settings).ok_or_else(|| Stop::usage(NO_KEY))?;
    secure_host(host, &ServerProof::Preshared(known), &Arc::default()).map_err(Stop::usage)
}

const NO_KEY: &str = "tls_psk: no key for the identity\nhelp: type --set coap.tls_psk=KEY";

/// The pre-shared key; `None` if there is none, or its digits are wrong.
fn psk(settings: &Settings) -> Option<PresharedKey> {
    let text = settings.text(tls::PSK);
    let key = match text.strip_prefix("hex:") {
        Some(digits) => from_hex(digits)?,
        None => text.as_bytes().to_vec(),
    };
    let identity = settings.text(tls::PSK_IDENTITY).as_bytes().to_vec();
    Some(PresharedKey { identity, key }).filter(|known| !known.key.is_empty())
}

fn from_hex(digits: &str) -> Option<Vec<u8>> {
    let digit = |byte: &u8| char::from(*byte).to_digit(16).map(|own| own as u8);
    let pairs = digits.as_bytes().chunks(2);
    pairs.map(|pair| Some(digit(pair.first()?)? << 4 | digit(pair.get(1)?)?)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(given: &[(&str, &str)]) -> Settings {
        let coap = weigh_protocols::find("coap").expect("it is there");
        Settings::new("coap", coap.settings(), given.iter().copied()).expect("known keys")
    }

    #[test]
    fn keys_are_text_or_digits() {
        let of = |key| psk(&settings(&[("tls_psk_identity", "d"), ("tls_psk", key)]));
        assert_eq!(of("secret").map(|known| known.key), Some(b"secret".to_vec()));
        assert_eq!(of("hex:00fF").map(|known| known.key), Some(vec![0, 255]));
        for wrong in ["hex:", "hex:0", "hex:0g", ""] {
            assert_eq!(of(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn what_contradicts_a_pre_shared_key_is_named() {
        let known = [("tls", "on"), ("tls_psk_identity", "d"), ("tls_psk", "k")];
        let place = |more: &[(&str, &str)]| {
            let given = [&known[..], more].concat();
            let settings = settings(&given);
            let checked = check_psk("coap", &settings).and_then(|()| check_key("coap", &settings));
            checked.err().map(|invalid| invalid.place)
        };
        assert_eq!(place(&[]), None);
        assert_eq!(place(&[("tls", "1.3")]).as_deref(), Some("coap.tls"));
        assert_eq!(place(&[("tls_mutual", "true")]).as_deref(), Some("coap.tls_mutual"));
        assert_eq!(place(&[("tls_cert", "f")]).as_deref(), Some("coap.tls_cert"));
        assert_eq!(place(&[("tls_psk", "")]).as_deref(), Some("coap.tls_psk"));
        assert_eq!(place(&[("tls_psk_identity", "")]).as_deref(), Some("coap.tls_psk_identity"));
        assert_eq!(place(&[("tls_psk", "hex:1")]).as_deref(), Some("coap.tls_psk"));
    }
}
