//! Checks of a trial that need no start.

use std::net::{Ipv4Addr, SocketAddr};

use weigh_model::protocol::Invalid;
use weigh_model::{Endpoint, Trial};

use crate::case::lanes::{Against, Lane};
use crate::case::material::{Material, composer};
use crate::case::pipeline;
use crate::exit::Stop;
use crate::targets::tls;

/// Checks a trial without a start; true if the target confirms its messages.
///
/// # Errors
/// A trial that cannot run.
pub fn check_trial(
    lane: &Lane,
    trial: &Trial,
    material: &Material,
    shards: u32,
) -> Result<bool, Stop> {
    let is_marked = composer(trial, material, 0)?.0.is_marked();
    if !is_marked && shards > 1 && trial.load.delivers() {
        return Err(Stop::usage(format!(
            "--shards {shards}: bodies too small for a mark are identified by connection and \
             order, which one thread must see; type --shards 1 or -s 64B"
        )));
    }
    if lane.stores() {
        pipeline::check_marked(is_marked)?;
    }
    Ok(check_protocol(lane, trial)?)
}

/// Asks the protocol whether it can run the trial; true if the target confirms its messages.
///
/// # Errors
/// A trial that the protocol cannot run.
pub fn check_protocol(lane: &Lane, trial: &Trial) -> Result<bool, Invalid> {
    let mut trial = trial.clone();
    let unspecified = SocketAddr::from((Ipv4Addr::LOCALHOST, 1));
    trial.endpoint = Some(match &lane.against {
        Against::Foreign(endpoint) => endpoint.clone(),
        _ => Endpoint::at(lane.protocol.scheme(), unspecified),
    });
    let dial = lane.protocol.dial(&trial)?;
    if let Some(endpoint) = &trial.endpoint {
        tls::check(lane, endpoint)?;
    }
    if matches!(lane.against, Against::Reference) {
        lane.protocol.host(&lane.settings)?;
    }
    Ok(dial.confirms)
}
