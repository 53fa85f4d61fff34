//! Single questions to a server over a connection of a protocol, whose answers the protocol keeps.

use weigh_model::protocol::Dial;

use crate::link::Link;
use crate::reach::{Reach, Trouble};

/// A connection for questions.
pub struct Questions {
    link: Link,
}

impl Questions {
    /// Opens a connection that `dial` makes, with all of its layers.
    ///
    /// # Errors
    /// If the server does not accept it, or speaks something else.
    pub fn open(reach: &Reach, dial: &Dial) -> Result<Questions, Trouble> {
        Ok(Questions { link: Link::bare(reach, dial)? })
    }

    /// Sends a question, and waits until `is_answered`.
    ///
    /// # Errors
    /// If no answer comes.
    pub fn ask(&mut self, question: &[u8], is_answered: impl Fn() -> bool) -> Result<(), Trouble> {
        let until = self.link.reach.until()?;
        self.link.send(question, until)?;
        while !is_answered() {
            let turned = self.link.turn(until);
            if !is_answered() {
                turned?;
            }
        }
        Ok(())
    }
}
