//! `5:hello,`: the length in decimal digits, a colon, the bytes, a comma.

use weigh_model::connection::Fault;

/// Appends a netstring.
pub fn put(out: &mut Vec<u8>, body: &[u8]) {
    out.extend_from_slice(format!("{}:", body.len()).as_bytes());
    out.extend_from_slice(body);
    out.push(b',');
}

/// The first netstring of `input`, and how many bytes it takes; `None` if it is not all there.
pub fn read(input: &[u8]) -> Result<Option<(&[u8], usize)>, Fault> {
    let malformed = || Fault::Malformed("not a netstring".to_owned());
    let digits = input.iter().take_while(|byte| byte.is_ascii_digit()).count();
    if digits > DIGITS_MAX || (digits == 0 && !input.is_empty()) {
        return Err(malformed());
    }
    let Some(colon) = input.get(digits) else { return Ok(None) };
    let length = str::from_utf8(&input[..digits]).ok().and_then(|text| text.parse::<usize>().ok());
    let length = length.filter(|_| *colon == b':').ok_or_else(malformed)?;
    let start = digits + 1;
    match input.get(start + length) {
        Some(b',') => Ok(Some((&input[start..start + length], start + length + 1))),
        Some(_) => Err(malformed()),
        None => Ok(None),
    }
}

/// Up to 10 MB.
const DIGITS_MAX: usize = 7;
