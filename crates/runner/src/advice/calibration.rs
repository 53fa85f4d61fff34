//! The calibration: small trials of the options of a situation, in at most three minutes, whose
//! cells are kept in the user's cache for this machine and version.

use std::path::PathBuf;

use weigh_advice::Choice;
use weigh_advice::cells::{Cells, Machine};
use weigh_advice::choice::REFERENCE;
use weigh_model::numbers::percent;
use weigh_testbed::cache;

use super::observed;
use crate::exit::{Exit, Stop};
use crate::input_file::{self, CONTENT_BYTES_MAX};
use crate::runner::Runner;

/// A family that a calibration measures: protocol and server with its lanes.
#[derive(Clone, Debug, PartialEq)]
pub struct Wanted {
    /// Protocol.
    pub protocol: String,
    /// Server.
    pub target: String,
    /// Settings of its lanes, as lines of a plan: `mqtt.qos = 1`.
    pub lanes: Vec<Vec<String>>,
    /// Whether cells inside TLS are needed, and without.
    pub tls: [bool; 2],
    /// Over datagrams nothing is opened.
    pub is_datagram: bool,
    /// True if deliveries to subscribers are needed.
    pub delivers: bool,
}

/// The families of these options.
pub fn wanted<'c>(choices: impl IntoIterator<Item = &'c Choice>, delivers: bool) -> Vec<Wanted> {
    let mut all: Vec<Wanted> = Vec::new();
    for choice in choices {
        let lane: Vec<String> = choice
            .settings
            .iter()
            .map(|(key, value)| {
                let is_bare = value.parse::<i64>().is_ok() || value == "true" || value == "false";
                let value = if is_bare { value.clone() } else { format!("{value:?}") };
                format!("{}.{key} = {value}", choice.protocol)
            })
            .collect();
        let is_own =
            |own: &&mut Wanted| own.protocol == choice.protocol && own.target == choice.target;
        let place = match all.iter_mut().find(is_own) {
            Some(own) => own,
            None => {
                all.push(Wanted {
                    protocol: choice.protocol.clone(),
                    target: choice.target.clone(),
                    lanes: Vec::new(),
                    tls: [false; 2],
                    is_datagram: choice.is_datagram,
                    delivers: delivers && choice.delivers,
                });
                all.last_mut().expect("it was added")
            }
        };
        place.tls[usize::from(choice.is_tls)] = true;
        if !place.lanes.contains(&lane) {
            place.lanes.push(lane);
        }
    }
    all
}

/// The plan of a calibration, in TOML, with its number of trials.
pub fn plan(wanted: &[Wanted]) -> (String, usize) {
    let mut text = "\
        question = \"What do the options of an advice cost here?\"\n\
        repeat = { at_least = 1, at_most = 1 }\n\
        load.arrival = \"periodic\"\nload.duration = \"900ms\"\nload.warmup = \"200ms\"\n"
        .to_owned();
    let mut trials = 0;
    for family in wanted {
        for cell in cells(family) {
            trials += 1;
            text += &cell;
        }
    }
    (text, trials)
}

/// The cells of a family: idle connections, low rates and high ones, few connections and many,
/// small bodies and large, a connection for each message; each inside TLS and without, as it is
/// needed.
fn cells(family: &Wanted) -> Vec<String> {
    let mut found = Vec::new();
    for (is_tls, _) in [(false, 0), (true, 1)].into_iter().filter(|(_, at)| family.tls[*at]) {
        if !family.is_datagram {
            found.push(case(family, &[], is_tls, "hold", &idle(200)));
            found.push(case(family, &[], is_tls, "hold", &idle(3_000)));
        }
        for (at, lane) in family.lanes.iter().enumerate() {
            let mut add = |pattern, load: &[String]| {
                found.push(case(family, lane, is_tls, pattern, load));
            };
            add("publish", &load(100, "400/s", "64B"));
            add("publish", &load(20, "4000/s", "64B"));
            if at > 0 {
                continue;
            }
            add("publish", &load(1_000, "2000/s", "64B"));
            add("publish", &load(20, "1500/s", "64B"));
            add("publish", &load(20, "12000/s", "64B"));
            add("publish", &load(20, "2500/s", "1KiB"));
            add("publish", &load(20, "1500/s", "8KiB"));
            if !family.is_datagram {
                add("session", &load(50, "100/s", "64B"));
                add("session", &load(50, "250/s", "64B"));
                add("session", &load(50, "500/s", "64B"));
            }
            if family.delivers {
                let subscribers = "load.subscribers = 20".to_owned();
                add("deliver", &[load(10, "100/s", "64B"), vec![subscribers.clone()]].concat());
                add("deliver", &[load(10, "400/s", "64B"), vec![subscribers]].concat());
            }
        }
    }
    found
}

fn idle(connections: u32) -> Vec<String> {
    vec![format!("load.connections = {connections}"), "load.arrival = \"closed\"".to_owned()]
}

fn load(connections: u32, rate: &str, size: &str) -> Vec<String> {
    vec![
        format!("load.connections = {connections}"),
        format!("load.rate = \"{rate}\""),
        format!("load.size = \"{size}\""),
    ]
}

fn case(family: &Wanted, lane: &[String], is_tls: bool, pattern: &str, load: &[String]) -> String {
    let protocol = &family.protocol;
    let mut text = format!("\n[[case]]\nprotocol = \"{protocol}\"\n");
    if family.target != REFERENCE {
        text += &format!("target = \"{}\"\n", family.target);
    }
    for line in lane {
        text += &format!("{line}\n");
    }
    if is_tls {
        text += &format!("{protocol}.tls = \"on\"\n{protocol}.tls_resume = false\n");
    }
    text += &format!("load.pattern = \"{pattern}\"\n");
    for line in load {
        text += &format!("{line}\n");
    }
    text
}

/// Measures these families, and returns their cells.
///
/// # Errors
/// A plan that this machine cannot run, a run that was interrupted, and a machine that is too
/// noisy: too few trials were valid.
pub fn calibrate(runner: &Runner<'_>, wanted: &[Wanted]) -> Result<Cells, Stop> {
    let (plan, trials) = plan(wanted);
    if trials > TRIALS_MAX {
        return Err(Stop::usage(format!(
            "a calibration of {trials} trials takes more than 3 minutes\nhelp: name fewer \
             protocols and targets, or type --tls on or --tls off"
        )));
    }
    let finished = runner.run("calibration", &plan)?;
    if let Some(exit) = finished.interrupted {
        return Err(Stop::new(exit, "the calibration was interrupted; nothing is kept of it"));
    }
    let source = format!("calibration, run {}", finished.summary.run.id);
    let (cells, left_out) = observed::cells(&finished.summary, &source);
    judge(&cells, trials, &left_out)?;
    Ok(cells)
}

/// Refuses a calibration of which too much is missing.
///
/// # Errors
/// With less than this share of the trials.
pub fn judge(cells: &Cells, trials: usize, left_out: &[String]) -> Result<(), Stop> {
    let share = cells.cells.len() as f64 / trials.max(1) as f64;
    if share >= VALID_MIN {
        return Ok(());
    }
    let first = left_out.first().map_or(String::new(), |first| format!("; the first: {first}"));
    Err(Stop::new(
        Exit::Undecided,
        format!(
            "this machine is too noisy to calibrate: {} of the trials are valid, and {} are \
             needed{first}\nhelp: stop other programs and repeat, or use --cells FILE",
            percent(100.0 * share),
            percent(100.0 * VALID_MIN)
        ),
    ))
}

/// The file in the user's cache for cells of this machine and version; `None` for a user without a
/// home.
pub fn cache_file(here: &Machine, version: &str) -> Option<PathBuf> {
    let words = format!("{} {} {} {version}", here.architecture, here.cpu, here.cores);
    let clean = |c: char| if c.is_ascii_alphanumeric() || c == '.' { c } else { '-' };
    let name: String = words.chars().map(clean).collect();
    Some(cache::folder()?.join("cells").join(format!("{name}.json")))
}

/// Cells of the cache, if there are any.
///
/// # Errors
/// A file that is there and is not a file of cells.
pub fn cached(here: &Machine, version: &str) -> Result<Option<Cells>, Stop> {
    let Some(file) = cache_file(here, version).filter(|file| file.exists()) else {
        return Ok(None);
    };
    read(&file).map(Some)
}

/// Reads a file of cells.
///
/// # Errors
/// A file that cannot be read, or is not a file of cells.
pub fn read(file: &std::path::Path) -> Result<Cells, Stop> {
    let name = file.display().to_string();
    let text = input_file::text(file, CONTENT_BYTES_MAX).map_err(|error| {
        Stop::usage(format!("{name}: cannot be read: {error}\nhelp: check the path"))
    })?;
    Cells::read(&name, &text).map_err(Stop::usage)
}

/// Keeps cells in the cache: those of families that are measured again replace the older ones.
///
/// # Errors
/// A cache that cannot be written.
pub fn keep(cells: &Cells, here: &Machine, version: &str) -> Result<(), Stop> {
    let Some(file) = cache_file(here, version) else { return Ok(()) };
    let mut all = cells.clone();
    if let Ok(Some(before)) = cached(here, version) {
        let is_again = |own: &weigh_advice::cells::Cell| {
            cells.cells.iter().any(|new| new.protocol == own.protocol && new.target == own.target)
        };
        all.cells.extend(before.cells.into_iter().filter(|own| !is_again(own)));
    }
    let written = || -> std::io::Result<()> {
        let folder = file.parent().expect("it is below the cache");
        std::fs::create_dir_all(folder)?;
        let beside = folder.join(format!("new-{}", std::process::id()));
        std::fs::write(&beside, all.to_json())?;
        std::fs::rename(&beside, &file)
    };
    written().map_err(|error| {
        Stop::new(Exit::Record, format!("{}: cannot be written: {error}", file.display()))
    })
}

/// Trials of 1.6 s that fit into three minutes.
const TRIALS_MAX: usize = 110;

/// Share of the trials of a calibration that must be valid.
const VALID_MIN: f64 = 0.8;
