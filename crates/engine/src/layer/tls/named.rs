//! Verifier that accepts a server's certificate if that certificate itself was named: the usual
//! self-signed one of openssl has CA:TRUE, and otherwise an authority must not be a server.

use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_name};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{DigitallySignedStruct, Error, SignatureScheme};

use super::reasons;

/// Checks as usual, and takes a named certificate for what it is.
#[derive(Debug)]
pub(super) struct Named {
    usual: Arc<WebPkiServerVerifier>,
    certificates: Vec<CertificateDer<'static>>,
}

impl Named {
    /// `certificates` are those that the user named.
    pub(super) fn new(
        usual: Arc<WebPkiServerVerifier>,
        certificates: Vec<CertificateDer<'static>>,
    ) -> Named {
        Named { usual, certificates }
    }
}

impl ServerCertVerifier for Named {
    fn verify_server_cert(
        &self,
        own: &CertificateDer<'_>,
        between: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let error = match self.usual.verify_server_cert(own, between, name, ocsp, now) {
            // That it is valid at this time was looked at before what it is made for.
            Err(error) if reasons::is_authority_itself(&error) => error,
            other => return other,
        };
        if !self.certificates.iter().any(|known| known.as_ref() == own.as_ref()) {
            return Err(error);
        }
        verify_server_name(&ParsedCertificate::try_from(own)?, name)?;
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.usual.verify_tls12_signature(message, certificate, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.usual.verify_tls13_signature(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.usual.supported_verify_schemes()
    }
}
