//! Severity of a warning: the restriction on the use of a result.

use serde::{Deserialize, Serialize};

/// Severity of a warning: the restriction on the use of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Severity {
    /// The result can be used, with the warning in mind.
    #[serde(rename = "doubt")]
    Warning,
    /// Times from the due time must not be used; rates, losses, service times and costs can. Only
    /// in records of earlier versions: now the generator's lateness is judged figure by figure.
    InvalidTimes,
    /// The result must not be used.
    Invalid,
}

impl Severity {
    /// The words before the text of a warning: empty if the result can be used.
    pub fn prefix(self) -> &'static str {
        match self {
            Severity::Warning => "",
            Severity::InvalidTimes => "RESPONSE TIMES INVALID ",
            Severity::Invalid => "INVALID ",
        }
    }
}
