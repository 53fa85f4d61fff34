//! Keys as `openssl genpkey` writes them: X25519 for recipients, Ed25519 for signers, in PEM.

use std::fmt;

use ed25519_dalek::{SigningKey, VerifyingKey};
use pkcs8::der::{Decode, SecretDocument};
use pkcs8::{ObjectIdentifier, PrivateKeyInfoRef};
use sha2::{Digest, Sha256};
use spki::{Document, SubjectPublicKeyInfoRef};
use x25519_dalek::{PublicKey, StaticSecret};
use zeroize::Zeroizing;

use crate::content::fill_random;
use crate::error::SealError;

/// Identifies a key without revealing it: the first 8 bytes of SHA-256 of the raw public key, as
/// COSE's `kid`. Two keys have the same ID with a probability of 2⁻⁶⁴.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyId(pub [u8; 8]);

/// The public key of a participant, for whom parts can be sealed.
#[derive(Clone)]
pub struct RecipientKey {
    pub(crate) key: PublicKey,
    pub(crate) id: KeyId,
}

/// The private key of a participant. Never printed; wiped from memory when dropped.
pub struct OpenerKey {
    pub(crate) secret: StaticSecret,
    id: KeyId,
}

/// The public key of an owner, which verifies signatures.
#[derive(Clone)]
pub struct SignatureKey(pub(crate) VerifyingKey);

/// The private key of an owner. Never printed; wiped from memory when dropped.
pub struct SignerKey(pub(crate) SigningKey);

impl KeyId {
    fn of(raw: &[u8]) -> KeyId {
        let digest = Sha256::digest(raw);
        let mut id = [0; 8];
        id.copy_from_slice(&digest[..8]);
        KeyId(id)
    }

    /// Parses 16 hexadecimal digits.
    pub fn parse(text: &str) -> Option<KeyId> {
        let mut id = [0; 8];
        if text.len() != 16 || !text.is_ascii() {
            return None;
        }
        for (place, byte) in id.iter_mut().enumerate() {
            *byte = u8::from_str_radix(&text[2 * place..2 * place + 2], 16).ok()?;
        }
        Some(KeyId(id))
    }
}

impl fmt::Display for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl RecipientKey {
    /// Reads a public key in PEM (`SubjectPublicKeyInfo`). `place` is named in errors.
    ///
    /// # Errors
    /// If it is not an X25519 public key.
    pub fn from_pem(text: &str, place: &str) -> Result<RecipientKey, SealError> {
        Ok(RecipientKey::new(PublicKey::from(public(text, place, Curve::X25519)?)))
    }

    fn new(key: PublicKey) -> RecipientKey {
        RecipientKey { id: KeyId::of(key.as_bytes()), key }
    }

    /// The name of the key.
    pub fn id(&self) -> KeyId {
        self.id
    }
}

impl OpenerKey {
    /// Reads a private key in PEM (`PKCS#8`). `place` is named in errors.
    ///
    /// # Errors
    /// If it is not an X25519 private key.
    pub fn from_pem(text: &str, place: &str) -> Result<OpenerKey, SealError> {
        Ok(OpenerKey::new(StaticSecret::from(*private(text, place, Curve::X25519)?)))
    }

    /// Makes a key that exists only in memory.
    ///
    /// # Errors
    /// If there are no random bytes.
    pub fn random() -> Result<OpenerKey, SealError> {
        Ok(OpenerKey::new(StaticSecret::from(*random()?)))
    }

    fn new(secret: StaticSecret) -> OpenerKey {
        OpenerKey { id: RecipientKey::new(PublicKey::from(&secret)).id, secret }
    }

    /// The public half.
    pub fn recipient(&self) -> RecipientKey {
        RecipientKey { key: PublicKey::from(&self.secret), id: self.id }
    }

    /// The name of the key.
    pub fn id(&self) -> KeyId {
        self.id
    }
}

impl SignatureKey {
    /// Reads a public key in PEM (`SubjectPublicKeyInfo`). `place` is named in errors.
    ///
    /// # Errors
    /// If it is not an Ed25519 public key.
    pub fn from_pem(text: &str, place: &str) -> Result<SignatureKey, SealError> {
        let raw = public(text, place, Curve::Ed25519)?;
        VerifyingKey::from_bytes(&raw).map(SignatureKey).map_err(|_| SealError::Key {
            place: place.to_owned(),
            problem: "its 32 bytes are not a point of the curve Ed25519".into(),
            fix: "make it again: openssl pkey -in PRIVATE -pubout",
        })
    }

    /// The name of the key.
    pub fn id(&self) -> KeyId {
        KeyId::of(self.0.as_bytes())
    }
}

impl SignerKey {
    /// Reads a private key in PEM (`PKCS#8`). `place` is named in errors.
    ///
    /// # Errors
    /// If it is not an Ed25519 private key.
    pub fn from_pem(text: &str, place: &str) -> Result<SignerKey, SealError> {
        Ok(SignerKey(SigningKey::from_bytes(&*private(text, place, Curve::Ed25519)?)))
    }

    /// Makes a key that exists only in memory.
    ///
    /// # Errors
    /// If there are no random bytes.
    pub fn random() -> Result<SignerKey, SealError> {
        Ok(SignerKey(SigningKey::from_bytes(&*random()?)))
    }

    /// The public half.
    pub fn signature_key(&self) -> SignatureKey {
        SignatureKey(self.0.verifying_key())
    }

    /// The name of the key.
    pub fn id(&self) -> KeyId {
        self.signature_key().id()
    }
}

/// Kind and ID of a key in a file, one of the four kinds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyFile {
    /// The ID of the key pair.
    pub id: KeyId,
    /// True for the private key.
    pub is_private: bool,
    /// True for the key of a signer, false for that of a recipient.
    pub signs: bool,
}

impl KeyFile {
    /// Reads it from PEM. `place` is named in errors.
    ///
    /// # Errors
    /// If it is none of the four kinds.
    pub fn from_pem(text: &str, place: &str) -> Result<KeyFile, SealError> {
        let is_private = text.contains("PRIVATE KEY-----");
        let (opens, signs) = match is_private {
            true => (
                OpenerKey::from_pem(text, place).map(|key| key.id()),
                SignerKey::from_pem(text, place).map(|key| key.id()),
            ),
            false => (
                RecipientKey::from_pem(text, place).map(|key| key.id()),
                SignatureKey::from_pem(text, place).map(|key| key.id()),
            ),
        };
        match signs {
            Ok(id) => Ok(KeyFile { id, is_private, signs: true }),
            Err(_) => opens.map(|id| KeyFile { id, is_private, signs: false }),
        }
    }
}

impl fmt::Debug for OpenerKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OpenerKey({})", self.id)
    }
}

impl fmt::Debug for SignerKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SignerKey({})", self.id())
    }
}

impl fmt::Debug for RecipientKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RecipientKey({})", self.id)
    }
}

impl fmt::Debug for SignatureKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SignatureKey({})", self.id())
    }
}

/// What a key is for, by its curve (RFC 8410, section 3).
#[derive(Clone, Copy, PartialEq)]
enum Curve {
    X25519,
    Ed25519,
}

impl Curve {
    fn of(oid: ObjectIdentifier) -> Option<Curve> {
        match oid.to_string().as_str() {
            "1.3.101.110" => Some(Curve::X25519),
            "1.3.101.112" => Some(Curve::Ed25519),
            _ => None,
        }
    }

    fn check(self, oid: ObjectIdentifier, place: &str) -> Result<(), SealError> {
        let problem = match (Curve::of(oid), self) {
            (Some(found), wanted) if found == wanted => return Ok(()),
            (Some(Curve::Ed25519), _) => "an Ed25519 key, which can sign but not open".to_owned(),
            (Some(Curve::X25519), _) => "an X25519 key, which can open but not sign".to_owned(),
            (None, _) => format!("a key of the kind {}", kind(oid)),
        };
        let fix = match self {
            Curve::X25519 => "participants need X25519 keys: run openssl genpkey -algorithm X25519",
            Curve::Ed25519 => "signers need Ed25519 keys: openssl genpkey -algorithm ED25519",
        };
        Err(SealError::Key { place: place.to_owned(), problem, fix })
    }
}

/// Name of a common kind of key, by its identifier.
fn kind(oid: ObjectIdentifier) -> String {
    let known = [
        ("1.2.840.10045.2.1", "ECDSA or ECDH on a curve such as P-256"),
        ("1.2.840.113549.1.1.1", "RSA"),
        ("1.3.101.111", "X448"),
        ("1.3.101.113", "Ed448"),
    ];
    let oid = oid.to_string();
    known.iter().find(|(known, _)| *known == oid).map_or(oid, |(_, name)| (*name).to_owned())
}

fn random() -> Result<Zeroizing<[u8; 32]>, SealError> {
    let mut bytes = Zeroizing::new([0; 32]);
    fill_random(&mut *bytes)?;
    Ok(bytes)
}

fn public(text: &str, place: &str, curve: Curve) -> Result<[u8; 32], SealError> {
    let wrong = |problem: String| SealError::Key {
        place: place.to_owned(),
        problem,
        fix: "give a public key in PEM: openssl pkey -in PRIVATE -pubout",
    };
    if text.contains("PRIVATE KEY-----") {
        return Err(wrong("found a private key, expected a public one".into()));
    }
    let (label, document) = Document::from_pem(text)
        .map_err(|error| wrong(format!("not a public key in PEM ({error})")))?;
    if label != "PUBLIC KEY" {
        return Err(wrong(format!("PEM of the kind {label:?}")));
    }
    let info = SubjectPublicKeyInfoRef::from_der(document.as_bytes())
        .map_err(|error| wrong(format!("not a public key ({error})")))?;
    curve.check(info.algorithm.oid, place)?;
    let raw = info.subject_public_key.as_bytes().unwrap_or_default();
    raw.try_into().map_err(|_| wrong(format!("a key of {} bytes instead of 32", raw.len())))
}

fn private(text: &str, place: &str, curve: Curve) -> Result<Zeroizing<[u8; 32]>, SealError> {
    let wrong = |problem: String| SealError::Key {
        place: place.to_owned(),
        problem,
        fix: "give a private key in PEM without a password, as openssl genpkey writes it",
    };
    if text.contains("-----BEGIN PUBLIC KEY") {
        return Err(wrong("found a public key, expected a private one".into()));
    }
    if text.contains("ENCRYPTED") {
        return Err(SealError::Key {
            place: place.to_owned(),
            problem: "found a private key with a password, which cannot be entered here".into(),
            fix: "remove the password while the key is needed: openssl pkey -in FILE -out PLAIN",
        });
    }
    let (label, document) = SecretDocument::from_pem(text)
        .map_err(|error| wrong(format!("not a private key in PEM ({error})")))?;
    if label != "PRIVATE KEY" {
        return Err(wrong(format!("PEM of the kind {label:?}")));
    }
    let info = PrivateKeyInfoRef::from_der(document.as_bytes())
        .map_err(|error| wrong(format!("not a private key ({error})")))?;
    curve.check(info.algorithm.oid, place)?;
    // RFC 8410, section 7: the key is an OCTET STRING inside the OCTET STRING.
    match info.private_key.as_bytes() {
        [0x04, 0x20, raw @ ..] if raw.len() == 32 => {
            let mut key = Zeroizing::new([0; 32]);
            key.copy_from_slice(raw);
            Ok(key)
        }
        other => Err(wrong(format!("a key of {} bytes instead of 34", other.len()))),
    }
}
