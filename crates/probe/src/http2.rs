//! Probes servers of HTTP/2 and of gRPC (RFC 9113; gRPC over HTTP/2).

use bytes::Bytes;
use http::{Request, Version};
use weigh_model::endpoint::percent_decoded;
use weigh_protocols::basic_authorization;
use weigh_protocols::grpc::{COUNT, SERVICE};
use weigh_protocols::urls;

use crate::abilities::{Ability, How, Status};
use crate::finding::{Found, Question, ask_all, question};
use crate::http::{Scene, UNAUTHORIZED, by_status, takes_post};
use crate::http2_link::{Reply, Session};
use crate::link::{Link, raw};
use crate::mqtt::Bounds;
use crate::reach::{Reach, Trouble};
use crate::search::largest_passing;
use crate::stranger;

/// Asks a server of HTTP/2 everything.
///
/// # Errors
/// If it does not answer in HTTP/2, or refuses every client.
pub(crate) fn probe(
    reach: &Reach,
    bounds: Bounds,
    tell: &mut dyn FnMut(&Ability),
) -> Result<Vec<Ability>, Trouble> {
    let mut scene = Scene::new(reach, bounds);
    let first = scene.request("GET", Bytes::new())?;
    if first.status.as_u16() == UNAUTHORIZED {
        return Err(Trouble::Refused("it answers 401 Unauthorized".to_owned()));
    }
    ask_all(&mut scene, QUESTIONS, tell);
    Ok(scene.found)
}

/// Asks a server of gRPC everything.
///
/// # Errors
/// If it does not answer in gRPC, or refuses every client.
pub(crate) fn probe_grpc(
    reach: &Reach,
    bounds: Bounds,
    tell: &mut dyn FnMut(&Ability),
) -> Result<Vec<Ability>, Trouble> {
    let mut scene = Scene::new(reach, bounds);
    match scene.call(COUNT, b"", false)?.0 {
        UNAUTHENTICATED | PERMISSION_DENIED => {
            return Err(Trouble::Refused("it answers UNAUTHENTICATED".to_owned()));
        }
        _ => ask_all(&mut scene, GRPC_QUESTIONS, tell),
    }
    Ok(scene.found)
}

const QUESTIONS: &[Question<Scene>] = &[
    question("concurrent_streams", concurrent_streams),
    question("method_get", |scene| method(scene, "GET")),
    question("method_post", |scene| method(scene, "POST")),
    question("body_bytes", body_bytes),
    question("http2_alpn", http2_alpn),
    question("tls_on_port", |scene| stranger::tls_on_port(&scene.reach)),
];

const GRPC_QUESTIONS: &[Question<Scene>] = &[
    question("service", service),
    question("health", |scene| exists(scene, "/grpc.health.v1.Health/Check")),
    question("reflection", |scene| {
        exists(scene, "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo")
    }),
    question("compression_gzip", compression_gzip),
    question("message_bytes", message_bytes),
    question("concurrent_streams", concurrent_streams),
    question("http2_alpn", http2_alpn),
    question("tls_on_port", |scene| stranger::tls_on_port(&scene.reach)),
];

impl Scene {
    fn builder(&self, method: &str, path: &str) -> http::request::Builder {
        let scheme = if urls::is_secure(&self.reach.endpoint) { "https" } else { "http" };
        let uri = format!("{scheme}://{}{path}", self.reach.endpoint.authority());
        let builder = Request::builder().method(method).uri(uri).version(Version::HTTP_2);
        match basic_authorization(&self.reach.endpoint) {
            Some(value) => builder.header("authorization", value),
            None => builder,
        }
    }

    /// One request on a connection of its own.
    fn request(&self, method: &str, body: Bytes) -> Result<Reply, Trouble> {
        let request = self.builder(method, self.reach.path()).body(body).map_err(wrong)?;
        Session::open(&self.reach)?.send(request)
    }

    /// One call of gRPC on a connection of its own: its status, and what was said.
    fn call(&self, path: &str, message: &[u8], is_gzip: bool) -> Result<(u32, Reply), Trouble> {
        let mut builder = self
            .builder("POST", path)
            .header("content-type", "application/grpc")
            .header("te", "trailers")
            .header("grpc-accept-encoding", "identity,gzip");
        if is_gzip {
            builder = builder.header("grpc-encoding", "gzip");
        }
        // A flag for compression, four bytes of length, the message ("Length-Prefixed-Message").
        let mut body = vec![u8::from(is_gzip)];
        body.extend((message.len() as u32).to_be_bytes());
        body.extend_from_slice(message);
        let request = builder.body(body.into()).map_err(wrong)?;
        let reply = Session::open(&self.reach)?.send(request)?;
        match reply.field("grpc-status").and_then(|status| status.parse().ok()) {
            Some(status) => Ok((status, reply)),
            None => Err(Trouble::Foreign(format!(
                "its answer is not gRPC, but HTTP status {}",
                reply.status.as_u16()
            ))),
        }
    }
}

fn wrong(error: http::Error) -> Trouble {
    Trouble::Foreign(error.to_string())
}

/// Returns the meaning of a status in words.
fn words(status: u32, reply: &Reply) -> String {
    // "Percent-Encoded" in the specification of gRPC over HTTP/2.
    let said = percent_decoded(reply.field("grpc-message").unwrap_or_default());
    let name = match status {
        0 => "OK",
        2 => "UNKNOWN",
        3 => "INVALID_ARGUMENT",
        5 => "NOT_FOUND",
        PERMISSION_DENIED => "PERMISSION_DENIED",
        RESOURCE_EXHAUSTED => "RESOURCE_EXHAUSTED",
        11 => "OUT_OF_RANGE",
        UNIMPLEMENTED => "UNIMPLEMENTED",
        13 => "INTERNAL",
        14 => "UNAVAILABLE",
        UNAUTHENTICATED => "UNAUTHENTICATED",
        _ => "another status",
    };
    let said = if said.is_empty() { String::new() } else { format!(": {said}") };
    format!("grpc-status {status}, {name}{said}")
}

/// Tests whether the service that Weighbridge measures is there.
fn service(scene: &mut Scene) -> Result<Found, Trouble> {
    let (status, reply) = scene.call(COUNT, b"", false)?;
    let evidence = format!("{SERVICE}/Count: {}", words(status, &reply));
    Ok(match status {
        0 => Found::flag(true, evidence),
        UNIMPLEMENTED => Found::flag(false, evidence),
        _ => Found::flag(false, evidence).with(Status::Refused),
    })
}

/// Tests whether a method is there, whatever it answers.
fn exists(scene: &mut Scene, path: &str) -> Result<Found, Trouble> {
    let (status, reply) = scene.call(path, b"", false)?;
    let evidence = format!("{path}: {}", words(status, &reply));
    Ok(Found::flag(status != UNIMPLEMENTED, evidence))
}

/// Tests whether a compressed message is understood ("Compression").
fn compression_gzip(scene: &mut Scene) -> Result<Found, Trouble> {
    let (status, reply) = scene.call(COUNT, &EMPTY_GZIP, true)?;
    let accepts = reply.field("grpc-accept-encoding");
    let accepts = accepts.map_or(String::new(), |own| format!("; it accepts {own}"));
    let evidence = format!("{}{accepts}", words(status, &reply));
    let usual = scene.call(COUNT, b"", false)?.0;
    Ok(match status {
        0 => Found::flag(true, evidence),
        UNIMPLEMENTED if usual == UNIMPLEMENTED => return Err(missing()),
        _ => Found::flag(false, evidence).with(Status::Refused),
    })
}

fn missing() -> Trouble {
    Trouble::Inapplicable(format!("without {SERVICE} nothing reads a message"))
}

/// The largest message that is read. A field that the service does not know makes it large: so
/// nothing is stored.
fn message_bytes(scene: &mut Scene) -> Result<Found, Trouble> {
    if scene.call(COUNT, b"", false)?.0 == UNIMPLEMENTED {
        return Err(missing());
    }
    let most = scene.bounds.payload_bytes.max(SMALLEST);
    let (edge, why) = largest_passing((SMALLEST, most), |bytes| {
        let (status, reply) = scene.call(COUNT, &unknown_field(bytes as usize), false)?;
        if status == 0 { Ok(()) } else { Err(Trouble::Refused(words(status, &reply))) }
    })?;
    Ok(Found::edge(edge, "bytes", "", why.as_ref()))
}

/// A message of this size in all: one field with the number 15 that holds bytes (Protocol Buffers,
/// "Encoding": an unknown field is passed over).
fn unknown_field(bytes: usize) -> Vec<u8> {
    let mut message = vec![15 << 3 | 2];
    // The length takes five bytes, some of them without need, so that every size can be made.
    let inside = bytes - 6;
    for place in 0..4 {
        message.push((inside >> (7 * place)) as u8 | 0x80);
    }
    message.push((inside >> 28) as u8);
    message.resize(bytes, 0);
    message
}

fn concurrent_streams(scene: &mut Scene) -> Result<Found, Trouble> {
    Ok(match scene.request("GET", Bytes::new())?.streams {
        Some(most) => {
            let evidence = "SETTINGS_MAX_CONCURRENT_STREAMS";
            Found::number(most, "streams", How::Announced, evidence)
        }
        None => Found::words("no limit", "no limit was announced").by(How::Announced),
    })
}

fn method(scene: &mut Scene, method: &str) -> Result<Found, Trouble> {
    let body = if method == "POST" { Bytes::from_static(b"{}") } else { Bytes::new() };
    let reply = scene.request(method, body)?;
    let status = reply.status;
    let evidence = format!("{method} was answered {status} with {} bytes", reply.body_bytes);
    Ok(by_status(status.as_u16(), evidence))
}

fn body_bytes(scene: &mut Scene) -> Result<Found, Trouble> {
    let usual = scene.request("POST", Bytes::from_static(b"{}"))?.status;
    takes_post(usual.as_u16(), &usual.to_string())?;
    let most = scene.bounds.payload_bytes.max(2);
    let body = Bytes::from(vec![b' '; most as usize]);
    let (edge, why) = largest_passing((2, most), |bytes| {
        let status = scene.request("POST", body.slice(..bytes as usize))?.status;
        if status == usual { Ok(()) } else { Err(Trouble::Refused(status.to_string())) }
    })?;
    Ok(Found::edge(edge, "bytes", "", why.as_ref()))
}

/// HTTP/2 inside TLS (RFC 9113, section 3.2).
fn http2_alpn(scene: &mut Scene) -> Result<Found, Trouble> {
    if !urls::is_secure(&scene.reach.endpoint) {
        return Err(Trouble::Inapplicable("there is no TLS".to_owned()));
    }
    let link = Link::open(&scene.reach, raw(), &[b"h2"])?;
    let is_agreed = link.alpn().as_deref() == Some("h2");
    let evidence = if is_agreed { "it chose h2" } else { "it did not choose h2" };
    Ok(Found::flag(is_agreed, evidence))
}

/// Nothing, compressed (RFC 1952).
const EMPTY_GZIP: [u8; 20] = [0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 0, 3, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0];

/// Codes of gRPC ("Status codes and their use in gRPC").
const PERMISSION_DENIED: u32 = 7;
const RESOURCE_EXHAUSTED: u32 = 8;
const UNIMPLEMENTED: u32 = 12;
const UNAUTHENTICATED: u32 = 16;

/// A field of one byte takes as much here.
const SMALLEST: u64 = 7;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_of_an_unknown_field_has_the_size_that_was_asked_for() {
        for bytes in [7, 8, 200, 70_000, 5 << 20] {
            let message = unknown_field(bytes);
            assert_eq!(message.len(), bytes);
            let length = message[1..6].iter().enumerate();
            let length: usize =
                length.map(|(place, byte)| usize::from(byte & 0x7F) << (7 * place)).sum();
            assert_eq!(length + 6, bytes);
        }
    }
}
