//! The files by which an agent and its bus know each other: what a launcher has to say of each.

/// A value for each file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct BusFiles<T> {
    /// Credentials of the agent.
    pub credentials: Option<T>,
    /// Certificates that signed the bus's.
    pub ca: Option<T>,
    /// Certificate of the agent.
    pub certificate: Option<T>,
    /// Its private key.
    pub key: Option<T>,
}

impl<T> BusFiles<T> {
    /// The values that there are, in the order of the fields.
    pub(super) fn given(self) -> impl Iterator<Item = T> {
        let BusFiles { credentials, ca, certificate, key } = self;
        [credentials, ca, certificate, key].into_iter().flatten()
    }

    /// References to the values.
    pub(super) fn as_ref(&self) -> BusFiles<&T> {
        BusFiles {
            credentials: self.credentials.as_ref(),
            ca: self.ca.as_ref(),
            certificate: self.certificate.as_ref(),
            key: self.key.as_ref(),
        }
    }

    /// Changes each value.
    pub(super) fn map<U>(self, mut change: impl FnMut(T) -> U) -> BusFiles<U> {
        BusFiles {
            credentials: self.credentials.map(&mut change),
            ca: self.ca.map(&mut change),
            certificate: self.certificate.map(&mut change),
            key: self.key.map(&mut change),
        }
    }

    /// The pairs of values of files for which both are there.
    pub(super) fn zip<U>(self, other: BusFiles<U>) -> BusFiles<(T, U)> {
        BusFiles {
            credentials: self.credentials.zip(other.credentials),
            ca: self.ca.zip(other.ca),
            certificate: self.certificate.zip(other.certificate),
            key: self.key.zip(other.key),
        }
    }
}

impl<T, E> BusFiles<Result<T, E>> {
    /// All values, or the first error.
    pub(super) fn whole(self) -> Result<BusFiles<T>, E> {
        Ok(BusFiles {
            credentials: self.credentials.transpose()?,
            ca: self.ca.transpose()?,
            certificate: self.certificate.transpose()?,
            key: self.key.transpose()?,
        })
    }
}
