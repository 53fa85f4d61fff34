//! One part of an object: a `COSE_Encrypt` (RFC 9052, section 5.1) with a key of its own.

use coset::cbor::Value;
use coset::{
    AsCborValue, CoseEncrypt, CoseEncryptBuilder, HeaderBuilder, Label, RegisteredLabelWithPrivate,
    iana,
};

use weigh_model::seal::Cipher;

use crate::content::{ContentKey, NONCE_BYTES, algorithm, fill_random, from_algorithm};
use crate::critical::{self, PART, POLICY};
use crate::error::SealError;
use crate::keys::{OpenerKey, RecipientKey};
use crate::policy::Policy;
use crate::recipient;

/// Index and number of parts; absent for an object of one part without a policy.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Place {
    pub(crate) name: String,
    pub(crate) index: usize,
    pub(crate) count: usize,
    /// ID that all parts of one object share and no other object has, whatever its policy.
    pub(crate) sealing: Sealing,
}

/// 16 random bytes, made each time that an object is sealed.
pub(crate) type Sealing = [u8; 16];

/// Encrypts `content` for `recipients`.
pub(crate) fn seal(
    content: &[u8],
    cipher: Cipher,
    recipients: &[&RecipientKey],
    bound: Option<(&Value, &Place)>,
) -> Result<CoseEncrypt, SealError> {
    let key = ContentKey::random(cipher)?;
    let mut nonce = [0; NONCE_BYTES];
    fill_random(&mut nonce)?;
    let mut protected = HeaderBuilder::new().algorithm(algorithm(cipher));
    if let Some((policy, place)) = bound {
        protected = protected
            .text_value(POLICY.to_owned(), policy.clone())
            .text_value(PART.to_owned(), place.to_cbor());
    }
    let mut part = CoseEncryptBuilder::new()
        .protected(protected.build())
        .unprotected(HeaderBuilder::new().iv(nonce.to_vec()).build());
    for one in recipients {
        part = part.add_recipient(recipient::wrap(&key, cipher, one)?);
    }
    Ok(part
        .create_ciphertext(content, &[], |content, aad| key.encrypt(&nonce, content, aad))
        .build())
}

/// Decrypts a part with the key of one recipient.
pub(crate) fn open(part: &CoseEncrypt, name: &str, key: &OpenerKey) -> Result<Vec<u8>, SealError> {
    let cipher = cipher(part)?;
    critical::check(&part.protected.header)?;
    let own = key.id();
    let entry = part.recipients.iter().find(|entry| recipient::is_for(entry, own));
    let entry = entry.ok_or_else(|| SealError::NotARecipient(own.to_string()))?;
    let changed = || SealError::Changed { part: name.to_owned() };
    let content = recipient::unwrap(entry, cipher, key)?.ok_or_else(changed)?;
    let nonce = match part.unprotected.iv.as_slice() {
        [] => part.protected.header.iv.as_slice(),
        nonce => nonce,
    };
    let nonce: [u8; NONCE_BYTES] = nonce.try_into().map_err(|_| changed())?;
    part.decrypt_ciphertext(&[], changed, |encrypted, aad| {
        content.decrypt(&nonce, encrypted, aad).ok_or_else(changed)
    })
}

/// The cipher of the content.
pub(crate) fn cipher(part: &CoseEncrypt) -> Result<Cipher, SealError> {
    match &part.protected.header.alg {
        Some(RegisteredLabelWithPrivate::Assigned(algorithm)) => from_algorithm(*algorithm)
            .ok_or_else(|| SealError::Unsupported(format!("the cipher {algorithm:?}"))),
        other => Err(SealError::Unsupported(format!("the cipher {other:?}"))),
    }
}

/// The policy in the protected header.
pub(crate) fn policy(part: &CoseEncrypt) -> Result<Option<(Policy, &Value)>, SealError> {
    let Some(value) = protected(part, POLICY) else { return Ok(None) };
    Ok(Some((Policy::from_cbor(value)?, value)))
}

/// The part's number and name by its own header.
pub(crate) fn place(part: &CoseEncrypt) -> Result<Option<Place>, SealError> {
    protected(part, PART).map(Place::from_cbor).transpose()
}

impl Place {
    fn to_cbor(&self) -> Value {
        Value::Array(vec![
            Value::Text(self.name.clone()),
            Value::from(self.index as u64),
            Value::from(self.count as u64),
            Value::Bytes(self.sealing.to_vec()),
        ])
    }

    fn from_cbor(value: &Value) -> Result<Place, SealError> {
        let number = |value: &Value| usize::try_from(value.as_integer()?).ok();
        let place = match value.as_array().map(Vec::as_slice) {
            Some([Value::Text(name), index, count, Value::Bytes(sealing)]) => number(index)
                .zip(number(count))
                .zip(Sealing::try_from(sealing.as_slice()).ok())
                .map(|((index, count), sealing)| Place {
                    name: name.clone(),
                    index,
                    count,
                    sealing,
                }),
            _ => None,
        };
        place.ok_or_else(|| SealError::Format("a part has no part number".into()))
    }
}

/// Bytes of the encoded part, with its tag.
pub(crate) fn to_cbor(part: CoseEncrypt) -> Result<Value, SealError> {
    let value = part.to_cbor_value().map_err(|error| SealError::Format(error.to_string()))?;
    Ok(Value::Tag(iana::CborTag::CoseEncrypt as u64, Box::new(value)))
}

fn protected<'p>(part: &'p CoseEncrypt, name: &str) -> Option<&'p Value> {
    let label = Label::Text(name.to_owned());
    part.protected.header.rest.iter().find(|(found, _)| *found == label).map(|(_, value)| value)
}
