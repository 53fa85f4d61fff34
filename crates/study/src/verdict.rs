//! What came of a claim, from a closed list of four words.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What came of a claim.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
pub enum Verdict {
    /// Measured right, the sentence holds.
    #[serde(rename = "reproduced")]
    Reproduced,
    /// Our run as published shows the picture and its cause.
    #[serde(rename = "explained")]
    Explained,
    /// Measured right, the sentence does not hold, or the picture does not appear.
    #[serde(rename = "contradicted")]
    Contradicted,
    /// It takes what is not here, or the runs leave it open.
    #[serde(rename = "not testable here")]
    NotTestableHere,
}

impl Verdict {
    /// All four.
    pub const ALL: [Verdict; 4] =
        [Verdict::Reproduced, Verdict::Explained, Verdict::Contradicted, Verdict::NotTestableHere];

    /// The word.
    pub fn name(self) -> &'static str {
        match self {
            Verdict::Reproduced => "reproduced",
            Verdict::Explained => "explained",
            Verdict::Contradicted => "contradicted",
            Verdict::NotTestableHere => "not testable here",
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
