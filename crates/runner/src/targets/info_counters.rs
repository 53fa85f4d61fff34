//! Counters in the answer to INFO of Redis, read over a connection of their own.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use weigh_protocols::redis;

/// Host and port of a URL whose server answers INFO; `None` for other URLs.
pub fn authority(url: &str) -> Option<&str> {
    url.strip_prefix("redis://")
}

/// The text of INFO with all its sections. `None` if the server does not answer in time, or
/// refuses.
pub fn look(authority: &str, within: Duration) -> Option<String> {
    let address: SocketAddr = authority.parse().ok()?;
    let mut stream = TcpStream::connect_timeout(&address, within).ok()?;
    stream.write_all(redis::INFO_REQUEST).ok()?;
    let (mut answer, mut buffer) = (Vec::new(), [0; 16 * 1024]);
    let began = Instant::now();
    loop {
        let left = within.checked_sub(began.elapsed()).filter(|left| !left.is_zero())?;
        stream.set_read_timeout(Some(left)).ok()?;
        let bytes = stream.read(&mut buffer).ok().filter(|bytes| *bytes > 0)?;
        answer.extend_from_slice(&buffer[..bytes]);
        match redis::read_info(&answer) {
            Ok(Some(text)) => return Some(text),
            Ok(None) => {}
            Err(_) => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    /// A server that answers `answer`, byte by byte, once.
    fn served(answer: &'static [u8]) -> Option<String> {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("redis://{}", listener.local_addr().unwrap());
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut asked = vec![0; redis::INFO_REQUEST.len()];
            stream.read_exact(&mut asked).unwrap();
            // A client that has seen enough of it closes before the rest.
            answer.chunks(3).try_for_each(|part| stream.write_all(part)).ok();
            asked
        });
        let found = look(authority(&url).unwrap(), Duration::from_secs(5));
        assert_eq!(server.join().unwrap(), redis::INFO_REQUEST);
        found
    }

    #[test]
    fn the_text_of_info_is_read_whole() {
        assert_eq!(served(b"$11\r\nused:7\r\nx:1\r\n").as_deref(), Some("used:7\r\nx:1"));
        assert_eq!(served(b"-NOAUTH Authentication required.\r\n"), None);
        assert_eq!(served(b"HTTP/1.1 400 Bad Request\r\n"), None);
        assert_eq!(served(b"$10\r\nonly"), None, "it ends too early");
        assert_eq!(authority("http://127.0.0.1:1/"), None);
    }
}
