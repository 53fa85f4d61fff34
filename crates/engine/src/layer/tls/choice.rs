//! Choices for both ends of TLS, and the rustls configurations made from them.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::client::Resumption;
use rustls::client::danger::ServerCertVerifier;
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::{Error as PemError, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::server::danger::ClientCertVerifier;
use rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use rustls::{
    ClientConfig, RootCertStore, ServerConfig, SupportedProtocolVersion,
    client::WebPkiServerVerifier, version,
};

use super::lenient::{Accepted, Lenient};
use super::tally::Tally;

/// Versions that may be negotiated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Versions {
    /// TLS 1.3 where the other side has it, else 1.2.
    Both,
    /// TLS 1.2 only (RFC 5246).
    Tls12,
    /// TLS 1.3 only (RFC 8446).
    Tls13,
}

/// A certificate chain and its key, as PEM files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The chain, the own certificate first.
    pub certificate: PathBuf,
    /// The key.
    pub key: PathBuf,
}

/// Choices for a client.
#[derive(Clone, Debug)]
pub struct ClientChoice {
    /// Versions offered.
    pub versions: Versions,
    /// Authority that signs for servers; `None` for those that the system trusts.
    pub authority: Option<PathBuf>,
    /// Certificate and key of the client, if the server asks for them.
    pub identity: Option<Identity>,
    /// The name in the certificate and, unless it is an address, in SNI (RFC 6066, section 3).
    pub name: String,
    /// Protocols offered by ALPN (RFC 7301), the best first; empty offers none.
    pub alpn: Vec<Vec<u8>>,
    /// True if sessions are resumed.
    pub resumes: bool,
    /// False accepts every certificate; that belongs into the result.
    pub verifies: bool,
}

/// Choices for a server.
#[derive(Clone, Debug)]
pub struct ServerChoice {
    /// Versions accepted.
    pub versions: Versions,
    /// Certificate and key of the server.
    pub identity: Identity,
    /// Authority that signs for clients; `None` asks for no certificate.
    pub clients: Option<PathBuf>,
    /// Protocols taken by ALPN; empty takes none. Clients that offer none are let in.
    pub alpn: Vec<Vec<u8>>,
    /// True if it issues tickets.
    pub resumes: bool,
}

/// Problem with certificates, keys or names; with the fix.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{place}{problem}{fix}")]
pub struct TlsError {
    place: String,
    problem: String,
    fix: String,
}

impl TlsError {
    pub(super) fn file(path: &Path, problem: &str, fix: &str) -> TlsError {
        let fix = if fix.is_empty() { String::new() } else { format!("; {fix}") };
        TlsError { place: format!("{}: ", path.display()), problem: problem.to_owned(), fix }
    }

    pub(in crate::layer) fn making(error: rcgen::Error) -> TlsError {
        TlsError::plain(format!("certificates could not be made: {error}"), "")
    }

    pub(in crate::layer) fn plain(problem: String, fix: &str) -> TlsError {
        TlsError { place: String::new(), problem, fix: fix.to_owned() }
    }
}

impl ClientChoice {
    /// Returns the configuration, and the name that servers must have. What is accepted without a
    /// check is recorded in `tally`.
    ///
    /// # Errors
    /// Files that cannot be read, are not certificates or keys, or do not belong together.
    pub fn config(
        &self,
        tally: &Arc<Tally>,
    ) -> Result<(Arc<ClientConfig>, ServerName<'static>), TlsError> {
        let (verifier, name) = self.verifier(tally)?;
        let builder = ClientConfig::builder_with_provider(provider())
            .with_protocol_versions(versions(self.versions))
            .map_err(|error| TlsError::plain(error.to_string(), ""))?
            .dangerous()
            .with_custom_certificate_verifier(verifier);
        let mut config = match &self.identity {
            None => builder.with_no_client_auth(),
            Some(identity) => {
                let (chain, key) = identity.read()?;
                builder.with_client_auth_cert(chain, key).map_err(|e| identity.refused(&e))?
            }
        };
        config.alpn_protocols = self.alpn.clone();
        config.resumption = if self.resumes {
            Resumption::in_memory_sessions(SESSIONS_KEPT)
        } else {
            Resumption::disabled()
        };
        // Uses SSLKEYLOGFILE; does nothing if that is not set.
        config.key_log = Arc::new(rustls::KeyLogFile::new());
        Ok((Arc::new(config), name))
    }

    /// Returns what checks the certificates of servers, and the name that they must have. What is
    /// accepted without a check is recorded in `tally`.
    pub(in crate::layer) fn verifier(
        &self,
        tally: &Arc<Tally>,
    ) -> Result<(Arc<dyn ServerCertVerifier>, ServerName<'static>), TlsError> {
        let name = self.server_name()?;
        let roots = Arc::new(roots(self.authority.as_deref(), self.verifies)?);
        let usual = WebPkiServerVerifier::builder_with_provider(roots, provider()).build();
        let lenient = |usual, accepts| Lenient { usual, provider: provider(), accepts };
        let verifier: Arc<dyn ServerCertVerifier> = match (self.verifies, &self.authority, usual) {
            (false, _, usual) => Arc::new(lenient(usual.ok(), Accepted::All(Arc::clone(tally)))),
            (true, Some(path), Ok(usual)) => {
                Arc::new(lenient(Some(usual), Accepted::Named(chain(path)?)))
            }
            (true, None, Ok(usual)) => usual,
            (true, _, Err(error)) => return Err(TlsError::plain(error.to_string(), "")),
        };
        Ok((verifier, name))
    }

    fn server_name(&self) -> Result<ServerName<'static>, TlsError> {
        ServerName::try_from(self.name.clone()).map_err(|_| {
            let fix = "; give the name in the server's certificate (tls_name)";
            TlsError::plain(format!("{:?} is not a host name for TLS", self.name), fix)
        })
    }

    /// Reports what would be wrong, without connecting.
    ///
    /// # Errors
    /// Files that cannot be read, are not certificates or keys, or do not belong together.
    pub fn check(&self) -> Result<(), TlsError> {
        self.config(&Arc::default()).map(|_| ())
    }
}

impl ServerChoice {
    /// Returns what checks the certificates of clients; `None` if none is asked for.
    pub(in crate::layer) fn verifier(
        &self,
    ) -> Result<Option<Arc<dyn ClientCertVerifier>>, TlsError> {
        let Some(path) = &self.clients else { return Ok(None) };
        let roots = Arc::new(roots(Some(path), true)?);
        WebPkiClientVerifier::builder_with_provider(roots, provider())
            .build()
            .map(Some)
            .map_err(|error| TlsError::file(path, &error.to_string(), ""))
    }

    pub(in crate::layer) fn config(&self) -> Result<Arc<ServerConfig>, TlsError> {
        let builder = ServerConfig::builder_with_provider(provider())
            .with_protocol_versions(versions(self.versions))
            .map_err(|error| TlsError::plain(error.to_string(), ""))?;
        let builder = match self.verifier()? {
            None => builder.with_no_client_auth(),
            Some(verifier) => builder.with_client_cert_verifier(verifier),
        };
        let (chain, key) = self.identity.read()?;
        let mut config =
            builder.with_single_cert(chain, key).map_err(|e| self.identity.refused(&e))?;
        config.alpn_protocols = self.alpn.clone();
        if self.resumes {
            // Tickets need no storage, so that all shards take those of each other.
            config.ticketer = ring::Ticketer::new()
                .map_err(|error| TlsError::plain(format!("no key for tickets: {error}"), ""))?;
        } else {
            config.session_storage = Arc::new(NoServerSessionStorage {});
            config.send_tls13_tickets = 0;
        }
        Ok(Arc::new(config))
    }
}

impl Identity {
    fn read(&self) -> Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>), TlsError> {
        let key = PrivateKeyDer::from_pem_file(&self.key).map_err(|error| {
            let fix = "give the key as a PEM file, unencrypted: -----BEGIN PRIVATE KEY-----";
            TlsError::file(&self.key, &pem_problem(&error, "private key"), fix)
        })?;
        Ok((chain(&self.certificate)?, key))
    }

    /// Returns the own certificate and its key in DER, after a check that they belong together.
    #[cfg(feature = "dtls")]
    pub(in crate::layer) fn der(&self) -> Result<(Vec<u8>, Vec<u8>), TlsError> {
        let (chain, key) = self.read()?;
        let (own, secret) = (chain[0].to_vec(), key.secret_der().to_vec());
        rustls::sign::CertifiedKey::from_der(chain, key, &provider())
            .map_err(|error| self.refused(&error))?;
        Ok((own, secret))
    }

    fn refused(&self, error: &rustls::Error) -> TlsError {
        let (problem, fix) = match error {
            rustls::Error::InconsistentKeys(_) => (
                format!("is not the certificate of the key {}", self.key.display()),
                "give the key that it was made with",
            ),
            other => (format!("cannot be used: {other}"), "give an X.509 v3 certificate"),
        };
        TlsError::file(&self.certificate, &problem, fix)
    }
}

fn chain(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let fix = "check the path; the file must be PEM and contain -----BEGIN CERTIFICATE-----";
    let wrong = |error| TlsError::file(path, &pem_problem(&error, "certificate"), fix);
    let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_file_iter(path)
        .map_err(wrong)?
        .collect::<Result<_, _>>()
        .map_err(wrong)?;
    if chain.is_empty() { Err(wrong(PemError::NoItemsFound)) } else { Ok(chain) }
}

fn pem_problem(error: &PemError, what: &str) -> String {
    match error {
        PemError::Io(error) => format!("cannot be read: {error}"),
        PemError::NoItemsFound => format!("contains no {what}"),
        other => format!("is not a {what}: {other}"),
    }
}

/// Returns the authorities of a file, or those that the system trusts; none if nothing is checked.
fn roots(path: Option<&Path>, must_be: bool) -> Result<RootCertStore, TlsError> {
    let mut roots = RootCertStore::empty();
    match path {
        Some(path) => {
            for certificate in chain(path)? {
                roots.add(certificate).map_err(|error| {
                    let fix = "give the certificate of the authority that signed the other's";
                    TlsError::file(path, &format!("is not a usable certificate: {error}"), fix)
                })?;
            }
        }
        None => {
            let found = rustls_native_certs::load_native_certs();
            roots.add_parsable_certificates(found.certs);
        }
    }
    if roots.is_empty() && must_be {
        let fix = "; give the authority of the server (tls_ca=FILE)";
        return Err(TlsError::plain("this system trusts no authority at all".to_owned(), fix));
    }
    Ok(roots)
}

fn versions(which: Versions) -> &'static [&'static SupportedProtocolVersion] {
    match which {
        Versions::Both => &BOTH,
        Versions::Tls12 => &BOTH[1..],
        Versions::Tls13 => &BOTH[..1],
    }
}

static BOTH: [&SupportedProtocolVersion; 2] = [&version::TLS13, &version::TLS12];

fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}

/// Servers whose sessions a client remembers; a trial has one.
const SESSIONS_KEPT: usize = 16;
