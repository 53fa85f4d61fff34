//! The codec of NATS: the examples of the protocol's documentation byte by byte
//! (<https://docs.nats.io/reference/reference-protocols/nats-protocol>, and ADR-4 for headers),
//! what is written and read back, and what is refused.

use proptest::collection::vec;
use proptest::prelude::*;
use weigh_protocols::nats::codec::info::{Connect, Info, from_json};
use weigh_protocols::nats::codec::{
    Flaw, FromClient, FromServer, Limits, Message, Publish, Subscribe, headers, put_error,
    put_line, read_client, read_server,
};

const SERVER: Limits = Limits { line_bytes_max: 4096, payload_bytes_max: 1 << 20 };

fn publish<'a>(subject: &'a [u8], reply: &'a [u8], body: &'a [u8]) -> Publish<'a> {
    Publish { subject, reply, headers: b"", body }
}

fn of_client(bytes: &[u8]) -> FromClient<'_> {
    let (line, taken) = read_client(bytes, &SERVER).unwrap().unwrap();
    assert_eq!(taken, bytes.len());
    line
}

fn of_server(bytes: &[u8]) -> FromServer<'_> {
    let (line, taken) = read_server(bytes, &Limits::CLIENT).unwrap().unwrap();
    assert_eq!(taken, bytes.len());
    line
}

/// Sections PUB, HPUB: written as they stand there, and read.
#[test]
fn the_examples_of_messages_to_a_server_are_written_and_read() {
    const BAR: &[u8] = b"NATS/1.0\r\nBar: Baz\r\n\r\n";
    const BREAKFAST: &[u8] = b"NATS/1.0\r\nBREAKFAST: donut\r\nBREAKFAST: eggs\r\n\r\n";
    for (own, example) in [
        (publish(b"FOO", b"", b"Hello NATS!"), &b"PUB FOO 11\r\nHello NATS!\r\n"[..]),
        (
            publish(b"FRONT.DOOR", b"JOKE.22", b"Knock Knock"),
            b"PUB FRONT.DOOR JOKE.22 11\r\nKnock Knock\r\n",
        ),
        (publish(b"NOTIFY", b"", b""), b"PUB NOTIFY 0\r\n\r\n"),
        (
            Publish { headers: BAR, ..publish(b"FOO", b"", b"Hello NATS!") },
            b"HPUB FOO 22 33\r\nNATS/1.0\r\nBar: Baz\r\n\r\nHello NATS!\r\n",
        ),
        (
            Publish { headers: BAR, ..publish(b"FRONT.DOOR", b"JOKE.22", b"Knock Knock") },
            b"HPUB FRONT.DOOR JOKE.22 22 33\r\nNATS/1.0\r\nBar: Baz\r\n\r\nKnock Knock\r\n",
        ),
        (
            Publish { headers: BAR, ..publish(b"NOTIFY", b"", b"") },
            b"HPUB NOTIFY 22 22\r\nNATS/1.0\r\nBar: Baz\r\n\r\n\r\n",
        ),
        (
            Publish { headers: BREAKFAST, ..publish(b"MORNING.MENU", b"", b"Yum!") },
            b"HPUB MORNING.MENU 47 51\r\n\
              NATS/1.0\r\nBREAKFAST: donut\r\nBREAKFAST: eggs\r\n\r\nYum!\r\n",
        ),
    ] {
        let mut out = Vec::new();
        own.put(&mut out);
        assert_eq!(out, example, "{}", out.escape_ascii());
        assert_eq!(of_client(example), FromClient::Publish(own));
    }
}

/// Sections MSG, HMSG; the last is an answer without responders (ADR-4).
#[test]
fn the_examples_of_messages_of_a_server_are_written_and_read() {
    let plain = |reply| Message {
        subject: b"FOO.BAR",
        sid: b"9",
        reply,
        headers: b"",
        body: b"Hello World",
    };
    let block = b"NATS/1.0\r\nFoodGroup: vegetable\r\n\r\n";
    for (own, example) in [
        (plain(&b""[..]), &b"MSG FOO.BAR 9 11\r\nHello World\r\n"[..]),
        (plain(b"GREETING.34"), b"MSG FOO.BAR 9 GREETING.34 11\r\nHello World\r\n"),
        (
            Message { headers: block, ..plain(b"") },
            b"HMSG FOO.BAR 9 34 45\r\nNATS/1.0\r\nFoodGroup: vegetable\r\n\r\nHello World\r\n",
        ),
        (
            Message { headers: block, ..plain(b"BAZ.69") },
            b"HMSG FOO.BAR 9 BAZ.69 34 45\r\n\
              NATS/1.0\r\nFoodGroup: vegetable\r\n\r\nHello World\r\n",
        ),
        (
            Message {
                subject: b"INBOX.1",
                sid: b"1",
                reply: b"",
                headers: b"NATS/1.0 503\r\n\r\n",
                body: b"",
            },
            b"HMSG INBOX.1 1 16 16\r\nNATS/1.0 503\r\n\r\n\r\n",
        ),
    ] {
        let mut out = Vec::new();
        own.put(&mut out);
        assert_eq!(out, example, "{}", out.escape_ascii());
        assert_eq!(of_server(example), FromServer::Message(own));
        assert!(out.len() <= own.bytes_max());
    }
}

/// Sections SUB, UNSUB, PING/PONG, +OK/-ERR, CONNECT and INFO.
#[test]
fn the_examples_of_other_lines_are_written_and_read() {
    for (own, example) in [
        (Subscribe { subject: b"FOO", queue: b"", sid: b"1" }, &b"SUB FOO 1\r\n"[..]),
        (Subscribe { subject: b"BAR", queue: b"G1", sid: b"44" }, b"SUB BAR G1 44\r\n"),
    ] {
        let mut out = Vec::new();
        own.put(&mut out);
        assert_eq!(out, example);
        assert_eq!(of_client(example), FromClient::Subscribe(own));
    }
    assert_eq!(of_client(b"UNSUB 1\r\n"), FromClient::Unsubscribe(b"1", None));
    assert_eq!(of_client(b"UNSUB 1 5\r\n"), FromClient::Unsubscribe(b"1", Some(5)));
    assert_eq!(of_client(b"PING\r\n"), FromClient::Ping);
    assert_eq!(of_client(b"PONG\r\n"), FromClient::Pong);
    assert_eq!(of_server(b"PING\r\n"), FromServer::Ping);
    assert_eq!(of_server(b"PONG\r\n"), FromServer::Pong);
    assert_eq!(of_server(b"+OK\r\n"), FromServer::Okay);
    let mut out = Vec::new();
    put_error(&mut out, "Unknown Protocol Operation");
    assert_eq!(out, b"-ERR 'Unknown Protocol Operation'\r\n");
    assert_eq!(of_server(&out), FromServer::Error(b"Unknown Protocol Operation"));

    let connect =
        b"CONNECT {\"verbose\":false,\"pedantic\":false,\"tls_required\":false,\"name\":\"\",\
                    \"lang\":\"go\",\"version\":\"1.2.2\",\"protocol\":1}";
    let line = [connect, &b"\r\n"[..]].concat();
    let FromClient::Connect(json) = of_client(&line) else { panic!("no CONNECT") };
    let read: Connect = serde_json::from_slice(json).unwrap();
    assert!(!read.verbose && read.lang == "go" && read.protocol == 1 && read.echo);
    let info = b"INFO {\"server_id\":\"Zk0GQ3JBSrg3oyxCRRlE09\",\"version\":\"1.2.0\",\"proto\":1,\
                 \"go\":\"go1.10.3\",\"host\":\"0.0.0.0\",\"port\":4222,\
                 \"max_payload\":1048576,\"client_id\":2392}";
    let line = [info, &b"\r\n"[..]].concat();
    let FromServer::Info(json) = of_server(&line) else { panic!("no INFO") };
    let read: Info = serde_json::from_slice(json).unwrap();
    assert_eq!((read.max_payload, read.port, read.headers), (1_048_576, 4222, false));
}

/// Words in any case, and any number of spaces and tabs between fields.
#[test]
fn lines_are_read_as_loosely_as_servers_read_them() {
    assert_eq!(
        of_client(b"pub FOO\t \t5\r\nhello\r\n"),
        FromClient::Publish(publish(b"FOO", b"", b"hello"))
    );
    assert_eq!(of_client(b"Ping\r\n"), FromClient::Ping);
    assert_eq!(of_client(b"ping \n"), FromClient::Ping);
    let subscribe = Subscribe { subject: b"a.>", queue: b"", sid: b"x" };
    assert_eq!(of_client(b"sub  a.>  x  \r\n"), FromClient::Subscribe(subscribe));
}

#[test]
fn what_breaks_the_protocol_is_named() {
    for (bytes, flaw) in [
        (&b"GET / HTTP/1.1\r\n\r\n"[..], Flaw::UnknownOperation),
        (b"\x10\x10\0\x04MQTT", Flaw::UnknownOperation),
        (b"PUBLISH a 1\r\n", Flaw::UnknownOperation),
        (b"PUB\r\n", Flaw::Fields("PUB")),
        (b"PUB a\r\n", Flaw::Fields("PUB")),
        (b"PUB a b c 1\r\n", Flaw::Fields("PUB")),
        (b"PUB a -1\r\n", Flaw::Fields("PUB")),
        (b"PUB a 1x\r\n", Flaw::Fields("PUB")),
        (b"PUB a 99999999999999999999\r\n", Flaw::Fields("PUB")),
        (b"PUB a 1048577\r\n", Flaw::PayloadTooLarge(1_048_577, 1_048_576)),
        (b"PUB a 2\r\nabc\r\n", Flaw::NoLineEnd),
        (b"PUB a 2\r\nab\rc", Flaw::NoLineEnd),
        (b"HPUB a 5\r\n", Flaw::Fields("HPUB")),
        (b"HPUB a 9 5\r\n", Flaw::Fields("HPUB")),
        (b"HPUB a 0 5\r\n", Flaw::Fields("HPUB")),
        (b"SUB a\r\n", Flaw::Fields("SUB")),
        (b"SUB a b c d\r\n", Flaw::Fields("SUB")),
        (b"UNSUB\r\n", Flaw::Fields("UNSUB")),
        (b"UNSUB 1 x\r\n", Flaw::Fields("UNSUB")),
        (&[&b"PUB "[..], &[b'a'; 5000]].concat(), Flaw::LineTooLong(4096)),
        (&[&b"PUB "[..], &[b'a'; 5000], b" 1\r\n"].concat(), Flaw::LineTooLong(4096)),
    ] {
        assert_eq!(read_client(bytes, &SERVER), Err(flaw), "{}", bytes.escape_ascii());
    }
    for (bytes, flaw) in [
        (&b"HTTP/1.1 400 Bad Request\r\n"[..], Flaw::UnknownOperation),
        (b"\x15\x03\x01", Flaw::UnknownOperation),
        (b"MSG a 1\r\n", Flaw::Fields("MSG")),
        (b"HMSG a 1 5\r\n", Flaw::Fields("HMSG")),
        (b"MSG a 1 67108865\r\n", Flaw::PayloadTooLarge(67_108_865, 67_108_864)),
    ] {
        assert_eq!(read_server(bytes, &Limits::CLIENT), Err(flaw), "{}", bytes.escape_ascii());
    }
}

/// ADR-4: the first line has the version and perhaps a status with words.
#[test]
fn header_blocks_are_read() {
    let block = b"NATS/1.0 408 Request Timeout\r\nNats-Pending-Messages: 7\r\n\r\n";
    assert_eq!(headers::status(block), Some((408, &b"Request Timeout"[..])));
    assert_eq!(headers::value(block, "nats-pending-messages"), Some(&b"7"[..]));
    assert_eq!(headers::value(block, "Other"), None);
    assert_eq!(headers::status(b"NATS/1.0 503\r\n\r\n"), Some((503, &b""[..])));
    assert_eq!(headers::status(b"NATS/1.0\r\nBar: Baz\r\n\r\n"), None);
    assert_eq!(headers::status(b"NATS/1.0 x\r\n\r\n"), None);
    let mut out = Vec::new();
    headers::put_status(&mut out, 408, "Request Timeout", &[("Nats-Pending-Messages", 7)]);
    assert_eq!(out, block);
    out.clear();
    headers::put_message_id(&mut out, &[1, 22, 333]);
    assert_eq!(out, b"NATS/1.0\r\nNats-Msg-Id: weigh-1-22-333\r\n\r\n");
    assert!(headers::is_block(&out) && !headers::is_block(b"NATS/1.0\r\n"));
    assert_eq!(headers::value(&out, headers::MESSAGE_ID), Some(&b"weigh-1-22-333"[..]));
}

#[test]
fn info_and_connect_are_written_as_they_are_read() {
    let connect = Connect { user: Some("u".into()), pass: Some("p".into()), ..Connect::default() };
    let mut line = Vec::new();
    put_line(&mut line, "CONNECT", &serde_json::to_vec(&connect).unwrap());
    let FromClient::Connect(json) = of_client(&line) else { panic!("no CONNECT") };
    assert_eq!(serde_json::from_slice::<Connect>(json).unwrap(), connect);
    assert!(!String::from_utf8_lossy(&line).contains("auth_token"));
    // Some clients write all fields.
    let nulls = br#"{"verbose":false,"name":null,"user":null,"lang":"x"}"#;
    let read: Connect = from_json(nulls).unwrap();
    assert_eq!((read.verbose, &*read.name, &*read.lang, read.user), (false, "", "x", None));
}

/// A subject without wildcards, and a reply or none.
fn names() -> impl Strategy<Value = (String, String)> {
    ("[a-zA-Z0-9$_-]{1,9}(\\.[a-z0-9*]{1,5}){0,3}", "([a-zA-Z0-9_]{1,9}(\\.[a-z0-9]{1,5}){0,2})?")
}

proptest! {
    #[test]
    fn what_is_written_is_read_back_from_any_prefix(
        (subject, reply) in names(),
        fields in vec(("[A-Za-z-]{1,9}", "[ -~]{0,12}"), 0..3),
        body in vec(any::<u8>(), 0..200),
    ) {
        let mut block = Vec::new();
        if !fields.is_empty() {
            block.extend_from_slice(b"NATS/1.0\r\n");
            for (name, value) in &fields {
                block.extend_from_slice(format!("{name}: {value}\r\n").as_bytes());
            }
            block.extend_from_slice(b"\r\n");
        }
        let publish = Publish {
            subject: subject.as_bytes(),
            reply: reply.as_bytes(),
            headers: &block,
            body: &body,
        };
        let mut out = Vec::new();
        publish.put(&mut out);
        for cut in 0..out.len() {
            prop_assert_eq!(read_client(&out[..cut], &SERVER), Ok(None), "{} bytes", cut);
        }
        prop_assert_eq!(of_client(&out), FromClient::Publish(publish));

        let Publish { subject, reply, headers, body } = publish;
        let message = Message { subject, sid: b"17", reply, headers, body };
        out.clear();
        message.put(&mut out);
        for cut in 0..out.len() {
            prop_assert_eq!(read_server(&out[..cut], &Limits::CLIENT), Ok(None), "{} bytes", cut);
        }
        prop_assert_eq!(of_server(&out), FromServer::Message(message));
    }

    #[test]
    fn no_bytes_make_it_panic(bytes in vec(any::<u8>(), 0..300), word in 0..10usize) {
        const WORDS: [&str; 10] =
            ["PUB ", "HPUB ", "SUB ", "UNSUB ", "CONNECT ", "MSG ", "HMSG ", "INFO ", "-ERR ", ""];
        let bytes = [WORDS[word].as_bytes(), &bytes].concat();
        for taken in [
            read_client(&bytes, &SERVER).map(|read| read.map(|(_, taken)| taken)),
            read_server(&bytes, &Limits::CLIENT).map(|read| read.map(|(_, taken)| taken)),
        ].into_iter().flatten().flatten() {
            prop_assert!(taken > 0 && taken <= bytes.len());
        }
        headers::status(&bytes);
        headers::value(&bytes, "x");
    }
}
