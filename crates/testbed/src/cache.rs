//! The cache folder of Weighbridge.

use std::path::PathBuf;

/// Weighbridge's folder in the user's cache: below `XDG_CACHE_HOME` where that is an absolute path,
/// else
/// below `~/.cache` (XDG Base Directory Specification 0.8). `None` for a user without a home.
pub fn folder() -> Option<PathBuf> {
    let named = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    let cache = named("XDG_CACHE_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    let cache = cache.or_else(|| Some(PathBuf::from(named("HOME")?).join(".cache")))?;
    Some(cache.join("weigh"))
}
