//! How much a warning restricts the use of a result.

use serde::{Deserialize, Serialize};

/// How much a doubt takes away.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Severity {
    /// The result stands, with this said beside it.
    Doubt,
    /// Times from the due time must not be used; rates, losses, service times and costs stand. Only
    /// in records of earlier versions: today the generator's lateness is judged figure by figure.
    InvalidTimes,
    /// The result must not be used.
    Invalid,
}

impl Severity {
    /// The words before the text of a doubt: empty for one that takes nothing away.
    pub fn prefix(self) -> &'static str {
        match self {
            Severity::Doubt => "",
            Severity::InvalidTimes => "RESPONSE TIMES INVALID ",
            Severity::Invalid => "INVALID ",
        }
    }
}
