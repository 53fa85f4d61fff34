//! Requests over one connection whose answers are read until they are whole.

use crate::link::Link;
use crate::reach::{Reach, Trouble};

/// A connection, and how far what came on it was read.
pub(crate) struct Exchange {
    link: Link,
    taken: usize,
}

impl Exchange {
    /// Opens a connection inside the layers that the scheme names.
    ///
    /// # Errors
    /// Whatever prevents it.
    pub(crate) fn open(reach: &Reach) -> Result<Exchange, Trouble> {
        Ok(Exchange { link: reach.open()?, taken: 0 })
    }

    /// Returns the end of a wait that begins now.
    ///
    /// # Errors
    /// [`Trouble::OutOfTime`] once the whole probe is.
    pub(crate) fn until(&self) -> Result<std::time::Instant, Trouble> {
        self.link.reach.until()
    }

    /// Sends bytes.
    ///
    /// # Errors
    /// If the server does not take them in time.
    pub(crate) fn send(&mut self, bytes: &[u8]) -> Result<(), Trouble> {
        let until = self.link.reach.until()?;
        self.link.send(bytes, until)
    }

    /// Waits until `read` finds something whole in what came; it returns that and its length.
    ///
    /// # Errors
    /// Those of `read`, and the end of the connection or of the time.
    pub(crate) fn hear<T>(
        &mut self,
        mut read: impl FnMut(&[u8]) -> Result<Option<(T, usize)>, Trouble>,
    ) -> Result<T, Trouble> {
        let until = self.link.reach.until()?;
        loop {
            if let Some((found, bytes)) = read(&self.link.buffer[self.taken..])? {
                self.taken += bytes;
                return Ok(found);
            }
            self.link.read(until)?;
        }
    }

    /// Sends a request and waits for its answer.
    ///
    /// # Errors
    /// Those of the two steps.
    pub(crate) fn ask<T>(
        &mut self,
        request: &[u8],
        read: impl FnMut(&[u8]) -> Result<Option<(T, usize)>, Trouble>,
    ) -> Result<T, Trouble> {
        self.send(request)?;
        self.hear(read)
    }
}
