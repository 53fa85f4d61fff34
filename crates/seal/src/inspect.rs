//! Inspects an object without any key: its policy, its recipients, and the size of each of its
//! layers.

use coset::{CborSerializable, CoseEncrypt, TaggedCborSerializable};
use serde::{Serialize, Serializer};
use weigh_model::seal::Cipher;

use crate::content::TAG_BYTES;
use crate::error::SealError;
use crate::object::Envelope;
use crate::part;
use crate::policy::Policy;
use crate::recipient;

/// Visible properties of an object. Nothing here is verified.
#[derive(Debug, PartialEq, Serialize)]
pub struct Inspection {
    /// Bytes of the object.
    pub bytes: usize,
    /// Bytes that the signature adds; `None` if it is not signed.
    pub signature_bytes: Option<usize>,
    /// ID of the key that is named as the signer's, in hexadecimal digits.
    pub signer: Option<String>,
    /// The policy.
    pub policy: Option<Policy>,
    /// The parts.
    pub parts: Vec<PartSizes>,
}

/// Visible properties of a part. `content + tag + recipients + policy + frame` are its bytes.
#[derive(Debug, PartialEq, Serialize)]
pub struct PartSizes {
    /// Its name.
    pub name: String,
    /// How it is encrypted.
    #[serde(serialize_with = "name")]
    pub cipher: Cipher,
    /// IDs of its recipients' keys, in hexadecimal digits.
    pub recipients: Vec<String>,
    /// All its bytes.
    pub bytes: usize,
    /// Bytes of the content.
    pub content_bytes: usize,
    /// Bytes of the authentication tag.
    pub tag_bytes: usize,
    /// Bytes of all recipients' entries.
    pub recipients_bytes: usize,
    /// Bytes of policy and part number in the protected header.
    pub policy_bytes: usize,
    /// Remaining bytes: algorithm, nonce, lengths.
    pub frame_bytes: usize,
}

/// Inspects an object.
///
/// # Errors
/// If it is not an object.
pub fn inspect(object: &[u8]) -> Result<Inspection, SealError> {
    let envelope = Envelope::read(object)?;
    let policy = envelope.policy()?;
    let mut parts = Vec::new();
    for (place, part) in envelope.places()?.into_iter().zip(&envelope.parts) {
        parts.push(PartSizes::of(place.name, part)?);
    }
    let signature = envelope.signature.as_ref();
    Ok(Inspection {
        bytes: object.len(),
        signature_bytes: signature
            .map(|one| object.len() - one.payload.as_ref().map_or(0, Vec::len)),
        signer: signature.map(|one| hexadecimal(&one.unprotected.key_id)),
        policy,
        parts,
    })
}

impl PartSizes {
    fn of(name: String, part: &CoseEncrypt) -> Result<PartSizes, SealError> {
        let cipher = part::cipher(part)?;
        let encrypted = part.ciphertext.as_ref().map_or(0, Vec::len);
        let content_bytes = encrypted
            .checked_sub(TAG_BYTES)
            .ok_or_else(|| SealError::Format(format!("part {name:?} has no tag")))?;
        let bytes = length(part.clone().to_tagged_vec())?;
        let mut recipients_bytes = 0;
        for one in &part.recipients {
            recipients_bytes += length(one.clone().to_vec())?;
        }
        let mut bare = part.clone();
        bare.protected.original_data = None;
        bare.protected.header.rest.clear();
        let policy_bytes = bytes - length(bare.to_tagged_vec())?;
        Ok(PartSizes {
            recipients: part
                .recipients
                .iter()
                .map(|one| hexadecimal(recipient::name(one)))
                .collect(),
            frame_bytes: bytes - content_bytes - TAG_BYTES - recipients_bytes - policy_bytes,
            tag_bytes: TAG_BYTES,
            name,
            cipher,
            bytes,
            content_bytes,
            recipients_bytes,
            policy_bytes,
        })
    }
}

fn name<S: Serializer>(cipher: &Cipher, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(cipher.name())
}

fn length(encoded: Result<Vec<u8>, coset::CoseError>) -> Result<usize, SealError> {
    encoded.map(|bytes| bytes.len()).map_err(|error| SealError::Format(error.to_string()))
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
