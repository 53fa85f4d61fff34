//! The checks of continuous integration, run where the developer sits.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, ensure};

/// Options of `cargo xtask ci`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Only these steps (format, lint, test, tour, examples, servers, exports, page, python, cross,
    /// fuzz, fleet, kubernetes, dist, oldest); without any, all but the last six.
    #[arg(value_parser = STEPS)]
    steps: Vec<String>,
}

/// Runs the script that continuous integration runs, so that there is only one.
pub(crate) fn run(root: &Path, options: &Options) -> anyhow::Result<()> {
    let script = root.join(".ci/run");
    let status = Command::new("bash")
        .arg(&script)
        .arg("--no-install")
        .args(&options.steps)
        .current_dir(root)
        .status()
        .with_context(|| format!("starting {}", script.display()))?;
    ensure!(status.success(), "a step failed: {status}");
    Ok(())
}

const STEPS: [&str; 15] = [
    "format",
    "lint",
    "test",
    "tour",
    "examples",
    "servers",
    "exports",
    "page",
    "python",
    "cross",
    "fuzz",
    "fleet",
    "kubernetes",
    "dist",
    "oldest",
];
