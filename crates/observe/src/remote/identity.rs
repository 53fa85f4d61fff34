//! Identity of an agent: its own certificate, and the token that clients must send.

use std::fmt;
use std::sync::{Arc, Mutex};

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer, ServerName, UnixTime};
use rustls::version::TLS13;
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error, ServerConfig, SignatureScheme,
};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

use crate::remote::{RemoteError, TOKEN_LETTERS_MAX, TOKEN_LETTERS_MIN};

/// The token that an agent requires of clients.
#[derive(Clone)]
pub struct Token(String);

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(hidden)")
    }
}

impl Token {
    /// Makes a token: 128 random bits of the kernel, in hexadecimal digits.
    ///
    /// # Errors
    /// If the kernel has no random bits.
    pub fn make() -> Result<Token, RemoteError> {
        let mut bytes = [0u8; 16];
        getrandom::fill(&mut bytes).map_err(|error| RemoteError::Identity(error.to_string()))?;
        Ok(Token(bytes.iter().map(|byte| format!("{byte:02x}")).collect()))
    }

    /// Takes a given token.
    ///
    /// # Errors
    /// [`RemoteError::WeakToken`] if it is too short, too long, or holds blanks.
    pub fn given(text: &str) -> Result<Token, RemoteError> {
        let fits = (TOKEN_LETTERS_MIN..=TOKEN_LETTERS_MAX).contains(&text.len());
        if !fits || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(RemoteError::WeakToken);
        }
        Ok(Token(text.to_owned()))
    }

    /// The token itself, to be printed once.
    pub fn text(&self) -> &str {
        &self.0
    }

    /// Compares in a time that is independent of where two tokens differ: digests of equal
    /// length are compared completely.
    pub(crate) fn is(&self, other: &str) -> bool {
        let digest = |text: &str| Sha256::digest(text.as_bytes());
        digest(&self.0).ct_eq(&digest(other)).into()
    }
}

/// A certificate made for this agent, and its fingerprint.
///
/// # Errors
/// If it cannot be made.
pub(crate) fn agent_identity() -> Result<(Arc<ServerConfig>, [u8; 32]), RemoteError> {
    let wrong = |error: &dyn fmt::Display| RemoteError::Identity(error.to_string());
    let made = rcgen::generate_simple_self_signed(vec![NAME.to_owned()]);
    let made = made.map_err(|error| wrong(&error))?;
    let certificate = made.cert.der().clone();
    let fingerprint = fingerprint(&certificate);
    let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_protocol_versions(&[&TLS13])
        .map_err(|error| wrong(&error))?
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key.into())
        .map_err(|error| wrong(&error))?;
    Ok((Arc::new(config), fingerprint))
}

/// TLS settings that accept only the certificate with this fingerprint, and the result.
///
/// # Errors
/// If the library refuses.
pub(crate) fn pinned(fingerprint: [u8; 32]) -> Result<(Arc<ClientConfig>, Arc<Pin>), RemoteError> {
    let provider = Arc::new(ring::default_provider());
    let pin = Arc::new(Pin {
        fingerprint,
        provider: Arc::clone(&provider),
        was_other: Mutex::new(false),
    });
    let verifier: Arc<dyn ServerCertVerifier> = Arc::<Pin>::clone(&pin);
    let config = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&TLS13])
        .map_err(|error| RemoteError::Identity(error.to_string()))?
        .dangerous()
        .with_custom_certificate_verifier(verifier)
        .with_no_client_auth();
    Ok((Arc::new(config), pin))
}

/// Accepts one certificate, whatever its signature.
#[derive(Debug)]
pub(crate) struct Pin {
    fingerprint: [u8; 32],
    provider: Arc<CryptoProvider>,
    was_other: Mutex<bool>,
}

impl Pin {
    /// True if another certificate was presented.
    pub(crate) fn was_other(&self) -> bool {
        self.was_other.lock().is_ok_and(|was_other| *was_other)
    }
}

impl ServerCertVerifier for Pin {
    fn verify_server_cert(
        &self,
        own: &CertificateDer<'_>,
        _between: &[CertificateDer<'_>],
        _name: &ServerName<'_>,
        _ocsp: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        if fingerprint(own).ct_eq(&self.fingerprint).into() {
            return Ok(ServerCertVerified::assertion());
        }
        if let Ok(mut was_other) = self.was_other.lock() {
            *was_other = true;
        }
        Err(Error::InvalidCertificate(CertificateError::ApplicationVerificationFailure))
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

fn fingerprint(certificate: &CertificateDer<'_>) -> [u8; 32] {
    Sha256::digest(certificate.as_ref()).into()
}

/// The name in the certificate; it is not resolved.
pub(crate) const NAME: &str = "weigh-observe";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_long_hidden_and_compared_whole() {
        let (one, other) = (Token::make().unwrap(), Token::make().unwrap());
        assert_eq!(one.text().len(), 32);
        assert!(one.is(one.text()) && !one.is(other.text()) && !one.is(""));
        assert!(!one.is(&one.text()[..31]));
        assert!(!format!("{one:?}").contains(one.text()));
        assert!(Token::given("0123456789abcdef").unwrap().is("0123456789abcdef"));
        for weak in ["", "0123456789abcde", "0123456789 abcdef", &"x".repeat(129)] {
            assert!(matches!(Token::given(weak), Err(RemoteError::WeakToken)), "{weak}");
        }
    }
}
