//! `weigh limit`: finds the limit of a target, as two bounds for every goal.

use std::collections::BTreeMap;
use std::fmt::Write;
use weigh_model::numbers::exact;

use clap::Args;
use serde_json::json;
use weigh_limit::{Axis, AxisKind, Search};
use weigh_model::plan::{Plan, Repeat, TargetLife};
use weigh_model::units::parse_duration;
use weigh_model::{Load, Nanos, Pattern};
use weigh_plan::{World, patience};
use weigh_testbed::catalogue::Catalogue;

use crate::planning::conduct::RunOptions;
use crate::planning::lane_options::{LaneOptions, run_name, secrets};
use crate::planning::limit_goals::GoalOptions;
use crate::planning::limit_load;
use crate::planning::options::LoadOptions;
use crate::show::output;
use crate::show::terminal::Lines;
use weigh_runner::case::Case;
use weigh_runner::case::known::Known;
use weigh_runner::case::lanes::Lane;
use weigh_runner::case::secrets::Secrets;
use weigh_runner::exit::{Exit, Stop};
use weigh_runner::preflight::overhead;
use weigh_runner::search::axis_load;
use weigh_runner::search::length::{self, check_length, quantity};
use weigh_runner::search::needs;
use weigh_runner::search::request;
use weigh_runner::search::trials;

/// Flags of `weigh limit`.
#[derive(Args)]
#[command(mut_arg("messages", |arg| arg.hide(true)))]
#[command(mut_arg("duration", |arg| arg.hide(true)))]
#[command(mut_arg("save_plan", |arg| arg.hide(true)))]
pub struct Limit {
    /// Protocols (mqtt, http), targets (mosquitto) or URLs (mqtt://HOST:PORT)
    ///
    /// A target may name a profile: mosquitto@no-limits. Without arguments: MQTT at QoS 0, 1 and 2,
    /// HTTP and TCP, and Mosquitto where it is installed.
    #[arg(value_name = "PROTOCOL|TARGET|URL")]
    words: Vec<String>,
    /// Increase rate, connections, burst, subscribers or size
    #[arg(long, value_name = "AXIS", default_value = "rate", value_parser = axis_kind)]
    axis: AxisKind,
    /// Smallest load, with its unit [default: 100/s]
    ///
    /// Defaults: 100/s, 1 connection, a burst of 10 messages, 1 subscriber, 64B.
    #[arg(long, value_name = "LOAD")]
    from: Option<String>,
    /// Largest load, with its unit [default: 1M/s]
    ///
    /// Defaults: 1M/s, 10k connections, a burst of 1M messages, 1k subscribers, 1MiB.
    #[arg(long, value_name = "LOAD")]
    to: Option<String>,
    #[command(flatten)]
    goals: GoalOptions,
    /// Stop searching after this time [default: 1m per protocol and target]
    ///
    /// No trial starts that would end later. The time is divided equally among protocols and
    /// targets. With a preset other than minute there is no limit.
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    budget: Option<Nanos>,
    /// Keep one target process for all trials of a lane instead of a fresh one for each
    #[arg(long)]
    keep_target: bool,
    /// Repeat at 1.5 times the failing load with one, then two generators, to rule out the
    /// generator as the bottleneck
    #[arg(long)]
    second_generator: bool,
    #[command(flatten)]
    load: LoadOptions,
    #[command(flatten)]
    shared: LaneOptions,
    /// Name of the run
    #[arg(long, value_name = "NAME", default_value = "limit", value_parser = run_name)]
    name: String,
    #[command(flatten)]
    run_options: RunOptions,
}

fn axis_kind(text: &str) -> Result<AxisKind, String> {
    let full = if text == "size" { AxisKind::MessageSize.name() } else { text };
    full.parse().map_err(|_| {
        format!("unknown axis {text:?}: type rate, connections, burst, subscribers or size")
    })
}

/// A lane and its search.
struct Wanted {
    lane: Lane,
    load: Load,
    search: Search,
}

impl Limit {
    /// Searches and prints the limits.
    ///
    /// # Errors
    /// Words, flags or goals that are wrong, targets that cannot be started or reached, and a
    /// record that cannot be written.
    pub fn run(self) -> Result<Exit, Stop> {
        let catalogue = self.run_options.catalogue()?;
        let axis = limit_load::axis(self.axis, self.from.as_deref(), self.to.as_deref())?;
        let wanted = self.wanted(&catalogue, &axis)?;
        let (plan, secrets) = self.plan(&catalogue, &wanted)?;
        let searches: Vec<Search> = wanted.iter().map(|own| own.search.clone()).collect();
        let second = self.second_generator;
        let largest = |cases: &[Case]| request::largest(cases, &searches);
        self.run_options.announce_search(wanted.len());
        let mut runner = self.run_options.runner(&catalogue)?;
        let plan = self.run_options.searched(plan)?;
        if self.run_options.is_dry() {
            runner.check_fleet(&plan, &secrets)?;
            // Nothing is started, so no agent is needed.
            runner.fleet = None;
        }
        let experiment = runner.search(plan, &secrets, largest)?;
        if self.run_options.is_dry() {
            let overhead = |case: &Case| overhead::in_search(case, &catalogue);
            let overheads: Vec<Nanos> = experiment.cases.iter().map(overhead).collect();
            return self.tell(&wanted, &overheads);
        }
        self.run_options.show(experiment.run_with(
            move |experiment: &_, folder: &_, interrupts: &_, chronicle: &mut _| {
                trials::begin(experiment, &searches, second, folder, interrupts, chronicle)
            },
        )?)
    }

    /// Returns the lanes with their searches.
    fn wanted(&self, catalogue: &Catalogue, axis: &Axis) -> Result<Vec<Wanted>, Stop> {
        let given = self.shared.given()?;
        let lanes = self.shared.lanes(&self.words, catalogue, &given, &self.load)?;
        let usual =
            self.goals.asked().fit_a_minute().then(|| Nanos(LANE_BUDGET.0 * lanes.len() as u64));
        let budget = self.budget.or(usual);
        let share = budget.map(|budget| request::share(budget, lanes.len()));
        let options = limit_load::with_axis(&self.load, axis)?;
        let mut wanted = Vec::new();
        for lane in lanes {
            let protocol = lane.protocol.name();
            let patterns = lane.patterns();
            let pattern = self.load.words.pattern.unwrap_or(patterns[0]);
            let topology = options.words.topology;
            axis_load::check(axis.kind(), protocol, pattern, topology)?;
            let mut load = options.load(protocol, patterns)?;
            let goals = self.goals.asked().goals(&load)?;
            let is_near = !self.shared.has_hosts() && lane.against.is_on_this_machine();
            if !self.load.has_timeout() && is_near && axis_load::can_pile_up(&load) {
                load.timeout = load.timeout.min(length::usual_timeout(&goals));
            }
            let mut search = Search::new(*axis, goals);
            search.budget = share;
            search.quantity = quantity(&search, &load)?;
            check_length(&search, &load, budget)?;
            self.check_second_generator(&lane, &search, &load)?;
            wanted.push(Wanted { lane, load, search });
        }
        self.shared.check_used(&given, wanted.iter().map(|own| &own.lane))?;
        let loads = wanted.iter().map(|own| &own.load);
        options.check_topology(loads, wanted.iter().map(|own| &own.lane))?;
        Ok(wanted)
    }

    /// Refuses a second generator for loads that two generators cannot share.
    fn check_second_generator(
        &self,
        lane: &Lane,
        search: &Search,
        load: &Load,
    ) -> Result<(), Stop> {
        let kind = search.axis.kind();
        let is_divisible = matches!(kind, AxisKind::Rate | AxisKind::Connections);
        let refused = match (self.second_generator, load.pattern) {
            (false, _) => return Ok(()),
            _ if self.shared.has_hosts() => {
                "an emulated link or a capture needs one generator: leave out --path, --wire, \
                 --pcap and --offload"
            }
            _ if self.run_options.has_fleet() => {
                "a fleet has several generators already: leave out --fleet"
            }
            _ if self.shared.has_relay() => "a relay has one generator: leave out --relay",
            // The certificates of a run exist only in its process.
            _ if weigh_model::tls::is_on(&lane.settings) && !lane.is_foreign() => {
                "the certificates of a run are for one generator: leave out --tls"
            }
            (true, Pattern::Hold) => "idle connections have no throughput: leave it out",
            _ if !is_divisible => {
                "two generators cannot share this axis: type --axis rate or \
                                   --axis connections"
            }
            _ => return Ok(()),
        };
        Err(Stop::usage(format!("--second-generator: {refused}")))
    }

    fn plan(&self, catalogue: &Catalogue, wanted: &[Wanted]) -> Result<(Plan, Secrets), Stop> {
        let draft = |own: &Wanted| self.shared.draft(&own.lane, &own.load);
        let mut drafts = wanted.iter().map(draft).collect::<Result<Vec<_>, _>>()?;
        let known = Known::new(catalogue, &Lines);
        let is_given = |_| self.load.has_timeout();
        patience::lengthen(&mut drafts, is_given, |draft| known.patience(draft));
        let target = if self.keep_target { TargetLife::Kept } else { TargetLife::Fresh };
        let repeat = Repeat { target, ..Repeat::exactly(1) };
        let plan = self.shared.plan(&self.name, &drafts, repeat, catalogue)?;
        let (by_url, settings) = secrets(wanted.iter().map(|own| &own.lane));
        Ok((plan, self.run_options.secrets(by_url, settings)?))
    }

    /// Prints the searches that would run.
    fn tell(&self, wanted: &[Wanted], overheads: &[Nanos]) -> Result<Exit, Stop> {
        if self.run_options.is_json() {
            let lanes =
                wanted.iter().zip(overheads).map(|(Wanted { lane, load, search }, overhead)| {
                    let (protocol, target) = (lane.protocol.name(), lane.against.name());
                    let settings: BTreeMap<_, _> = lane.shown().collect();
                    json!({ "protocol": protocol, "target": target, "settings": settings,
                        "load": load, "search": search,
                        "needs": needs::of(search, *overhead) })
                });
            let document = json!({ "lanes": lanes.collect::<Vec<_>>() });
            return output::put_document(&format!("{document:#}\n")).map(|()| Exit::Done);
        }
        let mut text = String::new();
        for (Wanted { lane, load, search }, overhead) in wanted.iter().zip(overheads) {
            let (axis, unit) = (search.axis, search.axis.kind().unit());
            let settings: String =
                lane.shown().map(|(key, value)| format!(" {key}={value}")).collect();
            let _ = writeln!(
                text,
                "{}{settings} {} against {}: {} from {} to {}{unit}",
                lane.protocol.name(),
                load.pattern,
                lane.against.name(),
                axis.kind(),
                exact(axis.min()),
                exact(axis.max()),
            );
            for goal in &search.goals {
                let least = goal.duration_sum.as_secs_f64() * (1.0 - goal.exceed_ratio);
                let least = Nanos::from_secs_f64(least).max(goal.final_trial_duration);
                let decides = match least == goal.duration_sum {
                    true => goal.duration_sum.to_string(),
                    false => format!("{least} to {}", goal.duration_sum),
                };
                let _ = writeln!(
                    text,
                    "  {}: bounds {} % apart, at most {} % lost; a load near the limit is tried \
                     for {decides} in all",
                    goal.name,
                    exact(100.0 * goal.width),
                    exact(100.0 * goal.loss_ratio),
                );
            }
            text += &needs::text(search, *overhead);
        }
        output::put(&text).map(|()| Exit::Done)
    }
}

/// Default budget of a lane.
const LANE_BUDGET: Nanos = Nanos::from_secs(60);
