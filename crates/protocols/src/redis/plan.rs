//! What all clients of a trial send: commands, rendered once, up to what differs.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use weigh_model::load::Polling;
use weigh_model::mark::MARK_BYTES;
use weigh_model::protocol::Invalid;
use weigh_model::trial::{Settings, Trial};
use weigh_model::{Pattern, Topology};

use super::codec::{Id, put_array, put_bulk};

/// Command of every message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Command {
    Xadd,
    Publish,
    Set,
}

/// Way in which consumers read a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reading {
    Plain,
    /// By a consumer group.
    Group {
        /// True if entries are acknowledged with XACK.
        acknowledges: bool,
    },
}

/// Settings of all clients.
pub(super) struct Plan {
    pub(super) command: Command,
    pub(super) reading: Reading,
    pub(super) bytes_max: usize,
    /// Most entries in one answer.
    pub(super) count: u32,
    pub(super) polling: Option<Polling>,
    /// True if consumers share one group.
    pub(super) is_shared: bool,
    pub(super) delivers: bool,
    /// First bytes of a connection, and the number of answers to them.
    pub(super) greeting: Greeting,
    /// Keys by list; one, or one for each producer.
    pub(super) lists: Vec<List>,
    tag: u16,
    /// Last IDs of consumers whose connections have ended, by seat.
    cursors: Mutex<HashMap<u32, Id>>,
}

/// First commands of a connection.
#[derive(Default)]
pub(super) struct Greeting {
    pub(super) bytes: Vec<u8>,
    pub(super) answers: u32,
}

/// A key and the commands for it.
pub(super) struct List {
    pub(super) key: String,
    /// A message up to the length of its body.
    pub(super) head: Vec<u8>,
}

impl Plan {
    /// Reads a trial.
    ///
    /// # Errors
    /// A trial that Redis cannot do.
    pub(super) fn read(trial: &Trial) -> Result<Plan, Invalid> {
        let (settings, load) = (&trial.settings, &trial.load);
        let command = command(settings);
        check(trial, command)?;
        let reading = match settings.text("read") {
            "plain" => Reading::Plain,
            _ => Reading::Group { acknowledges: settings.flag("ack") },
        };
        let is_in_pairs = load.subscribers > 0 && load.topology == Topology::Pairs;
        let lists = if is_in_pairs { load.connections } else { 1 };
        let list = |list: u32| list_of(settings, command, is_in_pairs.then_some(list));
        Ok(Plan {
            command,
            reading,
            bytes_max: settings.integer("bulk_bytes_max").max(64) as usize,
            count: settings.integer("count").max(1) as u32,
            polling: load.polling(),
            is_shared: load.topology == Topology::Shared,
            delivers: load.delivers(),
            greeting: greeting(trial)?,
            lists: (0..lists).map(list).collect(),
            tag: trial.tag(),
            cursors: Mutex::default(),
        })
    }

    /// The list of a seat.
    pub(super) fn list(&self, index: u32) -> &List {
        &self.lists[index as usize % self.lists.len()]
    }

    /// Name of the group of a consumer: of the trial, so that no trial continues another.
    pub(super) fn group(&self, index: u32) -> String {
        match self.is_shared {
            true => format!("weigh-{:04x}", self.tag),
            false => format!("weigh-{:04x}-{index}", self.tag),
        }
    }

    /// Takes the cursor that the last connection of a seat left.
    pub(super) fn take_cursor(&self, seat: u32) -> Option<Id> {
        self.cursors.lock().unwrap_or_else(PoisonError::into_inner).remove(&seat)
    }

    /// Leaves a cursor for the next connection of a seat.
    pub(super) fn leave_cursor(&self, seat: u32, at: Id) {
        self.cursors.lock().unwrap_or_else(PoisonError::into_inner).insert(seat, at);
    }
}

/// The command of these settings.
pub(super) fn command(settings: &Settings) -> Command {
    match settings.text("command") {
        "publish" => Command::Publish,
        "set" => Command::Set,
        _ => Command::Xadd,
    }
}

/// Appends a request of these words.
pub(super) fn put_request(out: &mut Vec<u8>, words: &[&[u8]]) {
    put_array(out, words.len());
    words.iter().for_each(|word| put_bulk(out, word));
}

fn check(trial: &Trial, command: Command) -> Result<(), Invalid> {
    let (settings, load) = (&trial.settings, &trial.load);
    let has_consumers = load.delivers() || load.pattern == Pattern::Poll;
    if has_consumers && command == Command::Set {
        return Err(Invalid::new(
            "redis.command",
            "SET overwrites a key, and no consumer gets every value",
            "type --set redis.command=xadd or publish",
        ));
    }
    if load.pattern == Pattern::Poll && command == Command::Publish {
        return Err(Invalid::new(
            "redis.command",
            "a channel keeps nothing that a consumer could ask for",
            "type --set redis.command=xadd, or --pattern deliver",
        ));
    }
    let is_in_group = command == Command::Xadd && settings.text("read") != "plain";
    if load.topology == Topology::Shared && !is_in_group {
        let (key, fix) = match command {
            Command::Xadd => ("redis.read", "type --set redis.read=group"),
            _ => ("redis.command", "type --set redis.command=xadd, or --topology fan-in"),
        };
        return Err(Invalid::new(key, "only a consumer group shares messages", fix));
    }
    if has_consumers
        && load.connections > 1
        && load.topology != Topology::Pairs
        && load.size.is_some_and(|size| size.0 < MARK_BYTES as u64)
    {
        return Err(Invalid::new(
            "load.size",
            "bodies without room for a mark cannot be distinguished where producers share a key",
            format!("type at least {MARK_BYTES}B, one producer (-c 1), or --topology pairs"),
        ));
    }
    let most = settings.integer("bulk_bytes_max");
    if let Some(size) = load.size.filter(|size| size.0 > most) {
        return Err(Invalid::new(
            "load.size",
            format!("{size} is more than redis.bulk_bytes_max"),
            format!("type at most {most}B, or raise redis.bulk_bytes_max"),
        ));
    }
    let field = settings.text("field");
    if field.is_empty() {
        return Err(Invalid::new("redis.field", "a field needs a name", "type a word"));
    }
    Ok(())
}

/// The commands before the first message. RESP 2 without credentials and with database 0 has none.
fn greeting(trial: &Trial) -> Result<Greeting, Invalid> {
    let endpoint = trial.endpoint.as_ref();
    let credentials = endpoint.and_then(|endpoint| endpoint.credentials.as_ref());
    let mut greeting = Greeting::default();
    let mut put = |words: &[&[u8]]| {
        put_request(&mut greeting.bytes, words);
        greeting.answers += 1;
    };
    let user = credentials.map_or("", |own| &*own.user);
    let user = if user.is_empty() { "default" } else { user };
    match (trial.settings.text("resp"), credentials) {
        ("3", None) => put(&[b"HELLO", b"3"]),
        ("3", Some(own)) => {
            put(&[b"HELLO", b"3", b"AUTH", user.as_bytes(), own.password.as_bytes()]);
        }
        // Servers before 6.0 have no users.
        (_, Some(own)) if user == "default" => put(&[b"AUTH", own.password.as_bytes()]),
        (_, Some(own)) => put(&[b"AUTH", user.as_bytes(), own.password.as_bytes()]),
        (_, None) => {}
    }
    let path = endpoint.map_or("", |endpoint| endpoint.path.trim_matches('/'));
    let db = match path {
        "" => trial.settings.text("db"),
        _ if path.parse::<u16>().is_ok() => path,
        _ => {
            return Err(Invalid::new(
                "target",
                format!("the path of a redis:// URL is the number of a database, not {path:?}"),
                "type redis://HOST/0",
            ));
        }
    };
    if !matches!(db, "" | "0") {
        put(&[b"SELECT", db.as_bytes()]);
    }
    Ok(greeting)
}

fn list_of(settings: &Settings, command: Command, list: Option<u32>) -> List {
    let usual = match command {
        Command::Xadd => "weigh:stream",
        Command::Publish => "weigh:channel",
        Command::Set => "weigh:string",
    };
    let key = settings.text("key");
    let mut key = if key.is_empty() { usual } else { key }.to_owned();
    if let Some(list) = list {
        key.push_str(&format!(":{list}"));
    }
    let maxlen = settings.integer("maxlen");
    let (maxlen_text, field) = (maxlen.to_string(), settings.text("field"));
    let mut words: Vec<&[u8]> = match command {
        Command::Xadd => vec![&b"XADD"[..], key.as_bytes()],
        Command::Publish => vec![&b"PUBLISH"[..], key.as_bytes()],
        Command::Set => vec![&b"SET"[..], key.as_bytes()],
    };
    if command == Command::Xadd {
        if maxlen > 0 {
            let how: &[u8] = if settings.flag("maxlen_exact") { b"=" } else { b"~" };
            words.extend([&b"MAXLEN"[..], how, maxlen_text.as_bytes()]);
        }
        words.extend([&b"*"[..], field.as_bytes()]);
    }
    let mut head = Vec::new();
    put_array(&mut head, words.len() + 1);
    words.iter().for_each(|word| put_bulk(&mut head, word));
    List { key, head }
}
