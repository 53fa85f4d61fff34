//! All keys of the language, with their values and meanings. The reader, suggestions and the JSON
//! Schema use this table.

use weigh_model::Protocol;
use weigh_model::background::LASTING;

use crate::background_keys::{self as of_background, BASELINE, PREFIX, STATE};
use crate::kind::{Kind, Wrong, nearest};
use crate::load_keys::{self, LOAD_KEYS};

/// A key of a plan.
#[derive(Clone, Debug, PartialEq)]
pub struct Key {
    /// Its name with dots: `load.connections`.
    pub name: String,
    /// Its values.
    pub kind: Kind,
    /// Its meaning.
    pub doc: String,
    /// True if it may differ from case to case, and so be in `[vary]`.
    pub is_varied: bool,
    /// True if it takes a list.
    pub is_list: bool,
}

/// All keys, including those of protocols.
///
/// # Examples
///
/// ```
/// use weigh_plan::keys::Keys;
///
/// let keys = Keys::new(weigh_protocols::PROTOCOLS);
/// assert_eq!(keys.find("load.publishers").map(|key| key.name.as_str()), Ok("load.connections"));
/// assert!(keys.find("load.conections").is_err());
/// ```
pub struct Keys {
    keys: Vec<Key>,
    protocols: &'static [&'static dyn Protocol],
}

impl Keys {
    /// Keys of the language and of these protocols.
    pub fn new(protocols: &'static [&'static dyn Protocol]) -> Keys {
        let own = OWN.iter().map(|(name, kind, doc)| Key {
            name: (*name).to_owned(),
            kind: *kind,
            doc: (*doc).to_owned(),
            is_varied: name.starts_with("target") || VARIED.contains(name),
            is_list: LISTS.contains(name),
        });
        let of_load = LOAD_KEYS.iter().map(|key| Key {
            name: key.whole(),
            kind: key.kind,
            doc: key.doc(),
            is_varied: true,
            is_list: false,
        });
        let of_protocols = protocols.iter().flat_map(|protocol| {
            protocol.settings().iter().map(|setting| Key {
                name: format!("{}.{}", protocol.name(), setting.key),
                kind: setting.kind.into(),
                doc: setting.doc.to_owned(),
                is_varied: true,
                is_list: false,
            })
        });
        let mut keys: Vec<Key> = own.chain(of_load).chain(of_path()).chain(of_protocols).collect();
        keys.extend(background_keys(&keys, protocols));
        Keys { keys, protocols }
    }

    /// All keys.
    pub fn iter(&self) -> impl Iterator<Item = &Key> {
        self.keys.iter()
    }

    /// The protocols of these keys.
    pub fn protocols(&self) -> &'static [&'static dyn Protocol] {
        self.protocols
    }

    /// The key of this canonical name.
    pub fn get(&self, name: &str) -> Option<&Key> {
        self.keys.iter().find(|key| key.name == name)
    }

    /// All spellings of the key of this name, the canonical one first.
    pub fn written(&self, name: &str) -> Vec<String> {
        if let Some(mirrored) = name.strip_prefix(PREFIX) {
            // Tables of other names exist only for keys of the measured load.
            let is_like = |way: &String| {
                way.split('.').count() == mirrored.split('.').count() && !way.starts_with("poll.")
            };
            let ways = self.written(mirrored).into_iter().filter(is_like);
            return ways.map(|way| format!("{PREFIX}{way}")).collect();
        }
        let mut all = vec![name.to_owned()];
        match (name, name.strip_prefix("load.").and_then(load_keys::find)) {
            (_, Some(key)) => all.extend(key.others.iter().map(|other| (*other).to_owned())),
            ("target" | "path", _) => all.push(format!("{name}.name")),
            _ => {}
        }
        let (first, rest) = name.split_once('.').unwrap_or((name, ""));
        let protocol = self.protocols.iter().find(|protocol| protocol.name() == first);
        let aliases = protocol.map_or(&[][..], |protocol| protocol.aliases());
        all.extend(aliases.iter().map(|alias| format!("{alias}.{rest}")));
        all
    }

    /// Finds a key by any of its spellings; aliases of protocols and of connections count.
    ///
    /// # Errors
    /// An unknown key, with the nearest known one.
    pub fn find(&self, written: &str) -> Result<&Key, Wrong> {
        let name = self.one_name(written);
        self.get(&name).ok_or_else(|| self.unknown(written, &name))
    }

    /// Checks the first part of a key's name.
    ///
    /// # Errors
    /// An unknown name, with the nearest known one.
    pub fn check_table(&self, first: &str) -> Result<(), Wrong> {
        let name = self.one_name(first);
        let is_first = |key: &Key| key.name.split('.').next() == Some(&name);
        if TABLES.contains(&first) || self.keys.iter().any(is_first) {
            return Ok(());
        }
        if LATER.contains(&first) {
            let text = format!("{first:?} is not available in this version");
            return Err(Wrong::new(text, "leave it out: it has no effect yet"));
        }
        let mut names: Vec<&str> =
            self.keys.iter().filter_map(|k| k.name.split('.').next()).collect();
        names.extend(TABLES);
        names.extend(self.protocols.iter().flat_map(|protocol| protocol.aliases()));
        let meant =
            self.below(first).or_else(|| nearest(first, names.iter().copied()).map(str::to_owned));
        names.sort_unstable();
        names.dedup();
        let fix = match meant {
            Some(meant) => format!("did you mean {meant}?"),
            None => format!("type one of {}", names.join(", ")),
        };
        Err(Wrong::new(format!("there is no key {first:?} in a plan"), fix))
    }

    /// Keys of this name in tables, since a missing table is the most likely mistake, above all
    /// `load`.
    fn below(&self, first: &str) -> Option<String> {
        if let Some(key) = self.get(&format!("load.{first}")) {
            return Some(key.name.clone());
        }
        let is_so = |name: &&str| name.split_once('.').is_some_and(|(_, rest)| rest == first);
        let names: Vec<&str> = self.keys.iter().map(|key| &*key.name).filter(is_so).collect();
        let (last, others) = names.split_last()?;
        Some(match others {
            [] => (*last).to_owned(),
            _ => format!("{} or {last}", others.join(", ")),
        })
    }

    /// The canonical name: that of the protocol for its alias, `connections` for `publishers`.
    fn one_name(&self, written: &str) -> String {
        if let Some(mirrored) = written.strip_prefix(PREFIX) {
            return format!("{PREFIX}{}", self.one_name(mirrored));
        }
        if let Some(key) = LOAD_KEYS.iter().find(|key| key.others.contains(&written)) {
            return key.whole();
        }
        if let "target.name" | "path.name" = written {
            return written.trim_end_matches(".name").to_owned();
        }
        let (first, rest) = match written.split_once('.') {
            Some((first, rest)) => (first, Some(rest)),
            None => (written, None),
        };
        let protocol = self.protocols.iter().find(|known| known.aliases().contains(&first));
        match (protocol, rest) {
            (Some(protocol), Some(rest)) => format!("{}.{rest}", protocol.name()),
            (Some(protocol), None) => protocol.name().to_owned(),
            (None, _) => written.to_owned(),
        }
    }

    fn unknown(&self, written: &str, name: &str) -> Wrong {
        let text = format!("there is no key {written:?}");
        let first = name.split('.').next().unwrap_or_default();
        if let (None, Some(key)) = (name.split_once('.'), self.get(&format!("load.{name}"))) {
            return Wrong::new(text, format!("did you mean {}?", key.name));
        }
        if of_background::is_lasting(name) {
            let text = format!("{name}: a background lasts as long as the measured load");
            return Wrong::new(text, "leave it out; background.load.messages ends it earlier");
        }
        let begins = |key: &Key| key.name.starts_with(&format!("{name}."));
        if self.keys.iter().any(begins) {
            let text = format!("{name} is a table");
            return Wrong::new(text, format!("write [{name}] above its keys"));
        }
        if self.check_table(first).is_err() {
            let near = nearest(name, self.keys.iter().map(|key| key.name.as_str()));
            let fix = near.map(|near| format!("did you mean {near}?"));
            return Wrong::new(text, fix.unwrap_or_else(|| "keys are written as load.size".into()));
        }
        let all = self.keys.iter().flat_map(|key| self.written(&key.name));
        let names: Vec<String> =
            all.filter(|name| name.starts_with(&format!("{first}."))).collect();
        let fix = match nearest(name, names.iter().map(String::as_str)) {
            Some(near) => format!("did you mean {near}?"),
            None if first == STATE => format!("type one of {}", of_background::TOLD),
            None => {
                let plain = |name: &String| name[first.len() + 1..].to_owned();
                let plain: Vec<String> = names.iter().map(plain).collect();
                format!("the keys of {first} are: {}", plain.join(", "))
            }
        };
        Wrong::new(text, fix)
    }
}

/// The keys of a background: its own, and copies of the keys for load and protocol after
/// `background.`.
fn background_keys(keys: &[Key], protocols: &[&dyn Protocol]) -> Vec<Key> {
    let own = of_background::OWN.iter().map(|(name, kind, doc)| Key {
        name: (*name).to_owned(),
        kind: *kind,
        doc: (*doc).to_owned(),
        is_varied: *name != BASELINE,
        is_list: false,
    });
    let is_setting = |first: &str| protocols.iter().any(|protocol| protocol.name() == first);
    let is_mirrored = |key: &&Key| match key.name.split_once('.') {
        Some(("load", rest)) => !LASTING.contains(&rest),
        Some((first, _)) => is_setting(first),
        None => false,
    };
    let mirrored = keys.iter().filter(is_mirrored).map(|key| Key {
        name: format!("{PREFIX}{}", key.name),
        doc: format!("Of the background. {}", key.doc),
        ..key.clone()
    });
    own.chain(mirrored).collect()
}

/// The numbers of a path, for both directions and for each, and those of the whole path.
fn of_path() -> impl Iterator<Item = Key> {
    let ways = [("", "each way"), ("up_", "to the target"), ("down_", "from the target")];
    let key = |name: String, kind, doc: String| Key {
        name: format!("path.{name}"),
        kind,
        doc,
        is_varied: true,
        is_list: false,
    };
    let of_ways = OF_PATH.iter().flat_map(move |(name, kind, doc)| {
        ways.map(|(prefix, way)| key(format!("{prefix}{name}"), *kind, format!("{doc}, {way}.")))
    });
    let whole = OF_WHOLE
        .iter()
        .map(move |(name, kind, doc)| key((*name).to_owned(), *kind, (*doc).to_owned()));
    of_ways.chain(whole)
}

/// Numbers that a path may have with, or instead of, a name: those of
/// [`weigh_model::path::NUMBERS`].
const OF_PATH: &[(&str, Kind, &str)] = &[
    ("delay", Kind::Duration, "Delay of a packet"),
    (
        "jitter",
        Kind::Jitter,
        "Random part of the delay: 14ms is uniform from 0, or normal:2ms, \
         exponential:3ms, pareto:SCALE:SHAPE:MOST",
    ),
    (
        "loss",
        Kind::Loss,
        "Share of lost packets, independent or in bursts: \
         gilbert-elliott:TO_BAD:TO_GOOD:IN_BAD:IN_GOOD",
    ),
    ("duplicate", Kind::Share, "Share of duplicated packets"),
    ("reorder", Kind::Reorder, "Share of delayed packets that others overtake, such as 0.1%:5ms"),
    ("rate", Kind::BitRate, "Rate of the link"),
    (
        "queue",
        Kind::Size,
        "Size of the queue if there is a rate, 100 ms of it by default; other packets are dropped",
    ),
    ("overhead", Kind::Size, "Link-layer bytes that are added to each packet for rate and queue"),
];

/// Keys of the whole path: [`weigh_model::path::WHOLE`].
const OF_WHOLE: &[(&str, Kind, &str)] = &[
    ("mtu", Kind::Count(576, 1500), "Largest IP packet in bytes; 1500 if left out."),
    (
        "steps",
        Kind::Steps,
        "Changes over time since the start of the trial: 10s loss=100%; 13s loss=0% rate=1Mbit/s.",
    ),
];

/// The keys of the language itself.
const OWN: &[(&str, Kind, &str)] = &[
    ("name", Kind::Text, "Name of the run; the name of the file if left out."),
    ("question", Kind::Text, "Question that the run answers; the report starts with it."),
    (
        "seed",
        Kind::Count(0, i64::MAX as u64),
        "Seed of all random numbers: due times, order of \
                                               trials.",
    ),
    (
        "thresholds",
        Kind::Condition,
        "Conditions for every cell; exit code 99 if one does not \
                                     hold.",
    ),
    ("protocol", Kind::Text, "Protocol, if the target supports several."),
    (
        "target",
        Kind::Text,
        "reference (the default), a real server (mosquitto, mosquitto@no-limits), pipeline, or a \
         URL.",
    ),
    (
        "target.overload",
        Kind::Text,
        "Policy of a reference broker for slow subscribers: unlimited, drop-newest:N, \
         drop-oldest:N or disconnect:N.",
    ),
    (
        DURABILITY,
        Kind::Durability,
        "What a confirmation means on the server: memory, page-cache, fsync or fsync=100ms sets it \
         for a reference server (memory if left out), and states it for a target given by URL \
         (unknown if left out), which may also be replicated=3 or none. A server that weigh starts \
         has that of its profile.",
    ),
    (
        "target.relay",
        Kind::Flag,
        "Whether a relay between generator and target copies bytes: control for a second hop.",
    ),
    (
        "target.cores",
        Kind::Count(1, 1024),
        "Number of cores, and their CPU time, for a target that weigh starts; 1 if \
         left out, enforced by affinity alone.",
    ),
    (
        "target.cpu_percent",
        Kind::Count(1, 102_400),
        "CPU time of a target that weigh starts, in percent of one core, enforced by a control \
         group; all the time of its cores if left out.",
    ),
    ("target.memory", Kind::Size, "Memory limit of a target that weigh starts: 3.75GiB."),
    (
        "target.stages",
        Kind::Choice(&["gateway,api,store", "gateway,store", "api,store", "api", "store"]),
        "Stages of the pipeline; all behind the protocol's entry if left out: \
         gateway,api,store with mqtt, api,store with http1, store with grpc.",
    ),
    (
        "target.store",
        Kind::Choice(&["sqlite", "memory"]),
        "Store of the last stage of the pipeline; sqlite if left out, memory in an \
         api alone.",
    ),
    (
        "target.durable",
        Kind::Flag,
        "Whether the pipeline's database survives a power cut (synchronous=FULL); true if left \
         out.",
    ),
    (
        "target.broker",
        Kind::Text,
        "Broker in front of the pipeline's gateway: reference (the default), or a real one \
         (mosquitto).",
    ),
    (
        "target.batch",
        Kind::Count(1, 10_000),
        "Maximum number of readings in one call of the pipeline's gateway, or of an api with a \
         store.",
    ),
    (
        "target.linger",
        Kind::Duration,
        "Time that the stage of target.batch waits for its batch to fill; 0 if left out.",
    ),
    (
        "target.abilities",
        Kind::Text,
        "A file of `weigh probe -o`: cases that the target cannot do are rejected before \
         anything starts.",
    ),
    (
        "path",
        Kind::Path,
        "Emulated link between the hosts: loopback, gigabit, wifi, internet, lte, 3g, lte-m, \
         nb-iot, satellite, or a file ending in .toml; plain loopback if it is left out.",
    ),
    (
        OFFLOAD,
        Kind::Choice(&["off", "on"]),
        "off (the default): every packet is one that a wire would carry. on: the kernel splits and \
         joins packets after the capture, and the wire is counted as captured.",
    ),
    (
        "repeat.at_least",
        Kind::Count(1, u32::MAX as u64),
        "Repetitions of every case; 3 if left out.",
    ),
    (
        "repeat.at_most",
        Kind::Count(1, u32::MAX as u64),
        "Maximum number of repetitions of a case until it is as precise as until asks.",
    ),
    (
        "repeat.until",
        Kind::Precision,
        "Required precision of a case's figures: \"p99 within 5 %\".",
    ),
    ("repeat.budget", Kind::Duration, "Time after which no trial starts."),
    ("repeat.cool_down", Kind::Duration, "Pause before each trial."),
    (
        "repeat.target",
        Kind::TargetLife,
        "fresh: a process for every trial (the default). kept: one process for all of them.",
    ),
    ("observe.every", Kind::Duration, "Length of an interval of the time series."),
    ("observe.messages", Kind::Flag, "Whether to record every single message."),
    (
        "observe.wire",
        Kind::Flag,
        "Whether to count every byte on the wire by layer; generator and target get hosts of \
         their own.",
    ),
    (
        "observe.pcap",
        Kind::Flag,
        "Whether to keep the packets of every trial as \
                                  pcap/TRIAL.pcapng.",
    ),
    (
        "observe.meter",
        Kind::Meter,
        "Energy meter: auto, none, rapl, ina226 (ina226:hwmon3), battery, pmic or csv:FILE.",
    ),
    (
        "observe.idle",
        Kind::Duration,
        "Length of the idle phases before and after a trial; 60s if a meter is asked for.",
    ),
    (
        "observe.target",
        Kind::Lookout,
        "What to observe of a target given by URL: pid:N, port:N, container:NAME, cgroup:PATH, or \
         an agent there (weigh-observe://...); after URL= if there are several targets.",
    ),
    (
        "observe.sys",
        Kind::Choice(&["auto", "on", "off"]),
        "Whether to read the counters of \
                                                           external servers.",
    ),
    (
        EMULATE,
        Kind::Choice(&["htop", "autocannon", "mqtt-stresser", "sum-of-times", "ramp-average"]),
        "Tools whose figures are emulated next to the exact ones: what htop would have shown, \
         what the tool would have printed, or the result of another arithmetic.",
    ),
    (
        "energy.device",
        Kind::Text,
        "Device whose energy is modelled: pi-2b, nrf9160 and others (weigh energy devices); \
         observe.wire is then on if possible.",
    ),
    ("energy.radio", Kind::Text, "Radio of the device: 3g, lte, wifi, ethernet and others."),
    (
        "energy.battery",
        Kind::Battery,
        "Battery of the device: 2000mAh@5V, the charge at its \
                                       voltage.",
    ),
    ("energy.every", Kind::Duration, "Time between messages of the device; 1m if left out."),
    (
        "energy.cpu",
        Kind::Choice(&["scaled", "here"]),
        "scaled (the default): the generator's CPU time by the device's cpu_scale. here: \
         the generator runs on such a device.",
    ),
];

/// Keys besides those of load and target that may differ from case to case.
const VARIED: [&str; 3] = ["protocol", "path", OFFLOAD];

/// The key of the segmentation offloads.
pub const OFFLOAD: &str = "offload";

/// The keys of the target's share of the machine.
pub const SHARE: [&str; 3] = ["target.cores", "target.cpu_percent", "target.memory"];

/// The keys of the pipeline.
pub const PIPELINE: [&str; 6] = [
    "target.stages",
    "target.store",
    "target.durable",
    "target.broker",
    "target.batch",
    "target.linger",
];

/// Keys of the pipeline that apply only with a broker as the entry.
pub const OF_BROKER: [&str; 1] = ["target.broker"];

/// The key of the emulated tools.
pub(crate) const EMULATE: &str = "observe.emulate";

/// The key of what a confirmation means on the server.
pub const DURABILITY: &str = "target.durability";

/// The key of the relay between generator and target.
pub const RELAY: &str = "target.relay";

/// The key of the file with a target's abilities.
pub const ABILITIES: &str = "target.abilities";

/// Keys that take a list.
const LISTS: [&str; 4] = ["thresholds", "repeat.until", "observe.target", EMULATE];

/// Tables with keys of cases or load, and the list of zipped keys.
pub(crate) const TABLES: [&str; 5] = ["vary", "stop", "case", "zip", "poll"];

/// Planned keys that have no effect yet.
const LATER: [&str; 1] = ["fleet"];
