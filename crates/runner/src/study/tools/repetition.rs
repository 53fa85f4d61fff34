//! One repetition of a real program: its target and preparatory steps are run, the program is
//! started and observed, and `weigh` makes the same load if that is asked for.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};
use weigh_model::numbers;

use weigh_capture::Account;
use weigh_capture::account::Notes;
use weigh_model::Warning;
use weigh_model::plan::TargetLife;
use weigh_observe::cpu::{CpuTree, HostCpu};
use weigh_report::journal::rfc3339;
use weigh_study::tools::{EMULATED, Starts, Step, ToolRepetition, figures_in, filled};
use weigh_testbed::find::on_path;
use weigh_testbed::pinning::{CoreSet, Pinning};
use weigh_testbed::programs::{ProgramError, ProgramOrder, ProgramRun, ProgramUse};
use weigh_testbed::programs::{printed, standard_output};

use crate::case::Case;
use crate::exit::{Exit, Stop};
use crate::probes::listeners::{Listeners, Listening, missed};
use crate::study::context::StudyContext;
use crate::study::tool_parts::ToolPart;
use crate::study::tools::emulation;
use crate::targets::addresses::resolve;
use crate::targets::hosts::{GENERATOR, Stage};
use crate::targets::pool::{Lease, Targets};
use crate::trial::identity::Trials;

/// Shared context of the repetitions of a tool.
pub struct Repeater<'r> {
    /// Context of the study.
    pub context: &'r StudyContext<'r>,
    /// The tool.
    pub part: &'r ToolPart,
    /// The folder of its run, absolute.
    pub folder: &'r Path,
}

/// Reason for which a repetition has no result.
pub enum Failed {
    /// A signal ended it.
    Interrupted,
    /// The record cannot be written.
    Record(Stop),
    /// It failed, with the reason.
    Reported(String),
}

/// A target that programs can use.
struct Ready {
    lease: Option<Lease>,
    /// Values of placeholders.
    values: BTreeMap<&'static str, String>,
    /// The target's own description.
    title: String,
    port: u16,
}

/// Observations of a program.
struct Watched {
    used: ProgramUse,
    heard: Option<Account>,
    warnings: Vec<String>,
}

impl Repeater<'_> {
    /// Runs repetition `number`.
    ///
    /// # Errors
    /// A failure, with the end of the program's output.
    pub fn repeat(&self, number: u32) -> Result<ToolRepetition, Failed> {
        let folder = self.folder.join(format!("repetition-{number}"));
        let targets = self.folder.join("targets");
        let catalogue = self.context.ground.catalogue;
        let mut targets =
            Targets::new(TargetLife::Fresh, catalogue, 1, targets, &self.context.program);
        let pinning = self.pinning()?;
        let mut ready = self.ready(number, &folder, &pinning, &mut targets)?;
        let measured = self.measured(number, &folder, &pinning, &ready);
        let emulated = measured.and_then(|(figures, warnings)| {
            let emulated = self.emulated(&folder, &pinning, &ready)?;
            Ok((figures.into_iter().chain(emulated).collect(), warnings))
        });
        let ended = ready.lease.as_mut().and_then(|lease| lease.target.running.ended());
        if let Some(lease) = ready.lease.take() {
            targets.give_back(lease, None);
        }
        let (figures, warnings) = emulated.map_err(|failed| match (failed, ended) {
            (Failed::Reported(error), Some(how)) => {
                Failed::Reported(format!("its target ended with {how}; {error}"))
            }
            (failed, _) => failed,
        })?;
        // Files of programs and targets explain failures; there was none.
        let _ = std::fs::remove_dir_all(self.folder.join("targets"));
        let _ = std::fs::remove_dir_all(&folder);
        let (at, target) = (rfc3339(SystemTime::now()), ready.title);
        Ok(ToolRepetition { repetition: number, at, target, figures, warnings })
    }

    /// The program's figures, and warnings on them.
    fn measured(
        &self,
        number: u32,
        folder: &Path,
        pinning: &Pinning,
        ready: &Ready,
    ) -> Result<(BTreeMap<String, f64>, Vec<String>), Failed> {
        for (at, step) in self.part.tool.before.iter().enumerate() {
            self.before(step, &folder.join(format!("before-{at}")), pinning, ready)?;
        }
        let own = folder.join("program");
        let Watched { used, heard, mut warnings } = self.watched(number, &own, pinning, ready)?;
        let mut figures = measured_figures(&used, self.part.planned.messages);
        if let Some(account) = heard {
            figures.extend(heard_figures(&account, self.part.planned.messages));
            // Attribution of bytes to layers changes no packet and no sum.
            let lost = missed(&account, "").into_iter();
            let lost = lost.filter(|warning| matches!(warning, Warning::CaptureLoss(..)));
            warnings.extend(lost.map(|warning| warning.record().text));
        }
        let text = standard_output(&own).map_err(|error| Failed::Record(error.into()))?;
        let reported = figures_in(self.part.tool.prints, &text);
        let reported =
            reported.map_err(|said| Failed::Reported(format!("{said}; {}", printed(&own))))?;
        figures.extend(reported);
        if pinning.shared {
            warnings.push("the program and its target share a core".to_owned());
        }
        Ok((figures, warnings))
    }

    /// Starts the target and fills in the placeholders.
    fn ready(
        &self,
        number: u32,
        folder: &Path,
        pinning: &Pinning,
        targets: &mut Targets,
    ) -> Result<Ready, Failed> {
        let planned = &self.part.planned;
        let each = planned.messages / u64::from(planned.clients.max(1));
        let mut values = BTreeMap::from([
            ("messages", planned.messages.to_string()),
            ("clients", planned.clients.to_string()),
            ("each", each.to_string()),
            ("dir", folder.display().to_string()),
        ]);
        let mut ready =
            Ready { lease: None, values: BTreeMap::new(), title: String::new(), port: 0 };
        if let Some(case) = &self.part.case {
            let lease =
                targets.lease(&case.lane, &self.stage(case), &pinning.target, &number.to_string());
            let lease = lease.map_err(failed)?;
            let endpoint = lease.target.running.endpoint();
            let address = resolve(endpoint).map_err(failed)?;
            values.insert("url", endpoint.to_string());
            values.insert("host", address.ip().to_string());
            values.insert("port", address.port().to_string());
            let authority = targets.vault().authority();
            values.insert("ca", authority.map_or(String::new(), |path| path.display().to_string()));
            ready.title = lease.target.running.title(&case.lane);
            ready.port = address.port();
            ready.lease = Some(lease);
        }
        ready.values = values;
        let write = || -> std::io::Result<()> {
            std::fs::create_dir_all(folder)?;
            self.part.tool.files.iter().try_for_each(|(name, text)| {
                std::fs::write(folder.join(name), filled(text, &ready.values))
            })
        };
        write().map_err(|error| Failed::Record(Stop::unwritten(folder, &error)))?;
        Ok(ready)
    }

    /// Runs a step that is not measured.
    fn before(
        &self,
        step: &Step,
        folder: &Path,
        pinning: &Pinning,
        ready: &Ready,
    ) -> Result<(), Failed> {
        let order = self.order(&step.program, &step.arguments, folder, ready)?;
        let messages = self.part.planned.messages;
        let input = step.line.as_ref().map(|line| (filled(line, &ready.values), messages));
        let used = self.started(&ProgramOrder { input, ..order }, pinning, ready);
        match used {
            Err(Failed::Reported(error)) => {
                Err(Failed::Reported(format!("{}, a step before it: {error}", step.program)))
            }
            other => other.map(drop),
        }
    }

    /// Runs the program while its packets are counted and the machine is observed.
    fn watched(
        &self,
        number: u32,
        folder: &Path,
        pinning: &Pinning,
        ready: &Ready,
    ) -> Result<Watched, Failed> {
        let tool = &self.part.tool;
        let messages = self.part.planned.messages;
        let (starts, lines) = match tool.starts {
            Starts::EachMessage => (messages, 1),
            Starts::Once => (1, messages),
        };
        let input = tool.line.as_ref().map(|line| (filled(line, &ready.values), lines));
        let order = self.order(&tool.program, &tool.arguments, folder, ready)?;
        let order = ProgramOrder { starts, input, ..order };
        let hearing = self.hearing(number, ready)?;
        let before = Machine::look();
        let used = self.started(&order, pinning, ready);
        let disturbed = before.and_then(Machine::disturbed);
        let mut warnings: Vec<String> = disturbed.into_iter().collect();
        let mut heard = None;
        if let Some(hearing) = hearing {
            std::thread::sleep(LINGER);
            let (account, found) = hearing.stop();
            warnings.extend(found.iter().map(|warning| warning.record().text));
            heard = account.map(|heard| heard.account);
        }
        Ok(Watched { used: used?, heard, warnings })
    }

    /// Starts to count packets, if that is asked for and possible.
    fn hearing(&self, number: u32, ready: &Ready) -> Result<Option<Listeners>, Failed> {
        let (Some(case), Some(lease)) = (&self.part.case, &ready.lease) else { return Ok(None) };
        let Some(scene) = &lease.target.scene else { return Ok(None) };
        let resolved = self.part.planned.resolved.as_ref();
        let plan = &resolved.expect("a case is of a plan").plan;
        let trial = Trials::new(plan, std::slice::from_ref(case)).trial(0, case, number);
        scene.begin(trial.seed);
        let is_secured = weigh_model::tls::is_on(&case.lane.settings);
        let listened = Listening { is_secured, notes: Notes::default(), load: &trial.load };
        let stage = self.stage(case);
        let begin = || Listeners::begin(scene, ready.port, &stage, listened);
        stage.is_heard.then(begin).transpose().map_err(failed)
    }

    /// Makes the same load with `weigh`.
    fn emulated(
        &self,
        folder: &Path,
        pinning: &Pinning,
        ready: &Ready,
    ) -> Result<Vec<(String, f64)>, Failed> {
        let words = &self.part.tool.emulation;
        if words.is_empty() {
            return Ok(Vec::new());
        }
        let runs = folder.join("emulated");
        let program = self.context.program.clone();
        let group = self.part.tool.emulation_group().map(str::to_owned);
        let own = words.iter().map(|word| filled(word, &ready.values));
        let own = group.into_iter().chain(own).chain([
            "--quiet".to_owned(),
            "--runs".to_owned(),
            runs.display().to_string(),
        ]);
        let order = ProgramOrder {
            program,
            arguments: own.collect(),
            environment: Vec::new(),
            folder: folder.join("emulation"),
            starts: 1,
            input: None,
        };
        let told = |said: String| {
            Failed::Reported(format!("its emulation, {}: {said}", self.part.tool.emulation_name()))
        };
        match self.started(&order, pinning, ready) {
            Err(Failed::Reported(said)) => return Err(told(said)),
            other => drop(other?),
        }
        let figures = emulation::figures(words, &runs).map_err(told)?;
        Ok(figures.into_iter().map(|(name, value)| (format!("{EMULATED}{name}"), value)).collect())
    }

    fn order(
        &self,
        program: &str,
        arguments: &[String],
        folder: &Path,
        ready: &Ready,
    ) -> Result<ProgramOrder, Failed> {
        let gone =
            || Failed::Reported(format!("{program} is not on PATH: {}", self.part.tool.install));
        let program: PathBuf = on_path(program).ok_or_else(gone)?;
        let arguments = arguments.iter().map(|text| filled(text, &ready.values)).collect();
        let environment = self.part.tool.environment.iter();
        let environment =
            environment.map(|(name, text)| (name.clone(), filled(text, &ready.values))).collect();
        let folder = folder.to_owned();
        Ok(ProgramOrder { program, arguments, environment, folder, starts: 1, input: None })
    }

    /// Runs a command on the generator's core and host.
    fn started(
        &self,
        order: &ProgramOrder,
        pinning: &Pinning,
        ready: &Ready,
    ) -> Result<ProgramUse, Failed> {
        let executable = &self.context.program;
        let scene = ready.lease.as_ref().and_then(|lease| lease.target.scene.as_ref());
        let door = scene.and_then(|scene| Some(scene.host(GENERATOR).ok()?.door()));
        let run = ProgramRun::start(executable, order, Some(&pinning.generator), door);
        let within = Duration::from_nanos(self.part.planned.within.0);
        let is_over = || self.context.interrupts.exit().is_some();
        run.and_then(|run| run.wait(within, is_over)).map_err(|error| match error {
            ProgramError::Interrupted => Failed::Interrupted,
            error @ ProgramError::Unwritable { .. } => {
                Failed::Record(Stop::new(Exit::Record, error))
            }
            error => Failed::Reported(error.to_string()),
        })
    }

    fn stage(&self, case: &Case) -> Stage {
        let resolved = self.part.planned.resolved.as_ref();
        Stage {
            privileges: self.context.privileges.clone(),
            path: case.path.clone(),
            offloads: case.offloads,
            is_heard: resolved.is_some_and(|resolved| resolved.plan.observe.wire),
            share: case.share,
            ..Stage::default()
        }
    }

    /// Cores of the target and of the program.
    fn pinning(&self) -> Result<Pinning, Failed> {
        let allowed = CoreSet::allowed().map_err(|error| failed(error.into()))?;
        Ok(match &self.part.case {
            Some(case) => case.share.pinning(&allowed, 1),
            None => Pinning::divide(&allowed, 1, 1),
        })
    }
}

/// CPU time of the machine, and of this program with its children.
struct Machine {
    host: HostCpu,
    tree: CpuTree,
    at: std::time::Instant,
}

impl Machine {
    fn look() -> Option<Machine> {
        let tree = CpuTree::new(std::process::id()).ok()?;
        Some(Machine { host: HostCpu::read().ok()?, tree, at: std::time::Instant::now() })
    }

    /// A warning that other processes used the machine since then; `None` if they did not, or if
    /// the time was too short.
    fn disturbed(mut self) -> Option<String> {
        let wall = self.at.elapsed();
        let wall_ns = u64::try_from(wall.as_nanos()).ok()?;
        let used_ns = HostCpu::read().ok()?.since(&self.host).used_ns(wall_ns);
        let others_ns = used_ns.saturating_sub(self.tree.read().cpu_ns);
        let percent = 100.0 * others_ns as f64 / wall.as_nanos() as f64;
        (wall >= DISTURBED_WALL_MIN && percent > DISTURBED_PERCENT_MAX).then(|| {
            format!("other processes used {} of a core while it ran", numbers::percent(percent))
        })
    }
}

fn measured_figures(used: &ProgramUse, messages: u64) -> BTreeMap<String, f64> {
    let (wall_s, cpu_s) = (used.wall_ns as f64 / 1e9, (used.user_ns + used.system_ns) as f64 / 1e9);
    let count = messages as f64;
    let named = [
        ("messages", count),
        ("wall_s", wall_s),
        ("wall_s_per_message", wall_s / count),
        ("messages_per_s", count / wall_s),
        ("cpu_s", cpu_s),
        ("cpu_s_per_message", cpu_s / count),
        ("max_rss_bytes", used.max_rss_bytes as f64),
    ];
    named.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

fn heard_figures(account: &Account, messages: u64) -> Vec<(String, f64)> {
    let both = account.sent.total() + account.received.total();
    let each = |name: &str, value: u64| {
        (format!("wire_{name}_per_message"), value as f64 / messages as f64)
    };
    vec![
        each("packets", both.packets),
        each("bytes", both.bytes()),
        each("connections", account.sessions()),
    ]
}

fn failed(stop: Stop) -> Failed {
    match stop.exit() {
        Exit::Record => Failed::Record(stop),
        _ => Failed::Reported(stop.to_string()),
    }
}

/// Time for packets that are in transit at the end of the program.
const LINGER: Duration = Duration::from_millis(100);

/// As for a trial: shorter times have too few ticks of the machine's CPU clock.
const DISTURBED_WALL_MIN: Duration = Duration::from_millis(500);

/// As for a trial: share of a core that other processes may use.
const DISTURBED_PERCENT_MAX: f64 = 15.0;
