//! A child that does not outlive the chore that started it, also if that fails half-way.

use std::ops::{Deref, DerefMut};
use std::process::Child;

/// A child that is killed and reaped when it is dropped.
pub(crate) struct Guarded(pub(crate) Child);

impl Deref for Guarded {
    type Target = Child;

    fn deref(&self) -> &Child {
        &self.0
    }
}

impl DerefMut for Guarded {
    fn deref_mut(&mut self) -> &mut Child {
        &mut self.0
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        // A child that was reaped has no number any more, and is not signalled.
        if matches!(self.0.try_wait(), Ok(None)) {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::process::Command;

    use super::*;

    #[test]
    fn a_dropped_child_is_gone() {
        let child = Guarded(Command::new("sleep").arg("1000").spawn().unwrap());
        let place = format!("/proc/{}", child.id());
        assert!(Path::new(&place).exists());
        drop(child);
        assert!(!Path::new(&place).exists());
    }
}
