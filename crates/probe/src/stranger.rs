//! Identifies what answers on a port if it is not the expected server: a server of HTTP, one with
//! TLS, a broker, one that greets in words of its own, or no process.

use weigh_engine::layer::websocket::upgrade::{self, Upgrade};
use weigh_protocols::urls;

use crate::finding::Found;
use crate::link::{Link, raw};
use crate::reach::{Reach, Trouble, random};

/// Server on a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Speaker {
    /// HTTP/1.
    Http,
    /// HTTP/2 without an upgrade.
    Http2,
    /// TLS.
    Tls,
    /// MQTT.
    Mqtt,
    /// CoAP, which does not listen on TCP.
    Coap,
    /// HTTP/3, which does not listen on TCP.
    #[cfg_attr(not(feature = "quic"), expect(dead_code, reason = "found only inside QUIC"))]
    Http3,
    /// AMQP 1.0.
    Amqp1,
    /// AMQP 0-9-1.
    Amqp,
    /// NATS.
    Nats,
    /// Redis.
    Redis,
    /// Kafka, which answers no foreign question.
    Kafka,
    /// Something else, which begins so.
    Other(String),
    /// It takes connections and sends nothing.
    Silent,
    /// It takes connections and closes them.
    Closing,
    /// It takes no connection.
    Nobody,
}

impl Speaker {
    /// True if it does not listen on TCP.
    pub(crate) fn is_on_udp(&self) -> bool {
        matches!(self, Speaker::Coap | Speaker::Http3)
    }

    /// Returns what it is, and what to type instead; `host` is host and port.
    pub fn words(&self, host: &str) -> String {
        match self {
            Speaker::Http => format!("a server of HTTP/1 answers: type http://{host}"),
            Speaker::Http2 => {
                format!("a server of HTTP/2 answers: type h2c://{host} or grpc://{host}")
            }
            Speaker::Tls => {
                format!("it speaks TLS: type mqtts://{host}, https://{host} or grpcs://{host}")
            }
            Speaker::Mqtt => format!("a broker of MQTT answers: type mqtt://{host}"),
            Speaker::Coap => format!("a server of CoAP answers: type coap://{host}"),
            Speaker::Http3 => format!("a server of HTTP/3 answers: type h3://{host}"),
            Speaker::Amqp1 => format!("a broker of AMQP 1.0 answers: type amqp1://{host}"),
            Speaker::Amqp => format!("a broker of AMQP 0-9-1 answers: type amqp://{host}"),
            Speaker::Nats => format!("a server of NATS answers: type nats://{host}"),
            Speaker::Redis => format!("a server of Redis answers: type redis://{host}"),
            Speaker::Kafka => format!("a broker of Kafka answers: type kafka://{host}"),
            Speaker::Other(start) => {
                format!("what answers begins with \"{start}\"; check protocol and port")
            }
            Speaker::Silent => {
                "it takes connections and says nothing; check protocol and port".to_owned()
            }
            Speaker::Closing => "it takes connections and closes them at once, without a word; \
                                 check protocol, port and who may connect"
                .to_owned(),
            Speaker::Nobody => "no process listens there any more; check host and port".to_owned(),
        }
    }
}

/// Asks in one protocol after the other, each on a connection of its own.
pub fn identify(reach: &Reach) -> Speaker {
    let mut last = Speaker::Silent;
    for question in QUESTIONS {
        match ask(reach, &question()) {
            Ok(answer) => match recognise(&answer) {
                Speaker::Silent => {}
                known => {
                    let is_surer = !matches!(known, Speaker::Other(_));
                    last = known;
                    if is_surer {
                        return last;
                    }
                }
            },
            Err(Trouble::Closed(_)) if last == Speaker::Silent => last = Speaker::Closing,
            Err(Trouble::Unreachable(_)) => return Speaker::Nobody,
            Err(_) => {}
        }
    }
    last
}

/// Tests whether a plain connection to the port is answered in TLS (RFC 8446, section 5.1: a record
/// of a handshake or an alert).
///
/// # Errors
/// Where no answer came.
pub(crate) fn tls_on_port(reach: &Reach) -> Result<Found, Trouble> {
    if urls::is_secure(&reach.endpoint) {
        return Ok(Found::flag(true, "the whole probe was made inside TLS"));
    }
    Ok(match ask(reach, &client_hello()).map(|answer| recognise(&answer)) {
        Ok(Speaker::Tls) => Found::flag(true, "a hello of TLS was answered in TLS"),
        Ok(_) => Found::flag(false, "a hello of TLS was answered with something else"),
        Err(Trouble::Closed(text)) => Found::flag(false, format!("a hello was sent; {text}")),
        Err(other) => return Err(other),
    })
}

/// Tests whether a plain connection to the port becomes a WebSocket with MQTT inside; returns the
/// answer.
///
/// # Errors
/// Where no answer came.
pub fn speaks_websocket(reach: &Reach) -> Result<Result<(), String>, Trouble> {
    let key = random();
    let request = upgrade::request(&reach.endpoint.authority(), "/mqtt", "mqtt", key);
    let answer = ask(reach, request.as_bytes())?;
    Ok(match upgrade::read_answer(&answer, key, "mqtt") {
        Ok(Upgrade::Done(..)) => Ok(()),
        Ok(Upgrade::Unfinished) => Err("its answer broke off".to_owned()),
        Err(refusal) => Err(match refusal {
            upgrade::Refusal::Status(status, reason) => format!("it answered {status} {reason}"),
            upgrade::Refusal::OtherProtocol(_) => {
                format!(
                    "it answered \"{}\"",
                    answer[..answer.len().min(SHOWN_BYTES)].escape_ascii()
                )
            }
            upgrade::Refusal::Malformed(text) => text,
        }),
    })
}

/// The first bytes of an answer to these, outside all layers.
pub(crate) fn ask(reach: &Reach, question: &[u8]) -> Result<Vec<u8>, Trouble> {
    let mut link = Link::bare(reach, &raw())?;
    let until = reach.until()?;
    // A server that closes at once may have said why before.
    let _ = link.send(question, until);
    link.read(until)?;
    Ok(link.buffer)
}

/// Recognises a server by the begin of its answer.
pub(crate) fn recognise(answer: &[u8]) -> Speaker {
    match answer {
        [] => Speaker::Silent,
        // An alert or a handshake of any version that there is.
        [0x15 | 0x16, 0x03, 0x00..=0x04, ..] => Speaker::Tls,
        _ if answer.starts_with(b"HTTP/1") => Speaker::Http,
        _ if answer.starts_with(b"INFO {") => Speaker::Nats,
        _ if REDIS.iter().any(|start| answer.starts_with(start)) => Speaker::Redis,
        // A server that does not have a version answers with one that it has.
        [b'A', b'M', b'Q', b'P', _, 1, 0, 0, ..] => Speaker::Amqp1,
        [b'A', b'M', b'Q', b'P', 0, 0, 9, 1, ..] => Speaker::Amqp,
        // SETTINGS on stream 0 (RFC 9113, section 3.4).
        [_, _, _, 0x04, _, 0, 0, 0, 0, ..] => Speaker::Http2,
        // CONNACK of 3.1, 3.1.1 or 5 (section 3.2), or the DISCONNECT of 5 that comes instead.
        [0x20, 0x02..=0x7F, 0 | 1, ..] | [0xE0, 0x00 | 0x02.., ..] => Speaker::Mqtt,
        _ => {
            let start = &answer[..answer.len().min(SHOWN_BYTES)];
            Speaker::Other(start.escape_ascii().to_string())
        }
    }
}

/// What a server of Redis says to the request of HTTP: GET is a command there.
const REDIS: [&[u8]; 3] = [b"-ERR ", b"-NOAUTH ", b"$-1\r\n-ERR "];

/// A CONNECT of 3.1.1, a request of HTTP/1.1, a hello of TLS.
const QUESTIONS: [fn() -> Vec<u8>; 3] = [mqtt_connect, http_request, client_hello];

/// A client without a name and with a clean session (MQTT 3.1.1, section 3.1).
fn mqtt_connect() -> Vec<u8> {
    b"\x10\x0c\x00\x04MQTT\x04\x02\x00\x3c\x00\x00".to_vec()
}

fn http_request() -> Vec<u8> {
    b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".to_vec()
}

/// Returns the hello of a client of TLS 1.2 with four usual ciphers and no extension (RFC 5246,
/// section 7.4.1.2). A server with TLS answers with a hello or an alert.
fn client_hello() -> Vec<u8> {
    const CIPHERS: [u16; 4] = [0xC02F, 0xC030, 0x009C, 0x002F];
    let mut body = vec![0x03, 0x03];
    body.extend(random::<32>());
    body.push(0);
    body.extend((2 * CIPHERS.len() as u16).to_be_bytes());
    body.extend(CIPHERS.iter().flat_map(|cipher| cipher.to_be_bytes()));
    body.extend([1, 0]);
    let mut hello = vec![0x16, 0x03, 0x01];
    hello.extend((4 + body.len() as u16).to_be_bytes());
    hello.extend([0x01, 0]);
    hello.extend((body.len() as u16).to_be_bytes());
    hello.extend(body);
    hello
}

/// As much of foreign bytes as is shown.
const SHOWN_BYTES: usize = 24;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn speakers_are_known_by_their_first_bytes() {
        for (answer, speaker) in [
            (&b""[..], Speaker::Silent),
            (b"HTTP/1.1 400 Bad Request\r\n", Speaker::Http),
            (b"HTTP/1.0 501 x\r\n", Speaker::Http),
            (&[0x15, 3, 3, 0, 2, 2, 80], Speaker::Tls),
            (&[0x16, 3, 3, 0, 70, 2], Speaker::Tls),
            (&[0x20, 2, 0, 5], Speaker::Mqtt),
            (&[0x20, 3, 0, 0x84, 0], Speaker::Mqtt),
            (&[0, 0, 6, 4, 0, 0, 0, 0, 0, 0, 3], Speaker::Http2),
            (b"AMQP\x00\x01\x00\x00", Speaker::Amqp1),
            (b"AMQP\x03\x01\x00\x00", Speaker::Amqp1),
            (b"AMQP\x00\x00\x09\x01", Speaker::Amqp),
            (b"INFO {\"server_id\":\"x\"} \r\n", Speaker::Nats),
            (b"-ERR unknown command\r\n", Speaker::Redis),
            (b"SSH-2.0-OpenSSH_9.2p1\r\n", Speaker::Other("SSH-2.0-OpenSSH_9.2p1\\r\\n".into())),
        ] {
            assert_eq!(recognise(answer), speaker, "{answer:?}");
        }
    }

    /// The lengths of RFC 5246, sections 6.2.1 and 7.4, must fit what follows them.
    #[test]
    fn the_hello_is_as_long_as_it_says() {
        let hello = client_hello();
        let two = |at: usize| usize::from(u16::from_be_bytes([hello[at], hello[at + 1]]));
        assert_eq!(two(3), hello.len() - 5);
        assert_eq!(two(7), hello.len() - 9);
        assert_eq!(two(44), 8, "ciphers");
    }
}
