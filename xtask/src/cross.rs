//! One static binary for a Raspberry Pi: built for it here, and tried in an emulator.
//!
//! Without pictures and the index, which need C libraries for the board; with TLS, whose C code
//! any C compiler for the board builds.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, bail, ensure};

/// Options of `cargo xtask cross`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Which boards: aarch64 (Raspberry Pi 3 to 5 with a 64-bit system), armv7 (2 to 4 with a
    /// 32-bit one); without any, both.
    #[arg(value_parser = ["aarch64", "armv7"])]
    boards: Vec<String>,
    /// Builds without optimising: the same code, to be tried and not to be used.
    #[arg(long)]
    quick: bool,
}

/// A kind of board.
struct Board {
    name: &'static str,
    /// The compiler's name for it.
    triple: &'static str,
    /// Its C compiler, as Debian calls it, which also links.
    cc: &'static str,
    /// What Debian calls all that is needed.
    packages: &'static str,
    /// Its emulator.
    emulator: &'static str,
}

/// Builds for every board that was asked for, and tries what it built.
pub(crate) fn run(root: &Path, options: &Options) -> anyhow::Result<()> {
    let is_asked = |board: &&Board| {
        options.boards.is_empty() || options.boards.iter().any(|name| name == board.name)
    };
    for board in BOARDS.iter().filter(is_asked) {
        let binary = build(root, board, options.quick)?;
        let bytes = std::fs::metadata(&binary)?.len();
        println!("{}: {} bytes, {}", board.name, bytes, binary.display());
        check_static(&binary)?;
        try_out(root, board, &binary)?;
    }
    Ok(())
}

/// Builds for one board, unless `given` is such a binary; returns it with its emulator.
pub(crate) fn release(
    root: &Path,
    name: &str,
    given: Option<&Path>,
) -> anyhow::Result<(PathBuf, &'static str)> {
    let board = BOARDS.iter().find(|board| board.name == name);
    let board = board.with_context(|| format!("{name} is not a board"))?;
    let binary = match given {
        Some(binary) => binary.to_owned(),
        None => build(root, board, false)?,
    };
    Ok((binary, board.emulator))
}

fn build(root: &Path, board: &Board, is_quick: bool) -> anyhow::Result<PathBuf> {
    let profile = if is_quick { "board-quick" } else { "board" };
    let under = board.triple.replace('-', "_");
    let mut cargo = Command::new("cargo");
    cargo
        .args(["build", "--locked", "--profile", profile, "--bin", "weigh", "--target"])
        .args([board.triple, "--no-default-features", "--features", "tls"])
        .env(format!("CARGO_TARGET_{}_LINKER", under.to_uppercase()), board.cc)
        .env(
            format!("CARGO_TARGET_{}_RUSTFLAGS", under.to_uppercase()),
            format!("-Ctarget-feature=+crt-static {}", linker_flags()?),
        )
        .env(format!("CC_{under}"), board.cc)
        .env(format!("AR_{under}"), board.cc.replace("-gcc", "-ar"))
        .current_dir(root);
    let status = cargo.status().context("starting cargo")?;
    ensure!(
        status.success(),
        "no binary for {}: it needs rustup target add {}, and apt-get install {}",
        board.name,
        board.triple,
        board.packages
    );
    let target =
        std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), Into::into);
    Ok(target.join(board.triple).join(profile).join("weigh"))
}

/// Rust's own lld links: beyond the 16 MiB that a branch of Thumb code reaches, GNU ld's detours to
/// functions that the C library chooses at its start (`memcpy`) end in nothing.
fn linker_flags() -> anyhow::Result<String> {
    let asked = |words: &[&str]| -> anyhow::Result<String> {
        let out = Command::new("rustc").args(words).output().context("starting rustc")?;
        Ok(String::from_utf8(out.stdout)?)
    };
    let version = asked(&["--version", "--verbose"])?;
    let host = version.lines().find_map(|line| line.strip_prefix("host: "));
    let host = host.context("rustc does not say what it runs on")?;
    let sysroot = asked(&["--print", "sysroot"])?;
    let folder = Path::new(sysroot.trim()).join("lib/rustlib").join(host).join("bin/gcc-ld");
    ensure!(folder.is_dir(), "rustc brings no lld: {} is missing", folder.display());
    Ok(format!("-Clink-arg=-fuse-ld=lld -Clink-arg=-B{}", folder.display()))
}

/// A board has whatever C library it has: a binary that asks for one would start on few.
pub(crate) fn check_static(binary: &Path) -> anyhow::Result<()> {
    let out = Command::new("readelf").args(["--program-headers"]).arg(binary).output();
    let out = out.context("starting readelf (binutils)")?;
    let text = String::from_utf8_lossy(&out.stdout);
    ensure!(out.status.success(), "readelf: {}", String::from_utf8_lossy(&out.stderr));
    ensure!(!text.contains("INTERP"), "{} needs a loader: it is not static", binary.display());
    Ok(())
}

/// A comparison and a short rundown in the emulator. Its times mean nothing; that every message is
/// accounted for does.
fn try_out(root: &Path, board: &Board, binary: &Path) -> anyhow::Result<()> {
    let place = std::env::temp_dir().join(format!("weigh-{}-{}", board.name, std::process::id()));
    std::fs::create_dir_all(&place)?;
    let done = try_in(root, board, binary, &place);
    std::fs::remove_dir_all(&place)?;
    done
}

fn try_in(root: &Path, board: &Board, binary: &Path, place: &Path) -> anyhow::Result<()> {
    // The program starts itself as the reference server: the emulator must do that too, which it
    // does where the kernel knows it (binfmt_misc); otherwise the server stands beside.
    let mut serving = Command::new(board.emulator)
        .arg(binary)
        .args(["serve", "tcp", "--control"])
        .current_dir(place)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| format!("starting {} (qemu-user-static)", board.emulator))?;
    let url = match first_line(&mut serving) {
        Ok(url) => url,
        Err(error) => {
            drop(serving.stdin.take());
            serving.wait()?;
            return Err(error);
        }
    };
    let weigh = |words: &[&str]| -> anyhow::Result<String> {
        let out =
            Command::new(board.emulator).arg(binary).args(words).current_dir(place).output()?;
        let (said, complained) =
            (String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
        ensure!(out.status.success(), "weigh {}: {}\n{complained}", words.join(" "), out.status);
        Ok(said.into_owned())
    };
    let done = (|| -> anyhow::Result<()> {
        println!("{}: {}", board.name, weigh(&["--version"])?.trim());
        let small = ["-n", "200", "-c", "2", "-Q", "--reps", "1", "--json", "--warmup", "0s"];
        let summary = weigh(&[&["compare", &url][..], &small[..]].concat())?;
        let summary: serde_json::Value = serde_json::from_str(&summary)?;
        let ledger = &summary["cells"][0]["ledger"];
        ensure!(
            ledger["delivered"] == 200,
            "200 messages were sent, and this came of it: {ledger}"
        );
        let plan = std::fs::read_to_string(root.join("xtask/board.toml"))?;
        std::fs::write(place.join("plan.toml"), plan.replace("URL", &url))?;
        weigh(&[
            "energy",
            "rundown",
            "plan.toml",
            "--no-gauge",
            "--for",
            "2s",
            "--battery",
            "2000mAh@5V",
        ])?;
        let report = weigh(&["energy", "rundown", "--read", "--json"])?;
        let report: serde_json::Value = serde_json::from_str(&report)?;
        let sessions = report["discharges"][0]["sessions"].as_u64();
        ensure!(sessions > Some(0), "no session in two seconds: {report}");
        println!("{}: 200 messages, and {} sessions run down", board.name, sessions.unwrap_or(0));
        Ok(())
    })();
    // It ends with its standard input.
    drop(serving.stdin.take());
    serving.wait()?;
    done
}

fn first_line(serving: &mut std::process::Child) -> anyhow::Result<String> {
    let stdout = serving.stdout.as_mut().context("its standard output")?;
    let mut line = String::new();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(stdout), &mut line)?;
    match line.trim().strip_prefix("listening on ") {
        Some(url) => Ok(url.to_owned()),
        None => bail!("the server said {line:?}"),
    }
}

/// Debian's C library, linked in, rather than musl: with musl no thread can go before others
/// (`sched_setscheduler` says that it is not there), which is what keeps the generator in time.
/// Names are looked up in /etc/hosts and by DNS without the board's own library (glibc 2.34 and
/// later).
const BOARDS: [Board; 2] = [
    Board {
        name: "aarch64",
        triple: "aarch64-unknown-linux-gnu",
        cc: "aarch64-linux-gnu-gcc",
        packages: "gcc-aarch64-linux-gnu libc6-dev-arm64-cross binutils qemu-user-static",
        emulator: "qemu-aarch64-static",
    },
    Board {
        name: "armv7",
        triple: "armv7-unknown-linux-gnueabihf",
        cc: "arm-linux-gnueabihf-gcc",
        packages: "gcc-arm-linux-gnueabihf libc6-dev-armhf-cross binutils qemu-user-static",
        emulator: "qemu-arm-static",
    },
];
