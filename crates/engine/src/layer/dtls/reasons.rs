//! Causes of a failure of DTLS, in words with a fix.

use dimpl::{Error, SecurityError};
use weigh_model::connection::Fault;

/// The fault of a client's connection.
pub(super) fn of_client(error: &Error) -> Fault {
    match error {
        Error::Timeout(_) => {
            let text = "it did not answer the DTLS handshake: check the port, the version, and \
                        whether it asks for a certificate or for a pre-shared key";
            Fault::Ended(text.to_owned())
        }
        Error::SecurityError(SecurityError::FatalAlert { description, .. }) => {
            Fault::Untrusted(format!("the server refused: {}", alert(*description)))
        }
        other => Fault::Untrusted(other.to_string()),
    }
}

/// The fault of a server's connection.
pub(super) fn of_server(error: &Error) -> Fault {
    let text = match error {
        Error::SecurityError(SecurityError::FatalAlert { description, .. }) => {
            format!("a client ended the handshake: {}", alert(*description))
        }
        Error::Timeout(_) => "a client did not finish the handshake".to_owned(),
        other => other.to_string(),
    };
    Fault::Malformed(format!("DTLS: {text}"))
}

/// RFC 8446, section 6, and RFC 4279, section 2.
fn alert(description: u8) -> String {
    let words = match description {
        40 => "no common parameters (handshake_failure)",
        42..=46 => "it does not accept the client certificate; give another with --cert and --key",
        48 => "it does not know the authority of the client certificate; give another with --cert",
        51 => "the keys differ (decrypt_error): check tls_psk and tls_psk_identity",
        70 => "it does not support this version; type --tls on to offer 1.2 and 1.3",
        71 => "it demands stronger parameters (insufficient_security)",
        115 => "it does not know the identity; check tls_psk_identity",
        116 => "it requires a client certificate; give it with --cert FILE --key FILE",
        other => return format!("alert {other}"),
    };
    words.to_owned()
}
