//! Services of a typical storage pipeline, as a target of measurements: a gateway forwards messages
//! from a broker, an API accepts readings by HTTP, a store keeps them. Each runs in a process of
//! its own, on a runtime with one thread.

/// Prints a line on standard error. The name shadows the macro of the standard library, which
/// panics if the pipe was closed.
macro_rules! eprintln {
    ($($part:tt)*) => {{
        use std::io::Write as _;
        let _ = writeln!(std::io::stderr(), $($part)*);
    }};
}

mod api;
mod clock;
pub mod counting;
mod database;
mod failed;
mod gateway;
mod gateway_settings;
mod hop_file;
mod keeper;
mod kept;
mod link;
mod next;
mod passing;
mod queue;
mod reading;
mod running;
mod store;

pub use api::{ApiSettings, Holding};
pub use database::Durability;
pub use failed::Failed;
pub use gateway_settings::GatewaySettings;
pub use keeper::Place;
pub use queue::Gathering;
pub use reading::Reading;
pub use running::Running;
pub use store::StoreSettings;
