//! The clocks of two hosts: exchanges that measure their offset, and one-way delays between the
//! hosts, refused where the offset is not known well enough.

pub mod ask;
pub mod one_way;
pub mod packet;
pub mod pair;
pub mod records;
pub mod serve;

pub use ask::{Asked, Asker};
pub use one_way::{Direction, OneWay, OneWayRefusal};
pub use records::RecordsError;
pub use serve::Responder;

use std::time::{SystemTime, UNIX_EPOCH};

/// Nanoseconds since 1970 on this host's wall clock, the only clock that two hosts have in
/// common.
pub fn wall_ns() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
}

/// Possible error of a stamp: the kernel gives nanoseconds, in steps of a few.
pub const RESOLUTION_NS: i64 = 100;
