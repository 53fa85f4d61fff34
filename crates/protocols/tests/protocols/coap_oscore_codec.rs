//! The codec of OSCORE: all test vectors of RFC 8613, appendix C, what is protected and opened
//! again, and what is not opened.

use proptest::collection::vec;
use proptest::prelude::*;
use weigh_protocols::coap::codec::{
    self, Kind, OptionWriter, Token, code, number, parse, put_head, put_payload,
};
use weigh_protocols::coap::oscore::{
    Aad, Binding, Header, Id, Nonce, OpenFailure, PartialIv, Scratch, Secrets, SecurityContext,
    open, put_protected,
};

fn bytes(hex: &str) -> Vec<u8> {
    let digit = |byte: u8| char::from(byte).to_digit(16).expect("a digit") as u8;
    hex.as_bytes().chunks(2).map(|pair| digit(pair[0]) << 4 | digit(pair[1])).collect()
}

fn id(hex: &str) -> Id {
    Id::of(&bytes(hex)).expect("a short ID")
}

fn partial_iv(hex: &str) -> PartialIv {
    PartialIv::read(&bytes(hex)).expect("a partial IV")
}

/// The keys of appendices C.1 to C.3: salt and ID context.
const KEYS: [(&str, Option<&str>); 3] =
    [("9e7ca92223786340", None), ("", None), ("9e7ca92223786340", Some("37cbf3210017a2d3"))];

fn context(keys: usize, sender: &str, recipient: &str) -> SecurityContext {
    let (salt, id_context) = KEYS[keys - 1];
    let secrets = Secrets {
        secret: bytes("0102030405060708090a0b0c0d0e0f10"),
        salt: bytes(salt),
        id_context: id_context.map(bytes),
    };
    SecurityContext::derive(&secrets, id(sender), id(recipient))
}

/// Appendices C.1 to C.3: keys, common IV and the nonces of partial IV 0. The common IV is the
/// nonce of an empty ID and 0.
#[test]
fn keys_and_nonces_are_those_of_appendix_c() {
    let client_1 = ("f0910ed7295e6ad4b54fc793154302ff", "4622d4dd6d944168eefb54987c");
    let server_1 = ("ffb14e093c94c9cac9471648b4f98710", "4722d4dd6d944169eefb54987c");
    let client_2 = ("321b26943253c7ffb6003b0b64d74041", "bf35ae297d2dace910c52e99f9");
    let server_2 = ("e57b5635815177cd679ab4bcec9d7dda", "bf35ae297d2dace810c52e99f9");
    let client_3 = ("af2a1300a5e95788b356336eeecd2b92", "2ca58fb85ff1b81c0b7181b85e");
    let server_3 = ("e39a0c7c77b43f03b4b39ab9a268699f", "2da58fb85ff1b81d0b7181b85e");
    let (iv_1, iv_2) = ("4622d4dd6d944168eefb54987c", "be35ae297d2dace910c52e99f9");
    let iv_3 = "2ca58fb85ff1b81c0b7181b85e";
    for (keys, sender, recipient, own, other, common_iv) in [
        (1, "", "01", client_1, server_1, iv_1),
        (1, "01", "", server_1, client_1, iv_1),
        (2, "00", "01", client_2, server_2, iv_2),
        (2, "01", "00", server_2, client_2, iv_2),
        (3, "", "01", client_3, server_3, iv_3),
        (3, "01", "", server_3, client_3, iv_3),
    ] {
        let context = context(keys, sender, recipient);
        assert_eq!(context.sender_key()[..], bytes(own.0), "C.{keys} {sender}");
        assert_eq!(context.recipient_key()[..], bytes(other.0), "C.{keys} {sender}");
        let zero = partial_iv("00");
        assert_eq!(context.nonce(id(sender), zero)[..], bytes(own.1), "C.{keys} {sender}");
        assert_eq!(context.nonce(id(recipient), zero)[..], bytes(other.1), "C.{keys} {sender}");
        assert_eq!(context.nonce(id(""), zero)[..], bytes(common_iv), "C.{keys} {sender}");
    }
}

/// A protected message of appendix C, and what it is made of.
struct Vector {
    name: &'static str,
    context: SecurityContext,
    plain: &'static str,
    /// Kid and partial IV of the request.
    request: (&'static str, &'static str),
    own: Option<&'static str>,
    aad: &'static str,
    nonce: &'static str,
    option: &'static str,
    protected: &'static str,
}

const C4: &str = "44025d1f00003974396c6f63616c686f7374620914ff612f1092f1776f1c1668b3825e";
const AAD_4: &str = "8368456e63727970743040488501810a40411440";

fn vectors() -> [Vector; 5] {
    [
        Vector {
            name: "C.4",
            context: context(1, "", "01"),
            plain: "44015d1f00003974396c6f63616c686f737483747631",
            request: ("", "14"),
            own: Some("14"),
            aad: AAD_4,
            nonce: "4622d4dd6d944168eefb549868",
            option: "0914",
            protected: C4,
        },
        Vector {
            name: "C.5",
            context: context(2, "00", "01"),
            plain: "440171c30000b932396c6f63616c686f737483747631",
            request: ("00", "14"),
            own: Some("14"),
            aad: "8368456e63727970743040498501810a4100411440",
            nonce: "bf35ae297d2dace910c52e99ed",
            option: "091400",
            protected: "440271c30000b932396c6f63616c686f737463091400ff4ed339a5a379b0b8bc731fffb0",
        },
        Vector {
            name: "C.6",
            context: context(3, "", "01"),
            plain: "44012f8eef9bbf7a396c6f63616c686f737483747631",
            request: ("", "14"),
            own: Some("14"),
            aad: AAD_4,
            nonce: "2ca58fb85ff1b81c0b7181b84a",
            option: "19140837cbf3210017a2d3",
            protected: "44022f8eef9bbf7a396c6f63616c686f73746b19140837cbf3210017a2d3\
                        ff72cd7273fd331ac45cffbe55c3",
        },
        Vector {
            name: "C.7",
            context: context(1, "01", ""),
            plain: "64455d1f00003974ff48656c6c6f20576f726c6421",
            request: ("", "14"),
            own: None,
            aad: AAD_4,
            nonce: "4622d4dd6d944168eefb549868",
            option: "",
            protected: "64445d1f0000397490ffdbaad1e9a7e7b2a813d3c31524378303cdafae119106",
        },
        Vector {
            name: "C.8",
            context: context(1, "01", ""),
            plain: "64455d1f00003974ff48656c6c6f20576f726c6421",
            request: ("", "14"),
            own: Some("00"),
            aad: AAD_4,
            nonce: "4722d4dd6d944169eefb54987c",
            option: "0100",
            protected: "64445d1f00003974920100ff4d4c13669384b67354b2b6175ff4b8658c666a6cf88e",
        },
    ]
}

impl Vector {
    fn binding(&self) -> Binding {
        let (kid, number) = self.request;
        Binding { kid: id(kid), partial_iv: partial_iv(number), is_fetch: false }
    }

    /// The context of the other end.
    fn other(&self) -> SecurityContext {
        match self.name {
            "C.4" => context(1, "01", ""),
            "C.5" => context(2, "01", "00"),
            "C.6" => context(3, "01", ""),
            _ => context(1, "", "01"),
        }
    }
}

/// Appendices C.4 to C.8: authenticated data, nonce, option and the whole message, in both
/// directions.
#[test]
fn messages_are_those_of_appendix_c() {
    for vector in vectors() {
        let (name, context, binding) = (vector.name, &vector.context, vector.binding());
        let aad = Aad::of(binding.kid, binding.partial_iv);
        assert_eq!(aad.bytes(), bytes(vector.aad), "{name}");
        let own = vector.own.map(partial_iv);
        let (nonce_id, nonce) = match own {
            Some(own) => (context.sender_id(), Nonce::Own(own)),
            None => (binding.kid, Nonce::OfRequest),
        };
        let number = own.unwrap_or(binding.partial_iv);
        assert_eq!(context.nonce(nonce_id, number)[..], bytes(vector.nonce), "{name}");
        let plain = bytes(vector.plain);
        let mut out = Vec::new();
        put_protected(context, &parse(&plain).unwrap(), &binding, nonce, &mut out);
        assert_eq!(out, bytes(vector.protected), "{name}");
        let outer = parse(&out).unwrap();
        let option = outer.options.first(number::OSCORE).unwrap();
        assert_eq!(option, bytes(vector.option), "{name}");
        let header = Header::read(option).unwrap();
        assert_eq!((header.partial_iv, header.value().bytes()), (own, option), "{name}");
        let mut scratch = Scratch::default();
        let opened = open(&vector.other(), &outer, &binding, own, &mut scratch);
        assert_eq!(opened, Ok(parse(&plain).unwrap()), "{name}");
    }
}

/// Every bit of what is authenticated counts; the others are message ID, token, type and Uri-Host.
#[test]
fn a_changed_bit_is_found() {
    let vector = &vectors()[0];
    let (other, binding) = (vector.other(), vector.binding());
    let whole = bytes(C4);
    let ciphertext = whole.len() - 13;
    for bit in ciphertext * 8..whole.len() * 8 {
        let mut changed = whole.clone();
        changed[bit / 8] ^= 1 << (bit % 8);
        let failed = failure(&other, &changed, &binding, Some(binding.partial_iv));
        assert_eq!(failed, Some(OpenFailure::Forged), "bit {bit}");
    }
    for length in ciphertext + 1..whole.len() {
        let failed = failure(&other, &whole[..length], &binding, Some(binding.partial_iv));
        assert_eq!(failed, Some(OpenFailure::Forged), "{length} bytes");
    }
}

/// Section 6.1: reserved flags, a partial IV of six bytes, cut fields and a needless zero.
#[test]
fn malformed_options_are_refused() {
    let wrong = ["00", "20", "40", "80", "0e000102030405", "0f00010203040506", "01", "0200"];
    let more = ["10", "1002aa", "11", "110102", "0100aa", "09000102030405060708"];
    for value in wrong.into_iter().chain(more) {
        assert_eq!(Header::read(&bytes(value)), None, "{value}");
    }
    assert_eq!(Header::read(b""), Some(Header::default()));
    let known = Header::read(b"\x19\x05\x05Dalek").unwrap();
    assert_eq!((known.kid_context, known.kid), (Some(&b"Dalek"[..]), Id::of(b"")));
}

/// Section 5: no leading zeros, and one byte for 0.
#[test]
fn partial_ivs_are_as_short_as_they_can_be() {
    for (number, hex) in [
        (0, "00"),
        (1, "01"),
        (255, "ff"),
        (256, "0100"),
        (65_536, "010000"),
        (0xffff_ffff, "ffffffff"),
        (0xff_ffff_ffff, "ffffffffff"),
    ] {
        let own = PartialIv::of(number).unwrap();
        assert_eq!((own.bytes(), own.number()), (&bytes(hex)[..], number));
    }
    assert_eq!(PartialIv::of(1 << 40), None);
}

/// Why a message is not opened.
fn failure(
    context: &SecurityContext,
    datagram: &[u8],
    binding: &Binding,
    own: Option<PartialIv>,
) -> Option<OpenFailure> {
    let outer = parse(datagram).unwrap();
    open(context, &outer, binding, own, &mut Scratch::default()).err()
}

fn written(code: codec::Code, options: &[(u16, Vec<u8>)], payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    put_head(&mut out, Kind::Confirmable, code, 7, Token::of(b"tok"));
    let mut writer = OptionWriter::default();
    for (number, value) in options {
        writer.put(&mut out, *number, value);
    }
    put_payload(&mut out, payload);
    out
}

/// Options of requests: any but those of OSCORE itself.
fn options() -> impl Strategy<Value = Vec<(u16, Vec<u8>)>> {
    let known = prop_oneof![Just(3u16), Just(6), Just(7), Just(11), Just(35), Just(39), 0u16..600];
    let one = (known.prop_filter("OSCORE", |number| *number != number::OSCORE), vec(0u8.., 0..9));
    vec(one, 0..8).prop_map(|mut all| {
        all.sort_by_key(|(number, _)| *number);
        all
    })
}

proptest! {
    #[test]
    fn what_is_protected_is_opened_unchanged(
        options in options(),
        payload in vec(0u8.., 0..200),
        numbers in (0u64..1 << 40, 0u64..1 << 40),
        ids in (vec(0u8.., 0..8), vec(0u8.., 0..8)),
    ) {
        let secrets =
            Secrets { secret: b"secret".to_vec(), salt: Vec::new(), id_context: None };
        let (kid, server) = (Id::of(&ids.0).unwrap(), Id::of(&ids.1).unwrap());
        let client = SecurityContext::derive(&secrets, kid, server);
        let server = SecurityContext::derive(&secrets, server, kid);
        let number = PartialIv::of(numbers.0).unwrap();
        let binding = Binding { kid, partial_iv: number, is_fetch: false };
        let plain = written(code::PUT, &options, &payload);
        let plain = parse(&plain).unwrap();
        let mut out = Vec::new();
        put_protected(&client, &plain, &binding, Nonce::Own(number), &mut out);
        let outer = parse(&out).unwrap();
        // Nothing but what proxies need is outside.
        let outside = [3, 6, 7, 9, 35, 39];
        prop_assert!(outer.options.iter().all(|option| outside.contains(&option.number)));
        let mut scratch = Scratch::default();
        let opened = open(&server, &outer, &binding, Some(number), &mut scratch);
        prop_assert_eq!(opened, Ok(plain));
        // Its own sender cannot be made to take it for an answer.
        let back = failure(&client, &out, &binding, Some(number));
        prop_assert!(kid == server.sender_id() || back.is_some());
        // The answer, with either nonce; the value of Observe is outside only.
        let answer = written(code::CONTENT, &[], &payload);
        let own = PartialIv::of(numbers.1).unwrap();
        for (nonce, given) in [(Nonce::OfRequest, None), (Nonce::Own(own), Some(own))] {
            let mut out = Vec::new();
            put_protected(&server, &parse(&answer).unwrap(), &binding, nonce, &mut out);
            let outer = parse(&out).unwrap();
            let opened = open(&client, &outer, &binding, given, &mut scratch);
            prop_assert_eq!(opened, Ok(parse(&answer).unwrap()));
            let other = Binding { partial_iv: PartialIv::of(numbers.0 ^ 1).unwrap(), ..binding };
            prop_assert!(open(&client, &outer, &other, given, &mut scratch).is_err());
        }
    }

    #[test]
    fn no_option_and_no_message_causes_a_panic(
        value in vec(0u8.., 0..300),
        payload in vec(0u8.., 0..60),
    ) {
        if let Some(header) = Header::read(&value) {
            let is_long = header.kid_context.is_some_and(|own| own.len() > 32);
            prop_assert!(is_long || header.value().bytes() == &value[..]);
        }
        let message = written(code::POST, &[(number::OSCORE, value)], &payload);
        let context = context(1, "", "01");
        for given in [None, PartialIv::of(3)] {
            let failed = failure(&context, &message, &Binding::default(), given);
            prop_assert_eq!(failed, Some(OpenFailure::Forged));
        }
    }
}

/// Who knows the key may still send what is not CoAP: it is named, and nothing else happens.
#[test]
fn what_verifies_and_is_not_coap_is_refused() {
    let (client, server) = (context(1, "", "01"), context(1, "01", ""));
    let binding = vectors()[0].binding();
    let own = Some(binding.partial_iv);
    // A nested OSCORE option, and an answer where a request is due.
    let nested = written(code::GET, &[(number::OSCORE, Vec::new())], b"");
    let answer = written(code::CONTENT, &[], b"");
    for plain in [nested, answer] {
        let plain = parse(&plain).unwrap();
        let mut out = Vec::new();
        let nonce = Nonce::Own(binding.partial_iv);
        put_protected(&client, &plain, &binding, nonce, &mut out);
        // Outside it is a request.
        out[1] = code::POST.0;
        assert_eq!(failure(&server, &out, &binding, own), Some(OpenFailure::NotCoap));
    }
}
