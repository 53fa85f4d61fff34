//! The opening handshake of RFC 6455, section 4: an HTTP request, and the answer 101.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha1::{Digest, Sha1};

/// Result of reading the other side's head.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Upgrade<T> {
    /// It is not whole.
    Unfinished,
    /// Length of the head in bytes, and the result.
    Done(usize, T),
}

/// Answer that refuses the upgrade.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// No HTTP at all.
    OtherProtocol(String),
    /// The server answered with a status and this reason.
    Status(u16, String),
    /// The answer 101 does not keep the rules.
    Malformed(String),
}

/// A request that is to be turned away: the whole answer, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TurnedAway {
    /// Bytes to send.
    pub answer: String,
    /// Reason of the refusal.
    pub why: String,
}

/// The request of a client; `key` are 16 bytes chosen at random. An empty subprotocol offers none.
pub fn request(host: &str, path: &str, subprotocol: &str, key: [u8; 16]) -> String {
    request_with(host, path, subprotocol, "", key)
}

/// The request of a client that adds `fields`, header fields with their line ends.
pub fn request_with(
    host: &str,
    path: &str,
    subprotocol: &str,
    fields: &str,
    key: [u8; 16],
) -> String {
    let offer = match subprotocol {
        "" => String::new(),
        subprotocol => format!("Sec-WebSocket-Protocol: {subprotocol}\r\n"),
    };
    format!(
        "GET {path} HTTP/1.1\r\nHost: {host}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
         Sec-WebSocket-Key: {}\r\nSec-WebSocket-Version: 13\r\n{offer}{fields}\r\n",
        STANDARD.encode(key)
    )
}

/// Reads a server's answer to a request with this key and subprotocol; empty if none was offered.
///
/// # Errors
/// What the server answered instead.
pub fn read_answer(input: &[u8], key: [u8; 16], subprotocol: &str) -> Result<Upgrade<()>, Refusal> {
    let mut fields = [httparse::EMPTY_HEADER; FIELDS_MAX];
    let mut answer = httparse::Response::new(&mut fields);
    let length = match answer.parse(input) {
        Ok(httparse::Status::Complete(length)) => length,
        Ok(httparse::Status::Partial) if input.len() <= HEAD_BYTES_MAX => {
            return Ok(Upgrade::Unfinished);
        }
        Ok(httparse::Status::Partial) => {
            let what = format!("its answer has no end within {HEAD_BYTES_MAX} bytes");
            return Err(Refusal::Malformed(what));
        }
        Err(error) => return Err(Refusal::OtherProtocol(error.to_string())),
    };
    let status = answer.code.unwrap_or(0);
    if status != 101 {
        return Err(Refusal::Status(status, answer.reason.unwrap_or("").to_owned()));
    }
    let fields = Fields(answer.headers);
    let malformed = |what: &str| Err(Refusal::Malformed(what.to_owned()));
    if !fields.has_token("upgrade", "websocket") || !fields.has_token("connection", "upgrade") {
        return malformed("its answer 101 does not say Upgrade: websocket");
    }
    if fields.text("sec-websocket-accept") != Some(accept(&STANDARD.encode(key)).as_str()) {
        return malformed("its answer 101 belongs to another key (Sec-WebSocket-Accept)");
    }
    if fields.text("sec-websocket-extensions").is_some_and(|text| !text.is_empty()) {
        return malformed("it insists on an extension, and none was offered");
    }
    match fields.text("sec-websocket-protocol") {
        None if subprotocol.is_empty() => Ok(Upgrade::Done(length, ())),
        Some(taken) if taken == subprotocol => Ok(Upgrade::Done(length, ())),
        Some(taken) => malformed(&format!("it chose the subprotocol {taken:?}")),
        None => malformed(&format!("it does not take the subprotocol {subprotocol}")),
    }
}

/// A client's request for an upgrade.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    /// Path and query.
    pub target: String,
    /// The key as it is written.
    pub key: String,
    /// Subprotocols that the client offers, in its order.
    pub subprotocols: Vec<String>,
}

impl Asked {
    /// The answer 101, with a subprotocol unless it is empty. No extension is ever agreed on.
    pub fn accepted(&self, subprotocol: &str) -> String {
        let chosen = match subprotocol {
            "" => String::new(),
            subprotocol => format!("Sec-WebSocket-Protocol: {subprotocol}\r\n"),
        };
        format!(
            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
             Sec-WebSocket-Accept: {}\r\n{chosen}\r\n",
            accept(&self.key)
        )
    }

    /// True if the client offers this subprotocol, in any case.
    pub fn offers(&self, subprotocol: &str) -> bool {
        self.subprotocols.iter().any(|own| own.eq_ignore_ascii_case(subprotocol))
    }
}

/// Reads a client's request; the result is the answer 101.
///
/// # Errors
/// What to answer instead.
pub fn read_request(input: &[u8], subprotocol: &str) -> Result<Upgrade<String>, TurnedAway> {
    match read_any_request(input)? {
        Upgrade::Unfinished => Ok(Upgrade::Unfinished),
        Upgrade::Done(length, asked) if asked.offers(subprotocol) => {
            Ok(Upgrade::Done(length, asked.accepted(subprotocol)))
        }
        Upgrade::Done(..) => Err(not_offered(subprotocol)),
    }
}

/// Turns away a client that does not offer this subprotocol.
pub fn not_offered(subprotocol: &str) -> TurnedAway {
    let why = format!("a client that does not offer the subprotocol {subprotocol}");
    turned_away("400 Bad Request", "", &why)
}

/// Reads a client's request, whatever its path and subprotocol.
///
/// # Errors
/// What to answer instead.
pub fn read_any_request(input: &[u8]) -> Result<Upgrade<Asked>, TurnedAway> {
    let mut fields = [httparse::EMPTY_HEADER; FIELDS_MAX];
    let mut request = httparse::Request::new(&mut fields);
    let length = match request.parse(input) {
        Ok(httparse::Status::Complete(length)) => length,
        Ok(httparse::Status::Partial) if input.len() <= HEAD_BYTES_MAX => {
            return Ok(Upgrade::Unfinished);
        }
        Ok(httparse::Status::Partial) => {
            return Err(turned_away("431 Request Header Fields Too Large", "", "a head too long"));
        }
        Err(error) => {
            let why = format!("a client sent a request that is not a WebSocket upgrade: {error}");
            return Err(turned_away("400 Bad Request", "", &why));
        }
    };
    let fields = Fields(request.headers);
    let bad = |why: &str| Err(turned_away("400 Bad Request", "", why));
    if request.method != Some("GET") || request.version != Some(1) {
        return bad("an upgrade is a GET of HTTP/1.1");
    }
    if fields.text("host").is_none() {
        return bad("an upgrade without Host");
    }
    if !fields.has_token("upgrade", "websocket") || !fields.has_token("connection", "upgrade") {
        let more = "Upgrade: websocket\r\n";
        return Err(turned_away("426 Upgrade Required", more, "a request without an upgrade"));
    }
    if fields.text("sec-websocket-version") != Some("13") {
        let more = "Sec-WebSocket-Version: 13\r\n";
        return Err(turned_away("426 Upgrade Required", more, "another version of WebSocket"));
    }
    let key = fields.text("sec-websocket-key").unwrap_or("");
    if !STANDARD.decode(key).is_ok_and(|bytes| bytes.len() == 16) {
        return bad("a Sec-WebSocket-Key that is not 16 bytes in base64");
    }
    let asked = Asked {
        target: request.path.unwrap_or_default().to_owned(),
        key: key.to_owned(),
        subprotocols: fields.tokens("sec-websocket-protocol").map(str::to_owned).collect(),
    };
    Ok(Upgrade::Done(length, asked))
}

/// Returns the proof that a server has read the key (RFC 6455, section 4.2.2).
pub fn accept(key: &str) -> String {
    let mut hash = Sha1::new();
    hash.update(key.as_bytes());
    hash.update(GUID.as_bytes());
    STANDARD.encode(hash.finalize())
}

/// Makes an answer with this status and `more` header fields, which says why.
pub fn turned_away(status: &str, more: &str, why: &str) -> TurnedAway {
    let answer = format!(
        "HTTP/1.1 {status}\r\n{more}Content-Type: text/plain\r\nContent-Length: {}\r\n\
         Connection: close\r\n\r\n{why}\n",
        why.len() + 1
    );
    TurnedAway { answer, why: why.to_owned() }
}

struct Fields<'f>(&'f [httparse::Header<'f>]);

impl Fields<'_> {
    fn text(&self, name: &str) -> Option<&str> {
        let found = self.0.iter().find(|field| field.name.eq_ignore_ascii_case(name))?;
        std::str::from_utf8(found.value).ok().map(str::trim)
    }

    /// The words that the fields of this name list.
    fn tokens<'t>(&'t self, name: &'t str) -> impl Iterator<Item = &'t str> {
        let named = self.0.iter().filter(move |field| field.name.eq_ignore_ascii_case(name));
        named
            .filter_map(|field| std::str::from_utf8(field.value).ok())
            .flat_map(|text| text.split(',').map(str::trim))
            .filter(|word| !word.is_empty())
    }

    /// Returns true if one of the fields of this name lists the word, in any case.
    fn has_token(&self, name: &str, word: &str) -> bool {
        self.tokens(name).any(|own| own.eq_ignore_ascii_case(word))
    }
}

/// RFC 6455, section 1.3.
const GUID: &str = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

const FIELDS_MAX: usize = 64;

/// As nginx and others take at most.
const HEAD_BYTES_MAX: usize = 16 * 1024;
