//! Causes of a failure of TLS, in words with a fix.

use rustls::{AlertDescription, CertificateError, Error};
use weigh_model::connection::Fault;

/// The fault of a client's connection.
pub(in crate::layer) fn of_client(error: &Error) -> Fault {
    Fault::Untrusted(format!("{}{}", problem(error), fix(error)))
}

/// The fault of a server's connection.
pub(in crate::layer) fn of_server(error: &Error) -> Fault {
    let text = match error {
        Error::InvalidMessage(_) => "a client sent bytes that are not TLS".to_owned(),
        Error::NoCertificatesPresented => "a client sent no certificate".to_owned(),
        Error::AlertReceived(alert) => format!("a client ended the handshake: {alert:?}"),
        Error::InvalidCertificate(_) => format!("a client: {}", of_certificate(error)),
        other => other.to_string(),
    };
    Fault::Malformed(format!("TLS: {text}"))
}

/// Returns the problem in words.
pub(super) fn problem(error: &Error) -> String {
    match error {
        Error::InvalidCertificate(_) => of_certificate(error),
        Error::InvalidMessage(_) => "the server sent bytes that are not TLS".to_owned(),
        Error::AlertReceived(alert) => format!("the server refused: {}", of_alert(*alert)),
        Error::PeerIncompatible(why) => {
            format!("no common version or cipher suite with the server ({why:?})")
        }
        Error::DecryptError => "a record was changed in transit, or is out of order".to_owned(),
        other => other.to_string(),
    }
}

fn of_certificate(error: &Error) -> String {
    use CertificateError as Wrong;
    let Error::InvalidCertificate(wrong) = error else { return error.to_string() };
    match wrong {
        Wrong::Expired | Wrong::ExpiredContext { .. } => "the certificate has expired".to_owned(),
        Wrong::NotValidYet | Wrong::NotValidYetContext { .. } => {
            "the certificate is not valid yet".to_owned()
        }
        Wrong::NotValidForName => "the certificate is for another host".to_owned(),
        Wrong::NotValidForNameContext { expected, presented } => {
            let bare = |name: &String| -> String {
                let inside = name.split_once('(').map_or(name.as_str(), |(_, inside)| inside);
                inside.trim_end_matches(')').trim_matches('"').to_owned()
            };
            let presented = presented.iter().map(bare).collect::<Vec<_>>().join(", ");
            let expected = expected.to_str();
            format!("the certificate is not for {expected} but for {presented}")
        }
        Wrong::UnknownIssuer => "the certificate's authority is not known here".to_owned(),
        Wrong::BadEncoding => "the certificate is damaged, or is not a certificate".to_owned(),
        Wrong::BadSignature => "the signature does not fit the certificate".to_owned(),
        Wrong::InvalidPurpose | Wrong::InvalidPurposeContext { .. } => {
            "the certificate is not made for this side".to_owned()
        }
        _ if is_authority_itself(error) => {
            "the certificate is an authority's own (CA:TRUE), not a server's".to_owned()
        }
        other => format!("the certificate is not valid ({other})"),
    }
}

/// True for a certificate that is an authority's own: webpki's own kind of error, which never takes
/// an authority for a server.
pub(super) fn is_authority_itself(error: &Error) -> bool {
    let Error::InvalidCertificate(wrong) = error else { return false };
    format!("{wrong:?}").contains("CaUsedAsEndEntity")
}

fn of_alert(alert: AlertDescription) -> String {
    match alert {
        AlertDescription::CertificateRequired => "it requires a client certificate".to_owned(),
        AlertDescription::UnknownCA => {
            "it does not know the authority of the client certificate".to_owned()
        }
        AlertDescription::BadCertificate | AlertDescription::CertificateUnknown => {
            "it does not accept the client certificate".to_owned()
        }
        AlertDescription::CertificateExpired => "the client certificate has expired".to_owned(),
        AlertDescription::ProtocolVersion => "it does not support this version of TLS".to_owned(),
        AlertDescription::NoApplicationProtocol => {
            "it supports none of the protocols offered by ALPN".to_owned()
        }
        AlertDescription::UnrecognisedName => "it does not have this name (SNI)".to_owned(),
        AlertDescription::HandshakeFailure => "no common parameters (handshake_failure)".to_owned(),
        other => format!("alert {other:?}"),
    }
}

fn fix(error: &Error) -> &'static str {
    use CertificateError as Wrong;
    match error {
        Error::InvalidCertificate(wrong) => match wrong {
            Wrong::Expired | Wrong::ExpiredContext { .. } => "; renew it, or type --insecure",
            Wrong::NotValidYet | Wrong::NotValidYetContext { .. } => "; check the clocks",
            Wrong::NotValidForName | Wrong::NotValidForNameContext { .. } => {
                "; type the host as the certificate has it, or give tls_name"
            }
            Wrong::UnknownIssuer => "; give its certificate with --cacert FILE",
            _ if is_authority_itself(error) => {
                "; if it is the server's own, self-signed one, name it with --cacert FILE"
            }
            _ => "; give the server a proper one, or type --insecure",
        },
        Error::InvalidMessage(_) => "; check the port, or leave TLS out",
        Error::AlertReceived(AlertDescription::CertificateRequired) => {
            "; give it with --cert FILE --key FILE"
        }
        Error::AlertReceived(
            AlertDescription::UnknownCA
            | AlertDescription::BadCertificate
            | AlertDescription::CertificateUnknown
            | AlertDescription::CertificateExpired,
        ) => "; give another with --cert FILE --key FILE",
        Error::AlertReceived(AlertDescription::ProtocolVersion) | Error::PeerIncompatible(_) => {
            "; type --tls on to offer 1.2 and 1.3"
        }
        _ => "",
    }
}
