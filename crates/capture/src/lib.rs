//! Counts the cost of messages on the wire: packets and bytes, by direction, connection, phase and
//! layer.
//!
//! Two independent measurements: a capture ([`capture::Capture`], or a stored file,
//! [`files::account_of`]), whose packets go through one accounting ([`account::Accounting`]), and
//! the kernel's own counters ([`kernel`]). [`kernel::agreement()`] compares them.
//!
//! Linux only. Nothing here changes what it counts: interfaces stay as they are, and the effects of
//! their offloads on the figures are in the account ([`account::Account::warnings`]).

pub mod account;
pub mod capture;
mod clock;
pub mod dissect;
mod error;
pub mod files;
pub mod filter;
pub mod kernel;
pub mod packet;
pub mod stream;
pub mod warning;

pub use account::{Account, Accounting, Connection, Counting, Layers, Phase, Settings, Traffic};
pub use capture::{Capture, Options, Tap};
pub use error::WireError;
pub use filter::Filter;
pub use packet::{Link, Packet};
pub use warning::Warning;
