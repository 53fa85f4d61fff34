//! A datagram: four bytes of number (big-endian), then the body.

/// Appends a message.
pub fn put(out: &mut Vec<u8>, number: u32, body: &[u8]) {
    out.extend_from_slice(&number.to_be_bytes());
    out.extend_from_slice(body);
}

/// Number and body of a datagram; `None` if it is too short.
pub fn read(datagram: &[u8]) -> Option<(u32, &[u8])> {
    let (number, body) = datagram.split_first_chunk::<4>()?;
    Some((u32::from_be_bytes(*number), body))
}
