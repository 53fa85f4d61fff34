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
    /// True if connections for one message each are needed.
    pub opens: bool,
    /// True if deliveries to subscribers are needed.
    pub delivers: bool,
}

impl Wanted {
    /// True for a server that is given by URL.
    pub fn is_foreign(&self) -> bool {
        self.target.contains("://")
    }

    /// Without TLS, and inside it.
    fn ways(&self) -> impl Iterator<Item = bool> + use<> {
        let wanted = self.tls;
        [false, true].into_iter().filter(move |is_tls| wanted[usize::from(*is_tls)])
    }
}

/// The families of these options.
pub fn wanted<'c>(choices: impl IntoIterator<Item = &'c Choice>, delivers: bool) -> Vec<Wanted> {
    let mut all: Vec<Wanted> = Vec::new();
    for choice in choices {
        let lane = choice.plan_lines();
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
                    opens: false,
                    delivers: delivers && choice.delivers,
                });
                all.last_mut().expect("it was added")
            }
        };
        place.tls[usize::from(choice.is_tls)] = true;
        // What TLS costs is told from the rest only beside the same without it.
        place.tls[0] |= !place.is_foreign();
        place.opens |= !choice.is_kept && !choice.is_datagram;
        if !place.lanes.contains(&lane) {
            place.lanes.push(lane);
        }
    }
    all
}

/// How much a calibration may ask of the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// Tens of thousands of connections to built-in servers.
    Whole,
    /// At most 3,000 connections: for machines without the ports or descriptors for more.
    Few,
}

/// The plan of a calibration, in TOML, with its number of trials. The fewer there are, the longer
/// each is.
pub fn plan(wanted: &[Wanted], extent: Extent) -> (String, usize) {
    let all: Vec<String> = wanted.iter().flat_map(|family| cells(family, extent)).collect();
    let opening_s: f64 = wanted.iter().map(|family| opening_s(family, extent)).sum();
    let each_s = (LIMIT_S - opening_s) / all.len().max(1) as f64 - OVERHEAD_S - WARMUP_S;
    // In steps of 100 ms.
    let tenths = (each_s * 10.0).floor().clamp(SHORTEST_TENTHS, LONGEST_TENTHS);
    let mut text = format!(
        "question = \"What do the options of an advice cost here?\"\n\
         repeat = {{ at_least = 1, at_most = 1 }}\n\
         load.arrival = \"periodic\"\nload.duration = \"{}ms\"\nload.warmup = \"{}ms\"\n",
        tenths * 100.0,
        WARMUP_S * 1e3
    );
    text.extend(all.iter().map(String::as_str));
    (text, all.len())
}

/// The cells of a family: idle connections, low rates and high ones, few connections and many,
/// small bodies and large, a connection for each message; each inside TLS and without, as it is
/// needed. All lanes have the same loads with small bodies.
fn cells(family: &Wanted, extent: Extent) -> Vec<String> {
    if family.is_foreign() {
        return foreign_cells(family);
    }
    let mut found = Vec::new();
    // Of several lanes the second has the guarantee that is usual.
    let main = family.lanes.len().min(2) - 1;
    for is_tls in family.ways() {
        if !family.is_datagram {
            found.push(case(family, &[], is_tls, "hold", &idle(200)));
            found.push(case(family, &[], is_tls, "hold", &idle(3_000)));
        }
        for (at, lane) in family.lanes.iter().enumerate() {
            let mut add = |pattern, load: &[String]| {
                found.push(case(family, lane, is_tls, pattern, load));
            };
            add("publish", &load(100, "100/s", "64B"));
            add("publish", &load(100, "400/s", "64B"));
            add("publish", &load(20, "4000/s", "64B"));
            add("publish", &load(50, "10000/s", "64B"));
            add("publish", &load(1_000, "2000/s", "64B"));
            if let Some(many) = many(family, is_tls, extent).filter(|_| !is_tls || at == main) {
                add("publish", &load(many, "1000/s", "64B"));
            }
            if family.opens {
                add("session", &load(50, "100/s", "64B"));
                add("session", &load(50, "400/s", "64B"));
            }
            if at != main {
                continue;
            }
            add("publish", &load(20, "2500/s", "1KiB"));
            add("publish", &load(20, "1500/s", "8KiB"));
            if family.delivers {
                let subscribers = "load.subscribers = 20".to_owned();
                add("deliver", &[load(10, "100/s", "64B"), vec![subscribers.clone()]].concat());
                add("deliver", &[load(10, "400/s", "64B"), vec![subscribers]].concat());
            }
        }
    }
    found
}

/// The cells of a server that another process started: at most 2,000 messages/s and 500
/// connections, because others may depend on it.
fn foreign_cells(family: &Wanted) -> Vec<String> {
    let mut found = Vec::new();
    let main = family.lanes.len().min(2) - 1;
    for is_tls in family.ways() {
        if !family.is_datagram {
            found.push(case(family, &[], is_tls, "hold", &idle(50)));
            found.push(case(family, &[], is_tls, "hold", &idle(500)));
        }
        for (at, lane) in family.lanes.iter().enumerate() {
            let mut add = |pattern, load: &[String]| {
                found.push(case(family, lane, is_tls, pattern, load));
            };
            add("publish", &load(50, "50/s", "64B"));
            add("publish", &load(50, "200/s", "64B"));
            add("publish", &load(20, "1000/s", "64B"));
            add("publish", &load(20, "2000/s", "64B"));
            if at == main {
                add("publish", &load(20, "500/s", "1KiB"));
                add("publish", &load(500, "500/s", "64B"));
            }
            if family.opens {
                add("session", &load(20, "20/s", "64B"));
                add("session", &load(20, "100/s", "64B"));
            }
        }
    }
    found
}

/// Many connections of one trial; `None` where they are not asked of the server.
fn many(family: &Wanted, is_tls: bool, extent: Extent) -> Option<u32> {
    let is_built_in = family.target == REFERENCE && !family.is_datagram;
    match (is_built_in && extent == Extent::Whole, is_tls) {
        (false, _) => None,
        (true, false) => Some(60_000),
        (true, true) => Some(10_000),
    }
}

/// Seconds that the trials with many connections take besides: 30,000 connections are opened in a
/// second, or 1,700 handshakes.
fn opening_s(family: &Wanted, extent: Extent) -> f64 {
    let of = |is_tls| match (many(family, is_tls, extent), is_tls) {
        (None, _) => 0.0,
        (Some(many), false) => family.lanes.len() as f64 * f64::from(many) / 3e4,
        (Some(many), true) => f64::from(many) / 1.7e3,
    };
    family.ways().map(of).sum()
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
        text += &format!("{protocol}.tls = \"on\"\n");
        // DTLS does not resume.
        if !family.is_datagram {
            text += &format!("{protocol}.tls_resume = false\n");
        }
    }
    text += &format!("load.pattern = \"{pattern}\"\n");
    for line in load {
        text += &format!("{line}\n");
    }
    text
}

/// Measures these families, and returns their cells. `lookouts` say where the processor time of
/// servers given by URL is seen: `mqtt://HOST:PORT=port:PORT`.
///
/// # Errors
/// A plan that this machine cannot run, a run that was interrupted, and a machine that is too
/// noisy: too few trials were valid.
pub fn calibrate(
    runner: &Runner<'_>,
    wanted: &[Wanted],
    lookouts: &[String],
) -> Result<Cells, Stop> {
    let (whole, trials) = watched(plan(wanted, Extent::Whole), lookouts);
    if trials > TRIALS_MAX {
        return Err(Stop::usage(format!(
            "a calibration of {trials} trials takes more than 3 minutes\nhelp: name fewer \
             protocols and targets, or type --tls on or --tls off"
        )));
    }
    let (plan_read, secrets) = runner.read("calibration", &whole)?;
    let begun = runner.check(plan_read, &secrets);
    let (finished, trials) = match begun.and_then(|checked| runner.begin(checked, &secrets)) {
        Ok(experiment) => (experiment.run()?, trials),
        Err(why) => {
            let (few, trials) = watched(plan(wanted, Extent::Few), lookouts);
            if few == whole {
                return Err(why);
            }
            runner.watcher().say(&format!("{why}: calibrating with at most 3,000 connections"));
            (runner.run("calibration", &few)?, trials)
        }
    };
    if let Some(exit) = finished.interrupted {
        return Err(Stop::new(exit, "the calibration was interrupted; nothing is kept of it"));
    }
    let source = format!("calibration, run {}", finished.summary.run.id);
    let (cells, left_out) = observed::cells(&finished.summary, &source);
    judge(&cells, trials, &left_out)?;
    Ok(cells)
}

/// The plan with what is to be observed.
fn watched((plan, trials): (String, usize), lookouts: &[String]) -> (String, usize) {
    (observing(lookouts) + &plan, trials)
}

/// The line of a plan that says what is observed; empty without anything.
pub fn observing(lookouts: &[String]) -> String {
    match lookouts {
        [] => String::new(),
        all => format!("observe.target = {all:?}\n"),
    }
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

/// Keeps cells in the cache: those of families that are measured again replace the older ones. A
/// server given by URL may be another one tomorrow, so its cells are not kept.
///
/// # Errors
/// A cache that cannot be written.
pub fn keep(cells: &Cells, here: &Machine, version: &str) -> Result<(), Stop> {
    let Some(file) = cache_file(here, version) else { return Ok(()) };
    let mut all = cells.clone();
    all.cells.retain(|cell| !cell.target.contains("://"));
    if all.cells.is_empty() {
        return Ok(());
    }
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

/// A little less than three minutes.
const LIMIT_S: f64 = 177.0;

/// Start and end of a trial, seconds.
const OVERHEAD_S: f64 = 0.5;

const WARMUP_S: f64 = 0.2;

/// Shorter trials are not precise, and longer ones hardly more.
const SHORTEST_TENTHS: f64 = 7.0;

const LONGEST_TENTHS: f64 = 20.0;

/// Trials of the shortest duration that fit into three minutes.
const TRIALS_MAX: usize = 110;

/// Share of the trials of a calibration that must be valid.
const VALID_MIN: f64 = 0.8;

#[cfg(test)]
mod tests {
    use super::*;

    fn family(protocol: &str, target: &str, lanes: &[&str]) -> Wanted {
        Wanted {
            protocol: protocol.to_owned(),
            target: target.to_owned(),
            lanes: lanes
                .iter()
                .map(|lane| lane.split_whitespace().map(str::to_owned).collect())
                .collect(),
            tls: [true, true],
            is_datagram: false,
            opens: true,
            delivers: false,
        }
    }

    fn both() -> [Wanted; 2] {
        let mqtt = family("mqtt", REFERENCE, &["mqtt.qos=0", "mqtt.qos=1", "mqtt.qos=2"]);
        [mqtt, family("http1", REFERENCE, &[""])]
    }

    /// The time of all trials is at most three minutes, and is used.
    #[test]
    fn a_calibration_takes_at_most_three_minutes() {
        for (wanted, least) in [(&both()[..], 150.0), (&both()[..1], 120.0)] {
            let (text, trials) = plan(wanted, Extent::Whole);
            assert_eq!(text.matches("[[case]]").count(), trials);
            let duration = text.lines().find_map(|line| line.strip_prefix("load.duration = \""));
            let ms: f64 = duration.unwrap().trim_end_matches("ms\"").parse().unwrap();
            let opening: f64 = wanted.iter().map(|own| opening_s(own, Extent::Whole)).sum();
            let all = opening + trials as f64 * (ms / 1e3 + WARMUP_S + OVERHEAD_S);
            assert!((least..=180.0).contains(&all), "{trials} trials of {ms} ms: {all} s");
        }
    }

    /// The cells that the back-test's predictions rest on are those of this very plan.
    #[test]
    fn the_committed_cells_are_those_of_the_plan() {
        let (text, trials) = plan(&both(), Extent::Whole);
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../advice/backtest/cells.json");
        let read = std::fs::read_to_string(file).expect("the cells of the back-test");
        let cells = Cells::read("cells.json", &read).expect("cells");
        assert_eq!((cells.cells.len(), trials), (78, 78));
        // In the order of the plan. A short trial sends its rate to within a tenth.
        for (cell, case) in cells.cells.iter().zip(text.split("[[case]]").skip(1)) {
            let of = |key: &str| {
                let line = case.lines().find_map(|line| line.strip_prefix(key));
                line.map(|line| line.trim_start_matches([' ', '=']).trim_matches('"').to_owned())
            };
            let named = format!("{} is not\n{case}", cell.name());
            assert_eq!(of("protocol"), Some(cell.protocol.clone()), "{named}");
            assert_eq!(cell.is_tls, case.contains(".tls = \"on\""), "{named}");
            let pattern = of("load.pattern").expect("a pattern");
            assert_eq!(cell.is_per_connection, pattern == "session", "{named}");
            if !cell.is_per_connection {
                let connections = cell.connections.to_string();
                assert_eq!(of("load.connections"), Some(connections), "{named}");
            }
            let rate = of("load.rate")
                .map_or(0.0, |rate| rate.trim_end_matches("/s").parse::<f64>().expect("a rate"));
            assert!((cell.rate_per_s() - rate).abs() <= 0.1 * rate, "{rate}: {named}");
            if pattern != "hold" {
                let size = of("load.size").expect("a size");
                let size = weigh_model::units::parse_size(&size).expect("bytes") as f64;
                assert_eq!(cell.size_bytes, size, "{named}");
                let lane = of(&format!("{}.qos", cell.protocol)).map(|qos| format!("qos={qos}"));
                assert_eq!(cell.variant, lane.unwrap_or_default(), "{named}");
            }
        }
    }

    /// Lanes are compared, so none is measured at other loads than the others.
    #[test]
    fn every_lane_has_the_same_small_loads() {
        let (text, _) = plan(&both(), Extent::Few);
        for rate in ["100/s", "400/s", "4000/s", "10000/s", "2000/s"] {
            let cases = text.split("[[case]]");
            let found = cases.filter(|own| {
                own.contains(&format!("rate = \"{rate}\"")) && own.contains("publish")
            });
            assert_eq!(found.count(), 8, "{rate}: four lanes, inside TLS and without");
        }
        assert!(!text.contains("60000"), "few connections");
    }

    /// A server of another process gets a bounded load.
    #[test]
    fn a_server_given_by_url_gets_at_most_2000_messages_a_second() {
        let mut own = family("mqtt", "mqtt://broker:1883", &["mqtt.qos=0", "mqtt.qos=1"]);
        own.tls = [true, false];
        let (text, trials) = watched(plan(&[own], Extent::Whole), &["port:1883".to_owned()]);
        assert!(text.starts_with("observe.target = [\"port:1883\"]\n"), "{text}");
        let number = |line: &str, key: &str| -> Option<f64> {
            let value = line.strip_prefix(key)?.trim_matches([' ', '=', '"']);
            value.trim_end_matches("/s").parse().ok()
        };
        let most =
            |key: &str| text.lines().filter_map(|line| number(line, key)).fold(0.0, f64::max);
        assert_eq!((most("load.rate"), most("load.connections")), (2_000.0, 500.0));
        assert!(trials < 20 && !text.contains("10000/s"));
    }
}
