//! The implementation of HTTP/2 at both ends: built in, or libraries to compare it with.

use weigh_model::protocol::{Invalid, Setting, SettingKind};
use weigh_model::trial::Settings;

/// The key that chooses it.
pub(crate) const IMPLEMENTATION: Setting = Setting {
    key: "implementation",
    kind: SettingKind::Choice(&[BUILT_IN, HOSTED]),
    default: BUILT_IN,
    doc: "Code at both ends: built-in, or hosted for the libraries hyper and tonic.",
};

/// True if libraries implement both ends.
pub(crate) fn is_hosted(settings: &Settings) -> bool {
    settings.text(IMPLEMENTATION.key) == HOSTED
}

/// Refuses libraries that are not part of this build. `protocol` is for the message.
///
/// # Errors
/// If they are asked for.
pub(crate) fn check(protocol: &str, settings: &Settings) -> Result<(), Invalid> {
    if cfg!(feature = "library") || !is_hosted(settings) {
        return Ok(());
    }
    let place = format!("{protocol}.{}", IMPLEMENTATION.key);
    let fix = "leave it at built-in, or build with --features library";
    Err(Invalid::new(place, "this build has no libraries for HTTP/2", fix))
}

const BUILT_IN: &str = "built-in";
const HOSTED: &str = "hosted";
