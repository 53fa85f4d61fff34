//! Names the commit and the features that `weigh --version` prints. Builds without git, such as
//! those from a tarball, name the commit that `WEIGH_COMMIT` holds, or none.

use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-env-changed=WEIGH_COMMIT");
    let version = std::env::var("CARGO_PKG_VERSION").unwrap_or_default();
    let given = std::env::var("WEIGH_COMMIT").ok().filter(|own| !own.is_empty());
    let commit = given.or_else(commit).unwrap_or_default();
    let short = match commit.as_str() {
        "" => version,
        commit => format!("{version} ({commit})"),
    };
    let features = std::env::vars().filter_map(|(key, _)| {
        let name = key.strip_prefix("CARGO_FEATURE_")?.to_ascii_lowercase();
        (!GROUPS.contains(&name.as_str())).then_some(name)
    });
    let mut on: Vec<String> = features.collect();
    on.sort();
    let on = if on.is_empty() { "none".to_owned() } else { on.join(", ") };
    println!("cargo:rustc-env=WEIGH_VERSION={short}");
    println!("cargo:rustc-env=WEIGH_BUILT_FROM={commit}");
    println!("cargo:rustc-env=WEIGH_FEATURES={on}");
}

/// The commit of this checkout; `None` where this folder is not one.
fn commit() -> Option<String> {
    let folder = std::env::var("CARGO_MANIFEST_DIR").ok()?;
    if !Path::new(&folder).join(".git").exists() {
        return None;
    }
    // Every commit and every checkout adds a line to this file.
    println!("cargo:rerun-if-changed=.git/logs/HEAD");
    let mut git = Command::new("git");
    let output = git.args(["-C", &folder, "rev-parse", "--short=9", "HEAD"]).output().ok()?;
    let commit = String::from_utf8(output.stdout).ok()?.trim().to_owned();
    (output.status.success() && !commit.is_empty()).then_some(commit)
}

/// Features that are only names of others.
const GROUPS: [&str; 2] = ["default", "full"];
