//! Draws the situations: a Halton sequence with a random rotation (R. Cranley and T. Patterson,
//! 1976) over logarithms of devices, interval and size, and the guarantee. Those on a break-even
//! are put where the advice itself says that the costs of two options cross.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, ensure};
use serde_json::Value;
use weigh_advice::Criterion;
use weigh_advice::situation::{Situation, TlsWish};
use weigh_model::Nanos;
use weigh_model::protocol::Guarantee;

use super::cells::CELLS;
use super::situations::{SEED, Sends, edges, inside, outside, situation, users};

/// Writes `NN.toml`; refuses if they are there.
pub(crate) fn draw(folder: &Path, weigh: &Path) -> anyhow::Result<()> {
    fs::create_dir_all(folder)?;
    ensure!(!folder.join("01.toml").exists(), "the situations are drawn already");
    let mut all = inside();
    all.extend(edges());
    all.extend(break_evens(folder, weigh)?);
    all.extend(outside());
    all.extend(users());
    for (at, own) in all.iter().enumerate() {
        fs::write(folder.join(format!("{:02}.toml", at + 1)), text(own))?;
    }
    println!("{}: {} situations from the seed {SEED}", folder.display(), all.len());
    Ok(())
}

/// A situation as its file has it. The first line says what kind it is.
pub(crate) fn text(own: &Situation) -> String {
    let schema = "#:schema ../../schemas/situation.schema.json";
    format!("# {}\n{schema}\n{}", own.name, own.to_toml())
}

/// Where a search for a break-even starts, and what is changed until two options cost the same.
struct Start {
    matters: Criterion,
    sends: Sends,
    tls: TlsWish,
    guarantee: Guarantee,
    axis: &'static str,
}

impl Start {
    fn situation(&self) -> Situation {
        let mut own = situation("break-even", self.matters, self.sends, self.tls);
        own.needs.guarantee = self.guarantee;
        own
    }

    /// The situation at this value of the axis; `None` where no trial of seconds could measure it.
    fn at(&self, value: f64) -> Option<Situation> {
        let mut own = self.situation();
        match self.axis {
            "every" => {
                own.traffic.every = Nanos::from_millis((value * 1e3).round() as u64);
                (50.0..=9_000.0).contains(&own.rate_per_s()).then_some(own)
            }
            _ => {
                let between_s = value * own.traffic.every.as_secs_f64();
                own.network.reconnect = Some(Nanos::from_millis((between_s * 1e3).round() as u64));
                (1.05..=1_000.0).contains(&value).then_some(own)
            }
        }
    }
}

/// Starts in the order in which they are tried. Bytes against messages on a connection, and the
/// server's processor against the rate: both are continuous.
fn starts() -> Vec<Start> {
    let of = |matters, sends, tls, guarantee, axis| Start { matters, sends, tls, guarantee, axis };
    let (on, off) = (TlsWish::On, TlsWish::Off);
    let (least, most) = (Guarantee::AtLeastOnce, Guarantee::AtMostOnce);
    let (cpu, bytes) = (Criterion::ServerCpu, Criterion::Bytes);
    let messages = "messages-per-connection";
    let many = [5_000.0, 1.0, 72.0];
    vec![
        of(cpu, many, off, least, "every"),
        of(cpu, many, on, least, "every"),
        of(bytes, [500.0, 10.0, 72.0], off, least, messages),
        of(bytes, [500.0, 10.0, 72.0], on, least, messages),
        of(bytes, [500.0, 10.0, 300.0], off, most, messages),
        of(bytes, [500.0, 10.0, 300.0], on, most, messages),
        of(cpu, [1_000.0, 1.0, 1_024.0], off, least, "every"),
        of(bytes, [500.0, 10.0, 1_000.0], off, least, messages),
        of(bytes, [500.0, 10.0, 1_000.0], on, least, messages),
    ]
}

/// Five at crossings of two cost curves that the advice finds, each advised as too close to call.
fn break_evens(folder: &Path, weigh: &Path) -> anyhow::Result<Vec<Situation>> {
    let mut found = Vec::new();
    for start in starts() {
        found.extend(break_even(folder, weigh, &start)?);
    }
    ensure!(found.len() >= BREAK_EVENS, "only {} crossings: add starts", found.len());
    found.truncate(BREAK_EVENS);
    Ok(found)
}

fn break_even(folder: &Path, weigh: &Path, start: &Start) -> anyhow::Result<Option<Situation>> {
    let cells = folder.join(CELLS);
    let advice = advise_of(weigh, &start.situation(), &cells)?;
    let all = advice["break_even"].as_array().context("break-even values")?;
    let is_crossing = |own: &&Value| {
        own["axis"] == start.axis
            && own["criterion"] == start.matters.name()
            && own["is_jump"] == false
    };
    for own in all.iter().filter(is_crossing) {
        let Some(at) = own["at"].as_f64().and_then(|at| start.at(at)) else { continue };
        let then = advise_of(weigh, &at, &cells)?;
        let names = [&own["a"], &own["b"]].map(|name| name.as_str().unwrap_or_default());
        let is_named = |name: &&str| {
            let advised = then["advised"].as_array().into_iter().flatten();
            advised.filter_map(Value::as_str).any(|own| own == *name || is_kept(own, name))
        };
        if names.iter().all(is_named) {
            println!("break-even: {}", own["sentence"].as_str().unwrap_or_default());
            return Ok(Some(at));
        }
    }
    Ok(None)
}

/// True if the option is this lane on kept connections.
fn is_kept(option: &str, lane: &str) -> bool {
    option.strip_prefix(lane).is_some_and(|rest| rest.starts_with(", kept"))
}

fn advise_of(weigh: &Path, situation: &Situation, cells: &Path) -> anyhow::Result<Value> {
    let file = std::env::temp_dir().join(format!("weigh-start-{}.toml", std::process::id()));
    fs::write(&file, text(situation))?;
    let advice = advise(weigh, &file, cells);
    fs::remove_file(&file)?;
    advice
}

/// The advice for a situation from these cells.
pub(crate) fn advise(weigh: &Path, file: &Path, cells: &Path) -> anyhow::Result<Value> {
    let mut command = Command::new(weigh);
    command.arg("advise").arg(file).arg("--json").arg("--cells").arg(cells);
    let output = command.output().with_context(|| format!("{}", weigh.display()))?;
    let text = String::from_utf8_lossy(&output.stdout);
    serde_json::from_str(&text)
        .with_context(|| format!("{}: {}", file.display(), String::from_utf8_lossy(&output.stderr)))
}

/// Situations on a break-even.
const BREAK_EVENS: usize = 5;

#[cfg(test)]
mod tests {
    use super::*;

    /// What is committed is what the seed gives; break-even values come from the advice.
    #[test]
    fn the_committed_situations_are_those_of_the_seed() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(super::super::FOLDER);
        let kept = |number: usize| {
            fs::read_to_string(folder.join(format!("{number:02}.toml"))).expect("a situation")
        };
        let all = [(1, inside()), (11, edges()), (24, outside()), (28, users())];
        for (from, situations) in all {
            for (at, expected) in situations.iter().enumerate() {
                assert_eq!(kept(from + at), text(expected), "{}", from + at);
            }
        }
        for number in 19..=23 {
            let own = Situation::read("it", &kept(number)).expect("a situation");
            assert_eq!(own.name, "break-even");
        }
        assert!(!folder.join("31.toml").exists());
    }

    #[test]
    fn a_lane_is_its_kept_option() {
        assert!(is_kept("mqtt qos 1, kept, TLS", "mqtt qos 1"));
        assert!(!is_kept("mqtt qos 1, one each", "mqtt qos 1"));
        assert!(!is_kept("mqtt qos 1, kept", "mqtt qos"));
    }
}
