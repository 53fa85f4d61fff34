//! The keys of a load, each defined once: name, values, flag, default, meaning and the page with
//! the reasons. The keys of plans, the flags of commands with a load, the JSON Schema and the table
//! in `docs/guide/choosing-a-load.md` are made from this list. A new key is an entry here, a field
//! of [`crate::LoadWords`] or of one of its groups, and the code that uses it.

use weigh_model::seal::{Cipher, RECIPIENTS_MAX};

use crate::kind::Kind;

/// A key of a load.
///
/// # Examples
///
/// ```
/// use weigh_plan::load_keys;
///
/// let rate = load_keys::find("rate").expect("load.rate is a key");
/// assert_eq!(rate.flag.map(|flag| flag.typed()).as_deref(), Some("-R"));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct LoadKey {
    /// Its name in the table `load`: `connections`, `body.sealed`.
    pub name: &'static str,
    /// Other ways to write it in a plan, whole: `poll.period`.
    pub others: &'static [&'static str],
    /// What a value counts, or the unit that figures are in when they are computed: `s`, `B`,
    /// `messages`; empty for a word.
    pub unit: &'static str,
    /// What values it takes.
    pub kind: Kind,
    /// What holds where it is left out. A value that is one stands first: `2; 1 in transfer`.
    pub default: &'static str,
    /// What it means, without the last full stop; the first sentence stands alone in `-h`.
    pub definition: &'static str,
    /// The words that it takes, each with its meaning; empty for numbers and times.
    pub values: &'static [(&'static str, &'static str)],
    /// The flag that sets it; `None` for a key of plans alone.
    pub flag: Option<Flag>,
    /// The page below `docs` that gives the reasons.
    pub source: &'static str,
}

/// The flag of a key.
#[derive(Clone, Copy, Debug)]
pub struct Flag {
    /// Its name behind two dashes.
    pub long: &'static str,
    /// Its letter behind one dash.
    pub short: Option<char>,
    /// Another name, and another letter, that the help shows.
    pub other: Option<(&'static str, char)>,
    /// A letter of another tool that is understood too.
    pub silent: Option<char>,
    /// The word that it stands for and its help, where it takes no value.
    pub switch: Option<(&'static str, &'static str)>,
    /// False for what one command reads in a way of its own.
    pub is_of_all: bool,
}

impl LoadKey {
    /// Its name in a plan: `load.connections`.
    pub fn whole(&self) -> String {
        format!("load.{}", self.name)
    }

    /// Its definition with the words that it takes, as one sentence without a full stop.
    pub fn meaning(&self) -> String {
        let Some(((last, its), others)) = self.values.split_last() else {
            return self.definition.to_owned();
        };
        let others = others.iter().map(|(word, means)| format!("{word} ({means}), "));
        format!("{}: {}or {last} ({its})", self.definition, others.collect::<String>())
    }

    /// Description for the editor of a plan.
    pub fn doc(&self) -> String {
        let mut doc = format!("{}.", self.meaning());
        if !self.default.is_empty() {
            doc += &format!(" Default: {}.", self.default);
        }
        for other in self.others {
            doc += &format!(" {} is the same.", other.strip_prefix("load.").unwrap_or(other));
        }
        doc
    }

    /// The help of its flag in one line: the first sentence, the words that it takes, and the
    /// default that usually holds.
    pub fn short_help(&self) -> String {
        if let Some((_, help)) = self.flag.and_then(|flag| flag.switch) {
            return help.to_owned();
        }
        let mut first = self.definition.split(". ").next().unwrap_or_default().to_owned();
        if let Some(((last, _), others)) = self.values.split_last() {
            let others: Vec<&str> = others.iter().map(|(word, _)| *word).collect();
            first += &format!(": {} or {last} (see --help)", others.join(", "));
        }
        let usual = self.default.split([';', ',']).next().unwrap_or_default();
        let is_short = usual.len() <= SHORT_DEFAULT;
        with_default(first, if is_short { usual } else { "" })
    }

    /// The whole help of its flag, with a line for each word that it takes.
    pub fn help(&self) -> String {
        if let Some((_, help)) = self.flag.and_then(|flag| flag.switch) {
            return help.to_owned();
        }
        let mut help = self.definition.to_owned();
        if let Some((long, short)) = self.flag.and_then(|flag| flag.other) {
            help += &format!(". Also -{short}, --{long}");
        }
        let width = self.values.iter().map(|(word, _)| word.len());
        let width = width.filter(|width| *width <= WORD_WIDTH_MAX).max().unwrap_or_default();
        let line = |(word, means): &(&str, &str)| format!("\n  {word:<width$}  {means}");
        let lines: String = self.values.iter().map(line).collect();
        let gap = if lines.is_empty() { "" } else { "\n" };
        format!("{}{gap}{lines}", with_default(help, self.default))
    }
}

/// Characters of a word after which its meaning still starts in the common column.
const WORD_WIDTH_MAX: usize = 16;

/// Characters of a default that fits into the short help.
const SHORT_DEFAULT: usize = 22;

fn with_default(help: String, default: &str) -> String {
    if default.is_empty() { help } else { format!("{help} [default: {default}]") }
}

/// What most flags have.
const FLAG: Flag =
    Flag { long: "", short: None, other: None, silent: None, switch: None, is_of_all: true };

impl Flag {
    /// How it is typed: `-c`, `--topology`.
    pub fn typed(&self) -> String {
        match self.short {
            Some(letter) => format!("-{letter}"),
            None => format!("--{}", self.long),
        }
    }

    const fn long(long: &'static str) -> Option<Flag> {
        Some(Flag { long, ..FLAG })
    }

    const fn short(long: &'static str, short: char, silent: Option<char>) -> Option<Flag> {
        Some(Flag { long, short: Some(short), silent, ..FLAG })
    }
}

/// The key of this name in the table `load`.
pub fn find(name: &str) -> Option<&'static LoadKey> {
    LOAD_KEYS.iter().find(|key| key.name == name)
}

/// What most entries have.
const KEY: LoadKey = LoadKey {
    name: "",
    others: &[],
    unit: "",
    kind: Kind::Duration,
    default: "",
    definition: "",
    values: &[],
    flag: None,
    source: CHOOSING,
};

/// All of them.
pub const LOAD_KEYS: &[LoadKey] = &[
    LoadKey {
        name: "pattern",
        kind: Kind::Pattern,
        default: "depends on the protocol; publish for coap; request for http, http2, http3, grpc \
                  and tcp; otherwise deliver",
        definition: "What is measured",
        values: &[
            ("request", "a request and its answer; not over MQTT, AMQP, SSE"),
            ("publish", "a message and its confirmation, if any; over HTTP request with POST"),
            ("deliver", "through the server to subscribers; not HTTP, gRPC"),
            ("poll", "consumers ask; only HTTP/1.1, CoAP, NATS, AMQP, Redis"),
            ("batch", "several at once; not HTTP/2, HTTP/3, CoAP, WebSocket, SSE"),
            ("session", "connect, send one message, close; not over SSE"),
            ("transfer", "a large object; only HTTP/1.1, MQTT, TCP, CoAP, AMQP 0-9-1"),
            ("hold", "stay connected, send nothing; not over CoAP"),
        ],
        flag: Flag::long("pattern"),
        ..KEY
    },
    LoadKey {
        name: "connections",
        others: &["load.publishers"],
        unit: "connections",
        kind: Kind::Count(1, u32::MAX as u64),
        default: "2; 100 in weigh compare without protocols; 1 with the pattern transfer or \
                  --stalled-subscriber",
        definition: "Number of connections that send messages",
        flag: Some(Flag {
            long: "connections",
            short: Some('c'),
            other: Some(("publishers", 'x')),
            ..FLAG
        }),
        source: "decisions/0006-two-connections.md",
        ..KEY
    },
    LoadKey {
        name: "subscribers",
        unit: "connections",
        kind: Kind::Count(0, u32::MAX as u64),
        default: "1; none with the pattern transfer over a protocol that cannot deliver",
        definition: "Number of subscribers for the patterns deliver and transfer, or of polling \
                     consumers for poll",
        flag: Flag::short("subscribers", 'y', None),
        ..KEY
    },
    LoadKey {
        name: "topology",
        kind: Kind::Topology,
        default: "fan-in if there is one subscriber; pairs if there are as many as publishers (not \
                  for poll); otherwise fan-out",
        definition: "Who receives from whom, for the patterns deliver, poll and transfer",
        values: &[
            ("fan-in", "all publishers to one subscriber"),
            ("fan-out", "every message to every subscriber"),
            ("pairs", "publisher N to subscriber N"),
            ("shared", "each message to one of several; the MQTT broker chooses"),
        ],
        flag: Flag::long("topology"),
        ..KEY
    },
    LoadKey {
        name: "messages",
        unit: "messages",
        kind: Kind::Count(1, i64::MAX as u64),
        definition: "Number of messages per trial, over all connections, in place of a duration. \
                     Type 10000, 10k or 1e4. The warm-up has messages of its own",
        flag: Flag::short("messages", 'n', Some('a')),
        ..KEY
    },
    LoadKey {
        name: "duration",
        unit: "s",
        default: "2s; 10s with --stalled-subscriber; 900ms in weigh compare without protocols; \
                  none with -n, --arrival steps or --arrival trace",
        definition: "Time to measure after the warm-up, such as 10s or 2m",
        flag: Flag::short("duration", 'd', Some('z')),
        ..KEY
    },
    LoadKey {
        name: "rate",
        unit: "messages/s",
        kind: Kind::Rate,
        definition: "Rate in total (1k/s, 600/min) or per client (1/s/client, 1/60s/client). \
                     1/60s/client is one message per 60 s from each client. Without a rate each \
                     client waits for an answer before it sends again",
        flag: Flag::short("rate", 'R', None),
        source: "decisions/0004-closed-loops-and-the-lag-gate.md",
        ..KEY
    },
    LoadKey {
        name: "arrival",
        kind: Kind::Arrival,
        default: "closed; constant with a rate; periodic with a rate per client",
        definition: "When messages are due",
        values: &[
            ("closed", "as soon as an earlier message of the client is answered"),
            ("constant", "evenly, at the rate; if per client, all clients at the same instants"),
            ("poisson", "at random times, at the rate on average"),
            ("periodic", "each client evenly, from its own random start"),
            (
                "each-second",
                "a closed loop: each second, each client sends its share of -R, then pauses",
            ),
            ("burst", "all at once"),
            ("ramp:10s", "closed loop; the clients join over 10 s"),
            ("steps:100/s@5s,200/s@5s", "100/s for 5 s, then 200/s for 5 s"),
            ("trace:FILE", "at the times in a file: seconds, one number per line"),
        ],
        flag: Flag::long("arrival"),
        source: "decisions/0004-closed-loops-and-the-lag-gate.md",
        ..KEY
    },
    LoadKey {
        name: "join",
        kind: Kind::Join,
        default: "all connect before the load",
        definition: "Groups in which clients connect while the load runs: 100 every 500ms. With \
                     the topology pairs, each client connects with its subscriber",
        source: "decisions/0036-emulated-figures.md",
        ..KEY
    },
    LoadKey {
        name: "window",
        unit: "messages",
        kind: Kind::Count(1, u32::MAX as u64),
        default: "1 in closed loops and transfers, otherwise no limit",
        definition: "Largest number of messages in flight per connection. For the pattern batch it \
                     counts exchanges. MQTT above QoS 0 has at most 65,535",
        flag: Flag::long("window"),
        ..KEY
    },
    LoadKey {
        name: "poll_period",
        others: &["poll.period"],
        unit: "s",
        default: "1s; none with long polling",
        definition: "Time from one request of a polling consumer to its next. With long \
                     polling, the pause from an answer to the next request",
        flag: Flag::long("period"),
        source: "decisions/0022-consumers-that-ask.md",
        ..KEY
    },
    LoadKey {
        name: "poll_wait",
        others: &["poll.wait"],
        unit: "s",
        definition: "Use long polling for the pattern poll: the server holds a request for this \
                     long if it has no new message",
        flag: Flag::long("wait"),
        source: "decisions/0022-consumers-that-ask.md",
        ..KEY
    },
    LoadKey {
        name: "poll_limit",
        others: &["poll.limit"],
        unit: "messages",
        kind: Kind::Count(1, 10_000),
        default: "1000",
        definition: "Largest number of messages in one answer, for the pattern poll. A full \
                     answer is followed by the next request at once",
        flag: Flag::long("poll-limit"),
        source: "decisions/0022-consumers-that-ask.md",
        ..KEY
    },
    LoadKey {
        name: "stall",
        unit: "s",
        default: "none",
        definition: "Time for which subscribers read nothing, from the start of the measured \
                     window, for the pattern deliver",
        flag: Some(Flag { long: "stalled-subscriber", is_of_all: false, ..FLAG }),
        source: "decisions/0032-brokers-as-data.md",
        ..KEY
    },
    LoadKey {
        name: "batch",
        unit: "messages",
        kind: Kind::Count(1, 100_000),
        default: "100",
        definition: "Number of messages in one exchange, for the pattern batch",
        flag: Flag::long("batch"),
        source: "guide/polling.md",
        ..KEY
    },
    LoadKey {
        name: "writes",
        kind: Kind::Choice(&["coalesced", "single"]),
        default: "coalesced",
        definition: "Writes to the socket of messages that are due together",
        values: &[("coalesced", "as few as possible"), ("single", "one for each message")],
        flag: Some(Flag { long: "single-writes", switch: Some(SINGLE_WRITES), ..FLAG }),
        source: "decisions/0036-emulated-figures.md",
        ..KEY
    },
    LoadKey {
        name: "think",
        unit: "s",
        default: "0s",
        definition: "Pause of a client after each completed message, in closed loops",
        flag: Flag::long("think"),
        source: "decisions/0004-closed-loops-and-the-lag-gate.md",
        ..KEY
    },
    LoadKey {
        name: "warmup",
        unit: "s",
        default: "500ms; 200ms in weigh compare without protocols; none for the patterns transfer \
                  and hold, for --arrival burst, ramp and trace, for --axis burst, and if clients \
                  join during the load (plan key load.join)",
        definition: "Warm-up time, excluded from the results",
        flag: Flag::long("warmup"),
        ..KEY
    },
    LoadKey {
        name: "split",
        kind: Kind::Split,
        default: "exact",
        definition: "How a total number of messages is divided among clients",
        values: &[
            ("exact", "the shares add up to the total; some clients send one more"),
            ("ceil", "all shares are equal and rounded up, so the total may grow"),
        ],
        flag: Flag::long("split"),
        ..KEY
    },
    LoadKey {
        name: "size",
        unit: "B",
        kind: Kind::Size,
        default: "the size of the content",
        definition: "Size of every body, such as 64B, 1KiB or 1KB (1,000 bytes)",
        flag: Flag::short("size", 's', None),
        source: "decisions/0003-the-mark.md",
        ..KEY
    },
    LoadKey {
        name: "body",
        kind: Kind::Body,
        default: "readings; filler with a size",
        definition: "Content of every body",
        values: &[
            ("readings", "JSON readings of sensors, about 125 bytes"),
            ("filler", "generated bytes of the size -s"),
            ("text:TEXT", "this text"),
            ("template:TEXT", "a text with {seq}, {client} and {time}"),
            ("lines:FILE", "one line of a CSV or JSON-lines file per message"),
            ("file:FILE", "a whole file; FILE is relative to the current folder"),
            ("sealed:BODY", "one of these, encrypted: docs/guide/sealed-payload.md"),
        ],
        flag: Flag::long("body"),
        ..KEY
    },
    LoadKey {
        name: "body.sealed",
        kind: Kind::Body,
        definition: "Content of every body, sealed as a COSE object: body = { sealed = \
                     \"readings\" }",
        source: "decisions/0024-sealed-payload.md",
        ..KEY
    },
    LoadKey {
        name: "body.recipients",
        unit: "participants",
        kind: Kind::Count(0, RECIPIENTS_MAX as u64),
        default: "1 with a sealed body, otherwise none",
        definition: "Number of recipients for which every body is encrypted, see \
                     docs/guide/sealed-payload.md; 0 leaves it unencrypted",
        flag: Flag::long("seal-to"),
        source: "decisions/0024-sealed-payload.md",
        ..KEY
    },
    LoadKey {
        name: "body.cipher",
        kind: Kind::Choice(&Cipher::NAMES),
        default: "aes-128-gcm",
        definition: "Cipher of sealed bodies",
        source: "decisions/0024-sealed-payload.md",
        ..KEY
    },
    LoadKey {
        name: "body.signed",
        kind: Kind::Flag,
        default: "true",
        definition: "Whether sealed bodies are signed",
        source: "decisions/0024-sealed-payload.md",
        ..KEY
    },
    LoadKey {
        name: "body.policy",
        kind: Kind::Flag,
        default: "false",
        definition: "Whether a policy that names every recipient is bound to sealed bodies",
        source: "decisions/0024-sealed-payload.md",
        ..KEY
    },
    LoadKey {
        name: "timeout",
        unit: "s",
        default: "5s; 60s for the pattern transfer; two periods for poll, if that is more; the \
                  stall plus 20s with stalled subscribers; on a slow path at least 10 times \
                  what one message takes there without load",
        definition: "A message that arrives later than this after its due time counts as late",
        flag: Flag::long("timeout"),
        source: "decisions/0042-slow-paths-and-radios.md",
        ..KEY
    },
];

/// The word that `--single-writes` stands for, and its help.
const SINGLE_WRITES: (&str, &str) = (
    "single",
    "Write each message to the socket separately, even if several are due together [default: as \
     few writes as possible]",
);

const CHOOSING: &str = "guide/choosing-a-load.md";
