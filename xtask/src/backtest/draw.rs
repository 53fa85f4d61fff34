//! Draws the situations: a Halton sequence with a random rotation (R. Cranley and T. Patterson,
//! 1976) over logarithms of devices, interval and size. Those on a break-even are put where the
//! advice itself says that two options cost the same.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, ensure};
use serde_json::Value;
use weigh_stats::random::Random;

/// The seed of all thirty.
const SEED: u64 = 20_261_126;

/// Writes `NN.toml`; refuses if they are there.
pub(crate) fn draw(folder: &Path, weigh: &Path) -> anyhow::Result<()> {
    fs::create_dir_all(folder)?;
    ensure!(!folder.join("01.toml").exists(), "the situations are drawn already");
    let mut number = 0;
    let mut put = |kind: &str, text: &str| {
        number += 1;
        fs::write(folder.join(format!("{number:02}.toml")), format!("# {kind}\n{text}"))
    };
    for text in inside().iter().chain(&edges()) {
        let kind = if inside().contains(text) { "inside" } else { "edge" };
        put(kind, text)?;
    }
    for text in break_evens(weigh)? {
        put("break-even", &text)?;
    }
    for text in outside() {
        put("outside", &text)?;
    }
    for text in users() {
        put("user", &text)?;
    }
    println!("{}: {number} situations from the seed {SEED}", folder.display());
    Ok(())
}

/// Ten within the measured hull.
pub(crate) fn inside() -> Vec<String> {
    let mut random = Random::new(SEED);
    let shift: Vec<f64> = (0..3).map(|_| random.next_f64()).collect();
    let matters = ["server-cpu", "bytes", "server-cpu", "memory", "server-cpu"];
    let one = |index: usize| {
        let at = |dimension: usize, base: usize, low: f64, high: f64| {
            let place = (halton(index + 1, base) + shift[dimension]).fract();
            low * (high / low).powf(place)
        };
        let devices = at(0, 2, 50.0, 20_000.0).round();
        let rate = at(1, 3, 50.0, 10_000.0).min(devices * 100.0);
        let size = at(2, 5, 32.0, 500.0).round();
        let tls = if index.is_multiple_of(2) { "off" } else { "on" };
        text("inside", matters[index % 5], [devices, devices / rate, size], tls, "")
    };
    (0..10).map(one).collect()
}

/// Eight at the edges: the most connections, the highest rate, slow paths, batteries.
pub(crate) fn edges() -> Vec<String> {
    let device = "\n[device]\nmodel = \"pi-zero\"\nradio = \"3g\"\n";
    let path = |name: &str| format!("\n[network]\npath = \"{name}\"\ntls = \"off\"\n");
    let of = |matters: &str, load: [f64; 3], tls: &str, more: &str| {
        text("edge", matters, load, tls, more)
    };
    vec![
        of("memory", [38_000.0, 60.0, 72.0], "on", ""),
        of("memory", [95_000.0, 60.0, 72.0], "off", ""),
        of("server-cpu", [2_000.0, 0.07, 72.0], "off", ""),
        of("server-cpu", [100.0, 60.0, 72.0], "on", ""),
        of("latency", [10.0, 5.0, 64.0], "", &path("satellite")),
        of("latency", [10.0, 10.0, 64.0], "", &path("nb-iot")),
        of("energy", [10.0, 3_600.0, 200.0], "off", device),
        of("energy", [10.0, 10.0, 200.0], "off", device),
    ]
}

/// Four that must be refused.
pub(crate) fn outside() -> Vec<String> {
    let none = |load: [f64; 3], options: &str| {
        text("outside", "server-cpu", load, "off", "").replace("[\"mqtt\", \"http\"]", options)
    };
    vec![
        none([1_000.0, 0.01, 64.0], "[\"mqtt\", \"http\"]"),
        none([2_000.0, 60.0, 1_000_000.0], "[\"mqtt\", \"http\"]"),
        none([100.0, 60.0, 64.0], "[\"coap\"]"),
        none([100.0, 60.0, 64.0], "[\"nanomq\"]"),
    ]
}

/// Three from threads: UMH#1607 (500 to 1,000 messages/s), PicoMQTT#74 (1,000 devices over TLS),
/// and study 000 (farms with a reading a minute).
pub(crate) fn users() -> Vec<String> {
    vec![
        text("user", "server-cpu", [100.0, 0.1, 125.0], "off", ""),
        text("user", "server-cpu", [1_000.0, 10.0, 125.0], "on", ""),
        text("user", "memory", [60_000.0, 60.0, 72.0], "off", ""),
    ]
}

/// Five at the break-even values that the advice prints for other situations.
fn break_evens(weigh: &Path) -> anyhow::Result<Vec<String>> {
    let mut found = Vec::new();
    let starts = [
        ("server-cpu", 72.0, "off"),
        ("server-cpu", 72.0, "on"),
        ("bytes", 72.0, "off"),
        ("bytes", 72.0, "on"),
        ("bytes", 300.0, "on"),
    ];
    for (matters, size, tls) in starts {
        let start = text("break-even", matters, [500.0, 1.0, size], tls, "");
        let file = std::env::temp_dir().join(format!("weigh-start-{}.toml", std::process::id()));
        fs::write(&file, &start)?;
        let advice = advise(weigh, &file)?;
        fs::remove_file(&file)?;
        let all = advice["break_even"].as_array().context("break-even values")?;
        let every = all.iter().find(|own| own["axis"] == "every");
        // Without a crossing the start stays: it is then one more inside.
        let at = every.and_then(|own| own["at"].as_f64()).unwrap_or(1.0);
        found.push(text("break-even", matters, [500.0, at, size], tls, ""));
    }
    Ok(found)
}

/// The advice for a situation, from the committed cells.
pub(crate) fn advise(weigh: &Path, file: &Path) -> anyhow::Result<Value> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../data/cells/farms.json");
    let mut command = Command::new(weigh);
    command.arg("advise").arg(file).arg("--json").arg("--cells").arg(folder);
    let output = command.output().with_context(|| format!("{}", weigh.display()))?;
    let text = String::from_utf8_lossy(&output.stdout);
    serde_json::from_str(&text)
        .with_context(|| format!("{}: {}", file.display(), String::from_utf8_lossy(&output.stderr)))
}

fn text(
    kind: &str,
    matters: &str,
    [devices, every_s, size]: [f64; 3],
    tls: &str,
    more: &str,
) -> String {
    let network = match tls {
        "" => String::new(),
        tls => format!("\n[network]\ntls = \"{tls}\"\n"),
    };
    let every_ms = (every_s * 1e3).round().max(1.0);
    format!(
        "#:schema ../../schemas/situation.schema.json\nschema = \"weigh/situation/1\"\n\
         name = \"{kind}\"\noptions = [\"mqtt\", \"http\"]\nmatters = [\"{matters}\"]\n\n\
         [traffic]\ndevices = {devices}\nevery = \"{every_ms}ms\"\nsize = \"{size}B\"\n\
         {network}{more}\n[server]\ncores = 1\nmemory = \"4GiB\"\nheadroom = \"100%\"\n"
    )
}

/// The radical inverse of `index`.
fn halton(index: usize, base: usize) -> f64 {
    let (mut left, mut share, mut sum) = (index, 1.0, 0.0);
    while left > 0 {
        share /= base as f64;
        sum += share * (left % base) as f64;
        left /= base;
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is committed is what the seed gives; break-even values come from the advice.
    #[test]
    fn the_committed_situations_are_those_of_the_seed() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(super::super::FOLDER);
        if !folder.join("01.toml").exists() {
            assert!(!folder.join("frozen.json").exists(), "predictions without situations");
            return;
        }
        let kept = |number: usize| {
            fs::read_to_string(folder.join(format!("{number:02}.toml"))).expect("a situation")
        };
        let without_kind = |text: String| text.split_once('\n').expect("a first line").1.to_owned();
        let all = [(1, inside()), (11, edges()), (24, outside()), (28, users())];
        for (from, texts) in all {
            for (at, expected) in texts.iter().enumerate() {
                assert_eq!(without_kind(kept(from + at)), *expected, "{}", from + at);
            }
        }
        assert!(!folder.join("31.toml").exists());
    }
}
