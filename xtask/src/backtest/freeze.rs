//! Predictions with their hashes. They are made once, before anything is measured.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, bail, ensure};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::draw::advise;

/// What was frozen: `frozen.json`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Frozen {
    /// When, seconds since 1970.
    pub(crate) unix_s: u64,
    /// The version that predicted.
    pub(crate) weigh: String,
    /// SHA-256 of every situation and prediction, by file name.
    pub(crate) sha256: BTreeMap<String, String>,
}

impl Frozen {
    /// Numbers of the situations.
    pub(crate) fn numbers(&self) -> Vec<String> {
        let names = self.sha256.keys().filter_map(|name| name.strip_suffix(".toml"));
        names.map(str::to_owned).collect()
    }
}

/// Writes predictions and hashes; refuses if they are there.
pub(crate) fn freeze(folder: &Path, weigh: &Path) -> anyhow::Result<()> {
    ensure!(!folder.join(FILE).exists(), "the predictions are frozen already");
    let mut sha256 = BTreeMap::new();
    let mut files: Vec<_> =
        fs::read_dir(folder)?.filter_map(|entry| Some(entry.ok()?.path())).collect();
    files.sort();
    for file in files.iter().filter(|file| file.extension().is_some_and(|own| own == "toml")) {
        let stem = file.file_stem().context("a name")?.to_string_lossy().into_owned();
        let advice = advise(weigh, file)?;
        let text = serde_json::to_string_pretty(&short(&advice))? + "\n";
        fs::write(folder.join(format!("{stem}.json")), &text)?;
        sha256.insert(format!("{stem}.json"), hash(text.as_bytes()));
        sha256.insert(format!("{stem}.toml"), hash(&fs::read(file)?));
    }
    ensure!(!sha256.is_empty(), "{}: no situations; type --draw", folder.display());
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH)?;
    let version = std::process::Command::new(weigh).arg("-V").output()?;
    let weigh = String::from_utf8_lossy(&version.stdout).trim().to_owned();
    let frozen = Frozen { unix_s: now.as_secs(), weigh, sha256 };
    fs::write(folder.join(FILE), serde_json::to_string_pretty(&frozen)? + "\n")?;
    println!("{}: {} files frozen", folder.display(), frozen.sha256.len());
    Ok(())
}

/// What scores need of an advice.
fn short(advice: &Value) -> Value {
    let first = &advice["situation"]["matters"][0];
    let criterion = first.as_str().unwrap_or_default();
    let all = advice["options"].as_array().map(Vec::as_slice).unwrap_or_default();
    let of = |own: &Value| {
        serde_json::json!({
            "name": own["name"],
            "standing": own["standing"],
            "best": own["best"],
            "beats": own["beats"],
            "figure": own["figures"][criterion],
            "bytes": own["figures"]["bytes"]["value"],
        })
    };
    serde_json::json!({
        "criterion": criterion,
        "is_complete": advice["is_complete"],
        "advised": advice["advised"],
        "options": all.iter().map(of).collect::<Vec<Value>>(),
        "plan": advice["plan"],
    })
}

/// Reads what was frozen, and compares every file with its hash; measurements must be younger.
pub(crate) fn check(folder: &Path) -> anyhow::Result<Frozen> {
    let text = fs::read_to_string(folder.join(FILE))
        .with_context(|| format!("{}: no {FILE}: type --draw, then --freeze", folder.display()))?;
    let frozen: Frozen = serde_json::from_str(&text)?;
    for (name, sha256) in &frozen.sha256 {
        let found = hash(&fs::read(folder.join(name)).with_context(|| name.clone())?);
        ensure!(found == *sha256, "{name} was changed after it was frozen");
    }
    for number in frozen.numbers() {
        let file = folder.join("measured").join(format!("{number}.json"));
        let Ok(text) = fs::read_to_string(&file) else { continue };
        let measured: Value = serde_json::from_str(&text)?;
        match measured["unix_s"].as_u64() {
            Some(unix_s) if unix_s > frozen.unix_s => {}
            _ => bail!("{number}: measured before it was predicted"),
        }
    }
    Ok(frozen)
}

fn hash(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

const FILE: &str = "frozen.json";

#[cfg(test)]
mod tests {
    use super::*;

    /// The committed predictions are those that were frozen, and no measurement is older.
    #[test]
    fn what_is_committed_is_what_was_frozen() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(super::super::FOLDER);
        if !folder.join(FILE).exists() {
            assert!(!folder.join("measured").exists(), "measured before it was predicted");
            return;
        }
        let frozen = check(&folder).expect("the frozen predictions");
        assert_eq!(frozen.numbers().len(), 30);
    }
}
