//! Probes a server of HTTP/3 at the path of its URL (RFC 9114, and QUIC in RFC 9000).

use weigh_protocols::basic_authorization;
use weigh_protocols::http3::asking::{self, Request, Setting, setting};

use crate::abilities::{Ability, How};
use crate::finding::{Asking, Found, Question, ask_all, question};
use crate::http::{UNAUTHORIZED, by_status, takes_post};
use crate::mqtt::Bounds;
use crate::quic_line::QuicLine;
use crate::reach::{Reach, Trouble};
use crate::search::{Edge, largest_passing};

/// Asks everything.
///
/// # Errors
/// If it does not answer in HTTP/3, or refuses every client.
pub(crate) fn probe(
    reach: &Reach,
    bounds: Bounds,
    tell: &mut dyn FnMut(&Ability),
) -> Result<Vec<Ability>, Trouble> {
    let mut scene = Scene { reach: reach.clone(), bounds, settings: Vec::new(), found: Vec::new() };
    if scene.request("GET", None)? == UNAUTHORIZED {
        return Err(Trouble::Refused("it answers 401 Unauthorized".to_owned()));
    }
    scene.settings = scene.settings()?;
    ask_all(&mut scene, QUESTIONS, tell);
    Ok(scene.found)
}

const QUESTIONS: &[Question<Scene>] = &[
    question("quic", quic),
    question("concurrent_streams", concurrent_streams),
    question("field_section_bytes", field_section_bytes),
    question("qpack_table_bytes", qpack_table_bytes),
    question("qpack_blocked_streams", qpack_blocked_streams),
    question("extended_connect", |scene| flag(scene, setting::ENABLE_CONNECT_PROTOCOL)),
    question("datagrams", |scene| flag(scene, setting::H3_DATAGRAM)),
    question("method_get", |scene| method(scene, "GET", None)),
    question("method_post", |scene| method(scene, "POST", Some(BODY))),
    question("body_bytes", body_bytes),
];

/// A server that is asked.
struct Scene {
    reach: Reach,
    bounds: Bounds,
    settings: Vec<Setting>,
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
    /// A connection with the begin of this end's control stream.
    fn open(&self) -> Result<QuicLine, Trouble> {
        let mut line = QuicLine::open(&self.reach, b"h3")?;
        let mut control = Vec::new();
        asking::put_control(&mut control);
        line.send(OWN_CONTROL, &control, false)?;
        Ok(line)
    }

    /// One request on a connection of its own; returns the status of its answer.
    fn request(&self, method: &str, body: Option<&[u8]>) -> Result<u16, Trouble> {
        let mut line = self.open()?;
        let (mut frames, authority) = (Vec::new(), self.reach.endpoint.authority());
        let authorization = basic_authorization(&self.reach.endpoint);
        let request = Request {
            method,
            authority: &authority,
            path: self.reach.path(),
            authorization: authorization.as_deref(),
            body,
        };
        request.put(&mut frames);
        line.send(FIRST_REQUEST, &frames, true)?;
        line.hear(|streams| {
            let Some(stream) = streams.get(&FIRST_REQUEST) else { return Ok(None) };
            let status = asking::read_status(&stream.bytes).map_err(Trouble::Foreign)?;
            match (status, stream.reset) {
                (None, Some(code)) => {
                    Err(Trouble::Refused(format!("it reset the stream (code {code:#x})")))
                }
                (status, _) => Ok(status),
            }
        })
    }

    /// The settings on the server's control stream.
    fn settings(&self) -> Result<Vec<Setting>, Trouble> {
        self.open()?.hear(|streams| {
            for (_, stream) in streams.iter().filter(|(number, _)| *number % 4 == 3) {
                let read = asking::read_settings(&stream.bytes).map_err(Trouble::Foreign)?;
                if read.is_some() {
                    return Ok(read);
                }
            }
            Ok(None)
        })
    }

    fn setting(&self, id: u64) -> Option<u64> {
        self.settings.iter().find(|own| own.id == id).map(|own| own.value)
    }
}

/// Versions that were agreed on.
fn quic(scene: &mut Scene) -> Result<Found, Trouble> {
    let mut line = scene.open()?;
    // They are known once the first bytes of the server have been answered.
    line.hear(|streams| Ok((!streams.is_empty()).then_some(())))?;
    let agreed = line.negotiated();
    Ok(Found::words(agreed, "versions of QUIC and TLS, and ALPN").by(How::Announced))
}

/// Requests that may be open at once (RFC 9000, section 4.6).
fn concurrent_streams(scene: &mut Scene) -> Result<Found, Trouble> {
    let many = scene.open()?.allowed();
    let edge = match many {
        OPENED_AHEAD.. => Edge { passed: Some(many), failed: None },
        many => Edge { passed: Some(many), failed: Some(many + 1) },
    };
    let why = Trouble::Refused("initial_max_streams_bidi".to_owned());
    Ok(Found::edge(edge, "streams", " open streams", Some(&why)))
}

fn field_section_bytes(scene: &mut Scene) -> Result<Found, Trouble> {
    Ok(match scene.setting(setting::MAX_FIELD_SECTION_SIZE) {
        Some(bytes) => {
            let evidence = "SETTINGS_MAX_FIELD_SECTION_SIZE";
            Found::number(bytes, "bytes", How::Announced, evidence)
        }
        None => {
            let evidence = "SETTINGS has no SETTINGS_MAX_FIELD_SECTION_SIZE";
            Found::words("no limit", evidence).by(How::Announced)
        }
    })
}

/// Both are 0 if they are not named (RFC 9204, section 5).
fn qpack_table_bytes(scene: &mut Scene) -> Result<Found, Trouble> {
    let bytes = scene.setting(setting::QPACK_MAX_TABLE_CAPACITY).unwrap_or(0);
    let evidence = "SETTINGS_QPACK_MAX_TABLE_CAPACITY";
    Ok(Found::number(bytes, "bytes", How::Announced, evidence))
}

fn qpack_blocked_streams(scene: &mut Scene) -> Result<Found, Trouble> {
    let many = scene.setting(setting::QPACK_BLOCKED_STREAMS).unwrap_or(0);
    Ok(Found::number(many, "streams", How::Announced, "SETTINGS_QPACK_BLOCKED_STREAMS"))
}

fn flag(scene: &mut Scene, id: u64) -> Result<Found, Trouble> {
    let value = scene.setting(id);
    let words = value.map_or("missing".to_owned(), |value| value.to_string());
    Ok(Found::flag(value == Some(1), format!("setting {id:#x} is {words}")).by(How::Announced))
}

/// Tests whether a method is accepted at the path of the URL.
fn method(scene: &mut Scene, method: &str, body: Option<&[u8]>) -> Result<Found, Trouble> {
    let status = scene.request(method, body)?;
    Ok(by_status(status, format!("{method} {} was answered {status}", scene.reach.path())))
}

/// The largest body of a POST that is not refused.
fn body_bytes(scene: &mut Scene) -> Result<Found, Trouble> {
    let usual = scene.request("POST", Some(BODY))?;
    takes_post(usual, &usual.to_string())?;
    let most = scene.bounds.payload_bytes;
    let body = vec![b'x'; usize::try_from(most).unwrap_or(usize::MAX)];
    let (edge, why) = largest_passing((1, most), |size| {
        match scene.request("POST", Some(&body[..size as usize]))? {
            status if status == usual || status < 400 => Ok(()),
            status => Err(Trouble::Refused(status.to_string())),
        }
    })?;
    Ok(Found::edge(edge, "bytes", "", why.as_ref()))
}

/// The first request of a connection, and the first stream in one direction.
const FIRST_REQUEST: u64 = 0;
const OWN_CONTROL: u64 = 2;

/// Streams that the layer opens before they are used.
const OPENED_AHEAD: u64 = 64;

const BODY: &[u8] = b"{}";
