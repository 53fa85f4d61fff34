//! A warning as it is recorded.

use serde::{Deserialize, Serialize};

use super::entry::Entry;
use super::list::{WARNINGS, Warning};
use crate::binding::Bound;
use crate::rule::Rule;
use crate::severity::Severity;

/// A warning as it is recorded.
///
/// # Examples
///
/// ```
/// use weigh_model::Warning;
/// use weigh_model::warnings::Severity;
///
/// let record = Warning::Interrupted.record();
/// assert_eq!(record.code, Warning::Interrupted.entry().name);
/// assert_ne!(record.severity, Severity::Invalid);
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WarningRecord {
    /// The rule's code or a kebab-case name.
    pub code: String,
    /// Its severity.
    pub severity: Severity,
    /// Finding in words.
    pub text: String,
    /// What to do about it.
    pub advice: String,
}

impl WarningRecord {
    /// The rule, if it is one of L01 to L21.
    pub fn rule(&self) -> Option<Rule> {
        Rule::ALL.into_iter().find(|rule| rule.code() == self.code)
    }
}

impl Warning {
    /// Creates the warning that the generator was the limit: its busiest thread used this
    /// percentage of a core.
    pub fn generator_limited(percent: f64) -> Warning {
        Warning::Bound(Box::default(), Bound::Generator(percent))
    }

    /// Its entry in the list.
    pub fn entry(&self) -> &'static Entry {
        &WARNINGS[self.place()]
    }

    /// The warning as it is recorded.
    pub fn record(&self) -> WarningRecord {
        let entry = self.entry();
        let (code, severity, text) = (entry.name, entry.severity, self.seen());
        let (code, severity, text, advice) = match self {
            Warning::Bound(pace, bound) => {
                let is_invalid = matches!(bound, Bound::Generator(_));
                let (code, text, advice) = pace.words(bound);
                (code, if is_invalid { Severity::Invalid } else { severity }, text, advice)
            }
            Warning::Background(code, _, advice) | Warning::Energy(code, _, advice) => {
                (*code, severity, text, (*advice).to_owned())
            }
            Warning::Broken(rule, _) => {
                (rule.code(), rule.severity(), text, rule.instead().to_owned())
            }
            Warning::ErrorAnswers(.., first) => (code, severity, text, first.advice.to_owned()),
            Warning::Wire(_, advice) | Warning::CaptureLoss(_, advice) => {
                (code, severity, text, (*advice).to_owned())
            }
            _ => (code, severity, text, entry.fix.to_owned()),
        };
        WarningRecord { code: code.to_owned(), severity, text, advice }
    }
}
