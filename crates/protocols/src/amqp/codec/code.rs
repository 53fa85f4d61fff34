//! Reply codes (AMQP 0-9-1, section 1.2 of the reference).

/// The method was carried out.
pub const SUCCESS: u16 = 200;
/// The content is larger than the server takes.
pub const CONTENT_TOO_LARGE: u16 = 311;
/// No queue is bound for a mandatory message.
pub const NO_ROUTE: u16 = 312;
/// An operator closed the connection.
pub const CONNECTION_FORCED: u16 = 320;
/// The user may not do this.
pub const ACCESS_REFUSED: u16 = 403;
/// There is no such exchange or queue.
pub const NOT_FOUND: u16 = 404;
/// Another connection has the queue for itself.
pub const RESOURCE_LOCKED: u16 = 405;
/// The queue or exchange exists with other properties, or a delivery tag is unknown.
pub const PRECONDITION_FAILED: u16 = 406;
/// A frame cannot be read.
pub const FRAME_ERROR: u16 = 501;
/// A field cannot be read.
pub const SYNTAX_ERROR: u16 = 502;
/// The method is not allowed at this moment.
pub const COMMAND_INVALID: u16 = 503;
/// The channel is not open, or it is open already.
pub const CHANNEL_ERROR: u16 = 504;
/// The frame is not the expected one.
pub const UNEXPECTED_FRAME: u16 = 505;
/// The server refuses this.
pub const NOT_ALLOWED: u16 = 530;
/// The server does not have this.
pub const NOT_IMPLEMENTED: u16 = 540;

/// Name of a reply code, as RabbitMQ writes it; empty for an unknown one.
pub fn name(code: u16) -> &'static str {
    let known = NAMES.iter().find(|(known, _)| *known == code);
    known.map_or("", |(_, name)| name)
}

const NAMES: [(u16, &str); 19] = [
    (SUCCESS, "SUCCESS"),
    (CONTENT_TOO_LARGE, "CONTENT_TOO_LARGE"),
    (NO_ROUTE, "NO_ROUTE"),
    (313, "NO_CONSUMERS"),
    (CONNECTION_FORCED, "CONNECTION_FORCED"),
    (402, "INVALID_PATH"),
    (ACCESS_REFUSED, "ACCESS_REFUSED"),
    (NOT_FOUND, "NOT_FOUND"),
    (RESOURCE_LOCKED, "RESOURCE_LOCKED"),
    (PRECONDITION_FAILED, "PRECONDITION_FAILED"),
    (FRAME_ERROR, "FRAME_ERROR"),
    (SYNTAX_ERROR, "SYNTAX_ERROR"),
    (COMMAND_INVALID, "COMMAND_INVALID"),
    (CHANNEL_ERROR, "CHANNEL_ERROR"),
    (UNEXPECTED_FRAME, "UNEXPECTED_FRAME"),
    (506, "RESOURCE_ERROR"),
    (NOT_ALLOWED, "NOT_ALLOWED"),
    (NOT_IMPLEMENTED, "NOT_IMPLEMENTED"),
    (541, "INTERNAL_ERROR"),
];
