//! The built-in paths: the files of `paths/`.

use super::{Path, PathError};

/// The presets' files, in the order in which they are listed.
pub const PRESETS: [(&str, &str); 9] = [
    ("loopback", include_str!("../../../../paths/loopback.toml")),
    ("gigabit", include_str!("../../../../paths/gigabit.toml")),
    ("wifi", include_str!("../../../../paths/wifi.toml")),
    ("internet", include_str!("../../../../paths/internet.toml")),
    ("lte", include_str!("../../../../paths/lte.toml")),
    ("3g", include_str!("../../../../paths/3g.toml")),
    ("lte-m", include_str!("../../../../paths/lte-m.toml")),
    ("nb-iot", include_str!("../../../../paths/nb-iot.toml")),
    ("satellite", include_str!("../../../../paths/satellite.toml")),
];

/// Returns the preset of this name.
///
/// # Errors
/// If there is none; lists the names.
pub fn preset(name: &str) -> Result<Path, PathError> {
    match PRESETS.iter().find(|(known, _)| *known == name) {
        Some((_, text)) => Path::parse(&format!("paths/{name}.toml"), text),
        None => {
            let names: Vec<&str> = PRESETS.iter().map(|(name, _)| *name).collect();
            let error = format!(
                "there is no path of this name: type {}, numbers such as delay=30ms,loss=5%, or \
                 the name of a file ending in .toml",
                names.join(", ")
            );
            Err(PathError { file: format!("--path {name}"), error })
        }
    }
}
