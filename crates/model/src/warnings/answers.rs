//! Answers that are errors: what their code means, and what to type.

use crate::binding::grouped;
use crate::connection::STREAM_ERROR;

/// What to type where answers have this code.
pub(super) fn error_advice(code: u16) -> &'static str {
    match code {
        301 | 302 | 303 | 307 | 308 => {
            "redirects are not followed: type the URL that the server names (curl -i shows it)"
        }
        401 | 403 | 407 => {
            "the server wants other credentials: type --user NAME with WEIGH_PASSWORD, or a header \
             with -H"
        }
        404 | 410 => "there is nothing at this path: check the URL",
        405 | 501 => {
            "the server does not take this method: type --method GET, or the one that it takes"
        }
        413 => "the body is too large for the server: type a smaller -s",
        415 => "the server does not take this kind of body: type -H \"content-type: ...\"",
        429 | 503 => {
            "the server refuses load: lower -R or -c, or raise its limit; errors have times of \
             their own (error_time_ns)"
        }
        500..=599 => {
            "the server failed: see its log; errors are in no response time, they have times of \
             their own (error_time_ns)"
        }
        _ => {
            "check address, path and credentials; errors are in no response time, they have times \
             of their own (error_time_ns)"
        }
    }
}

/// What a code is. HTTP statuses begin at 100 and errors at 400 (RFC 9110, section 15); MQTT 5 has
/// reasons of one byte, errors from 0x80 on (section 2.4); gRPC has statuses up to 16. So the
/// ranges do not overlap.
pub(super) fn error_name(code: u16) -> String {
    match code {
        ..STREAM_ERROR => format!("gRPC status {code}"),
        STREAM_ERROR..0x80 => {
            format!("a reset of the stream (HTTP/2 error {:#x})", code - STREAM_ERROR)
        }
        0x80..=0xff => format!("reason {code:#04x}"),
        _ => format!("status {code}"),
    }
}

/// A number that a reader takes in at once: `950`, `12,400`, `3.1 million`.
pub(super) fn large(number: u64) -> String {
    match number {
        0..1_000_000 => grouped(number as f64),
        _ => format!("{:.1} million", number as f64 / 1e6),
    }
}
