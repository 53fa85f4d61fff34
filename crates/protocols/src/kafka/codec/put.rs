//! Writing of primitive types.

/// Appends an INT8.
pub fn put_i8(out: &mut Vec<u8>, value: i8) {
    out.extend_from_slice(&value.to_be_bytes());
}

/// Appends an INT16.
pub fn put_i16(out: &mut Vec<u8>, value: i16) {
    out.extend_from_slice(&value.to_be_bytes());
}

/// Appends an INT32.
pub fn put_i32(out: &mut Vec<u8>, value: i32) {
    out.extend_from_slice(&value.to_be_bytes());
}

/// Appends an INT64.
pub fn put_i64(out: &mut Vec<u8>, value: i64) {
    out.extend_from_slice(&value.to_be_bytes());
}

/// Appends the number of elements of an ARRAY; at most 2³¹ − 1.
pub fn put_count(out: &mut Vec<u8>, count: usize) {
    put_i32(out, count as i32);
}

/// Appends a STRING; of a longer text than 32,767 bytes the beginning.
pub fn put_string(out: &mut Vec<u8>, text: &[u8]) {
    let text = &text[..text.len().min(i16::MAX as usize)];
    put_i16(out, text.len() as i16);
    out.extend_from_slice(text);
}

/// Appends a NULLABLE_STRING that is null.
pub fn put_null_string(out: &mut Vec<u8>) {
    put_i16(out, -1);
}

/// Appends a BYTES; at most 2³¹ − 1.
pub fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_i32(out, bytes.len() as i32);
    out.extend_from_slice(bytes);
}

/// Appends a NULLABLE_BYTES that is null.
pub fn put_null_bytes(out: &mut Vec<u8>) {
    put_i32(out, -1);
}

/// Appends an UNSIGNED_VARINT.
pub fn put_unsigned_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Appends a VARINT or VARLONG.
pub fn put_varlong(out: &mut Vec<u8>, value: i64) {
    put_unsigned_varint(out, zigzag(value));
}

/// Number of bytes of a VARINT or VARLONG.
pub fn varlong_bytes(value: i64) -> usize {
    let bits = 64 - zigzag(value).leading_zeros() as usize;
    bits.max(1).div_ceil(7)
}

fn zigzag(value: i64) -> u64 {
    (value << 1 ^ value >> 63) as u64
}

/// Replaces the INT32 at a place.
pub fn set_i32(out: &mut [u8], at: usize, value: i32) {
    if let Some(place) = out.get_mut(at..at + 4) {
        place.copy_from_slice(&value.to_be_bytes());
    }
}
