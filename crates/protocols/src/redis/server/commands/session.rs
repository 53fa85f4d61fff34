//! Commands about the connection itself.

use super::super::peer::{Peer, Words};
use super::super::place::{Refusal, Turn};
use super::super::world::World;
use super::refusals::{NOT_A_NUMBER, SYNTAX, shown};
use crate::redis::codec::{
    put_array, put_bulk, put_integer, put_map, put_null, put_push, put_simple,
};

/// PING [message].
pub(super) fn ping(
    words: Words<'_>,
    peer: &mut Peer,
    world: &mut World,
    turn: &mut Turn<'_>,
) -> Result<(), Refusal> {
    let out = turn.out.stage(peer.place.connection);
    if !peer.is_resp3 && world.channels.count(peer.place) > 0 {
        put_push(out, 2, false);
        put_bulk(out, b"pong");
        put_bulk(out, words.at(1));
    } else if words.len() > 1 {
        put_bulk(out, words.at(1));
    } else {
        put_simple(out, "PONG");
    }
    Ok(())
}

/// ECHO message.
pub(super) fn echo(
    words: Words<'_>,
    peer: &mut Peer,
    _world: &mut World,
    turn: &mut Turn<'_>,
) -> Result<(), Refusal> {
    put_bulk(turn.out.stage(peer.place.connection), words.at(1));
    Ok(())
}

/// HELLO [version [AUTH user password] [SETNAME name]].
pub(super) fn hello(
    words: Words<'_>,
    peer: &mut Peer,
    world: &mut World,
    turn: &mut Turn<'_>,
) -> Result<(), Refusal> {
    let is_resp3 = match (words.len(), words.at(1)) {
        (1, _) => peer.is_resp3,
        (_, b"2") => false,
        (_, b"3") => true,
        (_, text) if text.iter().all(u8::is_ascii_digit) => {
            return Err(Refusal::from("NOPROTO unsupported protocol version"));
        }
        _ => {
            return Err(Refusal::from("ERR Protocol version is not an integer or out of range"));
        }
    };
    let mut at = 2;
    while at < words.len() {
        if words.is(at, "AUTH") && at + 2 < words.len() {
            log_in(words.at(at + 1), words.at(at + 2), peer, world)?;
            at += 3;
        } else if words.is(at, "SETNAME") && at + 1 < words.len() {
            peer.name = words.at(at + 1).to_vec();
            at += 2;
        } else {
            return Err(Refusal(format!(
                "ERR Syntax error in HELLO option '{}'",
                shown(words.at(at))
            )));
        }
    }
    if !peer.is_authenticated {
        return Err(Refusal::from(
            "NOAUTH HELLO must be called with the client already authenticated, otherwise the \
             HELLO <proto> AUTH <user> <pass> option can be used to authenticate the client and \
             select the RESP protocol version at the same time",
        ));
    }
    peer.is_resp3 = is_resp3;
    let out = turn.out.stage(peer.place.connection);
    put_map(out, 7, is_resp3);
    for (name, value) in [("server", "redis"), ("version", VERSION)] {
        put_bulk(out, name.as_bytes());
        put_bulk(out, value.as_bytes());
    }
    put_bulk(out, b"proto");
    put_integer(out, if is_resp3 { 3 } else { 2 });
    put_bulk(out, b"id");
    put_integer(out, peer.place.serial.into());
    for (name, value) in [("mode", "standalone"), ("role", "master")] {
        put_bulk(out, name.as_bytes());
        put_bulk(out, value.as_bytes());
    }
    put_bulk(out, b"modules");
    put_array(out, 0);
    Ok(())
}

/// AUTH [user] password.
pub(super) fn auth(
    words: Words<'_>,
    peer: &mut Peer,
    world: &mut World,
    turn: &mut Turn<'_>,
) -> Result<(), Refusal> {
    match words.len() {
        2 if world.rules.login.is_none() => {
            return Err(Refusal::from(
                "ERR AUTH <password> called without any password configured for the default \
                 user. Are you sure your configuration is correct?",
            ));
        }
        2 => log_in(b"default", words.at(1), peer, world)?,
        3 => log_in(words.at(1), words.at(2), peer, world)?,
        _ => return Err(Refusal::from(SYNTAX)),
    }
    put_simple(turn.out.stage(peer.place.connection), "OK");
    Ok(())
}

fn log_in(user: &[u8], password: &[u8], peer: &mut Peer, world: &World) -> Result<(), Refusal> {
    let is_right = match &world.rules.login {
        Some(login) => user == login.user.as_bytes() && password == login.password.as_bytes(),
        None => user == b"default",
    };
    if !is_right {
        return Err(Refusal::from("WRONGPASS invalid username-password pair or user is disabled."));
    }
    peer.is_authenticated = true;
    Ok(())
}

/// SELECT index.
pub(super) fn select(
    words: Words<'_>,
    peer: &mut Peer,
    _world: &mut World,
    turn: &mut Turn<'_>,
) -> Result<(), Refusal> {
    let db = words.number(1).ok_or_else(|| Refusal::from(NOT_A_NUMBER))?;
    let db = u8::try_from(db).ok().filter(|db| *db < DATABASES);
    peer.db = db.ok_or_else(|| Refusal::from("ERR DB index is out of range"))?;
    put_simple(turn.out.stage(peer.place.connection), "OK");
    Ok(())
}

/// CLIENT SETNAME, GETNAME, ID, INFO, SETINFO, NO-EVICT, NO-TOUCH.
pub(super) fn client(
    words: Words<'_>,
    peer: &mut Peer,
    _world: &mut World,
    turn: &mut Turn<'_>,
) -> Result<(), Refusal> {
    let out = turn.out.stage(peer.place.connection);
    if words.is(1, "SETNAME") && words.len() == 3 {
        peer.name = words.at(2).to_vec();
        put_simple(out, "OK");
    } else if words.is(1, "GETNAME") {
        match peer.name.is_empty() {
            true => put_null(out, false, peer.is_resp3),
            false => put_bulk(out, &peer.name),
        }
    } else if words.is(1, "ID") {
        put_integer(out, peer.place.serial.into());
    } else if words.is(1, "INFO") {
        let name = String::from_utf8_lossy(&peer.name);
        let text = format!("id={} name={name} db={}\n", peer.place.serial, peer.db);
        put_bulk(out, text.as_bytes());
    } else if ["SETINFO", "NO-EVICT", "NO-TOUCH"].iter().any(|own| words.is(1, own)) {
        put_simple(out, "OK");
    } else {
        return Err(Refusal(format!("ERR unknown subcommand '{}'.", shown(words.at(1)))));
    }
    Ok(())
}

/// CONFIG GET name [name ...].
pub(super) fn config(
    words: Words<'_>,
    peer: &mut Peer,
    world: &mut World,
    turn: &mut Turn<'_>,
) -> Result<(), Refusal> {
    if !words.is(1, "GET") || words.len() < 3 {
        return Err(Refusal::from("ERR only CONFIG GET is supported by this server"));
    }
    let appends = if turn.out.stores() { "yes" } else { "no" };
    let known = [
        ("save", String::new()),
        ("appendonly", appends.to_owned()),
        ("maxmemory", world.rules.memory_bytes_max.to_string()),
        ("maxmemory-policy", "noeviction".to_owned()),
        ("databases", DATABASES.to_string()),
    ];
    let asked = |name: &str| words.from(2).any(|own| own.eq_ignore_ascii_case(name.as_bytes()));
    let found: Vec<_> = known.iter().filter(|(name, _)| asked(name)).collect();
    let out = turn.out.stage(peer.place.connection);
    put_map(out, found.len(), peer.is_resp3);
    for (name, value) in found {
        put_bulk(out, name.as_bytes());
        put_bulk(out, value.as_bytes());
    }
    Ok(())
}

/// COMMAND and its subcommands: clients ask for them at their start, and do without.
pub(super) fn command(
    words: Words<'_>,
    peer: &mut Peer,
    _world: &mut World,
    turn: &mut Turn<'_>,
) -> Result<(), Refusal> {
    let out = turn.out.stage(peer.place.connection);
    if words.is(1, "COUNT") {
        put_integer(out, 0);
    } else if words.is(1, "DOCS") {
        put_map(out, 0, peer.is_resp3);
    } else {
        put_array(out, 0);
    }
    Ok(())
}

/// QUIT.
pub(super) fn quit(
    _words: Words<'_>,
    peer: &mut Peer,
    _world: &mut World,
    turn: &mut Turn<'_>,
) -> Result<(), Refusal> {
    put_simple(turn.out.stage(peer.place.connection), "OK");
    peer.is_ending = true;
    turn.out.close(peer.place.connection);
    Ok(())
}

/// RESET: the connection is as new.
pub(super) fn reset(
    _words: Words<'_>,
    peer: &mut Peer,
    world: &mut World,
    turn: &mut Turn<'_>,
) -> Result<(), Refusal> {
    world.forget(peer.place);
    (peer.is_resp3, peer.db) = (false, 0);
    peer.name.clear();
    peer.is_authenticated = world.rules.login.is_none();
    put_simple(turn.out.stage(peer.place.connection), "RESET");
    Ok(())
}

/// Version of Redis whose subset this is.
pub(super) const VERSION: &str = "7.0.0";

/// Databases of a server without a configuration.
const DATABASES: u8 = 16;
