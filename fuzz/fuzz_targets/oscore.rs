//! Messages of OSCORE as any peer may send them. What opens without having been sealed here is a
//! forgery, and there is none.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use weigh_protocols::coap::codec::{self, number};
use weigh_protocols::coap::oscore::{
    Binding, Header, Id, Nonce, PartialIv, Scratch, Secrets, SecurityContext, open, put_protected,
};

/// Both ends, and what one has sent: a request and its answer, which are parts of the input too.
struct Ends {
    client: SecurityContext,
    server: SecurityContext,
    binding: Binding,
    request: Vec<u8>,
    answer: Vec<u8>,
}

static ENDS: LazyLock<Ends> = LazyLock::new(|| {
    let secrets = Secrets { secret: (1..=16).collect(), salt: Vec::new(), id_context: None };
    let kid = Id::of(b"c").expect("a short ID");
    let server = Id::of(b"s").expect("a short ID");
    let client = SecurityContext::derive(&secrets, kid, server);
    let server = SecurityContext::derive(&secrets, server, kid);
    let partial_iv = PartialIv::of(7).expect("a small number");
    let binding = Binding { kid, partial_iv, is_fetch: false };
    let protected = |context: &SecurityContext, plain: &[u8], nonce| {
        let mut out = Vec::new();
        let plain = codec::parse(plain).expect("it is a message");
        put_protected(context, &plain, &binding, nonce, &mut out);
        out
    };
    let request = protected(&client, b"\x41\x02\x00\x01t\xb1a\xffhello", Nonce::Own(partial_iv));
    let answer = protected(&server, b"\x61\x44\x00\x01t", Nonce::OfRequest);
    Ends { client, server, binding, request, answer }
});

fuzz_target!(|data: &[u8]| {
    let ends = &*ENDS;
    // The first byte takes one of the own messages, the others change it.
    let own = match data.first() {
        Some(0) => Some(&ends.request),
        Some(1) => Some(&ends.answer),
        _ => None,
    };
    let datagram = match own {
        Some(own) => {
            let changes = data[1..].iter().chain(std::iter::repeat(&0));
            own.iter().zip(changes).map(|(byte, change)| byte ^ change).collect()
        }
        None => data.to_vec(),
    };
    let Ok(outer) = codec::parse(&datagram) else { return };
    let header = outer.options.first(number::OSCORE).and_then(Header::read);
    let partial_iv = header.and_then(|header| header.partial_iv);
    let sealed = [&ends.request, &ends.answer].map(|own| codec::parse(own).map(|own| own.payload));
    for context in [&ends.client, &ends.server] {
        let mut scratch = Scratch::default();
        if open(context, &outer, &ends.binding, partial_iv, &mut scratch).is_ok() {
            assert!(sealed.contains(&Ok(outer.payload)), "a forgery: {datagram:02x?}");
        }
    }
});
