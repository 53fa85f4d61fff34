//! Tests whether the generator causes a plateau: a load beyond the limit, from one additional
//! process and from two of them, in turn. If two achieve more, one was the limit.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use weigh_limit::{Answer, AxisKind};
use weigh_model::counters::SysChoice;
use weigh_model::event::SecondGenerator;
use weigh_model::plan::{Observe, Plan, Repeat, TargetLife};
use weigh_model::{Endpoint, Load, Nanos};
use weigh_plan::matrix;
use weigh_report::Summary;
use weigh_testbed::pinning::{CoreSet, Pinning};

use crate::case::Case;
use crate::case::lanes::Against;
use crate::case::server_settings;
use crate::exit::{Exit, Stop};
use crate::search::axis_load;
use crate::targets::hosts::Stage;
use crate::targets::pool::Targets;
use crate::trial::trial_runner::TrialRunner;

/// Runs the test for the lane with this answer. `None` if a signal ended it, or if no load exceeded
/// the target's limit.
///
/// # Errors
/// A run folder that cannot be written.
pub fn ask(
    scales: &TrialRunner<'_>,
    case: &Case,
    answer: &Answer,
) -> Result<Option<SecondGenerator>, Stop> {
    let Some(load) = beyond(answer) else { return Ok(None) };
    let folder = scales.folder.path().join("second-generator");
    let secret = case.lane.given.iter().find(|(key, value)| {
        matches!(case.lane.against, Against::Foreign(_)) && server_settings::is_secret(key, value)
    });
    std::fs::create_dir_all(&folder).map_err(|error| Stop::unwritten(&folder, &error))?;
    let sets = core_sets(scales)?;
    let mut found = SecondGenerator {
        lane: case.point.clone(),
        load,
        shares_core: sets[0] == sets[1],
        ..SecondGenerator::default()
    };
    if let Some((key, _)) = secret {
        // The plan for a second process would put the secret on the disk.
        found.error = Some(format!("{key} is secret and is not passed to a second generator"));
        return Ok(Some(found));
    }
    for run in 0..RUNS {
        for count in [1, 2] {
            if !scales.experiment.is_quiet {
                let generators = ["one generator", "two generators"][count - 1];
                let unit = answer.axis.unit();
                scales.display.say(&format!("{}: {generators}, {load}{unit}", case.title()));
            }
            let files = folder.join(format!("{run}-{count}"));
            let load = axis_load::at(answer.axis, &case.load, load, DURATION);
            let together = Together { scales, case, load: &load, sets: &sets, folder: &files };
            match together.run(count, run) {
                Ok(Some(outs)) => note(&mut found, &outs),
                Ok(None) => return Ok(None),
                Err(stop) if stop.exit() == Exit::Record => return Err(stop),
                Err(stop) => {
                    found.error = Some(stop.to_string());
                    return Ok(Some(found));
                }
            }
        }
    }
    let _ = std::fs::remove_dir_all(&folder);
    Ok(Some(found))
}

/// A load beyond the limit: 1.5 times the lowest rate that missed a goal; for an axis of
/// connections, the same factor in a closed loop.
fn beyond(answer: &Answer) -> Option<f64> {
    let missed = answer.goals.iter().filter_map(|goal| goal.upper.map(|bound| bound.load));
    let most = answer.trials.iter().map(|record| record.request.load).reduce(f64::max);
    let is_invalid = matches!(answer.stop, weigh_limit::Stop::Invalid(_));
    let load = missed.reduce(f64::max).or(most.filter(|_| is_invalid))?;
    Some(match answer.axis {
        AxisKind::Rate => (load * BEYOND).round(),
        _ => load.max(2.0),
    })
}

/// Cores of the first and the second generator: not the target's, and separate ones if possible.
/// Otherwise the second one shares those of the first.
fn core_sets(scales: &TrialRunner<'_>) -> Result<[CoreSet; 2], Stop> {
    let allowed = CoreSet::allowed()?;
    let Pinning { target, generator, .. } = &scales.experiment.pinning;
    let others = |own: &CoreSet| -> Vec<usize> {
        let is_other = |core: &&usize| !own.cores().contains(core);
        allowed.cores().iter().filter(is_other).copied().collect()
    };
    let is_free = |core: &usize| !target.cores().contains(core);
    let rest: Vec<usize> = others(generator).into_iter().filter(is_free).collect();
    let with_target = |cores: &[usize]| CoreSet::of(target.cores().iter().chain(cores).copied());
    let first = with_target(generator.cores());
    let second = if rest.is_empty() { first.clone() } else { with_target(&rest) };
    Ok([first, second])
}

/// Several generators on one target.
struct Together<'t> {
    scales: &'t TrialRunner<'t>,
    case: &'t Case,
    /// Their total load.
    load: &'t Load,
    sets: &'t [CoreSet; 2],
    folder: &'t Path,
}

/// Results of a generator: messages per second, and its share of a core.
struct Out {
    per_s: f64,
    cpu_percent: Option<f64>,
}

impl Together<'_> {
    /// Runs `count` generators; `None` if a signal came.
    fn run(&self, count: usize, run: u64) -> Result<Option<Vec<Out>>, Stop> {
        let experiment = self.scales.experiment;
        let mut targets = Targets::new(
            TargetLife::Fresh,
            experiment.catalogue,
            experiment.shards,
            self.folder.to_owned(),
            &experiment.program,
        );
        let loopback = Stage { share: self.case.share, ..Stage::default() };
        let cores = &experiment.pinning.target;
        let lease = targets.lease(&self.case.lane, &loopback, cores, "target")?;
        let endpoint = lease.target.running.endpoint().clone();
        let outs = self.run_all(count, run, &endpoint);
        targets.give_back(lease, None);
        outs
    }

    fn run_all(
        &self,
        count: usize,
        run: u64,
        endpoint: &Endpoint,
    ) -> Result<Option<Vec<Out>>, Stop> {
        let mut children = Vec::new();
        for part in 0..count {
            // With equal seeds, marks of both generators would be equal.
            let seed = self.scales.experiment.plan.seed + 1 + 2 * run + part as u64;
            let load = share(self.load, count as u32, part as u32);
            let plan = self.folder.join(format!("plan-{part}.toml"));
            self.write(&plan, &Plan { seed, ..self.plan(endpoint, load)? })?;
            children.push(Guarded(self.start(&plan, &self.sets[part])?));
        }
        while children.iter_mut().any(|child| matches!(child.0.try_wait(), Ok(None))) {
            if self.scales.interrupts.exit().is_some() {
                return Ok(None);
            }
            std::thread::sleep(LOOK_EVERY);
        }
        (0..count).map(|part| self.read(part)).collect::<Result<_, _>>().map(Some)
    }

    /// The lane's plan for the running target, with this load.
    fn plan(&self, endpoint: &Endpoint, load: Load) -> Result<Plan, Stop> {
        let lane = self.case.lane.found_at(endpoint);
        let (load, cases) = matrix::matrix(&[lane.with(load)])?;
        Ok(Plan {
            name: "generator".to_owned(),
            question: None,
            load,
            repeat: Repeat::exactly(1),
            // Weighbridge started the target and has its counters.
            observe: Observe { sys: SysChoice::Off, ..Observe::default() },
            energy: None,
            background: None,
            cases,
            thresholds: Vec::new(),
            stop: Default::default(),
            seed: 0,
        })
    }

    fn write(&self, path: &Path, plan: &Plan) -> Result<(), Stop> {
        let text = plan.to_toml().map_err(|error| Stop::new(Exit::Internal, error))?;
        let written =
            std::fs::create_dir_all(self.folder).and_then(|()| std::fs::write(path, text));
        written.map_err(|error| Stop::unwritten(path, &error))
    }

    /// A child process inherits the cores of the thread that starts it.
    fn start(&self, plan: &Path, cores: &CoreSet) -> Result<Child, Stop> {
        let mut command = Command::new(&self.scales.experiment.program);
        let shards = self.scales.experiment.shards.to_string();
        command.arg("run").arg(plan).args(["--json", "-Q", "--shards", &shards]);
        command.arg("--runs").arg(self.folder).stdin(Stdio::null());
        if matches!(self.case.lane.against, Against::Foreign(_)) {
            // The permission for the search applies here too.
            command.arg("--i-may-load-this");
        }
        if let Some(own) = self.case.lane.credentials() {
            command.args(["--user", &own.user]).env("WEIGH_PASSWORD", &own.password);
        }
        let create = |extension: &str| File::create(plan.with_extension(extension));
        let files = create("json").and_then(|out| Ok((out, create("log")?)));
        let (out, log) = files.map_err(|error| Stop::unwritten(plan, &error))?;
        command.stdout(out).stderr(log).env("COLUMNS", u16::MAX.to_string());
        let spawn = || cores.pin_this_thread().and_then(|()| command.spawn());
        let child = std::thread::scope(|scope| scope.spawn(spawn).join());
        let child = child.map_err(|_| Stop::new(Exit::Internal, "no thread for a generator"))?;
        child.map_err(|error| Stop::new(Exit::Internal, format!("no second generator: {error}")))
    }

    fn read(&self, part: usize) -> Result<Out, Stop> {
        let file = |extension: &str| -> PathBuf {
            self.folder.join(format!("plan-{part}")).with_extension(extension)
        };
        let text = std::fs::read(file("json")).unwrap_or_default();
        let summary = Summary::from_json(&text).ok();
        let cell = summary.as_ref().and_then(|summary| summary.cells.first());
        let figure = |name: &str| cell?.metrics.get(name)?.value;
        match figure("throughput_out_per_s") {
            Some(per_s) => Ok(Out { per_s, cpu_percent: figure("generator_cpu_percent.max") }),
            None => {
                let log = std::fs::read_to_string(file("log")).unwrap_or_default();
                let why = log.lines().last().unwrap_or("its log is empty").to_owned();
                Err(Stop::new(Exit::Target, format!("a generator has no result: {why}")))
            }
        }
    }
}

/// A child process that is killed when this value is dropped.
struct Guarded(Child);

impl Drop for Guarded {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Share of one of `count` generators: its part of rate and connections.
fn share(load: &Load, count: u32, part: u32) -> Load {
    let of = |whole: u32| (whole / count + u32::from(part < whole % count)).max(1);
    let mut own = load.clone();
    own.connections = of(load.connections);
    own.warmup = load.warmup.max(WARMUP);
    if let Some(rate) = own.rate.as_mut().filter(|rate| !rate.per_client) {
        rate.per_second /= f64::from(count);
    }
    own
}

fn note(found: &mut SecondGenerator, outs: &[Out]) {
    let sum = outs.iter().map(|out| out.per_s).sum();
    let cpu = outs.iter().filter_map(|out| out.cpu_percent).reduce(f64::max);
    let (per_s, most) = match outs.len() {
        1 => (&mut found.one_per_s, &mut found.one_cpu_percent),
        _ => (&mut found.two_per_s, &mut found.two_cpu_percent),
    };
    per_s.push(sum);
    *most = [*most, cpu].into_iter().flatten().reduce(f64::max);
}

/// Runs with one generator, and as many with two: the fewest for an interval.
const RUNS: u64 = 3;

const DURATION: Nanos = Nanos::from_secs(2);

/// All generators must run before any is counted.
const WARMUP: Nanos = Nanos::from_secs(1);

/// Factor beyond the limit: enough to show a higher result, less than the search's own doubling.
const BEYOND: f64 = 1.5;

const LOOK_EVERY: Duration = Duration::from_millis(20);
