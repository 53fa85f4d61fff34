//! WebSocket (RFC 6455) without I/O: frames, the rules of their order, close codes, and the opening
//! handshake. The layer under MQTT and the protocol `websocket` share it.

pub mod close;
pub mod decoder;
pub mod frame;
pub mod messages;
pub mod upgrade;

pub use close::Broken;
pub use decoder::{Control, Decoder};
pub use frame::{Header, Opcode, header_bytes, put_frame};
pub use messages::{Messages, Rules};
