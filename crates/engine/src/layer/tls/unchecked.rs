//! Verifier that accepts every certificate, and reports what would have been wrong with it.

use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{DigitallySignedStruct, Error, SignatureScheme};

use super::reasons;
use super::tally::Tally;

/// Accepts every certificate; signatures of the handshake are checked all the same.
#[derive(Debug)]
pub(super) struct Unchecked {
    usual: Option<Arc<WebPkiServerVerifier>>,
    provider: Arc<CryptoProvider>,
    tally: Arc<Tally>,
}

impl Unchecked {
    /// `usual` is asked for its opinion; without it there is none.
    pub(super) fn new(
        usual: Option<Arc<WebPkiServerVerifier>>,
        provider: Arc<CryptoProvider>,
        tally: Arc<Tally>,
    ) -> Unchecked {
        Unchecked { usual, provider, tally }
    }
}

impl ServerCertVerifier for Unchecked {
    fn verify_server_cert(
        &self,
        own: &CertificateDer<'_>,
        between: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let opinion = match &self.usual {
            Some(usual) => usual.verify_server_cert(own, between, name, ocsp, now).map(|_| ()),
            None => Err(Error::InvalidCertificate(rustls::CertificateError::UnknownIssuer)),
        };
        if let Err(error) = opinion {
            self.tally.note_unchecked(reasons::problem(&error));
        }
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let known = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signed, known)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let known = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signed, known)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
