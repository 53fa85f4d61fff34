//! The background's own keys, and their values. Its other keys are those of the measured load after
//! `background.`, see [`crate::keys`].

use weigh_model::background::{LASTING, TargetCores};

use crate::kind::Kind;

/// True for the key of a plan that limits the time of a load.
pub(crate) fn is_lasting(name: &str) -> bool {
    name.strip_prefix("background.load.").is_some_and(|key| LASTING.contains(&key))
}

/// True for a key of the background's own.
pub(crate) fn is_own(name: &str) -> bool {
    name == STATE || name.starts_with(PREFIX)
}

/// The key that says whether a case has a background.
pub const STATE: &str = "background";

/// Prefix of the keys of a background.
pub const PREFIX: &str = "background.";

/// The key that says whether each case is measured without its background too.
pub(crate) const BASELINE: &str = "background.baseline";

/// The case has a background.
pub const ON: &str = "on";

/// The case has no background: the baseline.
pub const OFF: &str = "off";

/// Their names, values and meanings.
pub(crate) const OWN: &[(&str, Kind, &str)] = &[
    (
        STATE,
        Kind::Choice(&[OFF, ON]),
        "Whether a case has the background of [background]; if left out, every \
         case is measured with it and, as its baseline, without.",
    ),
    (
        "background.protocol",
        Kind::Text,
        "Protocol of the background; that of its target if left out.",
    ),
    (
        "background.target",
        Kind::Text,
        "Target of the background: reference (a server of its own, the default), same (the \
         measured target itself), a real server, or a URL.",
    ),
    (
        "background.beside",
        Kind::Choice(&TargetCores::NAMES),
        "Where a target of its own runs: target (the default) on the cores of the measured one, \
         apart on others.",
    ),
    (
        "background.lead",
        Kind::Duration,
        "Minimum time between its start and the measurement; 1s if left out.",
    ),
    (
        BASELINE,
        Kind::Flag,
        "Whether every case is measured without it too, in turn; true if left out.",
    ),
];

/// The list of keys for an error after a typing mistake: mirrored keys by their kinds.
pub(crate) const TOLD: &str = "protocol, target, beside, lead, baseline, and the keys of [load] \
     and of its protocol, such as background.load.rate and background.mqtt.qos";
