//! `weigh study run`: replays studies, or resumes an interrupted run of one.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::{Path, PathBuf};
use weigh_model::numbers::count;

use clap::Args;
use serde_json::json;
use weigh_model::Nanos;
use weigh_report::StudyFolder;
use weigh_report::journal::PAGE;
use weigh_study::page::{Entry, index};
use weigh_study::{Outcome, Scale, Study, StudyTexts, Way};
use weigh_testbed::catalogue::Catalogue;

use crate::help;
use crate::output_file;
use crate::show::output;
use crate::show::study_text;
use crate::show::terminal::{Display, Lines};
use weigh_runner::case::share::StandIns;
use weigh_runner::exit::{Exit, Stop};
use weigh_runner::interrupts::Interrupts;
use weigh_runner::study::context::{StudyContext, graver};
use weigh_runner::study::external_servers::ExternalServers;
use weigh_runner::study::library::{self, Studies};
use weigh_runner::study::parts::{Asked, Part, PartsContext, parts};
use weigh_runner::study::session::{CheckedPart, Progress, privileges};
use weigh_runner::study::study_run::{self, StudyRun};
use weigh_runner::study::tool_parts::{ToolPart, tools};
use weigh_runner::study::tools::CheckedTool;

/// Flags of `weigh study run`.
#[derive(Args)]
pub struct Run {
    /// Names of studies; `weigh study list` lists them
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    /// Run every study
    #[arg(long, conflicts_with = "names")]
    all: bool,
    /// Run only the authors' way (published), the right way (right) or real programs (tools)
    /// [default: all]
    #[arg(long = "as", value_name = "WAY")]
    way: Option<Way>,
    /// Scale: quick (minutes: fewer repetitions, shorter axes), full (as in the papers) or mini
    /// (seconds, for tests)
    #[arg(long, value_name = "SCALE", default_value = "quick")]
    scale: Scale,
    /// Run only this experiment, or a question answered beside them (farms), by its ID; claims that
    /// need others stay open
    #[arg(long, value_name = "EXPERIMENT")]
    only: Vec<String>,
    /// Continue an interrupted run of a study, named by its folder, its ID or `latest`
    #[arg(long, value_name = "STUDYRUN",
          conflicts_with_all = ["names", "all", "way", "scale", "only", "data", "dry"])]
    resume: Option<String>,
    /// Print the plans, their number of trials, the time they take and what cannot run here; start
    /// nothing
    #[arg(long)]
    dry: bool,
    /// Print study.json instead of the claims; one document for several studies
    #[arg(long)]
    json: bool,
    /// Suppress progress output
    #[arg(long, short = 'Q')]
    quiet: bool,
    /// Folder of the runs
    #[arg(long, value_name = "DIR", default_value = "runs")]
    runs: PathBuf,
    /// Folder whose studies/*/ and targets/*.toml replace built-in ones of the same name
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Use a running server instead of starting this target, such as emqx=mqtt://broker:1883
    #[arg(long, value_name = "NAME=URL")]
    server: Vec<String>,
    /// Confirm that you are authorised to load-test remote hosts
    #[arg(long)]
    i_may_load_this: bool,
}

/// A study that is ready to run.
struct Ready {
    texts: StudyTexts,
    study: Study,
    parts: Vec<Part>,
    tools: Vec<ToolPart>,
}

/// A study with the list of what cannot run here.
struct Begun {
    texts: StudyTexts,
    study: Study,
    parts: Vec<CheckedPart>,
    tools: Vec<CheckedTool>,
}

/// A study that was run.
struct Done {
    outcome: Outcome,
    folder: PathBuf,
}

impl Run {
    /// Runs the studies one after another, and prints the results.
    ///
    /// # Errors
    /// A study that is unknown or wrong, and a record that cannot be written.
    pub fn run(self) -> Result<Exit, Stop> {
        if let Some(name) = &self.resume {
            return self.go_on(name);
        }
        let data = self.data.as_deref();
        let catalogue = Catalogue::load(data).map_err(Stop::usage)?;
        let ground = self.ground(&catalogue, data)?;
        let asked = self.asked();
        let chosen = self.chosen(&Studies::load(data)?)?;
        let studies = if chosen.len() == 1 { "study" } else { "studies" };
        self.begins(&format!("{} {studies}", chosen.len()));
        let mut all = Vec::new();
        for texts in chosen {
            let study = library::read(&texts, &catalogue, &Lines)?;
            let parts = parts(&study, &asked, &ground)?;
            let tools = tools(&study, &asked, &ground)?;
            all.push(Ready { texts, study, parts, tools });
        }
        let (all, context) = self.looked(all, ground)?;
        if self.dry {
            return self.tell(&all);
        }
        self.announce(&all);
        let begin = |texts: &StudyTexts| StudyRun::begin(&self.runs, texts, &asked, data);
        self.sit_all(all, &context, begin)
    }

    /// Resumes the run of a study.
    fn go_on(&self, name: &str) -> Result<Exit, Stop> {
        let folder = StudyFolder::find(&self.runs, name).map_err(Stop::usage)?;
        self.begins(&format!("resuming {}", folder.id()));
        let kept = StudyRun::open(folder)?;
        let texts = study_run::texts(&kept.folder)?;
        let data = kept.about.data.clone().map(PathBuf::from);
        let catalogue = Catalogue::load(data.as_deref()).map_err(Stop::usage)?;
        let ground = self.ground(&catalogue, data.as_deref())?;
        let study = library::read(&texts, &catalogue, &Lines).map_err(|wrong| {
            let id = kept.folder.id();
            let help = "start a new run, or type";
            Stop::usage(format!(
                "{wrong}\nhelp: {help} weigh study judge {id} to judge what it has"
            ))
        })?;
        let mut parts = parts(&study, &kept.asked(), &ground)?;
        for part in parts.iter_mut().filter(|part| kept.is_done(&part.name)) {
            (part.trials, part.time) = (0, Nanos(0));
        }
        let mut tools = tools(&study, &kept.asked(), &ground)?;
        for tool in tools.iter_mut().filter(|tool| kept.is_done(&tool.tool.name)) {
            tool.time = Nanos(0);
        }
        let (all, context) = self.looked(vec![Ready { texts, study, parts, tools }], ground)?;
        self.announce(&all);
        let mut kept = Some(kept);
        let again = |_: &StudyTexts| {
            kept.take()
                .ok_or_else(|| Stop::new(Exit::Internal, "there is only one study to resume"))
        };
        self.sit_all(all, &context, again)
    }

    /// Prints what begins before anything that takes time.
    fn begins(&self, what: &str) {
        if !self.quiet && !self.dry {
            eprintln!("weigh: {what}; reading the plans and checking the machine first");
        }
    }

    fn ground<'g>(
        &self,
        catalogue: &'g Catalogue,
        data: Option<&'g Path>,
    ) -> Result<PartsContext<'g>, Stop> {
        let elsewhere = ExternalServers::of(&self.server, catalogue)?;
        Ok(PartsContext { catalogue, data, may_load: self.i_may_load_this, elsewhere })
    }

    fn asked(&self) -> Asked {
        let ways = self.way.map_or_else(|| Way::ALL.to_vec(), |way| vec![way]);
        Asked { scale: self.scale, ways, only: self.only.clone() }
    }

    /// Returns the selected studies, each once.
    fn chosen(&self, studies: &Studies) -> Result<Vec<StudyTexts>, Stop> {
        if self.all {
            return Ok(studies.all().to_vec());
        }
        if self.names.is_empty() {
            let names: Vec<&str> = studies.all().iter().map(|own| own.name.as_str()).collect();
            return Err(Stop::usage(format!(
                "the study is missing\nhelp: type weigh study run NAME ({}), or --all",
                names.join(", ")
            )));
        }
        let mut seen = BTreeSet::new();
        let names = self.names.iter().filter(|name| seen.insert(name.as_str()));
        names.map(|name| studies.find(name).cloned()).collect()
    }

    /// Finds what cannot run here of all studies, before anything starts.
    fn looked<'g>(
        &self,
        all: Vec<Ready>,
        ground: PartsContext<'g>,
    ) -> Result<(Vec<Begun>, StudyContext<'g>), Stop> {
        let tools = all.iter().flat_map(|own| &own.tools);
        let privileges = privileges(all.iter().flat_map(|own| &own.parts), tools, &Lines)?;
        let mut known = StandIns::default();
        let mut look = |mut part: Part| {
            let obstacle = part.obstacle(ground.catalogue, &privileges);
            part.look_at_shares(&mut known);
            (part, obstacle)
        };
        let of = |own: Ready| {
            let parts = own.parts.into_iter().map(&mut look).collect();
            let tools = own.tools.into_iter().map(|tool| {
                let obstacle = tool.obstacle(ground.catalogue, &privileges);
                (tool, obstacle)
            });
            Begun { texts: own.texts, study: own.study, parts, tools: tools.collect() }
        };
        let all = all.into_iter().map(of).collect();
        // After the privileges, which need a program of one thread.
        let interrupts = Interrupts::listen(Box::new(Lines))?;
        let (is_quiet, watch) = (self.quiet, Display::watch);
        let program = std::env::current_exe()?;
        let commit = help::commit();
        let context =
            StudyContext { ground, privileges, interrupts, is_quiet, watch, program, commit };
        Ok((all, context))
    }

    /// Runs the studies, and prints the result of each as soon as it ends.
    fn sit_all(
        &self,
        all: Vec<Begun>,
        context: &StudyContext<'_>,
        mut begin: impl FnMut(&StudyTexts) -> Result<StudyRun, Stop>,
    ) -> Result<Exit, Stop> {
        let (mut exit, mut done) = (Exit::Done, Vec::new());
        let mut ended = None;
        for (number, Begun { texts, study, parts, tools }) in all.iter().enumerate() {
            if context.interrupts.exit().is_some() {
                break;
            }
            let after = all[number + 1..].iter().map(time);
            let progress = Progress {
                study: number + 1,
                studies: all.len(),
                after: after.fold(Nanos(0), |sum, time| sum + time),
            };
            let mut kept = match begin(texts) {
                Ok(kept) => kept,
                Err(stop) => {
                    // The studies before it have ended and are printed.
                    eprintln!("weigh: {} could not be started", study.name);
                    ended = Some(stop);
                    break;
                }
            };
            let sat = context.sit(study, (parts, tools), &mut kept, progress);
            let folder = kept.folder.path().to_owned();
            exit = graver(exit, sat.exit);
            let own = Done { outcome: sat.outcome, folder };
            self.show(&own)?;
            done.push(own);
            if let Some(stop) = sat.unrecorded {
                let what = match stop.exit() {
                    Exit::Record => "a part could not be recorded",
                    Exit::Usage => "the recorded files cannot be read",
                    _ => "the study could not be finished",
                };
                eprintln!("weigh: {}: {what}; the measured results are above", study.name);
                ended = Some(stop);
                break;
            }
        }
        self.put_json(&done, all.len())?;
        advise(&all, &done, ended.is_some() || context.interrupts.exit().is_some());
        let has_index = all.len() > 1 && !done.is_empty();
        let unwritten = if has_index { self.write_index(&done).err() } else { None };
        ended.or(unwritten).map_or(Ok(exit), Err)
    }

    fn show(&self, done: &Done) -> Result<(), Stop> {
        if self.json {
            return Ok(());
        }
        output::put(&study_text::shown(&done.outcome, &done.folder))
    }

    fn put_json(&self, done: &[Done], asked: usize) -> Result<(), Stop> {
        match done {
            _ if !self.json => Ok(()),
            // One study alone has its own document, also if `--all` found it.
            [only] if asked == 1 => output::put_document(&only.outcome.to_json()),
            all => {
                let outcomes: Vec<_> = all.iter().map(|own| &own.outcome).collect();
                let document = json!({ "schema": STUDIES_SCHEMA, "studies": outcomes });
                output::put_document(&format!("{document:#}\n"))
            }
        }
    }

    /// Writes the page that links the pages of these studies, next to their folders.
    fn write_index(&self, done: &[Done]) -> Result<(), Stop> {
        let href = |own: &Done| {
            let folder = own.folder.file_name().unwrap_or_default();
            format!("{}/{PAGE}", folder.to_string_lossy())
        };
        let hrefs: Vec<String> = done.iter().map(href).collect();
        let entries = done.iter().zip(&hrefs);
        let entries: Vec<Entry<'_>> =
            entries.map(|(own, href)| Entry { outcome: &own.outcome, href }).collect();
        let path = self.runs.join(INDEX);
        output_file::write(&path, index(&entries).as_bytes()).map_err(|error| {
            let help = "give a folder that can be written with --runs DIR";
            Stop::new(Exit::Record, format!("{}: {error}\nhelp: {help}", path.display()))
        })?;
        if !self.quiet {
            eprintln!("weigh: wrote {}", path.display());
        }
        Ok(())
    }

    /// Prints what will run, and what cannot.
    fn announce(&self, all: &[Begun]) {
        if !self.quiet {
            for own in all {
                eprintln!("weigh: {}", heading(own));
            }
        }
        for own in all {
            let name = &own.study.name;
            for (part, obstacle) in &own.parts {
                if let Some(why) = obstacle {
                    eprintln!("weigh: {name}: {} is not run: {why}", part.name);
                }
            }
            for (tool, obstacle) in &own.tools {
                if let Some(why) = obstacle {
                    eprintln!("weigh: {name}: {} is not run: {why}", tool.tool.name);
                }
            }
            remarks(&own.parts).iter().for_each(|text| eprintln!("weigh: {name}: {text}"));
        }
    }

    /// Prints what would run.
    fn tell(&self, all: &[Begun]) -> Result<Exit, Stop> {
        if self.json {
            let part = |(part, obstacle): &CheckedPart| {
                json!({ "plan": part.name, "trials": part.trials,
                        "time_s": part.time.as_secs_f64(), "is_search": part.searches.is_some(),
                        "not_run": obstacle, "remark": part.remark })
            };
            let tool = |(tool, obstacle): &CheckedTool| {
                json!({ "tool": tool.tool.name, "repetitions": tool.planned.repetitions,
                        "messages": tool.planned.messages, "time_s": tool.time.as_secs_f64(),
                        "not_run": obstacle })
            };
            let study = |own: &Begun| {
                json!({ "study": own.study.name, "scale": self.scale.name(),
                        "time_s": time(own).as_secs_f64(),
                        "plans": own.parts.iter().map(part).collect::<Vec<_>>(),
                        "tools": own.tools.iter().map(tool).collect::<Vec<_>>() })
            };
            let document = json!({ "studies": all.iter().map(study).collect::<Vec<_>>() });
            return output::put_document(&format!("{document:#}\n")).map(|()| Exit::Done);
        }
        let mut text = String::new();
        for own in all {
            let _ = writeln!(text, "{}\n{}\n", heading(own), own.study.question);
            let plans = own.parts.iter().map(|(part, why)| (&part.name, part.length(), why));
            let tools = own.tools.iter().map(|(part, why)| (&part.tool.name, part.length(), why));
            let lines: Vec<_> = plans.chain(tools).collect();
            let width = lines.iter().map(|(name, ..)| name.len()).max().unwrap_or(0);
            for (name, length, obstacle) in lines {
                let _ = writeln!(text, "  {name:width$}  {length}");
                if let Some(why) = obstacle {
                    let _ = writeln!(text, "  {:width$}  not run: {why}", "");
                }
            }
            for remark in remarks(&own.parts) {
                let _ = writeln!(text, "\n  {remark}");
            }
            text.push('\n');
        }
        let sum = all.iter().map(time);
        let sum = sum.fold(Nanos(0), |sum, time| sum + time);
        let _ = writeln!(text, "about {} in all (an estimate)", sum.rough());
        output::put(&text).map(|()| Exit::Done)
    }
}

/// Prints how to continue, if something was left undone.
fn advise(all: &[Begun], done: &[Done], is_cut_short: bool) {
    if let Some(last) = done.last().filter(|_| is_cut_short) {
        eprintln!("weigh: to continue, type weigh study run --resume {}", last.folder.display());
    }
    let rest: Vec<&str> = all.iter().skip(done.len()).map(|own| &*own.study.name).collect();
    if !rest.is_empty() {
        eprintln!("weigh: not started: {}", rest.join(" "));
    }
}

/// Returns a line such as `hydroponics: 12 plans, 340 trials or more, 2 tools, about 3 min 5 s`.
fn heading(own: &Begun) -> String {
    let left = own.parts.iter().filter(|(part, why)| why.is_none() && part.time > Nanos(0));
    let left: Vec<&Part> = left.map(|(part, _)| part).collect();
    let tools = own.tools.iter().filter(|(part, why)| why.is_none() && part.time > Nanos(0));
    let (name, plans, tools) = (&own.study.name, left.len(), tools.count());
    if plans + tools == 0 {
        return format!("{name}: no plan is left to run");
    }
    let trials: u64 = left.iter().map(|part| part.trials).sum();
    let plural = |number: usize| if number == 1 { "" } else { "s" };
    let mut parts = Vec::new();
    if plans > 0 {
        parts.push(format!("{plans} plan{}, {} trials or more", plural(plans), count(trials)));
    }
    if tools > 0 {
        parts.push(format!("{tools} tool{}", plural(tools)));
    }
    format!("{name}: {}, about {}", parts.join(", "), time(own).rough())
}

/// Returns remarks on the plans that run, such as `all plans: memory is limited by RLIMIT_DATA
/// ...`; one remark for all plans with the same.
fn remarks(parts: &[CheckedPart]) -> Vec<String> {
    let run = || parts.iter().filter(|(_, obstacle)| obstacle.is_none()).map(|(part, _)| part);
    let mut plans: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for part in run() {
        if let Some(remark) = &part.remark {
            plans.entry(remark).or_default().push(&part.name);
        }
    }
    let all = run().count();
    let text = |(remark, names): (&str, Vec<&str>)| match names.len() {
        number if number == all => format!("all plans: {remark}"),
        _ => format!("{}: {remark}", names.join(", ")),
    };
    plans.into_iter().map(text).collect()
}

/// Returns the shortest duration of the plans and tools that run.
fn time(own: &Begun) -> Nanos {
    let plans = own.parts.iter().map(|(part, why)| (part.time, why));
    let tools = own.tools.iter().map(|(part, why)| (part.time, why));
    let run = plans.chain(tools).filter(|(_, obstacle)| obstacle.is_none());
    run.fold(Nanos(0), |sum, (time, _)| sum + time)
}

/// Page that links the pages of several studies, in the folder of their runs.
const INDEX: &str = "studies.html";

/// Name and version of the document of several studies.
const STUDIES_SCHEMA: &str = "weigh/studies/1";
