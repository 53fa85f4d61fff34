//! The reference server: connections of `http2_core` with the intake that counts.

use std::sync::Arc;

use weigh_model::protocol::{Host, Invalid, Transport};
use weigh_model::trial::Settings;

use super::codec::NAMING;
use crate::http2_core::intake::{Intake, Rules};
use crate::http2_core::serving::Serving;

/// Makes it.
///
/// # Errors
/// A path that is none.
pub(super) fn host(settings: &Settings) -> Result<Host, Invalid> {
    let rules = Arc::new(Rules::new(settings, &NAMING)?);
    Ok(Host {
        transport: Transport::Stream,
        make: Box::new(move |_shard| Box::new(Serving::new(Intake::new(Arc::clone(&rules))))),
    })
}
