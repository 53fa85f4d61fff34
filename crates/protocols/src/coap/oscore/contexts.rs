//! The server's side of OSCORE: the security contexts of all endpoints, derived when they first
//! send, their replay windows, and what is answered to a request that cannot be opened (RFC 8613,
//! section 8.2).

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use super::header::{Header, PartialIv};
use super::id::Id;
use super::keys::Keys;
use super::message::{self, Binding, Nonce, Scratch};
use super::security::SecurityContext;
use super::window::Window;
use crate::coap::codec::{self, Code, Message, code, number};

/// The contexts of one server; shards share them, since an endpoint may change its port.
#[derive(Debug)]
pub(in crate::coap) struct Contexts {
    keys: Keys,
    known: RwLock<HashMap<Id, Arc<Peer>>>,
}

/// One endpoint of the load as the server knows it.
#[derive(Debug)]
struct Peer {
    context: SecurityContext,
    window: Mutex<Window>,
    /// The next sequence number of the server towards it.
    next: AtomicU64,
}

/// A request that was opened, and how its responses are protected.
#[derive(Clone, Debug)]
pub(in crate::coap) struct Exchange {
    peer: Arc<Peer>,
    binding: Binding,
    /// True if no response had the nonce of the request.
    is_first: bool,
}

/// Reason for which a request is refused without being opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::coap) enum Refusal {
    /// It is not protected.
    Missing,
    /// The option cannot be read.
    Malformed,
    /// There is no such endpoint.
    Unknown,
    /// Its number was received before, or is too old to know.
    Replayed,
    /// It does not verify.
    Forged,
}

impl Refusal {
    /// Code of the answer, which is not protected.
    pub(in crate::coap) fn code(self) -> Code {
        match self {
            Refusal::Missing | Refusal::Unknown | Refusal::Replayed => code::UNAUTHORIZED,
            Refusal::Malformed => code::BAD_OPTION,
            Refusal::Forged => code::BAD_REQUEST,
        }
    }

    /// The diagnostic payload that the specification gives.
    pub(in crate::coap) fn words(self) -> &'static str {
        match self {
            Refusal::Missing => "OSCORE is required",
            Refusal::Malformed => "Failed to decode COSE",
            Refusal::Unknown => "Security context not found",
            Refusal::Replayed => "Replay detected",
            Refusal::Forged => "Decryption failed",
        }
    }

    /// Name of its count in the report of the server.
    pub(in crate::coap) fn cause(self) -> &'static str {
        match self {
            Refusal::Missing => "oscore_missing",
            Refusal::Malformed => "oscore_malformed",
            Refusal::Unknown => "oscore_unknown",
            Refusal::Replayed => "oscore_replayed",
            Refusal::Forged => "oscore_forged",
        }
    }
}

impl Contexts {
    /// No endpoint is known yet.
    pub(in crate::coap) fn new(keys: Keys) -> Contexts {
        Contexts { keys, known: RwLock::default() }
    }

    /// Opens a request. The copy of a message that arrived before has its number in `again`: it is
    /// opened without a look at the replay window, and its response gets a nonce of its own. The
    /// end of an observation is bound to its `registration`.
    ///
    /// # Errors
    /// Why it is refused.
    pub(in crate::coap) fn open<'s>(
        &self,
        outer: &Message<'_>,
        again: Option<u64>,
        registration: Option<&Exchange>,
        scratch: &'s mut Scratch,
    ) -> Result<(Message<'s>, Exchange), Refusal> {
        let value = outer.options.first(number::OSCORE).ok_or(Refusal::Missing)?;
        let header = Header::read(value).ok_or(Refusal::Malformed)?;
        let Header { partial_iv: Some(partial_iv), kid: Some(kid), kid_context } = header else {
            return Err(Refusal::Malformed);
        };
        let own_context = self.keys.secrets.id_context.as_deref();
        if kid_context.is_some() && kid_context != own_context {
            return Err(Refusal::Unknown);
        }
        let binding = Binding { kid, partial_iv, is_fetch: outer.code == code::FETCH };
        let peer = match self.known(kid) {
            Some(peer) => peer,
            None => self.met(outer, &binding, scratch)?,
        };
        let number = partial_iv.number();
        let is_again = again == Some(number);
        // Looking and noting are one step: two shards may hold the same request.
        let mut window = peer.window.lock().unwrap_or_else(PoisonError::into_inner);
        if !is_again && !window.is_new(number) {
            return Err(Refusal::Replayed);
        }
        let mut opens = |bound: &Binding| {
            message::open(&peer.context, outer, bound, Some(partial_iv), scratch).is_ok()
        };
        // A client that does not know section 5.4 binds the end of an observation to itself.
        let bound = registration.map(|known| known.binding).filter(|bound| opens(bound));
        let bound = bound.unwrap_or(binding);
        let message = message::open(&peer.context, outer, &bound, Some(partial_iv), scratch)
            .map_err(|_| Refusal::Forged)?;
        if window.is_new(number) {
            window.note(number);
        }
        drop(window);
        Ok((message, Exchange { peer, binding, is_first: !is_again }))
    }

    fn known(&self, kid: Id) -> Option<Arc<Peer>> {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        known.get(&kid).cloned()
    }

    /// Derives the context of an endpoint from its first request. Only who knows the secret becomes
    /// known: strangers take no memory.
    fn met(
        &self,
        outer: &Message<'_>,
        binding: &Binding,
        scratch: &mut Scratch,
    ) -> Result<Arc<Peer>, Refusal> {
        let kid = binding.kid;
        let server = self.keys.server_of(kid).ok_or(Refusal::Unknown)?;
        let context = SecurityContext::derive(&self.keys.secrets, server, kid);
        let partial_iv = Some(binding.partial_iv);
        message::open(&context, outer, binding, partial_iv, scratch)
            .map_err(|_| Refusal::Forged)?;
        let window = Mutex::new(Window::new(self.keys.window));
        let peer = Peer { context, window, next: AtomicU64::new(0) };
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        Ok(known.entry(kid).or_insert_with(|| Arc::new(peer)).clone())
    }
}

impl Exchange {
    /// Sequence number of the request.
    pub(in crate::coap) fn number(&self) -> u64 {
        self.binding.partial_iv.number()
    }

    /// Protects the response that stands in `out` from `from` on. The first one takes the nonce of
    /// its request; notifications and answers to copies take a number of the server.
    pub(in crate::coap) fn protect(&self, out: &mut Vec<u8>, from: usize, plain: &mut Vec<u8>) {
        plain.clear();
        plain.extend_from_slice(&out[from..]);
        out.truncate(from);
        let Ok(plain) = codec::parse(plain) else { return };
        let is_notification = plain.options.first(number::OBSERVE).is_some();
        let nonce = match self.is_first && !is_notification {
            true => Nonce::OfRequest,
            false => {
                // Without a number left, 2^40 of them, nothing is sent (section 7.2.1).
                let number = self.peer.next.fetch_add(1, Ordering::Relaxed);
                let Some(partial_iv) = PartialIv::of(number) else { return };
                Nonce::Own(partial_iv)
            }
        };
        message::put_protected(&self.peer.context, &plain, &self.binding, nonce, out);
    }
}
