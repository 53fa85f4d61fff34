//! Choices for both ends of DTLS, and how their sessions begin.

use std::sync::Arc;
use std::time::Instant;

use dimpl::crypto::rust_crypto;
use dimpl::{Config, ConfigBuilder, Dtls, DtlsCertificate, PskResolver};
use rustls::pki_types::{CertificateDer, UnixTime};

use super::session::{Check, Session};
use crate::layer::datagrams::{Begin, Clock};
use crate::layer::tls::{ClientChoice, Identity, ServerChoice, Tally, TlsError, Versions};

/// A key that both ends know (RFC 4279), and the name by which the client calls it.
#[derive(Clone, PartialEq, Eq)]
pub struct PresharedKey {
    /// Identity.
    pub identity: Vec<u8>,
    /// Key.
    pub key: Vec<u8>,
}

/// How a client proves who it is and checks the server.
#[derive(Clone, Debug)]
pub enum ClientProof {
    /// By certificates. Neither ALPN nor resumption are used.
    Certificate(ClientChoice),
    /// By a key that both know; DTLS 1.2 only.
    Preshared(PresharedKey),
}

/// How a server proves who it is and checks clients.
#[derive(Clone, Debug)]
pub enum ServerProof {
    /// By certificates. Neither ALPN nor resumption are used.
    Certificate(ServerChoice),
    /// By a key that both know; DTLS 1.2 only.
    Preshared(PresharedKey),
}

impl std::fmt::Debug for PresharedKey {
    /// Leaves the key out.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "PresharedKey({:?})", String::from_utf8_lossy(&self.identity))
    }
}

impl PskResolver for PresharedKey {
    fn resolve(&self, identity: &[u8]) -> Option<Vec<u8>> {
        (identity == self.identity).then(|| self.key.clone())
    }
}

/// How sessions of a client begin.
pub(super) fn client(proof: &ClientProof, tally: &Arc<Tally>) -> Result<Begin<Session>, TlsError> {
    let make: Make = match proof {
        ClientProof::Preshared(known) => {
            let known = known.clone();
            let builder = builder().with_psk_client(known.identity.clone(), Arc::new(known));
            let config = build(builder)?;
            Box::new(move |at| Dtls::new_12_psk(Arc::clone(&config), at))
        }
        ClientProof::Certificate(choice) => {
            let config = build(builder())?;
            let own = match &choice.identity {
                Some(identity) => certificate(identity, &config)?,
                None => nameless()?,
            };
            let versions = choice.versions;
            Box::new(move |at| with_certificate(versions, &config, own.clone(), at))
        }
    };
    let check: Check = match proof {
        ClientProof::Preshared(_) => Arc::new(|_: &[u8]| Ok(())),
        ClientProof::Certificate(choice) => {
            let (verifier, name) = choice.verifier(tally)?;
            Arc::new(move |der: &[u8]| {
                let own = CertificateDer::from(der);
                let found = verifier.verify_server_cert(&own, &[], &name, &[], UnixTime::now());
                found.map(|_| ()).map_err(|error| crate::layer::tls::fault_of_client(&error))
            })
        }
    };
    Ok(begin(make, true, check, tally))
}

/// How sessions of a server begin.
pub(super) fn server(proof: &ServerProof, tally: &Arc<Tally>) -> Result<Begin<Session>, TlsError> {
    let (make, check): (Make, Check) = match proof {
        ServerProof::Preshared(known) => {
            let config = build(builder().with_psk_server(None, Arc::new(known.clone())))?;
            let make = move |at| Dtls::new_12_psk(Arc::clone(&config), at);
            (Box::new(make), Arc::new(|_: &[u8]| Ok(())))
        }
        ServerProof::Certificate(choice) => {
            let is_mutual = choice.clients.is_some();
            let config = build(builder().require_client_certificate(is_mutual))?;
            let own = certificate(&choice.identity, &config)?;
            let versions = choice.versions;
            let make = move |at| with_certificate(versions, &config, own.clone(), at);
            let check: Check = match choice.verifier()? {
                None => Arc::new(|_: &[u8]| Ok(())),
                Some(verifier) => Arc::new(move |der: &[u8]| {
                    let own = CertificateDer::from(der);
                    let found = verifier.verify_client_cert(&own, &[], UnixTime::now());
                    found.map(|_| ()).map_err(|error| crate::layer::tls::fault_of_server(&error))
                }),
            };
            (Box::new(make), check)
        }
    };
    Ok(begin(make, false, check, tally))
}

/// Makes the state machine of a session.
type Make = Box<dyn Fn(Instant) -> Dtls + Send + Sync>;

fn begin(make: Make, is_client: bool, check: Check, tally: &Arc<Tally>) -> Begin<Session> {
    let (clock, tally) = (Clock::start(), Arc::clone(tally));
    Arc::new(move |now| {
        let mut dtls = make(clock.at(now));
        dtls.set_active(is_client);
        Session::new(dtls, clock, now, Arc::clone(&check), Arc::clone(&tally))
    })
}

fn with_certificate(
    versions: Versions,
    config: &Arc<Config>,
    own: DtlsCertificate,
    at: Instant,
) -> Dtls {
    let config = Arc::clone(config);
    match versions {
        Versions::Both => Dtls::new_auto(config, own, at),
        Versions::Tls12 => Dtls::new_12(config, own, at),
        Versions::Tls13 => Dtls::new_13(config, own, at),
    }
}

fn builder() -> ConfigBuilder {
    Config::builder().with_crypto_provider(rust_crypto::default_provider()).mtu(DATAGRAM_BYTES_MAX)
}

fn build(builder: ConfigBuilder) -> Result<Arc<Config>, TlsError> {
    let built = builder.build();
    built.map(Arc::new).map_err(|error| TlsError::plain(format!("DTLS: {error}"), ""))
}

/// The certificate of an identity, with the key that was made for it.
fn certificate(identity: &Identity, config: &Config) -> Result<DtlsCertificate, TlsError> {
    let (certificate, private_key) = identity.der()?;
    let keys = config.crypto_provider().key_provider;
    keys.load_private_key(&private_key).map_err(|_| {
        let fix = "; give an ECDSA key on the curve P-256 or P-384";
        TlsError::plain(format!("{}: is not a key for DTLS", identity.key.display()), fix)
    })?;
    Ok(DtlsCertificate { certificate, private_key })
}

/// The certificate of a client that has none: the library demands one, and sends it if the server
/// asks.
fn nameless() -> Result<DtlsCertificate, TlsError> {
    let make = || {
        let key = rcgen::KeyPair::generate()?;
        let own = rcgen::CertificateParams::new(Vec::new())?.self_signed(&key)?;
        Ok((own.der().to_vec(), key.serialize_der()))
    };
    let (certificate, private_key) = make().map_err(TlsError::making)?;
    Ok(DtlsCertificate { certificate, private_key })
}

/// Bytes of a datagram: a block of 1,024 bytes with its options and the record fit, and so does the
/// datagram into the least packet that IPv6 promises, 1,280 bytes with headers of 40 and 8 (RFC
/// 8200, section 5). So it is not cut into fragments on a path that carries less than Ethernet.
const DATAGRAM_BYTES_MAX: usize = 1_232;
