//! Causes of a failure of QUIC, in words with a fix.

use quinn_proto::{ConnectionError, TransportError, TransportErrorCode};
use rustls::{AlertDescription, CertificateError, Error};
use weigh_model::connection::Fault;

use crate::layer::tls::{fault_of_client, fault_of_server};

/// The fault of a client's connection, whose handshake was complete or not.
pub(super) fn of_client(error: &ConnectionError, stood: bool) -> Fault {
    match error {
        ConnectionError::TimedOut if stood => {
            Fault::Ended("nothing came from it for the idle time of QUIC".to_owned())
        }
        ConnectionError::TimedOut => {
            let text = "it did not answer the QUIC handshake: check the port, and whether the \
                        server listens there for QUIC (UDP)";
            Fault::Ended(text.to_owned())
        }
        ConnectionError::VersionMismatch => {
            Fault::OtherProtocol("QUIC without version 1 (RFC 9000)".to_owned())
        }
        ConnectionError::ConnectionClosed(close) => match alert(close.error_code) {
            Some(alert) => fault_of_client(&Error::AlertReceived(alert)),
            None => Fault::Ended(format!("it closed the QUIC connection: {close}")),
        },
        ConnectionError::TransportError(own) => match certificate(own) {
            Some(known) => fault_of_client(&known),
            None if alert(own.code).is_some() => Fault::Untrusted(own.reason.clone()),
            None => Fault::Malformed(format!("QUIC: {own}")),
        },
        ConnectionError::Reset => {
            let text = "it does not know the QUIC connection any more (stateless reset)";
            Fault::Ended(text.to_owned())
        }
        other => Fault::Ended(format!("QUIC: {other}")),
    }
}

/// The fault of a server's connection.
pub(super) fn of_server(error: &ConnectionError) -> Fault {
    let text = match error {
        ConnectionError::TimedOut => "a client was silent for the idle time".to_owned(),
        ConnectionError::ConnectionClosed(close) => match alert(close.error_code) {
            Some(alert) => return fault_of_server(&Error::AlertReceived(alert)),
            None => format!("a client closed the connection: {close}"),
        },
        other => other.to_string(),
    };
    Fault::Malformed(format!("QUIC: {text}"))
}

/// The alert of TLS in a code (RFC 9001, section 4.8).
fn alert(code: TransportErrorCode) -> Option<AlertDescription> {
    let code = u64::from(code);
    (code & !0xff == 0x100).then(|| AlertDescription::from(code as u8))
}

/// What was wrong with the server's certificate: the library keeps only the alert and a text.
fn certificate(own: &TransportError) -> Option<Error> {
    let wrong = match alert(own.code)? {
        AlertDescription::UnknownCA => CertificateError::UnknownIssuer,
        AlertDescription::CertificateExpired => CertificateError::Expired,
        _ => return None,
    };
    Some(Error::InvalidCertificate(wrong))
}
