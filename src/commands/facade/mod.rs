//! Commands that accept the flags of other tools. They run the same load and print the figures that
//! the tool would have printed next to the exact ones. A tool is a table of flags and its
//! arithmetic.

mod autocannon;
mod http;
mod k6;
mod mqtt_stresser;
mod oha;
mod reading;
mod tool;
mod wrk;

use clap::{Args, FromArgMatches, Subcommand};
use weigh_model::Nanos;
use weigh_model::plan::{Observe, Plan, Repeat};
use weigh_model::warnings::Severity;
use weigh_runner::case::lanes::{self, Given as GivenKeys};
use weigh_runner::case::secrets::Secrets;
use weigh_runner::emulate::Comparison;
use weigh_runner::emulate::comparison::{self, Left};
use weigh_runner::exit::{Exit, Stop};
use weigh_runner::run::experiment::Finished;
use weigh_runner::run::history::not_recorded;
use weigh_testbed::catalogue::Catalogue;

use crate::planning::conduct::RunOptions;
use crate::planning::lane_options::{plan_of, secrets};
use crate::planning::request_options::RequestOptions;
use crate::show::output;
use crate::show::terminal::Lines;
use tool::{Account, Asked, Tool};

/// Commands of `weigh like`.
#[derive(Args)]
pub struct Like {
    #[command(subcommand)]
    tool: Named,
}

/// A tool by its name.
#[derive(Subcommand)]
enum Named {
    /// Run a load with the options of wrk, or of wrk2 where a rate is given
    #[command(disable_help_flag = true)]
    Wrk(Words),
    /// Run a load with the options of autocannon
    #[command(disable_help_flag = true)]
    Autocannon(Words),
    /// Run a load with the options of oha
    #[command(disable_help_flag = true)]
    Oha(Words),
    /// Run a load with the options of k6
    #[command(disable_help_flag = true)]
    K6(Words),
    /// Run a load with the options of mqtt-stresser
    #[command(disable_help_flag = true)]
    MqttStresser(Words),
}

impl Like {
    /// Runs the load of the named tool, and prints its figures and the exact ones.
    ///
    /// # Errors
    /// If the load is not valid, or the run fails.
    pub fn run(self) -> Result<Exit, Stop> {
        match self.tool {
            Named::Wrk(words) => words.run(&wrk::TOOL),
            Named::Autocannon(words) => words.run(&autocannon::TOOL),
            Named::Oha(words) => words.run(&oha::TOOL),
            Named::K6(words) => words.run(&k6::TOOL),
            Named::MqttStresser(words) => words.run(&mqtt_stresser::TOOL),
        }
    }
}

/// Words after the command of a tool, which are the flags of that tool.
#[derive(Args)]
struct Words {
    /// Flags and values of the tool; weigh like TOOL --help lists them
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    words: Vec<String>,
}

impl Words {
    fn run(self, tool: &Tool) -> Result<Exit, Stop> {
        let given = match tool.read(&self.words) {
            Ok(given) => given,
            Err(exit) => return Ok(exit),
        };
        let asked = tool.ask(&given)?;
        let run_options = RunOptions::from_arg_matches(&given.0)
            .map_err(|error| Stop::new(Exit::Internal, error.to_string()))?;
        let run_options = run_options.with_shards(asked.shards).quieter(asked.is_quiet);
        let catalogue = run_options.catalogue()?;
        let (plan, secrets) = tool.planned(&asked, &run_options, &catalogue)?;
        let offer = || {
            let serve = format!("weigh serve {}", tool.serves);
            eprintln!("weigh: to start a server, type {serve}, which prints its address");
        };
        let weighed = run_options.weigh(&catalogue, plan, &secrets).inspect_err(|stop| {
            if stop.exit() == Exit::Target {
                offer();
            }
        });
        let Some(finished) = weighed? else {
            return Ok(Exit::Done);
        };
        if run_options.is_json() || finished.summary.cells.is_empty() {
            let ended = run_options.show(finished);
            if let Ok(Exit::Target) = ended {
                offer();
            }
            return ended;
        }
        match &tool.account {
            Account::Emulated(compare) => {
                output::put(&account(&finished, &asked, |left| compare(left, &given))?)?;
                run_options.ended(finished)
            }
            Account::Measured(sentence) => {
                let ended = run_options.show(finished);
                output::put(&format!("\n{sentence}\n"))?;
                ended
            }
        }
    }
}

impl Tool {
    /// Returns the plan of one case and one repetition, and the secrets that no plan contains.
    fn planned(
        &self,
        asked: &Asked,
        run_options: &RunOptions,
        catalogue: &Catalogue,
    ) -> Result<(Plan, Secrets), Stop> {
        let word = &asked.word;
        let given = GivenKeys::parse(&asked.sets)?;
        let lanes = lanes::lanes(std::slice::from_ref(word), catalogue, &given, &Lines)?;
        let lanes = RequestOptions::of_headers(asked.headers.clone()).apply(lanes)?;
        if let Some(key) = given.unused(lanes.iter()) {
            let spoken = key.split('.').next().unwrap_or_default();
            return Err(Stop::usage(format!(
                "{word}: not a server of {spoken}\nhelp: give its URL"
            )));
        }
        let [lane] = lanes.as_slice() else {
            return Err(Stop::usage(format!("{word}: several servers\nhelp: name one server")));
        };
        let load = asked.words.decide(lane.protocol.name(), lane.patterns()).map_err(|wrong| {
            let wrong = wrong[0].in_plan();
            Stop::usage(format!("{}: {}\nhelp: {}", asked.name, wrong.text, wrong.fix))
        })?;
        let emulate = self.emulate.to_vec();
        let observe = Observe { emulate, every: Some(EVERY), ..Observe::default() };
        let drafts = [lane.with(load)];
        let plan = plan_of((asked.name, 1), &drafts, Repeat::exactly(1), observe, catalogue)?;
        let (by_url, settings) = secrets(lanes.iter());
        let mut secrets = run_options.secrets(by_url, settings)?;
        secrets.user = asked.user.clone().or(secrets.user);
        Ok((plan, secrets))
    }
}

/// Returns the figures of the tool and the exact ones, from the journal of the run.
fn account(
    finished: &Finished,
    asked: &Asked,
    compare: impl FnOnce(&Left<'_>) -> Comparison,
) -> Result<String, Stop> {
    let cell = &finished.summary.cells[0];
    let events = finished.folder.read_journal().map_err(not_recorded)?.events;
    let no_result = || Stop::new(Exit::Internal, "the journal has no result");
    let (trial, intervals) = comparison::one_trial(events).ok_or_else(no_result)?;
    let load = &finished.summary.run.plan.load;
    let left = Left { load, finished: &trial, intervals: &intervals };
    let comparison = compare(&left);
    let mut text = format!("{} on {}\n\n{}", asked.name, cell.target, comparison.text());
    for warning in cell.warnings.iter().filter(|warning| warning.severity != Severity::Warning) {
        text += &format!("\ninvalid: {}; {}\n", warning.text, warning.advice);
    }
    text += &format!("\nrun: {}\n", finished.folder.path().display());
    Ok(text)
}

/// All tools.
#[cfg(test)]
const TOOLS: [&Tool; 5] =
    [&autocannon::TOOL, &k6::TOOL, &mqtt_stresser::TOOL, &oha::TOOL, &wrk::TOOL];

/// Length of the intervals in the time series: ten for each one of the tools.
const EVERY: Nanos = Nanos::from_millis(100);

#[cfg(test)]
mod tests {
    use super::*;
    use weigh_plan::load_keys;

    /// Checks that names are unique, and that keys take the values of the tables.
    #[test]
    fn tables_name_no_flag_twice_and_no_key_that_there_is_not() {
        for tool in TOOLS {
            for (key, text) in tool.load {
                let key = load_keys::find(key).expect("a key of the load");
                assert!(key.kind.read_word(text).is_ok(), "{text}");
            }
            let table = tool.table();
            let mut names: Vec<&str> = table.iter().flat_map(|own| own.names.split(' ')).collect();
            names.retain(|name| name.starts_with('-'));
            names.sort_unstable();
            assert!(names.windows(2).all(|two| two[0] != two[1]), "{names:?}");
            for word in table.iter().flat_map(|flag| flag.words.split(", ")) {
                match word.split_once(' ') {
                    Some(("load", key)) => assert!(load_keys::find(key).is_some(), "{key}"),
                    Some((word, _)) => {
                        assert!(["set", "number", "default", "excludes"].contains(&word));
                    }
                    None => assert!(ALONE.contains(&word), "{word}"),
                }
            }
        }
    }

    const ALONE: [&str; 7] = ["", "time", "seconds", "truth", "required", "many", "refused"];
}
