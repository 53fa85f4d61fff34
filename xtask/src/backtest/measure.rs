//! Measures the options of every situation, by the plan that was frozen with its prediction. A
//! situation that was measured is not measured again.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context, ensure};
use serde_json::{Value, json};

use super::freeze::Frozen;

/// Measures what is missing, until the minutes are over.
pub(crate) fn all(
    folder: &Path,
    weigh: &Path,
    frozen: &Frozen,
    minutes: u64,
) -> anyhow::Result<()> {
    let until = Instant::now() + Duration::from_secs(60 * minutes);
    fs::create_dir_all(folder.join("measured"))?;
    for number in frozen.numbers() {
        let file = folder.join("measured").join(format!("{number}.json"));
        if file.exists() {
            continue;
        }
        if Instant::now() > until {
            println!("{minutes} minutes are over; a second call continues");
            break;
        }
        let predicted = read(&folder.join(format!("{number}.json")))?;
        if !is_answered(&predicted) {
            continue;
        }
        println!("{number}: {}", predicted["criterion"]);
        let measured = one(weigh, &predicted).with_context(|| number.clone())?;
        fs::write(&file, serde_json::to_string_pretty(&measured)? + "\n")?;
    }
    Ok(())
}

/// True if the prediction is not a refusal.
pub(crate) fn is_answered(predicted: &Value) -> bool {
    predicted["advised"].as_array().is_some_and(|own| !own.is_empty())
}

/// The document of a file.
pub(crate) fn read(file: &Path) -> anyhow::Result<Value> {
    let text = fs::read_to_string(file).with_context(|| format!("{}", file.display()))?;
    Ok(serde_json::from_str(&text)?)
}

/// Runs the plan, and takes the figure of every option from the summary.
fn one(weigh: &Path, predicted: &Value) -> anyhow::Result<Value> {
    let place = std::env::temp_dir().join(format!("weigh-backtest-{}", std::process::id()));
    fs::create_dir_all(&place)?;
    let plan = predicted["plan"].as_str().context("a plan")?;
    fs::write(place.join("plan.toml"), plan)?;
    let mut command = Command::new(weigh);
    let command = command.args(["run", "plan.toml", "--json", "-Q"]).current_dir(&place);
    let output = command.output().with_context(|| format!("{}", weigh.display()))?;
    let summary: Value = serde_json::from_slice(&output.stdout)
        .with_context(|| format!("the run failed: {}", String::from_utf8_lossy(&output.stderr)))?;
    fs::remove_dir_all(&place)?;
    let criterion = predicted["criterion"].as_str().unwrap_or_default();
    // Cells are in the order of the cases, which is that of the options that are not out.
    let options = predicted["options"].as_array().context("options")?;
    let can: Vec<&Value> = options.iter().filter(|own| own["standing"] != "out").collect();
    let cells = summary["cells"].as_array().context("cells")?;
    ensure!(cells.len() == can.len(), "{} cells of {} options", cells.len(), can.len());
    let of = |(option, cell): (&&Value, &Value)| {
        let values = values(cell, criterion);
        json!({ "name": option["name"], "values": values })
    };
    let now = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs();
    let host = &summary["run"]["host"];
    let all: Vec<Value> = can.iter().zip(cells).map(of).collect();
    Ok(json!({ "unix_s": now, "criterion": criterion, "host": host, "options": all }))
}

/// The values of all repetitions of what the criterion stands for.
fn values(cell: &Value, criterion: &str) -> Vec<f64> {
    let all = |name: &str| -> Vec<f64> {
        let values = cell["metrics"][name]["values"].as_array();
        values.into_iter().flatten().filter_map(Value::as_f64).collect()
    };
    let scaled = |name: &str, by: f64| all(name).into_iter().map(|own| own * by).collect();
    match criterion {
        "server-cpu" => scaled("target_cpu_percent.mean", 0.01),
        "memory" => all("target_memory_bytes.max"),
        "latency" => scaled("response_time_ns.p99", 1e-9),
        // Compared by ratio: a month is a message times their number for all options.
        "bytes" | "energy" => all("wire.bytes_per_message"),
        _ => Vec::new(),
    }
}
