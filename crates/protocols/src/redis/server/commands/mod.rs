//! Commands of the reference server: which function executes which, and who may call it when.

mod info;
mod pubsub;
mod reads;
mod refusals;
mod session;
mod streams;
mod strings;

use super::peer::{Peer, Words};
use super::place::{Refusal, Turn};
use super::world::World;
use crate::redis::codec::put_error;

pub(super) use reads::put_nothing;

/// A command.
struct Known {
    name: &'static str,
    /// Least number of words, the name included.
    words_min: usize,
    /// True if it needs no password.
    is_open: bool,
    /// True if a subscriber of RESP 2 may send it.
    is_for_subscribers: bool,
    run: Run,
}

/// Executes a command.
type Run = fn(Words<'_>, &mut Peer, &mut World, &mut Turn<'_>) -> Result<(), Refusal>;

const COMMANDS: &[Known] = &[
    known("PUBLISH", 3, pubsub::publish),
    known("XADD", 5, streams::add),
    known("XREADGROUP", 7, reads::read_group),
    known("XREAD", 4, reads::read),
    known("XACK", 4, streams::acknowledge),
    known("SET", 3, strings::set),
    known("GET", 2, strings::get),
    known("DEL", 2, strings::delete),
    known("EXISTS", 2, strings::exists),
    known("DBSIZE", 1, strings::size),
    known("FLUSHALL", 1, strings::flush),
    known("XLEN", 2, streams::length),
    known("XRANGE", 4, streams::range),
    known("XREVRANGE", 4, streams::range_back),
    known("XTRIM", 4, streams::trim),
    known("XGROUP", 2, streams::group),
    known("XPENDING", 3, streams::pending),
    for_subscribers("SUBSCRIBE", 2, |w, p, all, turn| pubsub::subscribe(w, p, all, turn, false)),
    for_subscribers("UNSUBSCRIBE", 1, |w, p, all, turn| {
        pubsub::unsubscribe(w, p, all, turn, false)
    }),
    for_subscribers("PSUBSCRIBE", 2, |w, p, all, turn| pubsub::subscribe(w, p, all, turn, true)),
    for_subscribers("PUNSUBSCRIBE", 1, |w, p, all, turn| {
        pubsub::unsubscribe(w, p, all, turn, true)
    }),
    for_subscribers("PING", 1, session::ping),
    open("HELLO", 1, session::hello),
    open("AUTH", 2, session::auth),
    Known { is_for_subscribers: true, ..open("QUIT", 1, session::quit) },
    Known { is_for_subscribers: true, ..open("RESET", 1, session::reset) },
    known("ECHO", 2, session::echo),
    known("SELECT", 2, session::select),
    known("CLIENT", 2, session::client),
    known("CONFIG", 2, session::config),
    known("COMMAND", 1, session::command),
    known("INFO", 1, info::info),
];

const fn known(name: &'static str, words_min: usize, run: Run) -> Known {
    Known { name, words_min, is_open: false, is_for_subscribers: false, run }
}

const fn open(name: &'static str, words_min: usize, run: Run) -> Known {
    Known { is_open: true, ..known(name, words_min, run) }
}

const fn for_subscribers(name: &'static str, words_min: usize, run: Run) -> Known {
    Known { is_for_subscribers: true, ..known(name, words_min, run) }
}

/// Executes a command and stages its answer.
pub(super) fn execute(words: Words<'_>, peer: &mut Peer, world: &mut World, turn: &mut Turn<'_>) {
    if let Err(Refusal(text)) = try_execute(words, peer, world, turn) {
        put_error(turn.out.stage(peer.place.connection), &text);
    }
}

fn try_execute(
    words: Words<'_>,
    peer: &mut Peer,
    world: &mut World,
    turn: &mut Turn<'_>,
) -> Result<(), Refusal> {
    let known = COMMANDS.iter().find(|known| words.is(0, known.name)).ok_or_else(|| {
        Refusal(format!(
            "ERR unknown command '{}', with args beginning with: ",
            refusals::shown(words.at(0))
        ))
    })?;
    *world.calls.entry(known.name).or_default() += 1;
    if !peer.is_authenticated && !known.is_open {
        return Err(Refusal::from("NOAUTH Authentication required."));
    }
    let name = known.name.to_ascii_lowercase();
    if words.len() < known.words_min {
        return Err(Refusal(format!("ERR wrong number of arguments for '{name}' command")));
    }
    let is_subscriber = !peer.is_resp3 && world.channels.count(peer.place) > 0;
    if is_subscriber && !known.is_for_subscribers {
        return Err(Refusal(format!(
            "ERR Can't execute '{name}': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / \
             RESET are allowed in this context"
        )));
    }
    (known.run)(words, peer, world, turn)
}
