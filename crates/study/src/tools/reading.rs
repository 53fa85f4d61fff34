//! Reads `tools.toml`: real client programs, each with its arguments, its target and its scales.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};
use weigh_model::Nanos;
use weigh_model::units::parse_duration;
use weigh_plan::kind::nearest;
use weigh_plan::{Length, Problem, Problems, Resolved, World, tables};

use super::written::{CompareFile, ScaleFile, ToolFile, ToolsFile};
use super::{PLACES, Prints, Starts, Step, Tool, ToolCompare, ToolPlanned, VersionAsked};
use crate::plan_reading::{derive_needs, placed};
use crate::quantity_reading;
use crate::scale::{Scale, Way};
use crate::slips::{Around, check_ids, no_figure, tell};
use crate::study::Experiment;
use crate::texts::{StudyProblems, StudyTexts};

/// A tool, and its parts that are checked against the rest of the study.
pub(crate) struct Placed {
    tool: Tool,
    place: Range<usize>,
    experiments: Vec<Spanned<String>>,
    compares: Vec<Spanned<CompareFile>>,
}

/// The tools of the study, as far as nothing is wrong with them.
pub(crate) fn read(
    texts: &StudyTexts,
    world: &dyn World,
    problems: &mut StudyProblems,
) -> Vec<Placed> {
    let text = texts.text(Way::Tools.file());
    let (mut wrong, mut found) = (Problems::default(), Vec::new());
    match written(text) {
        Ok((file, document)) => {
            check_ids(file.tool.iter().map(|tool| &tool.get_ref().name), "tool", &mut wrong);
            let plans = plans(&document);
            for (at, tool) in file.tool.into_iter().enumerate() {
                let plan = plans.get(at).copied().unwrap_or_default();
                let reader = Reader { study: &texts.name, world, plan, place: tool.span() };
                match reader.read(tool.into_inner()) {
                    Ok(placed) => found.push(placed),
                    Err(own) => own.iter().for_each(|one| wrong.add(one.clone())),
                }
            }
        }
        Err(unreadable) => wrong = unreadable,
    }
    problems.add(Way::Tools.file(), wrong);
    found
}

/// Reads the tools, before they are checked against the rest of the study.
pub(crate) fn alone(placed: &[Placed]) -> Vec<Tool> {
    placed.iter().map(|one| one.tool.clone()).collect()
}

/// The tools with what they name of the rest of the study.
pub(crate) fn complete(
    placed: Vec<Placed>,
    around: &Around<'_>,
    experiments: &[Experiment],
    problems: &mut StudyProblems,
) -> Vec<Tool> {
    let mut wrong = Problems::default();
    let mut complete = Vec::new();
    for Placed { mut tool, place, experiments: named, compares } in placed {
        if named.is_empty() {
            let text = format!("no experiment uses the tool {}", tool.entry);
            wrong.add(Problem::at(place, text, "write experiments = [\"ID\"]"));
        }
        for id in named {
            let ids = experiments.iter().map(|one| one.id.as_str());
            if !ids.clone().any(|known| known == id.get_ref()) {
                let text = format!("unknown experiment {:?}", id.get_ref());
                let near = nearest(id.get_ref(), ids.clone());
                let fix = match near {
                    Some(near) => format!("did you mean {near}?"),
                    None => format!("expected one of: {}", ids.collect::<Vec<_>>().join(", ")),
                };
                tell(&mut wrong, id.span(), (text, fix));
            }
            tool.experiments.push(id.into_inner());
        }
        for written in compares {
            let place = written.span();
            match compare(written.into_inner(), &tool, around) {
                Ok(compare) => tool.compares.push(compare),
                Err(slip) => tell(&mut wrong, place, slip),
            }
        }
        complete.push(tool);
    }
    problems.add(Way::Tools.file(), wrong);
    complete
}

/// The file in both forms: as it is written, and with the places of its plans.
fn written(text: &str) -> Result<(ToolsFile, DeTable<'_>), Problems> {
    let document = tables::parse(text)?;
    let file = toml::from_str(text).map_err(|error: toml::de::Error| {
        let place = error.span().unwrap_or(0..0);
        let fix = "docs/guide/add-a-study.md lists every key of tools.toml";
        let mut problems = Problems::default();
        problems.add(Problem::at(place, error.message().trim_end(), fix));
        problems
    })?;
    Ok((file, document))
}

/// What each tool says of its target: for all scales, then for the quick one and for the mini one.
type Plans<'d> = [Option<&'d DeTable<'d>>; 3];

fn plans<'d>(document: &'d DeTable<'d>) -> Vec<Plans<'d>> {
    let Some(DeValue::Array(tools)) = document.get("tool").map(|value| value.get_ref()) else {
        return Vec::new();
    };
    let table = |value: Option<&'d Spanned<DeValue<'d>>>| match value?.get_ref() {
        DeValue::Table(table) => Some(table),
        _ => None,
    };
    let of = |tool: &'d Spanned<DeValue<'d>>| {
        let tool = table(Some(tool));
        let part = |name: &str| table(tool?.get(name));
        let below = |name: &str| table(part(name)?.get(PLAN));
        [part(PLAN), below(Scale::Quick.name()), below(Scale::Mini.name())]
    };
    tools.iter().map(of).collect()
}

struct Reader<'t, 'd> {
    study: &'t str,
    world: &'t dyn World,
    plan: Plans<'d>,
    place: Range<usize>,
}

impl Reader<'_, '_> {
    fn read(&self, written: ToolFile) -> Result<Placed, Problems> {
        let mut wrong = Problems::default();
        let place = written.name.span();
        let entry = written.name.get_ref().clone();
        check_places(&written, &mut wrong);
        let mut scales = BTreeMap::new();
        for scale in [Scale::Full, Scale::Quick, Scale::Mini] {
            match self.planned(&written, scale) {
                Ok(planned) => drop(scales.insert(scale, planned)),
                Err(own) => {
                    own.iter().for_each(|one| wrong.add(self.named(one, &entry)));
                    break;
                }
            }
        }
        let prints = written.prints.unwrap_or(Prints::Nothing);
        if !written.emulation.is_empty() && prints == Prints::Nothing {
            let text = format!("{entry}: emulation needs prints");
            wrong.add(Problem::at(place.clone(), text, "add prints, or remove emulation"));
        }
        if let Some(word) = written.emulation.first()
            && !EMULATIONS.contains(&word.get_ref().as_str())
        {
            let text = format!("{entry}: weigh {} does not emulate a tool", word.get_ref());
            let fix = format!("begin with one of {}", EMULATIONS.join(", "));
            wrong.add(Problem::at(word.span(), text, fix));
        }
        if !written.emulation.is_empty() && scales.values().any(has_hosts) {
            let text = format!("{entry}: an emulation can use loopback only");
            wrong.add(Problem::at(place.clone(), text, "remove path, wire or emulation"));
        }
        if !wrong.is_empty() {
            return Err(wrong);
        }
        let mut needs = Vec::new();
        for resolved in scales.values().filter_map(|planned| planned.resolved.as_ref()) {
            derive_needs(resolved, &mut needs);
        }
        let tool = Tool {
            name: format!("{}/{entry}", Way::Tools),
            entry,
            about: written.about,
            experiments: Vec::new(),
            program: written.program,
            version: written
                .version
                .map(|asked| VersionAsked { arguments: asked.arguments, after: asked.after }),
            install: written.install,
            arguments: texts(written.arguments),
            environment: written.environment,
            line: written.line.map(Spanned::into_inner),
            starts: written.starts.unwrap_or(Starts::Once),
            prints,
            before: written.before.into_iter().map(step).collect(),
            files: written.files,
            emulation: texts(written.emulation),
            compares: Vec::new(),
            needs,
            scales,
        };
        let (experiments, compares) = (written.experiments, written.compare);
        Ok(Placed { tool, place, experiments, compares })
    }

    /// A problem with its place, and with the tool where it has none.
    fn named(&self, problem: &Problem, entry: &str) -> Problem {
        match problem.place {
            Some(_) => problem.clone(),
            None => Problem::at(
                self.place.clone(),
                format!("{entry}: {}", problem.text),
                problem.fix.clone(),
            ),
        }
    }

    fn planned(&self, written: &ToolFile, scale: Scale) -> Result<ToolPlanned, Problems> {
        let layers: Vec<&ScaleFile> = match scale {
            Scale::Full => vec![],
            Scale::Quick => written.quick.iter().collect(),
            Scale::Mini => written.mini.iter().chain(&written.quick).collect(),
        };
        let is_cut = scale == Scale::Mini && written.mini.is_none();
        let clients = layers.iter().find_map(|one| one.clients).or(written.clients).unwrap_or(1);
        let messages = layers.iter().find_map(|one| one.messages).unwrap_or(written.messages);
        let repetitions =
            layers.iter().find_map(|one| one.repetitions).unwrap_or(written.repetitions);
        let (messages, repetitions) = match is_cut {
            true => (messages.min(MINI_MESSAGES.max(u64::from(clients))), 1),
            false => (messages, repetitions),
        };
        let mut wrong = Problems::default();
        if messages < u64::from(clients) || clients == 0 || repetitions == 0 {
            let text = format!(
                "{messages} messages of {clients} clients, {repetitions} repetitions: nothing to do"
            );
            let fix = "use at least one message per client, and one repetition";
            wrong.add(Problem::at(self.place.clone(), text, fix));
        }
        let within = time(written.within.as_ref(), WITHIN, &mut wrong);
        let lasts = layers.iter().find_map(|one| one.lasts.as_ref()).or(written.lasts.as_ref());
        let lasts = time(lasts, LASTS, &mut wrong);
        if within > WITHIN_MAX {
            let text = format!("within {within} is too long for one repetition");
            wrong.add(Problem::at(self.place.clone(), text, format!("type at most {WITHIN_MAX}")));
        }
        if !wrong.is_empty() {
            return Err(wrong);
        }
        let resolved = self.resolved(scale, messages, clients)?;
        Ok(ToolPlanned { resolved, messages, clients, repetitions, within, lasts })
    }

    /// The plan of the target; `None` where there is none.
    fn resolved(
        &self,
        scale: Scale,
        messages: u64,
        clients: u32,
    ) -> Result<Option<Resolved>, Problems> {
        let own: Vec<&DeTable<'_>> = match scale {
            Scale::Full => self.plan[..1].iter(),
            Scale::Quick => self.plan[..2].iter(),
            Scale::Mini => self.plan.iter(),
        }
        .flatten()
        .copied()
        .collect();
        if own.is_empty() {
            return Ok(None);
        }
        let mut wrong = Problems::default();
        for (key, _) in own.iter().flat_map(|table| table.iter()) {
            if SET_ELSEWHERE.contains(&key.get_ref().as_ref()) {
                let text = format!("{} is not allowed in the plan of a tool", key.get_ref());
                let fix = "use messages, clients and repetitions of the tool instead";
                wrong.add(Problem::at(key.span(), text, fix));
            }
        }
        if !wrong.is_empty() {
            return Err(wrong);
        }
        let load = format!(
            "load.messages = {messages}\nload.connections = {clients}\nload.warmup = \"0s\"\n\
             repeat.at_least = 1\n"
        );
        let load = tables::parse(&load)?;
        let load = placed(&load, &self.place);
        let layers: Vec<&DeTable<'_>> = std::iter::once(&load).chain(own).collect();
        let draft = weigh_plan::read_tables(&layers, Length::Whole, self.world)?;
        let resolved = draft.resolve(&format!("{}-{}", self.study, Way::Tools))?;
        let cases = &resolved.plan.cases;
        let target = |case: &weigh_model::trial::Point| {
            case.get("target").and_then(|value| value.as_str()).map(str::to_owned)
        };
        let elsewhere = cases.iter().filter_map(target).find(|name| name.contains("://"));
        let slip = match (elsewhere, cases.len()) {
            (Some(url), _) => Some((
                format!("{url}: a tool needs a target that weigh starts on this machine"),
                "name a target of weigh targets list, or reference",
            )),
            (None, 1) => None,
            (None, number) => {
                Some((format!("the plan has {number} cases"), "give every key one value"))
            }
        };
        if let Some((text, fix)) = slip {
            wrong.add(Problem::at(self.place.clone(), text, fix));
            return Err(wrong);
        }
        Ok(Some(resolved))
    }
}

fn has_hosts(planned: &ToolPlanned) -> bool {
    let Some(resolved) = &planned.resolved else { return false };
    let is_path = |key: &String| key.split('.').next() == Some("path");
    resolved.plan.observe.wire || resolved.plan.cases.iter().any(|case| case.keys().any(is_path))
}

fn compare(
    written: CompareFile,
    tool: &Tool,
    around: &Around<'_>,
) -> Result<ToolCompare, (String, String)> {
    let CompareFile { figure, what, with, factor } = written;
    let figures = tool.figures();
    if !figures.contains(&figure) {
        return Err(no_figure(tool, &figure));
    }
    let with = quantity_reading::read(&with, around, false)?;
    Ok(ToolCompare { figure, what, with, factor })
}

/// Reports places that have no value.
fn check_places(written: &ToolFile, wrong: &mut Problems) {
    let steps = written.before.iter().flat_map(|step| step.arguments.iter().chain(&step.line));
    let all = written.arguments.iter().chain(&written.line).chain(&written.emulation).chain(steps);
    for text in all {
        let unknown = places(text.get_ref()).into_iter().find(|name| !PLACES.contains(name));
        if let Some(name) = unknown {
            let said = format!("unknown placeholder {{{name}}}");
            let known: BTreeSet<String> = PLACES.iter().map(|name| format!("{{{name}}}")).collect();
            let known: Vec<String> = known.into_iter().collect();
            let fix = format!("type one of {}", known.join(" "));
            wrong.add(Problem::at(text.span(), said, fix));
        }
    }
}

/// The names in braces: lower-case letters alone, so that JSON is none.
fn places(text: &str) -> Vec<&str> {
    let inner = |part: &'_ str| part.split_once('}').map(|(name, _)| name.len());
    let parts = text.split('{').skip(1);
    let names = parts.filter_map(|part| Some(&part[..inner(part)?]));
    names.filter(|name| !name.is_empty() && name.chars().all(|c| c.is_ascii_lowercase())).collect()
}

fn time(written: Option<&Spanned<String>>, usual: Nanos, wrong: &mut Problems) -> Nanos {
    let Some(text) = written else { return usual };
    parse_duration(text.get_ref()).unwrap_or_else(|said| {
        let (said, fix) = said.split_once(": ").unwrap_or((&said, "type 30s"));
        wrong.add(Problem::at(text.span(), said, fix));
        usual
    })
}

fn step(written: super::written::StepFile) -> Step {
    Step {
        program: written.program,
        arguments: texts(written.arguments),
        line: written.line.map(Spanned::into_inner),
    }
}

fn texts(spanned: Vec<Spanned<String>>) -> Vec<String> {
    spanned.into_iter().map(Spanned::into_inner).collect()
}

const PLAN: &str = "plan";

/// Tables of a plan that a tool says in its own keys.
const SET_ELSEWHERE: [&str; 5] = ["load", "repeat", "vary", "case", "background"];

/// Commands of weigh that make the load of a tool.
const EMULATIONS: [&str; 3] = ["autocannon", "mqtt-stresser", "compare"];

/// Messages of a repetition in a test of seconds.
const MINI_MESSAGES: u64 = 4;

/// How long a repetition may take where nothing is said.
const WITHIN: Nanos = Nanos::from_secs(60);

/// The longest that a repetition may take.
const WITHIN_MAX: Nanos = Nanos::from_secs(600);

/// How long a repetition usually takes where nothing is said.
const LASTS: Nanos = Nanos::from_secs(1);

#[cfg(test)]
mod tests {
    use super::places;

    #[test]
    fn places_are_words_in_braces() {
        assert_eq!(places("{url}/messages?x={port}"), ["url", "port"]);
        assert!(places("{\"test\":1234}").is_empty());
        assert!(places("a { b } {} {A}").is_empty());
    }
}
