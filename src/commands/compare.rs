//! `weigh compare`: compares protocols or servers under the same load, in one table.

use clap::Args;
use weigh_model::plan::{Plan, Repeat};
use weigh_model::units::parse_duration;
use weigh_model::{Nanos, Pattern};
use weigh_plan::{Case, World, patience};
use weigh_testbed::catalogue::Catalogue;

use crate::planning::conduct::RunOptions;
use crate::planning::counts::counts;
use crate::planning::energy::EnergyOptions;
use crate::planning::lane_options::{LaneOptions, run_name, secrets};
use crate::planning::main_job;
use crate::planning::options::LoadOptions;
use crate::show::terminal::Lines;
use weigh_runner::case::background_words::with_background;
use weigh_runner::case::known::Known;
use weigh_runner::case::lanes::{self, Lane};
use weigh_runner::case::main_job as main_case;
use weigh_runner::case::secrets::Secrets;
use weigh_runner::exit::{Exit, Stop};
use weigh_runner::watcher::Watcher;

/// Flags of `weigh compare`.
#[derive(Args)]
pub struct Compare {
    /// Protocols (mqtt, http), targets (mosquitto) or URLs (mqtt://HOST:PORT);
    /// without any: mqtt, http, http2, grpc, coap and tcp
    ///
    /// A target may name a profile: mosquitto@no-limits. `pipeline` measures the built-in storage
    /// pipeline over each protocol that it accepts, `pipeline@http` only over HTTP.
    ///
    /// Without names, 100 connections publish 2,000 messages/s to built-in servers over MQTT at QoS
    /// 0, 1 and 2, HTTP/1.1 (also with a connection for each message), TCP, CoAP, HTTP/2 and gRPC.
    /// MQTT at QoS 1 also delivers to a subscriber, and CoAP is measured with confirmation and
    /// without. If Mosquitto is installed, it takes the same MQTT cases. These are 15 cases, 11
    /// without Mosquitto, and take about a minute.
    #[arg(value_name = "PROTOCOL|TARGET|URL")]
    words: Vec<String>,
    #[command(flatten)]
    load: LoadOptions,
    #[command(flatten)]
    shared: LaneOptions,
    /// Let subscribers stop reading for TIME, and count what is lost
    ///
    /// TIME follows an equals sign: --stalled-subscriber=3s. Subscribers read nothing for this time
    /// from the start of the measurement, then they read the backlog. Without TIME, they read
    /// nothing until the time of -d is over. Defaults with this option: the pattern deliver, one
    /// publisher, QoS 1, bodies of 1 kB, -d 10s. Without targets: the reference broker and every
    /// installed broker.
    #[arg(long, value_name = "TIME", num_args = 0..=1, require_equals = true,
        default_missing_value = "", value_parser = stall_time)]
    stalled_subscriber: Option<Stalled>,
    /// Number of repetitions of every case
    #[arg(
        long,
        value_name = "N",
        default_value_t = 3,
        value_parser = counts(1..=u32::MAX)
    )]
    reps: u32,
    /// Measure every case twice: alone, and beside a second load
    ///
    /// WORDS are a protocol, then KEY=VALUE pairs, such as "mqtt publishers=100 rate=10/s/client
    /// size=64B mqtt.qos=1". The keys are those of [background] in a plan
    /// (docs/guide/interference.md).
    #[arg(long, value_name = "WORDS")]
    background: Option<String>,
    /// Record each message in the file messages/TRIAL.parquet of the run
    #[arg(long)]
    keep_messages: bool,
    /// Name of the run
    #[arg(long, value_name = "NAME", default_value = "compare", value_parser = run_name)]
    name: String,
    #[command(flatten)]
    energy: EnergyOptions,
    #[command(flatten)]
    run_options: RunOptions,
}

impl Compare {
    /// Runs the comparison and prints the table.
    ///
    /// # Errors
    /// Words or flags that are wrong, targets that cannot be started or reached, and a record that
    /// cannot be written.
    pub fn run(self) -> Result<Exit, Stop> {
        let catalogue = self.run_options.catalogue()?;
        let (plan, secrets) = self.plan(&catalogue)?;
        self.run_options.ask((plan.cases.len() as u64).saturating_mul(u64::from(self.reps)))?;
        self.run_options.conduct(&catalogue, plan, &secrets)
    }

    /// Refuses a time after `--stalled-subscriber` without `=`, which would be a target.
    fn check_stall_time(&self) -> Result<(), Stop> {
        let is_time = |word: &&String| parse_duration(word).is_ok();
        let time = self.words.iter().find(is_time).filter(|_| self.stalled_subscriber.is_some());
        time.map_or(Ok(()), |time| {
            Err(Stop::usage(format!(
                "--stalled-subscriber {time}: the time is not joined by =\nhelp: write \
                 --stalled-subscriber={time}, with ="
            )))
        })
    }

    /// Returns the plan of these flags, and the secrets that no plan contains.
    fn plan(&self, catalogue: &Catalogue) -> Result<(Plan, Secrets), Stop> {
        let mut given = self.shared.given()?;
        let (mut words, mut options) = (self.words.clone(), self.load.clone());
        self.check_stall_time()?;
        if let Some(Stalled(lasts)) = self.stalled_subscriber {
            options = options.stalled(lasts);
            if words.is_empty() {
                words = lanes::brokers(catalogue);
            }
            // Of MQTT one QoS is enough; a setting of a protocol that is not measured is refused.
            let asked = self.shared.lanes(&words, catalogue, &given, &options)?;
            if asked.iter().any(|lane| lane.protocol.name() == "mqtt") {
                given.put("mqtt.qos", "1");
            }
        }
        let is_main = words.is_empty();
        let given_load = options.clone();
        if is_main {
            options = main_job::load(&options);
            let pattern = options.words.pattern.unwrap_or(Pattern::Publish);
            words = main_case::words(catalogue, pattern);
        }
        let mut lanes = self.shared.lanes(&words, catalogue, &given, &options)?;
        if is_main && options.words.pattern == Some(Pattern::Publish) {
            lanes = main_case::with_connections_per_message(lanes)?;
        }
        let mut drafts = self.drafts(lanes.iter(), &options)?;
        if let Some(delivery) = main_job::delivery(&given_load).filter(|_| is_main) {
            let delivering = lanes.iter().filter(|lane| main_case::delivers(lane));
            drafts.extend(self.drafts(delivering, &delivery)?);
        }
        self.shared.check_used(&given, lanes.iter())?;
        options.check_topology(drafts.iter().map(|draft| &draft.load), lanes.iter())?;
        let known = Known::new(catalogue, &Lines);
        if let Some(words) = &self.background {
            drafts = with_background(words, drafts, &known)?;
        }
        patience::lengthen(&mut drafts, |_| options.has_timeout(), |draft| known.patience(draft));
        let repeat = Repeat::exactly(self.reps);
        let mut plan = self.shared.plan(&self.name, &drafts, repeat, catalogue)?;
        plan.observe.messages = self.keep_messages;
        if is_main {
            plan.observe.wire |= self.counts_bytes();
            plan.observe.sys = main_job::counters(plan.observe.sys);
        }
        plan.energy = self.energy.asked(&self.run_options.devices()?)?;
        let (mut by_url, settings) = secrets(lanes.iter());
        by_url.extend(known.into_credentials());
        Ok((plan, self.run_options.secrets(by_url, settings)?))
    }
}

impl Compare {
    /// Returns the cases of `lanes` under a load, those that would repeat another left out.
    fn drafts<'l>(
        &self,
        lanes: impl Iterator<Item = &'l Lane>,
        options: &LoadOptions,
    ) -> Result<Vec<Case>, Stop> {
        let mut drafts: Vec<Case> = Vec::new();
        for lane in lanes {
            let load = options.load(lane.protocol.name(), lane.patterns())?;
            for draft in self.shared.drafts(lane, &load)? {
                if !repeats_hold(&drafts, &draft) {
                    drafts.push(draft);
                }
            }
        }
        Ok(drafts)
    }

    /// True if the main job counts bytes without being asked; prints a note if the kernel does not
    /// permit it. A background load would be on the same wire.
    fn counts_bytes(&self) -> bool {
        if self.background.is_some() || self.shared.has_hosts() || self.run_options.has_fleet() {
            return false;
        }
        let counted = main_job::can_count_bytes();
        counted.map_err(|note| Lines.note(&note)).is_ok()
    }
}

/// Time for which subscribers read nothing, if given.
#[derive(Clone, Copy)]
struct Stalled(Option<Nanos>);

fn stall_time(text: &str) -> Result<Stalled, String> {
    match text {
        "" => Ok(Stalled(None)),
        text => parse_duration(text).map(|time| Stalled(Some(time))),
    }
}

/// True if `new` repeats a draft: idle connections do not depend on the delivery guarantee, so
/// lanes that differ only in it are one.
fn repeats_hold(drafts: &[Case], new: &Case) -> bool {
    let standing = |draft: &Case| {
        let mut standing = draft.clone();
        standing.words.retain(|key, _| !key.ends_with(GUARANTEE));
        standing
    };
    let new_standing = standing(new);
    new.load.pattern == Pattern::Hold && drafts.iter().any(|old| standing(old) == new_standing)
}

/// End of the name of MQTT's key for the guarantee.
const GUARANTEE: &str = ".qos";

#[cfg(test)]
mod tests {
    use super::*;
    use weigh_model::{Load, Pattern};
    use weigh_plan::case::Offload;

    fn hold(qos: u8) -> Case {
        let mut case = Case::new("mqtt", "reference", Load::closed(Pattern::Hold, 1));
        case.words.insert("mqtt.qos".to_owned(), qos.into());
        case
    }

    #[test]
    fn only_the_guarantee_is_nothing_to_connections_that_stand() {
        let known = [hold(0)];
        assert!(repeats_hold(&known, &hold(1)));
        let mut secured = hold(0);
        secured.words.insert("mqtt.tls".to_owned(), "on".into());
        let mut offloaded = hold(0);
        offloaded.offload = Some(Offload::On);
        let mut elsewhere = hold(0);
        elsewhere.target = "mosquitto".to_owned();
        for other in [secured, offloaded, elsewhere] {
            assert!(!repeats_hold(&known, &other), "{other:?}");
        }
    }
}
