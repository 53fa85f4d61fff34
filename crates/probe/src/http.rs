//! Probes a server of HTTP/1.1 at the path of its URL. Sections are those of RFC 9110 and RFC 9112.

use std::time::Instant;

use weigh_protocols::basic_authorization;
use weigh_protocols::http1::answer::{self, Body};
use weigh_protocols::http1::chunked::Chunked;
use weigh_protocols::urls;

use crate::abilities::{Ability, How, Status};
use crate::finding::{Asking, Found, Question, ask_all, question};
use crate::link::{Link, raw};
use crate::mqtt::Bounds;
use crate::reach::{Reach, Trouble, unused_name};
use crate::search::largest_passing;
use crate::stranger::{self, Speaker};

/// Asks everything.
///
/// # Errors
/// If it does not answer in HTTP/1, or refuses every client.
pub(crate) fn probe(
    reach: &Reach,
    bounds: Bounds,
    tell: &mut dyn FnMut(&Ability),
) -> Result<Vec<Ability>, Trouble> {
    let mut scene = Scene::new(reach, bounds);
    let first = scene.once("GET", b"")?;
    if first.status == UNAUTHORIZED {
        return Err(Trouble::Refused("it answers 401 Unauthorized".to_owned()));
    }
    ask_all(&mut scene, QUESTIONS, tell);
    Ok(scene.found)
}

const QUESTIONS: &[Question<Scene>] = &[
    question("method_get", |scene| method(scene, "GET")),
    question("method_head", |scene| method(scene, "HEAD")),
    question("method_post", |scene| method(scene, "POST")),
    question("method_options", |scene| method(scene, "OPTIONS")),
    question("method_put", |scene| method_elsewhere(scene, "PUT")),
    question("method_patch", |scene| method_elsewhere(scene, "PATCH")),
    question("method_delete", |scene| method_elsewhere(scene, "DELETE")),
    question("keep_alive", keep_alive),
    question("pipelining", pipelining),
    question("chunked_request", chunked_request),
    question("continue_100", continue_100),
    question("body_bytes", body_bytes),
    question("field_bytes", field_bytes),
    question("target_bytes", target_bytes),
    question("http2_prior_knowledge", http2_prior_knowledge),
    question("http2_alpn", http2_alpn),
    question("tls_on_port", |scene| stranger::tls_on_port(&scene.reach)),
];

/// A server of HTTP, of any version, that is asked.
pub(crate) struct Scene {
    pub(crate) reach: Reach,
    pub(crate) bounds: Bounds,
    pub(crate) found: Vec<Ability>,
}

impl Asking for Scene {
    fn found(&mut self) -> &mut Vec<Ability> {
        &mut self.found
    }

    fn is_over(&self) -> bool {
        self.reach.until().is_err()
    }
}

/// Answer of a server.
struct Answer {
    status: u16,
    /// Status and reason: `404 Not Found`.
    words: String,
    /// The methods that it allows, where it names them (section 10.2.1).
    allow: Option<String>,
    /// True if the connection may be used again.
    keeps: bool,
    body: Body,
}

impl Scene {
    /// A server that has not been asked yet.
    pub(crate) fn new(reach: &Reach, bounds: Bounds) -> Scene {
        Scene { reach: reach.clone(), bounds, found: Vec::new() }
    }

    /// A request with a body of a known length, up to the fields' end.
    fn head(&self, method: &str, path: &str, more: &str) -> String {
        let mut head =
            format!("{method} {path} HTTP/1.1\r\nHost: {}\r\n", self.reach.endpoint.authority());
        if let Some(value) = basic_authorization(&self.reach.endpoint) {
            head.push_str(&format!("Authorization: {value}\r\n"));
        }
        head + more + "\r\n"
    }

    fn whole(&self, method: &str, path: &str, body: &[u8]) -> Vec<u8> {
        let length = match (method, body) {
            ("GET" | "HEAD" | "OPTIONS" | "DELETE", []) => String::new(),
            _ => format!("Content-Length: {}\r\n", body.len()),
        };
        let mut request = self.head(method, path, &length).into_bytes();
        request.extend_from_slice(body);
        request
    }

    /// One request on a connection of its own.
    fn once(&self, method: &str, body: &[u8]) -> Result<Answer, Trouble> {
        self.once_at(method, self.reach.path(), body)
    }

    fn once_at(&self, method: &str, path: &str, body: &[u8]) -> Result<Answer, Trouble> {
        asked(self, method, &self.whole(method, path, body))
    }
}

/// One request on a connection of its own, and its answer.
fn asked(scene: &Scene, method: &str, request: &[u8]) -> Result<Answer, Trouble> {
    let mut link = scene.reach.open()?;
    let until = scene.reach.until()?;
    let sent = link.send(request, until);
    // A server that refuses something large may answer and close before it has read all of it.
    match (sent, read_answer(&mut link, method, until)) {
        (_, Ok(answer)) => Ok(answer),
        (Err(trouble), Err(_)) | (Ok(()), Err(trouble)) => Err(trouble),
    }
}

/// Reads an answer whole; interim ones (section 15.2) are passed over.
fn read_answer(link: &mut Link, method: &str, until: Instant) -> Result<Answer, Trouble> {
    let answer = loop {
        let answer = read_head(link, method, until)?;
        if !(100..200).contains(&answer.status) || answer.status == SWITCHING {
            break answer;
        }
    };
    match answer.body {
        Body::Length(mut left) => loop {
            let here = link.buffer.len().min(usize::try_from(left).unwrap_or(usize::MAX));
            link.buffer.drain(..here);
            left -= here as u64;
            if left == 0 {
                break;
            }
            link.read(until)?;
        },
        Body::Chunked => {
            let mut chunked = Chunked::START;
            loop {
                let advance = chunked.advance(&link.buffer, &mut |_| {}).map_err(foreign)?;
                link.buffer.drain(..advance.taken);
                if advance.is_whole {
                    break;
                }
                link.read(until)?;
            }
        }
        Body::UntilClose => {
            while link.read(until).is_ok() {
                link.buffer.clear();
            }
        }
    }
    Ok(answer)
}

/// Takes the head at the front of what came.
fn read_head(link: &mut Link, method: &str, until: Instant) -> Result<Answer, Trouble> {
    let (read, bytes) = loop {
        match answer::read(&link.buffer, method == "HEAD").map_err(foreign)? {
            Some(read) => break read,
            None => link.read(until)?,
        }
    };
    let head = String::from_utf8_lossy(&link.buffer[..bytes]).into_owned();
    link.buffer.drain(..bytes);
    let mut lines = head.lines();
    let words = lines.next().and_then(|line| line.split_once(' ')).map_or("", |(_, words)| words);
    let allow = lines.find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("allow").then(|| value.trim().to_owned())
    });
    let answer::Answer { status, body, keeps_alive } = read;
    Ok(Answer { status, words: words.trim().to_owned(), allow, keeps: keeps_alive, body })
}

fn foreign(error: impl std::fmt::Display) -> Trouble {
    Trouble::Foreign(format!("its answer is not HTTP/1: {error}"))
}

/// Tests whether a method is accepted at the path of the URL: a status below 400.
fn method(scene: &mut Scene, method: &str) -> Result<Found, Trouble> {
    let path = scene.reach.path().to_owned();
    method_at(scene, method, &path)
}

/// Tests a method below the path under a random name, where there is no data to lose.
fn method_elsewhere(scene: &mut Scene, method: &str) -> Result<Found, Trouble> {
    let root = scene.reach.path().trim_end_matches('/');
    let path = format!("{root}/weigh-probe-{}", unused_name());
    let found = method_at(scene, method, &path)?;
    if method == "PUT" && found.status == Status::Yes {
        // What it made there, it is asked to take away again.
        let _ = scene.once_at("DELETE", &path, b"");
    }
    Ok(found)
}

fn method_at(scene: &mut Scene, method: &str, path: &str) -> Result<Found, Trouble> {
    let body: &[u8] = if matches!(method, "POST" | "PUT" | "PATCH") { b"{}" } else { b"" };
    let answer = scene.once_at(method, path, body)?;
    let mut evidence = format!("{method} {path} was answered {}", answer.words);
    if let Some(allowed) = answer.allow {
        evidence.push_str(&format!(" (Allow: {allowed})"));
    }
    Ok(by_status(answer.status, evidence))
}

/// Converts the status of an answer to the ability of a method.
pub(crate) fn by_status(status: u16, evidence: String) -> Found {
    let found = Found::number(status.into(), "", How::Tried, evidence);
    match status {
        0..400 => found,
        METHOD_NOT_ALLOWED | NOT_IMPLEMENTED => found.with(Status::Refused),
        _ => found.with(Status::No),
    }
}

/// Two requests on one connection.
fn keep_alive(scene: &mut Scene) -> Result<Found, Trouble> {
    let mut link = scene.reach.open()?;
    let until = scene.reach.until()?;
    let request = scene.whole("GET", scene.reach.path(), b"");
    link.send(&request, until)?;
    let first = read_answer(&mut link, "GET", until)?;
    if !first.keeps {
        return Ok(Found::flag(false, "its answer ends the connection"));
    }
    link.send(&request, until)?;
    read_answer(&mut link, "GET", until)?;
    Ok(Found::flag(true, "two requests on one connection were answered"))
}

/// Three requests in one write (RFC 9112, section 9.3.2).
fn pipelining(scene: &mut Scene) -> Result<Found, Trouble> {
    let mut link = scene.reach.open()?;
    let until = scene.reach.until()?;
    let request = scene.whole("GET", scene.reach.path(), b"");
    link.send(&request.repeat(PIPELINED), until)?;
    let mut answers = 0;
    while answers < PIPELINED && read_answer(&mut link, "GET", until).is_ok() {
        answers += 1;
    }
    let evidence = format!("{answers} of {PIPELINED} requests in one write were answered");
    Ok(Found::flag(answers == PIPELINED, evidence))
}

/// Returns the answer to POST at the path, with which the answers to all questions about bodies are
/// compared.
fn usual(scene: &Scene) -> Result<Answer, Trouble> {
    let usual = scene.once("POST", b"{}")?;
    takes_post(usual.status, &usual.words)?;
    Ok(usual)
}

/// Nothing can be learnt of bodies where POST is answered by such a status.
///
/// # Errors
/// [`Trouble::Inapplicable`], with the status in words.
pub(crate) fn takes_post(status: u16, words: &str) -> Result<(), Trouble> {
    match status {
        METHOD_NOT_ALLOWED | NOT_IMPLEMENTED => Err(Trouble::Inapplicable(format!(
            "POST is answered {words}: give a path that takes it"
        ))),
        _ => Ok(()),
    }
}

/// A body in chunks (RFC 9112, section 7.1).
fn chunked_request(scene: &mut Scene) -> Result<Found, Trouble> {
    let usual = usual(scene)?;
    let mut link = scene.reach.open()?;
    let until = scene.reach.until()?;
    let mut request = scene.head("POST", scene.reach.path(), "Transfer-Encoding: chunked\r\n");
    request.push_str("2\r\n{}\r\n0\r\n\r\n");
    link.send(request.as_bytes(), until)?;
    let answer = read_answer(&mut link, "POST", until)?;
    let evidence = format!("answered {}, with a length it is {}", answer.words, usual.words);
    Ok(Found::flag(answer.status == usual.status, evidence))
}

/// Tests whether a client that waits to be asked for its body is asked (section 10.1.1).
fn continue_100(scene: &mut Scene) -> Result<Found, Trouble> {
    usual(scene)?;
    let mut link = scene.reach.open()?;
    let until = scene.reach.until()?;
    let more = "Content-Length: 2\r\nExpect: 100-continue\r\n";
    let head = scene.head("POST", scene.reach.path(), more);
    link.send(head.as_bytes(), until)?;
    let half = until - scene.reach.patience / 2;
    Ok(match read_head(&mut link, "POST", half) {
        Ok(answer) => {
            let evidence = format!("before the body came {}", answer.words);
            Found::flag(answer.status == CONTINUE, evidence)
        }
        Err(Trouble::Silent(_)) => Found::flag(false, "nothing came before the body"),
        Err(other) => return Err(other),
    })
}

/// The largest body that is answered as a small one is.
fn body_bytes(scene: &mut Scene) -> Result<Found, Trouble> {
    let usual = usual(scene)?.status;
    let most = scene.bounds.payload_bytes.max(2);
    let body = vec![b' '; most as usize];
    let (edge, why) = largest_passing((2, most), |bytes| {
        like(usual, scene.once("POST", &body[..bytes as usize])?)
    })?;
    Ok(Found::edge(edge, "bytes", "", why.as_ref()))
}

/// The longest field of a request.
fn field_bytes(scene: &mut Scene) -> Result<Found, Trouble> {
    let usual = scene.once("GET", b"")?.status;
    let (edge, why) = largest_passing((1, HEAD_BYTES_MAX), |bytes| {
        let more = format!("X-Weigh-Probe: {}\r\n", "x".repeat(bytes as usize));
        like(usual, asked(scene, "GET", scene.head("GET", scene.reach.path(), &more).as_bytes())?)
    })?;
    Ok(Found::edge(edge, "bytes", "", why.as_ref()))
}

/// The longest target of a request (414 is section 15.5.15).
fn target_bytes(scene: &mut Scene) -> Result<Found, Trouble> {
    let usual = scene.once("GET", b"")?.status;
    let start = format!("{}?weigh=", scene.reach.path());
    let low = start.len() as u64 + 1;
    let (edge, why) = largest_passing((low, HEAD_BYTES_MAX.max(low)), |bytes| {
        let target = format!("{start}{}", "x".repeat(bytes as usize - start.len()));
        like(usual, asked(scene, "GET", scene.head("GET", &target, "").as_bytes())?)
    })?;
    Ok(Found::edge(edge, "bytes", "", why.as_ref()))
}

/// An answer with the status that small requests get.
fn like(usual: u16, answer: Answer) -> Result<(), Trouble> {
    if answer.status == usual { Ok(()) } else { Err(Trouble::Refused(answer.words)) }
}

/// HTTP/2 without TLS (RFC 9113, section 3.3): its preface, and a SETTINGS frame.
fn http2_prior_knowledge(scene: &mut Scene) -> Result<Found, Trouble> {
    if urls::is_secure(&scene.reach.endpoint) {
        return Err(Trouble::Inapplicable("inside TLS it is agreed on by ALPN".to_owned()));
    }
    Ok(match stranger::ask(&scene.reach, HTTP2_PREFACE) {
        Ok(answer) => match stranger::recognise(&answer) {
            Speaker::Http2 => Found::flag(true, "its preface was answered by SETTINGS"),
            _ => Found::flag(false, "its preface was answered by something else"),
        },
        Err(Trouble::Closed(text)) => Found::flag(false, format!("its preface was sent; {text}")),
        Err(other) => return Err(other),
    })
}

/// HTTP/2 inside TLS (RFC 9113, section 3.2).
fn http2_alpn(scene: &mut Scene) -> Result<Found, Trouble> {
    if !urls::is_secure(&scene.reach.endpoint) {
        return Err(Trouble::Inapplicable("there is no TLS: type https://".to_owned()));
    }
    let link = Link::open(&scene.reach, raw(), &[b"h2", b"http/1.1"])?;
    Ok(match link.alpn() {
        Some(name) => Found::flag(name == "h2", format!("of h2 and http/1.1 it chose {name}")),
        None => Found::flag(false, "it chose neither h2 nor http/1.1"),
    })
}

/// The preface of a client and an empty SETTINGS frame (RFC 9113, sections 3.4 and 6.5).
const HTTP2_PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";

const CONTINUE: u16 = 100;
const SWITCHING: u16 = 101;
pub(crate) const UNAUTHORIZED: u16 = 401;
const METHOD_NOT_ALLOWED: u16 = 405;
const NOT_IMPLEMENTED: u16 = 501;

const PIPELINED: usize = 3;

/// Longest field and target that are tried, bytes; RFC 9110, section 4.1, asks for 8,000.
const HEAD_BYTES_MAX: u64 = 64 * 1024;
