//! The nouns and contracts of Weighbridge: what a trial is, what a message is, what a protocol
//! must offer, what a run leaves behind. Nothing here does I/O or reads a clock.

pub mod arrival;
pub mod body;
pub mod condition;
pub mod doubt;
pub mod endpoint;
pub mod event;
pub mod ledger;
pub mod load;
pub mod mark;
pub mod message;
pub mod plan;
pub mod protocol;
pub mod random;
pub mod rule;
pub mod server;
pub mod tally;
pub mod trial;
pub mod units;
pub mod wire;

pub use arrival::Arrival;
pub use condition::Condition;
pub use doubt::Doubt;
pub use endpoint::Endpoint;
pub use ledger::Ledger;
pub use load::{Load, Pattern, Split, Topology};
pub use protocol::{Guarantee, Protocol};
pub use rule::Rule;
pub use trial::Trial;
pub use units::{Nanos, Rate};
