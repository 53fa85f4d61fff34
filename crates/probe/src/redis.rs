//! Probes a server of Redis: what it says about itself (INFO, CONFIG GET), and what it does when it
//! is asked. Keys have names that are used nowhere else, and are deleted.

use weigh_model::Durability;
use weigh_model::units::Nanos;
use weigh_protocols::redis::codec::{Flaw, Reply, Token, put_array, put_bulk, read_reply};

use crate::abilities::{Ability, How, Status};
use crate::exchange::Exchange;
use crate::finding::{Asking, Found, Question, ask_all, question};
use crate::mqtt::Bounds;
use crate::reach::{Reach, Trouble, unused_name};
use crate::search::largest_passing;

/// Asks everything.
///
/// # Errors
/// If it is not a server of Redis, or refuses every client.
pub(crate) fn probe(
    reach: &Reach,
    bounds: Bounds,
    tell: &mut dyn FnMut(&Ability),
) -> Result<Vec<Ability>, Trouble> {
    let mut scene = Scene {
        reach: reach.clone(),
        bounds,
        key: format!("weigh-probe-{}", unused_name()),
        found: Vec::new(),
    };
    match scene.ask(&[b"PING"])? {
        Answer::Error(text) => return Err(Trouble::Refused(text)),
        Answer::Texts(_) | Answer::Number => {}
    }
    ask_all(&mut scene, QUESTIONS, tell);
    // What an interrupted question left.
    let _ = scene.delete();
    Ok(scene.found)
}

const QUESTIONS: &[Question<Scene>] = &[
    question("version", version),
    question("mode", |scene| text(scene, "server", "redis_mode")),
    question("role", |scene| text(scene, "replication", "role")),
    question("resp3", resp3),
    question("publish", publish),
    question("set", set),
    question("streams", streams),
    question("consumer_groups", consumer_groups),
    question("value_bytes", value_bytes),
    question("clients", |scene| number(scene, "maxclients", "clients")),
    question("memory_bytes", memory_bytes),
    question("eviction", |scene| setting(scene, "maxmemory-policy")),
    question("subscriber_buffer", subscriber_buffer),
    question("durability", durability),
];

/// A server that is asked.
struct Scene {
    reach: Reach,
    bounds: Bounds,
    /// A key, and a channel, that no other client uses.
    key: String,
    found: Vec<Ability>,
}

/// Answer to a command.
#[derive(Clone, Debug)]
enum Answer {
    Error(String),
    /// A number, such as of subscribers or of deleted keys.
    Number,
    /// A string, or those of a list.
    Texts(Vec<String>),
}

impl Asking for Scene {
    fn found(&mut self) -> &mut Vec<Ability> {
        &mut self.found
    }

    fn is_over(&self) -> bool {
        self.reach.until().is_err()
    }
}

impl Scene {
    /// One command on a connection of its own.
    fn ask(&self, words: &[&[u8]]) -> Result<Answer, Trouble> {
        let mut line = Exchange::open(&self.reach)?;
        if let Some(own) = &self.reach.endpoint.credentials {
            let login: &[&[u8]] = match own.user.is_empty() {
                true => &[b"AUTH", own.password.as_bytes()],
                false => &[b"AUTH", own.user.as_bytes(), own.password.as_bytes()],
            };
            if let Answer::Error(text) = command(&mut line, login)? {
                return Err(Trouble::Refused(text));
            }
        }
        command(&mut line, words)
    }

    /// A command that must succeed.
    fn done(&self, words: &[&[u8]]) -> Result<Answer, Trouble> {
        match self.ask(words)? {
            Answer::Error(text) => Err(Trouble::Refused(text)),
            answer => Ok(answer),
        }
    }

    fn delete(&self) -> Result<(), Trouble> {
        self.done(&[b"DEL", self.key.as_bytes()]).map(drop)
    }

    /// A value of INFO.
    fn info(&self, section: &str, name: &str) -> Result<String, Trouble> {
        let Answer::Texts(texts) = self.done(&[b"INFO", section.as_bytes()])? else {
            return Err(Trouble::Foreign("INFO was answered with a number".to_owned()));
        };
        let lines = texts.iter().flat_map(|text| text.lines());
        let value = lines.filter_map(|line| line.split_once(':')).find(|(own, _)| *own == name);
        value.map(|(_, value)| value.trim().to_owned()).ok_or_else(|| missing(name))
    }

    /// A value of CONFIG GET.
    fn config(&self, name: &str) -> Result<String, Trouble> {
        let Answer::Texts(texts) = self.done(&[b"CONFIG", b"GET", name.as_bytes()])? else {
            return Err(Trouble::Foreign("CONFIG GET was answered with a number".to_owned()));
        };
        match &texts[..] {
            [own, value, ..] if own == name => Ok(value.clone()),
            _ => Err(missing(name)),
        }
    }
}

fn command(line: &mut Exchange, words: &[&[u8]]) -> Result<Answer, Trouble> {
    let mut request = Vec::new();
    put_array(&mut request, words.len());
    words.iter().for_each(|word| put_bulk(&mut request, word));
    line.ask(&request, |input| {
        let read = read_reply(input, ANSWER_BYTES_MAX).map_err(foreign)?;
        Ok(read.map(|(reply, bytes)| (answer(reply), bytes)))
    })
}

fn answer(mut reply: Reply<'_>) -> Answer {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    match reply.head {
        Token::Error(bytes) => Answer::Error(text(bytes)),
        Token::Integer(_) => Answer::Number,
        Token::Bulk(bytes) | Token::Simple(bytes) => Answer::Texts(vec![text(bytes)]),
        _ => {
            let mut all = Vec::new();
            while let Some(bytes) = reply.values.text() {
                all.push(text(bytes));
            }
            Answer::Texts(all)
        }
    }
}

fn version(scene: &mut Scene) -> Result<Found, Trouble> {
    text(scene, "server", "redis_version")
}

fn text(scene: &mut Scene, section: &str, name: &str) -> Result<Found, Trouble> {
    let value = scene.info(section, name)?;
    Ok(Found::words(value, format!("{name} of INFO")).by(How::Announced))
}

fn setting(scene: &mut Scene, name: &str) -> Result<Found, Trouble> {
    let value = scene.config(name)?;
    Ok(Found::words(value, format!("{name} of CONFIG GET")).by(How::Announced))
}

fn number(scene: &mut Scene, name: &str, unit: &'static str) -> Result<Found, Trouble> {
    let value = scene.config(name)?;
    let number = value.parse().map_err(|_| missing(name))?;
    Ok(Found::number(number, unit, How::Announced, format!("{name} is {value}")))
}

/// Tests whether RESP 3 can be chosen.
fn resp3(scene: &mut Scene) -> Result<Found, Trouble> {
    tried(scene, &[b"HELLO", b"3"], "HELLO 3")
}

/// Tests whether a message can be published, to a channel that has no subscriber.
fn publish(scene: &mut Scene) -> Result<Found, Trouble> {
    tried(scene, &[b"PUBLISH", scene.key.as_bytes(), b"{}"], "PUBLISH")
}

fn set(scene: &mut Scene) -> Result<Found, Trouble> {
    let found = tried(scene, &[b"SET", scene.key.as_bytes(), b"{}"], "SET");
    scene.delete()?;
    found
}

fn streams(scene: &mut Scene) -> Result<Found, Trouble> {
    let found = tried(scene, &[b"XADD", scene.key.as_bytes(), b"*", b"d", b"{}"], "XADD");
    scene.delete()?;
    found
}

fn consumer_groups(scene: &mut Scene) -> Result<Found, Trouble> {
    let words: &[&[u8]] =
        &[b"XGROUP", b"CREATE", scene.key.as_bytes(), b"weigh", b"$", b"MKSTREAM"];
    let found = tried(scene, words, "XGROUP CREATE");
    scene.delete()?;
    found
}

fn tried(scene: &Scene, words: &[&[u8]], name: &str) -> Result<Found, Trouble> {
    Ok(match scene.ask(words)? {
        Answer::Error(text) => {
            Found::flag(false, format!("{name} was answered {text}")).with(Status::Refused)
        }
        _ => Found::flag(true, format!("{name} was executed")),
    })
}

/// The largest value of a SET that passes.
fn value_bytes(scene: &mut Scene) -> Result<Found, Trouble> {
    let most = scene.bounds.payload_bytes;
    let body = vec![b'x'; usize::try_from(most).unwrap_or(usize::MAX)];
    let searched = largest_passing((1, most), |size| {
        scene.done(&[b"SET", scene.key.as_bytes(), &body[..size as usize]]).map(drop)
    });
    scene.delete()?;
    let (edge, why) = searched?;
    Ok(Found::edge(edge, "bytes", " bytes", why.as_ref()))
}

/// 0 means no limit in Redis.
fn memory_bytes(scene: &mut Scene) -> Result<Found, Trouble> {
    let value = scene.config("maxmemory").or_else(|_| scene.info("memory", "maxmemory"))?;
    let evidence = format!("maxmemory is {value}");
    Ok(match value.parse() {
        Ok(0) => Found::words("no limit", evidence).by(How::Announced),
        Ok(bytes) => Found::number(bytes, "bytes", How::Announced, evidence),
        Err(_) => return Err(missing("maxmemory")),
    })
}

/// Bytes that may wait for a slow subscriber before it is disconnected.
fn subscriber_buffer(scene: &mut Scene) -> Result<Found, Trouble> {
    let name = "client-output-buffer-limit";
    let value = scene.config(name)?;
    let words: Vec<&str> = value.split_whitespace().collect();
    let at = words.iter().position(|word| *word == "pubsub").ok_or_else(|| missing(name))?;
    let limit =
        words.get(at + 1).and_then(|word| word.parse().ok()).ok_or_else(|| missing(name))?;
    let evidence = format!("{name} is {value}");
    Ok(match limit {
        0 => Found::words("no limit", evidence).by(How::Announced),
        bytes => Found::number(bytes, "bytes", How::Announced, evidence),
    })
}

/// What the answer to a command means: where the append-only file is, and when it is synced.
/// PUBLISH is written nowhere.
fn durability(scene: &mut Scene) -> Result<Found, Trouble> {
    let appends = match scene.config("appendonly") {
        Ok(value) => value == "yes",
        Err(_) => scene.info("persistence", "aof_enabled")? != "0",
    };
    let (known, evidence) = match appends {
        false => (Durability::Memory, "appendonly=no".to_owned()),
        true => {
            let policy = scene.config("appendfsync")?;
            let known = match policy.as_str() {
                "always" => Durability::Synced,
                "everysec" => Durability::SyncedEvery(Nanos::from_secs(1)),
                "no" => Durability::PageCache,
                _ => return Err(missing("appendfsync")),
            };
            (known, format!("appendonly=yes, appendfsync={policy}"))
        }
    };
    let evidence = format!("{evidence}; PUBLISH is not stored");
    Ok(Found::words(known.to_string(), evidence).by(How::Announced))
}

fn missing(name: &str) -> Trouble {
    Trouble::Inapplicable(format!("the server does not show {name}"))
}

fn foreign(flaw: Flaw) -> Trouble {
    Trouble::Foreign(format!("its answer is not RESP: {flaw}"))
}

const ANSWER_BYTES_MAX: usize = 1 << 20;
