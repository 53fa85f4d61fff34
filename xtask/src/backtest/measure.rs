//! Measures the options of every situation, by the plan that was frozen with its prediction, round
//! by round: every situation once, then again those whose ratios are not precise. What was measured
//! is kept after each round of a situation, so that a call that was ended is continued by the next.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context, ensure};
use serde_json::{Value, json};
use weigh_report::Summary;
use weigh_stats::estimate::{Sample, t_quantile};

use super::figure::Ground;
use super::freeze::Frozen;

/// How much may be measured.
pub(crate) struct Budget {
    /// Minutes from now.
    pub(crate) minutes: f64,
    /// Numbers of situations; empty for all.
    pub(crate) only: Vec<String>,
    /// Repetitions of a round.
    pub(crate) repetitions: u32,
    /// Rounds of a situation at most.
    pub(crate) rounds: u64,
}

/// Measures what is missing, until the minutes are over.
pub(crate) fn all(
    folder: &Path,
    weigh: &Path,
    frozen: &Frozen,
    budget: &Budget,
) -> anyhow::Result<()> {
    let began = Instant::now();
    let limit = Duration::try_from_secs_f64(budget.minutes.max(0.0) * 60.0)?;
    fs::create_dir_all(folder.join("measured"))?;
    let numbers = wanted(folder, frozen, budget)?;
    // A situation that fails is not tried again in this call.
    let mut failed: Vec<String> = Vec::new();
    loop {
        let mut states: Vec<(u64, &String)> = Vec::new();
        for number in numbers.iter().filter(|number| !failed.contains(number)) {
            if let Some(rounds) = rounds(folder, number, budget)? {
                states.push((rounds, number));
            }
        }
        let Some((round, number)) = states.iter().min() else {
            println!("all situations are precise, or had {} rounds", budget.rounds);
            break;
        };
        let predicted = read(&folder.join(format!("{number}.json")))?;
        let plan = plan(&predicted, budget.repetitions)?;
        let lasts = estimate(&plan);
        if began.elapsed() + lasts > limit {
            println!(
                "{} minutes are over with {} situations left; a second call continues",
                budget.minutes,
                states.len()
            );
            break;
        }
        println!(
            "{number}: {}, round {} of at most {}, about {} s; {} left, {:.0} of {} min",
            predicted["criterion"].as_str().unwrap_or_default(),
            round + 1,
            budget.rounds,
            lasts.as_secs(),
            states.len(),
            began.elapsed().as_secs_f64() / 60.0,
            budget.minutes
        );
        if let Err(error) = round_of(folder, weigh, number, &predicted, &plan) {
            println!("{number}: not measured: {error:#}");
            failed.push((*number).clone());
        }
    }
    Ok(())
}

/// Numbers of the situations that are answered.
fn wanted(folder: &Path, frozen: &Frozen, budget: &Budget) -> anyhow::Result<Vec<String>> {
    let all = frozen.numbers();
    if let Some(unknown) = budget.only.iter().find(|own| !all.contains(own)) {
        let all = all.join(", ");
        anyhow::bail!("--only {unknown}: there is no such situation: type one of {all}");
    }
    let mut wanted = Vec::new();
    for number in all {
        let is_asked = budget.only.is_empty() || budget.only.contains(&number);
        if is_asked && is_answered(&read(&folder.join(format!("{number}.json")))?) {
            wanted.push(number);
        }
    }
    Ok(wanted)
}

/// True if the prediction is not a refusal.
pub(crate) fn is_answered(predicted: &Value) -> bool {
    predicted["advised"].as_array().is_some_and(|own| !own.is_empty())
}

/// The document of a file.
pub(crate) fn read(file: &Path) -> anyhow::Result<Value> {
    let text = fs::read_to_string(file).with_context(|| format!("{}", file.display()))?;
    serde_json::from_str(&text).with_context(|| format!("{}", file.display()))
}

/// Rounds that a situation had; `None` if it needs no more.
fn rounds(folder: &Path, number: &str, budget: &Budget) -> anyhow::Result<Option<u64>> {
    let file = folder.join("measured").join(format!("{number}.json"));
    if !file.exists() {
        return Ok(Some(0));
    }
    let measured = read(&file)?;
    let rounds = measured["rounds"].as_u64().context("rounds")?;
    // Where nothing could be measured, another round would not measure it either.
    let is_void = options(&measured).all(|own| values(&own["values"]).is_empty());
    let is_over = rounds >= budget.rounds || is_precise(&measured) || is_void;
    Ok((!is_over).then_some(rounds))
}

/// True if the ratio of every option to the best has a 95 % interval of at most 5 % to either side.
fn is_precise(measured: &Value) -> bool {
    let all: Vec<Vec<f64>> = options(measured).map(|own| values(&own["values"])).collect();
    let shares: Vec<(f64, f64)> = all.iter().filter_map(|own| of(own)).collect();
    let least = shares.iter().copied().min_by(|a, b| a.0.total_cmp(&b.0));
    let Some((_, least)) = least else { return false };
    shares.iter().all(|(_, own)| (own.powi(2) + least.powi(2)).sqrt() <= PRECISE)
}

/// The mean, and half of its 95 % interval as a share of it.
fn of(values: &[f64]) -> Option<(f64, f64)> {
    let sample = Sample::of(values)?;
    let error = sample.variance_of_mean().sqrt() / sample.mean;
    let has_error = sample.n > 1 && sample.mean > 0.0;
    let share = if has_error { t_quantile(sample.n as f64 - 1.0) * error } else { f64::INFINITY };
    Some((sample.mean, share))
}

fn options(document: &Value) -> impl Iterator<Item = &Value> {
    document["options"].as_array().into_iter().flatten()
}

pub(crate) fn values(list: &Value) -> Vec<f64> {
    list.as_array().into_iter().flatten().filter_map(Value::as_f64).collect()
}

/// The frozen plan with the repetitions of a round. For latency without sessions, and long enough
/// for a p99.
fn plan(predicted: &Value, repetitions: u32) -> anyhow::Result<String> {
    let plan = predicted["plan"].as_str().context("a plan")?;
    let line = plan.lines().find(|line| line.starts_with("repeat = ")).context("repetitions")?;
    let own = format!("repeat = {{ at_least = {repetitions}, at_most = {repetitions} }}");
    let plan = plan.replacen(line, &own, 1);
    if predicted["criterion"] != LATENCY {
        return Ok(plan);
    }
    let (head, cases) = plan.split_once("[[case]]").context("cases")?;
    let kept = cases.split("[[case]]").filter(|own| !own.contains("pattern = \"session\""));
    let kept: Vec<&str> = kept.collect();
    let rate = kept.iter().flat_map(|own| own.lines()).find_map(|line| {
        line.strip_prefix("load.rate = \"")?.trim_end_matches('"').strip_suffix("/s")?.parse().ok()
    });
    let rate: f64 = rate.context("a rate")?;
    let lasts = |line: &str| match line.starts_with("load.duration = ") {
        true => format!("load.duration = \"{:.0}s\"", (P99_MESSAGES / rate).ceil().max(10.0)),
        false => line.to_owned(),
    };
    let head: Vec<String> = head.lines().map(lasts).collect();
    Ok(format!("{}\n[[case]]{}", head.join("\n"), kept.join("[[case]]")))
}

/// About how long a plan takes.
fn estimate(plan: &str) -> Duration {
    let number = |start: &str| {
        let line = plan.lines().find_map(|line| line.strip_prefix(start))?;
        let digits: String = line
            .chars()
            .skip_while(|c| !c.is_ascii_digit())
            .take_while(|c| c.is_ascii_digit() || *c == '.')
            .collect();
        digits.parse::<f64>().ok()
    };
    let trials = plan.matches("[[case]]").count() as f64 * number("repeat = ").unwrap_or(1.0);
    let each_s = number("load.duration = ").unwrap_or(10.0) + OVERHEAD_S;
    Duration::from_secs_f64(trials * each_s)
}

/// Measures one round of a situation, and adds it to what was measured.
fn round_of(
    folder: &Path,
    weigh: &Path,
    number: &str,
    predicted: &Value,
    plan: &str,
) -> anyhow::Result<()> {
    let file = format!("{number}.toml");
    let ground = Ground::read(&file, &fs::read_to_string(folder.join(&file))?)?;
    let began = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs();
    let summary = run(weigh, plan)?;
    let measured = figures(&ground, predicted, &summary)?;
    let file = folder.join("measured").join(format!("{number}.json"));
    let all = if file.exists() { added(read(&file)?, &measured) } else { first(measured, began) };
    let beside = file.with_extension("new");
    fs::write(&beside, serde_json::to_string_pretty(&all)? + "\n")?;
    fs::rename(&beside, &file)?;
    Ok(())
}

fn run(weigh: &Path, plan: &str) -> anyhow::Result<Summary> {
    let place = std::env::temp_dir().join(format!("weigh-backtest-{}", std::process::id()));
    fs::create_dir_all(&place)?;
    fs::write(place.join("plan.toml"), plan)?;
    let mut command = Command::new(weigh);
    let command = command.args(["run", "plan.toml", "--json", "-Q"]).current_dir(&place);
    let output = command.output().with_context(|| format!("{}", weigh.display()))?;
    fs::remove_dir_all(&place)?;
    // After failed trials there is a summary too.
    let text = String::from_utf8_lossy(&output.stdout);
    let begin = text.find('{').unwrap_or(0);
    serde_json::from_str(&text[begin..])
        .with_context(|| format!("the run failed: {}", String::from_utf8_lossy(&output.stderr)))
}

/// The figures of every option that the plan measures. Cells are in the order of the cases.
fn figures(ground: &Ground, predicted: &Value, summary: &Summary) -> anyhow::Result<Value> {
    let is_measured = |own: &&Value| {
        own["standing"] != "out" && !(own["standing"] == "behind" && own["why"].is_string())
    };
    let is_session = |own: &&Value| {
        let name = own["name"].as_str().unwrap_or_default();
        predicted["criterion"] == LATENCY && name.contains(", one each")
    };
    let measured = options(predicted).filter(is_measured);
    let can: Vec<&Value> = measured.filter(|own| !is_session(own)).collect();
    ensure!(
        summary.cells.len() == can.len(),
        "{} cells of {} options: some trials failed",
        summary.cells.len(),
        can.len()
    );
    let of = |(option, cell): (&&Value, &weigh_report::summary::Cell)| {
        let protocol = cell.point.get("protocol").and_then(Value::as_str).unwrap_or_default();
        let name = option["name"].as_str().unwrap_or_default();
        ensure!(name.starts_with(protocol), "{name} was measured as {protocol}");
        let qos = cell.point.get("mqtt.qos").and_then(Value::as_u64);
        let is_same = qos.is_none_or(|qos| name.contains(&format!("qos {qos}")));
        let is_each = cell.point.get("load.pattern").is_some_and(|own| own == "session");
        ensure!(
            is_same && is_each == name.contains(", one each"),
            "{name} was measured as {:?}",
            cell.point
        );
        Ok(match ground.values(option, cell) {
            Ok(values) => json!({ "name": name, "values": values }),
            Err(why) => json!({ "name": name, "values": [], "left_out": format!("{why:#}") }),
        })
    };
    let all: anyhow::Result<Vec<Value>> = can.iter().zip(&summary.cells).map(of).collect();
    Ok(json!({
        "criterion": predicted["criterion"],
        "host": serde_json::to_value(&summary.run.host)?,
        "options": all?,
    }))
}

fn first(mut measured: Value, began: u64) -> Value {
    measured["began_unix_s"] = json!(began);
    measured["rounds"] = json!(1);
    measured
}

/// Appends the values of another round.
fn added(mut before: Value, measured: &Value) -> Value {
    before["rounds"] = json!(before["rounds"].as_u64().unwrap_or(0) + 1);
    for own in before["options"].as_array_mut().into_iter().flatten() {
        let again = options(measured).find(|other| other["name"] == own["name"]);
        let mut all = values(&own["values"]);
        all.extend(again.map(|again| values(&again["values"])).unwrap_or_default());
        own["values"] = json!(all);
        if let Some(why) = again.and_then(|again| again.get("left_out")) {
            own["left_out"] = why.clone();
        }
    }
    before
}

/// The criterion for which a connection for each message is not scored: the recorded time of a
/// session includes its close.
const LATENCY: &str = "latency";

/// Messages of a trial whose p99 is asked: the least with which one is recorded, and a tenth more.
const P99_MESSAGES: f64 = 110.0;

/// Half width of the interval of a ratio, as a share.
const PRECISE: f64 = 0.05;

/// Start and end of a trial, seconds; hosts of its own, many connections.
const OVERHEAD_S: f64 = 1.2;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_are_added_until_the_ratios_are_precise() {
        let of = |a: &[f64], b: &[f64]| {
            json!({ "rounds": 1, "options": [
                { "name": "a", "values": a }, { "name": "b", "values": b }] })
        };
        let one = of(&[1.0, 1.2, 1.1], &[2.0, 2.0, 2.0]);
        assert!(!is_precise(&one), "9 % of scatter in three repetitions");
        let steady = of(&[1.0, 1.01, 0.99], &[2.0, 2.0, 2.0]);
        assert!(is_precise(&steady));
        let two = added(one, &steady);
        assert_eq!((&two["rounds"], values(&two["options"][0]["values"]).len()), (&json!(2), 6));
        assert!(!is_precise(&json!({ "options": [] })));
        assert!(!is_precise(&of(&[1.0], &[2.0])), "one repetition has no interval");
    }

    #[test]
    fn a_plan_has_the_repetitions_of_a_round_and_a_duration() {
        let frozen = "question = \"?\"\nrepeat = { at_least = 5, at_most = 5 }\n\
                      load.duration = \"3s\"\n\n[[case]]\n\n[[case]]\n";
        let found = plan(&json!({ "plan": frozen }), 3).expect("a plan");
        assert!(found.contains("repeat = { at_least = 3, at_most = 3 }"), "{found}");
        let trials = 2.0 * 3.0;
        let lasts_s = estimate(&found).as_secs_f64();
        assert!((lasts_s - trials * (3.0 + OVERHEAD_S)).abs() < 1e-6, "{lasts_s}");
    }

    #[test]
    fn a_p99_has_enough_messages_and_no_sessions() {
        let frozen = "repeat = { at_least = 5, at_most = 5 }\nload.duration = \"10s\"\n\n\
                      [[case]]\nload.pattern = \"session\"\nload.rate = \"2/s\"\n\n\
                      [[case]]\nload.pattern = \"publish\"\nload.rate = \"2/s\"\n";
        let asked = |criterion: &str| {
            plan(&json!({ "plan": frozen, "criterion": criterion }), 3).expect("a plan")
        };
        let found = asked("latency");
        assert!(found.contains("load.duration = \"55s\"\n"), "{found}");
        assert!(!found.contains("session") && found.contains("publish"), "{found}");
        assert!(asked("server-cpu").contains("session"));
    }
}
