//! Tokens (RFC 7252, section 5.3.1): up to eight bytes that the client chooses and the server
//! repeats in its response.

/// A token.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Token {
    bytes: [u8; TOKEN_BYTES_MAX],
    length: u8,
}

impl Token {
    /// The token of these bytes, of which at most eight are used.
    pub fn of(bytes: &[u8]) -> Token {
        let mut token = Token::default();
        let length = bytes.len().min(TOKEN_BYTES_MAX);
        token.bytes[..length].copy_from_slice(&bytes[..length]);
        token.length = length as u8;
        token
    }

    /// The last `length` bytes of `number`, at most eight.
    pub fn of_number(number: u64, length: usize) -> Token {
        let length = length.min(TOKEN_BYTES_MAX);
        Token::of(&number.to_be_bytes()[TOKEN_BYTES_MAX - length..])
    }

    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..self.len()]
    }

    /// Number of bytes.
    pub fn len(&self) -> usize {
        usize::from(self.length)
    }

    /// True if it has no bytes.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }
}

/// Most bytes of a token.
pub const TOKEN_BYTES_MAX: usize = 8;
