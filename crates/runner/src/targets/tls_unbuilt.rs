//! Replaces TLS in a build without it: asking for it is an error.

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

/// Without TLS there are no counts.
pub type Counted = ();

/// Without TLS there are no certificates.
pub struct CertificateFiles;

impl CertificateFiles {
    /// Makes an empty value.
    pub fn new(_folder: PathBuf) -> CertificateFiles {
        CertificateFiles
    }

    /// Returns no arguments.
    ///
    /// # Errors
    /// Never.
    pub fn serve_arguments(&self, _lane: &Lane) -> Result<Vec<OsString>, Stop> {
        Ok(Vec::new())
    }

    /// Returns `None`: there is no certificate authority.
    pub fn authority(&self) -> Option<PathBuf> {
        None
    }

    /// Returns `None`: there are no files.
    ///
    /// # Errors
    /// Never.
    pub fn files(&self, _lane: &Lane) -> Result<Option<TlsFiles<'_>>, Stop> {
        Ok(None)
    }
}

/// Returns `None`: there were no handshakes.
pub fn handshakes(_counted: &Counted) -> Option<Handshakes> {
    None
}

/// Rejects TLS.
///
/// # Errors
/// A lane with TLS.
pub fn check(lane: &Lane, _endpoint: &Endpoint) -> Result<(), Invalid> {
    if tls::is_on(&lane.settings) { Err(refused()) } else { Ok(()) }
}

/// Accepts everything: [`check`] rejects TLS.
///
/// # Errors
/// Never.
pub fn check_secrets(_lane: &Lane) -> Result<(), Invalid> {
    Ok(())
}

/// Returns the client unchanged.
///
/// # Errors
/// Never.
pub fn dial(
    _lane: &Lane,
    dial: Dial,
    _endpoint: &Endpoint,
    _vault: &CertificateFiles,
) -> Result<(Dial, Counted), Stop> {
    Ok((dial, ()))
}

/// Returns `None`: there are no such servers.
pub fn dial_to_made(_dial: Dial, _settings: &Settings, _vault: &CertificateFiles) -> Option<Dial> {
    None
}

/// Returns the server unchanged, unless TLS is asked for.
///
/// # Errors
/// Settings with TLS.
pub fn host(
    host: Host,
    _upgrades: bool,
    settings: &Settings,
    _folder: Option<&Path>,
) -> Result<Host, Stop> {
    if tls::is_on(settings) { Err(refused().into()) } else { Ok(host) }
}

/// Adds nothing.
pub fn tell(_counted: &Counted, _finished: &mut TrialFinished) {}

fn refused() -> Invalid {
    Invalid::new("tls", "this program was built without TLS", "build it with --features tls")
}
