//! Names of requests and answers, for diagrams.

use weigh_model::protocol::PacketName;

use super::codec::Reader;
use super::codec::frame::{self, FETCH};

/// The request or answer that begins with `head`.
pub(super) fn name(from_client: bool, head: &[u8]) -> Option<PacketName> {
    let mut reader = Reader::new(head);
    let length = u64::try_from(reader.i32().ok()?).ok().filter(|bytes| *bytes <= BYTES_MAX)?;
    let length = Some(4 + length);
    if !from_client {
        // An answer has the number of its request and nothing that says what it answers.
        let correlation = reader.i32().ok().filter(|own| (0..NUMBERS_MAX).contains(own))?;
        return Some(PacketName {
            name: format!("answer {correlation}"),
            length,
            subscribes: false,
        });
    }
    let own = frame::read_request_head(&mut reader).ok()?;
    let api = frame::find(own.api).filter(|_| (0..VERSIONS_MAX).contains(&own.version))?;
    let is_named = own.client.is_none_or(|client| std::str::from_utf8(client).is_ok());
    is_named.then(|| PacketName {
        name: format!("{} v{}", api.name, own.version),
        length,
        subscribes: api == FETCH,
    })
}

/// Longer ones have no name.
const BYTES_MAX: u64 = 128 << 20;
const NUMBERS_MAX: i32 = 1 << 28;
const VERSIONS_MAX: i16 = 64;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kafka::codec::requests;

    #[test]
    fn packets_are_called_by_api_and_version() {
        let mut bytes = Vec::new();
        requests::put_api_versions(&mut bytes, 0);
        let found = name(true, &bytes).unwrap();
        assert_eq!(found.name, "ApiVersions v0");
        assert_eq!((found.length, found.subscribes), (Some(bytes.len() as u64), false));
        let limits = requests::FetchLimits {
            wait_ms: 1,
            bytes_min: 1,
            bytes_max: 1,
            partition_bytes_max: 1,
        };
        bytes.clear();
        requests::put_fetch(&mut bytes, 3, &limits, b"t", std::iter::empty());
        assert!(name(true, &bytes).unwrap().subscribes);
        assert_eq!(name(false, &[0, 0, 0, 8, 0, 0, 0, 5]).unwrap().name, "answer 5");
        for head in
            [&b"{\"temperature\":21}"[..], b"HTTP/1.1 200 OK\r\n", b"", b"\0\0\0\x20xxxxxxx"]
        {
            assert_eq!(name(true, head), None);
            assert_eq!(name(false, head), None);
        }
    }
}
