//! A path between hosts, made in user space: frames come in at one port and go out at another,
//! later, or never, as the path says (`weigh_model::path`).
//!
//! The pure part knows time only as an argument: a [`line::Line`] says of each packet when it
//! leaves or why it does not, a [`switch::Switch`] holds packets until then. The rest is I/O: a
//! [`port::Port`] is a TAP device or a packet socket, a [`forwarder::Forwarder`] the thread that
//! runs a switch between ports and counts what it could not do in time. Linux only.

pub mod counts;
pub mod forwarder;
pub mod line;
pub mod port;
pub mod switch;
pub mod urgency;

mod clock;
mod pool;
mod transmitter;
