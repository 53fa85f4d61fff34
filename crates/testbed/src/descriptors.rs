//! Limits of file descriptors. Every connection needs a descriptor.

use std::io;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// The soft and the hard limit of a process; `u64::MAX` where there is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DescriptorLimit {
    /// The limit in force (soft).
    pub soft: u64,
    /// The most to which a process may raise it (hard).
    pub hard: u64,
}

/// Returns the limit of this process. It counts for each descriptor table: a thread that unshares
/// its
/// table has it for itself.
pub fn limit() -> DescriptorLimit {
    let limit = getrlimit(Resource::Nofile);
    DescriptorLimit {
        soft: limit.current.unwrap_or(u64::MAX),
        hard: limit.maximum.unwrap_or(u64::MAX),
    }
}

/// Raises the soft limit of this process to the hard one, and returns the limit then in force.
///
/// # Errors
/// If the kernel refuses.
pub fn raise() -> io::Result<DescriptorLimit> {
    let maximum = getrlimit(Resource::Nofile).maximum;
    setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum })?;
    Ok(limit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn raised_is_hard() {
        let raised = raise().unwrap();
        assert_eq!(raised.soft, raised.hard);
        assert_eq!(limit(), raised);
    }
}
