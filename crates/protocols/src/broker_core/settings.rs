//! Settings that brokers have in common.

use weigh_model::protocol::Invalid;
use weigh_model::trial::Settings;

/// User and password that a reference server demands.
pub(crate) type Login = Option<(String, String)>;

/// Reads the login of the reference server of a protocol.
///
/// # Errors
/// A password without a user.
pub(crate) fn login(protocol: &str, settings: &Settings) -> Result<Login, Invalid> {
    let (user, password) = (settings.text("broker_user"), settings.text("broker_password"));
    if user.is_empty() && !password.is_empty() {
        return Err(Invalid::new(
            format!("{protocol}.broker_password"),
            "a password without a user",
            format!("set {protocol}.broker_user too"),
        ));
    }
    Ok((!user.is_empty()).then(|| (user.to_owned(), password.to_owned())))
}

/// A duration in whole seconds, rounded up, as fields on the wire have it.
///
/// # Errors
/// It is longer than `max`.
pub(crate) fn seconds(
    protocol: &str,
    settings: &Settings,
    key: &str,
    max: u32,
) -> Result<u32, Invalid> {
    let seconds = settings.duration(key).0.div_ceil(1_000_000_000);
    u32::try_from(seconds).ok().filter(|seconds| *seconds <= max).ok_or_else(|| {
        let name = protocol.to_uppercase();
        Invalid::new(
            format!("{protocol}.{key}"),
            format!("{} is longer than {name} allows", settings.text(key)),
            format!("type at most {max}s"),
        )
    })
}
