//! The words of the language: every key there is, what it takes and what it means. Reading,
//! proposing and the JSON Schema are made from this one table.

use weigh_model::Protocol;

use crate::kind::{Kind, Wrong, nearest};

/// A key of a plan.
#[derive(Clone, Debug, PartialEq)]
pub struct Key {
    /// Its name with dots: `load.connections`.
    pub name: String,
    /// What values it takes.
    pub kind: Kind,
    /// What it means.
    pub doc: String,
    /// True for what may differ from case to case, so that it may stand below `[vary]`.
    pub is_varied: bool,
    /// True for what takes a list.
    pub is_list: bool,
}

/// All keys, those of the protocols that there are included.
pub struct Keys {
    keys: Vec<Key>,
    protocols: &'static [&'static dyn Protocol],
}

impl Keys {
    /// The keys of the language, and those of these protocols.
    pub fn new(protocols: &'static [&'static dyn Protocol]) -> Keys {
        let own = OWN.iter().map(|(name, kind, doc)| Key {
            name: (*name).to_owned(),
            kind: *kind,
            doc: (*doc).to_owned(),
            is_varied: name.starts_with("load.") || VARIED.contains(name),
            is_list: LISTS.contains(name),
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
        Keys { keys: own.chain(of_protocols).collect(), protocols }
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &Key> {
        self.keys.iter()
    }

    /// The protocols whose keys these are.
    pub fn protocols(&self) -> &'static [&'static dyn Protocol] {
        self.protocols
    }

    /// The key of this one name.
    pub fn get(&self, name: &str) -> Option<&Key> {
        self.keys.iter().find(|key| key.name == name)
    }

    /// All ways to write the key of this name, the name first.
    pub fn written(&self, name: &str) -> Vec<String> {
        let mut all = vec![name.to_owned()];
        match name {
            "load.connections" => all.push("load.publishers".to_owned()),
            "target" => all.push("target.name".to_owned()),
            _ => {}
        }
        let (first, rest) = name.split_once('.').unwrap_or((name, ""));
        let protocol = self.protocols.iter().find(|protocol| protocol.name() == first);
        let aliases = protocol.map_or(&[][..], |protocol| protocol.aliases());
        all.extend(aliases.iter().map(|alias| format!("{alias}.{rest}")));
        all
    }

    /// The key that is written so; other names of a protocol and of connections count.
    ///
    /// # Errors
    /// If there is none, with the nearest there is.
    pub fn find(&self, written: &str) -> Result<&Key, Wrong> {
        let name = self.one_name(written);
        self.get(&name).ok_or_else(|| self.unknown(written, &name))
    }

    /// Whether something is known under this first part of a name.
    ///
    /// # Errors
    /// If not, with the nearest there is.
    pub fn check_table(&self, first: &str) -> Result<(), Wrong> {
        let name = self.one_name(first);
        let is_first = |key: &Key| key.name.split('.').next() == Some(&name);
        if TABLES.contains(&first) || self.keys.iter().any(is_first) {
            return Ok(());
        }
        if LATER.contains(&first) {
            let text = format!("{first:?} is not available in this version");
            return Err(Wrong::new(text, "leave it out: nothing would heed it"));
        }
        let mut names: Vec<&str> =
            self.keys.iter().filter_map(|k| k.name.split('.').next()).collect();
        names.extend(TABLES);
        names.extend(self.protocols.iter().flat_map(|protocol| protocol.aliases()));
        // A key of the load that stands at the top is the likeliest slip.
        let below = self.get(&format!("load.{first}")).map(|key| key.name.as_str());
        let meant = below.or_else(|| nearest(first, names.iter().copied()));
        names.sort_unstable();
        names.dedup();
        let mend = match meant {
            Some(meant) => format!("did you mean {meant}?"),
            None => format!("there are: {}", names.join(", ")),
        };
        Err(Wrong::new(format!("there is no key {first:?} in a plan"), mend))
    }

    /// The name that counts: that of the protocol for its alias, `connections` for `publishers`.
    fn one_name(&self, written: &str) -> String {
        match written {
            "load.publishers" => return "load.connections".to_owned(),
            "target.name" => return "target".to_owned(),
            _ => {}
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
        let begins = |key: &Key| key.name.starts_with(&format!("{name}."));
        if self.keys.iter().any(begins) {
            let text = format!("{name} is a table");
            return Wrong::new(text, format!("write [{name}] above its keys"));
        }
        if self.check_table(first).is_err() {
            let near = nearest(name, self.keys.iter().map(|key| key.name.as_str()));
            let mend = near.map(|near| format!("did you mean {near}?"));
            return Wrong::new(
                text,
                mend.unwrap_or_else(|| "keys are written as load.size".into()),
            );
        }
        let all = self.keys.iter().flat_map(|key| self.written(&key.name));
        let names: Vec<String> =
            all.filter(|name| name.starts_with(&format!("{first}."))).collect();
        let mend = match nearest(name, names.iter().map(String::as_str)) {
            Some(near) => format!("did you mean {near}?"),
            None => {
                let plain = |name: &String| name.rsplit('.').next().unwrap_or_default().to_owned();
                let plain: Vec<String> = names.iter().map(plain).collect();
                format!("the keys of {first} are: {}", plain.join(", "))
            }
        };
        Wrong::new(text, mend)
    }
}

/// The keys of the language itself.
const OWN: &[(&str, Kind, &str)] = &[
    ("name", Kind::Text, "What the run is called; the name of the file if it is left out."),
    ("question", Kind::Text, "What you want to know; the report begins with it."),
    ("seed", Kind::Count(0, i64::MAX as u64), "Seed of all chance: due times, order of trials."),
    ("thresholds", Kind::Condition, "What must hold of every cell; exit code 99 if it does not."),
    ("protocol", Kind::Text, "The protocol, where the target speaks several."),
    (
        "target",
        Kind::Text,
        "reference (the default), a real server (mosquitto, mosquitto@no-limits), or a URL.",
    ),
    (
        "target.overload",
        Kind::Text,
        "What a reference broker does when a subscriber is too slow: unlimited, drop-newest:N, \
         drop-oldest:N or disconnect:N.",
    ),
    (
        "load.pattern",
        Kind::Pattern,
        "What one operation is: request, publish, deliver, session or hold; the protocol's own \
         if it is left out.",
    ),
    (
        "load.connections",
        Kind::Count(1, u32::MAX as u64),
        "Connections that produce messages; publishers is the same. 2 if left out.",
    ),
    (
        "load.subscribers",
        Kind::Count(0, u32::MAX as u64),
        "Subscribers of the pattern deliver; 1 if left out.",
    ),
    (
        "load.topology",
        Kind::Topology,
        "Who hears whom in deliver: fan-in, fan-out, pairs or shared.",
    ),
    (
        "load.messages",
        Kind::Count(1, i64::MAX as u64),
        "Messages in total, warm-up apart; instead of duration.",
    ),
    ("load.duration", Kind::Duration, "How long to measure, warm-up apart; 2s if left out."),
    (
        "load.rate",
        Kind::Rate,
        "Messages per second of all clients together (1000/s) or of each (1/s/client).",
    ),
    (
        "load.arrival",
        Kind::Arrival,
        "When messages are due: closed, burst, constant, poisson, periodic, ramp:10s, \
         steps:100/s@5s,200/s@5s or trace:FILE; constant with a rate, else closed.",
    ),
    (
        "load.window",
        Kind::Count(1, u32::MAX as u64),
        "Most messages in flight per connection; 1 in closed loops, else no limit.",
    ),
    ("load.think", Kind::Duration, "Pause after each completed message in closed loops."),
    (
        "load.warmup",
        Kind::Duration,
        "The same load before the measurement, left out of every figure; 500ms if left out.",
    ),
    (
        "load.split",
        Kind::Split,
        "How a total is split over clients: exact, or ceil (rounded up per client).",
    ),
    ("load.size", Kind::Size, "Size of every body: 64B, 1KiB (1,024 bytes), 1KB (1,000)."),
    (
        "load.body",
        Kind::Body,
        "readings, filler, text:TEXT, template:TEXT ({seq} {client} {time}), lines:FILE or \
         file:FILE; files are looked for in the folder that weigh is started in.",
    ),
    (
        "load.timeout",
        Kind::Duration,
        "A message delivered later than this after its due time is late; 5s if left out.",
    ),
    (
        "repeat.at_least",
        Kind::Count(1, u32::MAX as u64),
        "Repetitions of every case; 3 if left out.",
    ),
    (
        "repeat.at_most",
        Kind::Count(1, u32::MAX as u64),
        "Repetitions of a case whose figures are not as precise as until asks.",
    ),
    (
        "repeat.until",
        Kind::Precision,
        "How precise the figures of a case must be: \"p99 within 5 %\".",
    ),
    ("repeat.budget", Kind::Duration, "No trial begins after this time."),
    ("repeat.cool_down", Kind::Duration, "Pause before each trial."),
    (
        "repeat.target",
        Kind::TargetLife,
        "fresh: a process for every trial (the default). kept: one process for all of them.",
    ),
    ("observe.every", Kind::Duration, "How long an interval of the time series is."),
    ("observe.messages", Kind::Flag, "Keeps a record of every single message."),
];

/// Keys beside those of the load that may differ from case to case.
const VARIED: [&str; 3] = ["protocol", "target", "target.overload"];

/// Keys that take a list.
const LISTS: [&str; 2] = ["thresholds", "repeat.until"];

/// Tables whose keys are those of the cases, and the list of what advances together.
pub(crate) const TABLES: [&str; 4] = ["vary", "stop", "case", "zip"];

/// Words of the design that nothing heeds yet.
const LATER: [&str; 6] = ["path", "background", "offload", "pcap", "tls", "fleet"];
