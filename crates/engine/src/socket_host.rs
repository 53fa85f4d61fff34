//! Host on which sockets of consumers are made, if it is not the host of the producers.

use std::io;

use crate::io::IoFault;

/// Another host, as seen by a thread that makes a socket.
pub trait SocketHost: Send + Sync {
    /// Calls `make` once while the calling thread is on that host, and returns to the host where
    /// the thread was before.
    ///
    /// # Errors
    /// If the host cannot be entered, and then `make` was not called, or if the thread cannot
    /// return.
    fn enter(&self, make: &mut dyn FnMut()) -> io::Result<()>;
}

/// Calls `make` on the other host, or on this one if there is no other.
pub(crate) fn made_on<T>(
    host: Option<&dyn SocketHost>,
    mut make: impl FnMut() -> Result<T, IoFault>,
) -> Result<T, IoFault> {
    let Some(host) = host else { return make() };
    let mut made = None;
    host.enter(&mut || made = Some(make()))
        .map_err(|error| IoFault::Other(error.raw_os_error().unwrap_or_default()))?;
    made.unwrap_or(Err(IoFault::Unreachable))
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    /// Notes when it is entered and left; cannot be entered if it is closed.
    struct Noting {
        is_closed: bool,
        steps: Mutex<Vec<&'static str>>,
    }

    impl Noting {
        fn new(is_closed: bool) -> Noting {
            Noting { is_closed, steps: Mutex::default() }
        }

        fn note(&self, step: &'static str) {
            self.steps.lock().unwrap().push(step);
        }
    }

    impl SocketHost for Noting {
        fn enter(&self, make: &mut dyn FnMut()) -> io::Result<()> {
            if self.is_closed {
                return Err(io::Error::from_raw_os_error(1));
            }
            self.note("in");
            make();
            self.note("out");
            Ok(())
        }
    }

    #[test]
    fn what_is_made_is_made_between_going_in_and_coming_out() {
        let open = Noting::new(false);
        let made = made_on(Some(&open), || {
            open.note("made");
            Ok(7)
        });
        assert_eq!((made, made_on(None, || Ok(8))), (Ok(7), Ok(8)));
        assert_eq!(*open.steps.lock().unwrap(), ["in", "made", "out"]);
    }

    #[test]
    fn on_a_host_that_cannot_be_entered_nothing_is_made() {
        let closed = Noting::new(true);
        let made = made_on(Some(&closed), || -> Result<u8, IoFault> { panic!("made here") });
        assert_eq!(made, Err(IoFault::Other(1)));
    }
}
