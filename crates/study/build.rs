//! Finds the studies below `studies/` and builds their texts in: one more folder is one more
//! study, without a line of Rust.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let root = Path::new(&env::var("CARGO_MANIFEST_DIR").expect("cargo names it")).join("../..");
    let studies = root.join("studies");
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed={}", studies.display());
    let mut code = String::from("&[\n");
    for folder in sorted(&studies)?.into_iter().filter(|path| path.join("study.toml").is_file()) {
        let name = folder.file_name().unwrap_or_default().to_string_lossy();
        let _ = writeln!(code, "({name:?}, &[");
        for own in FILES {
            let file = folder.join(own);
            if !file.is_file() {
                continue;
            }
            let path = file.canonicalize()?;
            let _ = writeln!(code, "({own:?}, include_str!({:?})),", path.display().to_string());
        }
        code += "]),\n";
    }
    code += "]\n";
    let out = PathBuf::from(env::var("OUT_DIR").expect("cargo names it"));
    fs::write(out.join("studies.rs"), code)
}

/// The files that a study may have; what else lies in its folder is not built in.
const FILES: [&str; 7] = [
    "study.toml",
    "plan-published.toml",
    "plan-right.toml",
    "tools.toml",
    "published.csv",
    "facts.toml",
    "README.md",
];

/// What stands in a folder, by name; nothing where there is no folder.
fn sorted(folder: &Path) -> io::Result<Vec<PathBuf>> {
    if !folder.is_dir() {
        return Ok(Vec::new());
    }
    let mut paths = Vec::new();
    for entry in fs::read_dir(folder)? {
        paths.push(entry?.path());
    }
    paths.sort();
    Ok(paths)
}
