//! Turns packets into an account: the arithmetic of the probe, without any input or output.

pub mod accounting;
pub mod attribute;
pub mod connection;
mod content;
mod joined;
pub mod layers;
pub mod metrics;
mod naming;
pub mod note;
pub(crate) mod placed;
pub mod quiet;
pub mod result;
pub mod session;
mod tracked;
pub mod traffic;
mod unit;

pub use accounting::{Accounting, Notes, Settings};
pub use attribute::Disagreement;
pub use connection::{Connection, Ending, Transport};
pub use layers::Layers;
pub use naming::Namer;
pub use note::PacketNote;
pub use quiet::Quiet;
pub use result::Counting;
pub use result::{Account, Interface, Offloads, Other};
pub use session::{Gap, Session, Step};
pub use traffic::{Phases, Traffic};
pub use unit::Unit;
pub use weigh_model::content::{CodecCount, ContentBytes, Phase, StreamCounts};
