//! In the place of TLS where this program was built without it: asking for it is an error.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use weigh_model::endpoint::Endpoint;
use weigh_model::event::TrialFinished;
use weigh_model::protocol::{Dial, Host, Invalid};
use weigh_model::tls;
use weigh_model::trial::Settings;
use weigh_testbed::managed::TlsFiles;

use crate::case::lanes::Lane;
use crate::exit::Stop;
use crate::targets::handshakes::Handshakes;

/// Nothing is counted.
pub type Counted = ();

/// There are no certificates.
pub struct Vault;

impl Vault {
    /// None.
    pub fn new(_folder: PathBuf) -> Vault {
        Vault
    }

    /// Nothing.
    pub fn serve_arguments(&self, _lane: &Lane) -> Result<Vec<OsString>, Stop> {
        Ok(Vec::new())
    }

    /// There is no certificate authority.
    pub fn authority(&self) -> Option<PathBuf> {
        None
    }

    /// Nothing.
    pub fn files(&self, _lane: &Lane) -> Result<Option<TlsFiles<'_>>, Stop> {
        Ok(None)
    }
}

/// There were none.
pub fn handshakes(_counted: &Counted) -> Option<Handshakes> {
    None
}

/// Refuses TLS.
pub fn check(lane: &Lane, _endpoint: &Endpoint) -> Result<(), Invalid> {
    if tls::is_on(&lane.settings) { Err(refused()) } else { Ok(()) }
}

/// The same clients.
pub fn dial(
    _lane: &Lane,
    dial: Dial,
    _endpoint: &Endpoint,
    _vault: &Vault,
) -> Result<(Dial, Counted), Stop> {
    Ok((dial, ()))
}

/// There are no such servers.
pub fn dial_to_made(_dial: Dial, _settings: &Settings, _vault: &Vault) -> Option<Dial> {
    None
}

/// The same server, unless TLS is asked for.
pub fn host(host: Host, settings: &Settings, _folder: Option<&Path>) -> Result<Host, Stop> {
    if tls::is_on(settings) { Err(refused().into()) } else { Ok(host) }
}

/// There is nothing to tell.
pub fn tell(_counted: &Counted, _finished: &mut TrialFinished) {}

fn refused() -> Invalid {
    Invalid::new("tls", "this program was built without TLS", "build it with --features tls")
}
