//! What a release consists of: a static binary for each kind of machine, with its archive, Debian
//! package and container image.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, ensure};

use crate::cross;

/// Options of `cargo xtask dist`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Kinds of machines: x86_64 with all features, aarch64 and armv7 as `cargo xtask cross`
    /// builds them; without any, x86_64.
    #[arg(value_parser = ["x86_64", "aarch64", "armv7"])]
    machines: Vec<String>,
    /// Package this binary instead of building one; it must be static.
    #[arg(long, value_name = "FILE")]
    binary: Option<PathBuf>,
    /// Then install the packages in clean roots and measure with them.
    #[arg(long)]
    check: bool,
}

/// Builds and packages for every kind of machine, into target/dist-packages.
pub(crate) fn run(root: &Path, options: &Options) -> anyhow::Result<()> {
    let out = root.join("target/dist-packages");
    let version = version(root)?;
    let usual = ["x86_64".to_owned()];
    let machines = if options.machines.is_empty() { &usual[..] } else { &options.machines };
    ensure!(options.binary.is_none() || machines.len() == 1, "--binary is of one machine");
    for machine in machines {
        let (binary, runner) = match (&options.binary, machine.as_str()) {
            (Some(binary), "x86_64") => (binary.clone(), None),
            (None, "x86_64") => (build(root)?, None),
            (given, other) => {
                let (built, emulator) = cross::release(root, other, given.as_deref())?;
                (built, Some(emulator))
            }
        };
        cross::check_static(&binary)?;
        let (debian, container) = match machine.as_str() {
            "x86_64" => ("amd64", "amd64"),
            "aarch64" => ("arm64", "arm64"),
            _ => ("armhf", "arm"),
        };
        for (script, name, takes_runner) in [
            ("archive", machine.as_str(), true),
            ("deb/build", debian, true),
            ("oci/build", container, false),
        ] {
            let mut command = Command::new(root.join("packaging").join(script));
            command.arg(&binary).args([&version, name]).arg(&out).current_dir(root);
            command.args(runner.filter(|_| takes_runner));
            finish(&mut command)?;
        }
    }
    if options.check {
        finish(Command::new(root.join("packaging/check")).arg(&out).arg(&version))?;
    }
    Ok(())
}

/// Builds the static binary with all features. It is linked with musl, which needs nothing of the
/// system that it runs on.
fn build(root: &Path) -> anyhow::Result<PathBuf> {
    let mut cargo = Command::new("cargo");
    cargo
        .args(["build", "--locked", "--profile", "dist", "--bin", "weigh"])
        .args(["--features", "full", "--target", MUSL])
        .env("CC_x86_64_unknown_linux_musl", "musl-gcc")
        // Link-time optimisation and incremental builds exclude each other.
        .env("CARGO_INCREMENTAL", "0")
        .current_dir(root);
    let status = cargo.status().context("starting cargo")?;
    ensure!(
        status.success(),
        "no static binary: it needs rustup target add {MUSL}, and apt-get install musl-tools"
    );
    let target =
        std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), Into::into);
    Ok(target.join(MUSL).join("dist/weigh"))
}

fn finish(command: &mut Command) -> anyhow::Result<()> {
    let status = command.status().with_context(|| format!("starting {command:?}"))?;
    ensure!(status.success(), "{command:?}: {status}");
    Ok(())
}

/// The version in `Cargo.toml`.
fn version(root: &Path) -> anyhow::Result<String> {
    let manifest = std::fs::read_to_string(root.join("Cargo.toml"))?;
    let line = manifest.lines().find_map(|line| line.strip_prefix("version = \""));
    let version = line.and_then(|line| line.strip_suffix('"'));
    Ok(version.context("Cargo.toml has no version")?.to_owned())
}

const MUSL: &str = "x86_64-unknown-linux-musl";
