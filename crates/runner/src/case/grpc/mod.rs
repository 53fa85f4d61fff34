//! Any service of gRPC: the method that a case calls, compiled from its definition and from its
//! message in JSON before anything starts.
//!
//! ```text
//!  files ──────► definitions ──► method ──► message ──► CompiledMethod, in the settings
//!  reflection ──►              (its name)  (its JSON)
//! ```

#[cfg(feature = "proto")]
mod compile;
#[cfg(feature = "proto")]
mod definitions;
#[cfg(feature = "proto")]
mod encode;
#[cfg(feature = "proto")]
mod instead;
#[cfg(feature = "proto")]
mod message;
#[cfg(feature = "proto")]
mod reflection;
#[cfg(feature = "proto")]
mod stand;
#[cfg(feature = "proto")]
mod where_wrong;

use std::collections::BTreeMap;

use weigh_model::Protocol;
use weigh_model::protocol::Invalid;
use weigh_protocols::grpc::method::{IMPORT_PATHS, MESSAGE, METHOD, PROTO, STREAMING};

use crate::case::lanes::Lane;

/// Removes settings of calls of other services than the built-in one, which reference servers and
/// baselines do not have.
pub fn without_other_services(protocol: &dyn Protocol, given: &mut BTreeMap<String, String>) {
    let of_others = [PROTO.key, IMPORT_PATHS.key, METHOD.key, MESSAGE.key, STREAMING.key];
    if protocol.name() == "grpc" && given.contains_key(METHOD.key) {
        given.retain(|key, _| !of_others.contains(&key.as_str()));
    }
}

/// Compiles the method that a lane calls, if it calls one of another service.
///
/// # Errors
/// A definition, a method or a message that is wrong: the file, the line, and what to type; a build
/// without the compiler.
pub fn compile(lane: &mut Lane) -> Result<(), Invalid> {
    if lane.protocol.name() != "grpc" || lane.settings.text(METHOD.key).is_empty() {
        return Ok(());
    }
    #[cfg(feature = "proto")]
    return compile::compile(lane);
    #[cfg(not(feature = "proto"))]
    Err(Invalid::new(
        "grpc.method",
        "this build of weigh calls only the service weigh.store.v1.Store",
        crate::exit::FULL_BUILD,
    ))
}
