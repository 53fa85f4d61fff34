//! Headers that a reader must understand (RFC 9052, section 3.1: `crit`), and Weighbridge's own
//! labels: text, which section 1.5 leaves to applications.

use coset::iana::HeaderParameter;
use coset::{Header, RegisteredLabelWithPrivate};

use crate::error::SealError;

/// Refuses a header marked critical that this program does not understand.
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
/// Index and number of the part.
pub(crate) const PART: &str = "part";
