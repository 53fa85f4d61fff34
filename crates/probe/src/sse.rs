//! Probes a server of server-sent events at the path of its URL (WHATWG HTML, section 9.2): the
//! stream, and what a POST to the same path does. The event that it posts is `{}`.

use weigh_protocols::basic_authorization;
use weigh_protocols::http1::answer::Body;
use weigh_protocols::http1::chunked::Chunked;
use weigh_protocols::sse::codec::{Item, KIND, Parser};

use crate::abilities::{Ability, How, Status};
use crate::exchange::Exchange;
use crate::finding::{Asking, Found, Question, ask_all, question};
use crate::http::UNAUTHORIZED;
use crate::http_head::Head;
use crate::mqtt::Bounds;
use crate::reach::{Reach, Trouble};
use crate::search::largest_passing;
use crate::stranger;

/// Asks everything.
///
/// # Errors
/// If it has no event stream at this path.
pub(crate) fn probe(
    reach: &Reach,
    bounds: Bounds,
    tell: &mut dyn FnMut(&Ability),
) -> Result<Vec<Ability>, Trouble> {
    let stream = Stream::open(reach, "")?;
    let mut scene = Scene {
        reach: reach.clone(),
        bounds,
        head: stream.head,
        heard: Vec::new(),
        found: Vec::new(),
    };
    ask_all(&mut scene, QUESTIONS, tell);
    Ok(scene.found)
}

const QUESTIONS: &[Question<Scene>] = &[
    question("stream", stream),
    question("framing", framing),
    question("compression", compression),
    question("any_origin", any_origin),
    question("publish", publish),
    question("events", events),
    question("event_ids", event_ids),
    question("last_event_id", last_event_id),
    question("retry", retry),
    question("event_bytes", event_bytes),
    question("tls_on_port", |scene| stranger::tls_on_port(&scene.reach)),
];

/// A server that is asked.
struct Scene {
    reach: Reach,
    bounds: Bounds,
    head: Head,
    /// Events that came to a subscriber, in order.
    heard: Vec<Event>,
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

/// An event that came.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Event {
    /// Its ID, or that of an earlier one; empty if there was none.
    id: String,
    data: Vec<u8>,
}

/// A stream that is read.
struct Stream {
    line: Exchange,
    head: Head,
    chunked: Option<Chunked>,
    parser: Parser,
    retry: Option<u64>,
}

impl Stream {
    /// Asks for the stream with further fields of the request.
    fn open(reach: &Reach, fields: &str) -> Result<Stream, Trouble> {
        let mut line = Exchange::open(reach)?;
        line.send(request(reach, "GET", &format!("Accept: {KIND}\r\n{fields}")).as_bytes())?;
        let head = Head::hear(&mut line)?;
        if head.status == UNAUTHORIZED {
            return Err(Trouble::Refused("it answers 401 Unauthorized".to_owned()));
        }
        let kind = head.field("content-type").unwrap_or_default();
        if head.status != OKAY || !kind.starts_with(KIND) {
            let text = format!("GET was answered {}, content type \"{kind}\"", head.words);
            return Err(Trouble::Foreign(text));
        }
        let chunked = (head.body == Body::Chunked).then_some(Chunked::START);
        let parser = Parser::new(EVENT_BYTES_MAX, Vec::new());
        Ok(Stream { line, head, chunked, parser, retry: None })
    }

    /// Waits for bytes, and returns the events that they complete; [`Trouble::Silent`] if none
    /// come.
    fn more(&mut self) -> Result<Vec<Event>, Trouble> {
        let Stream { chunked, parser, retry, .. } = self;
        let mut events = Vec::new();
        let plain = self.line.hear(|input| {
            if input.is_empty() {
                return Ok(None);
            }
            let Some(chunked) = chunked else { return Ok(Some((input.to_vec(), input.len()))) };
            let mut plain = Vec::new();
            let advance = chunked.advance(input, &mut |part| plain.extend_from_slice(part));
            let advance = advance.map_err(|flaw| Trouble::Foreign(flaw.to_string()))?;
            match (advance.taken, advance.is_whole) {
                (_, true) => Err(Trouble::Closed("the server ended the stream".to_owned())),
                (0, false) => Ok(None),
                (taken, false) => Ok(Some((plain, taken))),
            }
        })?;
        // The ID is that of the event once it is complete, so each line is taken alone.
        for part in plain.split_inclusive(|byte| *byte == b'\n') {
            let mut data = None;
            let taken = parser.take(part, &mut |item| match item {
                Item::Event { data: own, .. } => data = Some(own.to_vec()),
                Item::Retry(time) => *retry = Some(time),
            });
            taken.map_err(|long| Trouble::Foreign(long.to_string()))?;
            if let Some(data) = data {
                let id = String::from_utf8_lossy(parser.last_id()).into_owned();
                events.push(Event { id, data });
            }
        }
        Ok(events)
    }

    /// Waits for this number of events, or for silence.
    fn events(&mut self, many: usize) -> Result<Vec<Event>, Trouble> {
        let until = self.line.until()?;
        let mut all = Vec::new();
        while all.len() < many {
            match self.more() {
                Ok(events) => all.extend(events),
                Err(Trouble::Silent(_) | Trouble::Closed(_)) => break,
                Err(other) => return Err(other),
            }
            // Comments are no silence.
            if std::time::Instant::now() >= until {
                break;
            }
        }
        Ok(all)
    }
}

/// A request up to the end of its fields.
fn request(reach: &Reach, method: &str, fields: &str) -> String {
    let (path, host) = (reach.path(), reach.endpoint.authority());
    let login = basic_authorization(&reach.endpoint);
    let login = login.map_or(String::new(), |value| format!("Authorization: {value}\r\n"));
    format!("{method} {path} HTTP/1.1\r\nHost: {host}\r\n{login}{fields}\r\n")
}

impl Scene {
    /// Posts an event on a connection of its own; returns the head of the answer.
    fn post(&self, body: &[u8]) -> Result<Head, Trouble> {
        let mut line = Exchange::open(&self.reach)?;
        let length = body.len();
        let fields = format!("Content-Type: application/json\r\nContent-Length: {length}\r\n");
        let mut bytes = request(&self.reach, "POST", &fields).into_bytes();
        bytes.extend_from_slice(body);
        let sent = line.send(&bytes);
        // A server that refuses something large may answer and close before it has read all of it.
        match (sent, Head::hear(&mut line)) {
            (_, Ok(head)) => Ok(head),
            (Err(trouble), Err(_)) | (Ok(()), Err(trouble)) => Err(trouble),
        }
    }

    fn publishes(&self) -> bool {
        let own = self.found.iter().find(|own| own.name == "publish");
        own.is_some_and(|own| own.status == Status::Yes)
    }

    /// Fails unless a subscriber heard something.
    fn needs_events(&self) -> Result<(), Trouble> {
        match self.heard.is_empty() {
            true => Err(Trouble::Inapplicable("no event came".to_owned())),
            false => Ok(()),
        }
    }
}

fn stream(scene: &mut Scene) -> Result<Found, Trouble> {
    let head = &scene.head;
    let server = head.field("server").map_or(String::new(), |own| format!("; Server: {own}"));
    let kind = head.field("content-type").unwrap_or_default();
    let evidence =
        format!("GET {} was answered {}, {kind}{server}", scene.reach.path(), head.words);
    Ok(Found::flag(true, evidence))
}

/// How the answer is delimited: what a proxy makes of it depends on that.
fn framing(scene: &mut Scene) -> Result<Found, Trouble> {
    let (words, evidence) = match scene.head.body {
        Body::Chunked => ("chunked", "Transfer-Encoding: chunked".to_owned()),
        Body::UntilClose => ("close", "neither chunks nor a length".to_owned()),
        Body::Length(length) => ("length", format!("Content-Length: {length}")),
    };
    Ok(Found::words(words, evidence).by(How::Announced))
}

fn compression(scene: &mut Scene) -> Result<Found, Trouble> {
    let stream = Stream::open(&scene.reach, "Accept-Encoding: gzip, br, zstd\r\n")?;
    Ok(match stream.head.field("content-encoding") {
        Some(own) => Found::words(own, "Content-Encoding of the stream").by(How::Announced),
        None => {
            Found::flag(false, "gzip, br and zstd were offered, and none taken").by(How::Announced)
        }
    })
}

/// Tests whether pages of other hosts may read the stream (CORS).
fn any_origin(scene: &mut Scene) -> Result<Found, Trouble> {
    let origin = "https://weigh-probe.invalid";
    let stream = Stream::open(&scene.reach, &format!("Origin: {origin}\r\n"))?;
    let allowed = stream.head.field("access-control-allow-origin");
    let is_allowed = allowed.is_some_and(|own| own == "*" || own == origin);
    let words = allowed.map_or("is missing".to_owned(), |own| format!("is {own}"));
    Ok(Found::flag(is_allowed, format!("Access-Control-Allow-Origin {words}")).by(How::Announced))
}

/// Tests whether a POST to the same path becomes an event.
fn publish(scene: &mut Scene) -> Result<Found, Trouble> {
    let mut stream = Stream::open(&scene.reach, "")?;
    let head = scene.post(BODY)?;
    let posted = format!("POST {} was answered {}", scene.reach.path(), head.words);
    if head.status >= 400 {
        return Ok(Found::flag(false, posted).with(Status::Refused));
    }
    let came = stream.events(1)?;
    let is_it = came.iter().any(|event| event.data == BODY);
    let words = if is_it { "it came as an event" } else { "it did not come as an event" };
    Ok(Found::flag(is_it, format!("{posted}, and {words}")))
}

/// Events that come: two of its own, or those that the server sends by itself.
fn events(scene: &mut Scene) -> Result<Found, Trouble> {
    let mut stream = Stream::open(&scene.reach, "")?;
    let posts = if scene.publishes() { EVENTS } else { 0 };
    for _ in 0..posts {
        scene.post(BODY)?;
    }
    scene.heard = stream.events(EVENTS)?;
    let many = scene.heard.len();
    let evidence = match posts {
        0 => format!("{many} events came without a POST"),
        posts => format!("{many} events came after {posts} POSTs"),
    };
    Ok(Found::flag(many > 0, evidence))
}

fn event_ids(scene: &mut Scene) -> Result<Found, Trouble> {
    scene.needs_events()?;
    let ids: Vec<&str> = scene.heard.iter().map(|own| &*own.id).collect();
    let are_there = ids.iter().all(|id| !id.is_empty());
    Ok(match are_there {
        true => Found::flag(true, format!("events had the ids {}", ids.join(", "))),
        false => Found::flag(false, "events have no id"),
    })
}

/// Tests whether a subscriber that comes back gets what it missed (section 9.2.4).
fn last_event_id(scene: &mut Scene) -> Result<Found, Trouble> {
    scene.needs_events()?;
    let [first, second, ..] = &scene.heard[..] else {
        return Err(Trouble::Inapplicable("only one event came".to_owned()));
    };
    if first.id.is_empty() || first.id == second.id {
        return Ok(Found::flag(false, "events have no ids of their own"));
    }
    let fields = format!("Last-Event-ID: {}\r\n", first.id);
    let came = Stream::open(&scene.reach, &fields)?.events(1)?;
    let evidence = format!("after Last-Event-ID {}", first.id);
    Ok(match came.first() {
        Some(event) if event.id == second.id => {
            Found::flag(true, format!("{evidence} the event {} came", event.id))
        }
        Some(event) => {
            let due = &second.id;
            Found::flag(false, format!("{evidence} the event {} came, and not {due}", event.id))
        }
        None => Found::flag(false, format!("{evidence} nothing came")),
    })
}

/// The time after which clients are to come back (section 9.2.6).
fn retry(scene: &mut Scene) -> Result<Found, Trouble> {
    let mut stream = Stream::open(&scene.reach, "")?;
    if scene.publishes() {
        scene.post(BODY)?;
    }
    stream.events(1)?;
    Ok(match stream.retry {
        Some(time) => Found::number(time, "ms", How::Announced, "retry of the stream"),
        None => Found::flag(false, "no retry came").by(How::Announced),
    })
}

/// The largest POST that comes as an event.
fn event_bytes(scene: &mut Scene) -> Result<Found, Trouble> {
    if !scene.publishes() {
        return Err(Trouble::Inapplicable("a POST does not become an event".to_owned()));
    }
    let most = scene.bounds.payload_bytes.min(EVENT_BYTES_MAX as u64 / 2);
    let body = vec![b'x'; usize::try_from(most).unwrap_or(usize::MAX)];
    let (edge, why) = largest_passing((1, most), |size| {
        let body = &body[..size as usize];
        let mut stream = Stream::open(&scene.reach, "")?;
        let head = scene.post(body)?;
        if head.status >= 400 {
            return Err(Trouble::Refused(head.words));
        }
        match stream.events(1)?.iter().any(|event| event.data == body) {
            true => Ok(()),
            false => Err(Trouble::Silent(scene.reach.patience)),
        }
    })?;
    Ok(Found::edge(edge, "bytes", " bytes", why.as_ref()))
}

const OKAY: u16 = 200;

const BODY: &[u8] = b"{}";

/// Events that are waited for.
const EVENTS: usize = 2;

/// Longer events are not read.
const EVENT_BYTES_MAX: usize = 256 << 20;
