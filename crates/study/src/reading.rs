//! Reads a study and checks its files against each other: ids, runs, cells, quantities. Errors are
//! reported with their places, before anything is started.

use std::collections::BTreeSet;

use crate::audit::{Audit, Source, facts};
use toml::{Spanned, Table};
use weigh_plan::keys::Keys;
use weigh_plan::kind::nearest;
use weigh_plan::{Problem, Problems, World};

use crate::carry::{self, Asked};
use crate::claim_reading;
use crate::figure_reading;
use crate::plan_reading::{self, Placed};
use crate::plans::StudyPlan;
use crate::published::Published;
use crate::scale::Way;
use crate::slips::{Around, check_ids, no_cell};
use crate::study::{Environment, Experiment, Flag, Study};
use crate::texts::{FACTS, PUBLISHED, STUDY, StudyProblems, StudyTexts};
use crate::tools;
use crate::written::{ExperimentFile, FlagFile, StudyFile, text_of};

pub(crate) fn read(texts: &StudyTexts, world: &dyn World) -> Result<Study, StudyProblems> {
    let mut problems = StudyProblems::default();
    let file = file(texts).map_err(|wrong| {
        let mut problems = StudyProblems::default();
        problems.add(STUDY, wrong);
        problems
    })?;
    let mut wrong = Problems::default();
    if file.name.get_ref() != &texts.name {
        let text = format!("the folder of this study has another name, {:?}", texts.name);
        wrong.add(Problem::at(file.name.span(), text, "use one name for both"));
    }
    let published = Published::read(&texts.published, &file.source).unwrap_or_else(|wrong| {
        problems.add(PUBLISHED, wrong);
        Published::default()
    });
    let audit = audit(texts, &mut problems);
    let placed = plan_reading::read(texts, world, &mut problems);
    let tools = tools::read(texts, world, &mut problems);
    // What is wrong with a plan would be told again of everything that speaks of it.
    let is_sound = problems.is_empty();
    let plans: Vec<StudyPlan> = placed.iter().map(|(plan, _)| plan.clone()).collect();
    let keys = Keys::new(world.protocols());
    let alone = tools::alone(&tools);
    let around =
        Around { plans: &plans, tools: &alone, published: &published, audit: &audit, keys: &keys };
    let experiments = experiments(&file, &around, is_sound, &mut wrong);
    let carry = carried(&file, &plans, &mut wrong);
    let mut claims = Vec::new();
    let mut figures = Vec::new();
    let mut parameters = Vec::new();
    let mut complete = Vec::new();
    if is_sound {
        unnamed(&placed, &experiments, &mut problems);
        complete = tools::complete(tools, &around, &experiments, &mut problems);
        claims = claim_reading::read(&file, &experiments, &around, &mut wrong);
        parameters = claim_reading::parameters(&file, &around, &mut wrong);
        figures = figure_reading::read(&file, &around, &mut wrong);
    }
    let flags = file.flag.iter().filter_map(|flag| self::flag(flag, &around, &mut wrong)).collect();
    problems.add(STUDY, wrong);
    if !problems.is_empty() {
        return Err(problems);
    }
    let StudyFile { source, question, finding, limits, paper, environment, .. } = file;
    let stated = environment.stated.iter();
    Ok(Study {
        name: texts.name.clone(),
        source,
        question,
        finding,
        limits,
        paper,
        environment: Environment {
            stated: stated.map(|(key, value)| (key.clone(), text_of(Some(value)))).collect(),
            not_stated: environment.not_stated,
            ours: environment.ours,
        },
        experiments,
        claims,
        figures,
        carry,
        flags,
        parameters,
        published,
        plans,
        tools: complete,
        audit,
        readme: texts.readme.clone(),
        hash: texts.hash(),
    })
}

/// The file as it is written.
fn file(texts: &StudyTexts) -> Result<StudyFile, Problems> {
    toml::from_str(&texts.study).map_err(|error: toml::de::Error| {
        let place = error.span().unwrap_or(0..0);
        let fix = "docs/guide/add-a-study.md has every key with an example";
        let mut problems = Problems::default();
        problems.add(Problem::at(place, error.message().trim_end(), fix));
        problems
    })
}

/// The questions of how many units a server carries.
fn carried(file: &StudyFile, plans: &[StudyPlan], wrong: &mut Problems) -> Vec<Asked> {
    let is_plan = |name: &str| plans.is_empty() || plans.iter().any(|plan| plan.name == name);
    let read = |written: &Spanned<Table>| match carry::read(written.get_ref(), &is_plan) {
        Ok(asked) => Some(asked),
        Err(told) => {
            wrong.add(Problem::at(written.span(), told.text, told.fix));
            None
        }
    };
    file.carry.iter().filter_map(read).collect()
}

/// What an audit finds in the published figures.
fn audit(texts: &StudyTexts, problems: &mut StudyProblems) -> Audit {
    let mut tell = |file: &str, said: String| {
        let (text, fix) = said.rsplit_once("; ").unwrap_or((&said, ""));
        let mut wrong = Problems::default();
        wrong.add(Problem::missing(format!("{file}: {text}"), fix));
        problems.add(file, wrong);
    };
    let facts = texts.facts.as_deref().map_or(Ok(Vec::new()), |text| facts::read(FACTS, text));
    let facts = facts.unwrap_or_else(|unreadable| {
        tell(FACTS, unreadable.to_string());
        Vec::new()
    });
    let source = Source { name: PUBLISHED.to_owned(), text: texts.published.clone() };
    crate::audit::audit(&[source], &facts).unwrap_or_else(|unreadable| {
        // The reader of the figures tells the same at its line.
        if problems.is_empty() {
            let mut wrong = Problems::default();
            wrong.add(Problem::missing(unreadable.to_string(), ""));
            problems.add(PUBLISHED, wrong);
        }
        Audit::default()
    })
}

fn experiments(
    file: &StudyFile,
    around: &Around<'_>,
    is_sound: bool,
    wrong: &mut Problems,
) -> Vec<Experiment> {
    check_ids(file.experiment.iter().map(|experiment| &experiment.id), "experiment", wrong);
    let mut experiments = Vec::new();
    for written in &file.experiment {
        let mut runs = |way, named: &Option<Vec<Spanned<String>>>| {
            runs(written, way, named.as_deref(), around.plans, is_sound, wrong)
        };
        let published = runs(Way::Published, &written.published);
        let right = runs(Way::Right, &written.right);
        let has_none = published.is_empty() && right.is_empty();
        let id = written.id.get_ref();
        match &written.not_run {
            None if has_none && is_sound => wrong.add(Problem::at(
                written.id.span(),
                format!("the experiment {id} has no plan"),
                format!("write [{id}] in {}, or write why not: not_run", Way::Published.file()),
            )),
            Some(_) if !has_none => wrong.add(Problem::at(
                written.id.span(),
                format!("the experiment {id} has both plans and not_run"),
                "remove one",
            )),
            _ => {}
        }
        for table in &written.tables {
            if is_sound && !around.published.cells.iter().any(|cell| cell.table == *table) {
                let text = format!("{id}: no published figure is in {table:?}");
                let names = around.published.cells.iter().map(|cell| cell.table.as_str());
                let fix = nearest(table, names).map(|near| format!("did you mean {near:?}?"));
                wrong.add(Problem::at(written.id.span(), text, fix.unwrap_or_default()));
            }
        }
        experiments.push(Experiment {
            id: id.clone(),
            title: written.title.clone(),
            tables: written.tables.clone(),
            published,
            right,
            not_run: written.not_run.clone(),
            flaws: written.flaws.clone(),
        });
    }
    experiments
}

/// The runs of an experiment one way, by name.
fn runs(
    written: &ExperimentFile,
    way: Way,
    named: Option<&[Spanned<String>]>,
    plans: &[StudyPlan],
    is_sound: bool,
    wrong: &mut Problems,
) -> Vec<String> {
    let find = |table: &str| plans.iter().find(|plan| plan.way == way && plan.table == table);
    let Some(named) = named else {
        let own = find(written.id.get_ref()).map(|plan| plan.name.clone());
        return own.into_iter().collect();
    };
    let mut runs = Vec::new();
    for table in named {
        match find(table.get_ref()) {
            Some(plan) => runs.push(plan.name.clone()),
            None if is_sound => {
                let text = format!("{} has no plan [{}]", way.file(), table.get_ref());
                let names = plans.iter().filter(|plan| plan.way == way);
                let near = nearest(table.get_ref(), names.map(|plan| plan.table.as_str()));
                let fix = near.map(|near| format!("did you mean {near}?"));
                wrong.add(Problem::at(table.span(), text, fix.unwrap_or_default()));
            }
            None => {}
        }
    }
    runs
}

/// Plans that no experiment uses.
fn unnamed(placed: &[Placed], experiments: &[Experiment], problems: &mut StudyProblems) {
    let names: BTreeSet<&String> =
        experiments.iter().flat_map(|one| one.published.iter().chain(&one.right)).collect();
    for (plan, place) in placed.iter().filter(|(plan, _)| !names.contains(&plan.name)) {
        let mut wrong = Problems::default();
        let text = format!("no experiment names the plan {}", plan.table);
        let fix = format!("write {} = [\"{}\"] into one, or remove the plan", plan.way, plan.table);
        wrong.add(Problem::at(place.clone(), text, fix));
        problems.add(plan.way.file(), wrong);
    }
}

fn flag(written: &FlagFile, around: &Around<'_>, wrong: &mut Problems) -> Option<Flag> {
    let x = text_of(written.x.as_ref());
    let table = written.table.get_ref();
    if !x.is_empty() && around.published.find(table, &written.series, &x).is_none() {
        let text = no_cell(table, &written.series, &x);
        wrong.add(Problem::at(written.table.span(), text.0, text.1));
        return None;
    }
    Some(Flag {
        table: table.clone(),
        series: written.series.clone(),
        x,
        printed: written.printed.clone(),
        used: written.used.clone(),
        reason: written.reason.clone(),
        confidence: written.confidence.clone(),
    })
}
