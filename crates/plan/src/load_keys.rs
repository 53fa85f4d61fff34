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

    /// Description for the editor of a plan.
    pub fn doc(&self) -> String {
        let mut doc = format!("{}.", self.definition);
        if !self.default.is_empty() {
            doc += &format!(" Default: {}.", self.default);
        }
        for other in self.others {
            doc += &format!(" {} is the same.", other.strip_prefix("load.").unwrap_or(other));
        }
        doc
    }

    /// The help of its flag in one line: the first sentence, and the default that usually holds.
    pub fn short_help(&self) -> String {
        if let Some((_, help)) = self.flag.and_then(|flag| flag.switch) {
            return help.to_owned();
        }
        let first = self.definition.split(". ").next().unwrap_or_default();
        let usual = self.default.split([';', ',']).next().unwrap_or_default();
        let is_short = usual.len() <= SHORT_DEFAULT;
        with_default(first.to_owned(), if is_short { usual } else { "" })
    }

    /// The whole help of its flag.
    pub fn help(&self) -> String {
        if let Some((_, help)) = self.flag.and_then(|flag| flag.switch) {
            return help.to_owned();
        }
        let mut help = self.definition.to_owned();
        if let Some((long, short)) = self.flag.and_then(|flag| flag.other) {
            help += &format!(". Also -{short}, --{long}");
        }
        with_default(help, self.default)
    }
}

/// Characters of a default that fits into the short help.
const SHORT_DEFAULT: usize = 12;

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
    flag: None,
    source: CHOOSING,
};

/// All of them.
pub const LOAD_KEYS: &[LoadKey] = &[
    LoadKey {
        name: "pattern",
        kind: Kind::Pattern,
        default: "the usual one of the protocol: deliver for mqtt, request for the others",
        definition: "What is measured: request, publish (to the server), deliver (through it to a \
                     subscriber), poll, batch, session, transfer or hold",
        flag: Flag::long("pattern"),
        ..KEY
    },
    LoadKey {
        name: "connections",
        others: &["load.publishers"],
        unit: "connections",
        kind: Kind::Count(1, u32::MAX as u64),
        default: "2; 1 in transfer",
        definition: "Number of connections that send messages",
        flag: Some(Flag {
            long: "connections",
            short: Some('c'),
            other: Some(("publishers", 'x')),
            ..FLAG
        }),
        source: "decisions/0006-two-connections.md",
    },
    LoadKey {
        name: "subscribers",
        unit: "connections",
        kind: Kind::Count(0, u32::MAX as u64),
        default: "1; none in transfer over a protocol that cannot deliver",
        definition: "Number of subscribers in deliver and transfer, or of polling consumers",
        flag: Flag::short("subscribers", 'y', None),
        ..KEY
    },
    LoadKey {
        name: "topology",
        kind: Kind::Topology,
        default: "fan-in, if there is at most one subscriber",
        definition: "Who receives from whom in deliver, poll and transfer: fan-in, fan-out, \
                     pairs or shared. With several subscribers the default is fan-out. With \
                     equal numbers of publishers and subscribers, above one, it is pairs; in \
                     poll it stays fan-out",
        flag: Flag::long("topology"),
        ..KEY
    },
    LoadKey {
        name: "messages",
        unit: "messages",
        kind: Kind::Count(1, i64::MAX as u64),
        definition: "Number of messages in total, in place of a duration: 10000, 10k or 1e4. The \
                     warm-up has messages of its own",
        flag: Flag::short("messages", 'n', Some('a')),
        ..KEY
    },
    LoadKey {
        name: "duration",
        unit: "s",
        default: "2s, where nothing else ends the load",
        definition: "Time to measure after the warm-up, such as 10s or 2m",
        flag: Flag::short("duration", 'd', Some('z')),
        ..KEY
    },
    LoadKey {
        name: "rate",
        unit: "messages/s",
        kind: Kind::Rate,
        definition: "Messages per second in total (1k/s, 600/m) or per client (1/s/client). \
                     1/60s/client is one a minute from each client. Without a rate each client \
                     waits for an answer before it sends again",
        flag: Flag::short("rate", 'R', None),
        source: "decisions/0004-closed-loops-and-the-lag-gate.md",
        ..KEY
    },
    LoadKey {
        name: "arrival",
        kind: Kind::Arrival,
        default: "closed; constant with a rate",
        definition: "When messages are due: closed, burst, constant, poisson, periodic, \
                     each-second, ramp:10s, steps:100/s@5s,200/s@5s or trace:FILE",
        flag: Flag::long("arrival"),
        source: "decisions/0004-closed-loops-and-the-lag-gate.md",
        ..KEY
    },
    LoadKey {
        name: "join",
        kind: Kind::Join,
        default: "all connect before the load",
        definition: "Groups in which clients connect and start, in pairs with their subscribers: \
                     100 every 500ms",
        source: "decisions/0036-emulated-figures.md",
        ..KEY
    },
    LoadKey {
        name: "window",
        unit: "messages",
        kind: Kind::Count(1, u32::MAX as u64),
        default: "1 in closed loops and transfers, otherwise no limit",
        definition: "Largest number of messages in flight per connection. In batch it counts \
                     exchanges",
        flag: Flag::long("window"),
        ..KEY
    },
    LoadKey {
        name: "poll_period",
        others: &["poll.period"],
        unit: "s",
        default: "1s; none in a long poll",
        definition: "Time from one request of a polling consumer to its next. In a long poll \
                     the period starts when the answer arrives",
        flag: Flag::long("period"),
        source: "decisions/0022-consumers-that-ask.md",
        ..KEY
    },
    LoadKey {
        name: "poll_wait",
        others: &["poll.wait"],
        unit: "s",
        definition: "Time that the server holds a request while it has nothing new, which makes \
                     poll a long poll",
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
        definition: "Largest number of messages in one answer of poll. A full answer is followed \
                     by the next request at once",
        flag: Flag::long("poll-limit"),
        source: "decisions/0022-consumers-that-ask.md",
    },
    LoadKey {
        name: "stall",
        unit: "s",
        default: "none",
        definition: "Time from the start of the measured window in which subscribers of deliver \
                     read nothing, like a program that hangs",
        flag: Some(Flag { long: "stalled-subscriber", is_of_all: false, ..FLAG }),
        source: "decisions/0032-brokers-as-data.md",
        ..KEY
    },
    LoadKey {
        name: "batch",
        unit: "messages",
        kind: Kind::Count(1, 100_000),
        default: "100",
        definition: "Number of messages in one exchange of batch",
        flag: Flag::long("batch"),
        source: "guide/polling.md",
        ..KEY
    },
    LoadKey {
        name: "writes",
        kind: Kind::Choice(&["coalesced", "single"]),
        default: "coalesced",
        definition: "Writes to the socket of messages that are due together: coalesced (as few \
                     as possible) or single (one for each message)",
        flag: Some(Flag { long: "single-writes", switch: Some(SINGLE_WRITES), ..FLAG }),
        source: "decisions/0036-emulated-figures.md",
        ..KEY
    },
    LoadKey {
        name: "think",
        unit: "s",
        default: "0s",
        definition: "Pause after each completed message in closed loops",
        flag: Flag::long("think"),
        source: "decisions/0004-closed-loops-and-the-lag-gate.md",
        ..KEY
    },
    LoadKey {
        name: "warmup",
        unit: "s",
        default: "500ms",
        definition: "Warm-up time, excluded from the results. The default is none for the patterns \
                     transfer and hold, for the arrivals burst, ramp and trace, and with the plan \
                     key load.join",
        flag: Flag::long("warmup"),
        ..KEY
    },
    LoadKey {
        name: "split",
        kind: Kind::Split,
        default: "exact",
        definition: "How a total is divided among clients: exact, or ceil (rounded up per client)",
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
        definition: "Content of every body: readings, filler, text:TEXT, template:TEXT ({seq} \
                     {client} {time}), lines:FILE (CSV or JSON lines) or file:FILE. sealed:BODY \
                     seals any of these. Options come before the colon, such as \
                     sealed,recipients=3:readings. The other options are cipher=NAME, unsigned \
                     and policy. File names are relative to the current folder",
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
        default: "1 for a sealed body",
        definition: "Number of recipients that every body is sealed for; 0 leaves it unencrypted",
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
        default: "5s; 60s in transfer",
        definition: "A message delivered this long after its due time, or later, counts as late. \
                     The default is longer in poll (two periods, if that is more), with stalled \
                     subscribers (20s more than the stall) and on slow paths (10 times the round \
                     trips of a message)",
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
