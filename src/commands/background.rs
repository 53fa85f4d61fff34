//! `weigh background`: the generator of a background load, started by `weigh` itself. It prints a
//! line when it is ready, runs until its stdin ends, and then prints its result.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, channel};

use clap::Args;
use weigh_engine::job::Progress;
use weigh_model::event::Interval;
use weigh_model::plan::{Plan, TargetLife};
use weigh_model::{Load, Pattern, Trial};
use weigh_testbed::catalogue::Catalogue;
use weigh_testbed::pinning::{CoreSet, Pinning};

use crate::planning::conduct::{password_of_environment, secrets_of};
use crate::show::output;
use crate::show::terminal::Lines;
use weigh_runner::case::{Case, decide};
use weigh_runner::exit::{Exit, Stop};
use weigh_runner::interrupts::Interrupts;
use weigh_runner::probes::background::{BackgroundReport, FAILED, INTERVAL, RAN, UP};
use weigh_runner::probes::metering::Metering;
use weigh_runner::targets::hosts::Stage;
use weigh_runner::targets::observers::Observers;
use weigh_runner::targets::pool::Targets;
use weigh_runner::trial::context::TrialOptions;
use weigh_runner::trial::identity::Trials;
use weigh_runner::trial::measure;
use weigh_runner::trial::news::TrialNews;
use weigh_runner::trial::series::Series;
use weigh_runner::trial::ticks::Ticks;

/// Flags of `weigh background`.
#[derive(Args)]
pub struct Background {
    /// The resolved plan of one case
    plan: PathBuf,
    /// Threads of the generator
    #[arg(long, default_value_t = 1)]
    shards: u32,
    /// The measured generator runs on the same core, and goes first
    #[arg(long)]
    shares_core: bool,
    /// User name at the target; the password comes from WEIGH_PASSWORD
    #[arg(long)]
    user: Option<String>,
}

impl Background {
    /// Runs the background load.
    ///
    /// # Errors
    /// A load that cannot run; standard output has the reason too.
    pub fn run(self) -> Result<Exit, Stop> {
        match self.ran() {
            Ok(told) => {
                let json = serde_json::to_string(&told);
                let json = json.map_err(|error| Stop::new(Exit::Internal, error))?;
                output::put_document(&format!("{RAN}{json}\n")).map(|()| Exit::Done)
            }
            Err(stop) => {
                output::put_document(&format!(
                    "{FAILED}{}\n",
                    stop.to_string().replace('\n', " ")
                ))?;
                Err(stop)
            }
        }
    }

    fn ran(&self) -> Result<BackgroundReport, Stop> {
        let text = std::fs::read_to_string(&self.plan)?;
        let plan = Plan::from_toml(&text).map_err(Stop::usage)?;
        let catalogue = Catalogue::load(None).map_err(Stop::usage)?;
        let password = password_of_environment().unwrap_or_default();
        let user = self.user.as_deref().map(|user| (user, password));
        let secrets = secrets_of(user, BTreeMap::new(), BTreeMap::new());
        let cases = decide(&plan, &catalogue, &secrets)?;
        let case = cases.first().ok_or_else(|| Stop::usage("the plan has no case: add one"))?;
        let trial = Trial { seed: plan.seed, ..Trials::new(&plan, &cases).trial(0, case, 0) };
        let interrupts = Interrupts::listen(Box::new(Lines))?;
        let asked = std::sync::Arc::clone(&interrupts);
        std::thread::Builder::new().name("weigh-stdin".to_owned()).spawn(move || {
            // The end of stdin means that the measuring process has ended, for any reason.
            let _ = std::io::stdin().read_to_end(&mut Vec::new());
            asked.ask();
        })?;
        let cores = CoreSet::allowed()?;
        let pinning = Pinning {
            target: cores.clone(),
            generator: cores.clone(),
            shared: self.shares_core,
            aside: cores,
        };
        let (progress, heard) = channel();
        let options = TrialOptions {
            pinning: &pinning,
            shards: self.shards,
            every: Some(INTERVAL),
            interrupts: &interrupts,
            progress,
            messages: None,
            stage: Stage::default(),
            metering: &Metering::default(),
            lookouts: &Observers::default(),
            say: &|_| {},
            emulate: &[],
            background: None,
            fleet: None,
        };
        let folder = self.plan.with_extension("targets");
        let program = std::env::current_exe()?;
        let mut targets =
            Targets::new(TargetLife::Fresh, &catalogue, self.shards, folder, &program);
        let (weighed, intervals) = std::thread::scope(|scope| {
            let follower = scope.spawn(move || follow(&heard, case, self.shards));
            let weighed = measure::run(&case.lane, trial, &case.material, &options, &mut targets);
            drop(options);
            (weighed, follower.join().unwrap_or_default())
        });
        let weighed = weighed?;
        Ok(BackgroundReport { epoch_ns: weighed.epoch_ns, intervals, finished: weighed.finished })
    }
}

/// Adds up the intervals, and prints a line when the load is ready.
fn follow(heard: &Receiver<TrialNews>, case: &Case, shards: u32) -> Vec<Interval> {
    // It is ended from outside, long before its own end.
    let lasting = Load { duration: None, ..case.load.clone() };
    let (mut ticks, mut series) = (Ticks::new(shards), Series::new(&lasting, Some(INTERVAL)));
    let mut intervals = Vec::new();
    let holds = case.load.pattern == Pattern::Hold;
    let mut is_up = false;
    for news in heard {
        match news {
            TrialNews::Shard(shard, Progress::Interval(told)) => {
                if !is_up && (told.interval.sent > 0 || holds) {
                    is_up = true;
                    // If the line cannot be written, the parent has ended, and stdin ends too.
                    let _ = output::put_document(&format!("{UP}\n"));
                }
                ticks.add(shard, *told);
            }
            TrialNews::Shard(shard, Progress::Settled) => ticks.settle(shard),
            _ => continue,
        }
        std::iter::from_fn(|| ticks.next_complete()).for_each(|tick| series.add(tick));
        intervals.extend(std::iter::from_fn(|| series.next_known()));
    }
    ticks.rest().for_each(|tick| series.add(tick));
    series.end();
    intervals.extend(std::iter::from_fn(|| series.next_known()));
    intervals
}
