//! Probes a server of CoAP at the path of its URL. Sections are those of RFC 7252, where no other
//! document is named.

use std::time::Instant;

use weigh_protocols::coap::codec::{BLOCK_SZX_MAX, Block, Code, Kind, code, number};

use crate::abilities::{Ability, How, Status};
use crate::coap_line::{Answer, Line, Request, unsigned};
use crate::finding::{Asking, Found, Question, ask_all, question};
use crate::mqtt::Bounds;
use crate::reach::{Reach, Trouble, unused_name};
use crate::search::largest_passing;

/// Asks everything.
///
/// # Errors
/// If nothing answers in CoAP, or every client is refused.
pub(crate) fn probe(
    reach: &Reach,
    bounds: Bounds,
    tell: &mut dyn FnMut(&Ability),
) -> Result<Vec<Ability>, Trouble> {
    let mut scene = Scene { reach: reach.clone(), bounds, found: Vec::new() };
    let first = scene.ask(code::GET, &[], b"")?;
    if first.code == UNAUTHORIZED {
        return Err(Trouble::Refused(format!("it answers {}", first.words())));
    }
    ask_all(&mut scene, QUESTIONS, tell);
    Ok(scene.found)
}

const QUESTIONS: &[Question<Scene>] = &[
    question("ping", ping),
    question("method_get", |scene| method(scene, code::GET)),
    question("method_post", |scene| method(scene, code::POST)),
    question("method_put", |scene| method(scene, code::PUT)),
    question("method_put_new", method_put_new),
    question("method_fetch", |scene| method(scene, FETCH)),
    question("method_patch", |scene| method(scene, PATCH)),
    question("con_response", con_response),
    question("non_response", non_response),
    question("no_response", no_response),
    question("observe", observe),
    question("notification", notification),
    question("block1", block1),
    question("block1_bytes", block1_bytes),
    question("block2", block2),
    question("body_bytes", body_bytes),
    question("etag", etag),
    question("unknown_critical_option", unknown_critical_option),
    question("well_known_core", well_known_core),
];

/// A server that is asked.
struct Scene {
    reach: Reach,
    bounds: Bounds,
    found: Vec<Ability>,
}

impl Asking for Scene {
    fn found(&mut self) -> &mut Vec<Ability> {
        &mut self.found
    }

    fn is_over(&self) -> bool {
        self.reach.until().is_err()
    }
}

impl Scene {
    /// A request to the path of the URL, with these options besides.
    fn request<'r>(
        &self,
        kind: Kind,
        method: Code,
        more: &[(u16, Vec<u8>)],
        payload: &'r [u8],
    ) -> Request<'r> {
        let path = self.reach.path().to_owned();
        request(kind, method, &path, more, payload)
    }

    /// One confirmable request on an endpoint of its own.
    fn ask(
        &self,
        method: Code,
        more: &[(u16, Vec<u8>)],
        payload: &[u8],
    ) -> Result<Answer, Trouble> {
        let request = self.request(Kind::Confirmable, method, more, payload);
        Line::open(&self.reach)?.ask(&request)
    }

    /// The method that stores a body here: POST, else PUT.
    fn storing(&self) -> Result<Code, Trouble> {
        for method in [code::POST, code::PUT] {
            if self.ask(method, &[], BODY)?.code.is_success() {
                return Ok(method);
            }
        }
        let why = "neither POST nor PUT is accepted: give a path that takes one";
        Err(Trouble::Inapplicable(why.to_owned()))
    }

    /// Sends a body block by block in blocks of `16 << szx` bytes (RFC 7959, section 2.5).
    fn store_in_blocks(&self, method: Code, body: &[u8], szx: u8) -> Result<Answer, Trouble> {
        let mut line = Line::open(&self.reach)?;
        let mut at = Block { index: 0, has_more: true, szx };
        loop {
            let from = at.index as usize * at.bytes();
            at.has_more = from + at.bytes() < body.len();
            let payload = &body[from..body.len().min(from + at.bytes())];
            let mut more = vec![(number::BLOCK1, unsigned(at.number()))];
            if at.index == 0 {
                more.push((number::SIZE1, unsigned(body.len() as u32)));
            }
            let request = self.request(Kind::Confirmable, method, &more, payload);
            let answer = line.ask(&request)?;
            if !at.has_more || !answer.code.is_success() {
                return Ok(answer);
            }
            // The server may ask for smaller blocks (section 2.3).
            let wanted = answer.block(number::BLOCK1).map_or(at.szx, |block| block.szx.min(at.szx));
            let sent = from + at.bytes();
            at.szx = wanted;
            at.index = (sent / at.bytes()) as u32;
        }
    }
}

/// A request with the options of a path, and others behind them.
fn request<'r>(
    kind: Kind,
    code: Code,
    path: &str,
    more: &[(u16, Vec<u8>)],
    payload: &'r [u8],
) -> Request<'r> {
    let (path, query) = path.split_once('?').unwrap_or((path, ""));
    let segments = path.split('/').skip(1).filter(|segment| !segment.is_empty());
    let mut options: Vec<(u16, Vec<u8>)> =
        segments.map(|segment| (number::URI_PATH, segment.as_bytes().to_vec())).collect();
    let parts = query.split('&').filter(|part| !part.is_empty());
    options.extend(parts.map(|part| (number::URI_QUERY, part.as_bytes().to_vec())));
    options.extend(more.iter().cloned());
    options.sort_by_key(|(number, _)| *number);
    Request { kind, code, options, payload }
}

/// An empty confirmable message is answered by a reset (section 4.3).
fn ping(scene: &mut Scene) -> Result<Found, Trouble> {
    let is_reset = Line::open(&scene.reach)?.ping()?;
    let answer = if is_reset { "a reset" } else { "something else" };
    Ok(Found::flag(is_reset, format!("an empty confirmable message was answered by {answer}")))
}

/// Tests whether a method is accepted at the path of the URL.
fn method(scene: &mut Scene, method: Code) -> Result<Found, Trouble> {
    let payload: &[u8] = if method == code::GET { b"" } else { BODY };
    let answer = scene.ask(method, &[], payload)?;
    Ok(by_code(method, scene.reach.path(), &answer))
}

/// Tests whether a PUT makes a new resource, below the path of the URL; it is removed again.
fn method_put_new(scene: &mut Scene) -> Result<Found, Trouble> {
    let root = scene.reach.path().trim_end_matches('/');
    let path = format!("{root}/weigh-probe-{}", unused_name());
    let mut line = Line::open(&scene.reach)?;
    let answer = line.ask(&request(Kind::Confirmable, code::PUT, &path, &[], BODY))?;
    if answer.code.is_success() {
        let _ = line.ask(&request(Kind::Confirmable, code::DELETE, &path, &[], b""));
    }
    Ok(by_code(code::PUT, &path, &answer))
}

fn by_code(method: Code, path: &str, answer: &Answer) -> Found {
    let name = method.name().unwrap_or("the method");
    let evidence = format!("{name} {path} was answered {}", answer.words());
    let found = Found::number(answer.code.number().into(), "", How::Tried, evidence);
    match answer.code {
        own if own.is_success() => found,
        code::METHOD_NOT_ALLOWED | NOT_IMPLEMENTED => found.with(Status::Refused),
        _ => found.with(Status::No),
    }
}

/// Tests whether the response to a confirmable request comes in the acknowledgement (section 5.2).
fn con_response(scene: &mut Scene) -> Result<Found, Trouble> {
    let answer = scene.ask(code::GET, &[], b"")?;
    Ok(match (answer.kind, answer.was_acknowledged) {
        (Kind::Acknowledgement, _) => Found::words("piggybacked", "it came in the acknowledgement"),
        (kind, true) => {
            let evidence = format!("an acknowledgement came first, then a {}", kind.name());
            Found::words("separate", evidence)
        }
        (kind, false) => Found::words("separate", format!("a {} came at once", kind.name())),
    })
}

/// The type of the response to a request that is not confirmable (section 5.2.3).
fn non_response(scene: &mut Scene) -> Result<Found, Trouble> {
    let request = scene.request(Kind::NonConfirmable, code::GET, &[], b"");
    let answer = Line::open(&scene.reach)?.ask(&request)?;
    let evidence = format!("GET as NON was answered {} as {}", answer.words(), answer.kind.name());
    Ok(Found::words(answer.kind.name(), evidence))
}

/// Tests whether no response comes if none is wanted (RFC 7967).
fn no_response(scene: &mut Scene) -> Result<Found, Trouble> {
    let method = scene.storing()?;
    let mut line = Line::open(&scene.reach)?;
    let more = [(number::NO_RESPONSE, unsigned(NOTHING_WANTED))];
    let token = line.send(&scene.request(Kind::NonConfirmable, method, &more, BODY))?;
    let until = (Instant::now() + scene.reach.patience / 4).min(scene.reach.end);
    Ok(match line.hear(token, until) {
        Err(Trouble::Silent(_)) => Found::flag(true, "nothing came back"),
        Ok(answer) => Found::flag(false, format!("{} came all the same", answer.words())),
        Err(other) => return Err(other),
    })
}

/// Tests whether the resource can be observed (RFC 7641, section 3.1).
fn observe(scene: &mut Scene) -> Result<Found, Trouble> {
    let mut line = Line::open(&scene.reach)?;
    let register = [(number::OBSERVE, unsigned(0))];
    let request = scene.request(Kind::Confirmable, code::GET, &register, b"");
    let answer = line.ask(&request)?;
    let is_there = answer.code.is_success() && answer.option(number::OBSERVE).is_some();
    leave(scene, &mut line);
    let with = if is_there { "with" } else { "without" };
    Ok(Found::flag(is_there, format!("it was answered {} {with} Observe", answer.words())))
}

/// The type of a notification after a change.
fn notification(scene: &mut Scene) -> Result<Found, Trouble> {
    let method = scene.storing()?;
    let mut line = Line::open(&scene.reach)?;
    let register = [(number::OBSERVE, unsigned(0))];
    let request = scene.request(Kind::Confirmable, code::GET, &register, b"");
    let registered = line.ask(&request)?;
    if registered.option(number::OBSERVE).is_none() {
        return Err(Trouble::Inapplicable("the resource cannot be observed".to_owned()));
    }
    scene.ask(method, &[], format!("{{\"probe\":\"{}\"}}", unused_name()).as_bytes())?;
    let until = scene.reach.until()?;
    let heard = line.hear(registered.token, until);
    leave(scene, &mut line);
    Ok(match heard {
        Ok(answer) => {
            let kind = answer.kind.name();
            Found::words(kind, format!("a change was notified as {kind} {}", answer.words()))
        }
        Err(Trouble::Silent(_)) => Found::flag(false, "a change was not notified"),
        Err(other) => return Err(other),
    })
}

/// Ends a registration; the endpoint is not used again.
fn leave(scene: &Scene, line: &mut Line) {
    let deregister = [(number::OBSERVE, unsigned(1))];
    let request = scene.request(Kind::Confirmable, code::GET, &deregister, b"");
    let _ = line.ask(&request);
}

/// Tests whether a body of two blocks is taken (RFC 7959, section 2.5).
fn block1(scene: &mut Scene) -> Result<Found, Trouble> {
    let method = scene.storing()?;
    let answer = scene.store_in_blocks(method, &[b' '; 100], SMALL_SZX)?;
    let evidence = format!("two blocks of 64 bytes were answered {}", answer.words());
    Ok(Found::flag(answer.code.is_success(), evidence))
}

/// The largest block that the server takes of a body: it may ask for smaller ones (section 2.3).
fn block1_bytes(scene: &mut Scene) -> Result<Found, Trouble> {
    let method = scene.storing()?;
    let mut line = Line::open(&scene.reach)?;
    let at = Block { index: 0, has_more: true, szx: BLOCK_SZX_MAX };
    let more = [(number::BLOCK1, unsigned(at.number())), (number::SIZE1, unsigned(2_048))];
    let request = scene.request(Kind::Confirmable, method, &more, &[b' '; 1_024]);
    let answer = line.ask(&request)?;
    let evidence = format!("a first block of 1024 bytes was answered {}", answer.words());
    let block = answer.block(number::BLOCK1).filter(|_| answer.code.is_success());
    Ok(match block {
        Some(block) => {
            let bytes = block.bytes() as u64;
            let found = Found::number(bytes, "bytes", How::Announced, evidence);
            if bytes < at.bytes() as u64 { found.with(Status::Less) } else { found }
        }
        None => Found::flag(false, evidence),
    })
}

/// Tests whether an answer comes in the blocks that are asked for (section 2.4).
fn block2(scene: &mut Scene) -> Result<Found, Trouble> {
    let method = scene.storing()?;
    scene.ask(method, &[], &[b' '; 100])?;
    let at = Block { index: 0, has_more: false, szx: 0 };
    let answer = scene.ask(code::GET, &[(number::BLOCK2, unsigned(at.number()))], b"")?;
    Ok(match answer.block(number::BLOCK2) {
        Some(block) => {
            let evidence = format!("blocks of 16 bytes were asked for, {} came", block.bytes());
            Found::flag(block.szx == 0 && answer.payload.len() <= 16, evidence)
        }
        None => Found::flag(false, format!("{} came without Block2", answer.words())),
    })
}

/// The largest body that is taken: whole up to a block, else block by block.
fn body_bytes(scene: &mut Scene) -> Result<Found, Trouble> {
    let method = scene.storing()?;
    let most = scene.bounds.payload_bytes.clamp(2, BODY_BYTES_MAX);
    let body = vec![b' '; most as usize];
    let (edge, why) = largest_passing((2, most), |bytes| {
        let body = &body[..bytes as usize];
        let answer = match bytes {
            0..=1_024 => scene.ask(method, &[], body)?,
            _ => scene.store_in_blocks(method, body, BLOCK_SZX_MAX)?,
        };
        match answer.code.is_success() {
            true => Ok(()),
            false => Err(Trouble::Refused(answer.words())),
        }
    })?;
    // The last body stays: it is replaced by a small one.
    let _ = scene.ask(method, &[], BODY);
    Ok(Found::edge(edge, "bytes", "", why.as_ref()))
}

/// Tests whether representations have a name (section 5.10.6).
fn etag(scene: &mut Scene) -> Result<Found, Trouble> {
    let answer = scene.ask(code::GET, &[], b"")?;
    let is_there = answer.option(number::ETAG).is_some();
    let with = if is_there { "with" } else { "without" };
    Ok(Found::flag(is_there, format!("{} came {with} an ETag", answer.words())))
}

/// Section 5.4.1: a critical option that is not understood is refused with 4.02.
fn unknown_critical_option(scene: &mut Scene) -> Result<Found, Trouble> {
    let answer = scene.ask(code::GET, &[(UNKNOWN, b"x".to_vec())], b"")?;
    let evidence = format!("GET with option {UNKNOWN} was answered {}", answer.words());
    Ok(match answer.code {
        code::BAD_OPTION => Found::words("4.02", evidence),
        _ => Found::words(answer.code.to_string(), evidence).with(Status::No),
    })
}

/// The number of resources that the server lists (RFC 6690, section 4).
fn well_known_core(scene: &mut Scene) -> Result<Found, Trouble> {
    let request = request(Kind::Confirmable, code::GET, "/.well-known/core", &[], b"");
    let answer = Line::open(&scene.reach)?.ask(&request)?;
    let evidence = format!("it was answered {}", answer.words());
    if !answer.code.is_success() {
        return Ok(Found::flag(false, evidence));
    }
    let has_more = answer.block(number::BLOCK2).is_some_and(|block| block.has_more);
    let links = answer.payload.iter().filter(|byte| **byte == b'<').count() as u64;
    let evidence = if has_more { format!("{evidence}, first block") } else { evidence };
    Ok(Found::number(links, "resources", How::Announced, evidence))
}

const UNAUTHORIZED: Code = Code::new(4, 1);
const NOT_IMPLEMENTED: Code = Code::new(5, 1);
/// RFC 8132.
const FETCH: Code = Code::new(0, 5);
const PATCH: Code = Code::new(0, 6);

/// An option of the range for experiments (section 12.2), with an odd number: critical.
const UNKNOWN: u16 = 65_001;

/// Classes of responses that are not wanted (RFC 7967, section 2.1).
const NOTHING_WANTED: u32 = 26;

/// Blocks of 64 bytes.
const SMALL_SZX: u8 = 2;

const BODY: &[u8] = b"{}";

/// One block is one exchange, so a larger body would take longer than an answer may.
const BODY_BYTES_MAX: u64 = 1 << 20;
