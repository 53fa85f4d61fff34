//! Messages of CoAP to messages of OSCORE and back (RFC 8613, sections 4 and 8). Outside stay the
//! options that proxies need; code, all other options and the payload are encrypted.

use super::header::{Header, PartialIv};
use super::id::Id;
use super::security::{Aad, SecurityContext};
use crate::coap::codec::{
    self, Code, Message, OptionWriter, Options, PAYLOAD_MARKER, code, number, put_payload,
};

/// What binds a response to its request: both authenticate it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Binding {
    /// ID of the sender of the request.
    pub kid: Id,
    /// Partial IV of the request.
    pub partial_iv: PartialIv,
    /// True if the request has the code FETCH outside, so that its response has 2.05 there.
    pub is_fetch: bool,
}

/// Where the nonce of a message is from (section 5.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nonce {
    /// That of the request, for one response to it. The message carries no partial IV.
    OfRequest,
    /// A partial IV of its own, which the message carries.
    Own(PartialIv),
}

/// Reason for which a message cannot be opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenFailure {
    /// It was not written with the key, or was changed.
    Forged,
    /// It verifies, and what is inside is not a request or a response.
    NotCoap,
}

/// Buffers of the text inside a message, and of the message as it was before.
#[derive(Debug, Default)]
pub struct Scratch {
    text: Vec<u8>,
    message: Vec<u8>,
}

/// Appends `plain` protected. A request has a nonce of its own, and is bound to itself; the end of
/// an observation is bound to its registration (section 5.4).
pub fn put_protected(
    context: &SecurityContext,
    plain: &Message<'_>,
    binding: &Binding,
    nonce: Nonce,
    out: &mut Vec<u8>,
) {
    let is_request = plain.code.is_request();
    let observe = plain.options.first(number::OBSERVE);
    let outer_code = match (is_request, observe.is_some() || binding.is_fetch) {
        (true, false) => code::POST,
        (true, true) => code::FETCH,
        (false, false) => code::CHANGED,
        (false, true) => code::CONTENT,
    };
    codec::put_head(out, plain.kind, outer_code, plain.id, plain.token);
    let header = Header {
        partial_iv: match nonce {
            Nonce::OfRequest => None,
            Nonce::Own(partial_iv) => Some(partial_iv),
        },
        kid_context: context.id_context().filter(|_| is_request),
        kid: is_request.then_some(context.sender_id()),
    };
    put_outer_options(out, plain.options, header.value().bytes());
    out.push(PAYLOAD_MARKER);
    let from = out.len();
    out.push(plain.code.0);
    let mut writer = OptionWriter::default();
    for option in plain.options.iter().filter(|option| !is_outer_only(option.number)) {
        // The number of a notification is its partial IV (section 4.1.3.5.2).
        let is_number = option.number == number::OBSERVE && !is_request;
        writer.put(out, option.number, if is_number { b"" } else { option.value });
    }
    put_payload(out, plain.payload);
    let nonce = match nonce {
        Nonce::OfRequest => context.nonce(binding.kid, binding.partial_iv),
        Nonce::Own(partial_iv) => context.nonce(context.sender_id(), partial_iv),
    };
    context.seal(nonce, &Aad::of(binding.kid, binding.partial_iv), out, from);
}

/// Opens a message. Its nonce is made of `partial_iv` if it carries one, and else it is that of its
/// request.
///
/// # Errors
/// If it does not verify, or nothing of CoAP is inside.
pub fn open<'s>(
    context: &SecurityContext,
    outer: &Message<'_>,
    binding: &Binding,
    partial_iv: Option<PartialIv>,
    scratch: &'s mut Scratch,
) -> Result<Message<'s>, OpenFailure> {
    let nonce = match partial_iv {
        Some(partial_iv) => context.nonce(context.recipient_id(), partial_iv),
        None => context.nonce(binding.kid, binding.partial_iv),
    };
    let Scratch { text, message } = scratch;
    text.clear();
    text.extend_from_slice(outer.payload);
    let aad = Aad::of(binding.kid, binding.partial_iv);
    if !context.unseal(nonce, &aad, text, 0) {
        return Err(OpenFailure::Forged);
    }
    let (inner_code, body) = text.split_first().ok_or(OpenFailure::NotCoap)?;
    let inner_code = Code(*inner_code);
    let (options, payload) = codec::split_body(body).map_err(|_| OpenFailure::NotCoap)?;
    let is_of_its_kind = match outer.code.is_request() {
        true => inner_code.is_request(),
        false => inner_code.is_response(),
    };
    // OSCORE is not nested (section 4.1.3.7).
    if !is_of_its_kind || options.first(number::OSCORE).is_some() {
        return Err(OpenFailure::NotCoap);
    }
    message.clear();
    codec::put_head(message, outer.kind, inner_code, outer.id, outer.token);
    put_merged_options(message, outer.options, options);
    put_payload(message, payload);
    codec::parse(message).map_err(|_| OpenFailure::NotCoap)
}

/// Appends the options outside, and among them that of OSCORE.
fn put_outer_options(out: &mut Vec<u8>, options: Options<'_>, value: &[u8]) {
    let mut writer = OptionWriter::default();
    let is_outer = |number| is_outer_only(number) || number == number::OBSERVE;
    let mut outer = options.iter().filter(|option| is_outer(option.number)).peekable();
    while let Some(option) = outer.next_if(|option| option.number < number::OSCORE) {
        writer.put(out, option.number, option.value);
    }
    writer.put(out, number::OSCORE, value);
    outer.for_each(|option| writer.put(out, option.number, option.value));
}

/// Appends the options from inside, and from outside those that only stand there (section 8.2, step
/// 1): all others outside are not authenticated.
fn put_merged_options(out: &mut Vec<u8>, outer: Options<'_>, inner: Options<'_>) {
    let mut writer = OptionWriter::default();
    let mut outer = outer.iter().filter(|option| is_outer_only(option.number)).peekable();
    for option in inner.iter() {
        while let Some(before) = outer.next_if(|before| before.number <= option.number) {
            writer.put(out, before.number, before.value);
        }
        writer.put(out, option.number, option.value);
    }
    outer.for_each(|option| writer.put(out, option.number, option.value));
}

/// True for options of class U (section 4.1), which stand outside and not inside.
fn is_outer_only(number: u16) -> bool {
    matches!(number, number::URI_HOST | number::URI_PORT | number::PROXY_URI | number::PROXY_SCHEME)
}
