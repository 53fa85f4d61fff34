//! What a shard hands to another process: its outcome at the end, and its intervals until then.
//! The process that puts them together gets what it would have got from shards of its own.

use weigh_model::portable::{Portable, Reader, Unreadable, disclose, enclose};
use weigh_model::portable_fields;

use crate::job::{Failure, ShardInterval};
use crate::outcome::{ShardOutcome, SignsOfLife};

/// Number of the form that this version writes and reads. It rises with every change of a field.
pub const FORM: u16 = 7;

impl ShardOutcome {
    /// The outcome as bytes for another process of the same version.
    pub fn to_bytes(&self) -> Vec<u8> {
        enclose(self, FORM)
    }

    /// Reads what [`ShardOutcome::to_bytes`] wrote.
    ///
    /// # Errors
    /// If the bytes are of another version, are cut or damaged, or are not an outcome.
    pub fn from_bytes(bytes: &[u8]) -> Result<ShardOutcome, Unreadable> {
        disclose(bytes, FORM)
    }
}

impl ShardInterval {
    /// The interval as bytes for another process of the same version.
    pub fn to_bytes(&self) -> Vec<u8> {
        enclose(self, FORM)
    }

    /// Reads what [`ShardInterval::to_bytes`] wrote.
    ///
    /// # Errors
    /// If the bytes are of another version, are cut or damaged, or are not an interval.
    pub fn from_bytes(bytes: &[u8]) -> Result<ShardInterval, Unreadable> {
        disclose(bytes, FORM)
    }
}

portable_fields!(ShardOutcome {
    accounts,
    recorder,
    granted,
    opened,
    held,
    alive,
    set_up,
    lost_links,
    first_loss,
    first_error,
    first_refusal,
    object_fault,
    was_interrupted,
    measure_from,
    ended,
    cpu,
    window_cpu,
    bytes,
    contents,
    failure,
});
portable_fields!(SignsOfLife { sent, answered, in_window });
portable_fields!(ShardInterval { interval, border, times, cpu });

impl Portable for Failure {
    fn put(&self, out: &mut Vec<u8>) {
        match self {
            Failure::Unreachable { address, reason } => {
                out.push(0);
                address.put(out);
                reason.put(out);
            }
            Failure::Session { address, reason } => {
                out.push(1);
                address.put(out);
                reason.put(out);
            }
            Failure::Ourselves(reason) => {
                out.push(2);
                reason.put(out);
            }
            Failure::Lost(reason) => {
                out.push(3);
                reason.put(out);
            }
        }
    }

    fn take(from: &mut Reader<'_>) -> Result<Failure, Unreadable> {
        match from.array()? {
            [0] => Ok(Failure::Unreachable {
                address: Portable::take(from)?,
                reason: Portable::take(from)?,
            }),
            [1] => Ok(Failure::Session {
                address: Portable::take(from)?,
                reason: Portable::take(from)?,
            }),
            [2] => Portable::take(from).map(Failure::Ourselves),
            [3] => Portable::take(from).map(Failure::Lost),
            _ => Err(Unreadable::Wrong("a failure")),
        }
    }
}

#[cfg(test)]
mod tests;
