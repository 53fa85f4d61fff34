//! Addresses, requests and answers of all servers.

use std::net::{SocketAddr, ToSocketAddrs};

use weigh_runner::exit::Stop;
use weigh_testbed::serve_lines::{Request, error_line};

use crate::show::output;

/// Reads the address to listen on.
///
/// # Errors
/// A text that is not an address with a port.
pub fn address(text: &str) -> Result<SocketAddr, String> {
    if let Ok(address) = text.parse() {
        return Ok(address);
    }
    if text.parse::<u16>().is_ok() {
        return Err(format!("needs ADDRESS:PORT: type 127.0.0.1:{text}"));
    }
    // A name such as localhost has several addresses; IPv4 comes first, as elsewhere.
    let found = text.to_socket_addrs().map(Iterator::collect::<Vec<SocketAddr>>);
    let mut found = found.unwrap_or_default();
    found.sort_by_key(SocketAddr::is_ipv6);
    found.first().copied().ok_or_else(|| {
        "not a known address with a port: type 127.0.0.1:1883, [::1]:1883, or 127.0.0.1:0 for a \
         free port"
            .to_owned()
    })
}

/// Returns the answer to a request.
pub fn answer(request: &str, count: impl Fn() -> Result<String, String>) -> String {
    match Request::parse(request) {
        Ok(Request::Report) => count().unwrap_or_else(|error| error_line(&error)),
        Err(error) => error_line(&error),
    }
}

/// Prints a line and flushes it, because the parent process may read line by line.
///
/// # Errors
/// Those of [`output::put`].
pub fn say(line: &str) -> Result<(), Stop> {
    output::put_document(&format!("{line}\n"))
}
