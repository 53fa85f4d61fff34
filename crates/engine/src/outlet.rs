//! Where the sockets of consumers are made, where that is another host than the producers'.

use std::io;

use crate::io::IoFault;

/// Another host, as seen by a thread that makes a socket.
pub trait Outlet: Send + Sync {
    /// Calls `make` once while the calling thread stands on that host, and returns to where it
    /// stood before.
    ///
    /// # Errors
    /// If the host cannot be entered, and then nothing was made, or if there is no way back.
    fn through(&self, make: &mut dyn FnMut()) -> io::Result<()>;
}

/// What `make` made on the other host, or here if there is none.
pub(crate) fn made_through<T>(
    outlet: Option<&dyn Outlet>,
    mut make: impl FnMut() -> Result<T, IoFault>,
) -> Result<T, IoFault> {
    let Some(outlet) = outlet else { return make() };
    let mut made = None;
    outlet
        .through(&mut || made = Some(make()))
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

    impl Outlet for Noting {
        fn through(&self, make: &mut dyn FnMut()) -> io::Result<()> {
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
        let made = made_through(Some(&open), || {
            open.note("made");
            Ok(7)
        });
        assert_eq!((made, made_through(None, || Ok(8))), (Ok(7), Ok(8)));
        assert_eq!(*open.steps.lock().unwrap(), ["in", "made", "out"]);
    }

    #[test]
    fn on_a_host_that_cannot_be_entered_nothing_is_made() {
        let closed = Noting::new(true);
        let made = made_through(Some(&closed), || -> Result<u8, IoFault> { panic!("made here") });
        assert_eq!(made, Err(IoFault::Other(1)));
    }
}
