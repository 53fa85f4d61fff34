//! Flags for the settings, the path and the observation of lanes.

use std::collections::BTreeMap;

use clap::Args;
use weigh_model::counters::SysChoice;
use weigh_model::endpoint::Credentials;
use weigh_model::lookout::Lookout;
use weigh_model::plan::{Observe, Plan, Repeat, check_name};
use weigh_model::units::{Bytes, parse_duration, parse_size, parse_whole};
use weigh_model::{Durability, Load, MeterChoice, Nanos};
use weigh_plan::case::{Offload, Share};
use weigh_plan::{Case, World, background, matrix};
use weigh_testbed::catalogue::Catalogue;

use crate::planning::counts::counts;
use crate::planning::options::{LoadOptions, with_flag};
use crate::planning::request_options::RequestOptions;
use crate::planning::tls_options::TlsOptions;
use crate::show::terminal::Lines;
use weigh_runner::case::abilities::durability_of;
use weigh_runner::case::fetched;
use weigh_runner::case::known::Known;
use weigh_runner::case::lanes::{self, Against, Given, Lane};
use weigh_runner::case::paths::path_keys;
use weigh_runner::case::server_settings::is_secret;
use weigh_runner::exit::Stop;

/// Flags of all lanes of a command line.
#[derive(Args)]
pub struct LaneOptions {
    #[command(flatten)]
    tls: TlsOptions,
    #[command(flatten)]
    requests: RequestOptions,
    /// QoS of MQTT: 0, 1 or 2 [default: all three]
    #[arg(
        short = 'q',
        long,
        value_name = "QOS",
        value_parser = qos
    )]
    qos: Option<u8>,
    /// Policy of the reference MQTT broker for a subscriber that is too slow [default: unlimited]
    ///
    /// unlimited: all messages wait for it. If N messages wait, drop-newest:N drops each new
    /// message, and drop-oldest:N drops the oldest one. If more than N wait, disconnect:N
    /// disconnects the subscriber and drops all of them.
    #[arg(long, value_name = "POLICY")]
    overload: Option<String>,
    /// What a confirmation means: memory, page-cache, fsync or fsync=100ms; several with commas
    ///
    /// A reference server stores each message accordingly before it confirms it; with several
    /// values, each is measured. For a server given by URL, this option changes nothing: it records
    /// what you know about the server, one of the values above or replicated=3. A real server that
    /// weigh starts, such as mosquitto, has the durability of its profile, and this option does not
    /// change it. [default: memory for reference servers, unknown for URLs]
    #[arg(long, value_name = "DURABILITY", value_delimiter = ',')]
    durability: Vec<Durability>,
    /// Set a key of a protocol, such as mqtt.version=5 or http1.keep_alive=false
    ///
    /// `weigh targets list --settings` lists the keys.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    sets: Vec<String>,
    /// Seed of the load's random numbers: due times, bodies, order of trials
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = parse_whole)]
    pub seed: u64,
    /// Emulate a link: wifi, lte, nb-iot, or delay=30ms,loss=5%,rate=10Mbit
    ///
    /// Generator and target run in network namespaces of this machine, joined by this link.
    /// Other names:
    /// loopback, gigabit, internet, satellite, 3g, lte-m; or a file such as my.toml. Numbers may
    /// follow a name (docs/guide/paths.md).
    #[arg(long, value_name = "LINK")]
    path: Option<String>,
    /// Insert a relay between generator and target; it only copies bytes
    ///
    /// Use it to see what a second hop costs without a broker.
    #[arg(long)]
    relay: bool,
    /// Number of cores for targets that weigh starts [default: 1]
    ///
    /// A target may only run on these cores (CPU affinity). With this option a control group also
    /// limits its CPU time to that of N cores, if weigh is permitted to make one.
    #[arg(long, value_name = "N", value_parser = counts(1..=1024_u32))]
    target_cores: Option<u32>,
    /// CPU time of targets that weigh starts, in percent of one core
    ///
    /// --target-cpu-percent 25 makes a target as slow as a small computer. It needs control
    /// groups; without them a warning says that the limit does not hold. [default: all the time
    /// of its cores]
    #[arg(long, value_name = "N", value_parser = counts(1..=102_400_u32))]
    target_cpu_percent: Option<u32>,
    /// Memory limit for targets that weigh starts, such as 3.75GiB
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    target_memory: Option<u64>,
    /// Read what the targets support from a file of `weigh probe -o`
    ///
    /// Cases that a target does not support are refused before the start. [default: measure all
    /// cases]
    #[arg(long, value_name = "FILE")]
    abilities: Option<String>,
    /// Count packets and bytes on the wire, by layer
    #[arg(long)]
    wire: bool,
    /// Allow the kernel to split and join packets (TSO, GSO, GRO)
    ///
    /// off: packets have their real size on the wire. on: the kernel may merge several packets into
    /// one, which counts as one. both: measure each. The last two need --wire or --pcap, and cannot
    /// be used with --path. [default: off with --path, --wire or --pcap; else as the kernel has it]
    #[arg(long, value_name = "off|on|both", value_parser = ["off", "on", "both"])]
    offload: Option<String>,
    /// Record the packets of each trial in the file pcap/TRIAL.pcapng of the run
    #[arg(long)]
    pcap: bool,
    /// Measure CPU and memory of your own server, such as port:1883 or pid:N
    ///
    /// Name the process of a server that you started. Other names are container:NAME, cgroup:PATH,
    /// or the address weigh-observe://... that `weigh observe` printed on its host. With several
    /// targets put URL= in front. Without --observe, CPU and memory of such a server are absent.
    #[arg(long, value_name = "[URL=]WHAT")]
    observe: Vec<String>,
    /// Read the server's own message counters, to explain losses
    ///
    #[arg(long, value_name = "auto|on|off", default_value = "auto", long_help = SYS)]
    sys: SysChoice,
    /// Energy meter: auto, none, rapl, ina226, battery, pmic or csv:FILE
    ///
    /// `weigh energy meters` lists the meters of this machine. If it has two chips of one kind, add
    /// the folder of the right one: ina226:hwmon3. csv:FILE reads the log of an external meter. If
    /// the log has only currents, add the supply's voltage: csv:FILE@5V. Without this option the
    /// best meter of this machine is used, but idle power (--idle) is not measured.
    #[arg(long, value_name = "METER")]
    meter: Option<MeterChoice>,
    /// Measure idle power for this time before and after each trial [default: 60s with --meter]
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    idle: Option<Nanos>,
}

impl LaneOptions {
    /// Returns the given keys, including `-q` and `--overload`.
    ///
    /// # Errors
    /// If a key is unknown.
    pub fn given(&self) -> Result<Given, Stop> {
        let mut sets = self.sets.clone();
        sets.extend(self.qos.map(|qos| format!("mqtt.qos={qos}")));
        sets.extend(self.overload.as_ref().map(|policy| format!("target.overload={policy}")));
        Given::parse(&sets)
    }

    /// Returns the lanes that `words` name, with and without TLS as asked. A URL without a body in
    /// `load` is requested with GET.
    ///
    /// # Errors
    /// If a word is unknown, or a key or flag does not apply to its lane.
    pub fn lanes(
        &self,
        words: &[String],
        catalogue: &Catalogue,
        given: &Given,
        load: &LoadOptions,
    ) -> Result<Vec<Lane>, Stop> {
        let lanes = self.tls.spread(lanes::lanes(words, catalogue, given, &Lines)?)?;
        let lanes = self.requests.apply(lanes)?;
        match load.says_body() {
            true => Ok(lanes),
            false => fetched::lanes(lanes, load.words.pattern, &Lines),
        }
    }

    /// Returns the cases of a lane under a load: with the path, the target's share of the machine,
    /// and each given state of the offloads.
    ///
    /// # Errors
    /// If the path is not valid.
    pub fn drafts(&self, lane: &Lane, load: &Load) -> Result<Vec<Case>, Stop> {
        let mut draft = lane.with(load.clone());
        if let Some(path) = &self.path {
            let keys = path_keys(path).map_err(|invalid| Stop::from(with_flag(invalid)))?;
            draft.words.extend(keys);
        }
        draft.relay = self.relay.then_some(true);
        // Weighbridge cannot limit a server that another process started.
        if !lane.is_foreign() {
            let memory = self.target_memory.map(Bytes);
            let (cores, cpu_percent) = (self.target_cores, self.target_cpu_percent);
            draft.share = Share { cores, cpu_percent, memory };
        }
        draft.abilities.clone_from(&self.abilities);
        let states: &[Option<Offload>] = match self.offload.as_deref() {
            None => &[None],
            Some("both") => &[Some(Offload::Off), Some(Offload::On)],
            Some("on") => &[Some(Offload::On)],
            Some(_) => &[Some(Offload::Off)],
        };
        let stated = self.durabilities(lane)?;
        let drafts = stated.into_iter().flat_map(|durability| {
            let draft = Case { durability, ..draft.clone() };
            states.iter().map(move |offload| Case { offload: *offload, ..draft.clone() })
        });
        Ok(drafts.collect())
    }

    /// Returns what is set or stated of a lane's durability, for each of its cases.
    ///
    /// # Errors
    /// If several are stated of a URL.
    fn durabilities(&self, lane: &Lane) -> Result<Vec<Option<Durability>>, Stop> {
        let applies = lane.takes_durability() && lane.is_confirmed();
        match &self.durability[..] {
            // What a probe found of a server that is not started here.
            [] if applies && lane.is_foreign() => {
                Ok(vec![self.abilities.as_deref().and_then(durability_of)])
            }
            [] => Ok(vec![None]),
            _ if !applies => Ok(vec![None]),
            [_, _, ..] if lane.is_foreign() => Err(Stop::usage(format!(
                "--durability: {} has one durability, and several were given\nhelp: state one, or \
                 write a plan with a [[case]] for each target",
                lane.against.name()
            ))),
            several => Ok(several.iter().map(|own| Some(*own)).collect()),
        }
    }

    /// Refuses a durability that no lane takes.
    ///
    /// # Errors
    /// If there is none.
    fn check_durability<'l>(&self, mut lanes: impl Iterator<Item = &'l Lane>) -> Result<(), Stop> {
        if self.durability.is_empty()
            || lanes.any(|lane| lane.takes_durability() && lane.is_confirmed())
        {
            return Ok(());
        }
        Err(Stop::usage(
            "--durability: it applies to reference servers and URLs that confirm messages, and \
             none is measured\nhelp: leave it out; a server that weigh starts has the \
             durability of its profile, such as artemis@memory",
        ))
    }

    /// Returns the case of a lane with one state of the offloads.
    ///
    /// # Errors
    /// If both states are given.
    pub fn draft(&self, lane: &Lane, load: &Load) -> Result<Case, Stop> {
        let both = match self.durability.len() {
            0 | 1 => {
                "--offload both: a search finds the limit of one state: type --offload off or \
                 --offload on"
            }
            _ => "--durability: a search finds the limit of one: type one value",
        };
        let one = <[Case; 1]>::try_from(self.drafts(lane, load)?);
        one.map(|[draft]| draft).map_err(|_| Stop::usage(both))
    }

    /// True if there is a relay between generator and target.
    pub fn has_relay(&self) -> bool {
        self.relay
    }

    /// True if generator and target become hosts of their own.
    pub fn has_hosts(&self) -> bool {
        self.path.is_some() || self.wire || self.pcap || self.offload.is_some()
    }

    /// Returns the plan of these drafts after checking that each is possible.
    ///
    /// # Errors
    /// If a protocol or target does not support a setting, with its flag.
    pub fn plan(
        &self,
        name: &str,
        drafts: &[Case],
        repeat: Repeat,
        catalogue: &Catalogue,
    ) -> Result<Plan, Stop> {
        plan_of((name, self.seed), drafts, repeat, self.observe()?, catalogue)
    }

    /// Returns what is recorded of the trials besides their figures.
    ///
    /// # Errors
    /// If a value is not valid. Leaves out the part after `#`, which is the secret of an agent's
    /// address.
    pub fn observe(&self) -> Result<Observe, Stop> {
        let lookout = |text: &String| {
            let shown = text.split('#').next().unwrap_or_default();
            let read = text.parse::<Lookout>();
            read.map_err(|said| Stop::usage(format!("--observe {shown}: {said}")))
        };
        Ok(Observe {
            wire: self.wire,
            pcap: self.pcap,
            meter: self.meter.clone(),
            idle: self.idle,
            target: self.observe.iter().map(lookout).collect::<Result<_, _>>()?,
            sys: self.sys,
            ..Observe::default()
        })
    }

    /// Refuses a given key or durability that no lane takes, under the name it was given by.
    ///
    /// # Errors
    /// If there is such a key.
    pub fn check_used<'l>(
        &self,
        given: &Given,
        lanes: impl Iterator<Item = &'l Lane> + Clone,
    ) -> Result<(), Stop> {
        self.check_durability(lanes.clone())?;
        let Some(key) = given.unused(lanes) else { return Ok(()) };
        let flag = match key {
            "mqtt.qos" if self.qos.is_some() => "-q",
            "mqtt.overload" if self.overload.is_some() => "--overload",
            _ => key,
        };
        let protocol = key.split('.').next().unwrap_or_default();
        Err(Stop::usage(format!(
            "{flag}: belongs to {protocol}, which is not among the protocols to measure\nhelp: \
             leave it out, or name {protocol}"
        )))
    }
}

/// Returns the plan of these drafts with a name and a seed, after checking that each is possible.
///
/// # Errors
/// If a protocol or target does not support a setting, with its flag.
pub fn plan_of(
    (name, seed): (&str, u64),
    drafts: &[Case],
    repeat: Repeat,
    observe: Observe,
    catalogue: &Catalogue,
) -> Result<Plan, Stop> {
    let known = Known::new(catalogue, &Lines);
    for draft in drafts {
        known.check(draft).map_err(|invalid| Stop::from(with_flag(invalid)))?;
    }
    let (load, cases) = matrix::matrix(drafts)?;
    Ok(Plan {
        name: name.to_owned(),
        question: None,
        seed,
        thresholds: Vec::new(),
        load,
        repeat,
        stop: BTreeMap::new(),
        observe,
        energy: None,
        background: background::shared(drafts)?,
        cases,
    })
}

/// Returns what a plan must not contain of lanes: credentials by URL, passwords by key.
pub fn secrets<'l>(
    lanes: impl Iterator<Item = &'l Lane>,
) -> (BTreeMap<String, Credentials>, BTreeMap<String, String>) {
    let mut by_url = BTreeMap::new();
    let mut settings = BTreeMap::new();
    for lane in lanes {
        if let Against::Foreign(endpoint) = &lane.against {
            let credentials = endpoint.credentials.clone();
            by_url.extend(credentials.map(|own| (endpoint.to_string(), own)));
        }
        let secret = lane.given.iter().filter(|(key, value)| is_secret(key, value));
        let whose = lane.protocol.name();
        settings.extend(secret.map(|(key, value)| (format!("{whose}.{key}"), value.clone())));
    }
    (by_url, settings)
}

/// Reads a QoS from a flag.
///
/// # Errors
/// If it is not one of the three.
fn qos(text: &str) -> Result<u8, String> {
    text.parse().ok().filter(|qos| *qos <= 2).ok_or_else(|| {
        let fix = "type 0, 1 or 2; without -q all three are measured";
        format!("{text:?} is not a QoS\nhelp: {fix}")
    })
}

/// Reads the name of a run from a flag.
///
/// # Errors
/// If it is not a valid name.
pub fn run_name(text: &str) -> Result<String, String> {
    check_name(text).map(|()| text.to_owned())
}

const SYS: &str = "\
Read the server's own message counters, to explain losses

The counters are $SYS of a broker or the status page of nginx.

  auto  after each trial; for a URL, only after losses
  on    after each trial; a server given by URL without counters is an error
  off   never for a URL; for other targets only after losses";
