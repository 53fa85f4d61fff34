//! Verifier that accepts some of the certificates which are usually refused.

use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_name};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, DigitallySignedStruct, Error, SignatureScheme};

use super::reasons;
use super::tally::Tally;

/// Checks as usual, and accepts more than that. Signatures of the handshake are checked all the
/// same.
#[derive(Debug)]
pub(super) struct Lenient {
    /// Asked for its opinion; without it there is none.
    pub(super) usual: Option<Arc<WebPkiServerVerifier>>,
    pub(super) provider: Arc<CryptoProvider>,
    pub(super) accepts: Accepted,
}

/// What is accepted although it is usually refused.
#[derive(Debug)]
pub(super) enum Accepted {
    /// Certificates that the user named: the usual self-signed one of openssl has CA:TRUE, and
    /// otherwise an authority must not be a server.
    Named(Vec<CertificateDer<'static>>),
    /// Every certificate; what is wrong with it is recorded.
    All(Arc<Tally>),
}

impl ServerCertVerifier for Lenient {
    fn verify_server_cert(
        &self,
        own: &CertificateDer<'_>,
        between: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let opinion = match &self.usual {
            Some(usual) => usual.verify_server_cert(own, between, name, ocsp, now),
            None => Err(Error::InvalidCertificate(CertificateError::UnknownIssuer)),
        };
        let Err(error) = opinion else { return opinion };
        match &self.accepts {
            Accepted::All(tally) => tally.note_unchecked(reasons::problem(&error)),
            Accepted::Named(certificates) => {
                // That it is valid at this time was looked at before what it is made for.
                let is_named = certificates.iter().any(|known| known.as_ref() == own.as_ref());
                if !is_named || !reasons::is_authority_itself(&error) {
                    return Err(error);
                }
                verify_server_name(&ParsedCertificate::try_from(own)?, name)?;
            }
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
