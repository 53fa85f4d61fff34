//! One recipient of a part: ECDH-ES on X25519, HKDF with SHA-256, AES key wrap
//! (RFC 9053, sections 6.4 and 5.2).

use aes_kw::{KwAes128, KwAes256};
use coset::iana::{self, Algorithm, EnumI64};
use coset::{
    CborSerializable, CoseKdfContextBuilder, CoseKeyBuilder, CoseRecipient, CoseRecipientBuilder,
    Header, HeaderBuilder, Label, ProtectedHeader, SuppPubInfo, cbor::Value,
};
use hkdf::Hkdf;
use sha2::Sha256;
use weigh_model::seal::Cipher;
use x25519_dalek::{EphemeralSecret, PublicKey, SharedSecret};
use zeroize::Zeroizing;

use crate::content::{ContentKey, key_bytes};
use crate::critical;
use crate::error::SealError;
use crate::keys::{KeyId, OpenerKey, RecipientKey};

/// The part's key, wrapped for one participant.
pub(crate) fn wrap(
    key: &ContentKey,
    cipher: Cipher,
    recipient: &RecipientKey,
) -> Result<CoseRecipient, SealError> {
    let own = EphemeralSecret::random();
    let own_public = PublicKey::from(&own);
    let shared = own.diffie_hellman(&recipient.key);
    if !shared.was_contributory() {
        return Err(SealError::Asked {
            problem: format!("the key {} is a weak point of the curve", recipient.id),
            fix: "ask its owner for another key",
        });
    }
    let protected = HeaderBuilder::new().algorithm(agreement(cipher)).build();
    let sender = CoseKeyBuilder::new_okp_key()
        .param(
            iana::OkpKeyParameter::Crv.to_i64(),
            Value::from(iana::EllipticCurve::X25519.to_i64()),
        )
        .param(iana::OkpKeyParameter::X.to_i64(), Value::Bytes(own_public.as_bytes().to_vec()))
        .build();
    let sender = coset::AsCborValue::to_cbor_value(sender).expect("a key is plain CBOR");
    let unprotected =
        HeaderBuilder::new().key_id(recipient.id.0.to_vec()).value(EPHEMERAL, sender).build();
    let wrapping = wrapping_key(&shared, cipher, protected.clone());
    let mut wrapped = vec![0; key.bytes().len() + WRAP_BYTES];
    match cipher {
        Cipher::Aes128Gcm => kw::<KwAes128>(&wrapping).wrap_key(key.bytes(), &mut wrapped),
        _ => kw::<KwAes256>(&wrapping).wrap_key(key.bytes(), &mut wrapped),
    }
    .expect("content keys are whole blocks");
    Ok(CoseRecipientBuilder::new()
        .protected(protected)
        .unprotected(unprotected)
        .ciphertext(wrapped)
        .build())
}

/// Unwraps the part's key from the recipient's entry; `None` if it was changed.
pub(crate) fn unwrap(
    entry: &CoseRecipient,
    cipher: Cipher,
    key: &OpenerKey,
) -> Result<Option<ContentKey>, SealError> {
    let expected = Some(coset::Algorithm::Assigned(agreement(cipher)));
    if entry.protected.header.alg != expected {
        let found = entry.protected.header.alg.as_ref();
        return Err(SealError::Unsupported(format!("the key agreement {found:?}")));
    }
    critical::check(&entry.protected.header)?;
    let sender = ephemeral(&entry.unprotected).or_else(|| ephemeral(&entry.protected.header));
    let Some(sender) = sender else { return Ok(None) };
    let shared = key.secret.diffie_hellman(&PublicKey::from(sender));
    if !shared.was_contributory() {
        return Ok(None);
    }
    let wrapping = wrapping_key_of(&shared, cipher, entry.protected.clone());
    let wrapped = entry.ciphertext.as_deref().unwrap_or_default();
    if wrapped.len() != key_bytes(cipher) + WRAP_BYTES {
        return Ok(None);
    }
    let mut bytes = Zeroizing::new(vec![0; key_bytes(cipher)]);
    let unwrapped = match cipher {
        Cipher::Aes128Gcm => kw::<KwAes128>(&wrapping).unwrap_key(wrapped, &mut bytes).is_ok(),
        _ => kw::<KwAes256>(&wrapping).unwrap_key(wrapped, &mut bytes).is_ok(),
    };
    Ok(unwrapped.then(|| ContentKey::unwrapped(cipher, bytes)))
}

/// Whether the entry is for the key of this name. RFC 9052, section 3 leaves it to the sender
/// which of the two headers has the name.
pub(crate) fn is_for(entry: &CoseRecipient, key: KeyId) -> bool {
    name(entry) == key.0
}

/// The ID of the key of an entry.
pub(crate) fn name(entry: &CoseRecipient) -> &[u8] {
    match entry.unprotected.key_id.as_slice() {
        [] => &entry.protected.header.key_id,
        name => name,
    }
}

/// ECDH-ES with a key wrap as strong as the cipher.
fn agreement(cipher: Cipher) -> Algorithm {
    match cipher {
        Cipher::Aes128Gcm => Algorithm::ECDH_ES_A128KW,
        Cipher::Aes256Gcm | Cipher::ChaCha20Poly1305 => Algorithm::ECDH_ES_A256KW,
    }
}

fn wrapping_key(shared: &SharedSecret, cipher: Cipher, protected: Header) -> Zeroizing<Vec<u8>> {
    wrapping_key_of(shared, cipher, ProtectedHeader { original_data: None, header: protected })
}

/// HKDF with SHA-256 over the shared secret and the context of RFC 9053, section 5.2, in which
/// both parties are unnamed and the recipient's protected header stands.
fn wrapping_key_of(
    shared: &SharedSecret,
    cipher: Cipher,
    protected: ProtectedHeader,
) -> Zeroizing<Vec<u8>> {
    let (algorithm, bytes) = match cipher {
        Cipher::Aes128Gcm => (Algorithm::A128KW, 16),
        Cipher::Aes256Gcm | Cipher::ChaCha20Poly1305 => (Algorithm::A256KW, 32),
    };
    let public = SuppPubInfo { key_data_length: bytes as u64 * 8, protected, other: None };
    let context = CoseKdfContextBuilder::new().algorithm(algorithm).supp_pub_info(public).build();
    let context = context.to_vec().expect("a context is plain CBOR");
    let mut key = Zeroizing::new(vec![0; bytes]);
    Hkdf::<Sha256>::new(None, shared.as_bytes())
        .expand(&context, &mut key)
        .expect("HKDF gives up to 8,160 bytes");
    key
}

fn kw<K: aes_kw::KeyInit>(key: &[u8]) -> K {
    K::new_from_slice(key).expect("the key has the algorithm's length")
}

/// The sender's key of this recipient alone.
fn ephemeral(header: &Header) -> Option<[u8; 32]> {
    let value = header.rest.iter().find(|(label, _)| *label == Label::Int(EPHEMERAL))?;
    let key: coset::CoseKey = coset::AsCborValue::from_cbor_value(value.1.clone()).ok()?;
    if key.kty != coset::KeyType::Assigned(iana::KeyType::OKP) {
        return None;
    }
    let parameter = |wanted: iana::OkpKeyParameter| {
        let label = Label::Int(wanted.to_i64());
        key.params.iter().find(|(found, _)| *found == label).map(|(_, value)| value)
    };
    let curve = parameter(iana::OkpKeyParameter::Crv)?.as_integer()?;
    if i128::from(curve) != i128::from(iana::EllipticCurve::X25519.to_i64()) {
        return None;
    }
    parameter(iana::OkpKeyParameter::X)?.as_bytes()?.as_slice().try_into().ok()
}

/// Label of the sender's ephemeral key (RFC 9053, section 6.3.1).
const EPHEMERAL: i64 = iana::HeaderAlgorithmParameter::EphemeralKey as i64;

/// What key wrap adds (RFC 3394, section 2.2).
const WRAP_BYTES: usize = 8;
