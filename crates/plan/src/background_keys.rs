//! The keys of a background that are its own, and the names of its words. The others are those of
//! the first workload below `background.`, see [`crate::keys`].

use weigh_model::background::{Beside, LASTING};

use crate::kind::Kind;

/// What a plan says that names a key which only loads with an end have.
pub(crate) fn is_lasting(name: &str) -> bool {
    name.strip_prefix("background.load.").is_some_and(|key| LASTING.contains(&key))
}

/// Whether a key of the language is one of a background.
pub(crate) fn is_own(name: &str) -> bool {
    name == STATE || name.starts_with(PREFIX)
}

/// The key that says whether a background lies beneath a case.
pub const STATE: &str = "background";

/// What the keys of a background begin with.
pub const PREFIX: &str = "background.";

/// Whether each case is weighed without its background too.
pub(crate) const BASELINE: &str = "background.baseline";

/// A background lies beneath the case.
pub const ON: &str = "on";

/// None does: the baseline.
pub const OFF: &str = "off";

/// Their names, what they take, and what they mean.
pub(crate) const OWN: &[(&str, Kind, &str)] = &[
    (
        STATE,
        Kind::Choice(&[OFF, ON]),
        "Whether the second workload of [background] lies beneath a case; without a word every \
         case is weighed with it and, as its baseline, without.",
    ),
    (
        "background.protocol",
        Kind::Text,
        "The protocol of the second workload; that of its target if it is left out.",
    ),
    (
        "background.target",
        Kind::Text,
        "Where the second workload goes: reference (a server of its own, the default), same (the \
         measured target itself), a real server, or a URL.",
    ),
    (
        "background.beside",
        Kind::Choice(&Beside::NAMES),
        "Where a target of its own runs: target (the default) on the cores of the measured one, \
         apart on others.",
    ),
    (
        "background.lead",
        Kind::Duration,
        "It is up for so long at least before anything is measured; 1s if left out.",
    ),
    (
        BASELINE,
        Kind::Flag,
        "Whether every case is weighed without it too, taking turns; true if left out.",
    ),
];

/// The keys as whoever mistypes one is told them: those that mirror others by their kinds.
pub(crate) const TOLD: &str = "protocol, target, beside, lead, baseline, and the keys of [load] \
     and of its protocol, such as background.load.rate and background.mqtt.qos";
