//! Predictions with their hashes. They are made once, before anything is measured.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, bail, ensure};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::cells::{CELLS, cells};
use super::draw::advise;

/// What was frozen: `frozen.json`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Frozen {
    /// When, seconds since 1970.
    pub(crate) unix_s: u64,
    /// The version that predicted.
    pub(crate) weigh: String,
    /// SHA-256 of the cells, and of every situation and prediction, by file name.
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
    ensure!(!folder.join("measured").exists(), "there are measurements already");
    cells(folder)?;
    let mut sha256 = BTreeMap::from([(CELLS.to_owned(), hash(&fs::read(folder.join(CELLS))?))]);
    let mut files: Vec<_> =
        fs::read_dir(folder)?.filter_map(|entry| Some(entry.ok()?.path())).collect();
    files.sort();
    for file in files.iter().filter(|file| file.extension().is_some_and(|own| own == "toml")) {
        let stem = file.file_stem().context("a name")?.to_string_lossy().into_owned();
        let advice = advise(weigh, file, &folder.join(CELLS))?;
        let text = serde_json::to_string_pretty(&short(&advice))? + "\n";
        fs::write(folder.join(format!("{stem}.json")), &text)?;
        sha256.insert(format!("{stem}.json"), hash(text.as_bytes()));
        sha256.insert(format!("{stem}.toml"), hash(&fs::read(file)?));
    }
    ensure!(sha256.len() > 1, "{}: no situations; type --draw", folder.display());
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH)?;
    let version = std::process::Command::new(weigh).arg("-V").output()?;
    let weigh = String::from_utf8_lossy(&version.stdout).trim().to_owned();
    let frozen = Frozen { unix_s: now.as_secs(), weigh, sha256 };
    fs::write(folder.join(FILE), serde_json::to_string_pretty(&frozen)? + "\n")?;
    println!("{}: {} files frozen", folder.display(), frozen.sha256.len());
    Ok(())
}

/// What measurements and scores need of an advice.
fn short(advice: &Value) -> Value {
    let first = &advice["situation"]["matters"][0];
    let criterion = first.as_str().unwrap_or_default();
    let all = advice["options"].as_array().map(Vec::as_slice).unwrap_or_default();
    let of = |own: &Value| {
        json!({
            "name": own["name"],
            "standing": own["standing"],
            "why": own["why"],
            "best": own["best"],
            "beats": own["beats"],
            "figure": own["figures"][criterion],
            "bytes": own["figures"]["bytes"]["value"],
            "message": ways(&own["message"]),
            "around": ways(&own["around"]),
            "month": ways(&own["month"]),
        })
    };
    json!({
        "criterion": criterion,
        "is_complete": advice["is_complete"],
        "advised": advice["advised"],
        "options": all.iter().map(of).collect::<Vec<Value>>(),
        "plan": advice["plan"],
    })
}

/// Bytes up and down: the middle between few and many acknowledgements.
fn ways(bounds: &Value) -> Value {
    let middle = |way: &str| {
        let of = |bound: &str| bounds[bound][way].as_f64().unwrap_or_default();
        (of("low") + of("high")) / 2.0
    };
    json!([middle("up"), middle("down")])
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
        match measured["began_unix_s"].as_u64() {
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

    fn committed() -> std::path::PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(super::super::FOLDER)
    }

    /// The committed predictions are those that were frozen, and no measurement is older.
    #[test]
    fn what_is_committed_is_what_was_frozen() {
        let frozen = check(&committed()).expect("the frozen predictions");
        assert_eq!(frozen.numbers().len(), 30);
        assert_eq!(frozen.sha256.len(), 61, "cells, situations and predictions");
    }

    /// The predictions rest on a calibration, not on shipped cells, and it was made before.
    #[test]
    fn the_predictions_rest_on_a_calibration() {
        let cells = cells(&committed()).expect("cells");
        assert!(!cells.is_shipped && cells.cells.len() > 60, "{}", cells.source);
        let day = cells.made.get(..10).expect("a date");
        let frozen = check(&committed()).expect("the frozen predictions");
        let days = frozen.unix_s / 86_400;
        assert!(days_since_1970(day).is_some_and(|own| own <= days), "{day}");
    }

    /// Days of a date like 2026-11-26 (H. Hinnant, `days_from_civil`).
    fn days_since_1970(day: &str) -> Option<u64> {
        let parts: Vec<i64> = day.split('-').filter_map(|own| own.parse().ok()).collect();
        let [year, month, day] = parts.try_into().ok()?;
        let year = if month <= 2 { year - 1 } else { year };
        let (era, of_era) = (year / 400, year % 400);
        let of_year = (153 * (if month > 2 { month - 3 } else { month + 9 }) + 2) / 5 + day - 1;
        let days = of_era * 365 + of_era / 4 - of_era / 100 + of_year;
        u64::try_from(era * 146_097 + days - 719_468).ok()
    }

    /// A changed prediction is found, and so is a measurement that is older.
    #[test]
    fn what_was_changed_afterwards_is_found() {
        let place = std::env::temp_dir().join(format!("weigh-frozen-{}", std::process::id()));
        fs::create_dir_all(place.join("measured")).expect("a folder");
        let put = |name: &str, text: &str| fs::write(place.join(name), text).expect("a file");
        put("01.toml", "a");
        put("01.json", "b");
        let of = |(name, text): (&str, &str)| (name.to_owned(), hash(text.as_bytes()));
        let sha256 = [("01.toml", "a"), ("01.json", "b")].map(of);
        let frozen = Frozen { unix_s: 100, weigh: String::new(), sha256: sha256.into() };
        put(FILE, &serde_json::to_string(&frozen).expect("JSON"));
        assert_eq!(check(&place).expect("as frozen").numbers(), ["01"]);
        put("measured/01.json", "{\"began_unix_s\": 100}");
        assert!(check(&place).unwrap_err().to_string().contains("before it was predicted"));
        put("measured/01.json", "{\"began_unix_s\": 101}");
        assert!(check(&place).is_ok());
        put("01.json", "c");
        assert!(check(&place).unwrap_err().to_string().contains("changed after"));
        fs::remove_dir_all(&place).expect("it is removed");
    }
}
