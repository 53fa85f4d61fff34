//! `weigh study list`: lists the studies.

use std::fmt::Write;
use std::path::PathBuf;

use clap::Args;
use serde_json::json;
use weigh_model::Nanos;
use weigh_study::{Scale, Study, Way};
use weigh_testbed::catalogue::Catalogue;

use crate::show::output;
use crate::show::terminal::Lines;
use weigh_runner::exit::{Exit, Stop};
use weigh_runner::study::external_servers::ExternalServers;
use weigh_runner::study::library::{self, Studies};
use weigh_runner::study::parts::{Asked, PartsContext, parts};
use weigh_runner::study::tool_parts::tools;

/// Flags of `weigh study list`.
#[derive(Args)]
pub struct List {
    /// Print the list as JSON
    #[arg(long)]
    json: bool,
    /// Folder whose studies/*/, targets and devices replace built-in ones of the same name
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
}

/// A study and its duration.
struct Row {
    study: Study,
    /// Shortest duration at each scale that users run.
    times: [(Scale, Nanos); 2],
}

impl List {
    /// Lists the studies by name.
    ///
    /// # Errors
    /// A folder of `--data` that cannot be read, and a study in it that is wrong.
    pub fn run(self) -> Result<Exit, Stop> {
        let data = self.data.as_deref();
        let catalogue = Catalogue::load(data).map_err(Stop::usage)?;
        let ground = PartsContext {
            catalogue: &catalogue,
            data,
            may_load: true,
            elsewhere: ExternalServers::default(),
        };
        let texts = Studies::load(data)?;
        let row = |texts| Row::of(library::read(texts, &catalogue, &Lines)?, &ground);
        let rows = texts.all().iter().map(row).collect::<Result<Vec<Row>, Stop>>()?;
        let text = if self.json { json_of(&rows) } else { text_of(&rows) };
        let put = if self.json { output::put_document } else { output::put };
        put(&text).map(|()| Exit::Done)
    }
}

impl Row {
    fn of(study: Study, ground: &PartsContext<'_>) -> Result<Row, Stop> {
        let time = |scale: Scale| {
            let asked = Asked { scale, ways: Way::ALL.to_vec(), only: Vec::new() };
            let plans = parts(&study, &asked, ground)?;
            let tools = tools(&study, &asked, ground)?;
            let times = plans.iter().map(|part| part.time);
            let times = times.chain(tools.iter().map(|tool| tool.time));
            let sum = times.fold(Nanos(0), |sum, time| sum + time);
            Ok::<_, Stop>((scale, sum))
        };
        let times = [time(Scale::Quick)?, time(Scale::Full)?];
        Ok(Row { study, times })
    }
}

fn text_of(rows: &[Row]) -> String {
    let width = rows.iter().map(|row| row.study.name.len()).max().unwrap_or(0);
    let mut text = String::new();
    for Row { study, times } in rows {
        let _ = writeln!(text, "{:width$}  {}", study.name, study.question);
        let (experiments, claims) = (study.experiments.len(), study.claims.len());
        let times = times.map(|(scale, time)| format!("{scale} {}", time.rough()));
        let _ = writeln!(
            text,
            "{:width$}  {experiments} experiments, {claims} claims; {}",
            "",
            times.join(", "),
        );
    }
    if rows.is_empty() {
        return "no study is built in, and --data names none\n".to_owned();
    }
    text + "\nweigh study show NAME describes a study; weigh study run NAME replays it\n"
}

fn json_of(rows: &[Row]) -> String {
    let row = |Row { study, times }: &Row| {
        json!({
            "name": study.name,
            "question": study.question,
            "experiments": study.experiments.len(),
            "claims": study.claims.len(),
            "time_s": times.iter().map(|(scale, time)| (scale.name(), time.as_secs_f64()))
                .collect::<std::collections::BTreeMap<_, _>>(),
        })
    };
    format!("{:#}\n", json!(rows.iter().map(row).collect::<Vec<_>>()))
}
