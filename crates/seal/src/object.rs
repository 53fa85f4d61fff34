//! An object: parts, one policy, one signature. Sealing takes all parts at once; opening checks
//! everything before it returns a byte.

use coset::cbor::Value;
use coset::{
    AsCborValue, CborSerializable, CoseEncrypt, CoseSign1, CoseSign1Builder, HeaderBuilder,
    TaggedCborSerializable, iana,
};
use ed25519_dalek::{Signature, Signer};

use weigh_model::seal::Cipher;

use crate::content::fill_random;
use crate::critical;
use crate::error::SealError;
use crate::keys::{KeyId, OpenerKey, RecipientKey, SignatureKey, SignerKey};
use crate::part::{self, Place};
use crate::policy::Policy;

/// One part, before it is sealed or after it was opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlainPart {
    /// Its name, which the policy may use.
    pub name: String,
    /// Its bytes.
    pub content: Vec<u8>,
}

/// Settings of a new object.
pub struct Sealing<'s> {
    /// How contents are encrypted.
    pub cipher: Cipher,
    /// Recipients. Each part is sealed for those whom the policy allows it.
    pub recipients: &'s [RecipientKey],
    /// The signer, if any.
    pub signer: Option<&'s SignerKey>,
    /// The policy. Several parts need one.
    pub policy: Option<&'s Policy>,
}

/// Content of an opened object.
#[derive(Debug, PartialEq)]
pub struct Opened {
    /// The parts that this key opens, in the object's order.
    pub parts: Vec<PlainPart>,
    /// Names of the parts that are for others.
    pub withheld: Vec<String>,
    /// Obligations of the reader by the policy's rules.
    pub obligations: Vec<String>,
    /// The policy.
    pub policy: Option<Policy>,
    /// The signer, if the signature was verified.
    pub signed_by: Option<KeyId>,
}

impl Sealing<'_> {
    /// Seals `parts` into one object.
    ///
    /// # Errors
    /// Without recipients or parts, with several parts and no policy, with a part that the policy
    /// does not allow to any participant, and with participants whose keys were not given.
    pub fn seal(&self, parts: &[PlainPart]) -> Result<Vec<u8>, SealError> {
        self.check(parts)?;
        let policy = self.policy.map(Policy::to_cbor);
        let mut sealing = part::Sealing::default();
        if policy.is_some() {
            fill_random(&mut sealing)?;
        }
        let mut sealed = Vec::new();
        for (index, one) in parts.iter().enumerate() {
            let place = Place { name: one.name.clone(), index, count: parts.len(), sealing };
            let recipients = self.recipients_of(&one.name)?;
            let bound = policy.as_ref().map(|policy| (policy, &place));
            let part = part::seal(&one.content, self.cipher, &recipients, bound)?;
            sealed.push(part::to_cbor(part)?);
        }
        let inner = match sealed.len() {
            1 => sealed.remove(0),
            _ => Value::Array(sealed),
        };
        let inner = inner.to_vec().map_err(|error| SealError::Format(error.to_string()))?;
        let Some(signer) = self.signer else { return Ok(inner) };
        CoseSign1Builder::new()
            .protected(HeaderBuilder::new().algorithm(iana::Algorithm::EdDSA).build())
            .unprotected(HeaderBuilder::new().key_id(signer.id().0.to_vec()).build())
            .payload(inner)
            .create_signature(&[], |bytes| signer.0.sign(bytes).to_vec())
            .build()
            .to_tagged_vec()
            .map_err(|error| SealError::Format(error.to_string()))
    }

    fn check(&self, parts: &[PlainPart]) -> Result<(), SealError> {
        let wrong = |problem: &str, fix| Err(SealError::Asked { problem: problem.to_owned(), fix });
        if parts.is_empty() {
            return wrong("no file to seal", "name a file");
        }
        if self.recipients.is_empty() {
            return wrong("no recipient, so no key could open it", "name one: --to PUBLIC-KEY");
        }
        if parts.len() > 1 && self.policy.is_none() {
            return wrong(
                "no policy: several parts need one, which binds them to one object",
                "give one: --policy FILE (an empty file will do)",
            );
        }
        for (place, one) in self.recipients.iter().enumerate() {
            if self.recipients[..place].iter().any(|other| other.id() == one.id()) {
                return wrong("a recipient is given twice", "name each key once");
            }
        }
        for (place, one) in parts.iter().enumerate() {
            if parts[..place].iter().any(|other| other.name == one.name) {
                return Err(SealError::Asked {
                    problem: format!("two parts have the name {:?}", one.name),
                    fix: "give one another name: NAME=FILE",
                });
            }
        }
        self.policy.map_or(Ok(()), |policy| self.check_policy(policy, parts))
    }

    /// Checks that the policy fits the given keys and parts.
    fn check_policy(&self, policy: &Policy, parts: &[PlainPart]) -> Result<(), SealError> {
        policy.check().map_err(|flaw| flaw.unplaced())?;
        let wrong = |problem: String, fix: &str| {
            Err(SealError::Policy { at: None, problem, fix: fix.into() })
        };
        let people = &policy.participants;
        let given = |key: &str| self.recipients.iter().any(|one| one.id().to_string() == key);
        if let Some(missing) = people.iter().find(|one| one.may_open() && !given(&one.key)) {
            let problem = format!("the key of the participant {} is missing", missing.key);
            return wrong(problem, "give it with --to");
        }
        let is_named = |key: KeyId| people.iter().any(|one| one.key == key.to_string());
        let stranger = self.recipients.iter().find(|one| !people.is_empty() && !is_named(one.id()));
        if let Some(stranger) = stranger {
            let problem = format!("the key {} is not that of a participant", stranger.id());
            return wrong(problem, "name it in the policy, or remove its --to");
        }
        let named = people.iter().flat_map(|one| &one.parts);
        let named =
            named.chain(policy.rules.iter().map(|rule| &rule.what).filter(|what| *what != "*"));
        for name in named {
            if !parts.iter().any(|part| part.name == *name) {
                let known: Vec<&str> = parts.iter().map(|part| part.name.as_str()).collect();
                let problem = format!("it names an unknown part {name:?}");
                return wrong(problem, &format!("type one of its parts: {}", known.join(", ")));
            }
        }
        Ok(())
    }

    fn recipients_of(&self, part: &str) -> Result<Vec<&RecipientKey>, SealError> {
        let given =
            |one: &&RecipientKey| self.policy.is_none_or(|policy| policy.gives(one.id(), part));
        let recipients: Vec<&RecipientKey> = self.recipients.iter().filter(given).collect();
        if recipients.is_empty() {
            return Err(SealError::Policy {
                at: None,
                problem: format!("no participant may open the part {part:?}"),
                fix: "name it at a participant who may".into(),
            });
        }
        Ok(recipients)
    }
}

/// Opens the parts that `key` may open, at the time `now_s` (seconds since 1970).
///
/// # Errors
/// If object, signature, policy or key are invalid or do not fit. A signed object needs its
/// signer's
/// key, and an object that is not signed opens only without one.
pub fn open(
    object: &[u8],
    key: &OpenerKey,
    signer: Option<&SignatureKey>,
    now_s: i64,
) -> Result<Opened, SealError> {
    let envelope = Envelope::read(object)?;
    let signed_by = envelope.verify(signer)?;
    let policy = envelope.policy()?;
    let mut opened = Opened {
        parts: Vec::new(),
        withheld: Vec::new(),
        obligations: Vec::new(),
        policy: None,
        signed_by,
    };
    let mut refusal = SealError::NotARecipient(key.id().to_string());
    for (place, one) in envelope.places()?.into_iter().zip(&envelope.parts) {
        let content = match part::open(one, &place.name, key) {
            Ok(content) => content,
            Err(SealError::NotARecipient(_)) => {
                opened.withheld.push(place.name);
                continue;
            }
            Err(error) => return Err(error),
        };
        let admitted = policy.as_ref().map(|policy| policy.admit(key.id(), &place.name, now_s));
        match admitted.transpose() {
            Ok(undertaken) => {
                opened.obligations.extend(undertaken.into_iter().flatten());
                opened.parts.push(PlainPart { name: place.name, content });
            }
            Err(forbidden) => {
                opened.withheld.push(place.name);
                refusal = forbidden;
            }
        }
    }
    if opened.parts.is_empty() {
        return Err(refusal);
    }
    opened.policy = policy;
    Ok(opened)
}

/// An object that was read but not verified.
pub(crate) struct Envelope {
    pub(crate) signature: Option<CoseSign1>,
    pub(crate) parts: Vec<CoseEncrypt>,
}

impl Envelope {
    pub(crate) fn read(object: &[u8]) -> Result<Envelope, SealError> {
        let format = |error: coset::CoseError| {
            // The library reports its decoder's state; a user needs to know what to look for.
            let said = error.to_string();
            SealError::Format(match said.contains("EndOfFile") {
                true => "it ends too early".to_owned(),
                false => format!("{said}; make one with weigh seal make"),
            })
        };
        let value = Value::from_slice(object).map_err(format)?;
        let (signature, inner) = match value {
            Value::Tag(SIGN1, value) => {
                let signature = CoseSign1::from_cbor_value(*value).map_err(format)?;
                let payload = signature.payload.as_deref().unwrap_or_default();
                let inner = Value::from_slice(payload).map_err(format)?;
                (Some(signature), inner)
            }
            other => (None, other),
        };
        let parts = match inner {
            Value::Array(parts) => parts,
            one => vec![one],
        };
        let part = |value: Value| match value {
            Value::Tag(ENCRYPT, value) => CoseEncrypt::from_cbor_value(*value).map_err(format),
            _ => Err(SealError::Format("a part is not a COSE_Encrypt".into())),
        };
        let parts = parts.into_iter().map(part).collect::<Result<Vec<_>, _>>()?;
        if parts.is_empty() {
            return Err(SealError::Format("it has no parts".into()));
        }
        Ok(Envelope { signature, parts })
    }

    /// Numbers of the parts. They must be all parts of one object, in order.
    pub(crate) fn places(&self) -> Result<Vec<Place>, SealError> {
        let count = self.parts.len();
        let mut places = Vec::new();
        for (index, part) in self.parts.iter().enumerate() {
            let place = match part::place(part)? {
                Some(place) => place,
                None if count == 1 => {
                    Place { name: ONLY.to_owned(), index, count, sealing: part::Sealing::default() }
                }
                None => return Err(misplaced("?", "it has no part number")),
            };
            if (place.index, place.count) != (index, count) {
                let Place { name, index: own, count: own_count, .. } = &place;
                let says = format!(
                    "it is part {} of {own_count}, but is at position {} of {count}",
                    own + 1,
                    index + 1
                );
                return Err(misplaced(name, &says));
            }
            if places.first().is_some_and(|first: &Place| first.sealing != place.sealing) {
                return Err(misplaced(&place.name, "it belongs to another object"));
            }
            places.push(place);
        }
        Ok(places)
    }

    /// The common policy of all parts.
    pub(crate) fn policy(&self) -> Result<Option<Policy>, SealError> {
        let first = part::policy(&self.parts[0])?;
        for (index, other) in self.parts.iter().enumerate().skip(1) {
            let other = part::policy(other)?;
            if other.as_ref().map(|(_, value)| *value) != first.as_ref().map(|(_, value)| *value) {
                let name = format!("{}", index + 1);
                return Err(misplaced(&name, "its policy is that of another object"));
            }
        }
        if first.is_none() && self.parts.len() > 1 {
            return Err(misplaced("?", "several parts need a policy"));
        }
        Ok(first.map(|(policy, _)| policy))
    }

    fn verify(&self, signer: Option<&SignatureKey>) -> Result<Option<KeyId>, SealError> {
        let wrong = |text: &str| Err(SealError::Signature(text.to_owned()));
        let (signature, signer) = match (&self.signature, signer) {
            (Some(signature), Some(signer)) => (signature, signer),
            (None, None) => return Ok(None),
            (Some(_), None) => {
                return wrong(
                    "the object is signed: give its signer's key with --signer PUBLIC-KEY",
                );
            }
            (None, Some(_)) => {
                return wrong("the object is not signed, so its signer cannot be verified");
            }
        };
        critical::check(&signature.protected.header)?;
        let eddsa = Some(coset::Algorithm::Assigned(iana::Algorithm::EdDSA));
        if signature.protected.header.alg != eddsa {
            return wrong("its algorithm is not EdDSA, the only one supported");
        }
        let checked = signature.verify_signature(&[], |bytes, text| {
            let bytes = Signature::from_slice(bytes).map_err(drop)?;
            signer.0.verify_strict(text, &bytes).map_err(drop)
        });
        match checked {
            Ok(()) => Ok(Some(signer.id())),
            Err(()) => wrong("it is not from this signer, or the object was changed"),
        }
    }
}

fn misplaced(part: &str, problem: &str) -> SealError {
    SealError::Misplaced { part: part.to_owned(), problem: problem.to_owned() }
}

const SIGN1: u64 = iana::CborTag::CoseSign1 as u64;
const ENCRYPT: u64 = iana::CborTag::CoseEncrypt as u64;

/// Name of the part of an object without a policy.
pub const ONLY: &str = "content";
