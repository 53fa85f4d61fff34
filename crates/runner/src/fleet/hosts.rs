//! The agents of a run: gathered before it begins, and asked to generate the load of each trial.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use weigh_engine::generator::TrialObserver;
use weigh_engine::job::{Failure, Job};
use weigh_engine::kept_messages;
use weigh_engine::object::ObjectFile;
use weigh_engine::outcome::{Outcome, ShardOutcome};
use weigh_engine::send_lags::SendLags;
use weigh_engine::span::Span;
use weigh_engine::times::Times;
use weigh_fleet::{
    Attempt, Authority, BusOptions, Fleet, FleetError, FleetOptions, FleetOutcome, HostPart,
    Member, Order, Secrets, Target,
};
use weigh_model::binding::GENERATOR_FULL_PERCENT;
use weigh_model::fleet::{FleetHost, FleetPlaced, FleetRan, HostRan, HostVerdict};
use weigh_model::{Arrival, Load, Trial, tls};
use weigh_report::summary::lateness::DOMINANT;
use weigh_stats::histogram::Histogram;

use crate::case::Case;
use crate::case::server_settings::is_secret;
use crate::exit::{Exit, Stop};
use crate::fleet::request::{BusChoice, FleetRequest};
use crate::fleet::work::{Generated, Work};
use crate::watcher::Watcher;

/// True: this build has fleets.
pub const IS_BUILT: bool = true;

/// The agents of a run. They are free again when it is dropped.
pub struct Hosts {
    fleet: Fleet,
    request: FleetRequest,
    version: String,
    /// What agents found in the trial that is being taken over.
    found: Mutex<Option<FleetOutcome>>,
}

impl Hosts {
    /// Waits for the agents that were asked for; `version` is that of this program, which they must
    /// have too.
    ///
    /// # Errors
    /// An option that is wrong, a bus that cannot be used, and agents that are missing.
    pub fn gather(
        request: &FleetRequest,
        version: String,
        watcher: &dyn Watcher,
    ) -> Result<Hosts, Stop> {
        let options = FleetOptions {
            bus: bus(&request.bus),
            agents: request.agents,
            wait: request.wait,
            silence: SILENCE,
            version: version.clone(),
        };
        let fleet = Fleet::gather(&options, &|text| watcher.say(text)).map_err(stop)?;
        Ok(Hosts { fleet, request: request.clone(), version, found: Mutex::default() })
    }

    /// Number of repetitions of a trial in which an agent was lost.
    pub fn retries(&self) -> u32 {
        self.request.retries
    }

    /// Why no further trial can run: the bus is gone, so no agent can be reached. Asked for after a
    /// trial failed, which takes longer than a connection that can be made again.
    pub fn lost_bus(&self) -> Option<Stop> {
        let text = "the bus of the fleet is gone: no agent can be reached\nhelp: start it again, \
                    then type weigh run --resume latest, with --fleet URL";
        (!self.fleet.bus().is_connected()).then(|| Stop::new(Exit::Generator, text))
    }

    /// Number of agents.
    pub fn count(&self) -> u32 {
        self.request.agents
    }

    /// The number of shards that keeps all agents busy.
    pub fn carried(&self) -> u32 {
        self.fleet.carried()
    }

    /// Names of the agents that cannot reach a server on loopback of this process.
    pub fn elsewhere(&self) -> Vec<String> {
        let own = weigh_fleet::facts::place();
        let members = self.fleet.members();
        let others = members.into_iter().filter(|member| member.facts.place != own);
        others.map(|member| words(&member)).collect()
    }

    /// True if all agents run on the machine of this process, in whatever network namespace.
    pub fn are_on_this_machine(&self) -> bool {
        let boot = weigh_observe::boot::id().unwrap_or_default();
        let is_here = |member: &Member| member.facts.place.split('/').next() == Some(&*boot);
        !boot.is_empty() && self.fleet.members().iter().all(is_here)
    }

    /// Refuses cases with secrets if others could read them on the bus.
    ///
    /// # Errors
    /// The case, and what to type instead.
    pub fn check_private(&self, cases: &[Case]) -> Result<(), Stop> {
        let has_secrets = |case: &&Case| {
            let settings = &case.lane.settings;
            case.lane.credentials().is_some()
                || (tls::is_on(settings) && !settings.text("tls_key").is_empty())
                || settings.0.iter().any(|(key, value)| is_given_secret(key, value))
        };
        match cases.iter().find(has_secrets) {
            Some(case) if !self.fleet.bus().is_private() => Err(Stop::usage(format!(
                "--fleet: {} has a password, a key or a secret setting, which others could read on \
                 the bus\nhelp: \
                 give the bus TLS and type --fleet tls://HOST:PORT --fleet-ca FILE",
                case.title()
            ))),
            _ => Ok(()),
        }
    }

    /// The hosts, and the shards that each runs of this number in all.
    ///
    /// # Errors
    /// Fewer shards than agents.
    pub fn placed(&self, shards: u32) -> Result<FleetPlaced, Stop> {
        let members = self.fleet.members();
        let placed = self.fleet.place(shards).map_err(stop)?;
        let host = |placed: weigh_fleet::Placed| {
            let member = members.iter().find(|member| member.rank == placed.rank);
            let facts = member.map(|member| member.facts.clone()).unwrap_or_default();
            FleetHost {
                rank: placed.rank,
                name: member.map(|member| member.name.clone()).unwrap_or_default(),
                first_shard: placed.shards.start,
                shards: placed.shards.end - placed.shards.start,
                cores: facts.host.cores,
                kernel: facts.host.kernel,
                cpu: facts.host.cpu,
                clock_source: facts.host.clock_source,
                version: self.version.clone(),
                baseline_per_s: facts.baseline_per_s,
                findings: facts.findings,
                memory_bytes: Some(facts.host.memory_bytes).filter(|bytes| *bytes > 0),
                descriptors: Some(facts.descriptors).filter(|files| *files < u64::MAX),
                ports: Some(facts.ports).filter(|ports| *ports > 0),
            }
        };
        let hosts = placed.into_iter().map(host).collect();
        let named = &self.request.bus.name;
        let fleet = if named.is_empty() { DEFAULT_NAME } else { named };
        Ok(FleetPlaced { fleet: fleet.to_owned(), shards, hosts })
    }

    /// Lets the agents generate the load of a trial.
    ///
    /// # Errors
    /// The first failure of a shard; [`Failure::Lost`] if an agent was lost or is missing;
    /// [`Failure::Ourselves`] if one refuses its part.
    pub fn generate(
        &self,
        work: &Work<'_>,
        observer: &Arc<dyn TrialObserver>,
    ) -> Result<Generated, Failure> {
        let job = work.job;
        let order = self.order(work)?;
        let secrets = secrets(&job.trial)?;
        let mut arm = |stop: Box<dyn Fn() + Send + Sync>| work.interrupts.arm(stop);
        let done = self.fleet.run(&order, secrets.as_ref(), work.epoch_ns, observer, &mut arm);
        work.interrupts.disarm();
        generated(done?, job)
    }

    /// Takes over what agents stored in an attempt at a trial of a program that was killed, which
    /// they have finished; the attempt by its number, and the number of shards. The caller knows
    /// that the target outlived that program.
    ///
    /// # Errors
    /// What is missing: then the trial is to be repeated, and nothing of the attempt is left.
    pub fn take_over(&self, run: &str, trial: &str, at: (u32, u32)) -> Result<(), String> {
        let outcome = self.fleet.take_over(&attempt(run, trial, at.0), at.1)?;
        *self.found.lock().unwrap_or_else(PoisonError::into_inner) = Some(outcome);
        Ok(())
    }

    /// Removes what agents stored in a run of a program that was killed, except in the attempt at a
    /// trial that is `kept`, by its number.
    pub fn discard(&self, run: &str, kept: Option<(&str, u32)>) {
        let kept = kept.map(|(trial, number)| attempt(run, trial, number));
        self.fleet.discard(run, kept.as_ref());
    }

    /// The load of the trial that was taken over last.
    ///
    /// # Errors
    /// [`Failure::Ourselves`] if none was.
    pub fn taken_over(&self, work: &Work<'_>) -> Result<Generated, Failure> {
        let found = self.found.lock().unwrap_or_else(PoisonError::into_inner).take();
        let none = || Failure::Ourselves("no trial was taken over".to_owned());
        generated(found.ok_or_else(none)?, work.job)
    }

    /// The trial as agents get it: without secrets, its files by hash.
    fn order(&self, work: &Work<'_>) -> Result<Order, Failure> {
        let job = work.job;
        let ourselves = |error: FleetError| Failure::Ourselves(error.to_string());
        let body = match &job.object {
            Some(object) => Some(self.fleet.put_material(&whole(object)?)),
            None => (!work.body.is_empty()).then(|| self.fleet.put_material(work.body)),
        };
        let body = body.transpose();
        let trace = (!job.trace.is_empty()).then(|| self.fleet.put_trace(&job.trace)).transpose();
        let endpoint = job.trial.endpoint.as_ref();
        let endpoint = endpoint.ok_or_else(|| Failure::Ourselves("no endpoint".to_owned()))?;
        let mut trial = job.trial.clone();
        trial.settings.0.retain(|key, value| !is_given_secret(key, value));
        if work.authority.is_some() && trial.settings.text("tls_name").is_empty() {
            // The name in certificates that are made for a run.
            trial.settings.0.insert("tls_name".to_owned(), "localhost".to_owned());
        }
        Ok(Order {
            run: work.run.to_owned(),
            attempt: work.attempt,
            target: Target {
                scheme: endpoint.scheme.clone(),
                host: endpoint.host.clone(),
                port: endpoint.port,
                path: endpoint.path.clone(),
                address: job.address,
            },
            shards: job.shards,
            every: Some(job.every),
            unix_ns: work.unix_ns,
            body: body.map_err(ourselves)?,
            trace: trace.map_err(ourselves)?,
            keeps_messages: job.messages.is_some(),
            tls: authority(&trial, work)?,
            trial,
        })
    }
}

fn attempt(run: &str, trial: &str, number: u32) -> Attempt {
    Attempt { run: run.to_owned(), trial: trial.to_owned(), number }
}

/// What all shards found, as one.
fn generated(found: FleetOutcome, job: &Job) -> Result<Generated, Failure> {
    let FleetOutcome { shards, hosts, messages, start_skew_bound_ns } = found;
    if let Some(log) = &job.messages {
        if messages.len() != hosts.len() {
            let text = "an agent did not store its record of single messages";
            return Err(Failure::Ourselves(text.to_owned()));
        }
        let replayed = kept_messages::replay(&messages, log);
        replayed.map_err(|error| Failure::Ourselves(error.to_string()))?;
    }
    let records: Vec<Part> = hosts.iter().map(|host| Part::of(host, &shards)).collect();
    let (load, confirms) = (job.load(), job.dial.confirms);
    let outcome = Outcome::merge(shards, load, confirms, job.composer.is_marked());
    let hosts = hosts.iter().zip(records).map(|(host, part)| ran(host, &part, &outcome, load));
    let hosts = hosts.collect();
    let ran = FleetRan { trial: job.trial.id.clone(), start_skew_bound_ns, hosts };
    Ok(Generated { outcome, hosts: Some(ran) })
}

/// The options of the bus for the crate that speaks to it.
pub(super) fn bus(choice: &BusChoice) -> BusOptions {
    let choice = choice.clone();
    BusOptions {
        url: choice.url,
        name: choice.name,
        nkey_seed: choice.nkey,
        creds: choice.creds,
        token: choice.token,
        ca: choice.ca,
        client_cert: choice.client_cert,
    }
}

/// The error of a fleet, with its exit code.
pub(super) fn stop(error: FleetError) -> Stop {
    match error {
        FleetError::Options(text) => Stop::usage(with_line_of_help(&text)),
        FleetError::Stopped => Stop::new(Exit::Interrupted, error),
        FleetError::Bus(text) | FleetError::Agents(text) | FleetError::Store(text) => {
            Stop::new(Exit::Generator, with_line_of_help(&text))
        }
    }
}

fn with_line_of_help(text: &str) -> String {
    text.replacen("; help: ", "\nhelp: ", 1)
}

fn words(member: &Member) -> String {
    format!("agent {} ({})", member.rank, member.name)
}

/// The certificate authorities that clients trust, if they use TLS.
fn authority(trial: &Trial, work: &Work<'_>) -> Result<Option<Authority>, Failure> {
    if !tls::is_on(&trial.settings) {
        return Ok(None);
    }
    let given = Some(trial.settings.text("tls_ca")).filter(|path| !path.is_empty());
    let path = given.map(Path::new).or(work.authority.as_deref());
    let pem = path.map(read).transpose()?;
    Ok(Some(Authority { pem }))
}

/// What only the agents may know; `None` if there is no secret.
fn secrets(trial: &Trial) -> Result<Option<Secrets>, Failure> {
    let mut secrets = Secrets::default();
    let credentials = trial.endpoint.as_ref().and_then(|own| own.credentials.clone());
    if let Some(credentials) = credentials {
        (secrets.user, secrets.password) = (credentials.user, credentials.password);
    }
    let settings = &trial.settings;
    let certificate = Some(settings.text("tls_cert")).filter(|path| !path.is_empty());
    if let Some(certificate) = certificate.filter(|_| tls::is_on(settings)) {
        secrets.certificate_pem = read(Path::new(certificate))?;
        secrets.key_pem = read(Path::new(settings.text("tls_key")))?;
    }
    let own = settings.0.iter().filter(|(key, value)| is_given_secret(key, value));
    secrets.settings = own.map(|(key, value)| (key.clone(), value.clone())).collect();
    Ok((secrets != Secrets::default()).then_some(secrets))
}

/// True for a secret setting that has a value.
fn is_given_secret(key: &str, value: &str) -> bool {
    !value.is_empty() && is_secret(key, value)
}

/// The contents of a file that is streamed.
fn whole(object: &ObjectFile) -> Result<Vec<u8>, Failure> {
    // Larger ones were refused before anything started.
    let mut bytes = vec![0; object.bytes() as usize];
    object.read(0, &mut bytes).map_err(Failure::Ourselves)?;
    Ok(bytes)
}

fn read(path: &Path) -> Result<String, Failure> {
    std::fs::read_to_string(path)
        .map_err(|error| Failure::Ourselves(format!("{}: cannot be read: {error}", path.display())))
}

/// What the shards of one host found, before they are put together with those of all hosts.
struct Part {
    sent: u64,
    lags: SendLags,
    /// Processor time of the busiest shard in the measured window, and until all was settled.
    window_cpu_ns: u64,
    cpu_ns: u64,
    span: Span,
    /// The 99 % quantiles of the lag that is its own and of the response time, nanoseconds.
    own_lag_ns_p99: Option<u64>,
    response_ns_p99: Option<u64>,
}

impl Part {
    fn of(host: &HostPart, shards: &[ShardOutcome]) -> Part {
        let own = shards.get(host.shards.start as usize..host.shards.end as usize);
        let own = own.unwrap_or_default();
        let busiest = |of: fn(&ShardOutcome) -> u64| own.iter().map(of).max().unwrap_or(0);
        let mut lags = SendLags::default();
        let (mut span, mut response) = (Span::default(), Times::default());
        for shard in own {
            lags.merge(&shard.recorder.lags);
            span.merge(&shard.recorder.span);
            response.merge(&shard.recorder.response);
        }
        let p99 = |times: &Histogram| times.quantile(0.99).filter(|_| times.count() >= LAGS_MIN);
        let (own_lag_ns_p99, response_ns_p99) = (p99(&lags.own), p99(&response));
        Part {
            sent: own.iter().map(|shard| shard.recorder.window.sent).sum(),
            lags,
            window_cpu_ns: busiest(|shard| shard.window_cpu.0),
            cpu_ns: busiest(|shard| shard.cpu.0),
            span,
            own_lag_ns_p99,
            response_ns_p99,
        }
    }
}

/// The record of one host in a trial with this outcome.
fn ran(host: &HostPart, part: &Part, outcome: &Outcome, load: &Load) -> HostRan {
    // The share of the busiest of all shards is known; that of this host is in proportion.
    let (own, all) = match outcome.shards.recorder.window.window() {
        Some(_) => (part.window_cpu_ns, outcome.window_cpu_max.0),
        None => (part.cpu_ns, outcome.cpu_max.0),
    };
    let share = outcome.busy_share(load);
    let percent = (all > 0).then(|| 100.0 * share * own as f64 / all as f64);
    let lags = &part.lags.all;
    HostRan {
        rank: host.rank,
        name: host.name.clone(),
        first_shard: host.shards.start,
        shards: host.shards.end - host.shards.start,
        clock_offset_ns: host.offset_ns,
        clock_bound_ns: host.clock_bound_ns,
        clock_drift_ppm: host.drift_ppm,
        start_slack_ns: host.start_slack_ns,
        sent: part.sent,
        cpu_percent: percent,
        send_lag_ns_p99: lags.quantile(0.99).filter(|_| lags.count() >= LAGS_MIN),
        busy_ns: part.span.due_to_done().map(|(from, to)| [from.0, to.0]),
        verdict: judged(part, percent, outcome, load),
    }
}

/// What is wrong with a host's part of the load. Its lag is compared with its own response
/// times, and where there are none with the delivery times of all: those are known at consumers.
fn judged(
    part: &Part,
    percent: Option<f64>,
    outcome: &Outcome,
    load: &Load,
) -> Option<HostVerdict> {
    let delivery = &outcome.shards.recorder.delivery;
    let times = part.response_ns_p99.or_else(|| delivery.quantile(0.99));
    // Messages of a burst or a batch wait for each other.
    let is_paced = load.arrival.is_open() && load.arrival != Arrival::Burst;
    let lag = part.own_lag_ns_p99.filter(|_| is_paced && load.batch_size() == 1);
    let is_late = lag.zip(times).is_some_and(|(lag, time)| lag as f64 > DOMINANT * time as f64);
    match () {
        () if percent.is_some_and(|own| own >= GENERATOR_FULL_PERCENT) => Some(HostVerdict::Full),
        () if is_late => Some(HostVerdict::Late),
        () => None,
    }
}

/// Silence after which an agent is lost. It covers a bus that is cut for some seconds.
const SILENCE: Duration = Duration::from_secs(10);

/// Name of a fleet without a name.
const DEFAULT_NAME: &str = "default";

/// Fewest messages that have a 99 % quantile.
const LAGS_MIN: u64 = 100;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_fleet_lacks_has_the_code_of_a_generator() {
        let text = || "agent a is of version 2, this is 1".to_owned();
        for error in
            [FleetError::Agents(text()), FleetError::Bus(text()), FleetError::Store(text())]
        {
            assert_eq!(stop(error).exit(), Exit::Generator);
        }
        assert_eq!(stop(FleetError::Options(text())).exit(), Exit::Usage);
        assert_eq!(stop(FleetError::Stopped).exit(), Exit::Interrupted);
    }

    #[test]
    fn only_secrets_with_a_value_are_sent_apart() {
        for (key, value, is_apart) in [
            ("broker_password", "", false),
            ("broker_password", "x", true),
            ("secret_headers", "X-Token: x", true),
            ("headers", "Accept: x", false),
            ("headers", "Authorization: Bearer x", true),
        ] {
            assert_eq!(is_given_secret(key, value), is_apart, "{key}={value}");
        }
    }
}
