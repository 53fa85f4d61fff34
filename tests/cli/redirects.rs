//! Servers that send a client elsewhere: the reference server, with its answers changed on their
//! way. Redirects are not followed, and each ends in a named cause.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};

use crate::rig::{Place, cells};
use crate::serving::Server;

/// What a server said on a connection.
struct Said<'b> {
    /// Before, as it was.
    before: &'b [u8],
    /// Now.
    input: &'b [u8],
}

/// Takes whole answers from what a server says now, and appends what the client gets instead.
/// Returns how many bytes it took, and whether the connection ends then.
type Change = fn(Said<'_>, &mut Vec<u8>) -> (usize, bool);

/// A relay to the server of this URL; its port.
fn relay(server: &Server, change: Change) -> u16 {
    let to = server.url.rsplit('/').next().expect("an address").to_owned();
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("its address").port();
    std::thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let Ok(server) = TcpStream::connect(&to) else { break };
            let (from, into) = (client.try_clone(), server.try_clone());
            let (Ok(mut from), Ok(mut into)) = (from, into) else { break };
            std::thread::spawn(move || {
                let _ = std::io::copy(&mut from, &mut into);
                let _ = into.shutdown(Shutdown::Both);
            });
            std::thread::spawn(move || carry(server, client, change));
        }
    });
    port
}

fn carry(mut from: TcpStream, mut to: TcpStream, change: Change) {
    let (mut before, mut waiting, mut chunk) = (Vec::new(), Vec::new(), vec![0; 65_536]);
    while let Ok(count @ 1..) = from.read(&mut chunk) {
        waiting.extend_from_slice(&chunk[..count]);
        let mut changed = Vec::new();
        let (taken, ends) = change(Said { before: &before, input: &waiting }, &mut changed);
        before.extend(waiting.drain(..taken));
        if to.write_all(&changed).is_err() || ends {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Both);
    let _ = from.shutdown(Shutdown::Both);
}

/// Every answer to SET is a redirect of a cluster.
fn moved(Said { input, .. }: Said<'_>, out: &mut Vec<u8>) -> (usize, bool) {
    let mut taken = 0;
    while let Some(end) = input[taken..].windows(2).position(|two| two == b"\r\n") {
        let line = &input[taken..taken + end + 2];
        out.extend_from_slice(match line {
            b"+OK\r\n" => b"-MOVED 3999 127.0.0.1:6381\r\n",
            line => line,
        });
        taken += line.len();
    }
    (taken, false)
}

/// Every answer to Produce (version 5) says that the leader is another broker.
fn without_leader(Said { input, .. }: Said<'_>, out: &mut Vec<u8>) -> (usize, bool) {
    let mut taken = 0;
    while let Some(length) = input[taken..].first_chunk::<4>() {
        let length = u32::from_be_bytes(*length) as usize;
        let Some(frame) = input.get(taken..taken + 4 + length) else { break };
        let mut frame = frame.to_vec();
        taken += frame.len();
        // A number, one topic with its name, one partition, its error and three numbers of eight
        // bytes, a time.
        let name =
            frame.get(12..14).map_or(0, |two| usize::from(two[0]) * 256 + usize::from(two[1]));
        if length == 48 + name && frame[8..12] == [0, 0, 0, 1] {
            frame[14 + name + 8..][..2].copy_from_slice(&[0, 6]);
        }
        out.extend_from_slice(&frame);
    }
    (taken, false)
}

/// The first disposition is a redirect of the link.
fn redirected(Said { input, .. }: Said<'_>, out: &mut Vec<u8>) -> (usize, bool) {
    match input.windows(3).position(|three| three == b"\x00\x53\x15") {
        Some(at) => {
            // In front of it is the head of its frame.
            out.extend_from_slice(&input[..at.saturating_sub(8)]);
            out.extend_from_slice(REDIRECT);
            (input.len(), true)
        }
        None => {
            out.extend_from_slice(input);
            (input.len(), false)
        }
    }
}

/// `detach` with the error amqp:link:redirect to b2.example, port 5673 (part 2, section 2.8.18).
const REDIRECT: &[u8] =
    b"\x00\x00\x00Q\x02\x00\x00\x00\x00S\x16\xc0D\x03CA\x00S\x1d\xc0<\x03\xa3\x12amq\
      p:link:redirect@\xc1$\x04\xa3\x0cnetwork-host\xa1\x0ab2.example\xa3\x04port`\
      \x16)";

/// Behind its greeting, which ends with PONG, the server announces its end and closes.
fn lame_duck(Said { before, input }: Said<'_>, out: &mut Vec<u8>) -> (usize, bool) {
    let is_greeted = before.windows(4).any(|four| four == b"PONG");
    out.extend_from_slice(if is_greeted { LAME_DUCK } else { input });
    (input.len(), is_greeted)
}

const LAME_DUCK: &[u8] =
    b"INFO {\"max_payload\":1048576,\"ldm\":true,\"connect_urls\":[\"10.0.0.1:4222\"]}\r\n";

/// The load of a test: its words, and what is said about its end.
struct Case {
    protocol: &'static str,
    words: &'static [&'static str],
    change: Change,
    cause: &'static str,
    said: &'static [&'static str],
}

/// The trial may fail before anything is confirmed, so that there is no ledger.
const NONE: &str = "";

const CASES: [Case; 4] = [
    Case {
        protocol: "redis",
        words: &["--set", "redis.command=set"],
        change: moved,
        cause: "error_answer",
        said: &["MOVED", "redirects are not followed"],
    },
    Case {
        protocol: "kafka",
        words: &["--set", "kafka.acks=all"],
        change: without_leader,
        cause: "error_answer",
        said: &["NOT_LEADER_OR_FOLLOWER", "new leader"],
    },
    Case {
        protocol: "amqp1",
        words: &["--set", "amqp1.transfers=unsettled"],
        change: redirected,
        cause: NONE,
        said: &["amqp:link:redirect to b2.example:5673", "redirects are not followed"],
    },
    Case {
        protocol: "nats",
        words: &["--set", "nats.confirm=ok", "--window", "8"],
        change: lame_duck,
        cause: NONE,
        said: &["lame duck mode", "URL of another"],
    },
];

#[test]
fn redirects_are_not_followed_and_are_named() {
    for Case { protocol, words, change, cause, said } in CASES {
        let place = Place::new(&format!("redirect-{protocol}"));
        let server = Server::start(&place, &[protocol]);
        let url = format!("{protocol}://127.0.0.1:{}", relay(&server, change));
        let load = [&*url, "--pattern", "publish", "-n", "40", "-c", "2", "-s", "64B"];
        let load = [&load[..], &["--timeout", "500ms"], words].concat();
        let ended = place.compare(&load);
        let text = format!("{}{}", ended.stdout, ended.stderr);
        for part in said {
            assert!(text.contains(part), "{protocol}: {part:?} is not in {text}");
        }
        let summary = place.summary();
        if cause == NONE {
            continue;
        }
        let ledger = &cells(&summary)[0]["ledger"];
        let count = |key: &str| ledger[key].as_u64().unwrap_or(0);
        assert_eq!(count("scheduled"), count("not_sent") + count("sent"), "{ledger}");
        let causes = ledger["causes"].as_object().expect("causes");
        assert!(
            causes.get(cause).and_then(|own| own.as_u64()).unwrap_or(0) > 0,
            "{protocol}: {ledger}"
        );
        server.end("TERM");
        place.nobody_is_left();
    }
}
