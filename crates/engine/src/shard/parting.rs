//! Connections that are closed while what they said last may not have arrived. Over TCP the kernel
//! repeats it after the program closed; over QUIC only the connection can. Their links are done
//! with them, and the sockets stay until the peer has everything.

use std::collections::{BTreeMap, BTreeSet};

use weigh_model::Nanos;
use weigh_model::connection::{Connection, Outbox};

use crate::io::{Close, Io, Token};

/// All of a shard.
#[derive(Default)]
pub(super) struct Parting {
    all: BTreeMap<Token, Last>,
    /// When each of them is looked at.
    alarms: BTreeSet<(Nanos, Token)>,
    /// Those that may have something to send, or to be closed.
    changed: Vec<Token>,
}

/// One of them.
struct Last {
    connection: Box<dyn Connection>,
    out: Outbox,
    /// Bytes of it that the socket took.
    taken: usize,
    is_blocked: bool,
    is_over: bool,
    alarm: Nanos,
    /// When it is given up.
    until: Nanos,
}

impl Parting {
    /// Keeps a connection that was closed.
    pub(super) fn add(&mut self, token: Token, connection: Box<dyn Connection>, now: Nanos) {
        let last = Last {
            connection,
            out: Outbox::default(),
            taken: 0,
            is_blocked: false,
            is_over: false,
            alarm: now,
            until: now + PARTING_TIME_MAX,
        };
        self.all.insert(token, last);
        self.alarms.insert((now, token));
    }

    /// True if there is none.
    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Returns the time at which the next one is looked at.
    pub(super) fn next(&self) -> Nanos {
        self.alarms.first().map_or(Nanos::NEVER, |(at, _)| *at)
    }

    /// Bytes came for a connection that is none of a link; perhaps for one of these.
    pub(super) fn heard(&mut self, now: Nanos, token: Token, bytes: &[u8]) {
        let Some(last) = self.all.get_mut(&token) else { return };
        last.is_over |= last.connection.receive(bytes, now, &mut last.out, &mut |_| {}).is_err();
        self.changed.push(token);
    }

    /// The socket takes more.
    pub(super) fn unblocked(&mut self, token: Token) {
        if let Some(last) = self.all.get_mut(&token) {
            last.is_blocked = false;
            self.changed.push(token);
        }
    }

    /// The socket is broken.
    pub(super) fn ended(&mut self, token: Token) {
        if let Some(last) = self.all.get_mut(&token) {
            last.is_over = true;
            self.changed.push(token);
        }
    }

    /// Lets those speak whose time has come, sends, and closes what has parted.
    pub(super) fn turn(&mut self, io: &mut dyn Io) {
        let now = io.now();
        while let Some((_, token)) = self.alarms.first().copied().filter(|(at, _)| *at <= now) {
            self.alarms.pop_first();
            self.changed.push(token);
        }
        for token in std::mem::take(&mut self.changed) {
            let Some(last) = self.all.get_mut(&token) else { continue };
            self.alarms.remove(&(last.alarm, token));
            if last.connection.next_wake().is_some_and(|at| at <= now) {
                last.is_over |= last.connection.wake(now, &mut last.out, &mut |_| {}).is_err();
            }
            last.send(token, io);
            let has_parted = !last.connection.is_parting() && last.out.is_empty();
            if last.is_over || has_parted || last.until <= now {
                self.all.remove(&token);
                io.close(token, Close::Graceful);
                continue;
            }
            let wake = last.connection.next_wake().unwrap_or(Nanos::NEVER);
            last.alarm = wake.max(now + Nanos(1)).min(last.until);
            self.alarms.insert((last.alarm, token));
        }
    }

    /// Closes all of them now.
    pub(super) fn end(&mut self, io: &mut dyn Io) {
        let Parting { all, .. } = std::mem::take(self);
        all.into_keys().for_each(|token| io.close(token, Close::Graceful));
    }
}

impl Last {
    fn send(&mut self, token: Token, io: &mut dyn Io) {
        if self.is_blocked || self.out.is_empty() {
            return;
        }
        match io.send(token, self.out.frames(), self.taken) {
            Ok(taken) if taken < self.out.len() => (self.taken, self.is_blocked) = (taken, true),
            Ok(_) => {
                self.taken = 0;
                self.out.clear();
            }
            Err(_) => self.is_over = true,
        }
    }
}

/// Time after which a peer that confirms nothing is given up: repetitions at a second's distance
/// double three times.
pub(super) const PARTING_TIME_MAX: Nanos = Nanos::from_secs(10);
