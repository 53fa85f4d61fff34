//! Checks before a run that a server listens at every URL: else all trials would fail alike.

use std::collections::BTreeSet;
use std::io::{self, ErrorKind};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::time::Duration;

use weigh_model::refusal::without_number;
use weigh_model::{Endpoint, quic, tls};
use weigh_protocols::urls;

use crate::case::Case;
use crate::case::lanes::Against;
use crate::exit::{Exit, Stop};
use crate::targets::addresses;

/// Opens one TCP connection to every URL of these cases and closes it without a byte: with TLS
/// too, because only the port is checked. Over datagrams it sends the one that every server
/// answers; inside DTLS and QUIC none is, and only a closed port is
/// noticed.
///
/// # Errors
/// An unknown host, and an address that does not accept the connection, or does not answer, within
/// [`ANSWERS_WITHIN`].
pub fn check(cases: &[Case]) -> Result<(), Stop> {
    let mut seen = BTreeSet::new();
    for case in cases {
        let Against::Foreign(endpoint) = &case.lane.against else { continue };
        let address = addresses::resolve(endpoint)?;
        if seen.insert(address) {
            let found = urls::find(&endpoint.scheme);
            let is_quic = quic::is_on(case.lane.protocol, &case.lane.settings);
            let reached = match found.map(|(own, _)| own.properties().greeting_datagram) {
                _ if is_quic => knock(address),
                None | Some([]) => connect(address),
                Some(_) if tls::is_on(&case.lane.settings) => knock(address),
                Some(greeting) => greet(address, greeting),
            };
            reached.map_err(|error| unreached(endpoint, &error))?;
        }
    }
    Ok(())
}

fn connect(address: SocketAddr) -> io::Result<()> {
    TcpStream::connect_timeout(&address, ANSWERS_WITHIN).map(drop)
}

/// Sends a datagram that DTLS and QUIC ignore: a closed port refuses it, and an open one is silent.
fn knock(address: SocketAddr) -> io::Result<()> {
    let socket = bound_to(address)?;
    socket.set_read_timeout(Some(REFUSED_WITHIN))?;
    socket.send(b"\0")?;
    match socket.recv(&mut [0; 64]) {
        Err(error) if error.kind() == ErrorKind::ConnectionRefused => Err(error),
        _ => Ok(()),
    }
}

fn bound_to(address: SocketAddr) -> io::Result<UdpSocket> {
    let any = if address.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
    let socket = UdpSocket::bind(any)?;
    socket.connect(address)?;
    Ok(socket)
}

/// Sends `greeting` until something comes back; a refusal arrives as an error of the socket.
fn greet(address: SocketAddr, greeting: &[u8]) -> io::Result<()> {
    let socket = bound_to(address)?;
    socket.set_read_timeout(Some(ANSWERS_WITHIN / GREETINGS))?;
    for _ in 0..GREETINGS {
        socket.send(greeting)?;
        match socket.recv(&mut [0; 64]) {
            Ok(_) => return Ok(()),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
            Err(error) => return Err(error),
        }
    }
    Err(ErrorKind::TimedOut.into())
}

fn unreached(endpoint: &Endpoint, error: &io::Error) -> Stop {
    let reason = match error.kind() {
        ErrorKind::ConnectionRefused => "connection refused: no process listens there".to_owned(),
        ErrorKind::TimedOut => {
            format!("the host did not answer within {} s", ANSWERS_WITHIN.as_secs())
        }
        _ => without_number(&error.to_string()),
    };
    Stop::new(
        Exit::Target,
        format!("{endpoint}: {reason}\nhelp: start the server, or check host and port"),
    )
}

/// Time limit for one connection: two repetitions of the first packet (RFC 6298), and a round trip
/// over a satellite.
const ANSWERS_WITHIN: Duration = Duration::from_secs(5);

/// Wait for the refusal of a closed port.
const REFUSED_WITHIN: Duration = Duration::from_millis(200);

/// Datagrams that are sent within that time: any of them may be lost.
const GREETINGS: u32 = 5;

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn a_port_without_a_process_is_named_with_its_fix() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("its address");
        connect(address).expect("a process listens");
        drop(listener);
        let error = connect(address).expect_err("no process listens");
        let endpoint = Endpoint {
            scheme: "mqtt".to_owned(),
            host: "127.0.0.1".to_owned(),
            port: address.port(),
            path: String::new(),
            credentials: None,
            address: None,
        };
        let stop = unreached(&endpoint, &error);
        assert_eq!(stop.exit(), Exit::Target);
        assert_eq!(
            stop.to_string(),
            format!(
                "mqtt://{address}: connection refused: no process listens there\nhelp: start the \
                 server, or check host and port"
            )
        );
    }
}
