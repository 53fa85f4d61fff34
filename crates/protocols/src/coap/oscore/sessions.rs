//! The client's side of OSCORE: the security context of each endpoint of a trial, which it keeps
//! over its connections, and how a connection protects requests and opens responses.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use weigh_model::load::Load;
use weigh_model::protocol::{Invalid, Role, Seat};

use super::header::{Header, PartialIv};
use super::keys::{Keys, Pair};
use super::message::{self, Binding, Nonce, Scratch};
use super::security::SecurityContext;
use super::sequences;
use super::window::Window;
use crate::coap::codec::{self, Message, number};

/// The security contexts of the endpoints of a trial.
#[derive(Debug)]
pub(in crate::coap) struct Sessions {
    keys: Option<Keys>,
    /// Endpoints that send; those that only receive come after them.
    producers: u32,
    made: Mutex<HashMap<u32, Endpoint>>,
}

/// The security context of one endpoint, and its next sequence number.
#[derive(Clone, Debug)]
struct Endpoint {
    context: Arc<SecurityContext>,
    next: Arc<AtomicU64>,
}

/// OSCORE of one connection, or none.
#[derive(Debug, Default)]
pub(in crate::coap) struct Session {
    endpoint: Option<Endpoint>,
    /// Numbers that the replay window of an observer remembers.
    window: u32,
    /// The message that is protected.
    plain: Vec<u8>,
}

/// A message as a client takes it.
#[derive(Debug)]
pub(in crate::coap) enum Heard<'m> {
    /// As it was before its protection, or one that needs none.
    Verified(Message<'m>),
    /// An error of a server that could not open the request.
    Unprotected(Message<'m>),
    /// It is not from the server, or not an answer to this request, or not the first time: it is
    /// not to be processed (section 8.4).
    Unverified,
}

impl Sessions {
    /// Contexts with these keys; without keys none.
    ///
    /// # Errors
    /// If the load has more endpoints than there are IDs.
    pub(in crate::coap) fn new(keys: Option<Keys>, load: &Load) -> Result<Sessions, Invalid> {
        let (producers, all) = (load.connections, load.connections + load.subscribers);
        if keys.as_ref().is_some_and(|keys| keys.pair(all.max(1) - 1).is_none()) {
            let problem = format!("there are fewer IDs of that length than endpoints ({all})");
            let fix = "type a longer one, or a lower one such as hex:0000";
            return Err(Invalid::new("coap.oscore_sender_id", problem, fix));
        }
        Ok(Sessions { keys, producers, made: Mutex::default() })
    }

    /// OSCORE of a connection at a seat. The next connection there continues its numbers.
    pub(in crate::coap) fn of(&self, seat: Seat) -> Session {
        let Some(keys) = &self.keys else { return Session::default() };
        let number = match seat.role {
            Role::Producer => seat.index,
            Role::Consumer => self.producers.saturating_add(seat.index),
        };
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        let endpoint = made.entry(number).or_insert_with(|| derive(keys, number));
        Session { endpoint: Some(endpoint.clone()), window: keys.window, plain: Vec::new() }
    }
}

/// The context of an endpoint, by its number.
fn derive(keys: &Keys, number: u32) -> Endpoint {
    // There are IDs for all endpoints of the load, and numbers beyond them do not occur.
    let Pair { endpoint, server } = keys.pair(number).unwrap_or_default();
    let context = SecurityContext::derive(&keys.secrets, endpoint, server);
    let next = match keys.first {
        Some(_) => sequences::continued(context.sender_key(), keys.sequence),
        None => Arc::new(AtomicU64::new(keys.sequence)),
    };
    Endpoint { context: Arc::new(context), next }
}

impl Session {
    /// Protects the request that stands in `out` from `from` on; returns what its response is bound
    /// to.
    pub(in crate::coap) fn protect(&mut self, out: &mut Vec<u8>, from: usize) -> Binding {
        self.protect_as(out, from, None)
    }

    /// Protects the end of the observation that `registration` began (section 5.4).
    pub(in crate::coap) fn protect_end(
        &mut self,
        out: &mut Vec<u8>,
        from: usize,
        registration: Binding,
    ) {
        self.protect_as(out, from, Some(registration));
    }

    fn protect_as(
        &mut self,
        out: &mut Vec<u8>,
        from: usize,
        registration: Option<Binding>,
    ) -> Binding {
        let Some(Endpoint { context, next }) = &self.endpoint else { return Binding::default() };
        self.plain.clear();
        self.plain.extend_from_slice(&out[from..]);
        out.truncate(from);
        // Without a number left, 2^40 of them, nothing is sent (section 7.2.1).
        let number = PartialIv::of(next.fetch_add(1, Ordering::Relaxed));
        let (Some(partial_iv), Ok(plain)) = (number, codec::parse(&self.plain)) else {
            return Binding::default();
        };
        let is_fetch = plain.options.first(number::OBSERVE).is_some();
        let own = Binding { kid: context.sender_id(), partial_iv, is_fetch };
        let bound_to = registration.unwrap_or(own);
        message::put_protected(context, &plain, &bound_to, Nonce::Own(partial_iv), out);
        own
    }

    /// The replay window of an observer.
    pub(in crate::coap) fn window(&self) -> Window {
        Window::new(self.window)
    }

    /// Opens a message of the server. `binding` is that of the request with its token, if there is
    /// one; `window` that of an observer.
    pub(in crate::coap) fn open<'m>(
        &self,
        outer: Message<'m>,
        binding: Option<Binding>,
        window: Option<&mut Window>,
        scratch: &'m mut Scratch,
    ) -> Heard<'m> {
        let (Some(Endpoint { context, .. }), Some(binding)) = (&self.endpoint, binding) else {
            return Heard::Verified(outer);
        };
        if !outer.code.is_response() {
            return Heard::Verified(outer);
        }
        let Some(value) = outer.options.first(number::OSCORE) else {
            let is_error = !outer.code.is_success();
            return if is_error { Heard::Unprotected(outer) } else { Heard::Unverified };
        };
        let Some(Header { partial_iv, .. }) = Header::read(value) else {
            return Heard::Unverified;
        };
        let is_repeated = |window: &Window| match partial_iv {
            Some(own) => !window.is_new(own.number()),
            // Only the first notification has the nonce of its registration.
            None => !window.is_empty(),
        };
        if window.as_deref().is_some_and(is_repeated) {
            return Heard::Unverified;
        }
        match message::open(context, &outer, &binding, partial_iv, scratch) {
            Ok(message) => {
                let is_notification = message.options.first(number::OBSERVE).is_some();
                match (window, partial_iv) {
                    (Some(window), Some(own)) => window.note(own.number()),
                    (None, _) if is_notification => return Heard::Unverified,
                    _ => {}
                }
                Heard::Verified(message)
            }
            Err(_) => Heard::Unverified,
        }
    }
}
