//! Values as bytes.

/// Appends a number in decimal.
#[inline]
pub fn put_decimal(out: &mut Vec<u8>, mut number: u64) {
    let mut digits = [0u8; 20];
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
}

fn put_head(out: &mut Vec<u8>, kind: u8, number: u64) {
    out.push(kind);
    put_decimal(out, number);
    out.extend_from_slice(b"\r\n");
}

/// Appends the head of an array of `elements`, which follow: `*2\r\n`.
pub fn put_array(out: &mut Vec<u8>, elements: usize) {
    put_head(out, b'*', elements as u64);
}

/// Appends the head of a map of `pairs`, which in RESP 2 is an array of keys and values.
pub fn put_map(out: &mut Vec<u8>, pairs: usize, is_resp3: bool) {
    match is_resp3 {
        true => put_head(out, b'%', pairs as u64),
        false => put_array(out, 2 * pairs),
    }
}

/// Appends the head of a push of `elements`, which in RESP 2 is an array.
pub fn put_push(out: &mut Vec<u8>, elements: usize, is_resp3: bool) {
    put_head(out, if is_resp3 { b'>' } else { b'*' }, elements as u64);
}

/// Appends a bulk string: `$5\r\nhello\r\n`.
#[inline]
pub fn put_bulk(out: &mut Vec<u8>, bytes: &[u8]) {
    put_bulk_head(out, bytes.len());
    out.extend_from_slice(bytes);
    out.extend_from_slice(b"\r\n");
}

/// Appends the head of a bulk string whose bytes follow.
pub fn put_bulk_head(out: &mut Vec<u8>, length: usize) {
    put_head(out, b'$', length as u64);
}

/// Appends an integer: `:-7\r\n`.
pub fn put_integer(out: &mut Vec<u8>, number: i64) {
    out.push(b':');
    if number < 0 {
        out.push(b'-');
    }
    put_decimal(out, number.unsigned_abs());
    out.extend_from_slice(b"\r\n");
}

/// Appends a simple string; a CR or LF in it becomes a space.
pub fn put_simple(out: &mut Vec<u8>, text: &str) {
    put_line(out, b'+', text);
}

/// Appends an error; a CR or LF in it becomes a space.
pub fn put_error(out: &mut Vec<u8>, text: &str) {
    put_line(out, b'-', text);
}

fn put_line(out: &mut Vec<u8>, kind: u8, text: &str) {
    out.push(kind);
    let plain = |byte| if matches!(byte, b'\r' | b'\n') { b' ' } else { byte };
    out.extend(text.bytes().map(plain));
    out.extend_from_slice(b"\r\n");
}

/// Appends a null: `$-1\r\n`, as an array `*-1\r\n`, or in RESP 3 `_\r\n`.
pub fn put_null(out: &mut Vec<u8>, is_array: bool, is_resp3: bool) {
    out.extend_from_slice(match (is_resp3, is_array) {
        (true, _) => b"_\r\n",
        (false, true) => b"*-1\r\n",
        (false, false) => b"$-1\r\n",
    });
}
