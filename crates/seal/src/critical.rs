//! What a reader must understand or leave alone (RFC 9052, section 3.1: `crit`), and the labels of
//! our own: text, which section 1.5 leaves to us.

use coset::iana::HeaderParameter;
use coset::{Header, RegisteredLabelWithPrivate};

use crate::error::SealError;

/// Refuses a header that demands to be understood in what is not understood here.
pub(crate) fn check(header: &Header) -> Result<(), SealError> {
    let is_known = |label: &&RegisteredLabelWithPrivate<HeaderParameter>| match label {
        RegisteredLabelWithPrivate::Assigned(parameter) => KNOWN.contains(parameter),
        RegisteredLabelWithPrivate::Text(name) => [POLICY, PART].contains(&name.as_str()),
        RegisteredLabelWithPrivate::PrivateUse(_) => false,
    };
    match header.crit.iter().find(|label| !is_known(label)) {
        Some(label) => Err(SealError::Unsupported(format!("the header {label:?}"))),
        None => Ok(()),
    }
}

const KNOWN: [HeaderParameter; 4] =
    [HeaderParameter::Alg, HeaderParameter::Crit, HeaderParameter::Iv, HeaderParameter::Kid];

/// The policy.
pub(crate) const POLICY: &str = "policy";
/// Which part of the object it is.
pub(crate) const PART: &str = "part";
