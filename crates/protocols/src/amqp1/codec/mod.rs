//! AMQP 1.0 as bytes (ISO/IEC 19464, OASIS AMQP 1.0): the type system, frames, performatives, SASL
//! and the sections of a message. Both ends share it. It never panics and allocates nothing that
//! the input asks for.

mod composite;
mod delivery;
mod flaw;
mod frame;
mod message;
mod offers;
mod performative;
mod sasl;
mod serial;
mod state;
mod terminus;
mod value;
mod writer;

pub use composite::{Fields, Symbols};
pub use delivery::{Delivery, Progress, put_delivery};
pub use flaw::{Flaw, condition};
pub use frame::{
    EMPTY_FRAME_BYTES, FRAME_MIN, Frame, FrameKind, begin_frame, end_frame, put_empty, read_frame,
};
pub use message::{Body, Header, Message, put_data_head};
pub use offers::Offers;
pub use performative::{
    Attach, Begin, Detach, Disposition, Flow, Open, Performative, Role, Transfer, name,
};
pub use sasl::{MECHANISMS, Outcome, Sasl};
pub use serial::{distance, is_before};
pub use state::{Problem, State};
pub use terminus::Terminus;
pub use value::{Array, Compound, Cursor, Described, Value};
pub use writer::List;

/// First bytes of either end where frames of AMQP follow (part 2, section 2.2).
pub const AMQP_HEADER: [u8; 8] = *b"AMQP\x00\x01\x00\x00";

/// First bytes of either end where frames of SASL follow (part 5, section 5.3.1).
pub const SASL_HEADER: [u8; 8] = *b"AMQP\x03\x01\x00\x00";
